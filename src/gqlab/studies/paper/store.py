"""Results on disk: one file for each job, named by the digest of its settings, whole or not there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.studies.paper.jobs import Job, Measured
from gqlab.support.files import clear_parts, one_line, read_arrays, write_arrays

_COUNTS = ("updates", "samples", "gradient_evaluations", "diverged")


class Store:
    """The finished jobs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        clear_parts(folder)
        #: The digests of what was saved here, not found.
        self.saved: set[str] = set()
        self._damaged: set[Path] = set()
        self._read: dict[str, Measured] = {}  # experiments share jobs: each file is read once

    def path(self, job: Job) -> Path:
        return self.folder / f"{job.digest}.npz"

    def __contains__(self, job: Job) -> bool:
        return self.load(job) is not None

    def save(self, job: Job, measured: Measured) -> None:
        """Keep a result; its file appears whole."""
        self._read.pop(job.digest, None)
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {name: getattr(measured, name) for name in _COUNTS}
        arrays |= {f"value {name}": value for name, value in measured.values.items()}
        arrays["seconds"] = np.array(measured.seconds)
        text = json.dumps(job.settings, sort_keys=True)
        self.saved.add(job.digest)
        write_arrays(self.path(job), {"settings": np.array(text), **arrays})

    def load(self, job: Job) -> Measured | None:
        """The result of exactly these settings; None where there is none, or where the file is not one of ours."""
        if job.digest not in self._read:
            found = self._read_file(job)
            if found is None:
                return None
            self._read[job.digest] = found
        return self._read[job.digest]

    def _read_file(self, job: Job) -> Measured | None:
        """What the file of a job holds; a damaged one is named, once, and counts as none."""
        path = self.path(job)
        try:
            content = read_arrays(path)
            if json.loads(str(content.pop("settings"))) != json.loads(json.dumps(job.settings)):
                raise ValueError("it has the settings of another job")
            values = {name[6:]: array for name, array in content.items() if name.startswith("value ")}
            counts = {name: content[name] for name in _COUNTS}
            _check(job, counts, values)
            return Measured(**counts, seconds=float(content["seconds"]), values=values)
        except FileNotFoundError:
            return None
        except Exception as error:
            if path not in self._damaged:
                print(f"gqlab: {path} is damaged and will be computed again ({one_line(error)})", file=sys.stderr)
            self._damaged.add(path)
            return None


def _check(job: Job, counts: dict[str, Any], values: dict[str, Any]) -> None:
    """The shapes fit each other."""
    n_records = len(counts["updates"])
    for name in _COUNTS:
        if counts[name].shape != ((job.n_runs,) if name == "diverged" else (n_records,)):
            raise ValueError(f"{name} has shape {counts[name].shape}")
    for name, array in values.items():
        if array.ndim != 2 or len(array) != job.n_runs or array.shape[1] > n_records:
            raise ValueError(f"{name} has shape {array.shape}")
