"""The experiments of the paper (its experiments section, the appendix on it, the introduction), one entry each."""

from __future__ import annotations

from gqlab.algorithms import ActorCritic, GreedyGQ, PolicyGradient, QLearning, VRGreedyGQ
from gqlab.paper.design import Budget, Experiment, Part, View
from gqlab.paper.problems import BAIRD, FROZEN_LAKE, FROZEN_LAKE_EVALUATION, GARNET

#: R: large enough to hold a stationary point (‖θ‖ goes to 10–20 on these problems).
RADIUS = 100.0

# --- The parts: what is run ------------------------------------------------------------------------------------------

_CURVES = ("gradient", "mspbe", "reward")

_GQ, _VR = GreedyGQ(0.02, 0.01, RADIUS), VRGreedyGQ(0.02, 0.01, 3000, RADIUS)
_AC, _PG = ActorCritic(0.02, 0.01, RADIUS), PolicyGradient(0.02, 30, 60, RADIUS)
_LONG = Budget(300_000, 1500, 40), Budget(300_000, 1500, 20), Budget(60_000, 300, 8)
_TEN = Budget(10_000, 50, 40)

GARNET_SHORT = Part("10k", (_GQ, _VR), ("gradient",), _TEN, _TEN, Budget(10_000, 50, 8))
GARNET_LONG = Part("long", (_GQ, _VR), _CURVES, *_LONG)
GARNET_REWARD = Part("long", (_GQ, _VR, _AC), _CURVES, *_LONG)
GARNET_VARIANCE = Part(
    "variance", (_GQ, _VR), ("update",), Budget(60_000, 200, 40), Budget(60_000, 200, 20), Budget(12_000, 60, 4)
)
GARNET_SIZES = Part(
    "batch size", (_GQ, *(VRGreedyGQ(0.02, 0.01, M, RADIUS) for M in (1000, 2000, 3000))), ("gradient",),
    Budget(100_000, 500, 40), Budget(100_000, 500, 20), Budget(24_000, 120, 4),
)  # fmt: skip
GARNET_ITERATIONS = Part(
    "iterations", (_GQ, _VR, _PG), ("reward",),
    Budget(10_000, 50, 10), Budget(1_000, 5, 10), Budget(200, 1, 4), unit="iterations",
)  # fmt: skip

_FL_GQ, _FL_VR = GreedyGQ(0.2, 0.1, RADIUS), VRGreedyGQ(0.2, 0.1, 3000, RADIUS)
_FL_AC, _FL_PG = ActorCritic(0.2, 0.1, RADIUS), PolicyGradient(0.2, 30, 60, RADIUS)
_200K = Budget(200_000, 1000, 10)
_FL_LONG = _200K, _200K, Budget(30_000, 150, 4)

LAKE_LONG = Part("long", (_FL_GQ, _FL_VR), _CURVES, *_FL_LONG)
LAKE_REWARD = Part("long", (_FL_GQ, _FL_VR, _FL_AC), _CURVES, *_FL_LONG)
LAKE_VARIANCE = Part(
    "variance", (_FL_GQ, _FL_VR), ("update",), Budget(200_000, 500, 10), Budget(200_000, 500, 10), Budget(12_000, 60, 4)
)
LAKE_SIZES = Part(
    "batch size", (_FL_GQ, *(VRGreedyGQ(0.2, 0.1, M, RADIUS) for M in (200, 500, 1000))), ("gradient",),
    _200K, _200K, Budget(20_000, 100, 4),
)  # fmt: skip
LAKE_ITERATIONS = Part(
    "iterations", (_FL_GQ, _FL_VR, _FL_PG), ("reward",),
    Budget(10_000, 50, 10), Budget(1_000, 5, 10), Budget(200, 1, 4), unit="iterations",
)  # fmt: skip
LAKE_EVALUATION = Part("long", (_FL_GQ, _FL_VR), ("gradient", "mspbe"), *_FL_LONG)

_STAR = Budget(100_000, 500, 10)
BAIRD_PART = Part(
    "star", (QLearning(0.02), GreedyGQ(0.02, 0.02), VRGreedyGQ(0.02, 0.02, 3000)), ("norm",),
    _STAR, _STAR, Budget(30_000, 150, 4),
)  # fmt: skip

# --- The views: what is drawn ----------------------------------------------------------------------------------------

_MIN, _NOW = "lowest ‖∇J(θ)‖² so far", "‖∇J(θ)‖²"
_HAT, _TRUE = "largest r̂ so far", "long-run reward of the policy"
_ERROR = "E‖update − ∇J(θ)‖²"


def _gradient_views(part: str, note: str) -> tuple[View, View]:
    return (
        View(f"Lowest so far, {note}", part, "gradient", _MIN, running="min"),
        View(f"Current, {note}", part, "gradient", _NOW),
    )


def _reward_views(part: str, x: str) -> tuple[View, View]:
    return (
        View("As the paper measures it", part, "sampled_reward", _HAT, x, running="max", log_y=False),
        View("Exactly", part, "exact_reward", _TRUE, x, log_y=False),
    )


_VARIANCE_VIEWS = (
    View("By 500 Monte Carlo samples", "variance", "update_sampled", _ERROR, "updates"),
    View("Exactly", "variance", "update_error", _ERROR, "updates"),
    View("Split: bias² and variance", "variance", "update_variance", "bias², variance", "updates", style="split"),
)
_SIZE_VIEWS = (View("", "batch size", "gradient", "mean ‖∇J(θ)‖² at the end", "batch_size", style="batch"),)
_MSPBE_VIEWS = (View("", "long", "mspbe", "J(θ)"),)

# --- The words -------------------------------------------------------------------------------------------------------

_BAND = "Lines are medians over the runs, bands reach from the 5th to the 95th percentile."
_CAPTION_VARIANCE = (
    f"{_BAND} The expectation is over (D, P) for Greedy-GQ and over the current batch for VR-Greedy-GQ, whose variance "
    "is 0 at the start of every epoch: there all that remains is the error of the batch mean, the bias."
)
_CAPTION_SIZES = (
    "Dots are means over the runs and the last 10 % of the iterations, bars their 95 % intervals. M = 1 is Greedy-GQ. "
    "The line is the power of M that fits the batch sizes of VR-Greedy-GQ best."
)
_CAPTION_REWARD = (
    f"{_BAND} r̂ is the mean reward of one walk of 100 steps at each recorded point. The maximum of so many of them "
    "grows even where the policy stays as it is, so the exact long-run reward stands beside it."
)
_CAPTION_ITERATIONS = f"{_BAND} An iteration of policy gradient takes 1,800 samples, one of the other two a single one."

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "garnet-gradient", "Figure 1, left", "Garnet: the gradient norm", GARNET,
        "VR-Greedy-GQ outperforms Greedy-GQ and reaches a significantly smaller asymptotic gradient norm.",
        (GARNET_SHORT, GARNET_LONG), (*_gradient_views("10k", "10k samples"), *_gradient_views("long", "300k samples")),
        f"{_BAND} 10k samples, the paper's number, are barely three epochs of M = 3000; hence 300k beside it.",
    ),
    Experiment(
        "garnet-variance", "Figure 1, middle", "Garnet: the variance of the updates", GARNET,
        "The stochastic updates of VR-Greedy-GQ induce a much smaller variance than those of Greedy-GQ.",
        (GARNET_VARIANCE,), _VARIANCE_VIEWS, _CAPTION_VARIANCE,
    ),
    Experiment(
        "garnet-batch-size", "Figure 1, right", "Garnet: the asymptotic error and the batch size", GARNET,
        "VR-Greedy-GQ reaches a smaller asymptotic convergence error with a larger batch size, as the theory has it.",
        (GARNET_SIZES,), _SIZE_VIEWS, _CAPTION_SIZES,
    ),
    Experiment(
        "garnet-mspbe", "Figure 2, left", "Garnet: the MSPBE", GARNET,
        "VR-Greedy-GQ reaches a much smaller MSPBE than Greedy-GQ.",
        (GARNET_LONG,), _MSPBE_VIEWS, _BAND,
    ),
    Experiment(
        "garnet-reward", "Figure 2, middle", "Garnet: the reward", GARNET,
        "VR-Greedy-GQ reaches a higher reward than Greedy-GQ and actor-critic.",
        (GARNET_REWARD,), _reward_views("long", "gradient_evaluations"), _CAPTION_REWARD,
    ),
    Experiment(
        "garnet-reward-iterations", "Figure 2, right", "Garnet: the reward against iterations", GARNET,
        "VR-Greedy-GQ reaches a much higher expected reward than both Greedy-GQ and policy gradient.",
        (GARNET_ITERATIONS,), _reward_views("iterations", "updates"), _CAPTION_ITERATIONS,
    ),
    Experiment(
        "frozen-lake-gradient", "Figure 3, left", "Frozen Lake: the gradient norm", FROZEN_LAKE,
        "VR-Greedy-GQ reaches a much more stationary policy than Greedy-GQ.",
        (LAKE_LONG,), _gradient_views("long", "200k iterations"), _BAND,
    ),
    Experiment(
        "frozen-lake-variance", "Figure 3, middle", "Frozen Lake: the variance of the updates", FROZEN_LAKE,
        "The stochastic updates of VR-Greedy-GQ induce a much smaller variance than those of Greedy-GQ.",
        (LAKE_VARIANCE,), _VARIANCE_VIEWS, _CAPTION_VARIANCE,
    ),
    Experiment(
        "frozen-lake-batch-size", "Figure 3, right", "Frozen Lake: the asymptotic error and the batch size",
        FROZEN_LAKE,
        "VR-Greedy-GQ reaches a smaller asymptotic convergence error with a larger batch size.",
        (LAKE_SIZES,), _SIZE_VIEWS, _CAPTION_SIZES,
    ),
    Experiment(
        "frozen-lake-mspbe", "Figure 4, left", "Frozen Lake: the MSPBE", FROZEN_LAKE,
        "VR-Greedy-GQ outperforms Greedy-GQ in the MSPBE.",
        (LAKE_LONG,), _MSPBE_VIEWS, _BAND,
    ),
    Experiment(
        "frozen-lake-reward", "Figure 4, middle", "Frozen Lake: the reward", FROZEN_LAKE,
        "VR-Greedy-GQ reaches a higher reward than Greedy-GQ and actor-critic.",
        (LAKE_REWARD,), _reward_views("long", "gradient_evaluations"), _CAPTION_REWARD,
    ),
    Experiment(
        "frozen-lake-reward-iterations", "Figure 4, right", "Frozen Lake: the reward against iterations", FROZEN_LAKE,
        "VR-Greedy-GQ reaches a much higher expected reward than both Greedy-GQ and policy gradient.",
        (LAKE_ITERATIONS,), _reward_views("iterations", "updates"), _CAPTION_ITERATIONS,
    ),
    Experiment(
        "frozen-lake-evaluation", "Appendix, Frozen Lake", "Frozen Lake: a fixed random target policy, evaluated",
        FROZEN_LAKE_EVALUATION,
        "The appendix speaks of evaluating a random target policy from uniform behaviour; the figures show control.",
        (LAKE_EVALUATION,), (View("", "long", "gradient", _NOW), View("", "long", "mspbe", "J(θ)")), _BAND,
    ),
    Experiment(
        "baird", "Introduction", "Baird's counterexample", BAIRD,
        "Q-learning may diverge off-policy under linear function approximation; Greedy-GQ was made to address that.",
        (BAIRD_PART,), (View("", "star", "norm", "‖θ‖", "updates"),),
        f"{_BAND} All begin at θ₀ = (1, …, 1, 10); the true action values are 0.",
    ),
)  # fmt: skip

BY_NAME: dict[str, Experiment] = {experiment.name: experiment for experiment in EXPERIMENTS}


def chosen(names: tuple[str, ...]) -> tuple[Experiment, ...]:
    """The experiments of these names in the paper's order; all where none is named."""
    for name in names:
        if name not in BY_NAME:
            raise ValueError(f"unknown experiment {name!r}, expected one of {', '.join(BY_NAME)}")
    return tuple(e for e in EXPERIMENTS if not names or e.name in names)
