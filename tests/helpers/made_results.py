"""Results without a run: their numbers are given, so that tests know what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gqlab as gq
from gqlab.measure.watch import Watched


def made_result(problem: gq.Problem, /, theta: Any, diverged_at: Any = None, **changes: Any) -> gq.RunResult:
    """A result of GreedyGQ with these recorded θ, (n_runs, n_records, d), one record every 10 updates.

    It knows its problem; with ``problem=None`` it is one that was loaded without it.
    """
    theta = np.asarray(theta, dtype=float)
    n_runs, n_records, _ = theta.shape
    updates = 10 * np.arange(n_records)
    fields: dict[str, Any] = {
        "theta": theta,
        "omega": 0.5 * theta,
        "samples": updates,
        "updates": updates,
        "gradient_evaluations": updates,
        "output": theta[:, 0],
        "output_update": np.zeros(n_runs, np.int64),
        "diverged_at": np.full(n_runs, -1) if diverged_at is None else np.asarray(diverged_at),
        "state": np.zeros(n_runs, np.uint32),
        "next_output": np.full(n_runs, updates[-1] + 1),
        "memory": {"theta": theta[:, -1]},
        "watched": {},
        "metadata": {
            "algorithm": gq.GreedyGQ().to_dict(), "problem": problem.fingerprint, "seed": 0, "dtype": "float64",
            "n_samples": int(updates[-1]), "record_every": 10, "watch": [], "versions": {},
        },
        "problem": problem,
    }  # fmt: skip
    return gq.RunResult(**{**fields, **changes})


def watched(values: Any) -> dict[str, Watched]:
    """‖∇J‖² as a watch keeps it, its mean these values."""
    mean = np.asarray(values, dtype=float)
    return {"gradient": Watched(mean - 1, mean, mean + 1)}


class Loaded(Sequence[gq.RunResult]):
    """Results that would come from a disk: it counts how often one is asked for."""

    def __init__(self, results: list[gq.RunResult]) -> None:
        self.results, self.asked = results, 0

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, k: Any) -> Any:
        self.asked += 1
        return self.results[k]
