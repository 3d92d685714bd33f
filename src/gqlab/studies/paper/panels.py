"""From results to what is drawn: the series of every panel, which are also the rows of the CSV."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gqlab.studies.intervals import student
from gqlab.studies.paper.design import BATCH_SIZE, View
from gqlab.studies.paper.jobs import Measurement
from gqlab.studies.paper.results import Results
from gqlab.support.checks import FloatArray

AXES = {
    "gradient_evaluations": "gradient computations", "updates": "iterations", "samples": "samples",
    "batch_size": "batch size M",
}  # fmt: skip

#: The share of a run, at its end, over which an asymptotic value is taken.
TAIL = 0.1

#: Points of a curve: more are not seen.
POINTS = 200


@dataclass(frozen=True, eq=False)
class Series:
    """A line with its band, or points with their bars; ``style`` is "line", "dashed", "points", "thin" or "fit"."""

    label: str
    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    style: str = "line"
    steps: bool = False  # it stays as it is until the next point


@dataclass(frozen=True, eq=False)
class Panel:
    """One set of axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False
    log_x: bool = False


def panels(results: Results) -> tuple[Panel, ...]:
    """The panels of an experiment, over all its problems."""
    makers = {"curves": _curves, "running": _running, "batch": _batch}
    return tuple(
        Panel(
            view.title,
            AXES[view.x],
            view.y,
            makers[view.style](results, view),
            log_y=view.log_y,
            log_x=view.style == "batch",
        )
        for view in results.experiment.views
    )


def tail(values: FloatArray, at: FloatArray) -> FloatArray:
    """The records in the last tenth of the axis, (n_runs, some)."""
    kept = at > (1 - TAIL) * at[-1]
    kept[-1] = True
    return values[:, kept]


def tail_mean(values: FloatArray, at: FloatArray) -> FloatArray:
    """The mean over the last tenth of the axis, (n_runs,)."""
    return tail(values, at).mean(axis=1)


def interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean and its 95 % interval by Student's t; no interval where a value is not finite: none is left out."""
    found = student(values)
    return (found.mean, found.low, found.high) if found.n == len(values) else (float(values.mean()), math.nan, math.nan)


def _labels(results: Results, view: View) -> tuple[str, ...]:
    return view.only or tuple(entry.label for entry in results.experiment.part(view.part).entries)


def _pooled(found: list[Measurement], metric: str) -> FloatArray:
    """All runs on all problems, (n, n_records)."""
    return np.concatenate([measured.values[metric] for measured in found])


def _series(label: str, x: FloatArray, values: FloatArray, style: str, view: View) -> Series:
    low, middle, high = np.percentile(values, [5, 50, 95], axis=0)
    middle = values.mean(axis=0) if view.mean else middle
    return Series(label, x, middle, low, high, style, steps=view.part in ("start", "reward"))


def _spread(x: FloatArray) -> NDArray[np.intp]:
    """At most ``POINTS`` of the places, evenly along the axis, including both ends."""
    wanted = np.linspace(x[0], x[-1], POINTS)
    return np.unique(np.searchsorted(x, wanted).clip(0, len(x) - 1))


def _curves(results: Results, view: View) -> tuple[Series, ...]:
    out = []
    for style, metric in (("line", view.metric), ("dashed", view.dashed)):
        for label in _labels(results, view) if metric else ():
            found = results.each(view.part, label)
            x = found[0].counts(view.x, metric)
            inside = x[x <= view.end].astype(np.float64)
            at = _spread(inside)
            x_at, values = inside[at], _pooled(found, metric)[:, at]
            if x_at[-1] < min(view.end, x[-1]):  # an iterate stays where it is while a batch mean is computed
                x_at, values = np.append(x_at, min(view.end, x[-1])), values[:, [*range(len(at)), -1]]
            out.append(_series(label, x_at, values, style, view))
    return tuple(out)


def _running(results: Results, view: View) -> tuple[Series, ...]:
    """Percentiles of all values within half an epoch to either side."""
    out = []
    for label in _labels(results, view):
        found = results.each(view.part, label)
        x = found[0].counts(view.x, view.metric).astype(np.float64)
        values, half = _pooled(found, view.metric), BATCH_SIZE / 2
        at = np.arange(half, x[-1] + 1, half)
        series = np.array([np.percentile(values[:, (x > u - half) & (x <= u + half)], [5, 50, 95]) for u in at]).T
        out.append(Series(label, at, series[1], series[0], series[2]))
    return tuple(out)


def batch_sizes(results: Results, part: str) -> dict[str, int]:
    """M of every algorithm of a part; 1 for Greedy-GQ."""
    return {entry.label: max(entry.algorithm.epoch_size, 1) for entry in results.experiment.part(part).entries}


def _batch(results: Results, view: View) -> tuple[Series, ...]:
    sizes = batch_sizes(results, view.part)
    logs = {}  # of every problem: the mean over runs of the log of the mean over the last tenth
    for label in sizes:
        found = results.each(view.part, label)
        at = found[0].counts("updates", view.metric).astype(np.float64)
        logs[label] = np.array([np.log(tail_mean(m.values[view.metric], at)).mean() for m in found])
    vr = [label for label, M in sizes.items() if M > 1]
    x = np.array([float(sizes[label]) for label in vr])
    each = np.exp(np.stack([logs[label] for label in vr]))
    out = [Series("VR-Greedy-GQ", x, row, row, row, "thin") for row in each.T]
    for name, group in (("Greedy-GQ", ["Greedy-GQ"]), ("VR-Greedy-GQ", vr)):
        at = np.array([float(sizes[label]) for label in group])
        mean, low, high = np.exp(np.array([interval(logs[label]) for label in group])).T
        out.append(Series(name, at, mean, low, high, "points"))
    slope, level = np.polyfit(np.log(x), np.log(out[-1].middle), 1)
    line = np.geomspace(x[0], x[-1])
    fit = np.exp(level) * line**slope
    return (*out, Series(f"power {slope:.2f} of M".replace("-", "−"), line, fit, fit, fit, "fit"))
