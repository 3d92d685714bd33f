"""Which column of a table is what: the names that people use, and those that a user gives.

A *role* is what a column means to gqlab: observation, action, reward, next_observation, terminated, truncated, done,
last, episode, probability, time. ``done`` says that an episode ended, not why. ``last`` is RLDS's ``is_last``: such a
row holds the last observation of an episode and no action, and ``is_terminal`` in it says whether the episode
terminated there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gqlab.data.wording import mapped, mapping_of
from gqlab.support import checks

#: By role: the names of D4RL and d3rlpy, Minari and Gymnasium, SCOPE-RL and OBP, LeRobot, RLDS, and gqlab's own.
NAMES: dict[str, tuple[str, ...]] = {
    "observation": ("observation", "observations", "obs", "state", "states", "observation.state"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards", "next.reward"),
    "next_observation": (
        "next_observation", "next_observations", "next_obs", "next_state", "next_states", "next.observation.state",
    ),
    "terminated": ("terminated", "terminal", "terminals", "termination", "terminations", "is_terminal"),
    "truncated": ("truncated", "truncation", "truncations", "timeout", "timeouts"),
    "done": ("done", "dones", "next.done"),
    "last": ("is_last",),
    "episode": ("episode", "episodes", "episode_id", "episode_index", "episode_idx"),
    "probability": ("probability", "probabilities", "pscore", "propensity", "action_probability",
    "behavior_probability"),
    "time": (),  # only where a user says so: logs have times of many kinds
}  # fmt: skip

#: Several columns, one for each number of an observation: obs_0, obs_1, …
NUMBERED = {
    "observation": re.compile(r"(?:observations?|obs|states?)[._](\d+)"),
    "next_observation": re.compile(r"next[._](?:observations?|obs|states?)[._](\d+)"),
}

REQUIRED = ("observation", "action", "reward")

#: Columns that a message lists.
LISTED = 12

#: By role: the columns that hold it.
ColumnPlan = dict[str, tuple[str, ...]]


def resolve(available: Sequence[str], columns: Mapping[str, Any] | None) -> ColumnPlan:
    """The columns of each role: those that ``columns`` names, else those with a usual name.

    >>> resolve(["obs_0", "obs_1", "actions", "rewards", "dones", "day"], {"episode": "day"})
    {'episode': ('day',), 'observation': ('obs_0', 'obs_1'), 'action': ('actions',), 'reward': ('rewards',),
     'done': ('dones',)}
    """
    twice = sorted({name for name in available if list(available).count(name) > 1})
    if twice:
        raise ValueError(f"columns: there are several of the name {checks.shown(twice[0])}")
    plan = _given(available, columns)
    used = {name for names in plan.values() for name in names}
    free = [name for name in available if name not in used]
    for role in NAMES:
        if role not in plan:
            found = _named(free, role) or _numbered(free, role)
            if found:
                plan[role] = found
    for role in REQUIRED:
        if role not in plan:
            raise ValueError(
                f"columns: none is known to be the {role}; there are {_list(available)}; "
                f"say which it is: {mapped(role)}"
            )
    _check_ends(plan, columns or {})
    return plan


def _given(available: Sequence[str], columns: Mapping[str, Any] | None) -> ColumnPlan:
    """What the user says, checked against the columns that there are."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise ValueError(f"columns is {checks.shown(columns)}, expected a dictionary such as {{'observation': 'x'}}")
    plan: ColumnPlan = {}
    for role, given in columns.items():
        checks.one_of("columns, a key", role, NAMES)
        names = (given,) if isinstance(given, str) else given
        several = isinstance(names, list | tuple) and len(names) > 0 and all(isinstance(n, str) for n in names)
        if not several or (len(names) > 1 and role not in NUMBERED):
            raise ValueError(f"{mapping_of(role)} is {checks.shown(given)}, expected the name of a column")
        for name in names:
            if name not in available:
                raise ValueError(f"{mapping_of(role)}: there is no column {name!r}; there are {_list(available)}")
        plan[role] = tuple(names)
    return plan


def _named(free: Sequence[str], role: str) -> tuple[str, ...]:
    found = tuple(name for name in free if name in NAMES[role])
    if len(found) > 1:
        raise ValueError(
            f"columns: {_list(found)} may all be the {role}; say which it is: {mapped(role, repr(found[0]))}"
        )
    return found


def _numbered(free: Sequence[str], role: str) -> tuple[str, ...]:
    """obs_0, obs_1, … in the order of their numbers."""
    if role not in NUMBERED:
        return ()
    matches = [(name, NUMBERED[role].fullmatch(name)) for name in free]
    found = sorted((int(match[1]), name) for name, match in matches if match)
    numbers = [number for number, _ in found]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise ValueError(f"columns: the numbers of {_list([name for _, name in found])} are not consecutive")
    return tuple(name for _, name in found)


def _check_ends(plan: ColumnPlan, columns: Mapping[str, Any]) -> None:
    """``done`` beside ``terminal`` is ambiguous: libraries differ in which of the two means a time limit."""
    if "done" in plan and "terminated" in plan and not {"done", "terminated"} <= set(columns):
        if "terminated" in columns or "truncated" in columns:
            del plan["done"]  # the user has said what is what
            return
        done, terminated = plan["done"][0], plan["terminated"][0]
        raise ValueError(
            f"columns: there are both {done!r} and {terminated!r}, and libraries differ in what they mean; say which "
            f"one is true where the environment ended the episode: {mapped('terminated')}"
        )


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(repr(str(name)) for name in names[:LISTED]) + more if names else "no columns"
