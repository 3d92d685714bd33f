"""The theory's messages, its report, its choices and its command."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.theory.ergodicity import certify
from gqlab.theory.practical import jacobian, mean_field, spectral_radius, stationary_point
from gqlab.theory.repairs import markdown
from helpers.theory_problems import benign_problem, by_hand

# --- Messages -------------------------------------------------------------------------------------------------------


def test_periodic_chain_gets_a_message() -> None:
    mdp = gq.FiniteMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]], discount=0.5)
    problem = gq.Problem(mdp, np.eye(2)[:, None, :])
    report = gq.theory.analyse(problem, gq.VRGreedyGQ(radius=1.0))
    assert not report.applies
    assert "period 2" in str(report)
    assert [a.status for a in report.assumptions] == ["holds", "holds", "holds", "fails"]
    with pytest.raises(ValueError, match="period 2"):
        gq.theory.step_sizes(problem, 10, radius=1.0)


def test_singular_C_gets_a_message() -> None:
    problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[1.0]], 0.5), [[[0.6, 0.6]]])
    with pytest.raises(ValueError, match="singular"):
        gq.theory.analyse(problem, gq.VRGreedyGQ(radius=1.0))
    with pytest.raises(ValueError, match="singular"):
        gq.theory.step_sizes(problem, 10, radius=1.0)
    with pytest.raises(ValueError, match="singular"):
        _ = problem.exact


@pytest.mark.parametrize("operator", [gq.Greedy(), gq.EpsilonGreedy(0.1)])
def test_non_smooth_operators_get_a_message(operator: gq.Operator) -> None:
    problem = gq.Problem(benign_problem().mdp, np.eye(2)[:, None, :], target=operator)
    report = gq.theory.analyse(problem, gq.VRGreedyGQ(radius=1.0))
    assert not report.applies
    assert "does not apply" in report.assumptions[1].detail
    assert "nan" not in str(report).lower()
    with pytest.raises(ValueError, match="not a smooth operator"):
        gq.theory.schedule(problem, 0.1, radius=1.0)


def test_infinite_radius_gets_a_message() -> None:
    report = gq.theory.analyse(benign_problem(), gq.VRGreedyGQ())
    assert report.corrected is None
    assert "radius is inf" in report.messages[0]
    json.loads(report.to_json())
    for call in (lambda: gq.theory.step_sizes(benign_problem(), 10, radius=math.inf),
                 lambda: gq.theory.schedule(benign_problem(), 0.1, radius=math.inf)):  # fmt: skip
        with pytest.raises(ValueError, match="radius is inf"):
            call()


def test_long_features_get_a_message() -> None:
    problem = gq.Problem(benign_problem().mdp, 3 * np.eye(2)[:, None, :])
    report = gq.theory.analyse(problem, gq.VRGreedyGQ(radius=1.0))
    assert report.assumptions[0].status == "fails"
    assert "norm 3" in report.messages[0]


def test_bad_arguments() -> None:
    problem = benign_problem()
    good = gq.VRGreedyGQ(radius=1.0)
    with pytest.raises(ValueError, match="the theorem is about"):
        gq.theory.analyse(problem, gq.GreedyGQ(radius=1.0))
    with pytest.raises(ValueError, match="n_epochs is 0"):
        gq.theory.analyse(problem, good, n_epochs=0)
    with pytest.raises(ValueError, match="theta0 has norm"):
        gq.theory.analyse(problem, good, theta0=[3.0, 0.0])
    with pytest.raises(ValueError, match="version is 'x'"):
        gq.theory.step_sizes(problem, 10, radius=1.0, version="x")
    with pytest.raises(ValueError, match="batch_size is 0"):
        gq.theory.step_sizes(problem, 0, radius=1.0)
    with pytest.raises(ValueError, match="epsilon is 0"):
        gq.theory.schedule(problem, 0, radius=1.0)
    result = gq.run(problem, gq.VRGreedyGQ(batch_size=10, radius=1.0), n_samples=10, n_runs=1)
    with pytest.raises(ValueError, match="that run is of VRGreedyGQ"):
        gq.theory.analyse(problem, good, result=result)
    with pytest.raises(ValueError, match="1 epochs, but n_epochs is 2"):
        gq.theory.analyse(problem, result.algorithm, n_epochs=2, result=result)
    with pytest.raises(ValueError, match="did not begin at theta0"):
        gq.theory.analyse(problem, result.algorithm, n_epochs=1, theta0=[0.1, 0.1], result=result)
    with pytest.raises(ValueError, match="another problem"):
        gq.theory.analyse(by_hand(), result.algorithm, n_epochs=1, result=result)


# --- The report -----------------------------------------------------------------------------------------------------


def test_report_says_all_and_its_json_is_strict(garnet_problem: gq.Problem) -> None:
    report = gq.theory.analyse(garnet_problem, gq.VRGreedyGQ(radius=100.0), n_epochs=33)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    values = json.loads(report.to_json(), parse_constant=refuse)
    for name in ("as_printed", "corrected"):
        version = values[name]
        assert len(version["conditions"]) == 6
        assert all({"left", "right", "margin", "holds", "formula"} <= set(test) for test in version["conditions"])
        assert all(quantity["formula"] for quantity in version["constants"].values())
        assert set(version["bound"]["terms"]) == set(version["bound"]["formulas"])
        assert version["bound"]["total"] == pytest.approx(sum(version["bound"]["terms"].values()))
        assert version["bound"]["dominating"] == "tracking: reference"
        assert list(version["bound"]["groups"]) == ["initialisation", "bias", "variance", "tracking"]
        assert sum(version["bound"]["groups"].values()) == pytest.approx(version["bound"]["total"])
        assert version["guarantee"] == "no"
        wanted = {
            "r_max",
            "G",
            "H",
            "C1",
            "C2",
            "C3",
            "C4",
            "C_grad_J",
            "L1",
            "L2",
            "L3",
            "L4",
            "L5",
            "L",
            "D",
            "c_hat",
        }
        assert wanted <= set(version["constants"])
    text = str(report)
    assert "do not satisfy the paper's conditions as printed" in text
    for quantity in report.corrected.constants.values():  # the slack of every norm and Lipschitz constant is printed
        if quantity.sampled is not None and quantity.value > 0:
            assert f"{100 * quantity.reached:.0f} %" in text
    statuses = {a.name: a.status for a in report.assumptions}
    assert statuses["ω*(θ) inside the ball"] == "fails"
    assert statuses["a stationary point in the ball"] == "holds"
    assert statuses["the projection of θ idle"] == "cannot be known"
    assert statuses["θ_t independent of its batch"] == "fails"
    assert len(report.repairs) > 20
    assert all(repair.place and repair.why for repair in report.repairs)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(k, marks=pytest.mark.long) for k in range(3, 10))])
def test_omega_star_leaves_the_ball_on_random_garnets(seed: int) -> None:
    mdp = gq.garnet(seed=seed)
    problem = gq.Problem(mdp, gq.random_features(mdp, dim=4, seed=seed))
    report = gq.theory.analyse(problem, gq.VRGreedyGQ(radius=100.0))
    inside = next(a for a in report.assumptions if a.name.startswith("ω*"))
    assert inside.status == "fails"
    assert 1.0 < inside.values["sampled"] / 100 < 2.0


def test_idle_projection_is_proved_for_short_runs() -> None:
    problem = benign_problem()
    algorithm = gq.VRGreedyGQ(eta_theta=1e-6, eta_omega=1e-3, batch_size=1000, radius=1.0)
    report = gq.theory.analyse(problem, algorithm, n_epochs=100, theta0=[0.3, 0.3])
    # ‖θ_0‖ + TM·3Gη_θ = 0.424 + 1e5·3·1.23·1e-6 = 0.793 ≤ 1, and all else holds: a guarantee.
    idle = next(a for a in report.assumptions if "idle" in a.name)
    assert idle.values["furthest"] == pytest.approx(math.sqrt(0.18) + 0.369)
    assert (idle.status, report.corrected.guarantee, report.as_printed.guarantee) == ("holds", "yes", "no")


def test_projection_that_acts_is_seen_in_the_run() -> None:
    mdp = gq.FiniteMDP([[[1.0]]], [[1.0]], discount=0.5)
    problem = gq.Problem(mdp, [[[1.0]]])  # θ° = 2, outside the ball
    algorithm = gq.VRGreedyGQ(eta_theta=0.5, eta_omega=0.5, batch_size=10, radius=1.0)
    result = gq.run(problem, algorithm, n_samples=1000, n_runs=2, record_every=10)
    report = gq.theory.analyse(problem, algorithm, n_epochs=100, result=result)
    assert next(a for a in report.assumptions if "idle" in a.name).status == "fails"
    assert next(a for a in report.assumptions if "stationary" in a.name).status == "cannot be known"
    assert report.corrected.guarantee == "no"


def test_problems_without_discount_or_reward() -> None:
    """γ = 0 and r = 0: nothing is tracked and nothing is left to learn; every number stays finite."""
    mdp = gq.FiniteMDP([[[0.5, 0.5]], [[0.2, 0.8]]], np.zeros((2, 1)), discount=0.0)
    problem = gq.Problem(mdp, np.eye(2)[:, None, :])
    report = gq.theory.analyse(problem, gq.VRGreedyGQ(radius=1.0))
    assert report.applies
    assert math.isfinite(report.as_printed.bound.total)
    assert report.as_printed.recursion.c0 == 0
    assert report.corrected.constants["L1"].value == 0
    assert gq.theory.schedule(problem, 0.1, radius=1.0).bound <= 0.1


def test_ergodicity_of_special_chains() -> None:
    pair = certify(by_hand())  # all rows equal: forgotten in one step
    assert (pair.rho, pair.Lambda, pair.mixing) == (0.0, 1.0, 0.0)
    # A transient state 0, then the alternation of 1 and 2 with a pause: d̄ reaches below 1 only after two steps.
    P = [[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.5, 0.5]]]
    problem = gq.Problem(gq.FiniteMDP(P, np.zeros((3, 1)), 0.5), np.ones((3, 1, 1)))
    pair = certify(problem)
    assert pair.t0 > 1
    assert pair.Lambda == pytest.approx(pair.rho ** -(pair.t0 - 1))


# --- Choosing -------------------------------------------------------------------------------------------------------


def test_honest_answers_on_the_paper_problem(garnet_problem: gq.Problem) -> None:
    """R = 100: as printed a step of order 1e-28 that moves no float64, and of the order 1e30 samples."""
    pair = gq.theory.step_sizes(garnet_problem, 3000, radius=100.0, version="printed")
    assert 1e-29 < pair.eta_theta < 1e-27
    assert not pair.moves_float64
    assert "does not change a float64" in str(pair)
    assert "stable for the exact mean dynamics; not a guarantee" in str(pair)
    plan = gq.theory.schedule(garnet_problem, 0.01, radius=100.0, version="printed")
    assert 1e28 < plan.samples < 1e32
    assert "does not change a float64" in str(plan)
    assert plan.practical.eta_theta > 1
    tight = gq.theory.step_sizes(garnet_problem, 3000, radius=100.0)
    assert tight.eta_theta > 1e15 * pair.eta_theta


def test_practical_step_sizes_are_on_the_edge_of_stability(garnet_problem: gq.Problem) -> None:
    pair = gq.theory.mean_dynamics_step_sizes(garnet_problem)
    assert "not a guarantee" in str(pair)
    point = stationary_point(garnet_problem)
    star = garnet_problem.exact.omega_star(point.theta)
    J = jacobian(garnet_problem, point.theta, star)
    assert spectral_radius(J, 0.99 * pair.eta_theta, pair.eta_omega) < 1
    assert spectral_radius(J, 1.01 * pair.eta_theta, pair.eta_omega) > 1
    for factor, settles in ((0.97, True), (1.03, False)):  # and the dynamics themselves say so
        theta, omega = point.theta + 1e-3, star.copy()
        for _ in range(4000):
            G, H = mean_field(garnet_problem, theta, omega)
            theta, omega = theta - factor * pair.eta_theta * G, omega - pair.eta_omega * H
            if not np.linalg.norm(theta - point.theta) < 1:
                break
        slow = np.linalg.norm(garnet_problem.exact.gradient(theta)) < 1e-4
        assert slow == settles


def test_the_list_of_repairs_in_the_documentation_is_this_one() -> None:
    page = Path(__file__).parents[2] / "docs" / "theory_proofs.md"
    assert markdown() in page.read_text()


# --- The command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["garnet", pytest.param("frozen-lake", marks=pytest.mark.long)])
def test_theory_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["theory", name])
    out = capsys.readouterr().out
    assert re.search("do not satisfy the paper's conditions as printed", out)
    assert "practical:" in out
    steps = ["--eta-theta", "1e-30", "--eta-omega", "1e-15", "--batch-size", "100"]
    main(["theory", name, *steps, "--epsilon", "0.1", "--json"])
    values = json.loads(capsys.readouterr().out)
    assert values["batch_size"] == 100
    assert values["schedules"]["corrected"]["bound"] <= 0.1
    assert values["as_printed"]["conditions_hold"]


def test_bad_command_line_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["theory", "garnet", "--eta-theta", "-1"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.strip() == "gqlab: eta_theta is -1.0, expected a finite number above 0"
