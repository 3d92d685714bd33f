"""Learning from logged data: the means, the passes, the solvers, the errors."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import gqlab as gq
from gqlab.algorithms import LSPI, FittedQ
from gqlab.cli.main import main
from gqlab.encoders import Fourier, OneHot
from gqlab.learn.fit.empirical import Empirical
from gqlab.learn.fit.fit import fit
from gqlab.learn.fit.log_table import encode_log
from helpers.plain_loops import greedy_gq

S, A = 6, 2


@pytest.fixture(scope="module")
def problem():
    mdp = gq.garnet(S, A, branching=2, discount=0.8, seed=1)
    return gq.Problem(mdp, gq.tabular_features(mdp), target=gq.Softmax(2.0))


@pytest.fixture(scope="module")
def log(problem):
    """Every transition as often as it happens, so that means over rows are exact means."""
    mdp, mu = problem.mdp, problem.exact.stationary
    weight = mu[:, None, None] * problem.behavior[:, :, None] * mdp.transition
    s, a, s_next = np.nonzero(weight)
    return (s, a, s_next), weight[s, a, s_next], mdp.reward[s, a, s_next]


def transitions(s, a, reward, s_next, terminated=None):
    return gq.Transitions.from_arrays(
        s.astype(float)[:, None], a, reward, s_next.astype(float)[:, None], terminated, n_actions=A
    )


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 400
    s, a, s_next = rng.integers(0, S, n), rng.integers(0, A, n), rng.integers(0, S, n)
    return transitions(s, a, rng.uniform(size=n), s_next, rng.uniform(size=n) < 0.1)


def empirical(data, target, encoder=None, discount=0.8):
    made = OneHot(n_values=S).fit(np.arange(S, dtype=float)[:, None]) if encoder is None else encoder
    return Empirical(encode_log(data.to_chunk(), made, target, A, discount), made, target, A)


def test_means_over_rows_are_the_exact_ones_where_rows_are_as_frequent(problem):
    """A log with every transition in proportion to its probability, which is a multiple of 2⁻¹⁰ here."""
    P = np.zeros((3, 2, 3))
    P[0, 0], P[0, 1], P[1, 0], P[1, 1], P[2, 0], P[2, 1] = (
        [0.5, 0.5, 0], [0, 0.25, 0.75], [0.25, 0.25, 0.5], [1, 0, 0], [0, 1, 0], [0.5, 0, 0.5],
    )  # fmt: skip
    mdp = gq.FiniteMDP(P, np.arange(18.0).reshape(3, 2, 3) / 18, discount=0.8)
    exact = gq.Problem(mdp, gq.tabular_features(mdp), target=gq.Softmax(1.5)).exact
    share = exact.stationary[:, None, None] * 0.5 * P
    counts = np.round(share / share[share > 0].min() * 20).astype(int)
    s, a, s_next = np.nonzero(counts)
    rows = np.repeat(np.arange(len(s)), counts[s, a, s_next])
    s, a, s_next = s[rows], a[rows], s_next[rows]
    data = transitions(s, a, mdp.reward[s, a, s_next], s_next)
    objective = empirical(data, gq.Softmax(1.5), OneHot(n_values=3).fit([[0.0], [1.0], [2.0]]))
    theta = np.random.default_rng(1).normal(size=(2, 3))
    tabular = theta.T.reshape(-1)  # tabular features count (s, a), the log's (a, s)
    tolerance = 2 * np.abs(counts / counts.sum() - share).sum() + 1e-12
    assert abs(objective.mspbe(theta) - exact.mspbe(tabular)) <= tolerance * 10
    gradient = objective.gradient(theta).T.reshape(-1)
    np.testing.assert_allclose(gradient, exact.gradient(tabular), atol=10 * tolerance)


@pytest.mark.parametrize(
    "target", [gq.Softmax(2.0), gq.Mellowmax(3.0), gq.EpsilonGreedy(0.2)], ids=lambda t: type(t).__name__
)
@pytest.mark.parametrize("dense", [True, False], ids=["Fourier", "OneHot"])
def test_the_gradient_is_that_of_J(data, target, dense):
    objective = empirical(data, target, Fourier(3, low=[0], high=[S - 1]).fit([[0.0]]) if dense else None)
    rng = np.random.default_rng(2)
    theta, v = rng.normal(size=(2, A, objective.K))
    h = 1e-6
    difference = (objective.mspbe(theta + h * v) - objective.mspbe(theta - h * v)) / (2 * h)
    assert (objective.gradient(theta) * v).sum() == pytest.approx(difference, rel=1e-6)


def test_iterative_regressions_are_the_direct_ones(data, monkeypatch):
    direct = empirical(data, gq.Softmax(1.0))
    monkeypatch.setattr("gqlab.learn.fit.empirical.MOST_DENSE", 0)
    iterative = empirical(data, gq.Softmax(1.0))
    assert iterative.roots is None
    theta = np.random.default_rng(3).normal(size=(A, S))
    np.testing.assert_allclose(iterative.gradient(theta), direct.gradient(theta), atol=1e-9)


def test_passes_are_greedy_gq_on_the_rows_in_their_order(problem):
    problem = gq.Problem(problem.mdp, problem.features, target=gq.Greedy())
    x = gq.trajectory(problem, 300, seed=5)
    data = transitions(x.s, x.a, problem.mdp.reward[x.s, x.a, x.s_next], x.s_next)
    encoder = OneHot(n_values=S).fit(np.arange(S, dtype=float)[:, None])
    algorithm = gq.GreedyGQ(0.1, 0.05, radius=2.0)
    model = fit(data, encoder, algorithm, discount=0.8, n_passes=2, rows="in order")
    again = gq.Trajectory(*(np.tile(column, 2) for column in x))
    plain = greedy_gq(problem, again, np.zeros(S * A), np.zeros(S * A), lambda t: (0.1, 0.05), radii=(2.0, 2.0))
    np.testing.assert_allclose(model.theta.T.reshape(-1), plain[-1, 0], atol=1e-12)
    np.testing.assert_allclose(model.history["theta"][1].T.reshape(-1), plain[300, 0], atol=1e-12)
    assert model.history["updates"].tolist() == [0, 300, 600]


def test_shuffled_rows_are_the_same_rows(data):
    encoder = OneHot(n_values=S).fit(np.arange(S, dtype=float)[:, None])
    order = np.random.default_rng(4).permutation(data.n_rows)
    chunk = data.to_chunk()
    for log in (
        encode_log(chunk, encoder, gq.Greedy(), A, 0.8),
        encode_log(chunk, encoder, gq.Greedy(), A, 0.8, order),
    ):
        rows = np.arange(data.n_rows) if len(log.features) != 2 * data.n_rows else order
        np.testing.assert_array_equal(log.features[log.observation, 0], chunk.observations[rows, 0])
        after = np.where(chunk.terminated, chunk.observations[:, 0], chunk.next_observations[:, 0])
        np.testing.assert_array_equal(log.features[log.next_observation, 0], after[rows])
        np.testing.assert_array_equal(log.discount == 0, chunk.terminated[rows])


def test_the_solvers_solve(data):
    """FittedQ's fixed point and LSPI's are the same without a ridge: mean δφ = 0, on tabular features."""
    encoder = OneHot(n_values=S)
    fitted = fit(data, encoder, FittedQ(ridge=0.0, n_iterations=300), discount=0.8)
    solved = fit(data, encoder, LSPI(ridge=0.0), discount=0.8)
    search = fit(data, encoder, gq.LeastSquaresGreedyGQ(), discount=0.8)
    np.testing.assert_allclose(fitted.theta, solved.theta, atol=1e-9)
    np.testing.assert_allclose(search.theta, solved.theta, atol=1e-5)
    objective = empirical(data, gq.Greedy())
    np.testing.assert_allclose(objective.block_means(objective.delta(solved.theta)), 0, atol=1e-12)


def test_the_linear_model_of_the_mean_is_exact_where_it_stands(data):
    objective = empirical(data, gq.Softmax(2.0))
    theta = np.random.default_rng(5).normal(size=(A, S))
    matrix, b = objective.linearised(theta)
    np.testing.assert_allclose(
        b - matrix @ theta.reshape(-1), objective.block_means(objective.delta(theta)).reshape(-1), atol=1e-12
    )
    v, h = np.random.default_rng(6).normal(size=(A, S)), 1e-6
    change = objective.block_means(objective.delta(theta + h * v) - objective.delta(theta - h * v)) / (2 * h)
    np.testing.assert_allclose(-matrix @ v.reshape(-1), change.reshape(-1), atol=1e-8)


def test_a_given_policy_is_evaluated(problem):
    """On many rows of a small MDP: the values of the policy, by passes, fitted Q and importance sampling."""
    rng = np.random.default_rng(7)
    policy = rng.dirichlet(np.ones(A), size=S)
    x = gq.trajectory(problem, 20_000, seed=8)
    reward = problem.mdp.reward[x.s, x.a, x.s_next]
    data = transitions(x.s, x.a, reward, x.s_next)
    mdp = problem.mdp
    P = np.einsum("sa,sat->st", policy, mdp.transition)
    r = np.einsum("sa,sat,sat->s", policy, mdp.transition, mdp.reward)
    V = np.linalg.solve(np.eye(S) - 0.8 * P, r)
    states = np.arange(S, dtype=float)[:, None]
    given = gq.FixedPolicy(policy)
    for algorithm, passes in ((FittedQ(ridge=0.0), None), (gq.QRC(0.1, 0.1), 5)):
        model = fit(data, OneHot(), algorithm, given, discount=0.8, n_passes=passes)
        found = model.value(states, lambda rows: policy[rows[:, 0].astype(int)])
        np.testing.assert_allclose(found, V, atol=0.15)


def test_a_model_survives_its_file(data, tmp_path):
    model = fit(data, OneHot(), LSPI(), gq.Softmax(2.0), discount=0.8)
    model.save(tmp_path / "model.npz")
    again = gq.LinearQ.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.theta, model.theta)
    assert again.target == model.target
    assert again.history.keys() == model.history.keys()
    np.testing.assert_array_equal(again.q([[1.0], [2.0]]), model.q([[1.0], [2.0]]))


def wave(n):
    """Transitions of two numbers each, in episodes of 7."""
    t = np.arange(n)
    x = np.stack([np.sin(t), np.cos(0.7 * t)], axis=1)
    return gq.Transitions.from_arrays(x, t % A, np.sin(3 * t), np.roll(x, -1, axis=0), t % 7 == 6)


TILES = gq.TileCoder(4, 4, low=-1, high=1)


@pytest.mark.parametrize("algorithm", [gq.QRC(0.1, 0.1), gq.AveragedGreedyGQ(0.1, 0.1)], ids=lambda a: type(a).__name__)
def test_one_file_and_ten_give_the_same_theta(algorithm, tmp_path):
    """Read part by part, in their order; also where parts cut episodes, and as rows in memory give it."""
    pytest.importorskip("pyarrow")
    data = wave(2003)
    data.to_parquet(tmp_path / "one.parquet")
    chunk = data.to_chunk()
    for k, rows in enumerate(np.array_split(np.arange(data.n_rows), 10)):
        part = gq.Transitions.from_arrays(
            chunk.observations[rows], chunk.actions[rows], chunk.rewards[rows], chunk.next_observations[rows],
            chunk.terminated[rows], episodes=chunk.episode[rows],
        )  # fmt: skip
        part.to_parquet(tmp_path / f"ten-{k}.parquet")
    whole = fit(data, TILES, algorithm, n_passes=2, rows="in order")
    for path in ("one.parquet", "ten-*.parquet"):
        files = gq.Transitions.from_parquet(str(tmp_path / path))
        assert not files.in_memory
        model = fit(files, TILES, algorithm, n_passes=2)
        np.testing.assert_array_equal(model.theta, whole.theta)
        assert model.history["updates"].tolist() == [0, 2003, 4006]


@pytest.mark.parametrize(
    "algorithm",
    [gq.QRC(0.1, 0.1), pytest.param(gq.VRGreedyGQ(0.1, 0.1, batch_size=300), marks=pytest.mark.long)],
    ids=lambda a: type(a).__name__,
)
@pytest.mark.parametrize("in_files", [False, True], ids=["memory", "files"])
def test_a_fit_goes_on_from_its_checkpoint(algorithm, in_files, tmp_path):
    data = wave(1000)
    if in_files:
        pytest.importorskip("pyarrow")
        data.to_parquet(tmp_path / "one.parquet")
        data = gq.Transitions.from_parquet(str(tmp_path / "one.parquet"))
    whole = fit(data, TILES, algorithm, n_passes=4, seed=3)
    kept = tmp_path / "passes.npz"
    fit(data, TILES, algorithm, n_passes=2, seed=3, checkpoint=kept)
    again = fit(data, TILES, algorithm, n_passes=4, seed=3, checkpoint=kept)
    np.testing.assert_array_equal(again.theta, whole.theta)
    for name, values in whole.history.items():
        np.testing.assert_array_equal(again.history[name], values)
    last = fit(data, TILES, algorithm, n_passes=4, seed=3, checkpoint=kept)
    np.testing.assert_array_equal(last.theta, whole.theta)
    with pytest.raises(ValueError, match="is of a fit with seed 3, not 4"):
        fit(data, TILES, algorithm, n_passes=4, seed=4, checkpoint=kept)


def test_the_command_fits_and_reports(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    wave(1000).to_parquet(tmp_path / "one.parquet")
    out = tmp_path / "out"
    line = [str(tmp_path / "one.parquet"), "--encoder", "tiles:4,bins=4,low=-1/-1,high=1/1", "--algorithm", "QRC"]
    main(["fit", *line, "--passes", "2", "--out", str(out)])
    printed = capsys.readouterr().out
    assert "After 2,000 updates: J " in printed
    for name in ("model.npz", "report.html", "history.csv", "history.png", "history.svg"):
        assert (out / name).stat().st_size > 100
    page = (out / "report.html").read_text()
    assert "QRC on 1,000 logged transitions" in page
    assert 'src="http' not in page
    assert 'href="http' not in page
    assert len((out / "history.csv").read_text().splitlines()) == 4
    main(["fit", *line, "--passes", "2", "--out", str(out), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["history"]["updates"], found["evaluation"], found["out"]) == ([0, 1000, 2000], None, str(out))
    assert gq.LinearQ.load(out / "model.npz").theta.shape == (A, 100)
    for arguments, message in (
        (["--ridge", "1"], "ridge is 1.0, which QRC does not take"),
        (["--discount", "2"], "discount is 2"),
        (["--passes", "5", "--seed", "9"], "is of a fit with seed 0, not 9"),
    ):
        with pytest.raises(SystemExit) as end:
            main(["fit", *line, *arguments, "--out", str(out)])
        assert end.value.code == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algorithm": 3}, "algorithm is 3, expected one such as"),
        (
            {"algorithm": gq.ActorCritic()},
            "algorithm is ActorCritic.*, which needs the behaviour policy's probabilities",
        ),
        ({"algorithm": gq.Sarsa(), "target": gq.Softmax(1.0)}, "target is Softmax.*: that of Sarsa is the action that"),
        ({"algorithm": gq.QRC(trace=0.5), "rows": "drawn"}, "rows is 'drawn', but traces need the rows in the order"),
        (
            {"algorithm": gq.QRC(trace=0.5), "target": gq.Softmax(1.0)},
            "target: with traces a policy that is not greedy",
        ),
        *(
            ({"algorithm": kind(), name: value}, f"^{name} is {value!r}, but {kind.__name__} solves for θ at once$")
            for kind in (FittedQ, LSPI, gq.LeastSquaresGreedyGQ)
            for name, value in (("n_passes", 10), ("rows", "shuffled"), ("checkpoint", "fit.npz"))
        ),
        (
            {"algorithm": gq.LeastSquaresGreedyGQ(radius=2.0)},
            "radius is 2, but gqlab.fit searches .* without a projection",
        ),
        ({"algorithm": gq.WholeDataVRGreedyGQ(), "rows": "drawn"}, "rows is 'drawn', but WholeDataVRGreedyGQ draws"),
        ({"discount": 1.0}, "discount is 1"),
        ({"n_passes": 0}, "n_passes is 0"),
        ({"target": 3}, "target is 3, expected an operator"),
        ({"target": gq.FixedPolicy([[0.5, 0.5]])}, "target: its table has the states 0, ..., 0, but observation"),
        ({"target": lambda rows: np.ones((len(rows), A))}, r"target\(observations\)\[0\] sums to 2"),
        ({"theta0": np.zeros((A, 2))}, "theta0 has shape"),
        ({"encoder": 7}, "encoder"),
        ({"data": [1, 2]}, "data is"),
        ({"algorithm": gq.VRGreedyGQ(batch_size=10_000)}, "batch_size is 10000, more than n_samples"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_bad_input_gets_one_message(data, arguments, message):
    usual = {"data": data, "encoder": OneHot(), "algorithm": gq.QLearning(), "discount": 0.8}
    with pytest.raises(ValueError, match=message):
        fit(**{**usual, **arguments})


# --- What a review found --------------------------------------------------------------------------------------------


def test_an_encoder_is_fitted_to_what_rows_lead_to_as_well():
    """Terminal states are never the state of a row; and values that only a next observation has are known."""
    lake = gq.collect("FrozenLake-v1", n_steps=300, seed=0)
    assert np.isfinite(fit(lake, OneHot(), FittedQ(n_iterations=3)).theta).all()
    data = gq.Transitions.from_arrays([0.0, 1.0], [0, 1], [0.0, 1.0], [1.0, 2.0], [False, False])
    assert fit(data, OneHot(), LSPI()).encoder.n_features_out_ == 3
    assert fit(data, Fourier(1), LSPI()).encoder.high_ == 2


def test_a_checkpoint_is_of_one_fit_alone(tmp_path):
    data, algorithm, kept = wave(300), gq.QRC(0.1, 0.1), tmp_path / "passes.npz"

    def again(encoder=TILES, n_passes=2, **other):
        return fit(data, encoder, algorithm, n_passes=n_passes, checkpoint=kept, **other)

    again(target=lambda rows: np.full((len(rows), A), 0.5))
    for other, message in (
        ({"target": lambda rows: np.tile([0.9, 0.1], (len(rows), 1))}, "is of a fit with target"),
        ({"theta0": np.ones((A, 100))}, "is of a fit with theta0"),
        ({"encoder": gq.TileCoder(4, 4, low=-2, high=2)}, "is of a fit with encoder"),
    ):
        with pytest.raises(ValueError, match=message):
            again(**other)
    with pytest.raises(ValueError, match=r"is of a fit with theta0"):
        again(target=lambda rows: np.full((len(rows), A), 0.5), theta0=np.ones((A, 100)))
    with pytest.raises(ValueError, match=r"stands after pass 2, n_passes is 1"):
        again(target=lambda rows: np.full((len(rows), A), 0.5), n_passes=1)


def test_a_fit_that_diverged_stays_so_when_it_is_read_again(tmp_path):
    kept = tmp_path / "passes.npz"
    first = fit(wave(300), TILES, gq.QLearning(1e3), n_passes=3, checkpoint=kept)
    again = fit(wave(300), TILES, gq.QLearning(1e3), n_passes=3, checkpoint=kept)
    assert first.metadata["diverged"]
    assert again.metadata["diverged"]
    assert again.history["updates"].tolist() == first.history["updates"].tolist()


@pytest.mark.long
def test_batches_that_grow_go_on_with_more_passes(tmp_path):
    algorithm, kept = gq.VRGreedyGQ(0.1, 0.1, batch_size=100, growth=1.5), tmp_path / "passes.npz"
    whole = fit(wave(300), TILES, algorithm, n_passes=4)
    fit(wave(300), TILES, algorithm, n_passes=1, checkpoint=kept)
    again = fit(wave(300), TILES, algorithm, n_passes=4, checkpoint=kept)
    np.testing.assert_array_equal(again.theta, whole.theta)


@pytest.mark.filterwarnings("ignore:the values of the policy move by")
def test_a_policy_that_was_evaluated_stays_with_its_model(tmp_path):
    table = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    rng = np.random.default_rng(0)
    s, a, s_next = rng.integers(0, 3, 60), rng.integers(0, 2, 60), rng.integers(0, 3, 60)
    data = transitions(s, a, rng.normal(size=60), s_next)
    model = fit(data, OneHot(3), FittedQ(), gq.FixedPolicy(table))
    np.testing.assert_array_equal(model.probabilities([[2.0], [0.0], [0.0], [1.0]]), table[[2, 0, 0, 1]])
    assert model.value([1.0]) == pytest.approx(table[1] @ model.q([1.0]))
    model.save(tmp_path / "model.npz")
    assert gq.LinearQ.load(tmp_path / "model.npz").value([1.0]) == model.value([1.0])
    function = fit(data, OneHot(3), FittedQ(), lambda rows: table[rows[:, 0].astype(int)])
    with pytest.raises(ValueError, match="this model has the values of a policy, but not the policy itself"):
        function.value([1.0])
    assert function.value([1.0], lambda rows: table[rows[:, 0].astype(int)]) == pytest.approx(model.value([1.0]))


@pytest.mark.parametrize(
    ("policy", "message"),
    [(len, "policy(observations) has shape ()"), (3, "policy is 3"), (lambda: 1, "policy failed for observations of")],
)
def test_what_is_no_policy_is_called_one_all_the_same(policy, message):
    data = gq.collect("CartPole-v1", n_steps=50, seed=0)
    with pytest.raises(ValueError, match=re.escape(message)):
        gq.importance_sampling(data, policy)
    with pytest.raises(ValueError, match=re.escape(message.replace("policy", "target"))):
        gq.fit(data, gq.Fourier(1, low=[-5] * 4, high=[5] * 4), FittedQ(), target=policy)


def test_files_are_measured_over_all_their_rows(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    t = np.arange(1000)
    data = gq.Transitions.from_arrays(np.sin(t)[:, None], t % A, np.where(t < 900, 0.0, 5.0), np.cos(t)[:, None])
    data.to_parquet(tmp_path / "one.parquet")
    monkeypatch.setattr("gqlab.data.parquet.ROWS", 100)
    encoder = gq.TileCoder(4, 4, low=-1, high=1)
    files = fit(gq.Transitions.from_parquet(str(tmp_path / "one.parquet")), encoder, gq.QRC(0.1, 0.1), n_passes=2)
    whole = fit(data, encoder, gq.QRC(0.1, 0.1), n_passes=2, rows="in order")
    for name in ("mspbe", "gradient", "max_q", "q_bound"):
        np.testing.assert_allclose(files.history[name], whole.history[name], rtol=1e-9)


def test_fitted_q_that_diverges_gives_its_last_finite_model():
    data = gq.Transitions.from_arrays([[1.0], [1.0]], [0, 0], [1.0, 1.0], [[3.0], [3.0]], n_actions=2)
    model = fit(data, gq.Identity(bias=False, scale=False), FittedQ(ridge=0.0, n_iterations=1000), discount=0.99)
    assert model.metadata["diverged"]
    assert np.isfinite(model.theta).all()


def test_step_sizes_that_are_not_given_fit_the_features():
    """With features 8 times as long a step of 1/64 of the size makes the same values."""
    data = wave(300)
    short, long = (
        fit(data, gq.Identity(bias=False, scale=False), gq.AveragedGreedyGQ(), n_passes=1, discount=0.9),
        fit(
            gq.Transitions.from_arrays(
                8 * data.to_chunk().observations, data.to_chunk().actions, data.to_chunk().rewards,
                8 * data.to_chunk().next_observations, data.to_chunk().terminated,
            ),
            gq.Identity(bias=False, scale=False), gq.AveragedGreedyGQ(), n_passes=1, discount=0.9,
        ),
    )  # fmt: skip
    np.testing.assert_allclose(8 * long.theta, short.theta, rtol=1e-9)


def test_theta0_lies_in_the_ball(data):
    with pytest.raises(ValueError, match=r"theta0 has norm 3.4641, outside the ball of radius 1"):
        fit(data, OneHot(S), gq.QLearning(0.1, radius=1.0), theta0=np.ones((A, S)), discount=0.8)
