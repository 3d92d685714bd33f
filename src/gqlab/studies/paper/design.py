"""What an experiment is made of: entries, parts, views. Plain data, which :mod:`.experiments` fills in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gqlab.algorithms import ActorCritic, Algorithm, GreedyGQ, PolicyGradient, QLearning, VRGreedyGQ
from gqlab.studies.paper.jobs import Job
from gqlab.studies.paper.problems import ProblemSpec

#: Problems of a family, and runs on each; in a quick run.
N_PROBLEMS, N_RUNS = 24, 10
N_PROBLEMS_QUICK, N_RUNS_QUICK = 3, 2

#: Where step sizes are tuned: problems of the seed of development, with numbers that no population reaches.
TUNING_SEED, TUNING_FIRST, TUNING_PROBLEMS = 1, 50, 12

NAMES: dict[type[Algorithm], str] = {
    GreedyGQ: "Greedy-GQ",
    VRGreedyGQ: "VR-Greedy-GQ",
    ActorCritic: "actor-critic",
    PolicyGradient: "policy gradient",
    QLearning: "Q-learning",
}

#: M of the paper's experiments: a VR-Greedy-GQ with another one carries it in its name.
BATCH_SIZE = 3000


def label(algorithm: Algorithm) -> str:
    """The name under which an algorithm is drawn and compared."""
    name = NAMES[type(algorithm)]
    if isinstance(algorithm, VRGreedyGQ) and algorithm.batch_size != BATCH_SIZE:
        return f"{name}, M = {algorithm.batch_size}"
    return name


@dataclass(frozen=True)
class Contender:
    """An algorithm with a budget of samples; ``name`` where it is not the algorithm's own.

    ``thin`` and ``windows`` are as in a job. ``most_runs`` bounds the runs of an entry that only stands beside.
    """

    algorithm: Algorithm
    n_samples: int
    record_every: int
    thin: int = 1
    windows: tuple[tuple[int, int], ...] = ()
    name: str = ""
    most_runs: int = N_RUNS

    @property
    def label(self) -> str:
        return self.name or label(self.algorithm)


@dataclass(frozen=True)
class ExperimentPart:
    """Algorithms that are measured alike, and compared.

    ``problems`` says on what: the "population", the problems for "tuning", or "one".
    """

    name: str
    entries: tuple[Contender, ...]
    metrics: tuple[str, ...]
    watch: str = ""
    problems: str = "population"

    def entry(self, name: str) -> Contender:
        """The entry of that label."""
        return next(entry for entry in self.entries if entry.label == name)


@dataclass(frozen=True)
class View:
    """A panel of a figure: metrics of one part, against an axis, up to ``end`` of it.

    ``style`` is "curves", "running" (percentiles of all values within an epoch, for what rises and falls in each), or
    "batch" (the mean over the last tenth of the run against M). ``dashed`` is a second metric, as dashed lines;
    ``only`` names the algorithms that are drawn, where not all are; ``mean`` asks for means in place of medians.
    """

    title: str
    part: str
    metric: str
    y: str
    x: str = "gradient_evaluations"
    end: float = float("inf")
    log_y: bool = True
    style: str = "curves"
    dashed: str = ""
    only: tuple[str, ...] = ()
    mean: bool = False


@dataclass(frozen=True)
class Experiment:
    """What is run, what is drawn, and what the paper says of it. The first view goes into the paper's figure."""

    name: str
    figure: str
    title: str
    family: str
    says: str
    parts: tuple[ExperimentPart, ...]
    views: tuple[View, ...]
    caption: str

    def part(self, name: str) -> ExperimentPart:
        """The part of that name."""
        return next(part for part in self.parts if part.name == name)


@dataclass(frozen=True)
class Request:
    """What a call asks for: the size, the seed, the kind of lake and the device."""

    quick: bool = False
    seed: int = 1
    slippery: bool = True
    device: str = "cpu"

    @property
    def n_problems(self) -> int:
        """Of a population."""
        return N_PROBLEMS_QUICK if self.quick else N_PROBLEMS

    @property
    def n_runs(self) -> int:
        """On each problem."""
        return N_RUNS_QUICK if self.quick else N_RUNS

    def numbers(self, part: ExperimentPart) -> range:
        """The numbers of a part's problems."""
        if part.problems == "tuning":
            return range(TUNING_FIRST, TUNING_FIRST + (1 if self.quick else TUNING_PROBLEMS))
        return range(1 if part.problems == "one" else self.n_problems)

    def sized(self, entry: Contender) -> Contender:
        """The entry as this request runs it."""
        return entry

    def job(self, experiment: Experiment, part: ExperimentPart, entry: Contender, number: int) -> Job:
        """``entry`` on problem ``number``."""
        tuning = part.problems == "tuning"
        size = self.sized(entry)
        return Job(
            problem=ProblemSpec(experiment.family, number, TUNING_SEED if tuning else self.seed, self.slippery),
            algorithm=size.algorithm,
            n_samples=size.n_samples,
            n_runs=min(size.most_runs, self.n_runs),
            record_every=size.record_every,
            metrics=part.metrics,
            watch=part.watch,
            thin=size.thin,
            windows=size.windows,
            device=self.device,
        )

    def places(self, experiment: Experiment) -> Iterator[tuple[ExperimentPart, int, Contender]]:
        """All that an experiment measures, problem by problem."""
        for part in experiment.parts:
            for number in self.numbers(part):
                for entry in part.entries:
                    yield part, number, entry

    def jobs(self, experiment: Experiment) -> list[Job]:
        """All jobs of an experiment, in the order of its places."""
        return [self.job(experiment, part, entry, number) for part, number, entry in self.places(experiment)]
