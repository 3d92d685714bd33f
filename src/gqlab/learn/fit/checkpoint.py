"""A fit in a file, after every pass: so that one that was stopped goes on from there, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.learn.agent.core import arrays_of
from gqlab.learn.fit.passes import Passes
from gqlab.learn.linear_q import read_header
from gqlab.support.files import read_arrays, write_arrays

FORMAT = "gqlab.fit 1"


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
    arrays = read_arrays(path)
    found = read_header(arrays, FORMAT, path)["settings"]
    for name, value in json.loads(json.dumps(settings)).items():
        if found.get(name) != value:
            raise ValueError(
                f"checkpoint: {path} is of a fit with {name} {found.get(name)}, not {value}; name another file, or "
                "remove this one (on the command line: --out, or --force)"
            )
    for name, array in arrays_of(_state(passes)):
        saved = arrays.get(f"state.{name}")
        # A batch that grows has room for as many rows as there are passes: more of them need more.
        fits = saved is not None and saved.dtype == array.dtype and saved.ndim == array.ndim
        if saved is None or not fits or saved.shape[1:] != array.shape[1:] or len(saved) > len(array):
            raise ValueError(f"checkpoint: {path} holds no {name} that fits this fit")
        array[: len(saved)] = saved
    return {name.removeprefix("history."): array for name, array in arrays.items() if name.startswith("history.")}


def _state(passes: Passes) -> tuple[Any, ...]:
    return passes.point, passes.estimator, passes.task.runs
