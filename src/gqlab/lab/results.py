"""What a run leaves: its recorded iterates, its counts, and all that is needed to resume it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab import algorithms
from gqlab.algorithms import Algorithm
from gqlab.engine.cells import DTYPES
from gqlab.engine.ranges import check_saved
from gqlab.engine.records import record_count, recorded_updates
from gqlab.estimators.base import NEVER
from gqlab.lab.floor import floor_multiple
from gqlab.measure.watch import QUANTITIES, Watch, Watched
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import one_line, read_arrays, write_arrays
from gqlab.support.notebook import html_card
from gqlab.support.renamed import without

#: Written into every file, and required when it is read.
FORMAT = "gqlab run result 2"
#: The format of the first release: no watches, and no memory of estimators.
FIRST_FORMAT = "gqlab run result 1"

#: A decorator of what was once given the problem, too.
knows_problem = without(Problem, "a result knows its problem, leave it out")

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
        The rest of what ``resume`` needs: the position of the stream, and the memory of the estimator and the watches.
    metadata : dict
        Algorithm, problem fingerprint, seed, settings, versions.
    problem : Problem or None
        The problem that was run, not a copy. Files do not hold it: see :meth:`load` and :meth:`with_problem`.
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
    problem: Problem | None = field(default=None, repr=False)

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

    def _repr_html_(self) -> str:
        """For notebooks."""
        n_runs, n_records, d = self.theta.shape
        facts = {
            "runs": f"{n_runs:,}",
            "updates of each": f"{self.updates[-1]:,}",
            "samples of each": f"{self.samples[-1]:,}",
            "records": f"{n_records:,} of {d} weights",
            "diverged": f"{int(self.diverged.sum()):,}",
            "watched": ", ".join(self.watched) or "nothing",
        }
        return html_card(repr(self.algorithm), facts)

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
        write_arrays(Path(checks.path("path", path)), {"metadata": np.array(text), **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, problem: Problem | None = None) -> RunResult:
        """Read what :meth:`save` wrote; ``ValueError`` if the file is something else, or damaged.

        No code is run, whatever the file holds. With ``problem``, the one that was run, exact metrics can be asked for.
        """
        name = checks.path("path", path)
        try:
            content: dict[str, Any] = read_arrays(name, sealed=False)
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
        except OSError:
            raise
        except Exception as error:
            raise ValueError(f"{name} is not a result that gqlab saved ({one_line(error)})") from None
        return result if problem is None else result.with_problem(problem)

    def with_problem(self, problem: Problem) -> RunResult:
        """This result, knowing its problem again: for one that was loaded from a file.

        ``ValueError`` unless the problem is the one that was run, by its fingerprint. The arrays are shared.

        Examples
        --------
        >>> import gqlab as gq, tempfile, os
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> path = os.path.join(tempfile.mkdtemp(), "result.npz")
        >>> gq.run(problem, gq.GreedyGQ(), n_samples=1000, n_runs=2).save(path)
        >>> result = gq.RunResult.load(path).with_problem(problem)  # or load(path, problem=problem)
        >>> result.to_dataframe("mspbe").mspbe.round(4).tolist()
        [0.1941, 0.1495, 0.1941, 0.1483]
        """
        checks.instance("problem", problem, Problem, "a Problem")
        if self.metadata["problem"] != problem.fingerprint or self.theta.shape[-1] != problem.dim:
            raise ValueError(f"problem is {problem!r}, which is not the one of this result")
        return replace(self, problem=problem)

    def known_problem(self, purpose: str) -> Problem:
        """The problem; ``ValueError`` that names what needs it where the result was loaded without it."""
        if self.problem is None:
            raise ValueError(f"{purpose} needs the problem, and files do not hold it: use result.with_problem(problem)")
        return self.problem

    @knows_problem
    def floor_multiple(self) -> float:
        """How many times above its statistical floor the last record is: the mean of ‖∇J‖² over that of the floors.

        The floor of a run is ‖∇J‖² at the stationary point of the objective of its own samples, found from its first or
        last θ: see :func:`gqlab.floor`. ``ValueError`` if no such point is found.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> saga, vr = (gq.run(problem, a, n_samples=300_000, n_runs=5) for a in (gq.SAGAGreedyGQ(), gq.VRGreedyGQ()))
        >>> saga.floor_multiple() < 1.2, vr.floor_multiple() > 5
        (True, True)
        """
        return floor_multiple(self.known_problem("floor_multiple"), self)

    @knows_problem
    def plot(
        self,
        metric: Any = "gradient",
        *,
        x: str = "samples",
        band: float = 0.8,
        label: str | None = None,
        ax: Any = None,
    ) -> Any:
        """The curve of a metric: its median over the runs, and a band that holds most of them. The axes are returned.

        A run that diverged counts as infinite from there on: the line ends where half of them have, with a cross.

        Parameters
        ----------
        metric : str or function
            ``"gradient"`` (‖∇J‖²), ``"mspbe"`` (J), ``"reward"`` or ``"value"`` of the policy, exact at every record;
            of what was watched ``"gradient.mean"``, ``"gradient.lowest"`` and ``"gradient.largest"``, over all updates
            so far; or a function of the result that gives numbers (n_runs, n_records). A result that was loaded without
            its problem has only what was watched: there ``"gradient"`` is the mean.
        x : "samples", "updates" or "gradient_evaluations"
        band : float
            The share of runs in the band; 0: none.
        label : str, optional
            The name in the legend.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> result = gq.run(problem, gq.GreedyGQ(), n_samples=1000, n_runs=2)
        >>> ax = result.plot("gradient")
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('samples', '‖∇J(θ)‖²')
        """
        from gqlab.lab.curves import result_plot

        return result_plot(self, metric, x=x, band=band, label=label, ax=ax)

    @knows_problem
    def to_dataframe(self, metrics: str | Iterable[str] = (), *, iterates: bool = True) -> Any:
        """A ``pandas.DataFrame`` in long form: one row for each record of each run.

        Columns: ``run``, the counts, ``diverged`` (whether it had by then); the exact ``metrics``, any of ``gradient``
        (‖∇J‖²), ``mspbe`` (J), ``reward`` and ``value``, infinite once a run has diverged; what was watched
        (``gradient_lowest``, ``gradient_mean``, …); with ``iterates`` the entries of θ and ω.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> result = gq.run(problem, gq.GreedyGQ(), n_samples=1000, n_runs=2)
        >>> result.to_dataframe("mspbe", iterates=False).round(4)
           run  samples  updates  gradient_evaluations  diverged   mspbe
        0    0        0        0                     0     False  0.1941
        1    0     1000     1000                  1000     False  0.1495
        2    1        0        0                     0     False  0.1941
        3    1     1000     1000                  1000     False  0.1483
        """
        from gqlab.lab.frames import dataframe

        return dataframe(self, metrics, iterates)

    @knows_problem
    def to_xarray(self, metrics: str | Iterable[str] = ()) -> Any:
        """An ``xarray.Dataset`` with the axes ``run``, ``record`` and ``feature``, and the counts as coordinates.

        It holds θ, ω, the exact ``metrics`` as in :meth:`to_dataframe`, what was watched, the output and which runs
        diverged; its attributes are the metadata as text.

        Examples
        --------
        >>> import gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> data = gq.run(problem, gq.GreedyGQ(), n_samples=1000, n_runs=2).to_xarray("gradient")
        >>> dict(data.sizes), list(data.data_vars)
        ({'run': 2, 'record': 2, 'feature': 4}, ['theta', 'omega', 'gradient', 'output', 'diverged'])
        """
        from gqlab.lab.frames import dataset

        return dataset(self, metrics)

    def watched_columns(self) -> NDArray[Any]:
        """What was watched as the engine records it, (n_runs, n_records, 3 · quantities)."""
        n_runs, n_records, _ = self.theta.shape
        columns = np.full((n_runs, n_records, len(QUANTITIES), 3), np.nan)
        for name, seen in self.watched.items():
            columns[:, :, QUANTITIES.index(name)] = np.stack(seen, axis=-1)
        return columns.reshape(n_runs, n_records, -1)

    def check(self) -> None:
        """``ValueError`` unless every array and number is one that :func:`gqlab.run` can give.

        Compiled code trusts them, so a result that was loaded or changed is checked before it is resumed.
        """
        try:
            self._check_arrays()
            self._check_counts()
            self._check_memory()
        except Exception as error:
            raise ValueError(one_line(error)) from None

    def _check_arrays(self) -> None:
        n_runs, n_records, d = self.theta.shape
        if self.metadata["dtype"] not in DTYPES or 0 in self.theta.shape:
            raise ValueError(f"theta is {self.metadata['dtype']!r}{self.theta.shape}")
        number = np.dtype(self.metadata["dtype"])
        count, state = np.dtype(np.int64), np.dtype(np.uint32)
        wanted = {
            **dict.fromkeys(("theta", "omega"), ((n_runs, n_records, d), number)),
            **dict.fromkeys(("samples", "updates", "gradient_evaluations"), ((n_records,), count)),
            "output": ((n_runs, d), number),
            **dict.fromkeys(("output_update", "diverged_at", "next_output"), ((n_runs,), count)),
            "state": ((n_runs,), state),
            "memory theta": ((n_runs, d), number),
        }
        arrays = {name: getattr(self, name) for name in PLAIN_FIELDS} | {"memory theta": self.memory["theta"]}
        for name, seen in self.watched.items():
            wanted[name] = (3, n_runs, n_records), np.dtype(np.float64)
            arrays[name] = np.stack(seen)
        for name, (shape, dtype) in wanted.items():
            array = arrays[name]
            if not isinstance(array, np.ndarray) or (array.shape, array.dtype) != (shape, dtype):
                raise ValueError(f"{name} is {array.dtype}{array.shape}, expected {dtype}{shape}")
            if dtype == number and name not in self.watched:
                checks.finite(name, array)

    def _check_counts(self) -> None:
        metadata, last = self.metadata, int(self.updates[-1])
        every = checks.integer("record_every", metadata["record_every"], least=1)
        checks.integer("seed", metadata["seed"], least=0, below=2**64)
        checks.integer("n_samples", metadata["n_samples"], least=1)
        checks.integer("updates", last, least=0, below=2**48)
        # The number of records first: the file may claim more updates than memory holds.
        if record_count(last, every) != len(self.updates):
            raise ValueError(f"{len(self.updates)} records of {last} updates, one for {every}")
        for name, values in (
            ("updates", recorded_updates(last, every)),
            ("samples", self.algorithm.samples(self.updates)),
            ("gradient_evaluations", self.algorithm.gradient_evaluations(self.updates)),
        ):
            if not np.array_equal(getattr(self, name), values):
                raise ValueError(f"{name} are not those of a run")
        if self.algorithm.n_updates(int(self.samples[-1])) != last:
            raise ValueError(f"no run of {self.algorithm!r} ends after {last} updates")
        for name, least, below in (
            ("next_output", last, NEVER + 1),
            ("output_update", 0, last),
            ("diverged_at", -1, last),
        ):
            values = getattr(self, name)
            if (values < least).any() or (values >= below).any():
                raise ValueError(f"{name} is not between {least} and {below - 1}")
        if [Watch(**watch).quantity for watch in metadata["watch"]] != list(self.watched):
            raise ValueError("what was watched is not what metadata says")
        for name, kind in (("problem", str), ("versions", dict)):
            checks.instance(name, metadata[name], kind, f"a {kind.__name__}")

    def _check_memory(self) -> None:
        """Results of before 0.2 do not say of what sizes they are: theirs is checked where they are resumed."""
        sizes = self.metadata.get("sizes")
        if sizes is not None:
            check_saved(self, self.algorithm, sizes)


def check_result(name: str, value: object) -> None:
    """``ValueError`` unless ``value`` is a result that a run can give."""
    checks.instance(name, value, RunResult, "a RunResult")
    try:
        value.check()  # type: ignore[attr-defined]
    except ValueError as error:
        raise ValueError(f"{name}: that result is not one of gqlab.run's ({error})") from None


def _inside(prefix: str, content: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in content.items() if name.startswith(prefix)}
