"""Finished cells on disk. A folder holds one sweep: its description, and one file for each task that was finished.

    sweep.json               what the sweep is, sealed
    cells/4f/4f09….npz       the results of the cells of one task, by their numbers, sealed

One file for each *task*, not for each cell: a million cells of a millisecond would leave a million files of a few
kilobytes, which cost more than the runs. A task's file holds the concatenated arrays of its cells. Its name is a
digest of the sweep and of the cells' numbers. It appears whole, so that a kill leaves nothing half-written. A cell that
is in two files counts once, and is read from the first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.grids.description import Description, read_description
from gqlab.grids.grid_result import Chosen
from gqlab.lab.results import PLAIN_FIELDS, RunResult
from gqlab.measure.watch import Watched
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.files import (
    check_writable,
    clear_parts,
    one_line,
    read_array,
    read_arrays,
    token,
    write_arrays,
    write_whole,
    writing,
)

#: Bytes of files that are cached in memory when cells are read one after another.
CACHE = 2**28

Packed = dict[str, NDArray[Any]]


def pack(numbers: Sequence[int], results: Sequence[RunResult]) -> Packed:
    """Results of one kind as a few arrays: every field of all cells in one array, and its shapes in another."""
    fields: dict[str, list[NDArray[Any]]] = {name: [getattr(r, name) for r in results] for name in PLAIN_FIELDS}
    for name in results[0].memory:
        fields[f"memory/{name}"] = [r.memory[name] for r in results]
    for name in results[0].watched:
        fields[f"watched/{name}"] = [np.stack(r.watched[name]) for r in results]
    text = json.dumps([r.metadata for r in results]).encode()
    packed: Packed = {"numbers": np.array(numbers, dtype=np.int64), "metadata": np.frombuffer(text, dtype=np.uint8)}
    for name, arrays in fields.items():
        packed[name] = np.concatenate([array.reshape(-1) for array in arrays])
        packed[f"{name} shape"] = np.array([array.shape for array in arrays], dtype=np.int64)
    return packed


class Unpacked:
    """The results packed by :func:`pack`, one at a time."""

    def __init__(self, packed: Packed) -> None:
        self.numbers = packed["numbers"]
        self.metadata: list[dict[str, Any]] = json.loads(packed["metadata"].tobytes())
        self.bytes = sum(array.nbytes for array in packed.values())
        self._packed = packed
        self._ends: dict[str, NDArray[np.int64]] = {}
        for name in [name for name in packed if f"{name} shape" in packed]:
            shapes, size = packed[f"{name} shape"], packed[name].size
            self._ends[name] = np.concatenate([[0], np.cumsum(np.prod(shapes, axis=1))])
            if len(shapes) != len(self.numbers) or (shapes < 0).any() or self._ends[name][-1] != size:
                raise ValueError(f"{name} has {size} numbers, expected those of {len(self.numbers)} cells")
        if len(self.metadata) != len(self.numbers):
            raise ValueError(f"{len(self.metadata)} cells are described, expected {len(self.numbers)}")

    def __getitem__(self, k: int) -> RunResult:
        """The k-th result; the caller checks whether it is one that a run can give."""
        arrays: dict[str, Any] = {}
        for name, ends in self._ends.items():
            part = self._packed[name][ends[k] : ends[k + 1]]
            arrays[name] = part.reshape(self._packed[f"{name} shape"][k]).copy()
        return RunResult(
            **{name: arrays[name] for name in PLAIN_FIELDS},
            memory={name[7:]: array for name, array in arrays.items() if name.startswith("memory/")},
            watched={name[8:]: Watched(*array) for name, array in arrays.items() if name.startswith("watched/")},
            metadata=self.metadata[k],
        )


@dataclass(frozen=True)
class Files:
    """Where the tasks of a sweep are kept: all that a worker needs to know about a store."""

    folder: Path
    digest: str  # of the sweep's description
    token: str = ""  # a file that exists in the folder while its driver is running

    def path(self, numbers: NDArray[np.int64]) -> Path:
        """The file of the task with these cells."""
        key = f"{self.digest} ".encode() + np.asarray(numbers, dtype="<i8").tobytes()
        name = hashlib.sha256(key).hexdigest()[:32]
        return self.folder / "cells" / name[:2] / f"{name}.npz"

    def save(self, packed: Packed) -> Path:
        """Keep the cells of a task; the file appears whole."""
        path = self.path(packed["numbers"])
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, packed)
        return path

    def seen(self) -> bool:
        """Whether the driver's folder is visible here: another machine may have a different store under this path."""
        return self.token != "" and (self.folder / self.token).is_file()


class GridStore:
    """The finished cells of a sweep in a folder; :func:`create_store` and :func:`open_store` make one."""

    def __init__(self, folder: Path, description: Description) -> None:
        self.folder, self.description = folder, description
        self.files = Files(folder, description.digest)
        self._files: list[Path] = []
        n = len(description.axes)
        #: The file of each cell, and its index in it; −1 if it is missing.
        self._file, self._row = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
        self._read: OrderedDict[int, Unpacked] = OrderedDict()

    @contextlib.contextmanager
    def shown(self) -> Iterator[Files]:
        """What workers get: while this is open they can tell whether they see this same folder."""
        with token(self.folder) as name:
            yield replace(self.files, token=name)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which cells are finished."""
        return self._file >= 0

    def add(self, path: Path, numbers: NDArray[np.int64]) -> None:
        """Mark the cells of a file as finished, unless they already are."""
        inside = (numbers >= 0) & (numbers < len(self._file))
        if numbers.ndim != 1 or numbers.dtype != np.int64 or not inside.all() or path != self.files.path(numbers):
            raise ValueError("its cells do not match its name")
        new = np.flatnonzero(self._file[numbers] < 0)
        self._file[numbers[new]], self._row[numbers[new]] = len(self._files), new
        self._files.append(path)

    def find(self, *, whole: bool) -> None:
        """Look for existing files. With ``whole`` each is read, and a damaged one is reported and set aside."""
        for path in sorted(self.folder.glob("cells/*/*.npz")):
            try:
                self.add(path, self._unpacked(path).numbers if whole else read_array(path, "numbers"))
            except (ValueError, OSError) as error:
                print(f"gqlab: {path} is damaged and will be computed again ({one_line(error)})", file=sys.stderr)
                if whole and isinstance(error, ValueError):
                    path.rename(path.with_suffix(".damaged"))

    def _unpacked(self, path: Path) -> Unpacked:
        """What a file holds: its cells are those of this sweep, or ``ValueError``."""
        try:
            found = Unpacked(read_arrays(path))
            for number, metadata in zip(found.numbers.tolist(), found.metadata, strict=True):
                for name, value in self.description.metadata(number).items():
                    if metadata[name] != value:
                        raise ValueError(f"{name} of cell {number} is {checks.shown(metadata[name])}")
            return found
        except OSError:
            raise
        except Exception as error:
            raise ValueError(one_line(error)) from None

    def result(self, number: int) -> RunResult:
        """The result of a cell, read from its file; the files read most recently are cached."""
        k = int(self._file[number])
        if k < 0:
            raise ValueError(f"{self.folder}: cell {number} is missing")
        try:
            if k not in self._read:
                self._read[k] = self._unpacked(self._files[k])
                while len(self._read) > 1 and sum(file.bytes for file in self._read.values()) > CACHE:
                    self._read.popitem(last=False)
            self._read.move_to_end(k)
            result = self._read[k][int(self._row[number])]
            result.check()
            return result
        except (ValueError, OSError) as error:
            raise ValueError(
                f"{self._files[k]} is damaged ({one_line(error)}); run the same sweep again to recompute its cells"
            ) from None


class StoredResults(Sequence[RunResult]):
    """The results of a store, each read on demand, with its problem if the ``problems`` are known.

    ``n_computed`` of them are new.
    """

    def __init__(self, store: GridStore, problems: Sequence[Problem] | None = None, n_computed: int = 0) -> None:
        self.store, self.problems, self.n_computed = store, problems, n_computed

    def __len__(self) -> int:
        return len(self.store.finished)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return Chosen(self, np.arange(len(self))[k])
        if not -len(self) <= k < len(self):
            raise IndexError(f"cell {k} of {len(self)}")
        number = k % len(self)
        result = self.store.result(number)
        if self.problems is None:
            return result
        return result.with_problem(self.problems[self.store.description.axes.at(number)[0]])

    def __iter__(self) -> Iterator[RunResult]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} results in {self.store.folder}>"


def create_store(path: Any, description: Description) -> GridStore:
    """The store of a sweep: a new one, or an existing one if it belongs to the same sweep and code."""
    folder = Path(checks.path("store", path))
    name = f"store is {checks.shown(str(folder))}"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{name}, a file, expected a folder")
    file = folder / "sweep.json"
    exists = file.is_file()
    if exists:
        _check_same(name, file, description)
    elif any(folder.glob("cells/*/*.npz")):
        raise ValueError(f"{name}, which has cells but no sweep.json: choose another folder")
    check_writable(folder)
    if not exists:
        text = json.dumps({**description.to_dict(), "sum": description.digest}, indent=1).encode()
        with writing(folder), contextlib.suppress(FileExistsError):  # another driver has just started
            write_whole(file, lambda out: out.write(text), new=True)
        if file.read_bytes() != text:
            _check_same(name, file, description)
    for parts in folder.glob("cells/*"):
        clear_parts(parts)
    return GridStore(folder, description)


def open_store(path: Any) -> GridStore:
    """An existing store of a sweep."""
    folder = Path(checks.path("path", path))
    file = folder / "sweep.json"
    if not file.is_file():
        raise ValueError(
            f"path is {checks.shown(str(folder))}, which is not the store of a sweep: it has no sweep.json"
        )
    return GridStore(folder, _read_description(file))


def _check_same(name: str, file: Path, description: Description) -> None:
    """``ValueError`` where a file describes another sweep."""
    found = _read_description(file)
    if found.digest != description.digest:
        raise ValueError(f"{name}, which belongs to another {_difference(found, description)}: choose another folder")


def _read_description(file: Path) -> Description:
    try:
        values = json.loads(file.read_bytes())
        seal = values.pop("sum", None)
        description = read_description(values)
        if seal != description.digest:
            raise ValueError("its content is not what was written")
        return description
    except OSError:
        raise
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(f"the store's {file} is not the description of a sweep ({one_line(error)})") from None


def _difference(kept: Description, wanted: Description) -> str:
    """In what two sweeps differ, for a message."""
    old, new = kept.to_dict(), wanted.to_dict()
    if all(old[name] == new[name] for name in old if name != "code"):
        return "version of the code"
    old, new = old.pop("settings") | old, new.pop("settings") | new
    [first, *_] = [name for name in new if name != "code" and old.get(name) != new[name]]
    named = {"which": "algorithms"}.get(first, first)
    if isinstance(new[first], list | dict):
        return f"sweep, with other {named}"
    return f"sweep, with {named} = {checks.shown(old.get(first))} instead of {checks.shown(new[first])}"
