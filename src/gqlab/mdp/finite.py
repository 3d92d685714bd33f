"""Finite Markov decision processes.

======================  ===========  ==========================================================================
symbol                  shape        meaning
======================  ===========  ==========================================================================
``arcs``                             the transitions with P(s'|s,a) > 0: their s', P, r and γ
``transition``          (S, A, S)    P(s'|s,a)
``reward``              (S, A, S)    r(s,a,s'), any real number
``discount``            (S, A, S)    γ(s,a,s') in [0, 1); 0 on arrival in a terminal state
``terminal``            (S,)         arriving there ends the episode: no bootstrap, restart from ``initial``
``initial``             (S,)         the distribution of the first state, and of the state after a restart
======================  ===========  ==========================================================================

A terminal state is never the ``s`` of a sample (s, a, r, s'); its rows of ``transition`` are not read. The arrays of
shape (S, A, S) are kept if they were given, and otherwise made when they are first asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from gqlab.mdp import arcs, chains, large_chains, toy_text
from gqlab.mdp.arcs import Arcs, Given, SparseEntries
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.words import first_of

#: MDPs with at most this many states, and numbers in an (S, A, S) array, are handled as dense arrays.
SMALL_STATES, SMALL_NUMBERS = 500, 1 << 23


class FiniteMDP(checks.Frozen):
    """A finite MDP with optional terminal states that restart the trajectory.

    Parameters
    ----------
    transition : (S, A, S) array, sparse (S·A, S) matrix, or a list of A sparse (S, S) matrices
        ``P(s'|s,a)``; each row sums to 1. Row s·A + a of an (S·A, S) matrix belongs to (s, a).
    reward : (S, A, S) or (S, A) array, a number, or in such a sparse form
    discount : float, (S, A, S) array, or in such a sparse form
        γ in [0, 1).
    terminal : (S,) bool array, optional
        Default: no state is terminal.
    initial : (S,) array, optional
        Needed where a state is terminal; without it a trajectory starts uniformly.

    Examples
    --------
    Two states; the only action moves to the other one, and leaving state 0 yields reward 1.

    >>> import gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0, 1]], [[1, 0]]], [[1], [0]], discount=0.9)
    >>> mdp
    FiniteMDP(n_states=2, n_actions=1)
    >>> mdp.stationary([[1], [1]])
    array([0.5, 0.5])

    The same from a sparse matrix.

    >>> from scipy import sparse
    >>> mdp = gq.FiniteMDP(sparse.csr_array([[0, 1], [1, 0]]), [[1], [0]], discount=0.9)
    >>> mdp.arcs.s_next, mdp.arcs.reward
    (array([1, 0]), array([1., 0.]))
    """

    def __init__(
        self,
        transition: Any,
        reward: Any,
        discount: Any,
        terminal: ArrayLike | None = None,
        initial: ArrayLike | None = None,
    ) -> None:
        P, dense = _kernel(transition)
        S, A = P.n_states, P.n_actions
        self._shape = S, A
        self.terminal = checks.frozen(_terminal(terminal, S))
        if dense is None:
            arcs.check_kernel(P, self.terminal)
        else:
            checks.probabilities("transition", dense, skip=self.terminal)
        self.initial: FloatArray | None = self._initial(initial)
        P = arcs.normalised(P, self.terminal)
        r, gamma = arcs.given("reward", reward, P), _discount(discount, P)
        self._keep_dense(dense, r, gamma, P)
        row, s_next = np.divmod(P.place, S)
        ended = self.terminal[s_next]
        first = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=S * A))])
        discounts = np.where(ended, 0.0, gamma.of_arcs) if ended.any() else gamma.of_arcs
        columns = (first, s_next, P.value, r.of_arcs, discounts)
        #: The transitions that can happen, in the order of s, a, s'.
        self.arcs = Arcs(*(checks.frozen(column) for column in columns))
        #: Where the states came from: ``state_ids[s]`` is the environment's own number of state s.
        self.state_ids: NDArray[np.intp] = checks.frozen(np.arange(S))
        #: Rows and columns, where the environment's states are the cells of a grid.
        self.grid_shape: tuple[int, int] | None = None

    def _initial(self, initial: ArrayLike | None) -> FloatArray | None:
        if initial is None:
            if self.terminal.any():
                raise ValueError("initial is needed: some states are terminal and restart from it")
            return None
        p0 = checks.array("initial", initial, (self.n_states,))
        checks.probabilities("initial", p0)
        bad = np.flatnonzero(self.terminal & (p0 > 0))
        if len(bad):
            raise ValueError(f"initial[{bad[0]}] is {p0[bad[0]]}, but state {bad[0]} is terminal")
        return checks.frozen(p0 / p0.sum())

    def _keep_dense(self, P: FloatArray | None, reward: Given, discount: Given, kernel: SparseEntries) -> None:
        """Keep the (S, A, S) arrays that were given, and for the others the values where there is no transition."""
        if P is not None:
            P[self.terminal] = 0.0
            P.reshape(-1)[kernel.place] = kernel.value
        if discount.dense is not None:
            discount.dense[:, :, self.terminal] = 0.0
        for name, dense in (("transition", P), ("reward", reward.dense), ("discount", discount.dense)):
            if dense is not None:
                self.__dict__[name] = checks.frozen(dense)  # where the property below finds it
        self._elsewhere = reward.elsewhere, discount.elsewhere

    @cached_property
    def transition(self) -> FloatArray:
        """``P(s'|s,a)``, (S, A, S), made when it is first asked for, unless it was given in this form."""
        return self._dense("transition", np.zeros((1, 1, 1)), self.arcs.probability)

    @cached_property
    def reward(self) -> FloatArray:
        """r(s,a,s'), (S, A, S), made likewise."""
        return self._dense("reward", self._elsewhere[0], self.arcs.reward)

    @cached_property
    def discount(self) -> FloatArray:
        """γ(s,a,s'), (S, A, S), made likewise."""
        ends = np.where(self.terminal, 0.0, self._elsewhere[1])
        return self._dense("discount", ends, self.arcs.discount)

    def _dense(self, name: str, elsewhere: FloatArray, value: FloatArray) -> FloatArray:
        S, A = self._shape
        checks.memory(f"the dense shape of {name}", (S, A, S), S * A * S)
        out = np.array(np.broadcast_to(elsewhere, (S, A, S)), order="C")
        out.reshape(-1)[self.arcs.row * S + self.arcs.s_next] = value
        return checks.frozen(out)

    @property
    def n_states(self) -> int:
        return self._shape[0]

    @property
    def n_actions(self) -> int:
        return self._shape[1]

    @property
    def is_small(self) -> bool:
        """Whether computations use dense arrays."""
        S, A = self._shape
        return S <= SMALL_STATES and S * A * S <= SMALL_NUMBERS

    def __repr__(self) -> str:
        ends = f", n_terminal={int(self.terminal.sum())}" if self.terminal.any() else ""
        return f"FiniteMDP(n_states={self.n_states}, n_actions={self.n_actions}{ends})"

    @property
    def start(self) -> FloatArray:
        """The distribution of the first state, (S,), which is ``initial`` or else uniform."""
        return np.full(self.n_states, 1 / self.n_states) if self.initial is None else self.initial

    def at(self, s: NDArray[np.intp], a: NDArray[np.intp], s_next: NDArray[np.intp]) -> tuple[FloatArray, ...]:
        """P, r and γ of given transitions, (n,) each, including impossible ones."""
        S, A = self._shape
        place = (np.asarray(s, dtype=np.int64) * A + a) * S + s_next
        own = self.arcs.row * S + self.arcs.s_next
        k = np.minimum(np.searchsorted(own, place), len(own) - 1)
        happens = own[k] == place
        r, gamma = (np.broadcast_to(x, (S, A, 1))[s, a, 0] for x in self._elsewhere)
        r = self.__dict__["reward"][s, a, s_next] if "reward" in self.__dict__ else r
        gamma = self.__dict__["discount"][s, a, s_next] if "discount" in self.__dict__ else gamma
        return (
            np.where(happens, self.arcs.probability[k], 0.0),
            np.where(happens, self.arcs.reward[k], r),
            np.where(happens, self.arcs.discount[k], np.where(self.terminal[s_next], 0.0, gamma)),
        )

    @cached_property
    def expected_reward(self) -> FloatArray:
        """r(s,a) = E[r(s,a,s')], (S, A); 0 in terminal states, which have no transitions."""
        S, A = self._shape
        rewards = np.bincount(self.arcs.row, weights=self.arcs.probability * self.arcs.reward, minlength=S * A)
        return checks.frozen(rewards.reshape(S, A))

    @cached_property
    def discounted(self) -> Any:
        """P(s'|s,a) γ(s,a,s') as a sparse (S·A, S) matrix."""
        S, A = self._shape
        weights = self.arcs.probability * self.arcs.discount
        return sparse.csr_array((weights, self.arcs.s_next, self.arcs.first), shape=(S * A, S))

    def chain(self, policy: FloatArray) -> FloatArray:
        """The state chain under ``policy`` (..., S, A), restarts included; the rows of terminal states restart."""
        policy = checks.numbers("policy", policy)
        if policy.shape[-2:] != self._shape:
            raise ValueError(f"policy has shape {policy.shape}, expected (..., {self.n_states}, {self.n_actions})")
        K = np.einsum("...sa,sat->...st", policy, self.transition)
        if self.initial is not None:
            ends = K[..., self.terminal].sum(axis=-1)
            ends[..., self.terminal] = 1.0
            K[..., self.terminal] = 0.0
            K += ends[..., None] * self.initial
        return K

    def sparse_chain(self, policy: FloatArray) -> Any:
        """The same for one policy (S, A) as a sparse matrix, (S, S), or (S + 1, S + 1) where something is terminal.

        In that case state S stands for the restart: it is entered instead of a terminal state, and left according to
        ``initial``. Restricted to the other states, this is the chain with restarts.
        """
        K = self.over_actions(policy, self.arcs.probability)
        if self.initial is None or not self.terminal.any():
            return K
        S, first = self.n_states, np.flatnonzero(self.initial)
        K = K.tocoo()
        s_next = np.where(self.terminal[K.col], S, K.col)
        ends = np.flatnonzero(self.terminal)
        rows = np.concatenate([K.row, ends, np.full(len(first), S)])
        columns = np.concatenate([s_next, np.full(len(ends), S), first])
        data = np.concatenate([K.data, np.ones(len(ends)), self.initial[first]])
        return sparse.csr_array((data, (rows, columns)), shape=(S + 1, S + 1))

    def over_actions(self, policy: FloatArray, value: FloatArray) -> Any:
        """Σ_a π(a|s) x(s,a,s') for numbers x of the transitions, (n,): a sparse (S, S) matrix without zeros."""
        S, A = self._shape
        weights = np.repeat(policy.reshape(-1), np.diff(self.arcs.first)) * value
        K = sparse.csr_array((weights, self.arcs.s_next, self.arcs.first[::A]), shape=(S, S), copy=True)
        K.sum_duplicates()
        K.eliminate_zeros()
        return K

    def stationary(self, policy: ArrayLike, name: str = "policy") -> FloatArray:
        """μ (S,): the stationary distribution of the chain under ``policy`` (S, A); 0 on terminal states.

        A chain with several recurrent classes has no single μ: ``ValueError``, with the states of two of them. Up to
        500 states every entry has full relative accuracy. Above, μ is certified to be right to 1e-12 in total variation
        (:mod:`gqlab.mdp.large_chains`), or a ``ValueError`` says what accuracy was reached.
        """
        pi = checks.array(name, policy, (self.n_states, self.n_actions))
        checks.probabilities(name, pi, skip=self.terminal)
        K = self.chain(pi) if self.is_small else self.sparse_chain(pi)
        classes = chains.recurrent_classes(K > 0 if self.is_small else K)
        if len(classes) > 1:
            listed = " and ".join(first_of(members[members < self.n_states]) for members in classes[:2])
            raise ValueError(f"{name}: its chain has {len(classes)} recurrent classes, expected 1: states {listed}")
        if self.is_small:
            mu = np.zeros(self.n_states)
            mu[classes[0]] = chains.stationary_distribution(K[np.ix_(classes[0], classes[0])])
            return mu
        try:
            mu = large_chains.long_run_distribution(K, classes)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return mu[: self.n_states] / mu[: self.n_states].sum()

    def optimal_q(self) -> FloatArray:
        """Q*(s, a), (S, A): 0 in terminal states.

        >>> import gqlab as gq
        >>> mdp = gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.5, is_slippery=False)
        >>> float(mdp.optimal_q()[14].max()), int(mdp.optimal_policy()[14].argmax())  # the goal is to the right
        (1.0, 2)
        """
        from gqlab.mdp import values

        return values.action_value(self, values.optimal_value(self))

    def optimal_policy(self) -> FloatArray:
        """A policy that is best in every state, (S, A): the first of the best actions."""
        Q = self.optimal_q()
        best = Q.max(axis=1, keepdims=True) - 1e-10 * (1 + np.abs(Q).max(axis=1, keepdims=True)) <= Q
        return np.eye(self.n_actions)[best.argmax(axis=1)]

    @classmethod
    def from_transitions(
        cls,
        s: ArrayLike,
        a: ArrayLike,
        s_next: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike,
        discount: ArrayLike,
        *,
        n_states: int | None = None,
        n_actions: int | None = None,
        terminal: ArrayLike | None = None,
        initial: ArrayLike | None = None,
    ) -> FiniteMDP:
        """The MDP whose transitions are given one by one, in any order: (s, a, s') with P, r and γ.

        Parameters
        ----------
        s, a, s_next : (n,) arrays of whole numbers
        probability, reward, discount : (n,) arrays, or one number for all
            Where several transitions have the same (s, a, s'), probabilities are summed, and rewards and discounts
            averaged with the probabilities as weights.
        n_states, n_actions : int, optional
            Default: one more than the largest number that occurs.
        terminal, initial
            As for :class:`FiniteMDP`.

        Examples
        --------
        Two states; the only action moves to the other one, and leaving state 0 yields reward 1.

        >>> import gqlab as gq
        >>> mdp = gq.FiniteMDP.from_transitions([0, 1], [0, 0], [1, 0], 1.0, reward=[1, 0], discount=0.9)
        >>> mdp.transition.tolist()
        [[[0.0, 1.0]], [[1.0, 0.0]]]
        """
        columns = {"s": s, "a": a, "s_next": s_next, "probability": probability, "reward": reward, "discount": discount}
        P, r, gamma = arcs.gathered(columns, n_states, n_actions)
        try:
            return cls(P, r, gamma, terminal, initial)
        except ValueError as error:
            if str(error).startswith("transition"):
                raise ValueError(f"probability: {error}") from None
            raise

    @classmethod
    def from_gymnasium(cls, env_id: str, discount: ArrayLike = 0.95, **kwargs: Any) -> FiniteMDP:
        """The exact MDP of a toy-text environment with a ``P`` table (FrozenLake, CliffWalking, Taxi).

        States that no policy can reach are left out; ``state_ids`` maps back to the environment's numbers. An array
        ``discount`` has the environment's own shape. Further keywords go to ``gymnasium.make``. An environment whose
        steps do not follow its table (Taxi's ``fickle_passenger``) is refused.

        Examples
        --------
        >>> import gqlab as gq
        >>> gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
        FiniteMDP(n_states=16, n_actions=4, n_terminal=5)
        >>> taxi = gq.FiniteMDP.from_gymnasium("Taxi-v4", discount=0.95)  # of 500 states 404 can be reached
        >>> taxi, int(taxi.state_ids[-1])
        (FiniteMDP(n_states=404, n_actions=6, n_terminal=4), 499)
        """
        table, initial, shape = toy_text.environment_table(env_id, kwargs)
        x = toy_text.read_table(table)
        keep, terminal = toy_text.reachable(x, initial > 0)
        S, A, n = x.n_states, x.n_actions, len(keep)
        number = np.full(S, -1)
        number[keep] = np.arange(n)
        inside = (number[x.s] >= 0) & (number[x.s_next] >= 0)
        place = ((number[x.s] * A + x.a) * n + number[x.s_next])[inside]
        P, r = (SparseEntries(n, A, place, column[inside]) for column in (x.probability, x.reward))
        scalar = checks.plain_array("discount", discount).ndim == 0
        gamma = discount if scalar else checks.array("discount", discount, (S, A, S))[np.ix_(keep, np.arange(A), keep)]
        mdp = cls(P, r, gamma, terminal[keep], initial[keep])
        mdp.state_ids = checks.frozen(keep)
        mdp.grid_shape = shape
        return mdp


def _kernel(transition: Any) -> tuple[SparseEntries, FloatArray | None]:
    """P as its entries, and as the (S, A, S) array that was given, if it was one."""
    if arcs.is_sparse(transition):
        return arcs.entries("transition", transition), None
    P = checks.array("transition", transition, (None, None, None))
    S, A = P.shape[:2]
    if P.shape[2] != S:
        raise ValueError(f"transition has shape {P.shape}, expected ({S}, {A}, {S})")
    return arcs.dense_entries(P), P


def _terminal(terminal: ArrayLike | None, S: int) -> NDArray[np.bool_]:
    out = np.zeros(S, dtype=bool) if terminal is None else checks.plain_array("terminal", terminal)
    if out.shape != (S,):
        raise ValueError(f"terminal has shape {out.shape}, expected ({S},)")
    if out.dtype != bool:
        raise ValueError(f"terminal has dtype {out.dtype}, expected bool")
    if out.all():
        raise ValueError("terminal is True everywhere: no state is left to act in")
    return out


def _discount(discount: Any, P: SparseEntries) -> Given:
    """γ in [0, 1): a number, an (S, A, S) array or a sparse form."""
    if not arcs.is_sparse(discount):
        if checks.plain_array("discount", discount).ndim == 0:
            checks.number("discount", discount, least=0, below=1)
            return arcs.given("discount", discount, P)
        discount = checks.array("discount", discount, (P.n_states, P.n_actions, P.n_states))
    found = arcs.given("discount", discount, P)
    places = arcs.entries("discount", discount) if found.dense is None else arcs.dense_entries(found.dense)
    bad = np.flatnonzero((places.value < 0) | (places.value >= 1))
    if len(bad):
        where = places.where(bad[0])
        raise ValueError(f"discount{where} is {places.value[bad[0]]}, expected at least 0 and below 1")
    return found
