"""The experiments of the paper (its experiments section, the appendix on it, the introduction), one entry each."""

from __future__ import annotations

from dataclasses import dataclass

from gqlab.algorithms import ActorCritic, Algorithm, GreedyGQ, PolicyGradient, QLearning, VRGreedyGQ
from gqlab.studies.paper.design import BATCH_SIZE, Contender, Experiment, ExperimentPart, View
from gqlab.studies.paper.problems import BAIRD, FROZEN_LAKE, FROZEN_LAKE_EVALUATION, GARNET

#: R: large enough to hold a stationary point (‖θ‖ goes to 10–20 on these problems).
RADIUS = 100.0

#: The batch sizes of the claims on M, their updates and the least number of epochs.
SIZES, SIZE_UPDATES, LEAST_EPOCHS = (300, 1000, 3000, 10_000), 100_000, 10

#: Iterations of policy gradient.
ITERATIONS = 10_000


def tail(n: int) -> tuple[int, int]:
    """The last tenth of n updates."""
    return n - n // 10, n


@dataclass(frozen=True)
class FamilySetting:
    """The numbers of a family: step sizes, budgets in samples, distances between records; what tuning tries, chose."""

    family: str
    etas: tuple[float, float]
    start: int  # samples of the left panels, watched at every update
    start_greedy: int  # Greedy-GQ's, so that its curve reaches as far
    start_record: int
    long: int  # samples of VR-Greedy-GQ
    long_record: int
    long_thin: int  # outside the last tenth: no divisor of an epoch, so that every part of one is seen
    variance: int
    variance_record: int
    computations: int = 0  # of the rewards
    curves: int = 0  # samples of the baselines' learning curves
    tried_critic: tuple[tuple[float, float], ...] = ()
    tried_gradient: tuple[float, ...] = ()
    tuned_critic: tuple[float, float] = (0.0, 0.0)
    tuned_gradient: float = 0.0

    @property
    def greedy(self) -> GreedyGQ:
        return GreedyGQ(*self.etas, RADIUS)

    def vr(self, M: int = BATCH_SIZE) -> VRGreedyGQ:
        return VRGreedyGQ(*self.etas, M, RADIUS)

    def critic(self, etas: tuple[float, float] | None = None) -> ActorCritic:
        return ActorCritic(*(etas or self.etas), RADIUS)

    def gradient(self, eta: float | None = None) -> PolicyGradient:
        return PolicyGradient(eta or self.etas[0], 30, 60, RADIUS)

    @property
    def computations_of_vr(self) -> int:
        """Of VR-Greedy-GQ's long run: Greedy-GQ runs on to the same number."""
        return 3 * self.vr().n_updates(self.long)


def grid(actor: tuple[float, ...], critic: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """All pairs."""
    return tuple((a, b) for a in actor for b in critic)


GARNET_SETTING = FamilySetting(
    GARNET, (0.02, 0.01), start=10_000, start_greedy=27_000, start_record=50,
    long=300_000, long_record=60, long_thin=23,
    variance=60_000, variance_record=100, computations=10_000, curves=300_000,
    tried_critic=grid((0.02, 0.1, 0.5, 2.0, 10.0), (0.0001, 0.0005, 0.002, 0.01, 0.05)),
    tried_gradient=(0.0005, 0.002, 0.005, 0.01, 0.02),
    tuned_critic=(2.0, 0.0001), tuned_gradient=0.002,
)  # fmt: skip
LAKE_SETTING = FamilySetting(
    FROZEN_LAKE, (0.2, 0.1), start=200_000, start_greedy=200_000, start_record=1000,
    long=200_000, long_record=30, long_thin=33,
    variance=200_000, variance_record=200, computations=20_000, curves=100_000,
    tried_critic=grid((0.2, 1.0, 2.0, 5.0, 20.0), (0.1, 0.3, 0.6, 1.0)),
    tried_gradient=(0.05, 0.1, 0.2, 0.5),
    tuned_critic=(1.0, 0.6), tuned_gradient=0.1,
)  # fmt: skip
EVALUATION_SETTING = FamilySetting(
    FROZEN_LAKE_EVALUATION, (0.2, 0.1), start=200_000, start_greedy=200_000, start_record=1000, long=200_000,
    long_record=30, long_thin=33, variance=200_000, variance_record=200,
)  # fmt: skip

# --- The parts: what is run ------------------------------------------------------------------------------------------


def start_part(s: FamilySetting) -> ExperimentPart:
    """The lowest ‖∇J‖² so far, watched at every update."""
    entries = Contender(s.greedy, s.start_greedy, s.start_record), Contender(s.vr(), s.start, s.start_record)
    return ExperimentPart("start", entries, ("gradient",), watch="gradient")


def long_part(s: FamilySetting) -> ExperimentPart:
    """To VR-Greedy-GQ's samples and, Greedy-GQ alone, on to its computations; all records of the last tenths."""
    n, whole = s.vr().n_updates(s.long), s.computations_of_vr
    return ExperimentPart(
        "long",
        (
            Contender(s.greedy, whole, s.long_record, whole // s.long_record // 200, (tail(n), tail(whole))),
            Contender(s.vr(), s.long, s.long_record, s.long_thin, (tail(n),)),
        ),
        ("gradient", "mspbe"),
    )


def variance_part(s: FamilySetting) -> ExperimentPart:
    return ExperimentPart(
        "variance", tuple(Contender(a, s.variance, s.variance_record) for a in (s.greedy, s.vr())), ("update",)
    )


def sizes_part(s: FamilySetting) -> ExperimentPart:
    """Whole epochs, at least ten, and as near to the updates of the register as may be; Greedy-GQ stands beside."""
    n = {M: max(LEAST_EPOCHS, round(SIZE_UPDATES / M)) * M for M in SIZES}

    def entry(algorithm: Algorithm, n: int) -> Contender:
        every = max(r for r in range(1, n // 5000 + 1) if n % r == 0)  # at least 500 records in the last tenth
        return Contender(algorithm, n, every, 100, (tail(n),))

    sizes = tuple(entry(s.vr(M), n[M]) for M in SIZES)
    return ExperimentPart("batch size", (entry(s.greedy, SIZE_UPDATES), *sizes), ("gradient",))


def reward_part(s: FamilySetting) -> ExperimentPart:
    """r̂ at every update; VR-Greedy-GQ takes whole batches."""
    n = max(s.computations, ITERATIONS)
    each = s.gradient().samples_per_update
    vr = -(-n // BATCH_SIZE) * BATCH_SIZE
    return ExperimentPart(
        "reward",
        (
            Contender(s.greedy, n, 50),
            Contender(s.vr(), vr, 50),
            Contender(s.critic(), s.computations, 50),
            Contender(s.critic(s.tuned_critic), s.computations, 50, name="actor-critic, tuned", most_runs=5),
            Contender(s.gradient(), ITERATIONS * each, 5, 10, ((0, 50),)),
            Contender(s.gradient(s.tuned_gradient), ITERATIONS * each, 5, 10, ((0, 50),),
                  name="policy gradient, tuned", most_runs=5),
        ),
        ("reward", "value", "norm"),
        watch="reward",
    )  # fmt: skip


def curves_part(s: FamilySetting) -> ExperimentPart:
    """Actor-critic for longer than the claims ask."""
    steps = (("actor-critic", s.critic()), ("actor-critic, tuned", s.critic(s.tuned_critic)))
    entries = tuple(Contender(a, s.curves, s.curves // 200, name=name, most_runs=5) for name, a in steps)
    return ExperimentPart("curves", entries, ("value", "norm"))


def setting_name(algorithm: Algorithm) -> str:
    """A setting that tuning tries, by name."""
    kind = "policy gradient" if isinstance(algorithm, PolicyGradient) else "actor-critic"
    critic = f", η_ω = {algorithm.eta_omega:g}" if isinstance(algorithm, ActorCritic) else ""
    return f"{kind}, η_θ = {algorithm.eta_theta:g}{critic}"


def tuning_part(s: FamilySetting) -> ExperimentPart:
    """The exact long-run reward at the end of the claims' budgets."""
    n = ITERATIONS * s.gradient().samples_per_update
    critics = [s.critic(etas) for etas in s.tried_critic]
    gradients = [s.gradient(eta) for eta in s.tried_gradient]  # long runs, so fewer of them
    entries = (
        *(Contender(a, s.computations, s.computations, name=setting_name(a), most_runs=8) for a in critics),
        *(Contender(a, n, ITERATIONS, name=setting_name(a), most_runs=2) for a in gradients),
    )
    return ExperimentPart("tuning", entries, ("reward",), problems="tuning")


BAIRD_PART = ExperimentPart(
    "star",
    tuple(Contender(a, 100_000, 500) for a in (QLearning(0.02), GreedyGQ(0.02, 0.02), VRGreedyGQ(0.02, 0.02, 3000))),
    ("norm",),
    problems="one",
)

# --- The views: what is drawn ----------------------------------------------------------------------------------------

_MIN, _NOW = "lowest ‖∇J(θ)‖² so far", "‖∇J(θ)‖²"
_HAT, _TRUE = "largest r̂ so far", "exact long-run reward"
_ERROR = "E‖update − ∇J(θ)‖²"


def gradient_views(s: FamilySetting) -> tuple[View, ...]:
    reach = f"{s.long // 1000}k samples"
    end = 3 * s.vr().n_updates(s.start) if s.start < s.long else s.start
    first = View("Gradient norm, lowest so far", "start", "lowest_gradient", _MIN, end=end)
    return first, View(f"Current, {reach}", "long", "gradient", _NOW)


VARIANCE_VIEWS = (
    View("Variance of the updates", "variance", "update_error", _ERROR, "updates", style="running"),
    View("By 500 Monte Carlo samples", "variance", "update_sampled", _ERROR, "updates", style="running"),
    View("Its bias² alone", "variance", "update_bias", "‖E update − ∇J(θ)‖²", "updates", style="running"),
)
SIZE_VIEWS = (View("Error against batch size", "batch size", "gradient", "mean ‖∇J(θ)‖² at the end", "batch_size",
                   style="batch"),)  # fmt: skip
_CRITICS = ("Greedy-GQ", "VR-Greedy-GQ", "actor-critic", "actor-critic, tuned")
_GRADIENTS = ("Greedy-GQ", "VR-Greedy-GQ", "policy gradient", "policy gradient, tuned")


def mspbe_views(s: FamilySetting) -> tuple[View, ...]:
    """On the lake J* = 0, and J − J* is J."""
    alone = View("MSPBE", "long", "mspbe", "J(θ)")
    if s.family != GARNET:
        return (alone,)
    both = View("MSPBE (dashed: J − J*)", "long", "mspbe", "J(θ), J(θ) − J*", dashed="excess")
    return both, alone, View("Above its least", "long", "excess", "J(θ) − J*")


def _means(title: str, part: str, metric: str, y: str, x: str, end: float, only: tuple[str, ...]) -> View:
    return View(title, part, metric, y, x, end, log_y=False, only=only, mean=True)


def reward_views(s: FamilySetting) -> tuple[View, ...]:
    x, end = "gradient_evaluations", s.computations
    return (
        _means("Largest reward so far", "reward", "largest_reward", _HAT, x, end, _CRITICS),
        _means("Exact reward", "reward", "exact_reward", _TRUE, x, end, _CRITICS),
    )


ITERATION_VIEWS = (
    _means("Largest reward by iterations", "reward", "largest_reward", _HAT, "updates", ITERATIONS, _GRADIENTS),
    _means("Exact reward by iterations", "reward", "exact_reward", _TRUE, "updates", ITERATIONS, _GRADIENTS),
)


def baseline_views(s: FamilySetting) -> tuple[View, ...]:
    value, place = "exact discounted value", "Garnet" if s.family == GARNET else "Lake"
    return (
        _means(f"{place}: actor-critic", "curves", "value", value, "samples", s.curves, _CRITICS[2:]),
        _means(f"{place}: policy gradient", "reward", "value", value, "updates", ITERATIONS, _GRADIENTS[2:]),
    )


# --- The words -------------------------------------------------------------------------------------------------------

_BAND = "Lines are medians over all runs on all problems, bands reach from the 5th to the 95th percentile."
_RUNNING = (
    "Lines and bands are the median and the 5th and 95th percentile of all values of all runs on all problems within "
    "1,500 updates to either side, one epoch: within an epoch the error of VR-Greedy-GQ rises from that of the batch "
    "mean alone. The expectation is over (D, P) for Greedy-GQ and over the current batch for VR-Greedy-GQ."
)
_SIZES = (
    "Dots are geometric means over the problems of the mean over the last tenth, bars their 95 % intervals, thin lines "
    "single problems. M = 1 is Greedy-GQ. The line is the power of M that fits VR-Greedy-GQ best."
)
_MSPBE = f"{_BAND} J* is the least J at the stationary points that Newton's method finds; on the lake it is 0."
_MEANS = (
    "Lines are means over all runs on all problems, bands reach from the 5th to the 95th percentile (tuned: no band)."
)
_REWARD = (
    f"{_MEANS} r̂ is the mean reward of one walk of 100 steps at every update. The maximum of so many of them grows "
    "even where the policy stays as it is, so the exact long-run reward stands beside it."
)
_ITERATIONS = f"{_MEANS} An iteration of policy gradient takes 1,800 samples, one of the other two a single one."
_BASELINES = f"{_MEANS} The value is that of the first state on, discounted: what both algorithms climb."


def _experiments(s: FamilySetting, place: str, first: int, words: dict[str, str]) -> tuple[Experiment, ...]:
    """Six experiments of a family, or the four without rewards; the figures ``first`` and the next."""
    appendix = s.family == FROZEN_LAKE_EVALUATION
    columns = ("left", "middle", "right")

    def where(k: int) -> str:
        return "Appendix, evaluation" if appendix else f"Figure {first + k // 3}, {columns[k % 3]}"

    rows = [
        ("gradient", "the gradient norm", (start_part(s), long_part(s)), gradient_views(s), _BAND),
        ("variance", "the variance of the updates", (variance_part(s),), VARIANCE_VIEWS, _RUNNING),
        ("batch-size", "the asymptotic error and the batch size", (sizes_part(s),), SIZE_VIEWS, _SIZES),
        ("mspbe", "the MSPBE", (long_part(s),), mspbe_views(s), _MSPBE),
    ]
    if not appendix:
        rows += [
            ("reward", "the reward", (reward_part(s),), reward_views(s), _REWARD),
            ("reward-iterations", "the reward against iterations", (reward_part(s),), ITERATION_VIEWS, _ITERATIONS),
        ]
    return tuple(
        Experiment(f"{s.family}-{key}", where(k), f"{place}: {title}", s.family, words[key], parts, views, caption)
        for k, (key, title, parts, views, caption) in enumerate(rows)
    )


def _baselines(s: FamilySetting, place: str) -> Experiment:
    return Experiment(
        f"{s.family}-baselines", "Baselines", f"{place}: actor-critic and policy gradient, tuned", s.family,
        "The learning rates of actor-critic are those of Greedy-GQ, that of policy gradient is η_θ.",
        (curves_part(s), reward_part(s), tuning_part(s)), baseline_views(s), _BASELINES,
    )  # fmt: skip


_SAYS = {
    "gradient": "VR-Greedy-GQ outperforms Greedy-GQ and achieves a significantly smaller asymptotic gradient norm.",
    "variance": "The stochastic updates of VR-Greedy-GQ induce a much smaller variance than those of Greedy-GQ.",
    "batch-size": "VR-Greedy-GQ achieves a smaller asymptotic convergence error with a larger batch size.",
    "mspbe": "VR-Greedy-GQ achieves a much smaller MSPBE than Greedy-GQ.",
    "reward": "VR-Greedy-GQ achieves a higher reward than Greedy-GQ and actor-critic.",
    "reward-iterations": "VR-Greedy-GQ achieves a much higher expected reward than both Greedy-GQ and policy gradient; "
    "policy gradient is very sample inefficient.",
}
_LAKE_SAYS = {
    **_SAYS,
    "gradient": "VR-Greedy-GQ achieves a much more stationary policy than Greedy-GQ.",
    "mspbe": "VR-Greedy-GQ outperforms Greedy-GQ.",
}

EXPERIMENTS: tuple[Experiment, ...] = (
    *_experiments(GARNET_SETTING, "Garnet", 1, _SAYS),
    *_experiments(LAKE_SETTING, "Frozen Lake", 3, _LAKE_SAYS),
    *_experiments(EVALUATION_SETTING, "Frozen Lake, fixed policy", 0, _LAKE_SAYS),
    _baselines(GARNET_SETTING, "Garnet"),
    _baselines(LAKE_SETTING, "Frozen Lake"),
    Experiment(
        "baird", "Introduction", "Baird's counterexample, a demonstration", BAIRD,
        "Q-learning may diverge off-policy under linear function approximation; Greedy-GQ was made to address that.",
        (BAIRD_PART,), (View("Baird's star", "star", "norm", "‖θ‖", "updates"),),
        "Ten runs each, all from θ₀ = (1, …, 1, 10); the true action values are 0. A demonstration, and no claim.",
    ),
)  # fmt: skip

BY_NAME: dict[str, Experiment] = {experiment.name: experiment for experiment in EXPERIMENTS}
SETTINGS = {s.family: s for s in (GARNET_SETTING, LAKE_SETTING, EVALUATION_SETTING)}


def chosen(names: tuple[str, ...]) -> tuple[Experiment, ...]:
    """The experiments of these names in the paper's order; all where none is named."""
    for name in names:
        if name not in BY_NAME:
            raise ValueError(f"unknown experiment {name!r}, expected one of {', '.join(BY_NAME)}")
    return tuple(e for e in EXPERIMENTS if not names or e.name in names)
