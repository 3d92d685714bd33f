"""Results on disk: one file for each job, named by the digest of its settings, whole or not there."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.paper.jobs import Job, Measured
from gqlab.results import write_whole

#: Seconds after which a half-written file is nobody's any more.
STALE = 600

_COUNTS = ("updates", "samples", "gradient_evaluations", "diverged")


class Store:
    """The finished jobs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for left in folder.glob(".*.part"):  # of a process that was killed while it wrote
            if time.time() - left.stat().st_mtime > STALE:
                left.unlink(missing_ok=True)
        #: The digests of what was saved here, not found.
        self.saved: set[str] = set()
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
        write_whole(self.path(job), lambda file: np.savez(file, settings=np.array(text), **arrays))

    def load(self, job: Job) -> Measured | None:
        """The result of exactly these settings; None where there is none, or where the file is not one of ours."""
        if job.digest not in self._read:
            found = self._read_file(job)
            if found is None:
                return None
            self._read[job.digest] = found
        return self._read[job.digest]

    def _read_file(self, job: Job) -> Measured | None:
        try:
            with self.path(job).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                if json.loads(str(file["settings"])) != json.loads(json.dumps(job.settings)):
                    return None
                values = {name[6:]: file[name] for name in file.files if name.startswith("value ")}
                counts = {name: file[name] for name in _COUNTS}
                return Measured(**counts, seconds=float(file["seconds"]), values=values)
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
            return None
