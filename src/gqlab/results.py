"""What a run leaves: its recorded iterates, its counts, and all that is needed to go on from it."""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gqlab import algorithms
from gqlab.algorithms import Algorithm
from gqlab.checks import FloatArray
from gqlab.engine.records import recorded_updates
from gqlab.measure.floor import floor_multiple
from gqlab.measure.watch import QUANTITIES, Watched
from gqlab.problem import Problem

#: Written into every file; a file with another word is not one of ours.
FORMAT = "gqlab run result 2"
#: The first release's: no watches, and an estimator kept nothing.
FIRST_FORMAT = "gqlab run result 1"

#: The fields that are one array each.
PLAIN_FIELDS = (
    "theta", "omega", "samples", "updates", "gradient_evaluations", "output", "output_update", "diverged_at", "state",
    "next_output",
)  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult:
    """The result of :func:`gqlab.run`.

    Attributes
    ----------
    theta, omega : (n_runs, n_records, d) arrays
        The iterates at the recorded updates: every ``record_every``-th, the first and the last.
    samples, updates, gradient_evaluations : (n_records,) arrays
        What each run had used by then.
    output : (n_runs, d) array
        An iterate drawn uniformly from all those before the last update (Algorithm 1's output).
    output_update : (n_runs,) array
        The update count of that iterate.
    diverged : (n_runs,) bool array
        Such a run is frozen at its last finite iterate.
    diverged_at : (n_runs,) array
        The number of updates that it had made; −1 for the others.
    watched : dict of Watched
        What ``watch`` asked for, by quantity: lowest, mean and largest over all updates up to each record.
    state, next_output, memory : arrays
        The rest of what ``resume`` needs: where its stream stands, and what its estimator and its watches keep.
    metadata : dict
        Algorithm, problem fingerprint, seed, settings, versions.
    """

    theta: FloatArray
    omega: FloatArray
    samples: NDArray[np.int64]
    updates: NDArray[np.int64]
    gradient_evaluations: NDArray[np.int64]
    output: FloatArray
    output_update: NDArray[np.int64]
    diverged_at: NDArray[np.int64]
    state: NDArray[np.uint32]
    next_output: NDArray[np.int64]
    memory: dict[str, NDArray[Any]]
    watched: dict[str, Watched]
    metadata: dict[str, Any]

    @property
    def diverged(self) -> NDArray[np.bool_]:
        return self.diverged_at >= 0

    @property
    def algorithm(self) -> Algorithm:
        return algorithms.from_dict(self.metadata["algorithm"])

    def __repr__(self) -> str:
        n_runs, n_records, _ = self.theta.shape
        lost = f", {int(self.diverged.sum())} diverged" if self.diverged.any() else ""
        return (
            f"RunResult({self.algorithm!r}, n_runs={n_runs}, n_records={n_records}, updates={self.updates[-1]}{lost})"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.npz`` file under exactly this name; it appears whole or not at all.

        Examples
        --------
        >>> import gqlab as gq, tempfile, os
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> result = gq.run(problem, gq.GreedyGQ(), n_samples=1000, n_runs=2)
        >>> path = os.path.join(tempfile.mkdtemp(), "result.npz")
        >>> result.save(path)
        >>> gq.RunResult.load(path)
        RunResult(GreedyGQ(eta_theta=0.02, eta_omega=0.01, radius=inf), n_runs=2, n_records=2, updates=1000)
        """
        arrays = {name: getattr(self, name) for name in PLAIN_FIELDS}
        arrays |= {f"memory/{name}": array for name, array in self.memory.items()}
        arrays |= {f"watched/{name}": np.stack(seen) for name, seen in self.watched.items()}
        text = json.dumps({"format": FORMAT, **self.metadata})
        write_whole(Path(path), lambda file: np.savez(file, metadata=np.array(text), **arrays))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RunResult:
        """Read what :meth:`save` wrote; ``ValueError`` if the file is something else."""
        try:
            with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                content = {name: file[name] for name in file.files}
            metadata = json.loads(str(content.pop("metadata")))
            form = metadata.pop("format", None)
            if form == FIRST_FORMAT:
                metadata["watch"] = []
                content["memory/theta"] = content["theta"][:, -1]
            elif form != FORMAT:
                raise ValueError("another format")
            result = cls(
                **{name: content[name] for name in PLAIN_FIELDS},
                memory=_inside("memory/", content),
                watched={name: Watched(*array) for name, array in _inside("watched/", content).items()},
                metadata=metadata,
            )
            result.check()
        except (ValueError, KeyError, AttributeError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{os.fspath(path)} is not a result that gqlab saved ({error})") from None
        return result

    def floor_multiple(self, problem: Problem) -> float:
        """How many times above its statistical floor the last record is: the mean of ‖∇J‖² over that of the floors.

        The floor of a run is ‖∇J‖² at the stationary point of the objective made of its own samples, searched from its
        first θ and from its last: see :func:`gqlab.floor`. ``ValueError`` where there is no such point.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> saga, vr = (gq.run(problem, a, n_samples=300_000, n_runs=5) for a in (gq.SAGAGreedyGQ(), gq.VRGreedyGQ()))
        >>> saga.floor_multiple(problem) < 1.2, vr.floor_multiple(problem) > 5
        (True, True)
        """
        return floor_multiple(problem, self)

    def watched_columns(self) -> NDArray[Any]:
        """What was watched as the engine records it, (n_runs, n_records, 3 · quantities)."""
        n_runs, n_records, _ = self.theta.shape
        columns = np.full((n_runs, n_records, len(QUANTITIES), 3), np.nan)
        for name, seen in self.watched.items():
            columns[:, :, QUANTITIES.index(name)] = np.stack(seen, axis=-1)
        return columns.reshape(n_runs, n_records, -1)

    def check(self) -> None:
        """Every array has the shape and the type that :func:`gqlab.run` gives it: compiled code will trust them."""
        n_runs, n_records, d = self.theta.shape
        number = np.dtype(self.metadata["dtype"])
        count, state = np.dtype(np.int64), np.dtype(np.uint32)
        wanted = {
            **dict.fromkeys(("theta", "omega"), ((n_runs, n_records, d), number)),
            **dict.fromkeys(("samples", "updates", "gradient_evaluations"), ((n_records,), count)),
            "output": ((n_runs, d), number),
            **dict.fromkeys(("output_update", "diverged_at", "next_output"), ((n_runs,), count)),
            "state": ((n_runs,), state),
        }
        arrays = {name: getattr(self, name) for name in PLAIN_FIELDS}
        for name, seen in self.watched.items():
            wanted[name] = (3, n_runs, n_records), np.dtype(np.float64)
            arrays[name] = np.stack(seen)
        wanted["memory theta"], arrays["memory theta"] = ((n_runs, d), number), self.memory["theta"]
        for name, (shape, dtype) in wanted.items():
            array = arrays[name]
            if (array.shape, array.dtype) != (shape, dtype):
                raise ValueError(f"{name} is {array.dtype}{array.shape}, expected {dtype}{shape}")
        last, every = int(self.updates[-1]), self.metadata["record_every"]
        if not isinstance(every, int) or every < 1 or last < 0:
            raise ValueError(f"updates end at {last}, one record for {every!r}")
        for name in ("next_output", "output_update", "diverged_at"):
            if (arrays[name] < -1).any():
                raise ValueError(f"{name} holds a negative number")
        whole = self.algorithm.n_updates(int(self.algorithm.samples(self.updates[-1:])[0])) == last
        if not whole or not np.array_equal(self.updates, recorded_updates(last, every)):
            raise ValueError("updates are not those of a run")
        if [watch["quantity"] for watch in self.metadata["watch"]] != list(self.watched):
            raise ValueError("what was watched is not what metadata says")
        for name in ("problem", "seed", "n_samples", "versions"):
            self.metadata[name]


def _inside(prefix: str, content: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in content.items() if name.startswith(prefix)}


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """``write`` into a temporary file beside ``path``, then put it in place in one step."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
