"""The solve: every number against a dense form of it, exact values, the efficiency bound, and parts of files."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

import gqlab as gq
from gqlab.judge import bound as bounds
from gqlab.judge import rows as judged_rows
from gqlab.judge import sums
from gqlab.judge.bound import efficiency_bound
from gqlab.judge.estimator import Estimator
from gqlab.judge.features import features_of
from gqlab.judge.rows import look
from gqlab.judge.simulated import sampled_log
from gqlab.mdp.values import policy_value
from gqlab.policies import as_policy
from helpers.plain_solve import plain_solve


def ending(seed=3, discount=0.9):
    """A Garnet whose last state is terminal."""
    mdp = gq.garnet(6, 3, 3, discount=discount, seed=seed)
    return gq.FiniteMDP(mdp.transition, mdp.reward, discount, np.arange(6) == 5, [0.5, 0.5, 0, 0, 0, 0])


def policies(S, A, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(A), size=(2, S))


def estimator(data, features, given, discount, **more):
    seen = look(data, 0)
    made = features_of(features, data, np.asarray(seen.sample.observations, float), 0)
    return Estimator(data, seen, made, [as_policy("p", p, data.n_actions) for p in given], discount, **more)


def numbers(intervals):
    return [astuple(one) for one in intervals]


def dense_features(made, observations):
    if not made.binary:
        return made.encode(observations)
    return (made.encode(observations)[:, :, None] == np.arange(made.K)).sum(axis=1) * made.value


@pytest.mark.parametrize("features", ["tabular", "trees", gq.Fourier(2), gq.TileCoder(2, 3)], ids=str)
@pytest.mark.parametrize("n_rows", [60, 600])
def test_every_number_is_that_of_the_dense_form(features, n_rows):
    mdp = ending()
    behavior, target = policies(6, 3, 1)
    data = sampled_log(mdp, behavior, n_rows, 12, seed=5)
    found = estimator(data, features, [target], 0.9)
    estimates = found.estimates()
    estimate, chunk = estimates.policies[0], data.to_chunk()
    x, after = (dense_features(found.m.features, o) for o in (chunk.observations, chunk.next_observations))
    s, t = chunk.observations[:, 0].astype(int), chunk.next_observations[:, 0].astype(int)
    c = found.c[: found.m.K]
    np.testing.assert_allclose(x @ c, 1, atol=1e-6 if found.m.features.binary else 0.2)
    plain = plain_solve(chunk, x, after, target[s], target[t], 0.9, c, found.extremes)
    value, gain = estimate.values[0], estimate.gains[0]
    ours = value.estimate, value.se, gain.estimate, gain.se, estimate.unsupported, estimate.effective_rows
    theirs = plain.value, plain.se, plain.gain, plain.gain_se, plain.unsupported, plain.ess
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(estimate.theta.reshape(-1), plain.theta, rtol=1e-6, atol=1e-8)
    assert estimates.now.estimate == pytest.approx(plain.now, rel=1e-9)
    assert estimate.thin == (not (plain.unsupported <= 0.05 and plain.ess >= 100))
    assert len(estimate.values) == len(estimate.gains) == (3 if estimate.thin or plain.moves > 0.25 else 1)
    if len(estimate.values) > 1:
        for ours, theirs in zip(zip(estimate.values[1:], estimate.gains[1:], strict=True), plain.bracket, strict=True):
            wanted = theirs.value, theirs.se, theirs.gain, theirs.gain_se
            np.testing.assert_allclose((*astuple(ours[0])[:2], *astuple(ours[1])[:2]), wanted, rtol=1e-6)
    assert estimate.thin or n_rows == 600


@pytest.mark.parametrize("n_rows", [60, 600])
def test_a_row_moves_the_answer_as_its_influence_says(n_rows):
    """The derivative by the weight of each row, λ and the first states as they are: of the value wδ + κe, and of the
    refined one, x₀ᵀθ + Σ wδ, which gains are made of, wδ₂ + λw₂δ + κ₂e."""
    behavior, target = policies(6, 3, 1)
    chunk = sampled_log(ending(), behavior, n_rows, 12, seed=5).to_chunk()
    s, t = chunk.observations[:, 0].astype(int), chunk.next_observations[:, 0].astype(int)
    plain = plain_solve(chunk, np.eye(6)[s], np.eye(6)[t], target[s], target[t], 0.9, np.ones(6), (0, 0))

    def value(weights, refined=False):
        v0 = (weights * chunk.rewards).sum() / (weights * plain.shares).sum()
        weighted = plain.phi * weights[:, None]
        A = weighted.T @ plain.ahead + plain.lam * np.eye(18)
        theta = np.linalg.solve(A, weighted.T @ plain.target + plain.lam * v0 * plain.c)
        left = weighted.T @ (plain.target - plain.ahead @ theta)
        u = np.linalg.solve(A.T, plain.begin.mean(axis=0))
        return (plain.begin @ theta).mean() + (u @ left if refined else 0.0)

    step = 1e-5
    for refined, moved in ((False, plain.moved), (True, plain.moved_gain)):
        pairs = [(value(1 + step * row, refined), value(1 - step * row, refined)) for row in np.eye(n_rows)]
        np.testing.assert_allclose(moved, [(up - down) / (2 * step) for up, down in pairs], rtol=1e-5, atol=1e-9)
    assert value(np.ones(n_rows), refined=True) == pytest.approx(plain.psi.mean(), rel=1e-12)
    assert np.abs(plain.moved).max() > 1e-4


def test_against_another_policy_the_gain_is_that_of_the_episodes_in_pairs():
    mdp = ending()
    behavior, target = policies(6, 3, 1)
    other = policies(6, 3, 9)[0]
    data = sampled_log(mdp, behavior, 900, 12, seed=5)
    found = estimator(data, "tabular", [target, other], 0.9)
    gains = [one.gains[0] for one in found.estimates(base=1).policies]
    chunk = data.to_chunk()
    x, after = (dense_features(found.m.features, o) for o in (chunk.observations, chunk.next_observations))
    s, t = chunk.observations[:, 0].astype(int), chunk.next_observations[:, 0].astype(int)
    psi = [plain_solve(chunk, x, after, p[s], p[t], 0.9, found.c[:6][: found.m.K], (0, 0)).psi for p in (target, other)]
    assert gains[0].estimate == pytest.approx((psi[0] - psi[1]).mean(), rel=1e-9)
    assert gains[0].se > 0
    assert (gains[1].estimate, gains[1].se) == (0, 0)  # a policy against itself


def counted_log(mdp, times, horizon_one=True):
    """Every transition as often as its probability says, with probabilities that are whole shares of ``times``."""
    arcs = mdp.arcs
    s, a = np.divmod(arcs.row, mdp.n_actions)
    count = np.rint(arcs.probability * times).astype(int)
    rows = np.repeat(np.arange(len(s)), count)
    ended = mdp.terminal[arcs.s_next[rows]]
    return gq.Transitions.from_arrays(
        s[rows], a[rows], arcs.reward[rows], arcs.s_next[rows], ended, ~ended, n_actions=mdp.n_actions
    )


@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_on_rows_in_their_true_proportions_the_value_is_the_exact_one(discount):
    P = np.random.default_rng(4).multinomial(8, [0.25] * 4, size=(4, 2)) / 8
    mdp = gq.FiniteMDP(P, np.random.default_rng(5).random((4, 2)), discount)
    target = np.random.default_rng(6).dirichlet([1, 1], size=4)
    found = estimator(counted_log(mdp, 4000), "tabular", [target], discount).estimates()
    assert found.policies[0].values[0].estimate == pytest.approx(policy_value(mdp, target).mean(), rel=1e-3)
    uniform = policy_value(mdp, np.full((4, 2), 0.5)).mean()
    assert found.now.estimate == pytest.approx(uniform, rel=1e-3)  # every row is an episode that was cut off


def test_the_bound_of_one_step_is_that_of_a_bandit():
    """One state, one step: V̄ is a mean of two rewards' means, and the bound is Σ π²/b · Var r."""
    P = np.array([[[0, 0.5, 0.5], [0, 0.25, 0.75]], [[0, 1, 0]] * 2, [[0, 0, 1]] * 2])
    reward = np.zeros((3, 2, 3))
    reward[0] = [[0, 0, 2], [0, 1, 5]]
    mdp = gq.FiniteMDP(P, reward, 0.9, [False, True, True], [1, 0, 0])
    b, pi = np.array([[0.5, 0.5]] * 3), np.array([[0.2, 0.8]] * 3)
    found = efficiency_bound(mdp, b, pi, horizon=10)
    variances = np.array([1.0, 0.25 * 0.75 * 16])
    assert found.true_value == pytest.approx(0.2 * 1 + 0.8 * 4)
    assert found.value**2 == pytest.approx((np.array([0.2, 0.8]) ** 2 / 0.5 * variances).sum())
    # The gain over the mean of the log: Σ b (π/b − 1)² Var r, and the spread of the means that b itself has.
    means = np.array([1.0, 4.0])
    within = (0.5 * (np.array([0.2, 0.8]) / 0.5 - 1) ** 2 * variances).sum()
    assert found.gain**2 == pytest.approx(within + (0.5 * (means - means.mean()) ** 2).sum())
    assert found.true_gain == pytest.approx(0.7 * 0 + 3.4 - 2.5)
    never = efficiency_bound(mdp, np.array([[1.0, 0.0]] * 3), pi, horizon=10)
    assert (never.value, never.gain) == (np.inf, np.inf)


def test_visits_and_rows_of_a_log_are_what_the_chain_makes():
    mdp = ending()
    behavior, target = policies(6, 3, 1)
    visits = bounds.logged_visits(mdp, behavior, 12, mdp.start)
    data = sampled_log(mdp, behavior, 60_000, 12, seed=1).to_chunk()
    share = np.bincount(data.observations[:, 0].astype(int), minlength=6) / 60_000
    np.testing.assert_allclose(share, visits / visits.sum(), atol=0.01)  # 0.002 at most is expected
    d = bounds.discounted_visits(mdp, target, mdp.start)
    assert d @ (target * mdp.expected_reward).sum(axis=1) == pytest.approx(mdp.start @ policy_value(mdp, target))


def test_the_errors_are_those_of_the_bound_and_the_standard_errors_say_so():
    """240 logs of 2,000 rows: with fresh seeds the ratios miss their bands (3.5 standard errors) once in 700 times."""
    mdp = gq.garnet(6, 3, 3, discount=0.9, seed=21)
    behavior, target = policies(6, 3, 2)
    target = 0.5 * behavior + 0.5 * target
    bound = efficiency_bound(mdp, behavior, target, 40)
    found = []
    for seed in range(240):
        one = estimator(sampled_log(mdp, behavior, 2000, 40, seed=seed), "tabular", [target], 0.9).estimates()
        value, gain = one.policies[0].values[0], one.policies[0].gains[0]
        low, high = one.policies[0].value_range(0.95)
        found.append((value.estimate, value.se, low <= bound.true_value <= high, gain.estimate, gain.se))
    values, errors, covered, gains, gain_errors = np.array(found).T
    least = bound.value / np.sqrt(2000)
    assert np.sqrt(np.mean((values - bound.true_value) ** 2)) / least == pytest.approx(1, abs=0.16)
    assert errors.mean() / least == pytest.approx(1, abs=0.05)
    assert covered.mean() > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / 240)
    spread = np.sqrt(np.mean((gains - bound.true_gain) ** 2))
    assert gain_errors.mean() / spread == pytest.approx(1, abs=0.16)
    assert spread > 0.9 * bound.gain / np.sqrt(2000)


def written(data, path, rows):
    """The log in a Parquet file with row groups of so many rows."""
    import pyarrow.parquet as pq

    data.to_parquet(path)
    pq.write_table(pq.read_table(path), path, row_group_size=rows)
    return gq.Transitions.from_parquet(path)


@pytest.mark.parametrize("features", ["tabular", "trees"])
def test_parts_of_files_give_what_memory_gives(tmp_path, monkeypatch, features):
    mdp = ending()
    behavior, target = policies(6, 3, 1)
    data = sampled_log(mdp, behavior, 900, 12, seed=5)
    wanted = estimator(data, features, [target], 0.9).estimates()
    monkeypatch.setattr("gqlab.data.parts.PIECE_ROWS", 50)
    files = written(data, tmp_path / "log.parquet", 50)
    looked = look(files, 0)
    assert len(looked.firsts) == 18
    assert (looked.n_rows, looked.n_episodes) == (900, look(data, 0).n_episodes)
    same = estimator(files, features, [target], 0.9)
    monkeypatch.setattr(judged_rows, "BLOCK_ROWS", 7)
    found = same.estimates()
    for ours, theirs in zip(found.policies, wanted.policies, strict=True):
        np.testing.assert_allclose(numbers(ours.values), numbers(theirs.values), rtol=1e-8)
        np.testing.assert_allclose(numbers(ours.gains), numbers(theirs.gains), rtol=1e-8)
    assert found.now.estimate == pytest.approx(wanted.now.estimate, rel=1e-10)


def test_what_is_too_large_to_keep_is_learned_from_whole_episodes(monkeypatch):
    mdp = ending()
    behavior, target = policies(6, 3, 1)
    data = sampled_log(mdp, behavior, 2000, 12, seed=5)
    wanted = estimator(data, "tabular", [target], 0.9).estimates().policies[0]
    monkeypatch.setattr(judged_rows, "MOST_LEARNED", 500)
    monkeypatch.setattr("gqlab.judge.estimator.MOST_LEARNED", 500)
    sample = look(data, 0).sample
    assert 200 < len(sample) <= 500
    chunk = data.to_chunk()
    for number in np.unique(sample.episode):
        assert (chunk.episode == number).sum() == (sample.episode == number).sum()
    found = estimator(data, "tabular", [target], 0.9).estimates().policies[0]
    assert found.values[0].estimate == pytest.approx(wanted.values[0].estimate, rel=1e-3)  # λ is another, a little
    assert found.values[0].se == pytest.approx(wanted.values[0].se, rel=0.02)


def test_large_tables_are_solved_as_sparse_systems(monkeypatch):
    mdp = ending()
    behavior, target = policies(6, 3, 1)
    data = sampled_log(mdp, behavior, 600, 12, seed=5)
    wanted = estimator(data, "tabular", [target], 0.9).estimates().policies[0]
    monkeypatch.setattr(sums, "MOST_DENSE", 3)
    found = estimator(data, "tabular", [target], 0.9).estimates().policies[0]
    np.testing.assert_allclose(numbers(found.values), numbers(wanted.values), rtol=1e-9)
    np.testing.assert_allclose(numbers(found.gains), numbers(wanted.gains), rtol=1e-9)
