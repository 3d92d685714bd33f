"""The compiled parts of an agent as arrays for a file, and back, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gqlab.engine.ranges import check_parameters, check_part
from gqlab.learn.agent.core import arrays_of
from gqlab.learn.agent.keeping import N_MARKS
from gqlab.learn.agent.live import DIVERGED, NOT_FINITE, Live
from gqlab.learn.agent.room import BY_OBSERVATION, keeps, moved, packed
from gqlab.learn.agent.segments import STAYS, Arrays, Segment, joined, read_segments, tail, write_segment

if TYPE_CHECKING:
    from gqlab.learn.agent.agent import Agent

#: The arrays that stand in the tables of what is kept.
KEPT = (*BY_OBSERVATION, *STAYS)

Own = Iterator[tuple[str, NDArray[Any]]]


def saved_parts(agent: Agent, folder: Path | None) -> tuple[Own, Arrays, list[Segment]]:
    """An agent's own arrays, its tables, and the segments in ``folder`` that hold the beginning of these."""
    live = agent._live
    if not keeps(live):
        return _own_arrays(live), {}, []
    live = packed(live, agent.n_actions)
    segments: list[Segment] = []
    if folder is not None:
        segments = write_segment(folder, live, agent.n_actions, agent._segments.get(folder, []))
        agent._segments[folder] = segments
    return _own_arrays(live), tail(live, agent.n_actions, segments), segments


def restore_parts(agent: Agent, arrays: Mapping[str, NDArray[Any]], header: Any, folder: Path) -> None:
    """Put what a file holds into an agent that was made like the one that wrote it; ``ValueError`` if it cannot be."""
    made = agent._live
    rows: Arrays = {}
    live = _copied(made)
    if keeps(live):
        live, rows, agent._segments[folder] = _with_tables(live, agent.n_actions, arrays, header["segments"], folder)
    for name, array in _own_arrays(live):
        _restore(array, arrays.get(f"live.{name}"), name)
    for path, values in rows.items():
        _restore(dict(arrays_of(live))[path], values, path)
    check_parameters(live, made)
    # The encoder is not the file's. A number that has left the finite ones ends learning, and may stay anywhere.
    check_part(live._replace(encoder=()), live.sizes(agent.n_actions), finite=not _has_ended(live))
    agent._take(live)


def _has_ended(live: Live) -> bool:
    return bool(live.counts[DIVERGED] or live.counts[NOT_FINITE])


def _with_tables(
    live: Live, A: int, arrays: Mapping[str, NDArray[Any]], listed: Any, folder: Path
) -> tuple[Live, Arrays, list[Segment]]:
    """The same with tables as large as those of a file, and what these hold."""
    marks = arrays.get("live.stream.marks")
    if (
        marks is None
        or marks.shape != (N_MARKS,)
        or marks.dtype != np.int64
        or not (0 <= marks.min() <= marks.max() < 2**48)
    ):
        raise ValueError(f"the file holds {marks} as stream.marks, expected {N_MARKS} counts: it is damaged")
    segments, parts = read_segments(folder, listed)
    live.stream.marks[:] = marks
    own = {path: array for path in KEPT if (array := arrays.get(f"kept.{path}")) is not None}
    rows = joined(live, A, [*parts, own], segments)
    live.stream.marks[:] = 0
    rooms = max(1, len(rows["taken"])), max(1, len(rows["samples.row"]))
    return moved(live, A, rooms, 0), rows, segments


def _copied(value: Any) -> Any:
    """Parts with arrays of their own; one that stands in two places stays one."""
    copies = {id(array): array.copy() for _, array in arrays_of(value)}
    return _replaced(value, copies)


def _replaced(value: Any, copies: dict[int, Any]) -> Any:
    if isinstance(value, np.ndarray):
        return copies[id(value)]
    if not isinstance(value, tuple):
        return value
    inner = [_replaced(each, copies) for each in value]
    return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)


def _own_arrays(live: Live) -> Own:
    """Its arrays but the encoder's and those of what is kept, each once."""
    kept = dict.fromkeys(KEPT) if keeps(live) else {}
    seen: set[int] = {id(array) for name, array in arrays_of(live) if name in kept}
    for name, array in arrays_of(live):
        if not name.startswith("encoder.") and id(array) not in seen:
            seen.add(id(array))
            yield name, array


def _restore(array: NDArray[Any], saved: NDArray[Any] | None, name: str) -> None:
    if saved is None or (saved.shape, saved.dtype) != (array.shape, array.dtype):
        found = "nothing" if saved is None else f"{saved.dtype}{saved.shape}"
        raise ValueError(f"the file holds {found} of {name}, expected {array.dtype}{array.shape}: env is another one")
    array[...] = saved
