"""Which rows of a log continue the row before, and which action comes next: what traces and Sarsa need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.learn.fit.log_table import Encoded
from gqlab.support.checks import FloatArray

#: The columns of a chunk that a block has too.
COLUMNS = ("observations", "actions", "rewards", "next_observations", "terminated", "episode", "probability")

#: Where the next action is not known.
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class LoggedBlock:
    """Consecutive transitions, like a chunk, and how they follow each other."""

    observations: NDArray[Any]
    actions: NDArray[np.int64]
    rewards: NDArray[Any]
    next_observations: NDArray[Any]
    terminated: NDArray[np.bool_]
    episode: NDArray[np.int64]
    probability: NDArray[Any] | None
    begins: NDArray[np.uint8]  # 1: the row does not go on from the one before
    next_action: NDArray[np.int64]  # UNKNOWN where the next row does not go on from it; 0 where it terminated

    def __len__(self) -> int:
        return len(self.actions)

    def pick(self, which: Any) -> LoggedBlock:
        """Some of the rows."""
        columns: dict[str, Any] = {}
        for field in fields(self):
            column = getattr(self, field.name)
            columns[field.name] = None if column is None else column[which]
        return LoggedBlock(**columns)


def together(blocks: list[LoggedBlock]) -> LoggedBlock:
    """Blocks joined, one after another."""
    columns: dict[str, Any] = {
        field.name: None
        if getattr(blocks[0], field.name) is None
        else np.concatenate([getattr(block, field.name) for block in blocks])
        for field in fields(LoggedBlock)
    }
    return LoggedBlock(**columns)


def blocks_of(chunks: Iterable[Any]) -> Iterator[LoggedBlock]:
    """The transitions of chunks; the last row of each waits for the first of the next."""
    waiting: dict[str, Any] | None = None
    begins = np.ones(1, dtype=np.uint8)
    for chunk in chunks:
        columns = {name: getattr(chunk, name) for name in COLUMNS}
        columns = {name: None if column is None else np.asarray(column) for name, column in columns.items()}
        if waiting is not None:
            columns = {name: _joined(waiting[name], column) for name, column in columns.items()}
        goes_on = _goes_on(columns)
        block = _block(columns, np.append(begins, ~goes_on), goes_on)
        yield block.pick(slice(None, -1))
        waiting = {name: None if column is None else column[-1:] for name, column in columns.items()}
        begins = block.begins[-1:]
    if waiting is not None:
        yield _block(waiting, begins, np.zeros(0, dtype=bool))


def _goes_on(columns: dict[str, Any]) -> NDArray[np.bool_]:
    """For every row but the first: whether it continues the one before."""
    same = columns["episode"][1:] == columns["episode"][:-1]
    follows = (columns["next_observations"][:-1] == columns["observations"][1:]).all(axis=1)
    going: NDArray[np.bool_] = same & follows & ~columns["terminated"][:-1]
    return going


def _block(columns: dict[str, Any], begins: Any, goes_on: NDArray[np.bool_]) -> LoggedBlock:
    next_action = np.full(len(columns["actions"]), UNKNOWN)
    next_action[:-1][goes_on] = columns["actions"][1:][goes_on]
    next_action[columns["terminated"]] = 0  # nothing is bootstrapped from there
    return LoggedBlock(**columns, begins=begins.astype(np.uint8), next_action=next_action)


def _joined(first: Any, second: Any) -> Any:
    return None if first is None or second is None else np.concatenate([first, second])


def with_next_actions(log: Encoded, next_action: NDArray[np.int64], n_actions: int) -> Encoded:
    """The log with the policy that takes each row's next action: the one that Sarsa evaluates."""
    policy: FloatArray = np.zeros((len(log.features), n_actions))
    policy[:, 0] = 1.0
    policy[log.next_observation] = np.eye(n_actions)[next_action]
    return log._replace(policy=policy)
