"""The claims of the paper, as data: the register of docs/reproduction_register.md, which was fixed before the run.

The verdicts are computed, by the rule of :mod:`.statistics`. ``tests/studies/paper/test_register.py`` refuses a claim
whose axis, budget or τ is not that of the document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gqlab.studies.paper.experiments import BY_NAME, ITERATIONS, SETTINGS, SIZE_UPDATES, FamilySetting
from gqlab.studies.paper.problems import FROZEN_LAKE, FROZEN_LAKE_EVALUATION, GARNET
from gqlab.studies.paper.results import Results
from gqlab.studies.paper.statistics import OUTCOMES, Axis, Band, Ratio, Side, Slope, Statistic, Verdict, decide

#: The letter of a family's claims, and its name in their statements.
LETTERS = {"G": GARNET, "F": FROZEN_LAKE, "E": FROZEN_LAKE_EVALUATION}
PLACES = {"G": "Garnet", "F": "Frozen Lake", "E": "Frozen Lake, fixed policy", "T": "Theory"}

#: The share of intervals that miss what they are for.
FALSE_ALARMS = 0.05


@dataclass(frozen=True)
class Claim:
    """One claim; ``beside`` are statistics that one might have chosen instead, judged by the same rule."""

    key: str
    experiment: str
    figure: str
    statement: str
    quantity: str
    side: Side | Band
    statistic: Statistic | None = None
    beside: tuple[Statistic, ...] = ()

    @property
    def place(self) -> str:
        return PLACES[self.key[0]]


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, and the verdicts by the statistics beside it."""

    claim: Claim
    verdict: Verdict
    beside: tuple[tuple[str, Verdict], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        claim, axis = self.claim, self.claim.statistic.axis if self.claim.statistic else None
        return {
            "claim": claim.key, "statement": f"{claim.place}: {claim.statement}", "figure": claim.figure,
            "experiment": claim.experiment, "quantity": claim.quantity, "claimed": claim.side.words,
            "axis": axis and {"unit": axis.unit, "n": axis.n, "of": axis.of, "words": axis.words},
            "tau": claim.side.tau if isinstance(claim.side, Side) else None,
            **self.verdict.to_dict(),
            "beside": [{"quantity": words, **verdict.to_dict()} for words, verdict in self.beside],
        }  # fmt: skip

    @property
    def where(self) -> str:
        """Where the claim is borne out, in words."""
        v = self.verdict
        if v.n_borne_out is None:
            return f"pooled over {v.n_problems} Garnets of gqlab rates"
        back = f", reversed on {v.n_reversed}" if v.n_reversed else ""
        return f"borne out by itself on {v.n_borne_out} of {v.n_problems} problems{back}"


def _claim(
    letter: str, number: int, experiment: str, statement: str, statistic: Statistic, side: Side, *beside: Statistic
) -> Claim:
    name = f"{LETTERS[letter]}-{experiment}"
    return Claim(f"{letter}{number}", name, BY_NAME[name].figure, statement, statistic.words, side, statistic, beside)


def _gradient_claims(letter: str, s: FamilySetting) -> tuple[Claim, Claim]:
    both, samples = Axis("computations", s.start, "both"), Axis("samples", s.long)
    least, now, level = "lowest ‖∇J‖² so far", "‖∇J‖² of the last iterate", "‖∇J‖², mean over the last tenth"
    first = "outperforms Greedy-GQ" if letter == "G" else "reaches a much more stationary point than Greedy-GQ"
    return (
        _claim(
            letter, 1, "gradient", f"VR-Greedy-GQ {first}",
            Ratio("start", "lowest_gradient", least, "end", both), Side("below", 1 if letter == "G" else 2),
            Ratio("start", "lowest_gradient", least, "end", Axis("samples", s.start)),
            Ratio("start", "gradient", now, "end", both),
        ),
        _claim(
            letter, 2, "gradient", "VR-Greedy-GQ reaches a significantly smaller asymptotic gradient norm",
            Ratio("long", "gradient", level, "tail", samples), Side("below", 2),
            Ratio("long", "gradient", level, "tail", Axis("computations", s.long, "VR-Greedy-GQ")),
            Ratio("long", "gradient", "‖∇J‖², median over the last tenth", "median", samples),
            Ratio("long", "gradient", now, "end", samples),
        ),
    )  # fmt: skip


def _variance_claim(letter: str, s: FamilySetting) -> Claim:
    axis, error = Axis("updates", s.variance), "E‖update − ∇J‖²"
    return _claim(
        letter, 3, "variance", "the updates of VR-Greedy-GQ have a much smaller variance",
        Ratio("variance", "update_error", f"{error}, exactly, mean over the whole run", "all", axis), Side("below", 2),
        Ratio("variance", "update_sampled", f"{error}, by 500 Monte Carlo samples, mean over the run", "all", axis),
        Ratio("variance", "update_error", f"{error}, exactly, mean over the last tenth", "tail", axis),
        Ratio("variance", "update_error", f"{error}, exactly, median over the last tenth", "median", axis),
        Ratio("variance", "update_variance", "its variance alone, mean over the whole run", "all", axis),
        Ratio("variance", "update_bias", "its bias² alone, mean over the whole run", "all", axis),
    )  # fmt: skip


def _size_claim(letter: str) -> Claim:
    axis = Axis("updates", SIZE_UPDATES)
    return _claim(
        letter, 4, "batch-size", "the asymptotic error of VR-Greedy-GQ falls with the batch size",
        Slope("batch size", "gradient", "‖∇J‖², mean over the last tenth", axis), Side("below"),
        Slope("batch size", "gradient", "‖∇J‖², median over the last tenth", axis, "median"),
        Slope("batch size", "gradient", "‖∇J‖² of the last iterate", axis, "end"),
    )  # fmt: skip


def _mspbe_claim(letter: str, s: FamilySetting) -> Claim:
    axis, samples = Axis("computations", s.long, "VR-Greedy-GQ"), Axis("samples", s.long)
    much = "much " if letter == "G" else ""
    return _claim(
        letter, 5, "mspbe", f"VR-Greedy-GQ reaches a {much}smaller MSPBE than Greedy-GQ",
        Ratio("long", "mspbe", "J, mean over the last tenth", "tail", axis), Side("below", 2 if letter == "G" else 1),
        Ratio("long", "excess", "J − J*, mean over the last tenth", "tail", axis),
        Ratio("long", "mspbe", "J, mean over the last tenth", "tail", samples),
        Ratio("long", "excess", "J − J*, mean over the last tenth", "tail", samples),
        Ratio("long", "mspbe", "J, median over the last tenth", "median", axis),
        Ratio("long", "mspbe", "J of the last iterate", "end", axis),
    )  # fmt: skip


_HAT, _TRUE = "largest r̂ so far", "exact long-run reward of the last iterate"


def _reward(axis: Axis, under: str, exact: bool = False) -> Ratio:
    metric, what = ("exact_reward", _TRUE) if exact else ("largest_reward", _HAT)
    return Ratio("reward", metric, what, "end", axis, under=under)


def _reward_claims(letter: str, s: FamilySetting) -> tuple[Claim, ...]:
    spent, drawn = Axis("computations", s.computations), Axis("samples", s.computations)
    done, few = Axis("iterations", ITERATIONS), Axis("samples", 10_000)
    gq, ac, pg, ac_tuned, pg_tuned = (
        "Greedy-GQ", "actor-critic", "policy gradient", "actor-critic, tuned", "policy gradient, tuned"
    )  # fmt: skip
    higher, much = Side("above"), Side("above", 2)
    ratio, by = "reward", "reward-iterations"
    return (
        _claim(
            letter, 6, ratio, "VR-Greedy-GQ reaches a higher reward than Greedy-GQ", _reward(spent, gq), higher,
            _reward(drawn, gq), _reward(spent, gq, True),
        ),
        _claim(
            letter, 7, ratio, "VR-Greedy-GQ reaches a higher reward than actor-critic", _reward(spent, ac), higher,
            _reward(drawn, ac), _reward(spent, ac, True), _reward(spent, ac_tuned), _reward(spent, ac_tuned, True),
        ),
        _claim(
            letter, 8, by, "VR-Greedy-GQ reaches a much higher reward than Greedy-GQ, by iterations",
            _reward(done, gq), much, _reward(few, gq), _reward(done, gq, True),
        ),
        _claim(
            letter, 9, by, "VR-Greedy-GQ reaches a much higher reward than policy gradient, by iterations",
            _reward(done, pg), much, _reward(few, pg), _reward(done, pg, True), _reward(done, pg_tuned),
            _reward(done, pg_tuned, True),
        ),
        _claim(
            letter, 10, by, "policy gradient is sample inefficient: VR-Greedy-GQ has the higher reward by then",
            _reward(few, pg, True), higher, _reward(few, pg), _reward(few, pg_tuned, True),
        ),
    )  # fmt: skip


def _family(letter: str) -> tuple[Claim, ...]:
    s = SETTINGS[LETTERS[letter]]
    claims = *_gradient_claims(letter, s), _variance_claim(letter, s), _size_claim(letter), _mspbe_claim(letter, s)
    return claims if letter == "E" else (*claims, *_reward_claims(letter, s))


#: What gqlab rates measures; the side of a slope is a band.
THEORY_CLAIMS = (
    Claim(
        "T1", "rates", "Theorem and corollary", "VR-Greedy-GQ needs fewer samples than Greedy-GQ as ε falls",
        "slope of log samples against log 1/ε, tuned, paired: VR-Greedy-GQ less Greedy-GQ", Band(-float("inf"), 0.0),
    ),
    Claim(
        "T2", "rates", "Theorem", "the error that remains falls like 1/M",
        "slope of log error against log M, M = 300 … 10000, η_θ = 0.02, from a stationary point", Band(-1.2, -0.8),
    ),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (*_family("G"), *_family("F"), *_family("E"), *THEORY_CLAIMS)


def judge(claim: Claim, results: Results) -> Judged:
    """The verdict on a claim, from the results of its experiment."""

    def verdict(statistic: Statistic) -> Verdict:
        assert isinstance(claim.side, Side)
        return decide([statistic.log_ratios(results, k) for k in results.numbers(statistic.part)], claim.side)

    assert claim.statistic is not None
    return Judged(claim, verdict(claim.statistic), tuple((s.words, verdict(s)) for s in claim.beside))


def judge_all(results: dict[str, Results]) -> tuple[Judged, ...]:
    """The verdicts on all claims whose experiment is among the results, in the paper's order."""
    return tuple(judge(claim, results[claim.experiment]) for claim in CLAIMS if claim.experiment in results)


def counts(judged: tuple[Judged, ...]) -> dict[str, int]:
    """How many claims have each outcome."""
    return {outcome: sum(j.verdict.outcome == outcome for j in judged) for outcome in OUTCOMES}


def summary(judged: tuple[Judged, ...]) -> str:
    """The first sentence: how many of each outcome."""
    n = counts(judged)
    words = ("hold" if n["holds"] != 1 else "holds", *(list(n)[1:]))
    counted = ", ".join(f"{count} {word}" for count, word in zip(n.values(), words, strict=True))
    return f"Of {len(judged)} claims {counted}"


def alarms(judged: tuple[Judged, ...]) -> str:
    """What chance alone would do."""
    n = len(judged)
    return f"With {n} intervals at 95 %, {FALSE_ALARMS * n:.2g} false alarms are expected by chance alone"
