"""``gqlab theory``."""

from __future__ import annotations

from json import loads
from typing import Any, Literal

import numpy as np

from gqlab.algorithms import GreedyGQ, VRGreedyGQ
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


def paper_problem(name: str, seed: int) -> Problem:
    """The paper's Garnet(5,3,2,4) or Frozen Lake, softmax with σ = 1."""
    if name == "garnet":
        mdp = garnet(n_states=5, n_actions=3, branching=2, discount=0.95, seed=seed)
        return Problem(mdp, random_features(mdp, dim=4, kind="uniform", seed=seed), target=Softmax(1.0))
    mdp = FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95)
    return Problem(mdp, random_features(mdp, dim=8, kind="gaussian", seed=seed), target=Softmax(1.0))


def theory(
    problem: Literal["garnet", "frozen-lake"],
    /,
    *,
    algorithm: Literal["vr-greedy-gq", "greedy-gq"] = "vr-greedy-gq",
    sampling: Literal["markov", "iid"] = "markov",
    eta_theta: float | None = None,
    eta_omega: float | None = None,
    batch_size: int | None = None,
    radius: float = 100.0,
    radius_omega: float | Literal["proved"] | None = None,
    n_epochs: int | None = None,
    epsilon: float | None = None,
    ratios: bool = False,
    exponents: bool = False,
    seed: int = 0,
    json: bool = False,
) -> None:
    """What the convergence theorems say about one of the paper's problems, at the paper's settings or at yours.

    Args:
        problem: Which of the paper's problems.
        algorithm: VR-Greedy-GQ, or plain Greedy-GQ with its companion theorem.
        sampling: One trajectory, or independent samples (for the sharper theorems), which no run draws.
        eta_theta: η_θ; default: the paper's (Garnet 0.02, Frozen Lake 0.2).
        eta_omega: η_ω; default: the paper's (Garnet 0.01, Frozen Lake 0.1).
        batch_size: M; default: the paper's 3000.
        radius: R, the radius of the projection.
        radius_omega: R_ω, the radius of ω's projection; default: R. "proved": the least one that is proved to hold ω*.
        n_epochs: T; default: the epochs that the paper's budget allows.
        epsilon: Also print the schedules that bring each bound to this ε.
        ratios: Also print the largest left/right that an adversary finds of every constant and inequality.
        exponents: Also print the least samples for ε from 1e-2 to 1e-8 by each theorem, and their slopes.
        seed: Of the random kernel, features and the initial point θ_0 ~ N(0, I).
        json: Print the report as JSON.
    """
    paper = SETTINGS[problem]
    M = checks.integer("batch_size", paper["batch_size"] if batch_size is None else batch_size, least=1)
    T = max(1, int(paper["n_samples"]) // M) if n_epochs is None else n_epochs
    steps = (
        paper["eta_theta"] if eta_theta is None else eta_theta,
        paper["eta_omega"] if eta_omega is None else eta_omega,
    )
    subject = paper_problem(problem, checks.integer("seed", seed, least=0))
    theta0 = np.random.default_rng([seed, 2]).standard_normal(subject.dim)
    own: Any = radius_omega
    c = None  # a report alone is given even where there are no constants
    if epsilon is not None or ratios or exponents or own == "proved":
        c = sharp_constants(
            subject, radius, radius_omega=None if own == "proved" else radius if own is None else own, sampling=sampling
        )
        own = c.R_omega if own == "proved" else own
    common: dict[str, Any] = {"theta0": theta0, "sampling": sampling}
    report: Report | GreedyReport
    if algorithm == "greedy-gq":
        report = analyse_greedy(subject, GreedyGQ(*steps, radius=radius, radius_omega=own), n_samples=T * M, **common)
    else:
        made = VRGreedyGQ(*steps, batch_size=M, radius=radius, radius_omega=own)
        report = analyse(subject, made, n_epochs=T, **common)
    plans = {} if epsilon is None or c is None else requirements(subject, algorithm, epsilon, c, theta0)
    batch_size = M if algorithm == "vr-greedy-gq" else None
    tried = try_steps(subject, radius, theta0=theta0, batch_size=batch_size, n_runs=TRIED_RUNS)
    found = largest_ratios(subject, c) if ratios and c is not None else {}
    grown: tuple[Growth, ...] = ()
    if exponents and c is not None:
        start = start_terms(subject, theta0, None, c.R, c.R_omega)
        grown = growth(subject, c, start, theta0_norm=float(np.linalg.norm(theta0)))
    if json:
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
