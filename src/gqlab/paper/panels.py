"""From results to what is drawn: the series of every panel, which are also the rows of the CSV."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from gqlab.checks import FloatArray
from gqlab.paper.design import View
from gqlab.paper.runner import Results

AXES = {"gradient_evaluations": "gradient computations", "updates": "iterations", "batch_size": "batch size M"}

#: The share of a run, at its end, over which an asymptotic value is taken.
TAIL = 0.1


@dataclass(frozen=True, eq=False)
class Series:
    """A line with its band, or points with their bars; ``style`` is "line", "dashed", "points" or "fit"."""

    label: str
    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    style: str = "line"


@dataclass(frozen=True, eq=False)
class Panel:
    """One set of axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False


def panels(results: Results) -> tuple[Panel, ...]:
    """The panels of an experiment, in the paper's setting."""
    makers = {"curves": _curves, "split": _split, "batch": _batch}
    return tuple(
        Panel(view.title, AXES[view.x], view.y, makers[view.style](results, view), log_y=view.log_y)
        for view in results.experiment.views
    )


def running(values: FloatArray, how: str) -> FloatArray:
    """The smallest or largest value so far along the records, or the values as they are."""
    if not how:
        return values
    best = np.minimum if how == "min" else np.maximum
    return np.asarray(best.accumulate(values, axis=1))


def tail(values: FloatArray, at: FloatArray) -> FloatArray:
    """The records in the last tenth of the axis, (n_runs, some)."""
    kept = at > (1 - TAIL) * at[-1]
    kept[-1] = True
    return values[:, kept]


def tail_mean(values: FloatArray, at: FloatArray) -> FloatArray:
    """The mean over the last tenth of the axis, (n_runs,)."""
    return tail(values, at).mean(axis=1)


def interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean and its 95 % interval by Student's t."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def _percentiles(label: str, x: FloatArray, values: FloatArray, style: str = "line") -> Series:
    low, middle, high = np.percentile(values, [5, 50, 95], axis=0)
    return Series(label, x, middle, low, high, style)


def _end(results: Results, view: View) -> float:
    """Where the axis ends: a budget of iterations is a bound that whole batches may pass."""
    part = results.experiment.part(view.part)
    return results.scale.budget(part, 0).n if part.unit == "iterations" else np.inf


def _curves(results: Results, view: View) -> tuple[Series, ...]:
    out = []
    for label, measured in results[view.part, 0].items():
        x = measured.counts(view.x, view.metric)
        kept = x <= _end(results, view)
        values = running(measured.values[view.metric], view.running)[:, kept]
        out.append(_percentiles(label, x[kept].astype(np.float64), values))
    return tuple(out)


def _split(results: Results, view: View) -> tuple[Series, ...]:
    out = []
    for label, measured in results[view.part, 0].items():
        x = measured.counts(view.x, view.metric).astype(np.float64)
        variance = measured.values["update_variance"]
        # 0 at the reference point has no place on a log axis
        inside = np.where(variance > 1e-20 * variance.max(), variance, np.nan)
        kept = ~np.isnan(inside).any(axis=0)
        out.append(_percentiles(f"{label}\nbias²", x, measured.values["update_bias"], "dashed"))
        out.append(_percentiles(f"{label}\nvariance", x[kept], inside[:, kept]))
    return tuple(out)


def batch_sizes(results: Results, part: str) -> dict[str, int]:
    """M of every algorithm of a part; 1 for Greedy-GQ."""
    from gqlab.paper.design import label

    return {label(a): max(a.batch_size, 1) for a in results.experiment.part(part).algorithms}


def _batch(results: Results, view: View) -> tuple[Series, ...]:
    sizes = batch_sizes(results, view.part)
    points = []
    for label, measured in results[view.part, 0].items():
        errors = tail_mean(measured.values[view.metric], measured.counts("updates", view.metric).astype(np.float64))
        points.append((label, float(sizes[label]), *interval(errors)))
    groups = [("Greedy-GQ", points[:1]), ("VR-Greedy-GQ", points[1:])]
    out = []
    for label, group in groups:
        x, mean, low, high = (np.array([p[k] for p in group]) for k in (1, 2, 3, 4))
        out.append(Series(label, x, mean, low, high, "points"))
    vr = out[1]
    slope, level = np.polyfit(np.log(vr.x), np.log(vr.middle), 1)
    x = np.linspace(vr.x[0], vr.x[-1])
    fit = np.exp(level) * x**slope
    return (*out, Series(f"power {slope:.2f} of M".replace("-", "−"), x, fit, fit, fit, "fit"))
