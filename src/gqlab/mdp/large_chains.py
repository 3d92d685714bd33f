"""Large sparse Markov chains: certified stationary distributions, absorption, and linear systems.

``K`` is a stochastic matrix in SciPy's CSR form. With Q = K − I, which equals K off its diagonal and has rows that sum
to 0, μ is the distribution with μQ = 0. An approximation m of it leaves a residual ρ = mQ. Take a state z, and let h_i
be the mean time to z from i: (−Qh)_i = 1 for i ≠ z, h_z = 0. With z removed, −Q has a nonnegative inverse whose rows
sum to h, so that m differs from μ by at most

    e = Σ_{i≠z} |ρ_i| h_i

in total variation. Any h' ≥ 0 with (−Qh')_i ≥ c > 0 for i ≠ z and h'_z = 0 has h ≤ h'/c: an h' from any method, once
this inequality is checked, makes e a valid bound. ρ is computed in NumPy's longest floats, its own rounding is
included, and m is corrected until e ≤ ``TOLERANCE``.

A chain that mixes too slowly for that, and whose states can be ordered so that its moves are short, is eliminated
state by state without a subtraction (Grassmann, Taksar and Heyman, 1985): every entry then has full relative accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator, gmres, splu

from gqlab.mdp import chains
from gqlab.support.checks import FloatArray

#: Half the distance from 1 to the next number: of the longest floats, and of doubles.
LONG_UNIT = np.finfo(np.longdouble).eps / 2
UNIT = np.finfo(np.float64).eps / 2

#: The largest e that is accepted; larger where NumPy's longest floats are doubles, which cannot certify as much.
TOLERANCE = 1e-12 if LONG_UNIT < 1e-18 else 1e-8

#: The largest residual of a linear system that is accepted, relative to its terms.
RESIDUAL = 1e-13

#: Chains of at most this many states are eliminated as dense matrices: right away, and where nothing else works.
DENSE, DENSE_AT_LAST = 500, 3000

#: The most numbers in a band, and the most multiplications, of an elimination.
BAND_NUMBERS, BAND_WORK = 50_000_000, 2e10

#: Steps of the power method before the first correction; corrections; GMRES steps in a round, and rounds.
POWER_STEPS, CORRECTIONS, KRYLOV, RESTARTS = 100, 6, 40, 6


def long_run_distribution(K: Any, classes: list[NDArray[np.intp]], start: FloatArray | None = None) -> FloatArray:
    """The long-run frequency of each state, (n,), of a chain with these recurrent classes, started from ``start``."""
    out = np.zeros(K.shape[0])
    mass = [1.0] if len(classes) == 1 else absorbed(K, classes, start)
    for members, share in zip(classes, mass, strict=True):
        if share > 0:
            inside = K if len(members) == K.shape[0] else K[members][:, members]
            out[members] = share * stationary_distribution(inside)
    return out


def absorbed(K: Any, classes: list[NDArray[np.intp]], start: Any) -> FloatArray:
    """The probability that the chain ends in each class: y(I − K) = start on the transient states, y their visits.

    A residual of y changes the result by at most the sum of its entries.
    """
    label = np.full(K.shape[0], -1)
    for k, members in enumerate(classes):
        label[members] = k
    transient = np.flatnonzero(label < 0)
    mass = np.bincount(label[label >= 0], weights=start[label >= 0], minlength=len(classes))
    if not start[transient].any():
        return np.asarray(mass)
    leave = K[transient]
    moves = leave[:, transient].tocoo()
    off = moves.row != moves.col
    among = sparse.csr_array((moves.data[off], (moves.row[off], moves.col[off])), shape=moves.shape)
    # 1 − K_ii as the sum of the moves away, so that rounding cannot make it 0.
    others = leave.tocoo()
    away = np.bincount(others.row, np.where(others.col == transient[others.row], 0.0, others.data), len(transient))
    A = sparse.diags_array(away, format="csr") - among.T.tocsr()
    visits = solve(A, start[transient], "the visits to transient states")
    moved = leave.multiply(visits[:, None]).tocoo()
    inside = label[moved.col] >= 0
    mass += np.bincount(label[moved.col[inside]], weights=moved.data[inside], minlength=len(classes))
    return np.asarray(mass / mass.sum())


def stationary_distribution(K: Any) -> FloatArray:
    """μ of an irreducible chain, (n,), to ``TOLERANCE`` in total variation, or ``ValueError`` with what was reached."""
    n = K.shape[0]
    if n <= DENSE:
        return chains.stationary_distribution(K.toarray())
    mu, reached = _corrected(K)
    if reached <= TOLERANCE:
        return mu
    order = reverse_cuthill_mckee(K, symmetric_mode=False)
    band = bandwidth(K, order)
    if n * (2 * band + 1) <= BAND_NUMBERS and n * band**2 <= BAND_WORK:
        return _eliminated(K, order, band)
    if n <= DENSE_AT_LAST:
        return chains.stationary_distribution(K.toarray())
    raise ValueError(
        f"the stationary distribution of its chain of {n} states is certified only to {reached:.1e} in total "
        f"variation, expected {TOLERANCE:g}: the chain mixes too slowly"
    )


# --- Corrections, and what certifies them ---------------------------------------------------------------------------


class _Generator:
    """Q of a chain, and systems with I − J, where J are its jumps: K without staying put, rescaled to rows of sum 1."""

    def __init__(self, K: Any) -> None:
        off = sparse.csr_array(K, copy=True)
        off.setdiag(0)
        off.eliminate_zeros()
        self.n = K.shape[0]
        self.off = off
        self.out_counts = np.diff(off.indptr)
        rows = np.repeat(np.arange(self.n), self.out_counts)
        self.long_rate = np.zeros(self.n, dtype=np.longdouble)
        np.add.at(self.long_rate, rows, off.data.astype(np.longdouble))
        self.rate = self.long_rate.astype(np.float64)
        self.jumps = sparse.csr_array((off.data / self.rate[rows], off.indices, off.indptr), shape=off.shape)
        self.back = self.jumps.T.tocsr()
        into = off.T.tocsr()
        self.in_counts = np.diff(into.indptr)
        self.long_into = into.astype(np.longdouble)

    def power(self) -> FloatArray:
        """μ, roughly, by the power method on the jumps; a tenth of them are suppressed, so that periods do no harm."""
        nu = np.full(self.n, 1 / self.n)
        for _ in range(POWER_STEPS):
            following = 0.1 * nu + 0.9 * (self.back @ nu)
            change, nu = np.abs(following - nu).sum(), following
            if change < 1e-14:
                break
        mu = nu / self.rate
        return np.asarray(mu / mu.sum())

    def without(self, z: int, matrix: Any) -> Any:
        """x ↦ x − (jumps, or their transpose) x among the states other than z."""

        def apply(x: FloatArray) -> FloatArray:
            y = np.array(x, dtype=np.float64).reshape(-1)
            y[z] = 0.0
            out = y - matrix @ y
            out[z] = x.reshape(-1)[z]
            return np.asarray(out)

        return LinearOperator((self.n, self.n), matvec=apply, dtype=np.float64)

    def residual(self, mu: Any) -> tuple[Any, Any]:
        """ρ = μQ, and a bound on its rounding error."""
        into, out = self.long_into @ mu, self.long_rate * mu
        return into - out, LONG_UNIT * ((self.in_counts + 1) * into + (self.out_counts + 2) * out)

    def times(self, z: int, about: float) -> FloatArray:
        """h' ≥ h, an upper bound on the mean times to z, (n,); infinite if it could not be verified."""
        b = 1 / self.rate
        b[z] = 0.0
        h = krylov(self.without(z, self.jumps), b, 1e-6, np.where(np.arange(self.n) == z, 0.0, about))
        h[z] = 0.0
        gone, come = self.rate * h, self.off @ h
        drift = gone - come - UNIT * (self.out_counts + 3) * (gone + np.abs(come))
        drift[z] = np.inf
        c = drift.min()
        return h / c if c > 0 and (h >= 0).all() and np.isfinite(h).all() else np.full(self.n, np.inf)


def _corrected(K: Any) -> tuple[FloatArray, float]:
    """μ, corrected until it is certified, and the e that was reached."""
    Q = _Generator(K)
    mu = Q.power().astype(np.longdouble)
    z = int(np.argmax(mu))
    times = Q.times(z, float(1 / mu[z]))
    back, best = Q.without(z, Q.back), np.inf
    found = mu
    if not np.isfinite(times).all():
        return mu.astype(np.float64), np.inf
    for _ in range(CORRECTIONS):
        rho, rounding = Q.residual(mu)
        e = float((np.abs(rho) + rounding) @ times)
        if e < best:
            best, found = e, mu
        if e <= TOLERANCE or not e < 2 * best:
            break
        rho[z] = 0.0
        scale = float(np.abs(rho).max())
        step = krylov(back, (rho / scale).astype(np.float64), 1e-8)
        mu = mu + scale * (step / Q.long_rate)
        mu /= mu.sum()
    out = np.maximum(found, 0).astype(np.float64)
    return np.asarray(out / out.sum()), best


def krylov(A: Any, b: FloatArray, rtol: float, x0: FloatArray | None = None) -> FloatArray:
    """Ax ≈ b by GMRES; the caller checks how well."""
    x, _ = gmres(A, b, x0=x0, rtol=rtol, atol=0.0, restart=KRYLOV, maxiter=RESTARTS)
    return np.asarray(x)


# --- Elimination ----------------------------------------------------------------------------------------------------


def bandwidth(K: Any, order: NDArray[Any]) -> int:
    """The longest move of the chain when its states are in this order."""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    moves = K.tocoo()
    return int(np.abs(position[moves.row] - position[moves.col]).max(initial=0))


def _eliminated(K: Any, order: NDArray[Any], band: int) -> FloatArray:
    """μ by elimination in this order. The band is stored row by row, so that (i, j) is number 2·band·i + j of it."""
    n, b = K.shape[0], max(1, band)
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    moves = K.tocoo()
    flat = np.zeros((2 * b + 1) * n)
    flat[2 * b * position[moves.row] + position[moves.col] + b] = moves.data
    M = as_strided(flat[b:], shape=(n, n), strides=(2 * b * 8, 8))
    for k in range(n - 1, 0, -1):  # as chains.stationary_distribution, on the states that k can reach
        low = max(0, k - b)
        M[low:k, k] /= max(M[k, low:k].sum(), chains.TINY)
        M[low:k, low:k] += M[low:k, k, None] * M[k, low:k]
    mu = np.zeros(n)
    mu[0] = 1.0
    for k in range(1, n):
        low = max(0, k - b)
        mu[k] = mu[low:k] @ M[low:k, k]
        if mu[k] > 1e100:
            mu[: k + 1] /= mu[k]
    out = np.empty(n)
    out[order] = mu / mu.sum()
    return out


# --- Linear systems -------------------------------------------------------------------------------------------------


def solve(A: Any, b: FloatArray, what: str, x0: FloatArray | None = None) -> FloatArray:
    """x with Ax = b for a sparse, diagonally dominant A, by GMRES, or else by LU where that stays sparse.

    It is accepted if max |b − Ax| is at most ``RESIDUAL`` times the largest sum of the terms of a row.
    """
    D = 1 / A.diagonal()
    scaled = A.multiply(D[:, None]).tocsr()
    sizes = abs(A)
    x, reached = _refine(A, sizes, b, lambda r: krylov(scaled, D * r, 1e-8), x0)
    if reached > RESIDUAL:
        order = reverse_cuthill_mckee(A, symmetric_mode=False)
        band = bandwidth(A, order)
        if len(b) * (2 * band + 1) <= BAND_NUMBERS or len(b) <= DENSE_AT_LAST:
            x, reached = _refine(A, sizes, b, splu(A.tocsc()).solve, None)
    if reached > RESIDUAL:
        raise ValueError(
            f"{what}: the system of {len(b)} equations is solved only to {reached:.1e}, expected {RESIDUAL:g}"
        )
    return x


def _refine(A: Any, sizes: Any, b: FloatArray, step: Any, x0: FloatArray | None) -> tuple[FloatArray, float]:
    """x, refined as long as that helps, and max |b − Ax| relative to the largest terms."""
    x = np.zeros(len(b)) if x0 is None else x0
    best, found = np.inf, x
    for _ in range(CORRECTIONS + 2):
        r = b - A @ x
        terms = float((np.abs(b) + sizes @ np.abs(x)).max())
        reached = float(np.abs(r).max()) / terms if terms > 0 else 0.0
        if reached < best:
            best, found = reached, x
        if not reached > 4 * UNIT or not reached <= 2 * best or not np.isfinite(reached):
            break
        x = x + step(r)
    return found, best
