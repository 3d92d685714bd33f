"""A fit in a file, after every pass: so that one that was stopped goes on from there, bit for bit."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.engine.ranges import check_parameters, check_part, check_range
from gqlab.learn.agent.core import arrays_of
from gqlab.learn.fit.passes import Passes
from gqlab.learn.linear_q import read_header
from gqlab.support.files import one_line, read_arrays, write_arrays

FORMAT = "gqlab.fit 1"

#: What is recorded at the beginning and after every pass, and the kind of its numbers.
RECORDED = {"updates": "i", "mspbe": "f", "gradient": "f", "max_q": "f", "q_bound": "f", "theta": "f"}


def write_checkpoint(path: Path, settings: dict[str, Any], passes: Passes, history: dict[str, Any]) -> None:
    """Where the passes stand, and what was recorded on the way."""
    header = {"format": FORMAT, "settings": settings}
    state = {f"state.{name}": array for name, array in arrays_of(_state(passes))}
    write_arrays(
        path, {"header": np.array(json.dumps(header)), **state, **{f"history.{k}": v for k, v in history.items()}}
    )


def read_checkpoint(path: Path, settings: dict[str, Any], passes: Passes) -> dict[str, Any] | None:
    """Bring the passes to where they stood, and return the history; None where there is no such file."""
    if not path.exists():
        return None
    try:
        arrays = read_arrays(path)
        found = read_header(arrays, FORMAT, path)["settings"]
        same = [name for name, value in json.loads(json.dumps(settings)).items() if found.get(name) == value]
        history = _restored(arrays, passes) if len(same) == len(settings) else {}
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"checkpoint: {path} is damaged ({one_line(error)}): remove it, to begin anew") from None
    for name in settings:
        if name not in same:
            raise ValueError(
                f"checkpoint: {path} is of a fit with {name} {found.get(name)}, not {settings[name]}; name another "
                "file, or remove this one (on the command line: --out, or --force)"
            )
    return history


def _restored(arrays: dict[str, Any], passes: Passes) -> dict[str, Any]:
    """Put what a file holds into the passes, and return its history; ``ValueError`` where no fit wrote it."""
    made = copy.deepcopy(_state(passes))
    for name, array in arrays_of(_state(passes)):
        saved = arrays.get(f"state.{name}")
        # A batch that grows has room for as many rows as there are passes: more of them need more.
        fits = saved is not None and saved.dtype == array.dtype and saved.ndim == array.ndim
        if saved is None or not fits or saved.shape[1:] != array.shape[1:] or len(saved) > len(array):
            raise ValueError(f"it holds no {name} that fits this fit")
        array[: len(saved)] = saved
    for part, as_made, name in zip(_state(passes), made, ("point", "estimator", "runs"), strict=True):
        check_parameters(part, as_made, name)
        check_part(part, passes.sizes, name, finite=not passes.diverged)
    history = {name.removeprefix("history."): array for name, array in arrays.items() if name.startswith("history.")}
    kinds = {name: array.dtype.kind for name, array in history.items()}
    if kinds != RECORDED or len({len(history[name]) for name in RECORDED if name != "theta"}) != 1:
        raise ValueError(
            f"its history has {', '.join(kinds) or 'nothing'}, expected {', '.join(RECORDED)} of every pass"
        )
    check_range("history.theta", history["theta"], None)
    check_range("history.updates", history["updates"], (0, 2**48))
    if history["updates"][-1] != passes.updates:
        raise ValueError(f"it stands after {passes.updates} updates, its history after {history['updates'][-1]}")
    return history


def _state(passes: Passes) -> tuple[Any, ...]:
    return passes.point, passes.estimator, passes.task.runs
