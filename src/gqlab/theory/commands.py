"""``gqlab theory`` and ``gqlab rates``."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps, loads
from pathlib import Path
from typing import Literal

import numpy as np

from gqlab import checks
from gqlab.algorithms import VRGreedyGQ
from gqlab.features import random_features
from gqlab.garnet import garnet
from gqlab.mdp import FiniteMDP
from gqlab.operators import Softmax
from gqlab.problem import Problem
from gqlab.theory.analyse import analyse
from gqlab.theory.choose import schedule

#: The paper's own settings; R and σ, which it does not give, as in the experiments here.
SETTINGS = {
    "garnet": {"eta_theta": 0.02, "eta_omega": 0.01, "batch_size": 3000, "n_samples": 100_000},
    "frozen-lake": {"eta_theta": 0.2, "eta_omega": 0.1, "batch_size": 3000, "n_samples": 200_000},
}


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
    eta_theta: float | None = None,
    eta_omega: float | None = None,
    batch_size: int | None = None,
    radius: float = 100.0,
    n_epochs: int | None = None,
    epsilon: float | None = None,
    seed: int = 0,
    json: bool = False,
) -> None:
    """What the convergence theorem says about one of the paper's problems, at the paper's settings or at yours.

    Args:
        problem: Which of the paper's problems.
        eta_theta: η_θ; default: the paper's (Garnet 0.02, Frozen Lake 0.2).
        eta_omega: η_ω; default: the paper's (Garnet 0.01, Frozen Lake 0.1).
        batch_size: M; default: the paper's 3000.
        radius: R, the radius of the projection.
        n_epochs: T; default: the epochs that the paper's budget allows.
        epsilon: Also print the schedule that brings the bound to this ε.
        seed: Of the random kernel, features and the initial point θ_0 ~ N(0, I).
        json: Print the report as JSON.
    """
    paper = SETTINGS[problem]
    M = checks.integer("batch_size", paper["batch_size"] if batch_size is None else batch_size, least=1)
    T = max(1, int(paper["n_samples"]) // M) if n_epochs is None else n_epochs
    algorithm = VRGreedyGQ(
        eta_theta=paper["eta_theta"] if eta_theta is None else eta_theta,
        eta_omega=paper["eta_omega"] if eta_omega is None else eta_omega,
        batch_size=M,
        radius=radius,
    )
    subject = paper_problem(problem, checks.integer("seed", seed, least=0))
    theta0 = np.random.default_rng([seed, 2]).standard_normal(subject.dim)
    report = analyse(subject, algorithm, n_epochs=T, theta0=theta0)
    versions = ("printed", "corrected")
    plans = {} if epsilon is None else {v: schedule(subject, epsilon, radius, v, theta0) for v in versions}
    if json:
        values = loads(report.to_json()) | {"schedules": {v: asdict(plan) for v, plan in plans.items()}}
        print(dumps(values, ensure_ascii=False, indent=1, allow_nan=False))
        return
    print(report)
    for version, plan in plans.items():
        print(f"  schedule, {version}: {plan.line()}")


def rates(*, out: Path = Path("results/rates"), quick: bool = False, seed: int = 0) -> None:
    """Measure the sample complexity of Greedy-GQ and VR-Greedy-GQ on random Garnets, beside the theory's ε⁻³ and ε⁻².

    Args:
        out: Where the table, the numbers and the figure go.
        quick: A tiny version of everything, to try the command.
        seed: Of the Garnets and the runs.
    """
    from gqlab.theory import rates as experiment

    experiment.main(out, quick=quick, seed=checks.integer("seed", seed, least=0))
