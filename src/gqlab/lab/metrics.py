"""Metrics of a run: one number for each record of each run, by name or by a function of one's own.

============  ======================================================================  ======================
name          exact, at the recorded θ                                                loaded without problem
============  ======================================================================  ======================
``gradient``  ‖∇J(θ)‖²                                                                ``gradient.mean``
``mspbe``     J(θ)                                                                    ``mspbe.mean``
``reward``    the long-run average reward of π_θ                                      ``reward.mean``
``value``     the discounted value of π_θ where an episode begins                     –
============  ======================================================================  ======================

``gradient.lowest``, ``gradient.mean`` and ``gradient.largest`` are what was watched, over all updates so far. A run
that has diverged is worse than every other: from there on it counts as infinite. A function of one's own may give a
single number for a whole result; it is used as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gqlab.lab.results import RunResult
from gqlab.measure.watch import Watched
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import one_line

#: A name, or a function of a result that gives a number, (n_runs,) or (n_runs, n_records) of them.
Metric = str | Callable[[RunResult], Any]

EXACT: dict[str, Callable[[Problem, FloatArray], FloatArray]] = {
    "gradient": lambda problem, theta: (problem.exact.gradient(theta) ** 2).sum(axis=-1),
    "mspbe": lambda problem, theta: problem.exact.mspbe(theta),
    "reward": lambda problem, theta: problem.exact.average_reward(theta),
    "value": lambda problem, theta: problem.exact.value(theta) @ problem.mdp.start,
}

#: The names of metrics that are better when larger.
GAINS = ("reward", "value")

#: The names of metrics that fall by powers of ten: their axes are always logarithmic.
FALLING = ("gradient", "mspbe")

TITLES = {
    "gradient": "‖∇J(θ)‖²",
    "mspbe": "J(θ)",
    "reward": "average reward of π",
    "value": "value of π at the start",
}

#: A recorded θ with a larger entry counts as infinite: squares would overflow.
LARGEST = 1e60


def check_metric(metric: Any, result: RunResult | None) -> Metric:
    """A metric that a result has; None stands for a grid without results, which has none."""
    if callable(metric):
        return metric
    watched, knows = ((), False) if result is None else (result.watched, result.problem is not None)
    seen = [word for name in watched for word in (name, *(f"{name}.{statistic}" for statistic in Watched._fields))]
    known = [*(EXACT if knows else ()), *seen]
    if not knows and isinstance(metric, str) and metric in EXACT and metric not in known:
        raise ValueError(
            f"metric is {metric!r}, which was not watched and needs the problem: use result.with_problem(problem), or "
            "problems= of open_grid"
        )
    return checks.one_of("metric", metric, dict.fromkeys(known))


def is_exact(metric: Metric, result: RunResult) -> bool:
    """Whether the metric is computed from the problem at the recorded θ."""
    return isinstance(metric, str) and metric in EXACT and result.problem is not None


def is_gain(metric: Metric) -> bool:
    """Whether more of it is better."""
    return isinstance(metric, str) and metric.partition(".")[0] in GAINS


def is_falling(metric: Metric) -> bool:
    """Whether it is one of those that fall by powers of ten."""
    return isinstance(metric, str) and metric.partition(".")[0] in FALLING


def title(metric: Metric, result: RunResult) -> str:
    """The label of an axis that shows a metric."""
    if callable(metric):
        name = getattr(metric, "__name__", "metric")
        return "metric" if name == "<lambda>" else name.replace("_", " ")
    name, _, statistic = metric.partition(".")
    if is_exact(metric, result):
        return TITLES[name]
    return f"{statistic or 'mean'} of {TITLES[name]} so far"


def values(result: RunResult, metric: Metric) -> FloatArray:
    """A metric at every record of every run, (n_runs, n_records), or what a function of one's own returns."""
    if callable(metric):
        found = _own(result, metric)
    elif result.problem is not None and metric in EXACT:
        large = np.abs(result.theta).max(axis=-1) > LARGEST
        at = np.where(large[..., None], 0.0, result.theta)
        found = np.where(large, -np.inf if is_gain(metric) else np.inf, EXACT[metric](result.problem, at))
    else:
        name, _, statistic = metric.partition(".")
        if name not in result.watched:
            raise ValueError(f"metric is {metric!r}, which was not watched in every result")
        found = np.array(getattr(result.watched[name], statistic or "mean"))
    lost = result.diverged[:, None] & (result.updates > result.diverged_at[:, None])  # (n_runs, n_records)
    if found.ndim:
        found[lost if found.ndim == 2 else lost.any(axis=1)] = -np.inf if is_gain(metric) else np.inf
    return found


def _own(result: RunResult, metric: Callable[[RunResult], Any]) -> FloatArray:
    try:
        given = metric(result)
    except Exception as error:
        raise ValueError(f"metric fails: {type(error).__name__}: {one_line(error)}") from error
    found = checks.numbers("metric", given)
    n_runs, n_records, _ = result.theta.shape
    if found.shape not in ((), (n_runs,), (n_runs, n_records)):
        raise ValueError(
            f"metric gives shape {found.shape}, expected a number, ({n_runs},) or ({n_runs}, {n_records}): "
            "one for each run, or for each record of each run"
        )
    return found


def final(result: RunResult, metric: Metric) -> FloatArray:
    """A metric of every run at its end, (n_runs,); NaN counts as infinite, as does a run that has diverged."""
    found = values(result, metric)
    last = found[:, -1] if found.ndim == 2 else np.broadcast_to(found, (len(result.theta),))
    return np.where(np.isnan(last), -np.inf if is_gain(metric) else np.inf, last)
