"""The results of a grid: one for each cell, labelled by what was varied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.grids import grid_table
from gqlab.lab import frames, metrics
from gqlab.lab.metrics import Metric
from gqlab.lab.results import RunResult, knows_problem
from gqlab.support import checks


class Chosen(Sequence[RunResult]):
    """Some of the results of a sequence, which may load them from disk: they are requested one at a time."""

    def __init__(self, results: Sequence[RunResult], places: NDArray[np.intp]) -> None:
        inner = isinstance(results, Chosen)
        self.source: Sequence[RunResult] = results.source if inner else results  # type: ignore[attr-defined]
        self.places: NDArray[np.intp] = results.places[places] if inner else places  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return Chosen(self.source, self.places[k])
        return self.source[int(self.places[k])]

    def __repr__(self) -> str:
        return f"<{len(self)} results>"


@dataclass(frozen=True, eq=False)
class GridResult:
    """The results of :func:`gqlab.grid`, labelled by their parameters.

    Attributes
    ----------
    results : sequence of RunResult
        One for each cell: problem by problem, algorithm by algorithm, seed by seed. A list, or a sequence that loads
        results on demand, one at a time. Every result knows its problem.
    labels : dict of (n_cells,) arrays
        ``problem`` (its index), ``seed``, ``algorithm`` (its name) and every parameter; NaN where an
        algorithm has no such parameter, or it is not set. Ready for ``pandas.DataFrame(grid.labels)``.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> gq.grid(problem, gq.vary(gq.GreedyGQ, eta_theta=[0.01, 0.1]), n_samples=1000, n_runs=5)
    GridResult: 2 cells, 10 runs, 0 diverged
      all: problem=0, seed=0, algorithm=GreedyGQ, eta_omega=0.01, radius=inf, trace=0
      eta_theta
      0.01
      0.1
    """

    results: Sequence[RunResult]
    labels: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], RunResult]]:
        for k in range(len(self)):
            yield self._label(k), self.results[k]

    def __repr__(self) -> str:
        return grid_table.text_table(self)

    def _repr_html_(self) -> str:
        return grid_table.html_table(self)

    def _label(self, k: int) -> dict[str, Any]:
        """What cell ``k`` is labelled by."""
        return {name: column[k] for name, column in self.labels.items()}

    def select(self, **labels: Any) -> GridResult:
        """The cells with these labels.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> algorithms = gq.vary(gq.VRGreedyGQ, eta_theta=[0.01, 0.02], batch_size=[10, 100])
        >>> grid = gq.grid([problem], algorithms, n_samples=1000, n_runs=5)
        >>> len(grid), len(grid.select(batch_size=100))
        (4, 2)
        """
        keep = np.ones(len(self), dtype=bool)
        for name, value in labels.items():
            if name not in self.labels:
                raise ValueError(f"no label {name!r}, expected one of {', '.join(self.labels)}")
            if checks.plain_array(name, value).ndim:
                raise ValueError(f"{name} is {checks.shown(value)}, expected one value")
            column = self.labels[name]
            try:
                keep &= column != column if value is None else column == value  # NaN where it is not set
            except OverflowError:  # a whole number too large for the column
                keep[:] = False
        return self._cells(np.flatnonzero(keep))

    @knows_problem
    def best(
        self,
        metric: Metric = "gradient",
        *,
        per: str | Iterable[str] = ("problem", "algorithm"),
        largest: bool | None = None,
    ) -> GridResult:
        """The best parameters of each algorithm on each problem, with all their seeds, and a label ``score``.

        A setting's score is the mean of the metric over all its runs under all seeds, at the last record: no seed is
        picked. Of equal scores the first in the grid wins. A run that diverged counts as infinite, and so does NaN:
        a setting with such a run is chosen only if every other has one too, and then its score is infinite.

        Parameters
        ----------
        metric : str or function
            ``"gradient"``, ``"mspbe"``, ``"reward"`` or ``"value"``, exact; of what was watched ``"gradient.lowest"``
            and the like; or a function of a :class:`RunResult` that gives numbers, (n_runs,) or (n_runs, n_records), or
            one number, which is used as it is. A grid that was opened without its problems has only what was watched.
        per : str or sequence of str
            A best setting is chosen for every combination of these labels; with ``"algorithm"`` alone the score is also
            a mean over problems.
        largest : bool, optional
            Whether larger is better; default: for ``"reward"`` and ``"value"``.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> algorithms = gq.vary(gq.GreedyGQ, eta_theta=[1e-4, 0.1, 1000.0])
        >>> grid = gq.grid(problem, algorithms, n_samples=1000, n_runs=5, seeds=[0, 1])
        >>> best = grid.best("gradient")
        >>> len(best), best.labels["eta_theta"]
        (2, array([0.1, 0.1]))
        """
        names = self._names("per", per)
        metric = self._metric(metric)
        more = metrics.is_gain(metric) if largest is None else frames.flag("largest", largest)
        groups: dict[tuple[str, ...], dict[Any, list[int]]] = {}
        for k, setting in enumerate(self._settings()):
            group = groups.setdefault(tuple(str(self.labels[name][k]) for name in names), {})
            group.setdefault(setting, []).append(k)
        scores = np.array([self._score(k, metric, more) for k in range(len(self))])
        chosen: list[int] = []
        means = np.zeros(len(self))
        for group in groups.values():
            cells = min(group.values(), key=lambda places: scores[places].mean())
            means[cells] = scores[cells].mean() * (-1 if more else 1)
            chosen += cells
        out = self._cells(np.array(sorted(chosen), dtype=np.intp))
        return GridResult(out.results, {**out.labels, "score": means[sorted(chosen)]})

    @knows_problem
    def plot(
        self,
        metric: Metric = "gradient",
        *,
        x: str = "samples",
        by: str | Iterable[str] | None = None,
        band: float = 0.8,
        ax: Any = None,
    ) -> Any:
        """Curves of a metric, or its values at the end against a parameter; the axes are returned.

        A line is the median over runs and seeds, its band holds the middle 80 % of them. A run that diverged counts as
        infinite, so that a line ends where half of them have: a cross marks it.

        Parameters
        ----------
        metric : str or function
            As in :meth:`best`.
        x : str
            ``"samples"``, ``"updates"`` or ``"gradient_evaluations"``; or the name of a label whose values are
            numbers, such as ``"eta_theta"``: then the metric at the last record is drawn against it.
        by : str or sequence of str, optional
            The labels whose combinations get a line each; cells that differ only in others are pooled. Default: all
            labels that vary, except the seed.
        band : float
            The share of runs in the band; 0: none.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> grid = gq.grid(problem, gq.vary(gq.GreedyGQ, eta_theta=[0.01, 0.1]), n_samples=1000, n_runs=5)
        >>> ax = grid.plot("gradient", x="eta_theta")
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('eta_theta', '‖∇J(θ)‖²')
        """
        from gqlab.grids.curves import grid_plot

        names = None if by is None else self._names("by", by)
        return grid_plot(self, self._metric(metric), x=x, by=names, band=band, ax=ax)

    @knows_problem
    def to_dataframe(self, metrics: str | Iterable[str] = (), *, iterates: bool = True) -> Any:
        """A ``pandas.DataFrame`` in long form: one row for each record of each run of each cell, with its labels.

        The other columns are those of :meth:`RunResult.to_dataframe`.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> grid = gq.grid(problem, gq.vary(gq.GreedyGQ, eta_theta=[0.01, 0.1]), n_samples=1000, n_runs=5)
        >>> frame = grid.to_dataframe(["gradient", "mspbe"], iterates=False)
        >>> frame.shape, list(frame.columns)[-6:]
        ((20, 16), ['samples', 'updates', 'gradient_evaluations', 'diverged', 'gradient', 'mspbe'])
        """
        return frames.grid_dataframe(self, metrics, iterates)

    def to_parquet(self, path: str | os.PathLike[str]) -> int:
        """Write a Parquet file, and return the number of its rows: one for every record of every run of every cell.

        The columns are those of :meth:`to_dataframe`: ``cell``, the labels, ``run``, ``samples``, ``updates``,
        ``gradient_evaluations``, ``diverged`` (by then), ``gradient_lowest``, ``gradient_mean``, … of what was watched;
        and ``theta`` and ``omega`` as lists. A decaying step size is given by its initial value, with ``…_after``
        and ``…_power`` in further columns. Results on disk are read one at a time, and the file appears whole.

        Examples
        --------
        >>> import gqlab as gq, os, tempfile
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> grid = gq.grid(problem, gq.GreedyGQ(), n_samples=1000, n_runs=5, seeds=range(3))
        >>> grid.to_parquet(os.path.join(tempfile.mkdtemp(), "grid.parquet"))  # 3 cells, 5 runs, 2 records
        30
        """
        from gqlab.grids.export import export_parquet

        return export_parquet(self, path)

    @knows_problem
    def to_xarray(self, metrics: str | Iterable[str] = ()) -> Any:
        """An ``xarray.Dataset``, the results along an axis ``cell`` with the labels as its coordinates.

        Otherwise as :meth:`RunResult.to_xarray`. Cells with fewer records or runs than others are padded: with NaN,
        counts with −1.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> grid = gq.grid(problem, gq.vary(gq.GreedyGQ, eta_theta=[0.01, 0.1]), n_samples=1000, n_runs=5)
        >>> data = grid.to_xarray("gradient")
        >>> dict(data.sizes), data.gradient.dims
        ({'cell': 2, 'run': 5, 'record': 2, 'feature': 4}, ('cell', 'run', 'record'))
        """
        return frames.grid_dataset(self, metrics)

    def _settings(self) -> list[Any]:
        """The algorithm of every cell with its parameters.

        Default step sizes differ from problem to problem: so the k-th setting of an algorithm on one problem counts as
        the k-th on another, if all problems have equally many.
        """
        names = [name for name in self.labels if name not in ("problem", "seed", "score")]
        written = [tuple(str(self.labels[name][k]) for name in names) for k in range(len(self))]
        algorithms = [str(name) for name in self.labels.get("algorithm", [""] * len(self))]
        places: dict[tuple[str, int], dict[Any, int]] = {}
        for k, setting in enumerate(written):
            of_problem = places.setdefault((algorithms[k], int(self.labels["problem"][k])), {})
            of_problem.setdefault(setting, len(of_problem))
        counts: dict[str, set[int]] = {}
        for (algorithm, _), of_problem in places.items():
            counts.setdefault(algorithm, set()).add(len(of_problem))
        return [
            (algorithm, places[algorithm, int(problem)][setting]) if len(counts[algorithm]) == 1 else setting
            for algorithm, problem, setting in zip(algorithms, self.labels["problem"], written, strict=True)
        ]

    def _names(self, argument: str, given: Any) -> list[str]:
        """Names of labels: one or several."""
        names = [given] if isinstance(given, str) else checks.several(argument, given)
        return [checks.one_of(argument, name, self.labels) for name in names]

    def _metric(self, metric: Any) -> Metric:
        return metrics.check_metric(metric, self.results[0] if len(self) else None)

    def _score(self, k: int, metric: Metric, largest: bool) -> float:
        """The mean of a cell's runs, smaller being better; infinite if a run is lost."""
        runs = metrics.final(self.results[k], metric)
        return float((-runs if largest else runs).mean()) if np.isfinite(runs).all() else np.inf

    def _cells(self, places: NDArray[np.intp]) -> GridResult:
        return GridResult(Chosen(self.results, places), {name: c[places] for name, c in self.labels.items()})
