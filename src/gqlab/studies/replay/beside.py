"""Agents of another library beside ours, from a file of curves (``python -m benchmarks --only dqn`` writes one)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.learn.agent.thresholds import steps_to_threshold
from gqlab.studies.replay.design import ENVIRONMENTS
from gqlab.studies.replay.statistics import ReplayEntries, RowRuns
from gqlab.support.checks import FloatArray
from gqlab.support.files import open_regular

#: The part of the study that they stand in.
PART = "main"


def read_beside(path: Path) -> ReplayEntries:
    """A row for every environment: ``{"name": …, "curves": {environment: {seed: {"steps": […], "means": […]}}}}``."""
    try:
        with open_regular(path) as file:
            found = json.loads(file.read())
        name, curves = found["name"], found["curves"]
        rows = {env: [_curve(one) for one in seeds.values()] for env, seeds in curves.items() if seeds}
        about = {env: ENVIRONMENTS[env] for env in rows}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no curves of agents ({type(error).__name__}): see benchmarks/dqn.py") from None
    return {
        (PART, env, f"{name}, {len(each)} seed{'s' if len(each) > 1 else ''}", None, 1.0): RowRuns(
            to_threshold=np.array([_solved(one, about[env].threshold) for one in each]),
            steps=tuple(steps for steps, _ in each),
            means=tuple(means for _, means in each),
            max_q=tuple(np.full(len(steps), np.nan) for steps, _ in each),
            q_bound=1.0,
            diverged=0,
        )
        for env, each in rows.items()
    }


def _curve(one: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    steps, means = (np.array(one[key], dtype=np.float64) for key in ("steps", "means"))
    if steps.ndim != 1 or steps.shape != means.shape or not len(steps) or not np.isfinite([steps, means]).all():
        raise ValueError("as many steps as means, all finite")
    return steps, means


def _solved(curve: tuple[FloatArray, FloatArray], wanted: float | None) -> float:
    if wanted is None:
        raise ValueError("an environment without a threshold")
    steps, means = (one.tolist() for one in curve)
    return steps_to_threshold(steps, means, wanted)
