"""What the reports on the sharper theorems say, and the command that prints them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.theory.greedy import GreedyBound, samples_for
from gqlab.theory.sharp import sharp_constants
from helpers.theory_problems import benign_problem, control_problem


def starting(problem: gq.Problem, theta0: np.ndarray) -> tuple[tuple[float, float], float]:
    """(J(θ_0), ‖ω_0 − ω*(θ_0)‖²) with ω_0 = 0, and ‖θ_0‖."""
    start = float(problem.exact.mspbe(theta0)), float((problem.exact.omega_star(theta0) ** 2).sum())
    return start, float(np.linalg.norm(theta0))


@pytest.mark.parametrize("target", [gq.Softmax(1.0), pytest.param(gq.Mellowmax(1.0), marks=pytest.mark.long)])
def test_control_gets_a_guarantee_that_certifies_progress(target: gq.Operator) -> None:
    """R_ω = W: every need holds, nothing depends on the run, and the bound is below the value at θ_0."""
    problem, theta0 = control_problem(target), np.array([-0.7, -0.7])
    start, norm = starting(problem, theta0)
    for name, radius in (("interior", 10.0), ("projected", 1.0)):
        c = sharp_constants(problem, radius)
        plan = gq.theory.least_samples(c, name, 0.07, start=start, theta0_norm=norm)
        one_radius = gq.VRGreedyGQ(plan.eta_theta, plan.eta_omega, plan.batch_size, radius)
        algorithm, n = replace(one_radius, radius_omega=c.R_omega), int(plan.n_epochs)
        report = gq.theory.analyse(problem, algorithm, n, theta0=theta0)
        statement = report.statement(name)
        assert (statement.guarantee, statement.reasons) == ("yes", ())
        assert statement.says_something
        assert statement.certifies_progress
        assert statement.total == pytest.approx(plan.bound)
        assert statement.leaves == plan.leaves
        assert statement.total <= 0.07 < statement.at_start < statement.trivial
        assert statement.total <= statement.staying < 1.05 * statement.total
        assert plan.samples < 1e6
        assert "one radius for θ and ω: fails" in report.corrected.reasons
        # with one radius for both, ω*(θ) may leave ω's ball, and the report says so
        one = gq.theory.analyse(problem, one_radius, n, theta0=theta0).statement(name)
        assert one.guarantee == "no"
        assert not one.certifies_progress
        assert "is not known to be at most R_ω" in one.reasons[0]
        # and what is proved of another algorithm is not statement of this one
        other = gq.theory.analyse(
            problem, one_radius, n, theta0=theta0, radius_omega=c.R_omega, sampling="iid"
        ).statement(name)
        assert other.guarantee == (
            f"yes, for ω projected on R_ω = {c.R_omega:.4g} (the algorithm has {radius:.4g}), "
            "for i.i.d. batches, which run() does not draw"
        )
        assert not other.certifies_progress


def test_a_run_that_may_well_leave_certifies_no_progress() -> None:
    """R = 2.7: given that the run stays inside the bound is far below the value at θ_0, but half of the runs may leave."""
    problem, theta0 = control_problem(gq.Softmax(1.0)), np.array([-0.7, -0.7])
    start, norm = starting(problem, theta0)
    c = sharp_constants(problem, 2.7)
    plan = gq.theory.least_samples(c, "interior", 0.02, start=start, theta0_norm=norm)
    algorithm = gq.VRGreedyGQ(plan.eta_theta, plan.eta_omega, plan.batch_size, 2.7, radius_omega=c.R_omega)
    statement = gq.theory.analyse(problem, algorithm, int(plan.n_epochs), theta0=theta0).statement("interior")
    assert statement.guarantee == "yes"
    assert statement.staying < statement.at_start / 2
    assert 0.5 < statement.leaves < 0.6
    assert not statement.certifies_progress
    assert "that the run is likely to stay inside is not shown" in "\n".join(statement.lines())


def test_a_bound_on_runs_that_leave_certifies_no_progress() -> None:
    """θ° = (1.1, 1.1) lies outside the ball: runs leave, and the truncated sum falls below every value of ‖∇J‖²."""
    P = np.zeros((2, 2, 2))
    P[:, 0, 0] = P[:, 1, 1] = 1.0
    problem = gq.Problem(gq.FiniteMDP(P, np.ones((2, 2)), discount=0.1), [np.eye(2), np.eye(2)], target=gq.Softmax(1.0))
    theta0, c = np.array([-0.3, -0.6]), sharp_constants(problem, 1.0)
    start, norm = starting(problem, theta0)
    plan = gq.theory.least_samples(c, "interior", 0.048, start=start, theta0_norm=norm)
    algorithm = gq.VRGreedyGQ(plan.eta_theta, plan.eta_omega, plan.batch_size, 1.0, radius_omega=c.R_omega)
    statement = gq.theory.analyse(problem, algorithm, int(plan.n_epochs), theta0=theta0).statement("interior")
    angle = np.linspace(0, 2 * np.pi, 100)
    ball = (np.linspace(0, 1, 50)[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)).reshape(-1, 2)
    least = (problem.exact.gradient(ball) ** 2).sum(axis=1).min()
    assert statement.guarantee == "yes"
    assert statement.total < least < statement.at_start
    assert (statement.leaves, statement.staying, statement.certifies_progress) == (1.0, math.inf, False)
    assert "that the run stays inside is not shown" in "\n".join(statement.lines())
    # so few steps that no run can leave
    short = gq.theory.analyse(problem, replace(algorithm, eta_theta=1e-6), 1, theta0=theta0).statement("interior")
    assert (short.guarantee, short.leaves, short.staying) == ("yes", 0.0, short.total)


def test_steps_keep_the_shell_that_the_theorem_needs() -> None:
    """‖θ_0‖ = 0.999 with R = 1: 3Gη_θ ≤ 0.001, and Gη_θ ≤ 0.001 for Greedy-GQ; on the sphere there is no step."""
    problem = control_problem()
    c = sharp_constants(problem, 1.0)
    plan = gq.theory.least_samples(c, "interior", 0.5, start=(0.3, 0.5), theta0_norm=0.999)
    assert plan.eta_theta == pytest.approx(0.001 / (3 * c.G), rel=1e-6)
    assert gq.theory.least_samples(c, "interior", 0.5, start=(0.3, 0.5)).eta_theta > plan.eta_theta
    assert gq.theory.largest_eta_theta(c, "interior", batch_size=10, theta0_norm=0.999).eta_theta <= 0.001 / (3 * c.G)
    free = sharp_constants(problem, 1.0, sampling="iid")
    assert gq.theory.best_greedy(problem, free, 100.0, start=(10.0, 1.0), theta0_norm=0.999)[1] == pytest.approx(
        0.001 / c.G
    )
    n = samples_for(problem, free, 10.0, (10.0, 1.0), 0.999)
    assert gq.theory.best_greedy(problem, free, n, start=(10.0, 1.0), theta0_norm=0.999)[2] <= 10 * (1 + 1e-9)
    assert gq.theory.best_greedy(problem, free, 0.99 * n, start=(10.0, 1.0), theta0_norm=0.999)[2] > 10
    for call in (
        lambda: samples_for(problem, free, 10.0, (10.0, 1.0), 1.0),
        lambda: gq.theory.best_greedy(problem, free, 100.0, start=(10.0, 1.0), theta0_norm=1.0),
        lambda: gq.theory.least_samples(c, "interior", 0.5, start=(0.3, 0.5), theta0_norm=1.0),
        lambda: gq.theory.largest_eta_theta(c, "interior", batch_size=10, theta0_norm=1.0),
    ):
        with pytest.raises(ValueError, match="theta0_norm is 1, expected a number below the radius, 1"):
            call()
    report = gq.theory.analyse_greedy(problem, gq.GreedyGQ(1e-4, 1e-3, 1.0, radius_omega=2.0), 100, theta0=[1.0, 0.0])
    assert (report.best_bound, report.statement.guarantee) == (None, "no")
    assert "least bound" not in str(report)


def test_old_names_of_parameters_are_answered_with_the_new_ones() -> None:
    c = sharp_constants(benign_problem(), 1.0)
    with pytest.raises(TypeError, match=r"^largest_eta_theta\(\): M is called batch_size now$"):
        gq.theory.largest_eta_theta(c, "interior", M=3)
    with pytest.raises(TypeError, match=r"^best_steps\(\): T is called n_epochs now$"):
        gq.theory.best_steps(c, "interior", batch_size=3, T=3, start=(1.0, 1.0))


def test_the_paper_s_theorem_wants_omega_to_begin_in_the_ball() -> None:
    algorithm = gq.VRGreedyGQ(3e-5, 1.5e-3, 10_000, radius=1.0)
    report = gq.theory.analyse(benign_problem(), algorithm, 1, theta0=[0.0, 0.0], omega0=[3.0, 0.0], radius_omega=5.0)
    for version in (report.as_printed, report.corrected):
        assert version.guarantee == "no"
        assert "ω_0 inside the ball: fails" in version.reasons


def test_how_likely_a_run_is_to_leave_by_hand() -> None:
    """γ = 0.2: C⁻¹b = (0.2, 0), C⁻¹B_π has the rows 0.2φ, norm 0.2√2: ‖ω*‖ ≥ (1 − 0.2√2)r − 0.2, J ≥ ¼‖ω*‖²."""
    problem, theta0 = control_problem(), np.array([-0.7, -0.7])
    c = sharp_constants(problem, 10.0)
    assert c.least_J(8.0) == pytest.approx(0.25 * (8 * (1 - 0.2 * math.sqrt(2)) - 0.2) ** 2)
    assert c.least_J(0.1) == 0
    start, norm = starting(problem, theta0)
    plan = gq.theory.least_samples(c, "interior", 0.07, start=start, theta0_norm=norm)
    algorithm = gq.VRGreedyGQ(plan.eta_theta, plan.eta_omega, plan.batch_size, 10.0, radius_omega=c.R_omega)
    statement = gq.theory.analyse(problem, algorithm, int(plan.n_epochs), theta0=theta0).statement("interior")
    mean = statement.total * statement.coefficients["rho"] * plan.eta_theta * plan.samples
    assert statement.leaves == pytest.approx(mean / c.least_J(10.0 - 3 * c.G * plan.eta_theta))
    assert 0.01 < statement.leaves < 0.05
    assert mean > start[0]
    greedy = gq.theory.analyse_greedy(
        problem, gq.GreedyGQ(1e-6, 1e-5, radius=10.0, radius_omega=c.R_omega), 10**6, theta0=theta0
    ).statement
    assert greedy.guarantee == "yes"
    mean = greedy.total * greedy.coefficients["rho"] * 1e-6 * 10**6
    assert greedy.leaves == pytest.approx(mean / c.least_J(10.0 - c.G * 1e-6))


def test_why_there_is_no_guarantee() -> None:
    problem = control_problem()
    algorithm = gq.VRGreedyGQ(0.5, 0.5, 10, radius=1.0)
    statement = gq.theory.analyse(problem, algorithm, theta0=[1.0, 0.0], radius_omega=2.0)
    assert any("a need of the proof fails" in reason for reason in statement.statement("projected").reasons)
    assert any("θ_0 has norm 1" in reason for reason in statement.statement("interior").reasons)
    assert math.isinf(statement.statement("interior").total)
    assert not statement.statement("interior").says_something
    json.loads(statement.to_json())
    with pytest.raises(ValueError, match="omega0 has norm 3"):
        gq.theory.analyse(problem, algorithm, omega0=[3.0, 0.0], radius_omega=2.0)
    with pytest.raises(ValueError, match="sampling is 'x'"):
        gq.theory.analyse(problem, algorithm, sampling="x")
    with pytest.raises(ValueError, match="this theorem is about"):
        gq.theory.analyse_greedy(problem, algorithm)


@pytest.mark.parametrize("sampling", ["iid", "markov"])
def test_a_periodic_chain_is_no_obstacle_to_greedy_gq(sampling: str) -> None:
    mdp = gq.FiniteMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.1], [0.0]], discount=0.1)
    problem = gq.Problem(mdp, np.eye(2)[:, None, :])
    algorithm = gq.GreedyGQ(1e-4, 1e-3, radius=1.0, radius_omega=2.0)
    report = gq.theory.analyse_greedy(problem, algorithm, sampling=sampling)
    statement = "yes" if sampling == "markov" else "yes, for i.i.d. batches, which run() does not draw"
    assert (report.assumptions[3].status, report.statement.guarantee) == ("fails", statement)
    assert (report.statement.terms["correlation"] > 0) == (sampling == "markov")
    with pytest.raises(ValueError, match="period 2"):
        sharp_constants(problem, 1.0)


def test_slack_of_the_deviations_is_printed(garnet_problem: gq.Problem) -> None:
    report = gq.theory.analyse(garnet_problem, gq.VRGreedyGQ(radius=2.0))
    for constants in (report.as_printed.constants, report.corrected.constants, report.sharp):
        for name in ("C1", "C2", "C3", "C4"):
            assert constants[name].reached is not None
            assert 0 < constants[name].reached <= 1


def test_both_sets_of_conditions_are_reported() -> None:
    """M = 10⁴, η_θ = 1e-4, η_ω = 2e-3 on the benign problem: lr-3 fails, and c_0 = 0.069 holds: the proof stands."""
    report = gq.theory.analyse(benign_problem(), gq.VRGreedyGQ(1e-4, 2e-3, 10_000, 1.0), theta0=[0.5, 0.5])
    tests = {test.label: (test.holds, test.needed) for test in report.corrected.conditions}
    assert (tests["lr-3"], tests["lr-4"]) == ((False, False), (True, False))
    assert tests["lr-5"] == tests["tracking"] == (True, True)
    assert report.corrected.recursion.c0 == pytest.approx(0.0688507, rel=1e-5)
    assert report.corrected.conditions_hold
    assert gq.theory.step_sizes(benign_problem(), 10_000, radius=1.0).eta_theta == pytest.approx(1.73e-4, rel=1e-2)


@pytest.mark.parametrize("entry", [1e160, 1e308])
def test_a_first_point_that_overflows_is_named(garnet_problem, entry):
    with pytest.raises(ValueError, match=r"^theta0: a search from it overflows"):
        gq.theory.try_steps(garnet_problem, 1.0, theta0=[0, 0, 0, entry], batch_size=100, n_samples=500)


def test_tried_steps_report_what_came_of_them(garnet_problem: gq.Problem) -> None:
    tried = gq.theory.try_steps(garnet_problem, 100.0, theta0=[1, 1, 1, 1], batch_size=None, n_samples=3000)
    assert tried.algorithm == "GreedyGQ"
    assert len({attempt.fraction for attempt in tried.attempts}) == 7
    assert tried.best.outcome == min(attempt.outcome for attempt in tried.attempts)
    assert tried.attempts[0].on_sphere > 0  # the edge itself
    assert f"‖∇J‖² = {tried.best.outcome:.3g}" in str(tried)


# --- The command ----------------------------------------------------------------------------------------------------


def test_the_command_s_options(capsys: pytest.CaptureFixture[str]) -> None:
    main(["theory", "garnet", "--radius-omega", "proved", "--sampling", "iid", "--batch-size", "100", "--json"])
    values = json.loads(capsys.readouterr().out)
    assert values["sampling"] == "iid"
    assert values["radius_omega"] == pytest.approx(values["sharp"]["omega_star"]["value"])
    assert [statement["name"] for statement in values["statements"]] == ["interior", "projected", "plug-in"]
    assert values["tried"]["attempts"][0]["on_sphere"] > 0
    main(["theory", "garnet", "--algorithm", "greedy-gq", "--epsilon", "0.1", "--radius-omega", "proved"])
    out = capsys.readouterr().out
    assert "Greedy-GQ: (1/n) Σ_t E‖∇J(θ_t)‖²" in out
    assert "schedule, greedy: ε = 0.1" in out
    assert "that runs stay inside is not shown" in out
    main(["theory", "garnet", "--radius", "inf"])  # no constants, but a report
    assert "radius is inf" in capsys.readouterr().out
    main(["theory", "garnet", "--radius-omega", "proved", "--eta-theta", "1e-6", "--eta-omega", "1e-3"])
    assert "guarantee: yes (true, but the bound says nothing" in capsys.readouterr().out


def test_the_measured_mean_does_not_depend_on_how_often_a_run_is_recorded(garnet_problem: gq.Problem) -> None:
    """Recorded at every update and every fiftieth: the trapezoid rule agrees to 3 %; counting each record for the
    updates after it would not, since ‖∇J‖² falls fast in the beginning."""
    algorithm = gq.VRGreedyGQ(0.05, 0.05, batch_size=100, radius=100.0)
    means = []
    for every in (1, 50):
        theta0 = np.full(4, 3.0)
        result = gq.run(garnet_problem, algorithm, 400, n_runs=4, theta0=theta0, record_every=every)
        report = gq.theory.analyse(garnet_problem, algorithm, 4, theta0=theta0, result=result)
        means.append(report.measured.mean)
        if every == 50:
            left = (garnet_problem.exact.gradient(result.theta[:, :-1]) ** 2).sum(axis=-1).mean()
    assert means[1] == pytest.approx(means[0], rel=0.03)
    assert left > 1.15 * means[0]


def test_greedy_gq_s_fewest_samples_are_enough_and_no_fewer_are() -> None:
    for M_U, N, epsilon in ((0.0, 1.0, 0.1), (5.0, 1.0, 0.01), (0.0, 0.01, 0.1)):
        bound = GreedyBound(x=0.1, b=0.125, rho=0.7, M_U=M_U, N=N)
        n = bound.samples(epsilon, 0.25, 2.0)
        assert bound.best(n * (1 + 1e-9), 0.25, 2.0)[1] <= epsilon * (1 + 1e-6)
        assert n == 1 or bound.best(0.99 * n, 0.25, 2.0)[1] > epsilon


def test_the_certificate_in_the_documentation_is_what_its_code_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
    code, printed = re.search(r"```python\n(import numpy.*?)```\n\nprints\n\n```\n(.*?)```", page, flags=re.S).groups()
    exec(compile(code, "docs/theory.md", "exec"), {})  # noqa: S102 - the document's own code
    assert capsys.readouterr().out == printed
