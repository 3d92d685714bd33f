"""Theorem 5: its steps before the adversary, the whole of it in exact expectation, its search, and its reports."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import gqlab as gq
from gqlab.exact.ball import into_ball, least_in_ball, residual
from gqlab.lab.floor import count_samples, empirical_objective
from gqlab.samples.tables import problem_tables
from gqlab.theory.adversary import _climb
from gqlab.theory.plugin_bound import at_fraction
from gqlab.theory.plugin_ratios import KAPPA, PLUG_IN, plugged
from gqlab.theory.points import Points
from gqlab.theory.sharp import Sharp, sharp_constants
from helpers.theory_problems import control_problem, random_problem

PROBLEMS = [(seed, [0.1, 1.0, 10.0, 100.0][seed % 4]) for seed in range(8)]


def garnet(seed: int = 0) -> gq.Problem:
    mdp = gq.garnet(seed=seed)
    return gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=seed))


@pytest.mark.parametrize("name", PLUG_IN)
def test_a_right_side_that_is_half_as_large_is_found_out(name: str) -> None:
    """And no right side is exceeded: see test_theory_adversary."""
    found = max(
        _climb(
            problem, c, lambda p: (PLUG_IN[name](p)[0], 0.5 * PLUG_IN[name](p)[1]), np.random.default_rng(seed), 8, 48
        )
        for seed, radius in PROBLEMS
        for problem in [random_problem(seed)]
        for c in [sharp_constants(problem, radius)]
    )
    assert found > 1.05


@pytest.mark.parametrize("part", ["deviation", "correction"])
def test_neither_part_of_the_gradient_s_deviation_may_be_halved(part: str) -> None:
    """∇Ĵ − ∇J = a − B̂ᵀĈ⁻¹Ĥ*, an equality: half of a part, or twice, is seen at once."""
    problem = random_problem(3)
    c = sharp_constants(problem, 1.0)
    p = Points.decode(problem, c, np.random.default_rng(0).standard_normal((50, Points.size(problem))))
    found = plugged(p)
    used = found.least >= KAPPA * c.lambda_C
    assert used.sum() > 10
    off = np.linalg.norm(found.gradient_hat - (found.deviation - found.correction), axis=1)[used]
    assert off.max() < 1e-10
    for factor in (0.5, 2.0):
        changed = found._replace(**{part: factor * getattr(found, part)})
        off = np.linalg.norm(found.gradient_hat - (changed.deviation - changed.correction), axis=1)[used]
        assert off.min() > 1e-6


def batches(problem: gq.Problem, first: int, n: int) -> dict[tuple[int, ...], float]:
    """The counts that n samples from a first state can have, with their probabilities."""
    transitions = problem_tables(problem).transitions
    p = problem.behavior[transitions[:, 0], transitions[:, 1]] * problem.mdp.transition[tuple(transitions.T)]
    paths: dict[tuple[int, tuple[int, ...]], float] = {(first, (0,) * len(p)): 1.0}
    for _ in range(n):
        grown: dict[tuple[int, tuple[int, ...]], float] = {}
        for (s, counts), weight in paths.items():
            for x in np.flatnonzero(transitions[:, 0] == s):
                more = (int(transitions[x, 2]), tuple(c + (k == x) for k, c in enumerate(counts)))
                grown[more] = grown.get(more, 0.0) + weight * p[x]
        paths = grown
    out: dict[tuple[int, ...], float] = {}
    for (_, counts), weight in paths.items():
        out[counts] = out.get(counts, 0.0) + weight
    return out


@pytest.mark.parametrize("target", [gq.Softmax(1.0), gq.Mellowmax(1.0)], ids=repr)
def test_the_whole_theorem_in_exact_expectation_over_all_samples(target: gq.Operator) -> None:
    """Every sequence of n samples from every first state; θ̂ the minimiser over the ball, 𝒢 with three steps."""
    problem, R = control_problem(target), 1.0
    c = sharp_constants(problem, R)
    bound = gq.theory.plug_in(c)
    for n, first in itertools.product((10, 24), range(2)):
        laws = batches(problem, first, n)
        assert sum(laws.values()) == pytest.approx(1.0)
        counts, weight = np.array(list(laws)), np.array(list(laws.values()))
        theta, left = least_in_ball(empirical_objective(problem, counts), np.zeros((len(counts), 2)), R)
        assert left.max() < 1e-9
        for eta in (1e-3, 0.1, 10.0):
            mapping = gq.theory.mapping(problem, theta, eta_theta=eta, radius=R)
            assert weight @ (mapping**2).sum(axis=1) <= bound.bound(n) < bound.trivial


def test_kappa_one_half_gives_the_simple_form_and_no_other_is_better_than_the_best() -> None:
    c = sharp_constants(garnet(), 100.0)
    half, best = at_fraction(c, 0.5), gq.theory.plug_in(c)
    lam, u_C = c.lambda_C, c.parts["u_C"]
    expected = (math.sqrt(c.C1) + c.gamma * c.phi_hat * math.sqrt(2 / lam) * math.sqrt(c.C2)) ** 2
    assert half.per_sample == pytest.approx(expected + 4 * c.C_grad_J**2 * u_C**2 / lam**2)
    assert best.per_sample <= half.per_sample
    assert 0.5 * best.per_sample <= min(at_fraction(c, k / 100).per_sample for k in range(1, 100))
    assert best.bound(10) == best.trivial == c.C_grad_J**2
    n = best.samples(0.01)
    assert best.bound(n) <= 0.01 < best.bound(n - 1)


def test_it_asks_for_fewer_samples_than_the_other_theorems() -> None:
    for problem, R, epsilon in ((garnet(), 100.0, 0.01), (control_problem(), 1.0, 0.07)):
        c = sharp_constants(problem, R)
        start = (float(problem.exact.mspbe(np.zeros(problem.dim))), 0.5)
        plan = gq.theory.least_samples(c, "plug-in", epsilon)
        assert plan.samples == gq.theory.plug_in(c).samples(epsilon)
        assert plan.bound <= epsilon
        assert "samples, the minimiser of their own objective" in str(plan)
        for theorem in ("interior", "projected"):
            assert plan.samples < 0.1 * gq.theory.least_samples(c, theorem, epsilon, start=start).samples
        for call in (
            lambda c=c: gq.theory.largest_eta_theta(c, "plug-in", batch_size=10),
            lambda c=c: gq.theory.best_steps(c, "plug-in", batch_size=10, n_epochs=2, start=(1.0, 1.0)),
        ):
            with pytest.raises(ValueError, match=r"^theorem is 'plug-in', expected one of 'interior', 'projected'$"):
                call()
        with pytest.raises(ValueError, match=r"^start is None, expected J\(θ_0\)"):
            gq.theory.least_samples(c, "interior", epsilon)


def test_the_report_has_it_beside_the_others() -> None:
    problem = control_problem()
    algorithm = gq.VRGreedyGQ(1e-3, 1e-2, batch_size=50, radius=1.0)
    for sampling, word in (("markov", ""), ("iid", ", for i.i.d. batches, which run() does not draw")):
        report = gq.theory.analyse(problem, algorithm, n_epochs=4, sampling=sampling)
        found = report.statement("plug-in")
        c: Sharp = sharp_constants(problem, 1.0, radius_omega=1.0, sampling=sampling)
        assert found.total == pytest.approx(gq.theory.plug_in(c).per_sample / 200)
        assert found.guarantee == "yes, for the minimiser of the samples' objective over the ball" + word
        assert not found.certifies_progress  # of another algorithm than the one that is analysed
        assert "The plug-in, another algorithm on the same samples: E‖𝒢(θ̂)‖²" in str(report)
    periodic = gq.FiniteMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.1], [0.0]], discount=0.5)
    slow = gq.Problem(periodic, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    assert not gq.theory.analyse(slow, algorithm, n_epochs=4).statements  # no constants for a chain with a period


# --- The search in the ball ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("n", [30, 3000])
def test_the_search_ends_where_the_projected_gradient_vanishes(radius: float, n: int) -> None:
    problem = garnet(1)
    objective = empirical_objective(problem, count_samples(problem, [n], 1, range(20))[0])
    theta, left = least_in_ball(objective, np.full((20, 4), 0.2), radius)
    assert left.max() < 1e-8
    size = np.linalg.norm(theta, axis=1)
    assert size.max() <= radius * (1 + 1e-12)
    if radius == 1.0:
        assert (size > radius * (1 - 1e-9)).all()  # the ball binds
    gradient = objective.gradient(theta[:, None])[:, 0]
    for eta in (1e-3, 1.0, 1e3):  # for one step, so for all
        assert np.abs(theta - into_ball(theta - eta * gradient, radius)).max() <= 1e-6 * max(1.0, eta)
    assert residual(theta, gradient, radius) == pytest.approx(left, abs=1e-15)


def test_no_other_solver_finds_less_nearby() -> None:
    problem, R = garnet(2), 10.0
    objective = empirical_objective(problem, count_samples(problem, [300], 1, range(4))[0])
    theta, _ = least_in_ball(objective, np.zeros((4, 4)), R)
    rng = np.random.default_rng(0)
    for k in range(4):
        own = objective.take(np.array([k]))

        def J(x: np.ndarray, own=own) -> float:
            return float(own.value(into_ball(x, R)[None, None])[0, 0])

        other = minimize(
            J, theta[k] + 0.1 * rng.standard_normal(4), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15}
        )
        assert J(theta[k]) <= other.fun + 1e-10
