"""Choosing the steps, the batch and the epochs of the sharper theorems.

For given η_ω and M every need of a theorem weakens as η_θ falls, so the admissible η_θ form an interval from 0 and its
end is found by bisection. The interior theorem counts iterates as long as they are 3Gη_θ inside the sphere: where θ_0
is not, nothing is counted, so η_θ is also limited by (R − ‖θ_0‖)/3G. The remaining variables, log η_ω, log M and the
fraction of that limit, are searched on a grid that is refined around its best point. A returned point has been checked
against every need; that no other is better is not proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.renamed import renamed
from gqlab.theory.inputs import checked
from gqlab.theory.plugin_bound import plug_in
from gqlab.theory.sharp import Sharp
from gqlab.theory.theorems import THEOREMS, EvaluatedTheorem, evaluate, leaves

#: Step sizes and batches are sought between these.
SMALLEST_STEP, MOST_SAMPLES = 1e-60, 1e40

#: Fractions of the largest admissible η_θ that are tried: from this one up to 1.
SMALLEST_FRACTION = 1e-6

#: Just inside the edge, as a margin for rounding.
INSIDE = 1 - 1e-9


@dataclass(frozen=True)
class Choice:
    """Steps, batch and epochs with the bound that they give; ``needs`` are margins, none negative.

    ``leaves`` bounds the probability that the run comes near the sphere, after which its iterates are not counted
    (None: for the projected theorem, and for T → ∞).
    """

    theorem: str
    order: int
    eta_theta: float
    eta_omega: float
    batch_size: int
    n_epochs: float
    bound: float
    needs: dict[str, float]
    leaves: float | None = None

    @property
    def samples(self) -> float:
        return self.n_epochs * self.batch_size

    def __str__(self) -> str:
        if self.theorem == "plug-in":
            return f"{self.samples:.3g} samples, the minimiser of their own objective: bound {self.bound:.4g}"
        epochs = "T → ∞" if math.isinf(self.n_epochs) else f"T = {self.n_epochs:.3g}, {self.samples:.3g} samples"
        return (
            f"η_θ = {self.eta_theta:.4g}, η_ω = {self.eta_omega:.4g}, M = {float(self.batch_size):.4g}, {epochs}: "
            f"bound {self.bound:.4g}"
        )


def room(c: Sharp, theta0_norm: float) -> float:
    """How far θ_0 lies inside the sphere; ``ValueError`` if it does not: then no step is small enough."""
    if not theta0_norm < c.R:
        raise ValueError(f"theta0_norm is {theta0_norm:g}, expected a number below the radius, {c.R:g}")
    return c.R - theta0_norm


def edge(c: Sharp, theorem: str, eta_omega: FloatArray, M: Any, order: int = 2, theta0_norm: float = 0.0) -> FloatArray:
    """The largest admissible η_θ for each η_ω; 0 where there is none."""
    shell = room(c, theta0_norm) / (3 * c.G) if theorem == "interior" else math.inf
    low = np.full(np.broadcast(eta_omega, M).shape, math.log(SMALLEST_STEP))
    high = np.zeros_like(low)
    with np.errstate(all="ignore"):
        possible = evaluate(c, theorem, np.exp(low), eta_omega, M, order).holds
        for _ in range(64):
            middle = (low + high) / 2
            holds = evaluate(c, theorem, np.exp(middle), eta_omega, M, order).holds
            low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return np.where(possible, np.minimum(np.exp(low), shell) * INSIDE, 0.0)


@renamed(M="batch_size")
@checked
def largest_eta_theta(c: Sharp, theorem: str, *, batch_size: int, order: int = 2, theta0_norm: float = 0.0) -> Choice:
    """The admissible pair with the largest η_θ, and the bound at T → ∞; ``theta0_norm`` is ‖θ_0‖.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> largest_eta_theta(sharp_constants(problem, 1.0), "interior", batch_size=10_000).eta_theta > 7e-4
    True
    """
    checks.one_of("theorem", theorem, THEOREMS)
    M = batch_size

    def value(log_omega: FloatArray) -> FloatArray:
        return -np.log(np.maximum(edge(c, theorem, np.exp(log_omega), M, order, theta0_norm), 1e-300))

    best = zoom(value, [(math.log(SMALLEST_STEP), 0.0)])
    eta_omega = np.exp(best)
    eta_theta = float(edge(c, theorem, eta_omega, M, order, theta0_norm)[0])
    if eta_theta == 0:
        raise ValueError(f"no step sizes above {SMALLEST_STEP:g} satisfy what the theorem needs")
    return choice(c, theorem, eta_theta, float(eta_omega[0]), M, math.inf, (0.0, 0.0), order)


def choice(
    c: Sharp, theorem: str, eta_theta: float, eta_omega: float, M: int, T: float, start: tuple[float, float],
    order: int = 2, theta0_norm: float = 0.0,
) -> Choice:  # fmt: skip
    """The theorem at one point; ``start`` is (J(θ_0), ‖ω_0 − ω*(θ_0)‖²)."""
    with np.errstate(all="ignore"):
        found = evaluate(c, theorem, eta_theta, eta_omega, float(M), order)
        total = sum(float(term) for term in found.terms(T, *start).values())
    needs = {name: float(value) for name, value in found.needs.items()}
    probability = None
    if theorem == "interior" and math.isfinite(T):
        risen = total * float(found.coefficients["rho"]) * eta_theta * T * M
        probability = leaves(c, risen, 3 * c.G * eta_theta, T * M, theta0_norm)
    return Choice(theorem, order, eta_theta, eta_omega, int(M), T, total, needs, probability)


@renamed(M="batch_size", T="n_epochs")
@checked
def best_steps(
    c: Sharp, theorem: str, *, batch_size: int, n_epochs: int, start: tuple[float, float], order: int = 2,
    theta0_norm: float = 0.0,
) -> Choice:  # fmt: skip
    """The admissible steps with the least bound for this batch size M and number of epochs T.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> c = gq.theory.sharp_constants(problem, 1.0)
    >>> steps = gq.theory.best_steps(c, "interior", batch_size=10_000, n_epochs=1000, start=(0.1, 0.1))
    >>> steps.eta_theta <= gq.theory.largest_eta_theta(c, "interior", batch_size=10_000).eta_theta
    True
    """
    checks.one_of("theorem", theorem, THEOREMS)
    M, T = batch_size, float(n_epochs)

    def value(log_omega: FloatArray, log_fraction: FloatArray) -> FloatArray:
        found, possible = _evaluated(c, theorem, order, M, log_omega, log_fraction, theta0_norm)
        return np.where(possible, np.log(sum(found.terms(T, *start).values())), math.inf)

    box = [(math.log(SMALLEST_STEP), 0.0), (math.log(SMALLEST_FRACTION), 0.0)]
    log_omega, log_fraction = zoom(value, box)
    eta_omega = np.exp(log_omega)
    eta_theta = float(edge(c, theorem, np.array([eta_omega]), M, order, theta0_norm)[0] * math.exp(log_fraction))
    return choice(c, theorem, eta_theta, float(eta_omega), M, T, start, order, theta0_norm)


@checked
def least_samples(
    c: Sharp, theorem: str, epsilon: float, *, start: tuple[float, float] | None = None, order: int = 2,
    theta0_norm: float = 0.0,
) -> Choice:  # fmt: skip
    """T, M and the steps with the least TM whose bound is at most ε.

    Parameters
    ----------
    c : Sharp
        What ``sharp_constants`` gives.
    theorem : "interior", "projected" or "plug-in"
        The "interior" bound counts iterates until the run comes near the sphere: see ``leaves`` of the result. The
        "plug-in" has one batch, no steps and no start: it is about the minimiser of the samples' own objective.
    epsilon : float
    start : (float, float)
        J(θ_0) and ‖ω_0 − ω*(θ_0)‖², for the other two.
    order : 2 or 1
        Of the expansion of ω*, for "interior".
    theta0_norm : float
        ‖θ_0‖, which must be 3Gη_θ inside the sphere for "interior".

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> plan = least_samples(sharp_constants(problem, 1.0), "interior", 0.01, start=(0.1, 0.1))
    >>> plan.bound <= 0.01, min(plan.needs.values()) >= 0
    (True, True)
    """
    if theorem == "plug-in":
        return _plugged(c, epsilon)
    if start is None:
        raise ValueError(f"start is None, expected J(θ_0) and ‖ω_0 − ω*(θ_0)‖² for the theorem {theorem!r}")
    known = start

    def value(log_M: FloatArray, log_omega: FloatArray, log_fraction: FloatArray) -> FloatArray:
        M = np.exp(log_M)
        per_T, rest = _split(c, theorem, order, M, log_omega, log_fraction, known, theta0_norm)
        with np.errstate(over="ignore"):
            T = np.maximum(per_T / np.maximum(epsilon - rest, 1e-300), 1.0)
        far = 1e6 + np.log(np.maximum(rest, 1e-300) / epsilon)  # ordered by how far they miss ε
        return np.where(rest < epsilon, np.log(T) + log_M, np.where(np.isfinite(rest), far, np.inf))

    box = [(0.0, math.log(MOST_SAMPLES)), (math.log(SMALLEST_STEP), 0.0), (math.log(SMALLEST_FRACTION), 0.0)]
    point = zoom(value, box, points=(33, 49, 9))
    if not float(value(*(np.array([x]) for x in point))[0]) < 1e6:
        raise ValueError(f"epsilon is {epsilon:g}: no batch of up to {MOST_SAMPLES:g} samples brings the bound there")
    M = math.ceil(math.exp(point[0]))
    log_omega, log_fraction = np.array([point[1]]), np.array([point[2]])
    per_T, rest = _split(c, theorem, order, np.array([float(M)]), log_omega, log_fraction, start, theta0_norm)
    T = float(max(1, math.ceil(float(per_T[0]) / (epsilon - float(rest[0])) * (1 + 1e-12))))
    eta_omega = np.exp(log_omega)
    eta_theta = float(edge(c, theorem, eta_omega, float(M), order, theta0_norm)[0] * math.exp(point[2]))
    return choice(c, theorem, eta_theta, float(eta_omega[0]), M, T, start, order, theta0_norm)


def _plugged(c: Sharp, epsilon: float) -> Choice:
    """Theorem 5: one batch of the least size, and no steps."""
    found = plug_in(c)
    n = found.samples(epsilon)
    return Choice("plug-in", 0, 0.0, 0.0, n, 1.0, found.bound(n), {})


def zoom(
    function: Callable[..., FloatArray], box: list[tuple[float, float]], points: tuple[int, ...] | None = None,
    rounds: int = 14,
) -> FloatArray:  # fmt: skip
    """A minimiser of ``function`` over a box: on a grid, then on ever smaller grids around the best point."""
    counts = points or (81,) * len(box)
    low, high = (np.array(ends) for ends in zip(*box, strict=True))
    best, least = (low + high) / 2, math.inf
    first_low, first_high = low, high
    for _ in range(rounds):
        axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, counts, strict=True)]
        grid = np.meshgrid(*axes, indexing="ij")
        values = np.where(np.isnan(out := function(*grid)), math.inf, out)
        k = np.unravel_index(int(values.argmin()), values.shape)
        if values[k] <= least:
            least, best = float(values[k]), np.array([axis[i] for axis, i in zip(axes, k, strict=True)])
        reach = 2 * (high - low) / (np.array(counts) - 1)
        low, high = np.maximum(best - reach, first_low), np.minimum(best + reach, first_high)
    return best


def _evaluated(
    c: Sharp, theorem: str, order: int, M: Any, log_omega: FloatArray, log_fraction: FloatArray, theta0_norm: float
) -> tuple[EvaluatedTheorem, NDArray[np.bool_]]:
    """The theorem at fractions of the edge; the last axis runs over the fractions, along which the edge is constant."""
    eta_omega = np.exp(log_omega)
    most = edge(c, theorem, eta_omega[..., :1], np.broadcast_to(M, eta_omega.shape)[..., :1], order, theta0_norm)
    eta_theta = np.maximum(most, SMALLEST_STEP) * np.exp(log_fraction)
    with np.errstate(all="ignore"):
        return evaluate(c, theorem, eta_theta, eta_omega, M, order), most > 0


def _split(
    c: Sharp, theorem: str, order: int, M: Any, log_omega: FloatArray, log_fraction: FloatArray,
    start: tuple[float, float], theta0_norm: float,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """The bound as per_T/T + rest; infinite where the steps are not admissible."""
    found, possible = _evaluated(c, theorem, order, M, log_omega, log_fraction, theta0_norm)
    terms = found.terms(1.0, *start)
    per_T = terms["initialisation"] + terms["tracking: start"]
    rest = terms["batch"] + terms["tracking: batch"]
    return np.where(possible, per_T, math.inf), np.where(possible, rest, math.inf)
