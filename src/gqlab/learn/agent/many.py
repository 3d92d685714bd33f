"""Several seeds of one agent as one object: what they reached, the interquartile mean, and how sure it is."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import trim_mean

from gqlab.algorithms import Algorithm
from gqlab.algorithms.schedules import share
from gqlab.learn.agent.agent import Agent
from gqlab.learn.agent.automatic import algorithm_for
from gqlab.learn.agent.presets import PRESETS, REPLAYING_PRESETS
from gqlab.learn.agent.train import Plan, read_history, train, usual_exploration
from gqlab.learn.environments import Wrapper
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.notebook import html_card
from gqlab.support.progress import progress_bar
from gqlab.support.words import counted
from gqlab.tasks import Engine, Task, engine_of, run_tasks

#: Samples of the bootstrap, and what an interval leaves out on either side.
RESAMPLES, TAIL = 2000, 2.5

#: The share of seeds that the interquartile mean leaves out at either end.
TRIMMED = 0.25


def interquartile_mean(scores: FloatArray) -> Any:
    """The mean of the middle half of the seeds, along the first axis.

    Examples
    --------
    >>> float(interquartile_mean(np.array([0.0, 5.0, 7.0, 100.0])))
    6.0
    """
    return trim_mean(scores, TRIMMED, axis=0)


def bootstrap_interval(scores: FloatArray, seed: int = 0) -> tuple[Any, Any]:
    """The 95 % interval of the interquartile mean, by resampling seeds: percentiles, as rliable has them."""
    n = len(scores)
    drawn = np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))
    means = trim_mean(scores[drawn], TRIMMED, axis=1)
    return np.percentile(means, TAIL, axis=0), np.percentile(means, 100 - TAIL, axis=0)


@dataclass(frozen=True, repr=False)
class Seeds:
    """What several seeds of one agent reached.

    Attributes
    ----------
    env : str
    seeds : (n_seeds,) array
    steps : (n_checks,) array
        The steps after which the greedy policy was played.
    curves : (n_seeds, n_checks) array
        Its mean return each time.
    returns : (n_seeds, n_episodes) array
        Of the episodes at the end.
    folder : Path
        Where every seed has a folder, with its agent and its model.
    threshold : float or None
        The return from which on the environment counts as solved.
    """

    env: str
    seeds: NDArray[np.int64]
    steps: NDArray[np.int64]
    curves: FloatArray
    returns: FloatArray
    folder: Path
    threshold: float | None = None

    @property
    def means(self) -> FloatArray:
        """The mean return of each seed at the end, (n_seeds,)."""
        return self.returns.mean(axis=1)

    @property
    def iqm(self) -> float:
        """The interquartile mean of these."""
        return float(interquartile_mean(self.means))

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % bootstrap interval over seeds."""
        low, high = bootstrap_interval(self.means)
        return float(low), float(high)

    def agent(self, seed: int) -> Agent:
        """The agent of a seed."""
        return Agent.load(self._of(seed) / "agent.npz")

    def model(self, seed: int) -> Any:
        """The model of a seed."""
        from gqlab.learn.linear_q import LinearQ

        return LinearQ.load(self._of(seed) / "model.npz")

    def _of(self, seed: int) -> Path:
        if seed not in self.seeds:
            raise ValueError(f"seed is {seed}, expected one of {', '.join(map(str, self.seeds.tolist()))}")
        return folder_of(self.folder, seed)

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """The interquartile mean of the return against steps, with its interval; the seeds in thin lines.

        Returns the Axes of Matplotlib; a second call on the same ones adds a curve.
        """
        from gqlab.plots.curves import draw_seeds

        middle, (low, high) = interquartile_mean(self.curves), bootstrap_interval(self.curves)
        return draw_seeds(self.steps, self.curves, (low, middle, high), ax, label, self.threshold, len(self.seeds))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        low, high = self.interval
        found = {"env": self.env, "seeds": self.seeds.tolist(), "steps": self.steps.tolist()}
        found |= {"curves": self.curves.tolist(), "returns": self.returns.tolist(), "means": self.means.tolist()}
        return found | {"iqm": self.iqm, "low": low, "high": high, "threshold": self.threshold}

    @property
    def sentence(self) -> str:
        """What was reached, in one sentence."""
        (low, high), n = self.interval, counted(len(self.seeds), "seed")
        return (
            f"{self.env}: the interquartile mean of the return over {n} is {self.iqm:.1f}, with the 95 % interval "
            f"{low:.1f} to {high:.1f}, after {counted(int(self.steps[-1]), 'step')}"
        )

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Seeds({self.env!r}, {counted(len(self.seeds), 'seed')}, iqm={self.iqm:.4g} [{low:.4g}, {high:.4g}])"

    def _repr_html_(self) -> str:
        """For notebooks."""
        each = {f"seed {seed}": f"{mean:.4g}" for seed, mean in zip(self.seeds, self.means, strict=True)}
        return html_card(self.sentence, each)


def learn_many(
    env: str,
    encoder: Any = None,
    algorithm: Algorithm | None = None,
    *,
    seeds: Iterable[int] | int = 10,
    total_timesteps: int = 100_000,
    every: int | None = None,
    n_episodes: int = 50,
    folder: str | os.PathLike[str] | None = None,
    engine: str | Engine = "processes",
    workers: int | None = None,
    progress: bool | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Iterable[Wrapper] = (),
    code: Iterable[str | os.PathLike[str]] = (),
    **settings: Any,
) -> Seeds:
    """Learn with several seeds, each in a process of its own, and keep all of it on disk: the same call goes on.

    Parameters
    ----------
    env : str
        The id of a Gymnasium environment. In a process it is made anew: an environment of your own must be registered
        by a module that its id names (``"module:Id"``), or by a file of ``code``.
    encoder, algorithm : optional
        As of :class:`gqlab.Agent`. Default of both: the environment's preset, where it has one.
    seeds : iterable of int, or int
        The seeds, or how many, from 0 on.
    total_timesteps : int
        The steps of each.
    every : int, optional
        Steps between two plays of the greedy policy. Default: a tenth.
    n_episodes : int
        Played at the end; on the way a fifth of them.
    folder : path, optional
        Default: a folder in ``results/seeds`` that is named by the environment and a digest of everything else.
    engine, workers
        As of :func:`gqlab.grid`. In a script, a call with processes stands under ``if __name__ == "__main__":``.
    env_kwargs, wrappers : optional
        Keywords of the environment; (name, keywords) of wrappers in ``gymnasium.wrappers``.
    code : paths, optional
        Python files of your own that register environments.
    **settings
        ``discount``, ``epsilon``, ``replay``, ``initial_value`` of :class:`gqlab.Agent`.

    Returns
    -------
    Seeds

    Examples
    --------
    >>> import gqlab as gq, tempfile
    >>> found = gq.learn_many("CartPole-v1", seeds=2, total_timesteps=200, n_episodes=5, folder=tempfile.mkdtemp(),
    ...                       engine="threads")
    >>> found.curves.shape, found.returns.shape
    ((2, 10), (2, 5))
    """
    total = checks.integer("total_timesteps", total_timesteps, least=1, below=2**48)
    kept = {"env_kwargs": dict(env_kwargs or {}), "wrappers": tuple((name, dict(more)) for name, more in wrappers)}
    plan = plan_for(env, encoder, algorithm, total, **kept, **settings)
    plan = replace(
        plan,
        every=max(1, total // 10) if every is None else checks.integer("every", every, least=1, below=2**48),
        n_episodes=checks.integer("n_episodes", n_episodes, least=1, below=2**31),
    )
    place = Path("results/seeds") / slug_of(plan) if folder is None else Path(checks.path("folder", folder))
    engine = engine_of(engine, workers)
    return learn_seeds(plan, seeds_of(seeds), place, engine, progress, tuple(map(str, code)))


def seeds_of(seeds: Any) -> list[int]:
    """The seeds, each once."""
    given = range(checks.integer("seeds", seeds, least=1, below=2**20)) if isinstance(seeds, int) else list(seeds)
    found = [checks.integer(f"seeds[{k}]", seed, least=0, below=2**63) for k, seed in enumerate(given)]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"seeds is {checks.shown(seeds)}, expected different seeds")
    return found


def plan_for(env: Any, encoder: Any, algorithm: Algorithm | None, steps: int, **settings: Any) -> Plan:
    """A plan with the environment's preset where nothing is chosen."""
    if not isinstance(env, str):
        raise ValueError(f"env is {checks.shown(env)}, expected an id: every process makes its own")
    replay = settings.get("replay")
    preset = (PRESETS if replay is None else REPLAYING_PRESETS).get(env)
    begun: dict[str, Any] = {"discount": 0.99, "epsilon": usual_exploration(steps)}
    if preset is not None and encoder is None and algorithm is None:
        begun = preset.arguments()
        if replay is None:
            begun["epsilon"] = usual_exploration(steps)
        encoder, algorithm = begun.pop("encoder"), begun.pop("algorithm")
    known = {"discount", "epsilon", "replay", "initial_value", "env_kwargs", "wrappers"}
    for name in settings:
        if name not in known:
            raise TypeError(f"learn_many() got an unexpected keyword argument {name!r}")
    algorithm = algorithm_for(replay) if algorithm is None else algorithm
    arguments = {**begun, **settings}
    arguments["epsilon"] = share("epsilon", arguments["epsilon"])
    made = Plan(env, encoder, algorithm, seed=0, steps=steps, every=steps, n_episodes=1, **arguments)
    return replace(made, threshold=made.world.threshold)


def slug_of(plan: Plan) -> str:
    """A name for a plan's folder: the environment, and a digest of what must be the same to resume."""
    settings = {name: value for name, value in plan.settings().items() if name != "seed"}
    digest = hashlib.sha256(json.dumps(settings, default=str).encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', plan.env)}-{digest}"


def folder_of(folder: Path, seed: int) -> Path:
    """Where a seed is kept."""
    return folder / f"seed-{seed}"


def learn_seeds(
    plan: Plan, seeds: list[int], folder: Path, engine: Engine, progress: bool | None, code: tuple[str, ...] = ()
) -> Seeds:
    """What the seeds of a plan reached; those that are finished are only read."""
    plan.world.make().close()  # what is wrong with the environment is said at once
    found: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}
    with engine, progress_bar(progress, total=len(seeds), unit=" seeds") as bar:
        engine.prepare(
            {"plan": plan, "folder": str(folder.resolve()), "code": [os.path.abspath(path) for path in code]}
        )
        for task, outcome in run_tasks(engine, [Task(learn_seed, (seed,)) for seed in seeds]):
            if outcome.error:
                raise ValueError(f"seed {task.arguments[0]}: {outcome.error}")
            found[task.arguments[0]] = outcome.value
            bar.update(1)
    steps, curves, returns = (np.array([found[seed][k] for seed in seeds]) for k in range(3))
    return Seeds(plan.env, np.array(seeds), steps[0].astype(np.int64), curves, returns, folder, plan.threshold)


def learn_seed(shared: Mapping[str, Any], seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What a worker does: (steps, mean returns) of the checks of a seed, and its returns at the end."""
    from gqlab.support.own_files import import_file

    for path in shared["code"]:
        import_file(Path(path))
    plan: Plan = replace(shared["plan"], seed=seed)
    folder = folder_of(Path(shared["folder"]), seed)
    _, evaluation = train(plan, folder, progress=False)
    history = [row for row in read_history(folder) if row["steps"] <= plan.steps]
    steps, means = (np.array([row[name] for row in history]) for name in ("steps", "mean"))
    return steps, means, evaluation.returns
