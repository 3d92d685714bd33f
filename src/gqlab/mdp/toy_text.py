"""Reading Gymnasium's toy-text environments, whose table ``P`` is their MDP."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from gqlab.support import checks
from gqlab.support.checks import FloatArray


class TextTable(NamedTuple):
    """The transitions of an environment, in the order of (s, a, s'), each once."""

    n_states: int
    n_actions: int
    s: NDArray[np.int64]  # (n,)
    a: NDArray[np.int64]  # (n,)
    s_next: NDArray[np.int64]  # (n,)
    probability: FloatArray  # (n,)
    reward: FloatArray  # (n,)
    ended: FloatArray  # (n,)  P(s', episode over | s, a)


def environment_table(env_id: str, kwargs: dict[str, Any]) -> tuple[Any, FloatArray, tuple[int, int] | None]:
    """The table P of an environment, the distribution of its first state, and its grid where it has one."""
    import gymnasium

    if not isinstance(env_id, str):
        raise ValueError(
            f"env_id is {checks.shown(env_id)}, expected the name of an environment such as 'FrozenLake-v1'"
        )
    try:
        with warnings.catch_warnings(record=True) as caught:  # warnings are dropped: only the error counts
            warnings.simplefilter("always")
            env = gymnasium.make(env_id, **kwargs)
    except Exception as error:  # from Gymnasium, or whatever an environment raises for a wrong keyword
        raise ValueError(_refused(env_id, kwargs, error)) from None
    for warning in caught:
        warnings.warn(warning.message, warning.category, stacklevel=3)
    try:
        table = getattr(env.unwrapped, "P", None)
        initial = getattr(env.unwrapped, "initial_state_distrib", None)
        fickle = getattr(env.unwrapped, "fickle_passenger", False)
        shape = getattr(env.unwrapped, "shape", np.shape(getattr(env.unwrapped, "desc", ())))
    finally:
        env.close()
    if table is None or initial is None:
        raise ValueError(
            f"{env_id} has no table P with an initial distribution, as FrozenLake, CliffWalking and Taxi have: exact "
            "quantities need one; gqlab.collect and gqlab.Agent do not"
        )
    if fickle:  # the destination changes at random in step(), which P does not describe
        raise ValueError(
            f"fickle_passenger is {fickle!r}: the table P of {env_id} does not describe it, expected False"
        )
    is_grid = len(shape) == 2 and shape[0] * shape[1] == len(table)  # Taxi's map has fewer cells than states
    return table, np.asarray(initial, dtype=np.float64), (int(shape[0]), int(shape[1])) if is_grid else None


def _refused(env_id: str, kwargs: dict[str, Any], error: Exception) -> str:
    """Why there is no such environment, in one line."""
    if isinstance(error, KeyError):  # the message is the key alone
        for name, value in kwargs.items():
            if error.args == (value,):
                return f"{name} is {value!r}, which {env_id} does not have"
    given = f"env_id is {env_id!r}" + "".join(f", {name} is {checks.shown(value)}" for name, value in kwargs.items())
    kind = "" if type(error).__module__.startswith("gymnasium") else f"{type(error).__name__}: "
    return " ".join(f"{given}: {kind}{error}".split())


def read_table(table: Any) -> TextTable:
    """A toy-text ``P[s][a] = [(probability, s', reward, terminated), …]``."""
    S, A = len(table), len(table[0])
    rows = [(s, a, *entry) for s in range(S) for a in range(A) for entry in table[s][a]]
    s, a, p, s_next, r, ends = (np.array(column) for column in zip(*rows, strict=True))
    place, k = np.unique((s.astype(np.int64) * A + a) * S + s_next, return_inverse=True)
    # Summed in the order of the table.
    sums = [np.bincount(k, weights=p * weight, minlength=len(place)) for weight in (1.0, r, ends)]
    total, rewards, ended = np.array(sums, dtype=np.float64)
    reward = np.divide(rewards, total, out=np.zeros(len(place)), where=total > 0)
    s, a, s_next = np.unravel_index(place, (S, A, S))
    return TextTable(S, A, s, a, s_next, total, reward, ended)


def reachable(table: TextTable, first: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The states that some policy reaches from ``first``, in order, and which of all states are terminal."""
    S = table.n_states
    on = table.probability - table.ended > 0
    begins = np.flatnonzero(first)
    # One more node, from which the first states are reached.
    rows, columns = np.append(table.s[on], np.full(len(begins), S)), np.append(table.s_next[on], begins)
    graph = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(S + 1, S + 1))
    live = np.zeros(S + 1, dtype=bool)
    live[breadth_first_order(graph, S, return_predecessors=False)] = True
    live = live[:S]
    terminal = np.zeros(S, dtype=bool)
    terminal[table.s_next[(table.ended > 0) & live[table.s]]] = True
    mixed = np.flatnonzero(live & terminal)
    if len(mixed):
        raise ValueError(f"P: arriving in state {mixed[0]} ends the episode only sometimes, which is not supported")
    return np.flatnonzero(live | terminal), terminal
