"""The results of a grid: one for each cell, labelled by what was varied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from gqlab import checks
from gqlab.results import RunResult


class Chosen(Sequence[RunResult]):
    """Some of the results of a sequence, which are asked for one at a time: it may load them from a disk."""

    def __init__(self, results: Sequence[RunResult], places: NDArray[np.intp]) -> None:
        inner = isinstance(results, Chosen)
        self.source: Sequence[RunResult] = results.source if inner else results  # type: ignore[attr-defined]
        self.places: NDArray[np.intp] = results.places[places] if inner else places  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, k: int) -> RunResult: ...
    @overload
    def __getitem__(self, k: slice) -> Chosen: ...
    def __getitem__(self, k: int | slice) -> RunResult | Chosen:
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
        a result when it is asked for: one at a time is ever asked for.
    labels : dict of (n_cells,) arrays
        ``problem`` (its place in the list), ``seed``, ``algorithm`` (its name) and every parameter; NaN where an
        algorithm has no such parameter. Ready for ``pandas.DataFrame(grid.labels)``.
    """

    results: Sequence[RunResult]
    labels: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], RunResult]]:
        for k in range(len(self)):
            yield self._label(k), self.results[k]

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
        >>> algorithms = gq.sweep(gq.VRGreedyGQ, eta_theta=[0.01, 0.02], batch_size=[10, 100])
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
            keep &= self.labels[name] == value
        return self._cells(np.flatnonzero(keep))

    def _cells(self, places: NDArray[np.intp]) -> GridResult:
        return GridResult(Chosen(self.results, places), {name: c[places] for name, c in self.labels.items()})
