"""Curves of results: the median of a metric over the runs, and a band that holds most of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.lab import metrics
from gqlab.lab.frames import COUNTS
from gqlab.lab.metrics import Metric
from gqlab.lab.results import RunResult, knows_problem
from gqlab.plots.curves import Line, draw
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: The label of the x-axis.
TITLES = {"samples": "samples", "updates": "updates", "gradient_evaluations": "gradient evaluations"}


def result_plot(result: RunResult, metric: Any, *, x: str, band: float, label: str | None, ax: Any) -> Any:
    """The curve of one result."""
    if label is not None:
        checks.instance("label", label, str, "a name")
    return _compare({label: result}, metric, x, band, ax)


@knows_problem
def compare_plot(
    results: Mapping[str, RunResult],
    metric: Metric = "gradient",
    *,
    x: str = "samples",
    band: float = 0.8,
    ax: Any = None,
) -> Any:
    """The curves of several results in one picture, with their names; the axes are returned.

    Parameters
    ----------
    results : mapping of str to RunResult
        By the names in the legend.
    metric, x, band, ax
        As in :meth:`RunResult.plot`.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> algorithms = {"Greedy-GQ": gq.GreedyGQ(), "VR-Greedy-GQ": gq.VRGreedyGQ(batch_size=100)}
    >>> results = {name: gq.run(problem, a, n_samples=1000, n_runs=5) for name, a in algorithms.items()}
    >>> ax = gq.compare_plot(results, "mspbe")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['Greedy-GQ', 'VR-Greedy-GQ']
    """
    if not isinstance(results, Mapping) or not results:
        raise ValueError(f"results is {checks.shown(results)}, expected a dictionary of results by their names")
    for name, result in results.items():
        checks.instance("results", name, str, "names as its keys")
        checks.instance(f"results[{name!r}]", result, RunResult, "a RunResult")
    return _compare(results, metric, x, band, ax)


def _compare(results: Mapping[Any, RunResult], metric: Any, x: str, band: float, ax: Any) -> Any:
    first = next(iter(results.values()))
    chosen = metrics.check_metric(metric, first)
    checks.one_of("x", x, COUNTS)
    exact = metrics.is_exact(chosen, first)
    for name, result in results.items():
        if metrics.is_exact(chosen, result) != exact:
            one, other = ("was loaded without its problem", "knows its own")[:: 1 if exact else -1]
            raise ValueError(f"results[{name!r}] {one}, but the first {other}: {chosen} would mean two things")
    lines = [Line(name, *curve(r, chosen, x)) for name, r in results.items()]
    return draw(lines, (TITLES[x], metrics.title(chosen, first)), band, ax, falling=metrics.is_falling(chosen))


def curve(result: RunResult, metric: Metric, x: str) -> tuple[NDArray[Any], FloatArray]:
    """The points of a curve, (n,), and the values of the runs there, (n_runs, n).

    Where several records have the same number of samples, as in an inner loop, the last counts.
    """
    found, at = metrics.values(result, metric), getattr(result, x)
    if found.ndim != 2:
        raise ValueError(f"metric gives shape {found.shape}, expected one number for each record of each run")
    last = np.append(np.diff(at) > 0, True)
    return at[last], found[:, last]
