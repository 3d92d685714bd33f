"""Sparse forms and large problems: the same numbers as the dense ones, certified, or one message."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import gqlab as gq
from conftest import assert_close
from gqlab.lab import check as steps
from gqlab.mdp import chains, large_chains, values
from gqlab.mdp import finite as mdp
from gqlab.rules.dispatch import at
from gqlab.samples import ahead
from gqlab.samples.random import alias_table, alias_tables
from gqlab.samples.streams import RunIdentity
from gqlab.samples.tables import join_tables

RNG = np.random.default_rng(5)


def episodic() -> gq.FiniteMDP:
    """12 states of which two end, with a discount for every transition, and restarts from three states."""
    P = RNG.random((12, 3, 12)) * (RNG.random((12, 3, 12)) < 0.4) + 0.1 * np.eye(12)[:, None]
    gamma = 0.9 * RNG.random((12, 3, 12))
    first = np.array([0.2, 0.3, 0.5] + [0.0] * 9)
    P /= P.sum(axis=-1, keepdims=True)
    return gq.FiniteMDP(P, RNG.standard_normal((12, 3, 12)), gamma, np.arange(12) >= 10, first)


MDPS = {
    "garnet": lambda: gq.garnet(9, 3, 4, seed=2),
    "episodic": episodic,
    "lake": lambda: gq.FiniteMDP.from_gymnasium("FrozenLake-v1", discount=0.95),
    "two classes of rows": lambda: gq.garnet(30, 2, 30, seed=1),
}


def forms(m: gq.FiniteMDP) -> dict[str, gq.FiniteMDP]:
    """The same MDP in every form."""
    S, A = m.n_states, m.n_actions
    one = [sparse.csr_array(x.reshape(S * A, S)) for x in (m.transition, m.reward, m.discount)]
    each = [[sparse.coo_array(x[:, a]) for a in range(A)] for x in (m.transition, m.reward, m.discount)]
    s, a, s_next = np.nonzero(m.transition)
    order = np.random.default_rng(0).permutation(len(s))
    columns = [
        column[order] for column in (s, a, s_next, *(x[s, a, s_next] for x in (m.transition, m.reward, m.discount)))
    ]
    ends = {"terminal": m.terminal, "initial": m.initial}
    return {
        "dense": gq.FiniteMDP(m.transition, m.reward, m.discount, **ends),
        "one matrix": gq.FiniteMDP(*one, **ends),
        "a matrix for each action": gq.FiniteMDP(*each, **ends),
        "transitions": gq.FiniteMDP.from_transitions(*columns, n_states=S, **ends),
    }


@pytest.mark.parametrize("name", MDPS)
def test_all_forms_of_an_mdp_are_the_same_problem(name):
    m = MDPS[name]()
    phi = gq.random_features(m, 4)
    problems = {form: gq.Problem(x, phi) for form, x in forms(m).items()}
    first = problems["dense"]
    m = first.mdp
    for form, problem in problems.items():
        assert problem.fingerprint == first.fingerprint, form
        for mine, theirs in zip(problem.mdp.arcs, m.arcs, strict=True):
            assert np.array_equal(mine, theirs), form
        assert np.array_equal(problem.mdp.transition, m.transition)
        assert np.array_equal(problem.mdp.reward[m.transition > 0], m.reward[m.transition > 0])
        assert np.array_equal(problem.mdp.discount[m.transition > 0], m.discount[m.transition > 0])
        assert np.array_equal(problem.exact.stationary, first.exact.stationary)
    other = gq.FiniteMDP(m.transition, m.reward + 1e-9, m.discount, m.terminal, m.initial)
    assert gq.Problem(other, phi).fingerprint != first.fingerprint


def test_runs_are_the_same_whatever_the_form():
    m = gq.garnet(5, 3, 2)
    results = [gq.run(gq.Problem(x, gq.random_features(m, 4)), gq.GreedyGQ(), 500, n_runs=2) for x in forms(m).values()]
    for result in results[1:]:
        assert np.array_equal(result.theta, results[0].theta)


def test_transitions_that_occur_twice_are_summed_with_their_mean_reward():
    m = gq.FiniteMDP.from_transitions(
        [0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0.2, 1, 0.6, 0.2], [1, 3, 5, 7], [0.5, 0.9, 0.9, 0]
    )
    assert_close(m.transition[:, 0], [[0.2, 0.8], [1, 0]], 1e-15)
    assert_close(m.reward[:, 0], [[7, 4], [3, 0]], 1e-14)
    assert_close(m.discount[0, 0], [0, 0.8], 1e-14)


def quantities(problem: gq.Problem) -> dict[str, np.ndarray]:
    exact, theta = problem.exact, np.random.default_rng(1).standard_normal((2, problem.dim))
    return {
        "stationary": exact.stationary,
        "C": exact.feature_covariance,
        **{name: getattr(exact, name)(theta) for name in (
            "mspbe", "omega_star", "gradient", "hessian", "delta", "phi_hat", "average_reward", "value", "q"
        )},
        "optimal": exact.optimal_value,
        "policy": problem.policy(theta),
    }  # fmt: skip


@pytest.mark.parametrize("name", MDPS)
def test_sparse_algebra_gives_what_dense_algebra_does(name, monkeypatch):
    m = MDPS[name]()
    phi = gq.random_features(m, 3)
    expected = quantities(gq.Problem(m, phi))
    rows = sparse.csr_array(phi.reshape(-1, 3))
    monkeypatch.setattr(mdp, "SMALL_STATES", 0)
    monkeypatch.setattr(large_chains, "DENSE", 0)
    for features in (phi, rows):
        for key, value in quantities(gq.Problem(m, features)).items():
            np.testing.assert_allclose(
                value, expected[key], rtol=0, atol=1e-12 * (1 + np.abs(value).max()), err_msg=key
            )


@pytest.mark.parametrize(("n", "gamma"), [(600, 0.95), (600, 0.999), (1000, 0.9999)])
def test_optimal_values_travel_along_a_line(n, gamma):
    s, a = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
    walk = gq.FiniteMDP.from_transitions(s, a, np.clip(s + 2 * a - 1, 0, n - 1), 1.0, (s == n - 1) * 1.0, gamma)
    assert_close(values.optimal_value(walk), gamma ** np.arange(n - 1, -1, -1) / (1 - gamma), 1e-12 / (1 - gamma))


def test_a_state_that_is_hardly_ever_left_is_left():
    stay = sparse.eye_array(600).tolil()
    stay[0, 1] = 1e-20  # 1 − K[0, 0] is 0 in floating point
    mdp = gq.FiniteMDP(stay.tocsr(), np.arange(600.0)[:, None], 0.9)
    assert values.average_reward(mdp, np.ones((1, 600, 1)), np.eye(600)[0]) == [1.0]


def test_a_policy_with_several_classes_is_averaged_over_where_it_ends():
    """0 goes to the cycle 1, 2 or stays around in 3 → 4 → 0, which goes to the absorbing 5."""
    P = np.zeros((6, 1, 6))
    s, s_next = [0, 0, 1, 2, 3, 4, 4, 5], [1, 3, 2, 1, 4, 0, 5, 5]
    P[s, 0, s_next] = [0.3, 0.7, 1, 1, 1, 0.5, 0.5, 1]
    K = gq.FiniteMDP(P, 0.0, 0.9, initial=np.eye(6)[0]).sparse_chain(np.ones((6, 1)))
    mu = large_chains.long_run_distribution(K, chains.recurrent_classes(K), np.eye(6)[0])
    cycle = 0.3 / (1 - 0.35)  # each round: 0.3 into the cycle, 0.35 back, 0.35 into state 5
    assert_close(mu, [0, cycle / 2, cycle / 2, 0, 0, 1 - cycle], 1e-14)


# --- Stationary distributions ---------------------------------------------------------------------------------------


def random_chain(n: int, seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    w = rng.random((n, 10))
    return sparse.csr_array(
        ((w / w.sum(axis=1, keepdims=True)).ravel(), (np.repeat(np.arange(n), 10), rng.integers(n, size=10 * n))),
        (n, n),
    )


def linked(epsilon: float) -> sparse.csr_array:
    """Two chains, one seldom followed by the other."""
    parts = sparse.block_diag([random_chain(300, 1), random_chain(400, 2)], format="csr")
    move = sparse.csr_array((np.ones(700), (np.arange(700), np.append(np.full(300, 500), np.full(400, 7)))), (700, 700))
    return (1 - epsilon) * parts + epsilon * move


def ring(n: int, up: float) -> sparse.csr_array:
    s = np.arange(n)
    return sparse.csr_array(
        (np.append(np.full(n, up), np.full(n, 1 - up)), (np.append(s, s), np.append((s + 1) % n, (s - 1) % n))), (n, n)
    )


CHAINS = {
    "fast": lambda: random_chain(700),
    "periodic": lambda: sparse.block_array([[None, random_chain(350)], [random_chain(350, 3), None]], format="csr"),
    "a ring": lambda: ring(701, 1.0),
    "a slow ring": lambda: ring(701, 0.5),
    "seldom moving": lambda: 1e-6 * random_chain(700) + (1 - 1e-6) * sparse.eye_array(700, format="csr"),
    "linked": lambda: linked(1e-4),
    "nearly apart": lambda: linked(1e-10),
    "unlikely states": lambda: sparse.csr_array(
        sparse.diags_array([[0.6] * 599, [0.7] + [0.1] * 598 + [0.4], [0.3] * 599], offsets=[-1, 0, 1])
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_stationary_distribution_is_right_to_1e_12_and_the_bound_holds(name):
    K = CHAINS[name]()
    expected = chains.stationary_distribution(K.toarray())
    mu = large_chains.stationary_distribution(K)
    assert 0.5 * np.abs(mu - expected).sum() <= 1e-12
    rough, e = large_chains._corrected(K)
    assert 0.5 * np.abs(rough - expected).sum() <= e
    if name in ("fast", "periodic", "seldom moving", "linked"):
        assert e <= 1e-12
    if name == "unlikely states":
        assert_close(mu[400] / expected[400], 1.0, 1e-10)  # though it is 2⁻⁴⁰⁰


def test_the_bound_on_a_wrong_distribution_holds():
    Q = large_chains._Generator(random_chain(700))
    mu = chains.stationary_distribution(random_chain(700).toarray())
    z = int(mu.argmax())
    h = Q.times(z, 1 / mu[z])
    moved = mu.copy()
    moved[z], moved[0] = mu[z] - 1e-4, mu[0] + 1e-4
    rho, rounding = Q.residual(moved)
    assert 1e-4 <= float((np.abs(rho) + rounding) @ h) < 1e-1
    exact = np.zeros(700)
    others = np.arange(700) != z
    exact[others] = np.linalg.solve((np.eye(700) - random_chain(700).toarray())[np.ix_(others, others)], np.ones(699))
    assert (h >= exact).all()
    assert (h <= 1.01 * exact + 1e-9).all()


def test_what_cannot_be_certified_is_refused_with_what_was_reached(monkeypatch):
    monkeypatch.setattr(large_chains, "DENSE_AT_LAST", 0)
    monkeypatch.setattr(large_chains, "BAND_NUMBERS", 0)
    with pytest.raises(
        ValueError, match=r"chain of 700 states is certified only to \d.\de-\d+ in total variation, expected"
    ):
        large_chains.stationary_distribution(linked(1e-10))
    assert large_chains.stationary_distribution(linked(1e-4)).sum() == pytest.approx(1)


def test_a_large_garnet_is_ergodic_with_distinct_successors():
    m = gq.garnet(2500, 2, 6, seed=4)
    x, row = m.arcs, m.arcs.row
    assert (np.diff(x.first) == 6).all()
    assert len(np.unique(row * 2500 + x.s_next)) == 2500 * 2 * 6
    assert_close(np.bincount(row, weights=x.probability), np.ones(5000), 1e-14)
    counts = np.bincount(x.s_next, minlength=2500)
    assert 11.5 < counts.mean() < 12.5
    assert counts.std() < 4  # Poisson: √12
    mu = m.stationary(np.full((2500, 2), 0.5))
    assert_close(m.sparse_chain(np.full((2500, 2), 0.5)).T @ mu, mu, 1e-15)
    assert np.array_equal(gq.garnet(2500, 2, 6, seed=4).arcs.reward, x.reward)
    exact = gq.Problem(m, gq.random_features(m, 3)).exact
    V, Q = exact.optimal_value, exact.q(np.zeros(3))
    assert_close((m.expected_reward + (m.discounted @ V).reshape(2500, 2)).max(axis=1), V, 1e-11)
    assert_close(Q, m.expected_reward + (m.discounted @ exact.value(np.zeros(3))).reshape(2500, 2), 1e-11)


# --- What runs read -------------------------------------------------------------------------------------------------


def test_alias_tables_of_many_rows_are_those_of_each():
    for n in (1, 2, 7, 20):
        weights = RNG.random((50, n)) ** 3 + 1e-9
        weights[::7] = 1.0
        threshold, alias = alias_tables(weights)
        for k, row in enumerate(weights):
            expected = alias_table(row)
            assert np.array_equal(threshold[k], expected[0])
            assert np.array_equal(alias[k], expected[1])


def test_a_chain_that_looks_ahead_draws_the_same_samples(monkeypatch):
    monkeypatch.setattr(ahead, "FAR", 0)
    mdps = [gq.garnet(50, 4, 5), MDPS["lake"](), gq.garnet(10, 4, 3)]
    problems = [gq.Problem(m, gq.random_features(m, 2)) for m in mdps]
    plain = join_tables(problems, [problems[0].target.compiled])
    early = ahead.fetched_early(plain, 8)
    assert isinstance(early.stream, ahead.AheadChain)
    drawn = np.empty((2, 2000), dtype=np.uint32)
    for k in range(3):
        for out, tables in zip(drawn, (plain, early), strict=True):
            steps._trajectory(at(tables.stream, k), RunIdentity(np.uint64(7), k), out)
        assert np.array_equal(*drawn)


def test_runs_on_sparse_features_are_those_on_dense_ones(monkeypatch):
    m = MDPS["lake"]()
    phi = gq.tabular_features(m)
    problems = [gq.Problem(m, x) for x in (phi, sparse.coo_matrix(phi.reshape(-1, phi.shape[-1])))]
    assert problems[0].fingerprint == problems[1].fingerprint
    assert problems[1].has_sparse_features
    assert np.array_equal(problems[1].features, phi)
    assert problems[1].largest_norm_squared == 1
    dense = gq.run(problems[0], gq.GreedyGQ(0.1, 0.05), 2000, n_runs=2)
    monkeypatch.setattr(ahead, "FAR", 0)
    result = gq.run(problems[1], gq.GreedyGQ(0.1, 0.05), 2000, n_runs=2)
    assert_close(result.theta, dense.theta, 1e-12)
    with pytest.raises(ValueError, match="device is 'cuda', but problems with sparse features run only on 'cpu'"):
        gq.run(problems[1], gq.GreedyGQ(), 100, n_runs=1, device="cuda")


# --- Bad input ------------------------------------------------------------------------------------------------------


P2 = sparse.csr_array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.2, 0.8]])


def changed(place: tuple[int, int], value: float) -> sparse.csr_array:
    out = P2.tolil()
    out[place] = value
    return out.tocsr()


def of_transitions(**new: object) -> gq.FiniteMDP:
    columns = {"s": [0, 1], "a": [0, 0], "s_next": [1, 0], "probability": [1.0, 1.0], "reward": 0.0, "discount": 0.9}
    return gq.FiniteMDP.from_transitions(**{**columns, **new})


def outside() -> sparse.csc_array:
    """A matrix whose indices were changed behind SciPy's back."""
    out = sparse.csc_array(np.eye(4))
    out.indices = np.array([0, 1, 2, 2**30], dtype=np.int32)
    return out


WRONG = {
    "index outside": (
        lambda: gq.FiniteMDP(outside(), 0.0, 0.9),
        "transition is not a valid sparse matrix: indices must be < 4",
    ),
    "mistyped index": (
        lambda: of_transitions(s=[0, 10**12]),
        "n_states is 'for 1000000000001 states and 1 actions': that needs",
    ),
    "row": (lambda: gq.FiniteMDP(changed((2, 0), 0.9), 0.0, 0.9), "transition[1, 0] sums to 0.9, expected 1"),
    "left by no action": (
        lambda: gq.FiniteMDP(sparse.csr_array([[0.0, 1.0], [0.0, 0.0]]), 0.0, 0.9),
        "transition[1]: no action leaves state 1",
    ),
    "negative": (
        lambda: gq.FiniteMDP(changed((0, 1), -0.5), 0.0, 0.9),
        "transition[0, 0, 1] is -0.5, a negative probability",
    ),
    "nan": (lambda: gq.FiniteMDP(changed((3, 1), np.nan), 0.0, 0.9), "transition[1, 1, 1] is nan"),
    "shape": (lambda: gq.FiniteMDP(P2[:3], 0.0, 0.9), "transition has shape (3, 2), expected (S·A, S)"),
    "one of the matrices": (
        lambda: gq.FiniteMDP([P2[:2], P2], 0.0, 0.9),
        "transition[1] has shape (4, 2), expected a sparse matrix of shape (2, 2) for each action",
    ),
    "one is dense": (lambda: gq.FiniteMDP([P2[:2], np.eye(2)], 0.0, 0.9), "transition[1] is not sparse"),
    "complex": (lambda: gq.FiniteMDP(P2.astype(complex), 0.0, 0.9), "transition is not a matrix of numbers"),
    "reward": (lambda: gq.FiniteMDP(P2, P2[:2], 0.9), "reward has 2 states and 1 actions, expected 2 and 2"),
    "discount": (lambda: gq.FiniteMDP(P2, 0.0, 2.0 * P2), "discount[0, 0, 0] is 1.0, expected at least 0 and below 1"),
    "state out of range": (lambda: of_transitions(n_states=1), "s[1] is 1, expected at least 0 and below 1"),
    "negative index": (lambda: of_transitions(s_next=[1, -1]), "s_next[1] is -1, expected at least 0 and below 2"),
    "action out of range": (
        lambda: of_transitions(a=[0, 3], n_actions=2),
        "a[1] is 3, expected at least 0 and below 2",
    ),
    "length": (lambda: of_transitions(s_next=[1, 0, 1]), "s_next has shape (3,), expected (2,)"),
    "half an index": (lambda: of_transitions(s=[0.0, 1.0]), "s has shape (2,) and dtype float64, expected one axis"),
    "sum of transitions": (lambda: of_transitions(probability=[1, 0.5]), "transition[1, 0] sums to 0.5, expected 1"),
    "probability": (lambda: of_transitions(probability=[1, -1]), "probability[1] is -1.0, a negative probability"),
    "discount of one": (
        lambda: of_transitions(discount=[0.5, 1.0]),
        "discount[1] is 1.0, expected at least 0 and below 1",
    ),
    "dense": (
        lambda: gq.FiniteMDP(sparse.eye_array(10**6, format="csr"), 0.0, 0.9).transition,
        "the dense shape of transition is (1000000, 1, 1000000): that needs",
    ),
    "features shape": (
        lambda: gq.Problem(gq.FiniteMDP(P2, 0.0, 0.9), P2[:3]),
        "features has shape (3, 2), expected (4, *)",
    ),
    "features": (
        lambda: gq.Problem(gq.FiniteMDP(P2, 0.0, 0.9), changed((1, 1), np.inf)),
        "features[1, 1] is inf, expected a finite number",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_gets_one_line(name):
    make, message = WRONG[name]
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        make()
    assert "\n" not in str(error.value)
