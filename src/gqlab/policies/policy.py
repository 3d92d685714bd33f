"""One concept of a policy: observations (n, size) ↦ the probabilities of the actions (n, n_actions).

================================  =====================================================================================
what may be given as a policy     its probabilities
================================  =====================================================================================
an object with ``probabilities``  what the method answers: a LinearQ, an Agent (without exploration), one of your own
a function                        what it answers for observations (n, size), one a row
FixedPolicy, (S, A) array         the row of the table that the observation numbers: 0, 1, …, S − 1
another operator                  π(·; q) of the action values at hand; refused where there are none
================================  =====================================================================================

:func:`as_policy` makes a :class:`Policy` of each, which checks every answer; whatever takes a policy takes all of them.
Observations are rows of numbers, as :class:`gqlab.Transitions` holds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.operators import FixedPolicy, Operator
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import one_line

ActionNumbers = NDArray[np.int64]

#: What a message asks for.
EXPECTED = "a policy: a LinearQ, an Agent, a function of observations, a FixedPolicy or a table of probabilities"

#: And what else a function may answer with where it acts.
WHERE_IT_ACTS = ", or an action for each"


class Policy(ABC):
    """The probabilities of the actions at observations; its answers are checked already.

    Attributes
    ----------
    n_actions : int
    observation_size : int or None
        The numbers of an observation; None where any will do.
    """

    n_actions: int
    observation_size: int | None = None

    @abstractmethod
    def probabilities(self, observations: Any) -> FloatArray:
        """π(a|s) of observations (n, size): (n, n_actions)."""

    def best(self, observations: Any) -> ActionNumbers:
        """What it does without chance, (n,): the first of the most probable actions."""
        return self.probabilities(observations).argmax(axis=1)

    def draw(self, observations: Any, random: np.random.Generator) -> tuple[ActionNumbers, FloatArray | None]:
        """Actions drawn from it, (n,), and their probabilities, (n,), where they are known."""
        p = self.probabilities(observations)
        actions = drawn(p, random.random(len(p)))
        return actions, p[np.arange(len(p)), actions]

    def snapshot(self) -> Policy:
        """The policy as it is now: another object where this one still learns."""
        return self


def drawn(p: FloatArray, chance: FloatArray) -> ActionNumbers:
    """The actions that uniform numbers (n,) draw from probabilities (n, A); never one of probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gqlab.policies import drawn
    >>> drawn(np.array([[0.25, 0.75, 0.0]] * 3), np.array([0.0, 0.25, 1.0]))
    array([0, 1, 1])
    """
    last = p.shape[1] - 1 - (p[:, ::-1] > 0).argmax(axis=1)
    return np.minimum((np.cumsum(p, axis=1) <= chance[:, None]).sum(axis=1), last)


def as_policy(
    name: str,
    value: Any,
    n_actions: int,
    size: int | None = None,
    q: Callable[[FloatArray], FloatArray] | None = None,
    expected: str = EXPECTED,
) -> Policy:
    """A policy of whatever a user may give as one; ``ValueError`` in one line that names the argument.

    Parameters
    ----------
    name : str
        The argument, for messages.
    value : object
    n_actions : int
        The actions of the data, or of the environment.
    size : int, optional
        The numbers of an observation there.
    q : function, optional
        The action values at hand, observations (n, size) ↦ (n, n_actions): an operator makes a policy of them.
    expected : str
        What a message asks for.

    Examples
    --------
    >>> import numpy as np
    >>> from gqlab.policies import as_policy
    >>> as_policy("target", [[0.5, 0.5], [0.0, 1.0]], n_actions=2).probabilities(np.array([[1.0], [0.0]]))
    array([[0. , 1. ],
           [0.5, 0.5]])
    >>> as_policy("target", lambda rows: np.ones((len(rows), 2)), n_actions=2).probabilities(np.zeros((3, 4)))
    Traceback (most recent call last):
    gqlab.support.checks.RowError: target(observations)[0] sums to 2, expected 1
    """
    made = _policy(name, value, n_actions, q, expected)
    if made.n_actions != n_actions:
        raise ValueError(f"{name} is {checks.shown(value)}, a policy of {made.n_actions} actions, expected {n_actions}")
    if size is not None and made.observation_size not in (None, size):
        raise ValueError(
            f"{name} is {checks.shown(value)}, a policy for observations of {made.observation_size} numbers, "
            f"expected {size}"
        )
    return made


def _policy(name: str, value: Any, n_actions: int, q: Any, expected: str) -> Policy:
    if isinstance(value, Policy):
        return value.snapshot()
    if isinstance(value, FixedPolicy):
        return TablePolicy(name, value.table)
    if isinstance(value, Operator):
        if q is None:
            raise ValueError(
                f"{name} is {checks.shown(value)}, which makes a policy of action values; expected {expected}"
            )
        return Improved(name, value, q, n_actions)
    if not isinstance(value, type):
        if callable(getattr(value, "probabilities", None)):
            own = getattr(value, "n_actions", n_actions)
            return Function(f"{name}.probabilities", value.probabilities, own)
        if isinstance(value, list | tuple) or hasattr(value, "__array__"):
            table = checks.array(name, value, (None, None))
            checks.probabilities(name, table)
            return TablePolicy(name, table)
        if callable(value):
            return Function(name, value, n_actions)
    raise ValueError(f"{name} is {checks.shown(value)}, expected {expected}")


class TablePolicy(Policy):
    """A table over observations that are one whole number each."""

    observation_size = 1

    def __init__(self, name: str, table: FloatArray) -> None:
        self.name, self.table, self.n_actions = name, table, table.shape[1]

    def probabilities(self, observations: FloatArray) -> FloatArray:
        state, n = observations[:, 0], len(self.table)
        bad = np.flatnonzero((state != np.round(state)) | (state < 0) | (state >= n))
        if len(bad):
            raise ValueError(
                f"{self.name}: its table has the states 0, ..., {n - 1}, but observation {bad[0]} is {state[bad[0]]:g}"
            )
        return self.table[state.astype(np.intp)]


class Improved(Policy):
    """The policy that an operator makes of action values."""

    def __init__(self, name: str, operator: Operator, q: Callable[[FloatArray], FloatArray], n_actions: int) -> None:
        self.name, self.operator, self.q, self.n_actions = name, operator, q, n_actions

    def probabilities(self, observations: FloatArray) -> FloatArray:
        p = self.operator.policy(self.q(observations))
        checks.probabilities(f"{self.name}.policy(q)", p)
        return p


class Function(Policy):
    """A user's own function of observations. Where it acts, it may answer with actions (n,) instead."""

    def __init__(self, name: str, function: Callable[[FloatArray], Any], n_actions: int) -> None:
        self.name, self.function, self.n_actions = name, function, n_actions

    def probabilities(self, observations: FloatArray) -> FloatArray:
        return self._checked(observations, self._answer(observations), "")

    def best(self, observations: FloatArray) -> ActionNumbers:
        answer = self._answer(observations)
        if np.ndim(answer) == 1:
            return self._actions(observations, answer)
        return self._checked(observations, answer, WHERE_IT_ACTS).argmax(axis=1)

    def draw(self, observations: FloatArray, random: np.random.Generator) -> tuple[ActionNumbers, FloatArray | None]:
        answer = self._answer(observations)
        if np.ndim(answer) == 1:
            return self._actions(observations, answer), None
        p = self._checked(observations, answer, WHERE_IT_ACTS)
        actions = drawn(p, random.random(len(p)))
        return actions, p[np.arange(len(p)), actions]

    def _answer(self, observations: FloatArray) -> Any:
        try:
            return self.function(observations)
        except Exception as error:  # the user's own
            raise ValueError(
                f"{self.name} failed for observations of shape {observations.shape}: "
                f"{type(error).__name__}: {one_line(error)[:200]}"
            ) from error

    def _checked(self, observations: FloatArray, answer: Any, more: str) -> FloatArray:
        name, wanted = f"{self.name}(observations)", (len(observations), self.n_actions)
        p = checks.numbers(name, answer)
        if p.shape != wanted:
            raise ValueError(f"{name} has shape {p.shape}, expected probabilities {wanted}{more}")
        checks.finite(name, p)
        checks.probabilities(name, p)
        return p

    def _actions(self, observations: FloatArray, answer: Any) -> ActionNumbers:
        name, n = f"{self.name}(observations)", len(observations)
        if len(answer) != n:
            wanted = (n, self.n_actions)
            raise ValueError(f"{name} has shape ({len(answer)},), expected probabilities {wanted}{WHERE_IT_ACTS}")
        return np.array(
            [checks.integer(f"{name}[{k}]", a, least=0, below=self.n_actions) for k, a in enumerate(answer)]
        )
