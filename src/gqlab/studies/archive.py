"""Finished calls on disk: one sealed file for each, named by its key, whole or not there.

    data/4f09….npz      what a call returned, and the settings that its key stands for
    times/4f09….json    what it measured of time

Times are kept apart: all other files of a study are, byte for byte, those of whoever runs the same design.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.studies.keys import Call
from gqlab.support.checks import shown
from gqlab.support.files import check_writable, clear_parts, one_line, read_arrays, write_arrays, write_whole

#: Of a value: what was measured of time.
TIMES = "times"

#: Stands in the place of an array, with its number.
ARRAY = "__array__"


@dataclass(frozen=True)
class Archive:
    """The finished calls of a folder."""

    folder: Path
    token: str = ""  # a file that is there as long as the driver works: who sees it sees this very folder

    def path(self, key: str) -> Path:
        """The file of a call."""
        return self.folder / "data" / f"{key}.npz"

    def times_path(self, key: str) -> Path:
        """The file of its times."""
        return self.folder / TIMES / f"{key}.json"

    def prepare(self) -> None:
        """Make the folders; ``ValueError`` where nothing can be written. What killed processes left is removed."""
        for folder in (self.folder, self.folder / "data", self.folder / TIMES):
            check_writable(folder)
            clear_parts(folder)

    def is_seen(self) -> bool:
        """Whether this is the driver's folder: another machine may have one at the same place."""
        return self.token != "" and (self.folder / self.token).is_file()

    def save(self, key: str, settings: Mapping[str, Any], value: Mapping[str, Any]) -> None:
        """Keep a value; the files appear whole, and the value last."""
        arrays: dict[str, NDArray[Any]] = {}
        rest = {name: _packed(name, part, arrays) for name, part in value.items() if name != TIMES}
        times = json.dumps(_packed(TIMES, value.get(TIMES, {}), {}))
        write_whole(self.times_path(key), lambda file: file.write(times.encode()))
        header = np.array(json.dumps({"settings": settings, "value": rest}))
        write_arrays(self.path(key), {"header": header, **arrays})

    def load(self, call: Call) -> dict[str, Any] | None:
        """What a call gave; None where that is missing, or damaged, which is said."""
        path = self.path(call.key)
        try:
            arrays = read_arrays(path)
            header = json.loads(str(arrays.pop("header")))
            if header["settings"] != json.loads(json.dumps(call.settings)):
                raise ValueError("it has the settings of another call")
            value = {name: _unpacked(part, arrays) for name, part in header["value"].items()}
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            print(f"gqlab: {path} is damaged and will be computed again ({one_line(error)})", file=sys.stderr)
            return None
        return value | {TIMES: self._times(call.key)}

    def _times(self, key: str) -> dict[str, Any]:
        """What was measured of time; nothing where it is lost: it decides no result."""
        try:
            return dict(json.loads(self.times_path(key).read_bytes()))
        except (OSError, ValueError, TypeError):
            return {}


def _packed(name: str, value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """A value as JSON; arrays are put aside, each under its number."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays[str(len(arrays))] = value
        return {ARRAY: str(len(arrays) - 1)}
    if isinstance(value, Mapping) and all(isinstance(k, str) and k != ARRAY for k in value):
        return {k: _packed(f"{name}[{k!r}]", v, arrays) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(f"{name}[{k}]", v, arrays) for k, v in enumerate(value)]
    raise ValueError(f"{name} is {shown(value)}, which no file of a study keeps; expected arrays, numbers and text")


def _unpacked(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        return arrays[value[ARRAY]] if ARRAY in value else {k: _unpacked(v, arrays) for k, v in value.items()}
    return [_unpacked(v, arrays) for v in value] if isinstance(value, list) else value
