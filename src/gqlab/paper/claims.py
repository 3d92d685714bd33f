"""The claims of the paper, as data: a statement, its figure, the statistic that decides it, the claimed side.

The verdicts are computed, by the rule of :mod:`gqlab.paper.statistics`; "much" means at least twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gqlab.paper.experiments import BY_NAME
from gqlab.paper.problems import FURTHER
from gqlab.paper.runner import Results
from gqlab.paper.statistics import HOLDS, Growth, Ratio, Side, Slope, Statistic, Verdict, decide


@dataclass(frozen=True)
class Claim:
    """One claim; ``beside`` are statistics that are shown next to the deciding one and judged by the same rule."""

    name: str
    experiment: str
    statement: str
    statistic: Statistic
    side: Side
    beside: tuple[Statistic, ...] = ()

    @property
    def figure(self) -> str:
        return BY_NAME[self.experiment].figure

    @property
    def further(self) -> str:
        """What the further problems are."""
        return FURTHER[BY_NAME[self.experiment].family]


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, and the verdicts by the statistics beside it."""

    claim: Claim
    verdict: Verdict
    beside: tuple[tuple[Statistic, Verdict], ...]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        claim = self.claim
        return {
            "name": claim.name, "experiment": claim.experiment, "figure": claim.figure, "claim": claim.statement,
            "statistic": claim.statistic.words, "claimed": claim.side.words, **self.verdict.to_dict(),
            "beside": [{"statistic": s.words, **v.to_dict()} for s, v in self.beside],
        }  # fmt: skip

    @property
    def where(self) -> str:
        """Where the claim is borne out, in words."""
        v = self.verdict
        paper = "borne out in the paper's setting" if v.paper_holds else "not borne out in the paper's setting"
        back = f", reversed on {v.n_reversed}" if v.n_reversed else ""
        return f"{paper}; on {v.n_hold} of {v.n_further} {self.claim.further}{back}"


BELOW, MUCH_BELOW, ABOVE, MUCH_ABOVE = Side("below"), Side("below", 0.5), Side("above"), Side("above", 2.0)

_TAIL = Ratio("long", "gradient", "‖∇J‖², mean over the last 10 %", "tail", common="samples")
_OTHERWISE = (
    Ratio("long", "gradient", "‖∇J‖², median over the last 10 %", "median", common="samples"),
    Ratio("long", "gradient", "lowest ‖∇J‖² so far, at the end", "end", running="min", common="samples"),
)
_TAIL_COMPUTATIONS = Ratio(
    "long", "gradient", "‖∇J‖², at equal gradient computations", "tail", common="gradient_evaluations"
)
_J = Ratio("long", "mspbe", "J, mean over the last 10 %", "tail", common="samples")
_J_COMPUTATIONS = Ratio("long", "mspbe", "J, at equal gradient computations", "tail", common="gradient_evaluations")
_UPDATE = Ratio("variance", "update_error", "E‖update − ∇J‖², exactly, mean over the last 10 %", "tail")
_UPDATE_BESIDE = (
    Ratio("variance", "update_sampled", "the same by 500 Monte Carlo samples", "tail"),
    Ratio("variance", "update_variance", "its variance alone", "tail"),
    Ratio("variance", "update_bias", "its bias² alone", "tail"),
)
_UPDATE_WHOLE = Ratio("variance", "update_error", "E‖update − ∇J‖², exactly, mean over the whole run", "all")
_SLOPE = Slope("batch size", "gradient", "asymptotic ‖∇J‖²")


def _reward(part: str, under: str) -> tuple[Ratio, tuple[Ratio, ...]]:
    """The paper's maximum reward, and beside it the exact reward at the end."""
    return (
        Ratio(part, "sampled_reward", "largest r̂", "end", under=under, running="max"),
        (Ratio(part, "exact_reward", "exact long-run reward, mean over the last 10 %", "tail", under=under),),
    )


def _reward_claims(family: str, place: str) -> tuple[Claim, ...]:
    rows = (
        ("reward", "greedy-gq", "long", "Greedy-GQ", "higher", ABOVE),
        ("reward", "actor-critic", "long", "actor-critic", "higher", ABOVE),
        ("reward-iterations", "greedy-gq", "iterations", "Greedy-GQ", "much higher", MUCH_ABOVE),
        ("reward-iterations", "policy-gradient", "iterations", "policy gradient", "much higher", MUCH_ABOVE),
    )
    return tuple(
        Claim(
            f"{family}-{key}-{short}", f"{family}-{key}",
            f"{place}: VR-Greedy-GQ reaches a {word} reward than {under}"
            + (", by iterations" if part == "iterations" else ""),
            _reward(part, under)[0], side, _reward(part, under)[1],
        )
        for key, short, part, under, word, side in rows
    )  # fmt: skip


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "garnet-gradient-10k", "garnet-gradient",
        "Garnet: after 10k samples VR-Greedy-GQ has seen a smaller gradient norm than Greedy-GQ",
        Ratio("10k", "gradient", "lowest ‖∇J‖² so far", "end", running="min", common="samples"), BELOW,
    ),
    Claim(
        "garnet-gradient-asymptotic", "garnet-gradient",
        "Garnet: VR-Greedy-GQ reaches a smaller asymptotic gradient norm", _TAIL, BELOW, _OTHERWISE,
    ),
    Claim(
        "garnet-gradient-computations", "garnet-gradient",
        "Garnet: VR-Greedy-GQ outperforms Greedy-GQ at equal gradient computations", _TAIL_COMPUTATIONS, BELOW,
    ),
    Claim(
        "garnet-variance-end", "garnet-variance",
        "Garnet: at the end the updates of VR-Greedy-GQ have a much smaller variance",
        _UPDATE, MUCH_BELOW, _UPDATE_BESIDE,
    ),
    Claim(
        "garnet-variance-whole", "garnet-variance",
        "Garnet: over the whole run the updates of VR-Greedy-GQ have a much smaller variance",
        _UPDATE_WHOLE, MUCH_BELOW,
    ),
    Claim(
        "garnet-batch-size", "garnet-batch-size",
        "Garnet: the asymptotic error of VR-Greedy-GQ falls with the batch size", _SLOPE, BELOW,
    ),
    Claim(
        "garnet-mspbe", "garnet-mspbe",
        "Garnet: VR-Greedy-GQ reaches a much smaller MSPBE than Greedy-GQ", _J, MUCH_BELOW, (_J_COMPUTATIONS,),
    ),
    *_reward_claims("garnet", "Garnet"),
    Claim(
        "frozen-lake-gradient-asymptotic", "frozen-lake-gradient",
        "Frozen Lake: VR-Greedy-GQ reaches a much smaller asymptotic gradient norm", _TAIL, MUCH_BELOW,
        _OTHERWISE,
    ),
    Claim(
        "frozen-lake-gradient-computations", "frozen-lake-gradient",
        "Frozen Lake: VR-Greedy-GQ outperforms Greedy-GQ at equal gradient computations", _TAIL_COMPUTATIONS, BELOW,
    ),
    Claim(
        "frozen-lake-variance-end", "frozen-lake-variance",
        "Frozen Lake: at the end the updates of VR-Greedy-GQ have a much smaller variance",
        _UPDATE, MUCH_BELOW, _UPDATE_BESIDE,
    ),
    Claim(
        "frozen-lake-variance-whole", "frozen-lake-variance",
        "Frozen Lake: over the whole run the updates of VR-Greedy-GQ have a much smaller variance",
        _UPDATE_WHOLE, MUCH_BELOW,
    ),
    Claim(
        "frozen-lake-batch-size", "frozen-lake-batch-size",
        "Frozen Lake: the asymptotic error of VR-Greedy-GQ falls with the batch size", _SLOPE, BELOW,
    ),
    Claim(
        "frozen-lake-mspbe", "frozen-lake-mspbe",
        "Frozen Lake: VR-Greedy-GQ reaches a smaller MSPBE than Greedy-GQ", _J, BELOW, (_J_COMPUTATIONS,),
    ),
    *_reward_claims("frozen-lake", "Frozen Lake"),
    Claim(
        "frozen-lake-evaluation", "frozen-lake-evaluation",
        "Frozen Lake, fixed policy: VR-Greedy-GQ reaches a much smaller asymptotic gradient norm",
        _TAIL, MUCH_BELOW, _OTHERWISE,
    ),
    Claim(
        "baird-q-learning", "baird", "Baird's counterexample: semi-gradient Q-learning diverges",
        Growth("star", "norm", "‖θ‖", "Q-learning"), MUCH_ABOVE,
    ),
    Claim(
        "baird-greedy-gq", "baird", "Baird's counterexample: Greedy-GQ does not diverge",
        Growth("star", "norm", "‖θ‖", "Greedy-GQ"), BELOW,
    ),
    Claim(
        "baird-vr-greedy-gq", "baird", "Baird's counterexample: VR-Greedy-GQ does not diverge",
        Growth("star", "norm", "‖θ‖", "VR-Greedy-GQ"), BELOW,
    ),
)  # fmt: skip


def judge(claim: Claim, results: Results) -> Judged:
    """The verdict on a claim, from the results of its experiment."""

    def verdict(statistic: Statistic) -> Verdict:
        return decide([statistic.log_ratios(results, number) for number in results.problems], claim.side)

    return Judged(claim, verdict(claim.statistic), tuple((s, verdict(s)) for s in claim.beside))


def judge_all(results: dict[str, Results]) -> tuple[Judged, ...]:
    """The verdicts on all claims whose experiment is among the results, in the paper's order."""
    return tuple(judge(claim, results[claim.experiment]) for claim in CLAIMS if claim.experiment in results)


def summary(judged: tuple[Judged, ...]) -> str:
    """The first sentence: how many hold."""
    n = sum(j.verdict.outcome == HOLDS for j in judged)
    return f"{n} of {len(judged)} claims hold"
