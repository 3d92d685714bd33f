"""Policies that are evaluated by one solve, and fits that are pessimistic: each against a form of its own in NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gqlab as gq
from gqlab.judge.simulated import sampled_log
from gqlab.mdp.values import policy_value

S, A = 6, 3


def garnet(discount, seed=3):
    """A Garnet whose values are all above 0, so that relative errors make sense."""
    mdp = gq.garnet(S, A, 3, discount=discount, seed=seed)
    return gq.FiniteMDP(mdp.transition, mdp.reward + 1.0, discount)


def tables(seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(A), size=(2, S))


def of_rows(table):
    return lambda observations: table[observations[:, 0].astype(int)]


def value_at(model, table, mdp):
    """The value at the distribution of first states."""
    return float(mdp.start @ model.value(np.arange(S, dtype=float)[:, None], of_rows(table)))


# --- Evaluation -------------------------------------------------------------------------------------------------------


def dense_pairs(x, n_actions):
    """φ(s, a) of all actions, (n, A, d), of features (n, K)."""
    n, K = x.shape
    out = np.zeros((n, n_actions, n_actions * K))
    for a in range(n_actions):
        out[:, a, a * K : (a + 1) * K] = x
    return out


def plain_evaluation(data, x, x_after, pi_after, discount, c, lam=None):
    """(A + λI)⁻¹(b + λ v0 c) and λ, of features whose mean square length is 1."""
    chunk = data.to_chunk()
    n, live, r = data.n_rows, 1.0 - chunk.terminated, np.asarray(chunk.rewards)
    phi = dense_pairs(x, A)[np.arange(n), chunk.actions]
    X = phi - discount * live[:, None] * np.einsum("na,nad->nd", pi_after, dense_pairs(x_after, A))
    v0 = r.sum() / (1 - discount * live).sum()
    d, c = phi.shape[1], np.tile(c, A)
    rounds, lam = (4, 1.0) if lam is None else (1, lam)
    for k in range(rounds):
        theta = np.linalg.solve(phi.T @ X + lam * np.eye(d), phi.T @ r + lam * v0 * c)
        C = phi.T @ phi
        sigma2 = ((r - X @ theta) ** 2).sum() / (n - np.trace(np.linalg.solve(C + lam * np.eye(d), C)))
        tau2 = max(((theta - v0 * c) ** 2).mean(), np.abs(r - r.mean()).max() ** 2)
        if k < rounds - 1:
            lam = float(np.clip(sigma2 / tau2, 1e-6, 1))
    return theta.reshape(A, -1), lam


def features(encoder, chunk):
    encoder.fit(np.arange(S, dtype=float)[:, None])
    rows = [np.asarray(o, float) for o in (chunk.observations, chunk.next_observations)]
    places = [encoder.encode_batch(o) for o in rows]
    if encoder.kind == "dense":
        return places
    return [(p[:, :, None] == np.arange(encoder.n_features_out_)).sum(axis=1) * encoder.value_ for p in places]


@pytest.mark.filterwarnings("ignore:the values of the policy move by")
@pytest.mark.parametrize("encoder", [gq.OneHot(S), gq.TileCoder(2, 3), gq.Fourier(2)], ids=str)
@pytest.mark.parametrize("algorithm", [gq.FittedQ, gq.LSPI])
@pytest.mark.parametrize("ridge", [None, 1e-3])
@pytest.mark.parametrize("ends", [False, True])
def test_a_policy_is_solved_for_as_the_formula_says(encoder, algorithm, ridge, ends):
    mdp = garnet(0.9)
    if ends:
        mdp = gq.FiniteMDP(mdp.transition, mdp.reward, 0.9, np.arange(S) == S - 1, [0.5, 0.5, 0, 0, 0, 0])
    behavior, target = tables()
    data = sampled_log(mdp, behavior, 2000, 40, seed=5)
    chunk = data.to_chunk()
    x, after = features(encoder, chunk)
    length = np.sqrt((x**2).sum(axis=1).mean())  # λ counts rows of this length
    c = (
        np.linalg.lstsq(x, np.ones(len(x)), rcond=None)[0]
        if encoder.kind == "dense"
        else np.full(x.shape[1], 1 / x[0].sum())
    )
    lam = None if ridge is None else ridge * len(x) / length**2
    pi_after = of_rows(target)(np.asarray(chunk.next_observations))
    wanted, _ = plain_evaluation(data, x / length, after / length, pi_after, 0.9, c * length, lam)
    found = gq.fit(data, encoder, algorithm(ridge), gq.FixedPolicy(target), discount=0.9)
    np.testing.assert_allclose(found.theta, wanted / length, rtol=1e-6, atol=1e-7)
    assert found.history["updates"].tolist() == [0, 1]


def test_all_that_is_a_policy_is_evaluated_alike():
    mdp = garnet(0.9)
    behavior, target = tables()
    data = sampled_log(mdp, behavior, 2000, 40, seed=5)
    states = np.arange(S, dtype=float)[:, None]
    model = gq.LinearQ(np.log(target).T, gq.OneHot(S).fit(states), gq.Softmax(1.0))
    thetas = [
        gq.fit(data, gq.OneHot(S), gq.FittedQ(), policy, discount=0.9).theta
        for policy in (gq.FixedPolicy(target), target, of_rows(target), model)
    ]
    for theta in thetas[1:]:
        np.testing.assert_allclose(theta, thetas[0], rtol=1e-12)


@pytest.mark.parametrize("discount", [0.9, 0.95, 0.99])
def test_fitted_q_evaluation_is_right_at_every_discount(discount):
    """Within 1 % of the exact value in the mean of ten logs; with a ridge towards 0 it was off by 6, 11 and 40 %."""
    mdp = garnet(discount)
    behavior, _ = tables()
    truth = float(mdp.start @ policy_value(mdp, behavior))
    errors = []
    for seed in range(10):
        data = sampled_log(mdp, behavior, 10_000, 100, seed=seed)
        model = gq.fit(data, gq.OneHot(S), gq.FittedQ(), gq.FixedPolicy(behavior), discount=discount)
        errors.append(value_at(model, behavior, mdp) / truth - 1)
    assert abs(np.mean(errors)) < 0.01


def test_a_warning_says_where_the_values_move_with_lambda(monkeypatch):
    """By as much as a small change of λ moves the mean value, in proportion."""
    mdp = gq.garnet(S, A, 3, discount=0.9, seed=3)
    behavior, target = tables()
    data = sampled_log(mdp, behavior, 60, 20, seed=5)
    with pytest.warns(RuntimeWarning, match=r"move by .* % with λ = .*gqlab.decide says how sure") as caught:
        gq.fit(data, gq.OneHot(S), gq.FittedQ(), gq.FixedPolicy(target), discount=0.9)
    assert caught[0].filename == __file__
    said = float(re.search(r"by ([\d.]+) %", str(caught[0].message)).group(1))
    lam = float(re.search(r"λ = ([\d.e-]+):", str(caught[0].message)).group(1))

    def mean_value(share):
        with pytest.warns(RuntimeWarning, match="move by"):
            model = gq.fit(data, gq.OneHot(S), gq.FittedQ(lam * share / 60), gq.FixedPolicy(target), discount=0.9)
        at = np.asarray(data.to_chunk().observations)
        return model.value(at, of_rows(target))

    slope = (mean_value(1.01).mean() - mean_value(0.99).mean()) / 0.02
    assert said == pytest.approx(100 * abs(slope) / np.sqrt((mean_value(1.0) ** 2).mean()), rel=0.05)
    many = sampled_log(mdp, behavior, 5000, 20, seed=5)
    gq.fit(many, gq.OneHot(S), gq.FittedQ(), gq.FixedPolicy(target), discount=0.9)  # warnings are errors
    monkeypatch.setattr("gqlab.learn.fit.evaluated.MOST_LEFT", 0.0)
    with pytest.warns(RuntimeWarning, match="have not converged: their system is close to singular"):
        gq.fit(many, gq.OneHot(S), gq.FittedQ(), gq.FixedPolicy(target), discount=0.9)


def test_a_warning_says_where_values_are_beyond_what_rewards_allow():
    """Rewards of 1 and γ = 0.9: at most 10. Features that grow along the way promise more."""
    x = np.array([[1.0], [1.0], [2.0], [2.0]])
    data = gq.Transitions.from_arrays(x, [0] * 4, [1.0] * 4, np.minimum(1.05 * x, 3), n_actions=1)
    with pytest.warns(
        RuntimeWarning, match=r"reach [\d.]+, but rewards allow 10 to 10: these features cannot hold"
    ) as w:
        gq.fit(data, gq.Identity(bias=False, scale=False), gq.FittedQ(), lambda o: np.ones((len(o), 1)), discount=0.9)
    assert w[0].filename == __file__


@pytest.mark.parametrize(
    ("algorithm", "more", "message"),
    [
        (gq.FittedQ(n_iterations=5), {}, "n_iterations is 5, but the target is a policy, whose values are solved"),
        (gq.LSPI(n_iterations=5), {}, "n_iterations is 5, but the target is a policy, whose values are solved"),
        (gq.FittedQ(pessimism=1), {}, "pessimism is 1, but the target is a policy, which is evaluated as it is"),
        (gq.FittedQ(), {"theta0": np.zeros((A, S))}, "theta0 is given, but the target is a policy"),
    ],
)
def test_what_an_evaluation_cannot_use_is_refused(algorithm, more, message):
    data = sampled_log(garnet(0.9), tables()[0], 60, 20, seed=5)
    for policy in (gq.FixedPolicy(tables()[1]), of_rows(tables()[1])):
        with pytest.raises(ValueError, match=f"^{message}") as error:
            gq.fit(data, gq.OneHot(S), algorithm, policy, **more)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"^theta0 is given, but a pessimistic fit begins with the least values"):
        gq.fit(data, gq.OneHot(S), gq.LSPI(pessimism=1), theta0=np.zeros((A, S)))
    with pytest.raises(ValueError, match=r"^pessimism is -1, expected"):
        gq.FittedQ(pessimism=-1)


# --- Pessimism --------------------------------------------------------------------------------------------------------


def logged(n_rows=300, seed=0, ends=True, offset=-1.5):
    """A log of a behaviour that hardly explores, and misses some pairs."""
    mdp = garnet(0.9)
    if ends:
        mdp = gq.FiniteMDP(mdp.transition, mdp.reward + offset, 0.9, np.arange(S) == S - 1, [0.5, 0.5, 0, 0, 0, 0])
    best = np.eye(A)[np.random.default_rng(seed).integers(A, size=S)]
    return sampled_log(mdp, 0.97 * best + 0.01, n_rows, 20, seed=seed)


def counts(data):
    chunk = data.to_chunk()
    s, t = (np.asarray(o)[:, 0].astype(int) for o in (chunk.observations, chunk.next_observations))
    n = np.zeros((S, A))
    np.add.at(n, (s, chunk.actions), 1)
    return n, s, np.asarray(chunk.actions), t, np.asarray(chunk.rewards), 0.9 * (1.0 - chunk.terminated)


def plain_pessimism(data, beta, q_min, n_iterations=200, few=0.01):
    """Fitted Q of a table, pair by pair: q̃ = max(q_min, q − β·sd/√(n + few)), and q_min where n is 0."""
    n, s, a, t, r, gamma = counts(data)
    q = np.full((S, A), q_min)
    h, low, sd = 1 / (n + few), q, 0.0
    for _ in range(n_iterations):
        y = r + gamma * low.max(axis=1)[t]
        total = np.zeros((S, A))
        np.add.at(total, (s, a), y)
        q = (total + few * q_min) / (n + few)
        sd = np.sqrt(((y - q[s, a]) ** 2).sum() / (len(s) - (n / (n + few)).sum()))
        low = np.where(n > 0, np.maximum(q - beta * sd * np.sqrt(h), q_min), q_min)
    return low, n, sd


@pytest.mark.parametrize(("ends", "offset"), [(False, 0.0), (True, -1.5), (True, 0.0)])
@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_pessimistic_values_are_those_of_a_table(ends, offset, beta):
    data = logged(ends=ends, offset=offset)
    rewards = np.asarray(data.to_chunk().rewards)
    q_min = min(rewards.min(), rewards.min() / (1 - 0.9)) if ends else rewards.min() / (1 - 0.9)
    wanted, n, _ = plain_pessimism(data, beta, q_min)
    seen = n.sum(axis=1) > 0
    assert (n[seen] == 0).any()
    model = gq.fit(data, gq.OneHot(S), gq.FittedQ(pessimism=beta), discount=0.9)
    q = model.q(np.arange(S, dtype=float)[:, None])
    np.testing.assert_allclose(q[seen], wanted[seen], rtol=1e-6)
    np.testing.assert_allclose(q[n == 0], q_min, rtol=1e-8)
    assert (q > q_min + 0.1).any()
    solved = gq.fit(data, gq.OneHot(S), gq.LSPI(pessimism=beta), discount=0.9)
    np.testing.assert_allclose(solved.q(np.arange(S, dtype=float)[:, None])[seen], wanted[seen], rtol=1e-5)


def test_more_pessimism_is_lower_and_none_is_the_plain_fit():
    data = logged(2000)
    states = np.arange(S, dtype=float)[:, None]
    found = [gq.fit(data, gq.OneHot(S), gq.FittedQ(pessimism=b), discount=0.9).q(states) for b in (0.1, 1, 3)]
    assert (found[0] >= found[1] - 1e-9).all()
    assert (found[1] >= found[2] - 1e-9).all()
    plain = gq.fit(data, gq.OneHot(S), gq.FittedQ(), discount=0.9)
    zero = gq.fit(data, gq.OneHot(S), gq.FittedQ(pessimism=0.0), discount=0.9)
    np.testing.assert_array_equal(plain.theta, zero.theta)


@pytest.mark.parametrize("encoder", [gq.Fourier(2), gq.TileCoder(2, 3)], ids=str)
@pytest.mark.parametrize("algorithm", [gq.FittedQ, gq.LSPI])
def test_a_pessimistic_fixed_point_is_one(encoder, algorithm):
    """θ of the last iterate solves its own regression, with leverages of an explicit inverse."""
    data = logged(600)
    chunk = data.to_chunk()
    x, after = features(encoder, chunk)
    a, r, gamma = np.asarray(chunk.actions), np.asarray(chunk.rewards), 0.9 * (1.0 - chunk.terminated)
    model = gq.fit(data, encoder, algorithm(pessimism=1.0, n_iterations=400), discount=0.9)
    theta = model.history["theta"][-2]  # before the lower values were folded into it
    K, few = x.shape[1], 0.01 * (x**2).sum(axis=1).mean()
    one = np.linalg.lstsq(x, np.ones(len(x)), rcond=None)[0] if encoder.kind == "dense" else np.full(K, 1 / x[0].sum())
    q_min = r.min() / (1 - 0.9)
    grams = [x[a == k].T @ x[a == k] + few * np.eye(K) for k in range(A)]

    def lower(states, sd):
        h = np.stack([np.einsum("nk,kl,nl->n", states, np.linalg.inv(gram), states) for gram in grams], axis=1)
        return np.where(h < 1, np.maximum(states @ theta.T - sd * np.sqrt(h), q_min), q_min)

    taken = (x * theta[a]).sum(axis=1)
    free = len(x) - sum(K - few * np.trace(np.linalg.inv(gram)) for gram in grams)
    sd = 0.0
    for _ in range(300):
        y = r + gamma * lower(after, sd).max(axis=1)
        sd = np.sqrt(((y - taken) ** 2).sum() / free)
    for k, gram in enumerate(grams):
        wanted = np.linalg.solve(gram, x[a == k].T @ y[a == k] + few * q_min * one)
        np.testing.assert_allclose(theta[k], wanted, rtol=1e-4, atol=1e-4)


def test_pessimism_keeps_away_from_what_the_log_does_not_hold():
    """One lucky row of a bad action: the plain fit takes it, the pessimistic one does what was seen often."""
    s, a = np.zeros(101), np.append(np.zeros(100, int), 1)
    reward = np.append(np.random.default_rng(0).normal(1.0, 1.0, 100), 1.5)
    data = gq.Transitions.from_arrays(s, a, reward, terminated=np.ones(101, bool), n_actions=3)
    plain, careful = (gq.fit(data, gq.OneHot(1), gq.FittedQ(pessimism=b), discount=0.9) for b in (0.0, 1.0))
    assert plain.predict([0.0])[0] == 1
    assert careful.predict([0.0])[0] == 0
    assert careful.q([0.0])[2] == pytest.approx(min(reward), rel=1e-6)


@pytest.mark.long
def test_an_agent_that_refits_can_be_pessimistic():
    encoder = gq.Fourier(1, low=[-2.4, -3, -0.21, -3], high=[2.4, 3, 0.21, 3])
    agent = gq.Agent("CartPole-v1", encoder, gq.FittedQ(pessimism=1.0), discount=0.9, replay=gq.Refit(every=100))
    assert agent.learn(250).n_updates == 2


# --- The history ------------------------------------------------------------------------------------------------------


def test_the_first_iterations_every_tenth_and_the_last_are_measured():
    data = logged(200)
    for n, more in ((8, []), (20, []), (37, [30, 37]), (60, [30, 40, 50, 60])):
        model = gq.fit(data, gq.OneHot(S), gq.FittedQ(n_iterations=n), discount=0.9)
        assert model.history["updates"].tolist() == [*range(min(n, 20) + 1), *more]
        np.testing.assert_array_equal(model.history["theta"][-1], model.theta)
    careful = gq.fit(data, gq.OneHot(S), gq.FittedQ(n_iterations=37, pessimism=1), discount=0.9)
    assert careful.history["updates"].tolist() == [*range(21), 30, 38]
    np.testing.assert_array_equal(careful.history["theta"][-1], careful.theta)


@pytest.mark.parametrize("target", [gq.Greedy(), gq.EpsilonGreedy(0.3)], ids=str)
def test_the_value_of_greedy_operators_is_that_of_their_policy(target):
    q = np.random.default_rng(0).normal(size=(50, 4))
    q[::5, 2] = q[::5].max(axis=1)
    np.testing.assert_allclose(target.value(q), (target.policy(q) * q).sum(axis=-1), rtol=1e-14)
