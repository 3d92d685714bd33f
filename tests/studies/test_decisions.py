"""The study of decisions: its problems and logs, its rivals, and what is gathered."""

from __future__ import annotations

import numpy as np
import pytest

import gqlab as gq
from gqlab.judge.bound import efficiency_bound
from gqlab.studies.decisions import measure, rivals
from gqlab.studies.decisions.design import CRITERIA, DISCOUNTS, SIZES, Criterion, DecisionDesign
from gqlab.studies.decisions.logs import make_log, rows_per_episode
from gqlab.studies.decisions.problems import FINITE, NUMERIC, SHIFTS, cliff, finite, numeric
from gqlab.studies.decisions.statistics import cell_of, pessimism_gains, verdict_shares
from gqlab.studies.decisions.study import Decisions


@pytest.mark.parametrize("k", range(len(FINITE)))
def test_a_finite_problem_has_something_to_gain(k):
    problem = finite(k)
    now, best = problem.value(problem.behavior), problem.value(problem.best)
    assert now < best
    assert problem.value(problem.target("large")) <= best + 1e-12
    np.testing.assert_allclose(problem.behavior.sum(axis=1), 1)


@pytest.mark.parametrize("k", range(len(NUMERIC)))
def test_observations_tell_states_apart(k):
    problem = numeric(k)
    assert len(np.unique(problem.observation, axis=0)) == problem.mdp.n_states
    assert problem.value(problem.behavior) < problem.value(problem.best)


def test_enough_problems():
    assert len(FINITE) >= 20
    assert len(NUMERIC) >= 4
    assert {finite(k).name for k in range(len(FINITE))}.isdisjoint(f"garnet-{seed}" for seed in range(100, 114))


def test_a_log_is_of_the_behaviour_and_ends_as_it_says():
    problem = finite(10)  # its episodes end
    log = make_log(problem, 40_000, [1, 2]).to_chunk()
    s, a = log.observations[:, 0].astype(int), np.asarray(log.actions)
    taken = np.bincount(s * 3 + a, minlength=39).reshape(13, 3)
    share = taken[:12] / taken[:12].sum(axis=1, keepdims=True)
    assert np.abs(share - problem.behavior[:12]).max() < 0.05
    np.testing.assert_allclose(log.probability, problem.behavior[s, a])
    assert (problem.mdp.terminal[log.next_observations[:, 0].astype(int)] == log.terminated).all()
    assert len(s) == pytest.approx(40_000, rel=0.1)
    assert rows_per_episode(finite(0), finite(0).behavior) == 100


def test_fitted_q_evaluation_and_importance_sampling_are_right_on_large_logs():
    problem = finite(10)
    table = problem.target("small")
    log = make_log(problem, 200_000, [3])
    truth = problem.value(table)
    assert rivals.fitted_q_evaluation(log, table, problem.gamma, [0]).estimate == pytest.approx(truth, rel=0.02)
    assert rivals.weighted_importance_sampling(log, table, problem.gamma, [0]).estimate == pytest.approx(
        truth, rel=0.05
    )


def test_what_is_rare_is_what_a_log_may_not_hold():
    lake, garnet = finite(21), finite(0)
    assert measure.rare_share(lake, lake.target("small"), 500) == pytest.approx(1)  # all reward is at the goal
    assert measure.rare_share(lake, lake.target("small"), 10**7) == 0
    assert measure.rare_share(garnet, garnet.target("small"), 5000) == 0


def test_a_cell_of_coverage_holds_what_the_estimator_says():
    found = measure.coverage(0, 500, first=3, n_logs=2, n_rival=4, seed=7)
    assert found["estimates"].shape == (2, len(SHIFTS), len(measure.FIELDS))
    again = measure.coverage(0, 500, first=4, n_logs=1, n_rival=4, seed=7)
    np.testing.assert_array_equal(found["estimates"][1], again["estimates"][0])
    assert np.isfinite(found["rivals"][0, :, 3:]).all()
    assert np.isnan(found["rivals"][1, :, 3:]).all()  # log 4 is beyond those that slow rivals see
    low, value, high = (found["estimates"][..., measure.FIELDS.index(name)] for name in ("low", "value", "high"))
    assert ((low < value) & (value < high)).all()


def test_the_bounds_of_a_problem_are_its_efficiency_bounds():
    found = measure.bounds(0, (500,))
    problem = finite(0)
    wanted = [efficiency_bound(problem.mdp, problem.behavior, problem.target(s), problem.horizon) for s in SHIFTS]
    np.testing.assert_array_equal(found["bounds"], wanted)


def test_shares_of_verdicts():
    truth = np.array([[1.0, 0.1, 0], [-1.0, 0.1, 0], [0.2, 0.1, 0], [-1.0, 0.5, 0]])
    found = verdict_shares(["better", "better", "cannot say", "worse"], truth)
    assert (found["wrong"], found["right"], found["cannot say"]) == (0.25, 0.5, 0.25)
    assert (found["clear"], found["decided"]) == (2, 1)


def test_fits_are_compared_on_logs_that_explore_as_often_as_they_say():
    problem = finite(0)
    behavior = problem.exploring(0.02)
    np.testing.assert_allclose(behavior.min(axis=1), 0.01)
    assert (behavior.argmax(axis=1) == problem.behavior.argmax(axis=1)).all()
    found = measure.pessimism(0, 0.02, 500, 2, seed=7)["gain"]
    data = make_log(problem, 500, [7, measure.PESSIMISM, 0, 20, 1], behavior=behavior)
    model = gq.fit(data, gq.OneHot(10), gq.FittedQ(ridge=0.0, pessimism=1.0), discount=0.9, progress=False)
    table = np.eye(2)[model.q(np.arange(10.0)[:, None]).argmax(axis=1)]
    now = problem.value(behavior)
    assert found[1, 1] == pytest.approx((problem.value(table) - now) / (problem.value(problem.best) - now))


def test_what_pessimism_adds_is_paired_and_a_gain_is_no_lower_than_its_least():
    found = pessimism_gains(np.array([[-50.0, 0.5, 0.1], [0.25, 0.25, 0.1], [0.0, -0.25, -0.1]]))
    np.testing.assert_allclose(found["gain"], [-0.25, 0.5 / 3, 0.1 / 3])
    np.testing.assert_allclose(found["worse"], [1 / 3] * 3)
    assert found["added"].mean == pytest.approx((1.5 + 0.0 - 0.25) / 3)
    assert found["added"].low < 0 < found["added"].high
    assert found["added to usual"].mean == pytest.approx(0.4 / 3)


def test_criteria_can_fail():
    assert not Criterion("a", "", least=0.9).holds(0.8)
    assert not Criterion("a", "", most=0.1).holds(0.2)
    assert Criterion("a", "", -0.01, 0.01).holds(0.0)
    names = [criterion.name for criterion in CRITERIA]
    assert len(set(names)) == len(names) >= 19
    assert {f"coverage {n} {shift}" for n in SIZES for shift in SHIFTS} <= set(names)
    assert {f"evaluation {gamma:g}" for gamma in DISCOUNTS} <= set(names)


def test_every_call_of_the_design_is_there_once():
    study = Decisions(DecisionDesign())
    calls = study.calls()
    assert len({call.label + str(call.arguments) for call in calls}) == len(calls)
    logs = sum(call.arguments[3] for call in calls if call.function is measure.coverage)
    assert logs == 200 * len(SIZES) * len(FINITE)
    pessimism = [call.arguments for call in calls if call.function is measure.pessimism]
    assert sorted({arguments[1:4] for arguments in pessimism}) == [(0.02, 5_000, 20), (0.4, 5_000, 20)]
    assert len(pessimism) == 2 * len(FINITE)


def test_a_walk_along_a_cliff_has_no_chance_in_it():
    """Along the edge: up, six to the right and down again, 8 steps that cost 1 each; a fall costs 35."""
    problem = cliff(7, 3, 35.0, 0.95, 120)
    assert problem.value(problem.best) == pytest.approx(-(1 - 0.95**8) / 0.05)
    assert problem.mdp.reward.min() == -35
    assert set(np.unique(problem.mdp.transition)) == {0.0, 1.0}
    log = make_log(problem, 2000, [5]).to_chunk()
    fell = np.flatnonzero(log.rewards == -35)
    assert (log.next_observations[fell] == 14).all()
    assert not log.terminated[fell].any()


def test_where_nothing_is_random_there_is_no_bound_to_compare_with():
    estimates = np.tile([1.0, 0.9, 1.1, 0.0, -0.1, 0.1, 0, 500, 0], (3, 1))
    found = cell_of(estimates, np.tile([1.0, 0.9, 1.1], (3, 2)), np.array([0.0, 0.0, 1.0, 0.0]), 500)
    assert found["coverage"] == found["gain coverage"] == 1
    assert np.isnan([found["rmse"], found["width"], found["fqe rmse"], found["gain rmse"]]).all()
    random = cell_of(estimates, np.tile([1.0, 0.9, 1.1], (3, 2)), np.array([1.0, 1.0, 1.0, 0.0]), 100)
    assert random["rmse"] == 0
    assert random["width"] == random["wpdis width"] == pytest.approx(0.2 / (2 * 1.959964 * 0.1))
