"""What an experiment is made of: budgets, parts, views. Plain data, filled in by :mod:`gqlab.paper.experiments`."""

from __future__ import annotations

from dataclasses import dataclass

from gqlab.algorithms import ActorCritic, Algorithm, GreedyGQ, PolicyGradient, QLearning, VRGreedyGQ
from gqlab.paper.jobs import Job
from gqlab.paper.problems import ProblemSpec

#: Problems of a family beyond the paper's own setting; in a quick run.
N_FURTHER, N_FURTHER_QUICK = 20, 3

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
class Budget:
    """``n`` samples (or iterations), a record every so many updates, ``n_runs`` runs."""

    n: int
    record_every: int
    n_runs: int


@dataclass(frozen=True)
class Part:
    """Algorithms under one budget: in the paper's setting, on the further problems, and in a quick run.

    ``unit`` says what the budget counts: "samples" or "iterations".
    """

    name: str
    algorithms: tuple[Algorithm, ...]
    metrics: tuple[str, ...]
    paper: Budget
    further: Budget
    quick: Budget
    unit: str = "samples"

    def n_samples(self, algorithm: Algorithm, n: int) -> int:
        """The samples of a run; a budget of iterations buys whole batches."""
        if self.unit == "samples":
            return n
        if isinstance(algorithm, PolicyGradient):
            return n * algorithm.samples_per_update
        whole = max(algorithm.batch_size, 1)
        return -(-n // whole) * whole


@dataclass(frozen=True)
class View:
    """A panel of a figure: one metric of one part, against an axis.

    ``running`` is "min" or "max" for the best value so far. ``style`` is "curves", "split" (bias² beside the variance)
    or "batch" (the mean over the last tenth of the run against M).
    """

    title: str
    part: str
    metric: str
    y: str
    x: str = "gradient_evaluations"
    running: str = ""
    log_y: bool = True
    style: str = "curves"


@dataclass(frozen=True)
class Experiment:
    """What is run, what is drawn, and what the paper says of it."""

    name: str
    figure: str
    title: str
    family: str
    says: str
    parts: tuple[Part, ...]
    views: tuple[View, ...]
    caption: str

    def part(self, name: str) -> Part:
        """The part of that name."""
        return next(part for part in self.parts if part.name == name)


@dataclass(frozen=True)
class Scale:
    """What a call asks for: the size, the seed, the kind of lake and the device."""

    quick: bool = False
    seed: int = 0
    slippery: bool = True
    device: str = "cpu"

    @property
    def n_problems(self) -> int:
        """The paper's setting and the further ones."""
        return 1 + (N_FURTHER_QUICK if self.quick else N_FURTHER)

    def budget(self, part: Part, number: int) -> Budget:
        """The budget of ``part`` on problem ``number``."""
        return part.quick if self.quick else part.paper if number == 0 else part.further

    def job(self, experiment: Experiment, part: Part, algorithm: Algorithm, number: int) -> Job:
        """``algorithm`` on problem ``number``."""
        budget = self.budget(part, number)
        return Job(
            problem=ProblemSpec(experiment.family, number, self.seed, self.slippery),
            algorithm=algorithm,
            n_samples=part.n_samples(algorithm, budget.n),
            n_runs=budget.n_runs,
            record_every=budget.record_every,
            metrics=part.metrics,
            # Actor-critic and policy gradient have loops of their own, which run on the CPU alone.
            device="cpu" if isinstance(algorithm, ActorCritic | PolicyGradient) else self.device,
        )

    def jobs(self, experiment: Experiment) -> list[Job]:
        """All jobs of an experiment, the paper's setting first."""
        return [
            self.job(experiment, part, algorithm, number)
            for number in range(self.n_problems)
            for part in experiment.parts
            for algorithm in part.algorithms
        ]
