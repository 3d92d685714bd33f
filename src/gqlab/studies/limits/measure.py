"""What ``gqlab limits`` computes: plug-ins of simulated counts, runs of least squares, and minimisers over a ball.

Each function is a call of the study (:mod:`gqlab.studies.limits.study`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.algorithms import LeastSquaresGreedyGQ
from gqlab.engine.cells import Cell, Settings
from gqlab.engine.cpu import map_apart
from gqlab.exact.ball import least_in_ball
from gqlab.exact.stationary import descend
from gqlab.lab import floor
from gqlab.lab.efficiency import efficiency, influence
from gqlab.lab.execute import execute
from gqlab.lab.floor import Weights, count_samples, empirical_objective, floors, known_shares
from gqlab.problems.problem import Problem
from gqlab.samples.streams import Chain, RunIdentity
from gqlab.samples.tables import alias_rows, problem_tables
from gqlab.studies.limits.design import MAPPING_STEP, PATH, PLUG_IN_PROBLEMS, RADII, STARTS, GarnetKind, first_point
from gqlab.support.checks import FloatArray
from gqlab.theory.plugin_bound import plug_in
from gqlab.theory.sharp import sharp_constants
from gqlab.theory.statements import mapping

#: The plug-ins.
KINDS = ("unknown", "weighted", "known")

#: Runs whose paths are counted at a time.
AT_ONCE = 300

#: The step of the differences of ψ in θ.
DIFFERENCE = 1e-4

#: The size of the projected gradient of Ĵ below which a search in the ball has ended.
ENDED = 1e-6


def measure_floors(cell: GarnetKind, seed: int, moments: tuple[int, ...], n_early: int, n_runs: int) -> dict[str, Any]:
    """n‖∇J‖² at plug-ins of three kinds, mean over runs and its standard error, (n_moments,) each.

    ``unknown`` are the samples' own frequencies, ``weighted`` these with the exact shares of every state's actions,
    ``known`` the stationary law of π_b P̂. The searches begin at θ*. ``n_runs`` at the last moment, else ``n_early``.
    """
    problem = cell.build(seed)
    theta = least_stationary(problem, seed)
    bounds = efficiency(problem, theta)
    out: dict[str, Any] = {f"{name}{end}": np.zeros(len(moments)) for name in KINDS for end in ("", "_error", "_lost")}
    for k, own in enumerate(count_by_paths(problem, moments, seed, n_early, n_runs)):
        each: tuple[Weights, ...] = (own, weighted_shares(problem, own), known_shares(problem, own))
        for name, shares in zip(KINDS, each, strict=True):
            found = moments[k] * floors(problem, shares, np.tile(theta, (len(own), 1, 1))).gradient_squared
            ended = found[~np.isnan(found)]
            out[name][k], out[f"{name}_error"][k] = ended.mean(), ended.std() / np.sqrt(len(ended))
            out[f"{name}_lost"][k] = len(found) - len(ended)
    limits = {"trace_unknown": bounds.unknown, "trace_known": bounds.known, "curvature": bounds.curvature}
    return out | limits | {"spread": spread(problem, theta), "J": float(problem.exact.mspbe(theta))}


def measure_least_squares(cell: GarnetKind, seed: int, moments: tuple[int, ...], n_runs: int) -> dict[str, Any]:
    """n‖∇J‖² of runs of least squares that know the behaviour, mean over runs, (n_moments,)."""
    problem = cell.build(seed)
    algorithm = LeastSquaresGreedyGQ(behavior="known")
    run = Cell(0, algorithm, seed, n_runs, theta0=first_point(problem.dim))
    settings = Settings(moments[-1], moments[0], threads=1, progress=False)
    [result] = execute([problem], [run], settings)
    at = np.searchsorted(result.samples, moments, side="right") - 1
    gradient = (problem.exact.gradient(result.theta[:, at]) ** 2).sum(axis=-1)
    scaled = gradient * np.array(moments)
    return {"mean": scaled.mean(axis=0), "error": scaled.std(axis=0) / np.sqrt(n_runs)}


def measure_plug_in(name: str, seed: int, batches: tuple[int, ...], n_runs: int) -> dict[str, Any]:
    """Theorem 5: bound, mean of ‖𝒢(θ̂)‖² over batches, (n_radii, n_batches), and how many searches did not end."""
    problem = PLUG_IN_PROBLEMS[name](seed)
    counts = count_samples(problem, batches, seed, range(n_runs))
    bound, mean, lost = (np.zeros((len(RADII), len(batches))) for _ in range(3))
    for i, R in enumerate(RADII):
        limit = plug_in(sharp_constants(problem, R))
        for k, n in enumerate(batches):
            start = np.tile(first_point(problem.dim), (n_runs, 1))
            theta, left = least_in_ball(empirical_objective(problem, counts[k]), start, R)
            squares = (mapping(problem, theta, eta_theta=MAPPING_STEP, radius=R) ** 2).sum(axis=1)
            bound[i, k], mean[i, k], lost[i, k] = limit.bound(n), squares.mean(), (left > ENDED).sum()
    return {"bound": bound, "mean": mean, "lost": lost}


# --- The parts ------------------------------------------------------------------------------------------------------


def least_stationary(problem: Problem, seed: int) -> FloatArray:
    """θ*: of the stationary points that Newton's method reaches from θ₀ and random points, that with the least J."""
    rng = np.random.default_rng([seed, 6])
    starts = np.stack([first_point(problem.dim), *(3.0 * rng.standard_normal((STARTS, problem.dim)))])
    found = descend(problem.exact.objective.take(np.zeros(len(starts), dtype=np.intp)), starts)
    if not found.stationary.any():
        raise ValueError(f"seed {seed}: no stationary point of J was found")
    theta = found.theta[found.stationary]
    values = problem.exact.mspbe(theta)
    return np.asarray(theta[int(np.flatnonzero(values <= values.min() * (1 + 1e-9) + 1e-15)[0])])


def spread(problem: Problem, theta: FloatArray) -> float:
    """√n times the root mean square of ‖∇²J⁻¹(∇²Ĵ − ∇²J)‖ for n independent samples: that of ∇²J⁻¹∂ψ_x/∂θ."""
    steps = DIFFERENCE * np.eye(problem.dim)
    slope = np.stack([influence(problem, theta + h) - influence(problem, theta - h) for h in steps], axis=-1)
    relative = np.linalg.solve(problem.exact.hessian(theta), slope / (2 * DIFFERENCE))
    probability = problem.exact.transitions.probability
    relative = relative - np.einsum("n,nij->ij", probability, relative)
    return float(np.sqrt(probability @ (relative**2).sum(axis=(1, 2))))


def count_by_paths(
    problem: Problem, moments: tuple[int, ...], seed: int, n_early: int, n_runs: int
) -> list[NDArray[np.int64]]:
    """Counts of transitions in n_early runs up to each moment, and in n_runs up to the last, (n_runs, K) each.

    Their law is that of a trajectory; whole paths are drawn at a time.
    """
    chain, made_of = path_chain(problem, PATH)
    ends = [n // PATH for n in moments]
    parts = [range(k, min(k + AT_ONCE, n_runs)) for k in range(0, n_runs, AT_ONCE)]
    out: list[list[NDArray[np.int64]]] = [[] for _ in moments]
    for runs in parts:
        early = runs[0] < n_early
        for k, counts in enumerate(count_draws(chain, ends if early else ends[-1:], seed, runs)):
            at = k if early else len(moments) - 1
            wanted = counts[: n_early - runs[0]] if at < len(moments) - 1 else counts
            out[at].append(wanted @ made_of)
    return [np.concatenate(own) for own in out]


def count_draws(chain: Chain, at_samples: Sequence[int], seed: int, runs: Sequence[int]) -> NDArray[np.int64]:
    """How often each entry of a chain is among the first draws of each run, (len(at_samples), n_runs, K)."""
    counts = np.zeros((len(at_samples), len(runs), len(chain.next_state)), dtype=np.int64)
    ends, stop = np.array(at_samples, dtype=np.int64), np.zeros(1, dtype=np.int64)
    numbers = {name: getattr(chain, name)[0] for name in ("first_state", "n_states", "first_start", "n_start")}
    own = chain._replace(**numbers)
    count = floor._count
    map_apart(lambda k: count(own, RunIdentity(np.uint64(seed), runs[k]), ends, counts[:, k], stop), stop, len(runs))
    return counts


def path_chain(problem: Problem, steps: int) -> tuple[Chain, NDArray[np.int64]]:
    """A chain whose draws are paths of so many transitions, and how often each transition is in each, (n_paths, K)."""
    tables = problem_tables(problem)
    s, a, s_next = tables.transitions.T
    step = problem.behavior[s, a] * problem.mdp.transition[s, a, s_next]
    leaving = [np.flatnonzero(s == state) for state in range(problem.mdp.n_states)]
    begun, at = np.arange(problem.mdp.n_states), np.arange(problem.mdp.n_states)
    weight, made_of = np.ones(len(at)), np.zeros((len(at), len(s)), dtype=np.int64)
    for _ in range(steps):
        more = np.array([len(leaving[state]) for state in at])
        x = np.concatenate([leaving[state] for state in at])
        begun, made_of = np.repeat(begun, more), np.repeat(made_of, more, axis=0)
        weight, at = np.repeat(weight, more) * step[x], s_next[x]
        made_of[np.arange(len(x)), x] += 1
    first = np.searchsorted(begun, np.arange(problem.mdp.n_states + 1))
    threshold, alias = alias_rows(weight, first)
    paths = tables.chain._replace(
        first=first.astype(np.uint32), threshold=threshold, alias=alias, next_state=at.astype(np.uint32)
    )
    return paths, made_of


def weighted_shares(problem: Problem, counts: NDArray[np.int64]) -> FloatArray:
    """The counts with the weights π_b(a|s) n(s)/n(s, a): every state's actions have their exact shares, (n, K)."""
    s, a, _ = problem_tables(problem).transitions.T
    tried = np.zeros((*problem.behavior.shape, len(counts)))
    np.add.at(tried, (s, a), counts.T)
    tried = np.moveaxis(tried, -1, 0)
    met = tried.sum(axis=-1)
    whole = ((tried > 0) | (problem.behavior == 0)).all(axis=-1)[:, s]  # else the state's own counts
    weight = problem.behavior[s, a] * met[:, s] / np.maximum(tried[:, s, a], 1)
    return np.asarray(counts * np.where(whole, weight, 1.0))
