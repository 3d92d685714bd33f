"""Finite Markov decision processes.

======================  ===========  ==========================================================================
symbol                  shape        meaning
======================  ===========  ==========================================================================
``transition``          (S, A, S)    P(s'|s,a)
``reward``              (S, A, S)    r(s,a,s'), any real number
``discount``            (S, A, S)    γ(s,a,s') in [0, 1); 0 on arrival in a terminal state
``terminal``            (S,)         arriving there ends the episode: no bootstrap, restart from ``initial``
``initial``             (S,)         the distribution of the first state, and of the state after a restart
======================  ===========  ==========================================================================

A terminal state is never the ``s`` of a sample (s, a, r, s'); its rows of ``transition`` are not read.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab import chains, checks
from gqlab.checks import FloatArray


class FiniteMDP(checks.Frozen):
    """A finite MDP with optional terminal states that restart the trajectory.

    Parameters
    ----------
    transition : (S, A, S) array
        ``P(s'|s,a)``; each row sums to 1.
    reward : (S, A, S) or (S, A) array
    discount : float or (S, A, S) array
        γ in [0, 1).
    terminal : (S,) bool array, optional
        Default: no state is terminal.
    initial : (S,) array, optional
        Needed where a state is terminal; without it a trajectory starts uniformly.

    Examples
    --------
    Two states; the only action moves to the other one, and leaving state 0 pays 1.

    >>> import gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0, 1]], [[1, 0]]], [[1], [0]], discount=0.9)
    >>> mdp
    FiniteMDP(n_states=2, n_actions=1)
    >>> mdp.stationary([[1], [1]])
    array([0.5, 0.5])
    """

    def __init__(
        self,
        transition: ArrayLike,
        reward: ArrayLike,
        discount: ArrayLike,
        terminal: ArrayLike | None = None,
        initial: ArrayLike | None = None,
    ) -> None:
        P = checks.array("transition", transition, (None, None, None))
        S, A = P.shape[:2]
        if P.shape[2] != S:
            raise ValueError(f"transition has shape {P.shape}, expected ({S}, {A}, {S})")
        self.terminal = checks.frozen(_terminal(terminal, S))
        checks.probabilities("transition", P, skip=self.terminal)
        if initial is not None:
            p0 = checks.array("initial", initial, (S,))
            checks.probabilities("initial", p0)
            bad = np.flatnonzero(self.terminal & (p0 > 0))
            if len(bad):
                raise ValueError(f"initial[{bad[0]}] is {p0[bad[0]]}, but state {bad[0]} is terminal")
            self.initial: FloatArray | None = checks.frozen(p0 / p0.sum())
        elif self.terminal.any():
            raise ValueError("initial is needed: some states are terminal and restart from it")
        else:
            self.initial = None
        P[self.terminal] = 0.0
        P[~self.terminal] /= P[~self.terminal].sum(axis=-1, keepdims=True)
        self.transition: FloatArray = checks.frozen(P)
        self.reward: FloatArray = checks.frozen(_reward(reward, S, A))
        self.discount: FloatArray = checks.frozen(_discount(discount, S, A, self.terminal))
        #: Where the states came from: ``state_ids[s]`` is the environment's own number of state s.
        self.state_ids: NDArray[np.intp] = checks.frozen(np.arange(S))

    @property
    def n_states(self) -> int:
        return self.transition.shape[0]

    @property
    def n_actions(self) -> int:
        return self.transition.shape[1]

    def __repr__(self) -> str:
        ends = f", n_terminal={int(self.terminal.sum())}" if self.terminal.any() else ""
        return f"FiniteMDP(n_states={self.n_states}, n_actions={self.n_actions}{ends})"

    @property
    def start(self) -> FloatArray:
        """The distribution of the first state, (S,), which is ``initial`` or else uniform."""
        return np.full(self.n_states, 1 / self.n_states) if self.initial is None else self.initial

    def chain(self, policy: FloatArray) -> FloatArray:
        """The state chain under ``policy`` (..., S, A), restarts included; the rows of terminal states restart."""
        K = np.einsum("...sa,sat->...st", policy, self.transition)
        if self.initial is not None:
            ends = K[..., self.terminal].sum(axis=-1)
            ends[..., self.terminal] = 1.0
            K[..., self.terminal] = 0.0
            K += ends[..., None] * self.initial
        return K

    def stationary(self, policy: ArrayLike, name: str = "policy") -> FloatArray:
        """μ (S,): the stationary distribution of the chain under ``policy`` (S, A); 0 on terminal states.

        A chain with several recurrent classes has no single μ: ``ValueError``, with the states of two of them.
        """
        pi = checks.array(name, policy, (self.n_states, self.n_actions))
        checks.probabilities(name, pi, skip=self.terminal)
        K = self.chain(pi)
        classes = chains.recurrent_classes(K > 0)
        if len(classes) > 1:
            listed = " and ".join(_listed(members) for members in classes[:2])
            raise ValueError(f"{name}: its chain has {len(classes)} recurrent classes, expected 1: states {listed}")
        mu = np.zeros(self.n_states)
        mu[classes[0]] = chains.stationary_distribution(K[np.ix_(classes[0], classes[0])])
        return mu

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
        table, initial = _toy_text(env_id, kwargs)
        P, r, ended = _read_table(table)
        keep, terminal = _reachable((P - ended).max(axis=1) > 0, ended.max(axis=1) > 0, initial > 0)
        inside = np.ix_(keep, np.arange(P.shape[1]), keep)
        scalar = checks.plain_array("discount", discount).ndim == 0
        gamma = discount if scalar else checks.array("discount", discount, P.shape)[inside]
        mdp = cls(P[inside], r[inside], gamma, terminal[keep], initial[keep])
        mdp.state_ids = checks.frozen(keep)
        return mdp


def _terminal(terminal: ArrayLike | None, S: int) -> NDArray[np.bool_]:
    out = np.zeros(S, dtype=bool) if terminal is None else checks.plain_array("terminal", terminal)
    if out.shape != (S,):
        raise ValueError(f"terminal has shape {out.shape}, expected ({S},)")
    if out.dtype != bool:
        raise ValueError(f"terminal has dtype {out.dtype}, expected bool")
    if out.all():
        raise ValueError("terminal is True everywhere: no state is left to act in")
    return out


def _reward(reward: ArrayLike, S: int, A: int) -> FloatArray:
    if checks.plain_array("reward", reward).ndim == 2:
        r = checks.array("reward", reward, (S, A))
        return np.repeat(r[:, :, None], S, axis=2)
    return checks.array("reward", reward, (S, A, S))


def _discount(discount: ArrayLike, S: int, A: int, terminal: NDArray[np.bool_]) -> FloatArray:
    if checks.plain_array("discount", discount).ndim == 0:
        gamma = np.full((S, A, S), checks.number("discount", discount, least=0, below=1))
    else:
        gamma = checks.array("discount", discount, (S, A, S))
        bad = np.argwhere((gamma < 0) | (gamma >= 1))
        if len(bad):
            raise ValueError(
                f"discount{checks.place(bad[0])} is {gamma[tuple(bad[0])]}, expected at least 0 and below 1"
            )
    gamma[:, :, terminal] = 0.0
    return gamma


def _listed(states: NDArray[np.intp], most: int = 5) -> str:
    return "{" + ", ".join(str(s) for s in states[:most]) + (", …" if len(states) > most else "") + "}"


def _toy_text(env_id: str, kwargs: dict[str, Any]) -> tuple[Any, FloatArray]:
    """The table P of an environment and the distribution of its first state."""
    import gymnasium

    if not isinstance(env_id, str):
        raise ValueError(
            f"env_id is {checks.shown(env_id)}, expected the name of an environment such as 'FrozenLake-v1'"
        )
    try:
        with warnings.catch_warnings(record=True) as caught:  # of an error only the last word counts
            warnings.simplefilter("always")
            env = gymnasium.make(env_id, **kwargs)
    except Exception as error:  # Gymnasium's own, and whatever an environment raises for a wrong keyword
        raise ValueError(_refused(env_id, kwargs, error)) from None
    for warning in caught:
        warnings.warn(warning.message, warning.category, stacklevel=3)
    try:
        table = getattr(env.unwrapped, "P", None)
        initial = getattr(env.unwrapped, "initial_state_distrib", None)
        fickle = getattr(env.unwrapped, "fickle_passenger", False)
    finally:
        env.close()
    if table is None or initial is None:
        raise ValueError(f"{env_id} has no table P with an initial distribution: only toy-text environments have one")
    if fickle:  # the destination changes in step(), by a coin that P does not know
        raise ValueError(f"fickle_passenger is {fickle!r}: the table P of {env_id} does not know of it, expected False")
    return table, np.asarray(initial, dtype=np.float64)


def _refused(env_id: str, kwargs: dict[str, Any], error: Exception) -> str:
    """Why there is no such environment, in one line."""
    if isinstance(error, KeyError):  # the message is the key alone
        for name, value in kwargs.items():
            if error.args == (value,):
                return f"{name} is {value!r}, which {env_id} does not have"
    given = f"env_id is {env_id!r}" + "".join(f", {name} is {checks.shown(value)}" for name, value in kwargs.items())
    kind = "" if type(error).__module__.startswith("gymnasium") else f"{type(error).__name__}: "
    return " ".join(f"{given}: {kind}{error}".split())


def _read_table(table: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """P, r and P(s', episode over | s, a) of a toy-text ``P[s][a] = [(probability, s', reward, terminated), …]``."""
    S, A = len(table), len(table[0])
    P, rewards, ended = np.zeros((3, S, A, S))
    for s in range(S):
        for a in range(A):
            for probability, s_next, reward, terminated in table[s][a]:
                P[s, a, s_next] += probability
                rewards[s, a, s_next] += probability * reward
                ended[s, a, s_next] += probability * terminated
    return P, np.divide(rewards, P, out=np.zeros_like(P), where=P > 0), ended


def _reachable(
    goes_on: NDArray[np.bool_], ends: NDArray[np.bool_], first: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The states that some policy reaches from ``first``, in order, and which of all states are terminal."""
    live = first
    while True:
        grown = live | goes_on[live].any(axis=0)
        if (grown == live).all():
            break
        live = grown
    terminal = np.asarray(ends[live].any(axis=0))
    mixed = np.flatnonzero(live & terminal)
    if len(mixed):
        raise ValueError(f"P: arriving in state {mixed[0]} ends the episode at some times only, which is not supported")
    return np.flatnonzero(live | terminal), terminal
