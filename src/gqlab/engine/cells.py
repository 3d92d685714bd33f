"""What is to be run: cells, and the settings that they share.

A *cell* is one algorithm on one problem under one seed, ``n_runs`` times; :func:`gqlab.run` has one cell and
:func:`gqlab.grid` many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gqlab.algorithms import Algorithm
from gqlab.engine import cpu
from gqlab.engine.records import recorded_updates
from gqlab.measure.watch import Watch
from gqlab.support import checks

DEVICES = ("cpu", "cuda")
#: The precisions of a run.
DTYPES = ("float64", "float32")
#: A point may lie outside the ball by this relative amount: in single precision the projection is rounded.
BALL_TOLERANCE = 1e-6


def precision(dtype: DTypeLike) -> str:
    """``dtype`` by its name: "float64", or "float32"."""
    known = isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.floating | float))
    return checks.one_of("dtype", np.dtype(dtype).name if known else dtype, DTYPES)


@dataclass(frozen=True)
class Settings:
    """What all cells of a call share."""

    n_samples: int
    record_every: int
    device: str = "cpu"
    dtype: str = "float64"
    threads: int | None = None
    progress: bool | None = None
    watch: tuple[Watch, ...] = ()
    #: Set to 1, it ends a call that runs on a thread other than the main one.
    stop: NDArray[np.int64] | None = None
    #: Where the seconds of a core that the runs of a call take are put, one entry for each block of them.
    spent: list[float] | None = None

    def __post_init__(self) -> None:
        checks.one_of("device", self.device, DEVICES)
        for name in ("n_samples", "record_every"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), least=1, below=2**48))
        threads = cpu.default_threads() if self.threads is None else self.threads
        object.__setattr__(self, "threads", checks.integer("threads", threads, least=1, below=2**16))
        if self.progress is not None:
            checks.instance("progress", self.progress, bool, "True, False or None")


class Resumable(Protocol):
    """What a run is resumed from: its records so far, and the state of each of its runs."""

    @property
    def theta(self) -> checks.FloatArray: ...  # (n_runs, n_records, d)
    @property
    def omega(self) -> checks.FloatArray: ...  # (n_runs, n_records, d)
    @property
    def updates(self) -> NDArray[np.int64]: ...  # (n_records,)
    @property
    def output(self) -> checks.FloatArray: ...  # (n_runs, d)
    @property
    def output_update(self) -> NDArray[np.int64]: ...  # (n_runs,)
    @property
    def next_output(self) -> NDArray[Any]: ...
    @property
    def diverged_at(self) -> NDArray[np.int64]: ...  # (n_runs,)
    @property
    def state(self) -> NDArray[Any]: ...
    @property
    def memory(self) -> Mapping[str, NDArray[Any]]: ...

    def watched_columns(self) -> checks.FloatArray: ...


@dataclass(frozen=True)
class Cell:
    """One algorithm on one problem under one seed."""

    problem: int
    algorithm: Algorithm
    seed: int
    n_runs: int
    theta0: ArrayLike | None = None
    omega0: ArrayLike | None = None
    resume: Resumable | None = None

    def updates(self, settings: Settings) -> NDArray[np.int64]:
        """The updates that are recorded."""
        last = self.algorithm.n_updates(settings.n_samples)
        if self.resume is not None and last < self.resume.updates[-1]:
            raise ValueError(
                f"n_samples is {settings.n_samples}, but the result to resume has made {self.resume.updates[-1]} "
                "updates already"
            )
        return recorded_updates(last, settings.record_every)

    def first_point(self, name: str, d: int) -> checks.FloatArray:
        """``theta0`` or ``omega0`` of every run, (n_runs, d), checked."""
        value = getattr(self, name)
        if value is None:
            return np.zeros((self.n_runs, d))
        if name == "omega0" and not self.algorithm.has_omega:
            raise ValueError(f"omega0 is given, but {type(self.algorithm).__name__} has no ω")
        point = checks.array(name, value, (d,) if checks.plain_array(name, value).ndim == 1 else (self.n_runs, d))
        radius = self.algorithm.radius if name == "theta0" else self.algorithm.own_radius_omega
        with np.errstate(over="ignore"):
            norm = np.linalg.norm(np.broadcast_to(point, (self.n_runs, d)), axis=-1)
        bad = np.flatnonzero(norm > radius * (1 + BALL_TOLERANCE))
        if len(bad):
            where = name if point.ndim == 1 else f"{name}[{bad[0]}]"
            raise ValueError(f"{where} has norm {norm[bad[0]]:.6g}, outside the ball of radius {radius:g}")
        return np.broadcast_to(point, (self.n_runs, d))
