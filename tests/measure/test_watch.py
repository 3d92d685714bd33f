"""Watches see every update: against the exact quantities, and walks written here, at every iterate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import conftest
import gqlab as gq
from conftest import VECTORS, assert_close, vector_name
from helpers.random_words import key, word
from helpers.refusals import refused

# --- The documented random words, in whole numbers of Python --------------------------------------------------------

OFFSET, LOOK = 20, 21  # the streams of a watch


def below(w: int, n: int) -> int:
    return w * n >> 64


def unit(w: int) -> float:
    return ((w >> 11) + 0.5) / 2**53


def pick(probabilities: np.ndarray, w: int) -> int:
    return int(np.searchsorted(np.cumsum(probabilities), unit(w), side="right"))


def walk(problem: gq.Problem, theta: np.ndarray, walk_key: int, n_steps: int) -> float:
    """The mean reward: word 0 is for the first state, words 3t + 1, 3t + 2, 3t + 3 for action, next state, restart."""
    mdp, pi = problem.mdp, problem.policy(theta)
    s = pick(mdp.start, word(walk_key, 0))
    total = 0.0
    for t in range(n_steps):
        a = pick(pi[s], word(walk_key, 3 * t + 1))
        s_next = pick(mdp.transition[s, a], word(walk_key, 3 * t + 2))
        total += mdp.reward[s, a, s_next]
        s = pick(mdp.start, word(walk_key, 3 * t + 3)) if mdp.terminal[s_next] else s_next
    return total / n_steps


# --- Watches --------------------------------------------------------------------------------------------------------

N, RUNS, SEED, STEPS = 40, 3, 4, 12
ALL = (gq.Watch("gradient"), gq.Watch("mspbe"), gq.Watch("reward", n_steps=STEPS))


def watched_values(problem: gq.Problem, result: gq.RunResult) -> dict[str, np.ndarray]:
    """Each quantity at every iterate of a result with ``record_every=1``, (n_runs, n_updates + 1)."""
    n_runs, n_records, _ = result.theta.shape
    reward = [
        [walk(problem, result.theta[k, u], word(key(SEED, k, LOOK), u), STEPS) for u in range(n_records)]
        for k in range(n_runs)
    ]
    return {
        "gradient": (problem.exact.gradient(result.theta) ** 2).sum(axis=-1),
        "mspbe": problem.exact.mspbe(result.theta),
        "reward": np.array(reward),
    }


def assert_watched(seen: gq.Watched, values: np.ndarray) -> None:
    """Of all values up to each record, that one included."""
    assert_close(seen.lowest, np.minimum.accumulate(values, axis=1))
    assert_close(seen.mean, np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1))
    assert_close(seen.largest, np.maximum.accumulate(values, axis=1))


def problem_of(vector: dict[str, Any]) -> gq.Problem:
    """With four features: with three actions that is the usual size, whose code other tests compile too."""
    problem = conftest.problem_of(vector)
    return gq.Problem(problem.mdp, problem.features[..., :4], problem.behavior, problem.target)


def is_usual(vector: dict[str, Any]) -> bool:
    return np.shape(vector["features"])[1] == 3


@pytest.fixture(
    params=[pytest.param(v, id=vector_name(v), marks=[pytest.mark.long] * (not is_usual(v))) for v in VECTORS]
)
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def watched_run(problem: gq.Problem, n_samples: int = N, every: int = 1, watch=ALL, **more) -> gq.RunResult:
    theta0 = np.random.default_rng(0).normal(size=problem.dim)
    return gq.run(
        problem,
        gq.GreedyGQ(0.2, 0.1, 20.0),
        n_samples,
        n_runs=RUNS,
        seed=SEED,
        theta0=theta0,
        record_every=every,
        watch=watch,
        **more,
    )


def test_what_is_watched_is_that_of_every_iterate(vector):
    """Terminal states, discounts of each transition and every operator among them."""
    problem = problem_of(vector)
    result = watched_run(problem)
    assert list(result.watched) == ["gradient", "mspbe", "reward"]
    for name, values in watched_values(problem, result).items():
        assert values.shape == (RUNS, N + 1)
        assert np.ptp(values) > 0
        assert_watched(result.watched[name], values)


@pytest.mark.parametrize("every", [3, 7, 40, 1000])
def test_what_is_watched_does_not_depend_on_what_is_recorded(every):
    problem = problem_of(VECTORS[6])
    whole, thinned = watched_run(problem), watched_run(problem, every=every)
    for name, seen in thinned.watched.items():
        for part, all_of_them in zip(seen, whole.watched[name], strict=True):
            assert np.array_equal(part, all_of_them[:, thinned.updates])


def test_several_problems_in_one_grid_are_watched_each_for_itself():
    problems = [problem_of(VECTORS[k]) for k in (4, 3)] + [problem_of(VECTORS[0])]
    grid = gq.grid(problems, gq.GreedyGQ(0.2, 0.1, 20.0), N, n_runs=RUNS, seeds=SEED, record_every=10, watch=ALL)
    for problem, result in zip(problems, grid.results, strict=True):
        alone = gq.run(problem, gq.GreedyGQ(0.2, 0.1, 20.0), N, n_runs=RUNS, seed=SEED, record_every=10, watch=ALL)
        for name in result.watched:
            assert np.array_equal(np.stack(result.watched[name]), np.stack(alone.watched[name]))


@pytest.mark.parametrize("k", [2, 5, 60])
def test_a_watch_of_every_kth_update_looks_at_those_of_its_offset_and_no_other(k):
    problem = problem_of(VECTORS[6])
    watch = [gq.Watch("gradient", every=k), gq.Watch("mspbe", every=k), gq.Watch("reward", every=k, n_steps=STEPS)]
    result = watched_run(problem, watch=watch)
    offsets = set()
    for column, (name, values) in enumerate(watched_values(problem, result).items()):
        seen = result.watched[name]
        for run in range(RUNS):
            offset = below(word(key(SEED, run, OFFSET), column), k)
            offsets.add((column, offset))
            for u in range(N + 1):
                looks = values[run, offset : u + 1 : k]
                found = [array[run, u] for array in seen]
                if len(looks):
                    assert_close(np.array(found), [looks.min(), looks.mean(), looks.max()])
                else:
                    assert np.isnan(found).all()
    assert len({offset for _, offset in offsets}) > 1


def test_a_watch_of_one_quantity_leaves_the_others_out():
    problem = problem_of(VECTORS[0])
    both, one = watched_run(problem), watched_run(problem, watch=gq.Watch("mspbe"))
    assert list(one.watched) == ["mspbe"]
    assert np.array_equal(one.watched["mspbe"].mean, both.watched["mspbe"].mean)
    assert gq.run(problem, gq.GreedyGQ(), 10, n_runs=2).watched == {}


def test_a_diverged_run_is_watched_up_to_its_last_finite_iterate():
    problem = problem_of(VECTORS[0])
    algorithm = gq.GreedyGQ(30.0, 30.0)
    theta0 = np.ones((2, problem.dim))
    theta0[1] = 0.0
    more = {"theta0": theta0, "watch": gq.Watch("mspbe"), "record_every": 1}
    result = gq.run(problem, algorithm, 3000, n_runs=2, **more)
    assert result.diverged.all()
    J = problem.exact.mspbe(result.theta)
    seen = result.watched["mspbe"]
    for run, u in enumerate(result.diverged_at):
        assert_close(seen.mean[run, : u + 1], np.cumsum(J[run, : u + 1]) / np.arange(1, u + 2))
        assert_close(seen.largest[run, : u + 1], np.maximum.accumulate(J[run, : u + 1]))
        for values in seen:
            assert (values[run, u:] == values[run, u]).all()
    half = gq.run(problem, algorithm, int(result.diverged_at.max()) + 5, n_runs=2, **more)
    longer = gq.run(problem, algorithm, 3000, resume=half)
    assert np.array_equal(np.stack(longer.watched["mspbe"]), np.stack(seen))


def test_a_run_that_diverges_at_once_spoils_no_other():
    problem = problem_of(VECTORS[0])
    theta0 = np.zeros((3, problem.dim))
    theta0[1] = 1e160  # its squared norm is no number
    watch = gq.Watch("mspbe")
    result = gq.run(problem, gq.GreedyGQ(), 50, n_runs=3, theta0=theta0, watch=watch, threads=1)
    alone = gq.run(problem, gq.GreedyGQ(), 50, n_runs=3, watch=watch, threads=1)
    assert result.diverged.tolist() == [False, True, False]
    assert not np.isfinite(result.watched["mspbe"].lowest[1]).any()
    for values, expected in zip(result.watched["mspbe"], alone.watched["mspbe"], strict=True):
        assert np.array_equal(values[[0, 2]], expected[[0, 2]])


def test_watches_are_saved_with_the_result(tmp_path):
    result = watched_run(problem_of(VECTORS[0]), every=7, watch=[gq.Watch("reward", every=4), gq.Watch("gradient")])
    result.save(tmp_path / "r.npz")
    back = gq.RunResult.load(tmp_path / "r.npz")
    assert list(back.watched) == ["reward", "gradient"]
    for name in back.watched:
        assert isinstance(back.watched[name], gq.Watched)
        assert np.array_equal(np.stack(back.watched[name]), np.stack(result.watched[name]), equal_nan=True)


def test_a_resumed_run_goes_on_with_its_own_watches():
    problem = problem_of(VECTORS[0])
    half = watched_run(problem, 20, 7, watch=gq.Watch("mspbe", every=3))
    whole = watched_run(problem, N, 7, watch=gq.Watch("mspbe", every=3))
    algorithm = half.algorithm
    for again in (None, gq.Watch("mspbe", every=3)):
        resumed = gq.run(problem, algorithm, N, resume=half, watch=again)
        for values, expected in zip(resumed.watched["mspbe"], whole.watched["mspbe"], strict=True):
            assert np.array_equal(values, expected, equal_nan=True)
    with pytest.raises(ValueError, match="resume: that result has watch = "):
        gq.run(problem, algorithm, N, resume=half, watch=gq.Watch("mspbe"))


CASES = {
    "quantity": (lambda: gq.Watch("regret"), "quantity is 'regret', expected one of 'gradient', 'mspbe', 'reward'"),
    "every": (lambda: gq.Watch(every=0), "every is 0, expected at least 1"),
    "every text": (lambda: gq.Watch(every="often"), "every is 'often', expected a whole number"),
    "n_steps": (lambda: gq.Watch("reward", n_steps=0), "n_steps is 0, expected at least 1"),
    "twice": (lambda: watch_in_vain([gq.Watch("mspbe"), gq.Watch("mspbe", every=2)]), "watch[1] is a second one of 'mspbe'"),
    "text": (lambda: watch_in_vain("mspbe"), "watch is 'mspbe', expected one such as gqlab.Watch(\"mspbe\")"),
    "number": (lambda: watch_in_vain(3), "watch is 3, expected one such as"),
    "one of several": (lambda: watch_in_vain([gq.Watch(), "mspbe"]), "watch[1] is 'mspbe', expected one such as"),
}  # fmt: skip


def watch_in_vain(watch):
    gq.run(problem_of(VECTORS[0]), gq.GreedyGQ(), 10, n_runs=1, watch=watch)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_message(case):
    call, message = case
    with refused(message, begins=True):
        call()
