"""A problem: an MDP, features, a behaviour policy and the operator that makes the target policy."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from gqlab.exact.exact import Exact
from gqlab.exact.objective import action_values
from gqlab.mdp.arcs import triples
from gqlab.mdp.finite import FiniteMDP
from gqlab.operators import Operator, Softmax
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: Actions whose values are this close to the largest count as best, too.
TIE = 1e-6


class Problem(checks.Frozen):
    """Off-policy control of ``mdp`` with ``Q_θ(s,a) = φ(s,a)ᵀθ``.

    Parameters
    ----------
    mdp : FiniteMDP
    features : (S, A, d) array, or sparse (S·A, d) matrix
        φ(s,a); row s·A + a of a matrix belongs to (s, a). The exact quantities need a matrix C = E[φφᵀ] that is not
        singular.
    behavior : (S, A) array, optional
        π_b, the policy that generates the data; default uniform. The exact quantities need its chain to have one
        recurrent class.
    target : Operator, optional
        How Q_θ becomes π_θ; default ``Softmax(1.0)``. With :class:`FixedPolicy` the problem is off-policy evaluation.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> problem
    Problem(n_states=5, n_actions=3, dim=4, target=Softmax(sigma=1.0))
    >>> problem.policy(np.zeros(4))[0]
    array([0.33333333, 0.33333333, 0.33333333])
    """

    def __init__(
        self,
        mdp: FiniteMDP,
        features: Any,
        behavior: ArrayLike | None = None,
        target: Operator | None = None,
    ) -> None:
        checks.instance("mdp", mdp, FiniteMDP, "a FiniteMDP")
        S, A = mdp.n_states, mdp.n_actions
        self.mdp = mdp
        #: φ(s,a), (S·A, d): an array, or a sparse matrix where one was given.
        self.rows: Any = _sparse_rows(features, S * A) if sparse.issparse(features) else _dense_rows(features, S, A)
        if behavior is None:
            self.behavior: FloatArray = checks.frozen(np.full((S, A), 1 / A))
        else:
            pi_b = checks.array("behavior", behavior, (S, A))
            checks.probabilities("behavior", pi_b, skip=mdp.terminal)
            pi_b[mdp.terminal] = 1 / A  # never read
            self.behavior = checks.frozen(pi_b / pi_b.sum(axis=-1, keepdims=True))
        self.target = Softmax(1.0) if target is None else target
        checks.instance("target", self.target, Operator, "an operator such as gqlab.Softmax(1.0)")
        if not hasattr(self.target, "compiled"):
            raise ValueError(
                f"target is {target!r}, an operator without a compiled form: give its class a NamedTuple with a method "
                "improve(self, row, q, w, A), as docs/extending.md shows"
            )
        self.target.check(S, A)

    @property
    def dim(self) -> int:
        """d, the number of features."""
        return int(self.rows.shape[1])

    @cached_property
    def features(self) -> FloatArray:
        """φ(s,a), (S, A, d); made when it is first asked for if the features are sparse."""
        shape = self.mdp.n_states, self.mdp.n_actions, self.dim
        if not self.has_sparse_features:
            return checks.frozen(self.rows.reshape(shape))
        checks.memory("the dense shape of features", shape, math.prod(shape))
        return checks.frozen(self.rows.toarray().reshape(shape))

    @property
    def has_sparse_features(self) -> bool:
        """Whether the features came as a sparse matrix."""
        return sparse.issparse(self.rows)

    @property
    def largest_norm_squared(self) -> float:
        """max ‖φ(s,a)‖²."""
        return float((self.rows**2).sum(axis=-1).max())

    @cached_property
    def exact(self) -> Exact:
        """The exact quantities, μ, C, J, ∇J, ω*, rewards and values, made when they are first asked for.

        ``ValueError`` where they do not exist: features whose C is singular, a behaviour policy whose chain has
        several recurrent classes.
        """
        return Exact(self)

    def policy(self, theta: ArrayLike) -> FloatArray:
        """π_θ(a|s), (..., S, A), for ``theta`` (..., d)."""
        th = checks.vectors("theta", theta, self.dim)
        checks.memory("theta", f"of shape {th.shape}", th.size // self.dim * self.mdp.n_states * self.mdp.n_actions)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.has_sparse_features:
                q = action_values(self.rows, th).reshape(*th.shape[:-1], self.mdp.n_states, self.mdp.n_actions)
            else:
                q = np.einsum("...i,sai->...sa", th, self.features)
        if not np.isfinite(q).all():
            raise ValueError("theta is too large: its action values overflow")
        return np.array(self.target.policy(q))

    def plot(self, theta: ArrayLike | None = None, *, shape: tuple[int, int] | None = None, ax: Any = None) -> Any:
        """The problem in a picture, with a value in every state: a grid world with arrows, or a small chain.

        Parameters
        ----------
        theta : (d,) array, optional
            Show π_θ and its values; default: the largest values, with an optimal policy on a grid and the chain of the
            behaviour policy as a graph.
        shape : (rows, columns), optional
            The grid whose cells are the states, row by row; default: that of the environment (Frozen Lake, Cliff
            Walking), or none: then the chain is drawn, with likelier transitions as stronger arrows.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure. They are returned.

        Examples
        --------
        >>> import gqlab as gq
        >>> lake = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
        >>> problem = gq.Problem(lake, gq.random_features(lake, dim=8))
        >>> ax = problem.plot()
        >>> [text.get_text() for text in ax.texts if text.get_text()]
        ['×', '×', '×', '×', 'G', 'S']
        """
        from gqlab.plots.worlds import PicturedWorld, grid_size, world_plot

        mdp, size = self.mdp, grid_size(self.mdp.state_ids, self.mdp.grid_shape, shape)
        at = None if theta is None else checks.array("theta", theta, (self.dim,))
        value, policy = self._best() if at is None else (self.exact.value(at), self.policy(at))
        shown = self.behavior if size is None and at is None else policy
        world = PicturedWorld(mdp.transition, mdp.reward, mdp.terminal, mdp.initial, mdp.state_ids, value, shown)
        return world_plot(world, size, ax)

    def _best(self) -> tuple[FloatArray, FloatArray]:
        """The optimal value of every state, and a policy that attains it: all best actions are equally likely."""
        mdp, value = self.mdp, self.exact.optimal_value
        q = (mdp.transition * (mdp.reward + mdp.discount * value)).sum(axis=-1)
        best = q >= q.max(axis=1, keepdims=True) - TIE * max(1.0, np.abs(q).max())
        return value, best / best.sum(axis=1, keepdims=True)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that defines the problem; equal problems have equal ones."""
        mdp, phi = self.mdp, sparse.csr_array(self.rows)
        # The nonzero numbers, so that the form in which they were given does not matter.
        parts = [np.array([mdp.n_states, mdp.n_actions, self.dim]), *mdp.arcs, mdp.terminal, mdp.start]
        parts += [phi.indptr.astype(np.int64), phi.indices.astype(np.int64), phi.data, self.behavior]
        parts.extend(self.target.tables())
        numbers = self.target.numbers() or [0.0]
        digest = hashlib.sha256(f"{type(self.target).__name__} {' '.join(map(repr, numbers))}".encode())
        for part in parts:
            digest.update(repr(part.shape).encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        mdp = self.mdp
        return f"Problem(n_states={mdp.n_states}, n_actions={mdp.n_actions}, dim={self.dim}, target={self.target!r})"


def _dense_rows(features: Any, S: int, A: int) -> FloatArray:
    phi = checks.array("features", features, (S, A, None))
    return checks.frozen(phi.reshape(S * A, -1))


def _sparse_rows(features: Any, n_rows: int) -> Any:
    """A sparse (S·A, d) matrix of finite numbers, in CSR form, in order and without zeros."""
    if len(features.shape) != 2 or features.shape[0] != n_rows or features.shape[1] == 0:
        raise ValueError(f"features has shape {features.shape}, expected ({n_rows}, *)")
    row, column, value = triples("features", features)
    bad = np.flatnonzero(~np.isfinite(value))
    if len(bad):
        where = checks.place((row[bad[0]], column[bad[0]]))
        raise ValueError(f"features{where} is {value[bad[0]]}, expected a finite number")
    out = sparse.csr_array((value, (row, column)), shape=features.shape)
    out.eliminate_zeros()
    for part in (out.data, out.indices, out.indptr):
        checks.frozen(part)
    return out
