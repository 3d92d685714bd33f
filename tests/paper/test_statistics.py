"""The claims' statistics and the rule, on made-up data with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gqlab.paper.claims import CLAIMS, judge
from gqlab.paper.experiments import BY_NAME
from gqlab.paper.statistics import FAILS, HOLDS, IN_PART, Effect, Growth, Ratio, Side, Slope, decide
from paper.conftest import synthetic

METRICS = (
    "gradient", "mspbe", "sampled_reward", "exact_reward", "update_sampled", "update_error", "update_bias",
    "update_variance", "norm",
)  # fmt: skip


def claim_named(name: str):
    return next(claim for claim in CLAIMS if claim.name == name)


def made_up(factors: dict[str, float], spread: float = 0.05):
    """Every metric of an algorithm is its factor, times noise that its runs share with nobody."""

    def values(name, number, rng, n_records):
        level = factors[name]
        return {m: level * np.exp(spread * rng.standard_normal((10, n_records))) for m in METRICS}

    return values


PAIRED = [c for c in CLAIMS if isinstance(c.statistic, Ratio)]


@pytest.mark.parametrize("claim", PAIRED, ids=lambda c: c.name)
@pytest.mark.parametrize("true", [True, False])
def test_a_true_claim_holds_and_a_false_one_does_not(claim, true):
    """VR-Greedy-GQ three times better than all others on every problem, or three times worse."""
    better = 3.0 if claim.side.direction == "above" else 1 / 3
    factor = better if true else 1 / better
    factors = dict.fromkeys(("Greedy-GQ", "actor-critic", "policy gradient"), 1.0) | {"VR-Greedy-GQ": factor}
    judged = judge(claim, synthetic(BY_NAME[claim.experiment], made_up(factors)))
    v = judged.verdict
    assert v.outcome == (HOLDS if true else FAILS)
    assert (v.n_hold, v.n_reversed) == ((20, 0) if true else (0, 20))
    assert v.paper.low < v.paper.ratio < v.paper.high
    assert abs(math.log(v.paper.ratio / factor)) < 0.15
    assert abs(math.log(v.further.ratio / factor)) < 0.15
    for _, beside in judged.beside:
        assert beside.outcome == (HOLDS if true else FAILS)


@pytest.mark.parametrize("claim", PAIRED, ids=lambda c: c.name)
def test_no_difference_is_no_support(claim):
    """A true effect of 1: an interval lies on the claimed side by chance on about 2.5 % of the problems."""
    factors = dict.fromkeys(("Greedy-GQ", "actor-critic", "policy gradient", "VR-Greedy-GQ"), 1.0)
    verdict = judge(claim, synthetic(BY_NAME[claim.experiment], made_up(factors))).verdict
    assert verdict.outcome != HOLDS
    assert verdict.n_hold <= 4


def test_much_needs_twice():
    factors = {"Greedy-GQ": 1.0, "VR-Greedy-GQ": 0.7}
    results = synthetic(BY_NAME["garnet-mspbe"], made_up(factors))
    assert judge(claim_named("garnet-mspbe"), results).verdict.outcome == FAILS  # much smaller
    lake = synthetic(BY_NAME["frozen-lake-mspbe"], made_up(factors))
    assert judge(claim_named("frozen-lake-mspbe"), lake).verdict.outcome == HOLDS  # smaller


def log_ratios(mean: float) -> np.ndarray:
    """Ten runs with a 95 % interval of ± 0.0715."""
    return mean + np.linspace(-0.15, 0.15, 10)


@pytest.mark.parametrize(
    ("paper", "n_hold", "outcome"),
    [
        (True, 20, HOLDS), (True, 16, HOLDS), (True, 15, IN_PART), (True, 0, IN_PART),
        (False, 20, IN_PART), (False, 5, IN_PART), (False, 4, FAILS), (False, 0, FAILS),
    ],
)  # fmt: skip
def test_the_rule_at_its_edges(paper, n_hold, outcome):
    problems = [log_ratios(-1.0 if paper else 0.0)]
    problems += [log_ratios(-1.0)] * n_hold + [log_ratios(0.0)] * (20 - n_hold)
    verdict = decide(problems, Side("below"))
    assert (verdict.outcome, verdict.n_hold, verdict.paper_holds) == (outcome, n_hold, paper)


def test_an_interval_must_lie_on_the_side_not_only_the_mean():
    wide = np.array([-1.0, 0.8] * 5)
    assert wide.mean() < 0
    assert decide([wide] * 21, Side("below")).outcome == FAILS
    near = decide([log_ratios(-0.08)] * 21, Side("below"))
    assert near.outcome == HOLDS
    assert decide([log_ratios(-0.06)] * 21, Side("below")).outcome == FAILS


def test_sides():
    assert Side("above", 2.0).holds(math.log(2.01), 5.0)
    assert not Side("above", 2.0).holds(math.log(1.99), 5.0)
    assert Side("below", 0.5).holds(-5.0, math.log(0.49))
    assert Side("below", 0.5).reversed(0.01, 1.0)
    assert not Side("below", 0.5).reversed(-0.5, -0.1)


def test_effect_is_the_geometric_mean_with_students_interval():
    effect = Effect.of(np.log([1.0, 4.0]))
    assert effect.ratio == pytest.approx(2.0)
    half = 12.706 * np.std(np.log([1.0, 4.0]), ddof=1) / math.sqrt(2)
    assert (effect.low, effect.high) == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)), rel=1e-3)


def test_slope_of_a_known_power():
    def values(power):
        def made(name, number, rng, n_records):
            M = int(name.rsplit(" ", 1)[-1]) if "M =" in name else 3000 if name == "VR-Greedy-GQ" else 1
            return {"gradient": M**power * np.exp(0.02 * rng.standard_normal((10, n_records)))}

        return made

    experiment = BY_NAME["garnet-batch-size"]
    falling = synthetic(experiment, values(-0.7))
    slopes = Slope("batch size", "gradient", "x").log_ratios(falling, 0)
    assert slopes == pytest.approx(-0.7 * math.log(2), abs=0.02)
    claim = claim_named("garnet-batch-size")
    assert judge(claim, falling).verdict.outcome == HOLDS
    assert judge(claim, synthetic(experiment, values(0.7))).verdict.outcome == FAILS


def test_growth():
    def values(name, number, rng, n_records):
        rate = 0.5 if name == "Q-learning" else -0.1
        return {
            "norm": np.tile(np.exp(rate * np.arange(n_records)), (10, 1)) * np.exp(0.1 * rng.standard_normal((10, 1)))
        }

    results = synthetic(BY_NAME["baird"], values)
    assert Growth("star", "norm", "‖θ‖", "Q-learning").log_ratios(results, 0) == pytest.approx(50.0)
    for name in ("baird-q-learning", "baird-greedy-gq", "baird-vr-greedy-gq"):
        assert judge(claim_named(name), results).verdict.outcome == HOLDS

    def settled(name, number, rng, n_records):
        return {"norm": np.exp(0.1 * rng.standard_normal((10, n_records)))}

    assert judge(claim_named("baird-q-learning"), synthetic(BY_NAME["baird"], settled)).verdict.outcome == FAILS


def test_windows_axes_and_best_so_far():
    """A metric that counts the records makes every window visible."""

    def values(name, number, rng, n_records):
        ramp = np.tile(np.arange(1.0, n_records + 1), (10, 1))
        return {"gradient": ramp[:, ::-1].copy() if name == "VR-Greedy-GQ" else ramp, "mspbe": ramp}

    results = synthetic(BY_NAME["garnet-gradient"], values)  # 101 records, every 90 updates
    ratio = {"over": "Greedy-GQ", "under": "VR-Greedy-GQ", "common": "samples"}

    def value(**kept):
        return math.exp(Ratio("long", "gradient", "x", **(ratio | kept)).log_ratios(results, 0)[0])

    assert value(window="end") == pytest.approx(101 / 1)
    assert value(window="tail", running="min") == pytest.approx(1 / 5.5)
    assert value(window="tail", running="max") == pytest.approx(96.5 / 101)
    assert value(window="all") == pytest.approx(1.0)
    assert value(window="tail") == pytest.approx(96.5 / 5.5)  # records 92 to 101 and 10 to 1
    assert value(window="median") == pytest.approx(96.5 / 5.5)
    # Greedy-GQ ends at 9000 gradient computations; by then VR-Greedy-GQ has made the updates of its first epoch.
    assert value(window="end", common="gradient_evaluations") == pytest.approx(101 / (101 - 33))


def test_a_walk_without_reward_counts_half_the_least_reward():
    def values(name, number, rng, n_records):
        level = 0.0 if name == "VR-Greedy-GQ" else 0.01
        return {"sampled_reward": np.full((10, n_records), level), "exact_reward": np.full((10, n_records), 1.0)}

    results = synthetic(BY_NAME["frozen-lake-reward"], values)
    ratio = Ratio("long", "sampled_reward", "x", "end", running="max")
    assert ratio.log_ratios(results, 0) == pytest.approx(math.log(0.5))
