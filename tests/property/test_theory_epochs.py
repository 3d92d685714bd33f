"""A whole epoch, in exact expectation over every batch and every draw: what the theorems claim of it, and nothing sampled."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gqlab as gq
from gqlab.theory.search import largest_eta_theta
from gqlab.theory.sharp import sharp_constants
from gqlab.theory.theorems import GROWTH, evaluate, tracking_step
from helpers.theory_problems import by_hand, control_problem

M = 3


def batches(problem: gq.Problem, s: int) -> list[tuple[float, list[int]]]:
    """Every trajectory of M samples from state s, with its probability, as indices of the possible transitions."""
    x = problem.exact.transitions
    p = problem.behavior[x.s, x.a] * problem.mdp.transition[x.s, x.a, x.s_next]
    paths = [(1.0, [], s)]
    for _ in range(M):
        paths = [
            (weight * p[k], [*path, k], int(x.s_next[k]))
            for weight, path, state in paths
            for k in np.flatnonzero(x.s == state)
        ]
    return [(weight, path) for weight, path, _ in paths]


def into(v: np.ndarray, radius: float) -> np.ndarray:
    return v * np.minimum(1, radius / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300))


@pytest.mark.parametrize(("theorem", "order"), [("interior", 2), ("interior", 1), ("projected", 2)])
@pytest.mark.parametrize("problem", [by_hand(), control_problem(gq.Mellowmax(2.0))], ids=["softmax", "mellowmax"])
def test_an_epoch_in_exact_expectation(problem: gq.Problem, theorem: str, order: int) -> None:
    """E[J + B‖Δ‖²] after an epoch + ηρΣE‖·‖² ≤ the same before it + its share of the bound, from every first state."""
    radius = 1.0
    c = sharp_constants(problem, radius)
    pair = largest_eta_theta(c, theorem, batch_size=M, order=order)
    eta, alpha = pair.eta_theta, pair.eta_omega
    found, t = evaluate(c, theorem, eta, alpha, M, order).coefficients, tracking_step(c, theorem, eta, alpha, order)
    A = 0.5 * c.L * eta + found["c_hat"] * (eta * M / GROWTH + eta) if theorem == "interior" else 0.0
    share = eta * (1 + 3 * A) * c.C1 + found["mean_b"] * t.N0  # M steps of a part 1/M each
    exact, rng = problem.exact, np.random.default_rng(0)
    for s, _ in itertools.product(range(2), range(25)):
        start = into(rng.standard_normal(2), 0.9 * radius if theorem == "interior" else radius)
        omega0 = into(c.R_omega * rng.standard_normal(2), c.R_omega)
        weights, orders = zip(*batches(problem, s), strict=True)
        draws = np.array(list(itertools.product(range(M), repeat=M)))  # (27, M)
        batch = np.repeat(np.array(orders), len(draws), axis=0)  # (paths, M)
        weight = np.repeat(np.array(weights), len(draws)) / len(draws)
        drawn = np.tile(draws, (len(orders), 1))
        theta, omega = np.tile(start, (len(batch), 1)), np.tile(omega0, (len(batch), 1))
        rows = np.arange(len(batch))
        reference = exact.sample_gradients(theta, omega)
        means = [values[rows[:, None], batch].mean(axis=1) for values in reference]
        measured = 0.0
        for step in range(M):
            value = (
                exact.gradient(theta)
                if theorem == "interior"
                else gq.theory.mapping(problem, theta, eta_theta=eta, radius=radius)
            )
            measured += float(weight @ (value**2).sum(axis=1))
            k = batch[rows, drawn[:, step]]
            g, h = (
                now[rows, k] - old[rows, k] + mean
                for now, old, mean in zip(exact.sample_gradients(theta, omega), reference, means, strict=True)
            )
            theta, omega = into(theta - eta * g, radius), into(omega - alpha * h, c.R_omega)
            assert theorem == "projected" or np.linalg.norm(theta, axis=1).max() < radius
        assert weight.sum() == pytest.approx(1.0)
        track = ((omega - exact.omega_star(theta)) ** 2).sum(axis=1)
        after = float(weight @ (exact.mspbe(theta) + found["B"] * track))
        before = float(exact.mspbe(start) + found["B"] * ((omega0 - exact.omega_star(start)) ** 2).sum())
        assert after + eta * found["rho"] * measured <= (before + share) * (1 + 1e-12)
