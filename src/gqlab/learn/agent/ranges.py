"""What whole numbers in an agent's file may be: compiled code uses them as they are, as indices above all.

Parameters of parts must be those of the agent that the file is loaded into. Every other array of whole numbers has a
range here, by the end of its path; one that has none is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.estimators.svrg import EMPTY
from gqlab.learn.agent.keeping import EXPLORED, FIRST, LAST, OBSERVATIONS, Keeping
from gqlab.learn.agent.live import COLLECTED, Live
from gqlab.rules.dispatch import is_parameter

#: Counts are no larger: no agent gets so far.
MOST = 2**48


class KnownSizes:
    """The sizes that ranges depend on."""

    def __init__(self, live: Live, K: int, A: int) -> None:
        self.live, self.K, self.A, self.d = live, K, A, A * K
        features = live.samples.features
        table = features.places if hasattr(features, "places") else features.value
        self.n_observations = len(table) // int(features.n_active[0])
        self.n_samples, self.n_envs = len(live.samples.row), len(live.status)


#: By the end of a path: the number behind the largest that may be.
BELOW: dict[str, Callable[[KnownSizes], int]] = {
    "places": lambda known: known.K,
    "samples.row": lambda known: known.n_observations * known.A,
    "samples.next_row": lambda known: known.n_observations * known.A - known.A + 1,
    "operator.action": lambda known: known.A,
    "here": lambda known: known.n_observations,
    "taken": lambda known: known.A,
    "action": lambda known: known.A,
    "status": lambda known: 4,
    "terminated": lambda known: 2,
    "counts": lambda known: MOST,
    "stop": lambda known: 2,
    # Keeping
    "stream.after": lambda known: known.n_observations,
    "stream.end": lambda known: 2 * EXPLORED,
    "stream.trajectory": lambda known: known.n_envs + 1,
    "stream.oldest": lambda known: known.n_observations,
    "stream.waiting": lambda known: int(known.live.stream.n_step[0]) + 1,
    "stream.marks": lambda known: MOST,
    # Traces
    "estimator.where": lambda known: known.d,
    "estimator.place": lambda known: known.d + 1,
    "estimator.n": lambda known: known.d + 1,
    "estimator.fresh": lambda known: 2,
    # SVRG
    "estimator.since": lambda known: 2**63,
    "estimator.batch": lambda known: known.n_samples,
    "estimator.x": lambda known: known.n_samples,
    "estimator.n_batch": lambda known: len(known.live.estimator.batch) + 1,
    "estimator.n_visited": lambda known: len(known.live.estimator.visited) + 1,
    "estimator.visited": lambda known: len(known.live.estimator.slot),
    "estimator.slot": lambda known: EMPTY + 1,
}


def check_numbers(live: Live, made: Live, K: int, A: int) -> None:
    """``ValueError`` where the whole numbers of an agent that was read are none that it can have had.

    ``made`` is the same agent as it was made, before anything was read into it.
    """
    known = KnownSizes(live, K, A)
    parameters = dict(_parameters(made))
    for name, array in _arrays(live):
        if array.dtype.kind not in "iub":
            continue
        if name in parameters:
            if not np.array_equal(array, parameters[name]):
                raise ValueError(
                    f"the file holds {array} as {name}, expected {parameters[name]}: it is of another agent"
                )
        else:
            _check(name, array, known)
    _check_parts(live)


def _check(name: str, array: NDArray[Any], known: KnownSizes) -> None:
    ends = [end for end in BELOW if f".{name}".endswith(f".{end}")]
    own = type(known.live.estimator).__module__.partition(".")[0] == "gqlab"
    if name.startswith("estimator.") and not own:
        return  # whoever wrote an estimator knows what its numbers may be
    if not ends:
        raise ValueError(f"the file holds {name}, whole numbers of which nothing is known")
    below = BELOW[max(ends, key=len)](known)
    bad = np.flatnonzero((array < 0) | (array > below - 1))
    if len(bad):
        raise ValueError(f"the file holds {array[bad[0]]} as {name}[{bad[0]}], expected 0 … {below - 1}: it is damaged")


def _check_parts(live: Live) -> None:
    """What several numbers together must be."""
    stream, estimator = live.stream, live.estimator
    if isinstance(stream, Keeping):
        marks, n = stream.marks, (len(stream.after), len(live.samples.row))
        if not (marks[OBSERVATIONS] <= n[0] and marks[FIRST] <= marks[LAST] <= n[1]):
            raise ValueError(f"the file holds marks {marks.tolist()} of a table of {n}: it is damaged")
    elif hasattr(stream, "n") and live.counts[COLLECTED] >= stream.n[0]:
        raise ValueError(f"the file holds {live.counts[COLLECTED]} waiting transitions of {stream.n[0]}: it is damaged")
    if hasattr(estimator, "where"):
        _check_traces(estimator)
    if hasattr(estimator, "slot") and not (estimator.slot[estimator.slot != EMPTY] < len(estimator.V)).all():
        raise ValueError("the file holds a slot that there is not: it is damaged")


def _check_traces(traces: Any) -> None:
    """``place`` and ``where`` are each other's inverse."""
    for k, (where, place) in enumerate(zip(*_rows(traces), strict=True)):
        n = int(traces.n[k])
        if np.count_nonzero(place) != n or not np.array_equal(place[where[:n]], np.arange(1, n + 1)):
            raise ValueError(f"the file holds a trace {k} whose list is not that of its entries: it is damaged")


def _rows(traces: Any) -> tuple[Any, Any]:
    n = len(traces.n)
    return traces.where.reshape(n, -1), traces.place.reshape(n, -1)


def _arrays(value: Any, name: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays of all parts but the encoder's, by their paths."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, tuple):
        for field, inner in zip(getattr(value, "_fields", range(len(value))), value, strict=True):
            path = f"{name}.{field}" if name else str(field)
            if path != "encoder":
                yield from _arrays(inner, path)


def _parameters(value: Any, name: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """The parameters of all parts, by their paths."""
    for field in getattr(value, "_fields", ()):
        path = f"{name}.{field}" if name else str(field)
        if path == "encoder":
            continue
        inner = getattr(value, field)
        if isinstance(inner, np.ndarray) and is_parameter(type(value), field):
            yield path, inner.copy()
        yield from _parameters(inner, path)
