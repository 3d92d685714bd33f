"""What an agent keeps, in files that never change: a checkpoint writes what is new, and lists them.

A segment holds consecutive observations and samples that nothing will change any more. Numbers that count observations
are those of the whole life of the agent, so that a segment does not depend on what was dropped from memory.
The agent's own file lists the segments that it needs, with their digests, and holds the rest; it is replaced at once.
So a kill at any time leaves a file and all segments that it lists.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.engine.ranges import check_range
from gqlab.learn.agent.keeping import DROPPED_OBSERVATIONS, DROPPED_SAMPLES, LAST, OBSERVATIONS
from gqlab.learn.agent.live import Live
from gqlab.learn.agent.room import BY_OBSERVATION, BY_SAMPLE, part_of
from gqlab.support import checks
from gqlab.support.files import digest, one_line, read_arrays, write_arrays

#: Where segments are, beside the file that lists them.
FOLDER = "segments"

#: The arrays of samples that no update changes.
STAYS = tuple(path for path in BY_SAMPLE if path != "estimator.T")

Arrays = dict[str, NDArray[Any]]


class Segment(NamedTuple):
    """A file of observations and samples, by their numbers among all that there ever were."""

    name: str
    observations: tuple[int, int]
    samples: tuple[int, int]
    digest: str


def lasting(live: Live) -> tuple[int, int]:
    """How many observations, and samples, of the tables nothing will change any more: these from the first on.

    An observation can still change while its trajectory goes on from it, or its window is not complete.
    """
    n_envs, stream = len(live.status), live.stream
    oldest = np.where(stream.waiting[:n_envs] > 0, stream.oldest[:n_envs], live.here[:n_envs])
    return min(stream.marks.item(OBSERVATIONS), int(oldest.min())), stream.marks.item(LAST)


def rows_of(live: Live, A: int, observations: tuple[int, int], samples: tuple[int, int]) -> Arrays:
    """These rows of a packed agent's tables, as a file holds them: by absolute numbers."""
    marks, n = live.stream.marks, (len(live.stream.after), len(live.samples.row))
    dropped = marks.item(DROPPED_OBSERVATIONS), marks.item(DROPPED_SAMPLES)
    out: Arrays = {}
    for paths, (first, end), before, room in (
        (BY_OBSERVATION, observations, dropped[0], n[0]),
        (STAYS, samples, dropped[1], n[1]),
    ):
        for path in paths:
            array = part_of(live, path)
            if array is not None and len(array):
                width = len(array) // room
                out[path] = array[(first - before) * width : (end - before) * width]
    return _counted(out, dropped[0], A)


def _counted(arrays: Arrays, dropped: int, A: int) -> Arrays:
    """With observations counted from another one on."""
    shifts = {"samples.row": dropped * A, "samples.next_row": dropped * A, "stream.after": dropped}
    return {name: array.astype(np.int64) + shifts[name] if name in shifts else array for name, array in arrays.items()}


def write_segment(folder: Path, live: Live, A: int, known: list[Segment]) -> list[Segment]:
    """The segments of a packed agent, with one more for what has become lasting since the last of those ``known``."""
    marks = live.stream.marks
    dropped = marks.item(DROPPED_OBSERVATIONS), marks.item(DROPPED_SAMPLES)
    needed = [s for s in known if s.observations[1] > dropped[0] or s.samples[1] > dropped[1]]
    first = (known[-1].observations[1], known[-1].samples[1]) if known else (0, 0)
    first = max(first[0], dropped[0]), max(first[1], dropped[1])
    end = tuple(n + before for n, before in zip(lasting(live), dropped, strict=True))
    observations, samples = (first[0], max(first[0], end[0])), (first[1], max(first[1], end[1]))
    if observations[0] == observations[1] and samples[0] == samples[1]:
        return needed
    rows = rows_of(live, A, observations, samples)
    seal = digest(rows)
    made = Segment(f"{observations[0]}-{seal[:20]}.npz", observations, samples, seal)
    folder.mkdir(exist_ok=True)
    if not _is_whole(folder / made.name, seal):
        write_arrays(folder / made.name, rows)
    return [*needed, made]


def _is_whole(path: Path, seal: str) -> bool:
    try:
        return path.exists() and digest(read_arrays(path)) == seal
    except (OSError, ValueError):
        return False


def tail(live: Live, A: int, segments: list[Segment]) -> Arrays:
    """The rows of a packed agent that are in no segment."""
    marks = live.stream.marks
    dropped = marks.item(DROPPED_OBSERVATIONS), marks.item(DROPPED_SAMPLES)
    covered = (segments[-1].observations[1], segments[-1].samples[1]) if segments else dropped
    first = max(covered[0], dropped[0]), max(covered[1], dropped[1])
    n = len(live.stream.after) + dropped[0], len(live.samples.row) + dropped[1]
    return rows_of(live, A, (first[0], n[0]), (first[1], n[1]))


def read_segments(folder: Path, listed: Any) -> tuple[list[Segment], list[Arrays]]:
    """The segments that a file lists, and their arrays; ``ValueError`` where one is missing, damaged or another."""
    segments, arrays = [], []
    for entry in listed:
        segment = _segment(entry)
        try:
            found = read_arrays(folder / segment.name)
        except OSError:
            raise ValueError(f"the segment {segment.name} is missing from {folder}") from None
        except ValueError as error:
            raise ValueError(f"the segment {segment.name} is damaged: {one_line(error)}") from None
        if digest(found) != segment.digest:
            raise ValueError(f"the segment {segment.name} holds something else than what was written")
        segments.append(segment)
        arrays.append(found)
    return segments, arrays


def _segment(entry: Any) -> Segment:
    try:
        name, (first, end), (first_sample, last), seal = entry
        made = Segment(str(name), (int(first), int(end)), (int(first_sample), int(last)), str(seal))
        plain = Path(made.name).name == made.name
    except (TypeError, ValueError):
        plain = False
    if not plain:
        raise ValueError(f"the file lists {checks.shown(entry)}, which is no segment")
    return made


def joined(live: Live, A: int, parts: list[Arrays], segments: list[Segment]) -> Arrays:
    """The rows of segments and of the agent's own file behind one another, from the first that is needed on.

    ``live`` has the numbers of what was dropped; its tables have no rows yet.
    """
    marks, rooms = live.stream.marks, (len(live.stream.after), len(live.samples.row))
    dropped = marks.item(DROPPED_OBSERVATIONS), marks.item(DROPPED_SAMPLES)
    out: Arrays = {}
    for paths, which in ((BY_OBSERVATION, 0), (STAYS, 1)):
        firsts = [s.observations[0] if which == 0 else s.samples[0] for s in segments]
        for path in paths:
            own = part_of(live, path)
            if own is None or not len(own):
                continue
            missing = [k for k, part in enumerate(parts) if path not in part or part[path].ndim != 1]
            if missing:
                raise ValueError(f"the file holds nothing of {path}: it is damaged")
            width = len(own) // rooms[which]
            left_out = [max(dropped[which] - first, 0) * width for first in (*firsts, dropped[which])]
            out[path] = np.concatenate([part[path][n:] for part, n in zip(parts, left_out, strict=True)])
    counted = ("samples.row", "samples.next_row", "stream.after")
    for path in counted:
        check_range(path, out[path], (0, 2**48))
    rows = _counted(out, -dropped[0], A)
    for path in counted:
        rows[path] = _unsigned(path, rows[path])
    return rows


def _unsigned(path: str, array: NDArray[Any]) -> NDArray[Any]:
    """Numbers as the tables hold them; what an end of an episode leads to was counted from 0 too."""
    values = np.maximum(array, 0) if path == "stream.after" else array
    if len(values) and not (values.min() >= 0 and values.max() < 2**32):
        raise ValueError(f"the file holds {path} from {values.min()} to {values.max()}: it is damaged")
    return values.astype(np.uint32)
