"""``gqlab theory``."""

from __future__ import annotations

from dataclasses import dataclass
from json import loads
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from gqlab.algorithms import GreedyGQ, VRGreedyGQ
from gqlab.cli.own_files import own_problem
from gqlab.mdp.finite import FiniteMDP
from gqlab.operators import Softmax
from gqlab.problems.features import random_features
from gqlab.problems.garnet import garnet
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.plain_json import print_json
from gqlab.theory.adversary import largest_ratios
from gqlab.theory.analyse import analyse
from gqlab.theory.choose import start_terms
from gqlab.theory.companion import GreedyReport, analyse_greedy
from gqlab.theory.exponents import Growth, growth, requirements
from gqlab.theory.practical import try_steps
from gqlab.theory.report import Report, plain
from gqlab.theory.sharp import sharp_constants

#: The paper's own settings; R and σ, which it does not give, as in the experiments here.
SETTINGS = {
    "garnet": {"eta_theta": 0.02, "eta_omega": 0.01, "batch_size": 3000, "n_samples": 100_000},
    "frozen-lake": {"eta_theta": 0.2, "eta_omega": 0.1, "batch_size": 3000, "n_samples": 200_000},
}

#: Runs of each pair of step sizes that is tried.
TRIED_RUNS = 4


def problem_of(text: str, seed: int) -> Problem:
    """One of the paper's problems, or what FILE.py:NAME names."""
    if text in SETTINGS:
        return paper_problem(text, seed)
    if ".py:" not in text:
        raise ValueError(f"problem is {text!r}, expected {', '.join(SETTINGS)}, or FILE.py:NAME")
    return own_problem("problem", text, seed)


def paper_problem(name: str, seed: int) -> Problem:
    """The paper's Garnet(5,3,2,4) or Frozen Lake, softmax with σ = 1."""
    if name == "garnet":
        mdp = garnet(n_states=5, n_actions=3, branching=2, discount=0.95, seed=seed)
        return Problem(mdp, random_features(mdp, dim=4, kind="uniform", seed=seed), target=Softmax(1.0))
    mdp = FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
    return Problem(mdp, random_features(mdp, dim=8, kind="gaussian", seed=seed), target=Softmax(1.0))


@dataclass(frozen=True)
class Theory:
    """What the theorems say about one of the paper's problems or your own, at the paper's settings or at yours."""

    problem: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="garnet|frozen-lake|FILE.py:NAME")]
    """One of the paper's problems, or a file of your own with a Problem, or a function from a seed to one, of that
    name."""

    algorithm: Literal["vr-greedy-gq", "greedy-gq"] = "vr-greedy-gq"
    """VR-Greedy-GQ, or plain Greedy-GQ with its companion theorem."""

    sampling: Literal["markov", "iid"] = "markov"
    """One trajectory, or independent samples (for the sharper theorems), which no run draws."""

    eta_theta: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """η_θ. Default: the paper's (Frozen Lake 0.2, otherwise 0.02)."""

    eta_omega: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """η_ω. Default: the paper's (Frozen Lake 0.1, otherwise 0.01)."""

    batch_size: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """M. Default: the paper's 3000."""

    radius: float = 100.0
    """R, the radius of the projection."""

    radius_omega: Annotated[
        float | Literal["proved"] | None, tyro.conf.arg(metavar="FLOAT|proved", help_behavior_hint="")
    ] = None
    """R_ω, the radius of ω's projection; "proved": the least one that is proved to hold ω*. Default: R."""

    n_epochs: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """T. Default: the epochs that the paper's budget allows."""

    epsilon: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """Also print the schedules that bring each bound to this ε."""

    ratios: tyro.conf.FlagCreatePairsOff[bool] = False
    """Also print the largest left/right that an adversary finds of every constant and inequality."""

    exponents: tyro.conf.FlagCreatePairsOff[bool] = False
    """Also print the least samples for ε from 1e-2 to 1e-8 by each theorem, and their slopes."""

    seed: int = 0
    """Of the random kernel, features and the initial point θ_0 ~ N(0, I)."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the report as JSON."""


def theory(options: Annotated[Theory, tyro.conf.arg(name="")]) -> None:
    """What the convergence theorems say about one of the paper's problems or your own."""
    radius, sampling, epsilon = options.radius, options.sampling, options.epsilon
    paper = SETTINGS.get(options.problem, SETTINGS["garnet"])
    seed = checks.integer("seed", options.seed, least=0)
    M = checks.integer("batch_size", paper["batch_size"] if options.batch_size is None else options.batch_size, least=1)
    T = max(1, int(paper["n_samples"]) // M) if options.n_epochs is None else options.n_epochs
    steps = (
        paper["eta_theta"] if options.eta_theta is None else options.eta_theta,
        paper["eta_omega"] if options.eta_omega is None else options.eta_omega,
    )
    subject = problem_of(options.problem, seed)
    theta0 = np.random.default_rng([seed, 2]).standard_normal(subject.dim)
    own: Any = options.radius_omega
    c = None  # a report alone is given even where there are no constants
    if epsilon is not None or options.ratios or options.exponents or own == "proved":
        c = sharp_constants(
            subject, radius, radius_omega=None if own == "proved" else radius if own is None else own, sampling=sampling
        )
        own = c.R_omega if own == "proved" else own
    common: dict[str, Any] = {"theta0": theta0, "sampling": sampling}
    report: Report | GreedyReport
    if options.algorithm == "greedy-gq":
        report = analyse_greedy(subject, GreedyGQ(*steps, radius=radius, radius_omega=own), n_samples=T * M, **common)
    else:
        made = VRGreedyGQ(*steps, batch_size=M, radius=radius, radius_omega=own)
        report = analyse(subject, made, n_epochs=T, **common)
    plans = {} if epsilon is None or c is None else requirements(subject, options.algorithm, epsilon, c, theta0)
    batch_size = M if options.algorithm == "vr-greedy-gq" else None
    tried = try_steps(subject, radius, theta0=theta0, batch_size=batch_size, n_runs=TRIED_RUNS)
    found = largest_ratios(subject, c) if options.ratios and c is not None else {}
    grown: tuple[Growth, ...] = ()
    if options.exponents and c is not None:
        start = start_terms(subject, theta0, None, c.R, c.R_omega)
        grown = growth(subject, c, start, theta0_norm=float(np.linalg.norm(theta0)))
    if options.json:
        more: dict[str, Any] = {"schedules": {name: plain(plan) for name, plan in plans.items()}, "tried": plain(tried)}
        more |= {"ratios": found, "exponents": plain(grown)}
        print_json(loads(report.to_json()) | more)
        return
    print(report)
    print(f"  practical: {'no stationary point found' if tried is None else tried}")
    for name, plan in plans.items():
        print(f"  schedule, {name}: {plan}")
    for name, value in found.items():
        print(f"  largest ratio found, {name}: {value:.4f}")
    for case in grown:
        print(f"  {case}")
