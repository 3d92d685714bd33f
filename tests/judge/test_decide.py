"""decide(): verdicts with their reasons, other methods, tables, pictures, and what bad input gets."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import gqlab as gq
from gqlab.judge import misfit as misfits
from gqlab.judge.bound import efficiency_bound
from gqlab.judge.deciding import holm
from gqlab.judge.estimator import Estimator
from gqlab.judge.features import features_of
from gqlab.judge.importance import Walk, weighed
from gqlab.judge.labels import matched
from gqlab.judge.rows import look
from gqlab.judge.simulated import sampled_log
from gqlab.mdp.values import action_value, optimal_value
from gqlab.policies import as_policy

S, A = 6, 3
GARNET = gq.garnet(S, A, 3, discount=0.9, seed=33)
BEHAVIOR = np.random.default_rng(0).dirichlet(np.full(A, 5.0), size=S)
BEST = np.eye(A)[action_value(GARNET, optimal_value(GARNET)).argmax(axis=1)]
WORST = np.eye(A)[action_value(GARNET, optimal_value(GARNET)).argmin(axis=1)]
LOG = sampled_log(GARNET, BEHAVIOR, 4000, 40, seed=2)


@pytest.fixture(autouse=True)
def no_windows():
    with matplotlib.rc_context():
        plt.switch_backend("Agg")
        yield
        plt.close("all")


def without(data, *names, **others):
    """The same rows with other columns."""
    chunk = data.to_chunk()
    columns = {
        "observations": chunk.observations, "actions": chunk.actions, "rewards": chunk.rewards,
        "next_observations": chunk.next_observations, "terminated": chunk.terminated, "truncated": chunk.truncated,
        "episodes": chunk.episode, "probabilities": chunk.probability,
    }  # fmt: skip
    kept = {name: value for name, value in columns.items() if name not in names}
    return gq.Transitions.from_arrays(**{**kept, **others}, n_actions=data.n_actions)


# --- Verdicts ---------------------------------------------------------------------------------------------------------


def test_the_best_policy_is_chosen_and_the_truth_is_in_the_intervals():
    decision = gq.decide(LOG, {"best": BEST, "worst": WORST, "same": BEHAVIOR}, 0.9, features="tabular")
    assert [decision[name].verdict for name in decision] == ["better", "worse", "cannot say"]
    assert decision.choice == "best"
    for name, policy in (("best", BEST), ("worst", WORST), ("same", BEHAVIOR)):
        bound, row = efficiency_bound(GARNET, BEHAVIOR, policy, 40), decision[name]
        assert row.low < bound.true_value < row.high
        assert row.gain_low < bound.true_gain < row.gain_high
        assert not row.thin
        assert row.misfit == 0
    now = efficiency_bound(GARNET, BEHAVIOR, BEHAVIOR, 40).true_value
    assert decision.now.low < now < decision.now.high
    assert decision.sentence.startswith("Take best: it is better than what runs now with 95 % confidence, by ")


def test_probabilities_are_not_needed():
    with_them = gq.decide(LOG, {"best": BEST}, 0.9, features="tabular")
    assert gq.decide(without(LOG, "probabilities"), {"best": BEST}, 0.9, features="tabular") == with_them


def test_the_same_call_gives_the_same_digits_and_trees_find_the_same_verdicts():
    first, again = (gq.decide(LOG, {"best": BEST, "worst": WORST}, 0.9, seed=3) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert [row.verdict for row in first.rows.values()] == ["better", "worse"]


def test_holm_is_harder_to_please_than_each_bound_alone():
    def mixed(share):
        return 0.8 * BEHAVIOR + 0.2 * (share * BEST + (1 - share) * WORST)

    shares = np.linspace(0.3, 0.7, 21)
    decision = gq.decide(LOG, {f"{share:.2f}": mixed(share) for share in shares}, 0.9, features="tabular")
    open_left = [row for row in decision.values() if row.gain_low > 0 and row.verdict == "cannot say"]
    assert open_left
    assert "Its own bounds say better; of 21 policies one may look so by chance" in open_left[0].notes[-1]
    name = open_left[0].name
    alone = gq.decide(LOG, {name: mixed(float(name))}, 0.9, features="tabular")[name]
    assert alone.verdict == "better"
    assert (alone.gain_low, alone.gain_high) == pytest.approx((open_left[0].gain_low, open_left[0].gain_high), rel=0.05)
    assert holm([(0.01, 0.99), (0.02, 0.98), (0.9, 0.1)], 0.05) == ["better", "better", "cannot say"]
    assert holm([(0.02, 0.98), (0.03, 0.97)], 0.05) == ["better", "better"]
    assert holm([(0.03, 0.97), (0.97, 0.03)], 0.05) == ["cannot say", "cannot say"]


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_of_values_have_two_sides_and_bounds_of_gains_one(confidence):
    """A bound is the estimate, and as many standard errors as Student's t says of that probability."""
    row = gq.decide(LOG, {"best": BEST}, 0.9, features="tabular", confidence=confidence)["best"]
    seen = look(LOG, 0)
    made = features_of("tabular", LOG, np.asarray(seen.sample.observations, float), 0)
    found = Estimator(LOG, seen, made, [as_policy("best", BEST, A)], 0.9).estimates().policies[0]
    value, gain = found.values[0], found.gains[0]
    reach = stats.t.ppf((1 + confidence) / 2, value.df) * value.se
    assert (row.low, row.high) == (pytest.approx(value.estimate - reach), pytest.approx(value.estimate + reach))
    reach = stats.t.ppf(confidence, gain.df) * gain.se
    assert (row.gain_low, row.gain_high) == (pytest.approx(gain.estimate - reach), pytest.approx(gain.estimate + reach))


def test_models_functions_tables_and_agents_are_policies_alike():
    encoder = gq.Fourier(1, low=[-5, -4, -0.5, -4], high=[5, 4, 0.5, 4])
    agent = gq.Agent("CartPole-v1", encoder, gq.QLearning(0.01), seed=0)
    data = gq.collect("CartPole-v1", n_steps=600, seed=0)
    given = {"agent": agent, "model": agent.model, "function": lambda rows: agent.model.probabilities(rows)}
    rows = list(gq.decide(data, given, 0.9).values())
    assert rows[0].value == rows[1].value == rows[2].value
    assert gq.decide(LOG, {"same": BEST, "table": gq.FixedPolicy(BEST)}, 0.9)["same"].value == pytest.approx(
        gq.decide(LOG, {"same": lambda rows: BEST[rows[:, 0].astype(int)]}, 0.9)["same"].value
    )


def test_gains_over_another_policy():
    decision = gq.decide(LOG, {"best": BEST, "worst": WORST}, 0.9, features="tabular", baseline="worst")
    best, worst = efficiency_bound(GARNET, BEHAVIOR, BEST, 40), efficiency_bound(GARNET, BEHAVIOR, WORST, 40)
    row = decision["best"]
    assert row.gain_low < best.true_value - worst.true_value < row.gain_high
    assert (row.verdict, decision.choice) == ("better", "best")
    assert (decision["worst"].gain, decision["worst"].verdict) == (0, "cannot say")
    assert "better than worst with 95 % confidence" in decision.sentence


def test_a_policy_that_the_log_never_does_gets_no_verdict_and_an_interval_that_rewards_allow():
    rare = np.zeros((S, A))
    rare[:, :2] = 0.5
    data = sampled_log(GARNET, rare, 4000, 40, seed=1)
    decision = gq.decide(data, {"third": np.eye(A)[[2] * S]}, 0.9, features="tabular")
    row, rewards = decision["third"], data.to_chunk().rewards
    assert (row.verdict, decision.choice, row.thin) == ("cannot say", None, True)
    assert row.unsupported == pytest.approx(1)
    assert row.low == pytest.approx(min(rewards.min() / 0.1, rewards.min()), abs=0.02)  # it may end an episode
    assert row.high == pytest.approx(rewards.max() / 0.1, rel=0.1)
    assert row.notes[0].startswith("100 % of its value comes from no row")
    assert "rests on 0 effective rows" in row.notes[1]
    assert decision.sentence == (
        "Keep what runs now: third is not better with 95 % confidence; the log has too few rows of what third does."
    )
    wide = gq.decide(data, {"third": np.eye(A)[[2] * S]}, 0.9, features="tabular", reward_range=(-1, 5))["third"]
    assert (wide.low, wide.high) == (pytest.approx(-10, abs=0.1), pytest.approx(50, abs=0.1))
    known = gq.decide(LOG, {"best": BEST}, 0.9, features="tabular", reward_range=(-1, 5))["best"]
    assert known == gq.decide(LOG, {"best": BEST}, 0.9, features="tabular")["best"]  # where nothing is missing


def seldom():
    """Every 500th row or so leads to a state where one of two actions was never tried, and the other costs much."""
    P = np.zeros((2, 2, 2))
    P[0], P[1] = [0.998, 0.002], [1, 0]
    reward = np.array([[0.0, 0.1], [-10.0, 0.0]])
    mdp = gq.FiniteMDP(P, reward, 0.9, initial=[1, 0])
    return sampled_log(mdp, [[0.5, 0.5], [1, 0]], 6000, 30, seed=3)


def test_what_was_hardly_seen_counts_in_the_verdict_where_it_matters():
    """The log is not thin for it, but what it does every 500th time may cost more than it gains elsewhere."""
    second, careful = np.eye(2)[[1, 1]], np.eye(2)[[1, 0]]
    decision = gq.decide(seldom(), {"second": second, "careful": careful}, 0.9, features="tabular")
    row = decision["second"]
    assert not row.thin
    assert row.gain > 0.3
    assert row.gain_low < 0 < row.gain_high
    assert row.verdict == "cannot say"
    assert row.notes == ("What it does in places was hardly seen, and matters: the interval spans what rewards allow.",)
    assert decision["careful"].verdict == "better"
    assert decision["careful"].notes == ()
    # Beside it, the others are compared with what is as uncertain.
    beside = gq.decide(seldom(), {"second": second, "careful": careful}, 0.9, features="tabular", baseline="second")
    assert beside["second"].gain_low == beside["second"].gain_high == 0
    assert beside["careful"].gain_low < -0.1
    assert beside["careful"].gain_high > 0.5


def test_features_that_cannot_hold_the_values_are_found_out():
    """What an action is worth depends on the product of two numbers, judged by features of each alone."""
    random, n = np.random.default_rng(4), 2000
    x = random.uniform(-1, 1, (n, 2))
    action = random.integers(2, size=n)
    reward = np.where(action == 1, 2 * x[:, 0] * x[:, 1], 0) + 0.5 * random.normal(size=n)
    data = gq.Transitions.from_arrays(x, action, reward, x, np.ones(n, bool))

    def clever(rows):
        act = rows[:, 0] * rows[:, 1] > 0
        return np.stack([~act, act], axis=1)

    row = gq.decide(data, {"clever": clever}, 0.9, features=gq.Identity())["clever"]
    assert row.misfit > misfits.MOST_MISFIT
    assert row.verdict == "cannot say"
    assert "The features cannot hold its values" in row.notes[0]
    fine = gq.decide(data, {"clever": clever}, 0.9)["clever"]
    assert fine.misfit < misfits.MOST_MISFIT
    assert fine.verdict == "better"
    assert fine.gain_low < 0.25 < fine.gain_high + 0.05  # the true gain; leaves smooth a little


def test_the_misfit_of_features_that_hold_everything_is_noise():
    """A z for each of 24 logs: it is below 0 in the mean, since the residuals of both folds are of one solve."""
    z = []
    for seed in range(24):
        data = sampled_log(GARNET, BEHAVIOR, 600, 30, seed=seed)
        z.append(gq.decide(data, {"best": BEST}, 0.9, features=gq.OneHot(S))["best"].misfit)
    assert np.mean(z) < 0
    assert max(z) < misfits.MOST_MISFIT


def test_a_note_says_where_a_model_is_judged_with_its_own_features():
    encoder = gq.Fourier(2).fit([[0.0], [S - 1.0]])
    model = gq.LinearQ(np.zeros((A, 3)), encoder)
    notes = gq.decide(LOG, {"model": model.probabilities}, 0.9, features=encoder)["model"].notes
    assert not any("fitted with" in note for note in notes)  # a function has no features
    for same in (encoder, gq.Fourier(2).fit([[0.0], [S - 1.0]])):
        notes = gq.decide(LOG, {"model": model}, 0.9, features=same)["model"].notes
        assert any(note.startswith("It is judged with the features that it was fitted with") for note in notes)
    assert not any("fitted with" in note for note in gq.decide(LOG, {"model": model}, 0.9)["model"].notes)


def test_actions_are_matched_by_their_labels():
    data = SimpleNamespace(n_actions=A, observation_size=1, action_labels=("stay", "left", "right"))
    order = SimpleNamespace(probabilities=lambda rows: np.array([[0.7, 0.2, 0.1]] * len(rows)), n_actions=A)
    order.action_labels = ("right", "stay", "left")
    assert matched("p", order, data).probabilities(np.zeros((1, 1))).tolist() == [[0.2, 0.1, 0.7]]
    order.action_labels = ("up", "stay", "left")
    with pytest.raises(
        ValueError, match="p has the actions 'up', 'stay', 'left', and the log has 'stay', 'left', 'right'"
    ):
        matched("p", order, data)
    order.action_labels = None
    assert matched("p", order, data).probabilities(np.zeros((1, 1))).tolist() == [[0.7, 0.2, 0.1]]


# --- Other methods ----------------------------------------------------------------------------------------------------


def test_importance_sampling_by_hand():
    """Two episodes of two rows, one of one row."""
    walk = Walk(
        log_ratio=np.log([2.0, 0.5, 1.0, 3.0, 0.5]), y=np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        delta=np.array([0.1, 0.2, 0.3, 0.4, 0.5]), starts=np.array([10.0, 20.0, 30.0]), first=np.array([0, 2, 4]),
    )  # fmt: skip
    first, second = np.array([2.0, 1.0, 0.5]), np.array([1.0, 3.0, 0.5])
    wpdis = (first @ [1, 3, 5]) / first.sum() + 0.9 * (second @ [2, 4, 0]) / second.sum()
    found = weighed("wpdis", walk, 0.9)
    assert found.interval.estimate == pytest.approx(wpdis)
    assert found.effective_episodes == pytest.approx(second.sum() ** 2 / (second @ second))
    wdr = 20 + (first @ [0.1, 0.3, 0.5]) / first.sum() + 0.9 * (second @ [0.2, 0.4, 0]) / second.sum()
    assert weighed("wdr", walk, 0.9).interval.estimate == pytest.approx(wdr)
    each = np.array([10 + 2 * 0.1 + 0.9 * 1 * 0.2, 20 + 0.3 + 0.9 * 3 * 0.4, 30 + 0.5 * 0.5])
    dr = weighed("dr", walk, 0.9).interval
    assert (dr.estimate, dr.se) == (pytest.approx(each.mean()), pytest.approx(each.std(ddof=1) / np.sqrt(3)))
    # The error of a ratio is that of its linearisation: leave one episode out, and see.
    influence = []
    for i in range(3):
        weights = np.ones(3)
        weights[i] = 1 + 1e-6
        moved = ((first * weights) @ [1, 3, 5]) / (first @ weights)
        moved += 0.9 * ((second * weights) @ [2, 4, 0]) / (second @ weights)
        influence.append((moved - wpdis) / 1e-6 * 3)
    assert found.interval.se == pytest.approx(np.std(influence, ddof=1) / np.sqrt(3), rel=1e-4)


def test_other_methods_stand_beside_and_say_what_they_need():
    near = 0.8 * BEHAVIOR + 0.2 * BEST
    methods = ("solve", "wpdis", "dr", "wdr")
    row = gq.decide(LOG, {"near": near}, 0.9, features="tabular", methods=methods)["near"]
    true = efficiency_bound(GARNET, BEHAVIOR, near, 40).true_value
    assert list(row.others) == ["wpdis", "dr", "wdr"]
    for one in row.others.values():
        assert one.low < true < one.high
        assert 1 < one.effective_episodes <= 100
    assert row.others["wdr"].high - row.others["wdr"].low < row.others["wpdis"].high - row.others["wpdis"].low
    bare = gq.decide(without(LOG, "probabilities"), {"near": near}, 0.9, features="tabular", methods=methods)
    assert np.isnan(bare["near"].others["dr"].value)
    assert "wpdis needs the behaviour's probabilities, which the log does not hold." in bare["near"].notes
    assert bare["near"].value == row.value


# --- What is shown ----------------------------------------------------------------------------------------------------


def test_tables_frames_and_json_hold_the_same():
    decision = gq.decide(LOG, {"best": BEST, "<worst>": WORST}, 0.9, features="tabular", methods=("solve", "wpdis"))
    table = str(decision)
    assert table.splitlines()[0] == decision.sentence
    assert "what runs now" in table
    assert f"{decision['best'].gain:+.4g}" in table
    page = decision._repr_html_()
    assert "&lt;worst&gt;" in page
    assert "<worst>" not in page
    frame = decision.to_dataframe()
    assert frame.loc["best", "gain_low"] == decision["best"].gain_low
    assert frame.loc["what runs now", "value"] == decision.now.value
    assert frame.loc["best", "wpdis_value"] == decision["best"].others["wpdis"].value
    values = json.loads(json.dumps(decision.to_dict()))
    assert values["policies"]["best"]["verdict"] == "better"
    assert values["now"]["low"] == decision.now.low
    assert (len(decision), list(decision)) == (2, ["best", "<worst>"])
    with pytest.raises(KeyError, match="there is no policy 'other'; known: best, <worst>"):
        decision["other"]


def test_the_picture_holds_gains_bounds_and_hatches_what_is_thin():
    rare = np.array([0.6, 0.395, 0.005]) * np.ones((S, 1))
    rare[:2] = [0.3, 0.3, 0.4]
    data = sampled_log(GARNET, rare, 3000, 40, seed=1)
    decision = gq.decide(data, {"same": rare, "third": np.eye(A)[[2] * S]}, 0.9, features="tabular")
    left, right = decision.plot()
    assert [text.get_text() for text in left.get_yticklabels()] == ["same", "third"]
    bars = left.patches
    assert [bar.get_hatch() for bar in bars] == [None, "////"]
    same = decision["same"]
    assert bars[0].get_x() == pytest.approx(same.gain_low)
    assert bars[0].get_x() + bars[0].get_width() == pytest.approx(same.gain_high)
    assert "third" in right.get_title(loc="left")
    assert [bar.get_height() for bar in right.patches] == [0, 0, *[pytest.approx(h, abs=1) for h in [1] * 4]]
    known = gq.decide(LOG, {"best": BEST}, 0.9, features="tabular").plot("best")[1]
    assert known.get_title(loc="left") == "Where support for best is missing"
    assert known.texts[0].get_text() == "nowhere"
    with pytest.raises(ValueError, match="policy is 'none', expected one of 'same', 'third'"):
        decision.plot("none")
    _, axes = plt.subplots(1, 2)
    assert decision.plot(axes=axes)[0] is axes[0]
    with pytest.raises(ValueError, match="expected two Axes"):
        decision.plot(axes=[1, 2])


def test_the_functions_are_reached_whatever_was_imported_before():
    code = "import gqlab.judge.deciding, gqlab.judge.decision; import gqlab as gq; print(callable(gq.decide))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


# --- What bad input gets ----------------------------------------------------------------------------------------------


def half(rows):
    out = np.full((len(rows), A), 1 / A)
    out[rows[:, 0] == 3] = 0.5
    return out


@pytest.mark.parametrize(
    ("policies", "more", "message"),
    [
        ({"half": half}, {}, r"policies\['half'\]\(observations\)\[\d+\] sums to 1.5, expected 1"),
        ({"two": [[0.5, 0.5]] * S}, {}, r"policies\['two'\] is .*, a policy of 2 actions, expected 3"),
        (
            {"two": lambda x: np.full((len(x), 2), 0.5)},
            {},
            r"policies\['two'\]\(observations\) has shape .*, expected prob",
        ),
        ({"bad": 3}, {}, r"policies\['bad'\] is 3, expected a policy"),
        ({}, {}, "policies is empty"),
        ([BEST], {}, "expected a dict of names and policies"),
        ({"log": BEST}, {}, "policies: 'log' is no name of a policy"),
        ({3: BEST}, {}, "policies: 3 is no name of a policy"),
        ({"best": BEST}, {"baseline": "other"}, "baseline is 'other', expected one of 'log', 'best'"),
        ({"best": BEST}, {"baseline": "best"}, "baseline is 'best', the only policy"),
        ({"best": BEST}, {"methods": ("magic",)}, "methods is 'magic', expected one of 'solve', 'wpdis', 'dr', 'wdr'"),
        ({"best": BEST}, {"features": "leaves"}, "features is 'leaves', expected one of 'trees', 'tabular'"),
        ({"best": BEST}, {"features": 3}, "features: encoder is 3, expected one of"),
        ({"best": BEST}, {"confidence": 0.4}, "confidence is 0.4, expected a finite number above 0.5 and below 1"),
        ({"best": BEST}, {"reward_range": (1, 0)}, r"reward_range is \(1, 0\), expected the least reward first"),
        ({"best": BEST}, {"reward_range": (0.4, 0.5)}, r"reward_range is \(0.4, 0.5\), but the log has rewards from"),
        ({"best": BEST}, {"discount": 1}, "discount is 1, but no episode of the log ends: the values are infinite"),
        ({"best": BEST}, {"discount": 1.1}, "discount is 1.1, expected a finite number at least 0 and at most 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(policies, more, message):
    with pytest.raises(ValueError, match=message) as caught:
        gq.decide(LOG, policies, **{"discount": 0.9, "features": "tabular", **more})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kept", [200_000, 1000])
def test_the_row_whose_probabilities_do_not_sum_to_one_is_named(monkeypatch, kept):
    """Row 5 of the eighth episode, by what it begins with, or by what the last row of a cut episode leads to."""
    for room in ("rows", "estimator"):
        monkeypatch.setattr(f"gqlab.judge.{room}.MOST_LEARNED", kept)
    chunk = LOG.to_chunk()
    first = int(np.flatnonzero(chunk.episode == 7)[0])
    values = np.arange(len(chunk), dtype=float)
    following = values + 1
    following[first - 1] = -1.5  # the end of the episode before, which was cut off

    def bad(at):
        def policy(rows):
            return np.where(rows[:, :1] == at, 0.5, 1 / A) * np.ones((1, A))

        return policy

    data = without(LOG, observations=values, next_observations=following)
    message = r"policies\['bad'\]\(observations\)\[\d+\] sums to 1.5, expected 1: "
    for at, where in (
        (first + 5.0, rf"row 5 of episode 7, at the observation \({first + 5}\)"),
        (-1.5, r"what row 39 of episode 6 leads to, at the observation \(-1.5\)"),
    ):
        with pytest.raises(ValueError, match=f"^{message}{where}$"):
            gq.decide(data, {"bad": bad(at)}, 0.9)


def test_one_episode_gets_a_verdict_with_its_reason():
    data = sampled_log(GARNET, BEHAVIOR, 500, 500, seed=1)
    decision = gq.decide(data, {"best": BEST}, 0.9, features="tabular")
    row = decision["best"]
    assert (row.verdict, decision.n_episodes) == ("cannot say", 1)
    assert row.notes[0] == "The log has one episode: nothing tells how much episodes differ."
    assert np.isfinite(row.value)
    assert decision.to_dict()["policies"]["best"]["gain_low"] is None
    assert "one episode" in str(gq.decide(data, {"best": BEST}, 0.9))  # with trees, which have nothing to hold out
    decision.plot()


def test_no_flags_at_all_are_one_episode_or_episodes_that_were_cut_off():
    bare = without(LOG, "terminated", "truncated", "episodes", "probabilities")
    decision = gq.decide(bare, {"best": BEST}, 0.9, features="tabular")
    assert decision["best"].verdict == "cannot say"
    assert "one episode" in decision["best"].notes[0]
    assert decision.notes[0].startswith("No row of the log says that an episode ended or was cut off")
    named = gq.decide(without(LOG, "terminated", "truncated"), {"best": BEST}, 0.9, features="tabular")
    assert named["best"] == gq.decide(LOG, {"best": BEST}, 0.9, features="tabular")["best"]


def test_a_discount_of_one_where_episodes_end():
    ends = gq.FiniteMDP(GARNET.transition, GARNET.reward, 0.999999, np.arange(S) == S - 1, [0.5, 0.5, 0, 0, 0, 0])
    data = sampled_log(ends, BEHAVIOR, 6000, 1000, seed=2)
    decision = gq.decide(data, {"same": BEHAVIOR}, 1, features="tabular")
    true = efficiency_bound(ends, BEHAVIOR, BEHAVIOR, 1000).true_value
    assert decision["same"].low < true < decision["same"].high
    assert decision["same"].high - decision["same"].low < 0.2 * true
    cut = sampled_log(ends, BEHAVIOR, 6000, 5, seed=2)
    mixed = gq.decide(cut, {"same": BEHAVIOR}, 1, features="tabular")
    assert "episodes were cut off: at a discount of 1" in mixed.notes[0]
    assert mixed["same"].low < true < mixed["same"].high
