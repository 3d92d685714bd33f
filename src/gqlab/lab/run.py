"""``run``: many independent runs of one algorithm on one problem."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from gqlab.algorithms import Algorithm, check_algorithm
from gqlab.engine.cells import Cell, Settings, precision
from gqlab.lab.execute import execute
from gqlab.lab.results import RunResult, check_result
from gqlab.measure.watch import Watch, watches
from gqlab.problems.problem import Problem
from gqlab.support import checks

DEFAULT_RUNS, DEFAULT_SEED, DEFAULT_RECORD_EVERY = 40, 0, 1000


def run(
    problem: Problem,
    algorithm: Algorithm,
    n_samples: int = 100_000,
    *,
    n_runs: int | None = None,
    seed: int | None = None,
    theta0: ArrayLike | None = None,
    omega0: ArrayLike | None = None,
    record_every: int | None = None,
    device: str = "cpu",
    resume: RunResult | None = None,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    watch: Watch | Iterable[Watch] | None = None,
) -> RunResult:
    """Run ``algorithm`` on ``problem``, ``n_runs`` times, each on a trajectory of its own.

    Run k of a seed is the same whatever ``n_runs``, ``threads`` and ``record_every`` are; a ``watch`` changes at most
    its last digits, since it is compiled differently.

    Parameters
    ----------
    problem : Problem
    algorithm : Algorithm
        ``GreedyGQ``, ``VRGreedyGQ``, ``QRC``; the family at the statistical floor: ``AveragedGreedyGQ``,
        ``SAGAGreedyGQ``, ``StreamingGreedyGQ``, ``LeastSquaresGreedyGQ``, ``STORMGreedyGQ``, ``SARAHGreedyGQ``,
        ``NestedGreedyGQ``; for comparison: ``QLearning``, ``SAGAQLearning``, ``ActorCritic``, ``PolicyGradient``;
        or one of your own. Others need what a finite MDP does not offer: docs/algorithms.md has the table.
    n_samples : int
        The budget of each run; VR-Greedy-GQ takes the whole batches that fit.
    n_runs : int
        Default 40.
    seed : int
        Default 0.
    theta0, omega0 : (d,) or (n_runs, d) array, optional
        Where the runs begin, inside the ball; default zeros.
    record_every : int
        Updates between two records, default 1000; the first and the last point are always recorded.
    device : "cpu" or "cuda"
        On a GPU each run is one thread: worth it from a few thousand runs on. Random numbers are the same.
    resume : RunResult, optional
        Resume from there: the result is, bit for bit, that of one uninterrupted call with this ``n_samples``.
        ``n_runs``, ``seed``, ``record_every``, ``dtype``, ``watch`` and the first points come from it.
    dtype : "float64" or "float32", optional
        The precision of the updates, default "float64". In "float32" a batch mean keeps about 7 − log₁₀ M digits.
    threads : int, optional
        On the CPU; default: all cores.
    progress : bool, optional
        A progress bar on stderr. Default: where stderr is a terminal, once the work has taken a second.
    watch : Watch or several, optional
        What to look at after every update, inside the loop: see :class:`gqlab.Watch`. It goes to ``result.watched``.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> result = gq.run(problem, gq.VRGreedyGQ(batch_size=300), n_samples=3000, n_runs=8)
    >>> result.theta.shape, result.updates.tolist(), result.gradient_evaluations.tolist()
    ((8, 4, 4), [0, 1000, 2000, 3000], [0, 3200, 6100, 9000])
    """
    checks.instance("problem", problem, Problem, "a Problem")
    check_algorithm("algorithm", algorithm)
    algorithm = algorithm.for_problem(problem)
    given = {
        "n_runs": None if n_runs is None else checks.integer("n_runs", n_runs, least=1),
        "seed": None if seed is None else checks.integer("seed", seed, least=0, below=2**64),
        "record_every": None if record_every is None else checks.integer("record_every", record_every, least=1),
        "dtype": None if dtype is None else precision(dtype),
        "watch": None if watch is None else watches(watch),
    }
    known: dict[str, Any] = {
        "n_runs": DEFAULT_RUNS,
        "seed": DEFAULT_SEED,
        "record_every": DEFAULT_RECORD_EVERY,
        "dtype": "float64",
        "watch": (),
    }
    if resume is not None:
        known = _known(resume, problem, algorithm)
        for name, value in given.items():
            if value is not None and value != known[name]:
                raise ValueError(f"resume: that result has {name} = {known[name]}, not {value}")
        if theta0 is not None or omega0 is not None:
            raise ValueError("theta0 and omega0 come from the result that is resumed: leave them out")
    final: dict[str, Any] = {name: known[name] if value is None else value for name, value in given.items()}
    cell = Cell(
        problem=0,
        algorithm=algorithm,
        seed=final["seed"],
        n_runs=final["n_runs"],
        theta0=theta0,
        omega0=omega0,
        resume=resume,
    )
    settings = Settings(
        n_samples, final["record_every"], device=device, dtype=final["dtype"], threads=threads, progress=progress,
        watch=final["watch"],
    )  # fmt: skip
    [result] = execute([problem], [cell], settings)
    return result


def _known(resume: RunResult, problem: Problem, algorithm: Algorithm) -> dict[str, Any]:
    """The settings of the result to be resumed, which must be of this problem and algorithm."""
    check_result("resume", resume)
    if resume.metadata["problem"] != problem.fingerprint or resume.theta.shape[-1] != problem.dim:
        raise ValueError("resume: that result is of another problem")
    if resume.algorithm != algorithm:
        raise ValueError(f"resume: that result is of {resume.algorithm!r}, not of {algorithm!r}")
    if (resume.state >= problem.mdp.n_states).any() or problem.mdp.terminal[resume.state].any():
        raise ValueError("resume: that result has a state that the problem does not have, or a terminal one")
    return {
        "n_runs": len(resume.theta),
        **{name: resume.metadata[name] for name in ("seed", "record_every", "dtype")},
        "watch": tuple(Watch(**values) for values in resume.metadata["watch"]),
    }
