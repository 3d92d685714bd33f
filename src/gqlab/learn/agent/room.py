"""Room for what an agent keeps: its arrays, made, made larger, and packed without what has left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.learn.agent.keeping import DROPPED_OBSERVATIONS, DROPPED_SAMPLES, FIRST, LAST, OBSERVATIONS, Keeping
from gqlab.learn.agent.live import Live
from gqlab.support import checks

#: The arrays with an entry, or a row, for each observation of the table, and for each sample: paths within the parts.
BY_OBSERVATION = (
    "places",
    "value",
    "taken",
    "stream.raw",
    "stream.reward",
    "stream.after",
    "stream.end",
    "stream.trajectory",
)
BY_SAMPLE = ("samples.row", "samples.next_row", "samples.reward", "samples.discount", "estimator.T")

#: Arrays that are full are made so many times as long; where a window moves on, what has left is dropped with each
#: quarter of it.
GROWTH, SLACK = 1.5, 1.25

#: Transitions that there is room for at first.
FIRST_ROOM = 64


def keeps(live: Live) -> bool:
    """Whether an agent keeps what it saw."""
    return isinstance(live.stream, Keeping)


def part_of(value: Any, path: str) -> Any:
    """What stands at a path within parts; None where there is nothing."""
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def with_parts(value: Any, parts: dict[str, Any]) -> Any:
    """The same with other arrays at some paths."""
    inner: dict[str, dict[str, Any]] = {}
    own: dict[str, Any] = {}
    for path, array in parts.items():
        name, _, rest = path.partition(".")
        if rest:
            inner.setdefault(name, {})[rest] = array
        else:
            own[name] = array
    return value._replace(**own, **{name: with_parts(getattr(value, name), below) for name, below in inner.items()})


def capacities(live: Live) -> tuple[int, int]:
    """The observations and the samples that there is room for."""
    return len(live.stream.after), len(live.samples.row)


def first_needed(live: Live, A: int, in_log: bool = False) -> int:
    """The first observation that is still of use: where nothing leaves, the first of all.

    ``in_log``: the rows of a log are being taken in, and go on from where they are.
    """
    marks = live.stream.marks
    if live.stream.size[0] == 0:
        return 0
    rows = live.samples.row[marks[FIRST] : marks[LAST]]
    waiting = live.stream.oldest[live.stream.waiting > 0]
    here = live.here if in_log else live.here[:-1]
    used = [marks.item(OBSERVATIONS), *here.tolist(), *waiting.tolist()]
    return min(*used, *([] if len(rows) == 0 else [int(rows.min()) // A]))


def moved(live: Live, A: int, rooms: tuple[int, int], first: int) -> Live:
    """The same with other rooms, without the observations before ``first`` and the samples that have left."""
    marks = live.stream.marks
    end, first_sample, last = marks.item(OBSERVATIONS), marks.item(FIRST), marks.item(LAST)
    before = capacities(live)
    parts: dict[str, NDArray[Any]] = {}
    for paths, room, kept, had in (
        (BY_OBSERVATION, rooms[0], slice(first, end), before[0]),
        (BY_SAMPLE, rooms[1], slice(first_sample, last), before[1]),
    ):
        for path in paths:
            old = part_of(live, path)
            if old is not None and len(old):
                parts[path] = _moved(old, len(old) // had, room, kept)
    n = last - first_sample
    for path in ("samples.row", "samples.next_row"):
        parts[path][:n] -= np.uint32(first * A)
    after, ends = parts["stream.after"], end - first
    after[:ends] -= np.where(after[:ends] >= first, np.uint32(first), after[:ends]).astype(np.uint32)
    made = with_parts(live, parts)
    features = {name: parts[name] for name in ("places", "value") if name in parts}
    made = made._replace(samples=made.samples._replace(features=made.samples.features._replace(**features)))
    made.stream.marks[:] = ends, 0, n, marks[DROPPED_OBSERVATIONS] + first, marks[DROPPED_SAMPLES] + first_sample
    made.stream.oldest[:] = np.where(made.stream.waiting > 0, made.stream.oldest - first, 0)
    made.here[:] = np.maximum(made.here - first, 0)
    return made


def _moved(old: NDArray[Any], width: int, room: int, kept: slice) -> NDArray[Any]:
    checks.memory("replay", f"of {room} transitions", room * width, old.itemsize)
    new = np.zeros(room * width, old.dtype)
    values = old[kept.start * width : kept.stop * width]
    new[: len(values)] = values
    return new


def packed(live: Live, A: int) -> Live:
    """A copy without anything that has left, and without room for more."""
    own = live._replace(
        here=live.here.copy(),
        stream=live.stream._replace(marks=live.stream.marks.copy(), oldest=live.stream.oldest.copy()),
    )
    marks, first = live.stream.marks, first_needed(live, A)
    used = marks.item(OBSERVATIONS) - first, marks.item(LAST) - marks.item(FIRST)
    return moved(own, A, (max(1, used[0]), max(1, used[1])), first)  # no array is empty that has rows


def with_room(live: Live, A: int, n_steps: int, in_log: bool = False) -> Live:
    """An agent's parts with room for so many more steps; the same ones where there is room already."""
    stream, marks = live.stream, live.stream.marks
    n_observations, n_samples = capacities(live)
    n_envs = len(live.status)
    more = 2 * (n_steps + 2 * n_envs), n_steps + n_envs + int(stream.waiting.sum())
    if marks[OBSERVATIONS] + more[0] <= n_observations and marks[LAST] + more[1] <= n_samples:
        return live
    first = first_needed(live, A, in_log)
    used = marks.item(OBSERVATIONS) - first, marks.item(LAST) - marks.item(FIRST)
    factor = GROWTH if stream.size[0] == 0 else SLACK
    rooms = max(used[0] + more[0], int(factor * used[0])), max(used[1] + more[1], int(factor * used[1]))
    if rooms[0] * A >= 2**32:
        raise ValueError(f"replay: the table of {rooms[0]:,} observations of {A} actions is too large: give it a size")
    return moved(live, A, rooms, first)
