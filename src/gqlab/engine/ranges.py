"""What the numbers of parts may be: checked wherever a file, or a caller, brings them.

Compiled code uses whole numbers as they are, as indices above all. A part says what each of its arrays of whole numbers
may hold: beside their sizes, where it declares them (``near`` and ``far``: ``within``), or else by ``ranges(n)``. What
several of them must be together, ``fault(n)`` says. All other numbers must be finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import Algorithm
from gqlab.engine.cells import Resumable
from gqlab.engine.memory import declared
from gqlab.measure.watch import Unwatched, Watching
from gqlab.rules.dispatch import is_parameter, parameters
from gqlab.rules.memory import DOUBLE, NUMBER, Array, Sizes
from gqlab.support import checks

#: The least number that may be in an array, and the one behind the largest; None: all that is finite.
Range = tuple[float, float] | None

#: The sizes of its problem that a result says it is of.
SIZES = ("A", "states", "samples")


def check_range(name: str, values: NDArray[Any], within: Range, finite: bool = True) -> None:
    """``ValueError`` where a number of an array is none that can be in it; ``finite=False``: whole numbers alone."""
    if values.dtype.kind not in "iubf":
        raise ValueError(f"{name} holds {values.dtype}, expected numbers: it is damaged")
    if within is None and values.dtype.kind in "iu":
        raise ValueError(f"{name} holds whole numbers, and its part does not say what they may be")
    if values.dtype.kind == "f":
        bad, expected = ~np.isfinite(values) if finite and within is None else np.zeros(0), "a finite number"
    else:
        least, below = (0, 2) if within is None else within
        bad = (values < least) | (values > below - 1)
        expected = f"{least} … {below - 1}"
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        raise ValueError(f"{name}[{k}] is {values.reshape(-1)[k]}, expected {expected}: it is damaged")


def ranges_of(part: Any, n: Sizes) -> dict[str, Range]:
    """What each array of a part may hold, where the part says so."""
    if hasattr(part, "ranges"):
        return dict(part.ranges(n))
    return {name: array.within for name, array in declared(type(part), n).items()} if hasattr(part, "memory") else {}


def check_part(part: Any, n: Sizes, name: str = "", finite: bool = True) -> None:
    """``ValueError`` where a number of a part, or of a part within it, is none that it can have had.

    Parameters are not looked at: they are those of the call.
    """
    ranges = ranges_of(part, n)
    for field in part._fields:
        value, path = getattr(part, field), f"{name}.{field}" if name else field
        if isinstance(value, np.ndarray) and not is_parameter(type(part), field):
            check_range(path, value, ranges.get(field), finite)
        for inner, further in _parts(value, path):
            check_part(inner, n, further, finite)
    fault = part.fault(n) if hasattr(part, "fault") else ""
    if fault:
        raise ValueError(f"{name or type(part).__name__}: {fault}: it is damaged")


def _parts(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    if hasattr(value, "_fields"):
        yield value, path
    elif isinstance(value, tuple):
        for k, inner in enumerate(value):
            yield from _parts(inner, f"{path}.{k}")


def check_parameters(value: Any, made: Any, name: str = "") -> None:
    """``ValueError`` where a parameter of a part is another than that of the agent that a file is read into."""
    for field in getattr(value, "_fields", ()):
        inner, path = getattr(value, field), f"{name}.{field}" if name else field
        expected = getattr(made, field)
        if is_parameter(type(value), field) and not np.array_equal(inner, expected):
            raise ValueError(f"the file holds {inner} as {path}, expected {expected}: it is of another agent")
        check_parameters(inner, expected, path)


# --- What runs keep -------------------------------------------------------------------------------------------------


def kept_arrays(estimator: Any, n: Sizes, watch: Any) -> dict[str, Array]:
    """The arrays that an estimator and a watch keep from call to call, by their names in a result's memory."""
    both = declared(estimator, n) | {f"watch.{name}": array for name, array in declared(watch, n).items()}
    return {name: array for name, array in both.items() if array.kept}


def check_kept(result: Resumable, estimator: Any, n: Sizes, watch: Any) -> None:
    """``ValueError`` where what a result keeps is nothing that its runs can have kept."""
    arrays, n_runs = kept_arrays(estimator, n, watch), len(result.theta)
    goes_on = result.diverged_at < 0
    for name, array in arrays.items():
        values, dtype = result.memory.get(name), np.dtype(float if array.kind in (NUMBER, DOUBLE) else np.int64)
        if values is None or (values.shape, values.dtype) != ((n_runs, array.size), dtype):
            found = "nothing" if values is None else f"{values.dtype}{values.shape}"
            raise ValueError(f"resume: that result keeps {found} of {name}, expected {dtype}{n_runs, array.size}")
        check_range(f"memory {name}", values[goes_on] if dtype.kind == "f" else values, array.within)
    if hasattr(estimator, "fault") and any("." not in name for name in arrays):
        for k in range(n_runs):
            run = SimpleNamespace(**{name: result.memory[name][k] for name in arrays if "." not in name})
            if fault := estimator.fault(run, n):
                raise ValueError(f"memory of run {k}: {fault}: it is damaged")


def check_saved(result: Any, algorithm: Algorithm, sizes: dict[str, Any]) -> None:
    """The same for a result whose problem is not known: ``sizes`` are those that it says it is of."""
    A, states, samples = (checks.integer(name, sizes[name], least=1, below=2**32) for name in SIZES)
    most = {name: getattr(algorithm, name) for name in parameters(algorithm.estimator)}
    n = Sizes(result.theta.shape[-1], A, states, samples, int(result.updates[-1]), most)
    check_range("state", result.state, (0, states))
    check_kept(result, algorithm.estimator, n, Watching if result.watched else Unwatched)
