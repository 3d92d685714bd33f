"""The claims as data are those of the register in docs/reproduction_register.md: axis, budget and τ, claim by claim."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from gqlab.engine.records import recorded_updates
from gqlab.studies.paper.claims import CLAIMS, THEORY_CLAIMS, Claim
from gqlab.studies.paper.departures import CHOICES, DEPARTURES
from gqlab.studies.paper.design import Request
from gqlab.studies.paper.experiments import BY_NAME, SIZES
from gqlab.studies.paper.report import REGISTERED, REGISTERED_SEED
from gqlab.studies.paper.statistics import Axis, Ratio, Side, Slope

DOCUMENT = Path(__file__).parents[3] / "docs" / "reproduction_register.md"
TEXT = DOCUMENT.read_text()
REGISTER = TEXT[TEXT.index("## The register") : TEXT.index("What the register leaves open")]

#: How the register words an axis. The groups are the budgets in thousands: of G, and of F and E where there is another.
AXES = (
    (r"at the last computation that both reach with (\d+)k samples each \(G\), (\d+)k \(F, E\)", "computations", "both"),
    (r"equal samples: (\d+)k, (\d+)k", "samples", ""),
    (r"equal updates: (\d+)k, (\d+)k", "updates", ""),
    (r"(\d+)k updates \(rounded to whole epochs, ≥ 10\), last tenth", "updates", ""),
    (
        r"equal computations: those of VR-Greedy-GQ's (\d+)k \(G\), (\d+)k \(F, E\) samples, "
        r"Greedy-GQ run on to the same number", "computations", "VR-Greedy-GQ",
    ),
    (r"(\d+)k computations \(G\), (\d+)k \(F\)", "computations", ""),
    (r"(\d+)k iterations(?:, on all problems)?", "iterations", ""),
    (r"equal samples, (\d+)k", "samples", ""),
)  # fmt: skip

#: And a τ: of G, and of F and E where there is another.
TAUS = (r"(\d)", r'(\d) \(F, E: (\d), "much more stationary"\)', r"(\d); (\d)")

#: What a quantity is made of: the beginning of its words, then metric and window.
QUANTITIES = (
    ("lowest ‖∇J‖² so far, at *every* update", "lowest_gradient", "end"),
    ("mean ‖∇J‖² over the last tenth", "gradient", "tail"),
    ("E‖update − ∇J‖², exact, mean over the whole run", "update_error", "all"),
    ("factor per doubling of M over M = 300, 1000, 3000, 10000", "gradient", "tail"),
    ("J, mean over the last tenth", "mspbe", "tail"),
    ("largest r̂ so far, r̂ at every update", "largest_reward", "end"),
    ("exact long-run reward, against policy gradient", "exact_reward", "end"),
)


def rows() -> dict[str, tuple[str, str, str, str]]:
    """Of each claim its words, quantity, axis and τ, as the document writes them; "the same" is what stands above."""
    out: dict[str, tuple[str, str, str, str]] = {}
    above = ["", "", "", ""]
    for line in REGISTER.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        keys = re.findall(r"\b[GFET]\d+\b", cells[0])
        if line.startswith("| ") and len(cells) == 4 and keys:
            above = [before if cell.startswith("the same") else cell for cell, before in zip(cells, above, strict=True)]
            out |= dict.fromkeys(keys, (above[0], above[1], above[2], above[3]))
    return out


ROWS = rows()


def of_family(found: tuple[str | None, ...], key: str) -> int:
    """The number for a claim's family: the second, where there is one, is for F and E."""
    first, *rest = (group for group in found if group is not None)
    return int(rest[0] if rest and key[0] != "G" else first)


def registered(key: str) -> tuple[Axis, int]:
    """Axis and τ of a claim by the document."""
    _, _, axis, tau = ROWS[key]
    matches = [(m.groups(), unit, of) for words, unit, of in AXES if (m := re.fullmatch(words, axis))]
    assert len(matches) == 1, f"{key}: no reading of {axis!r}"
    [(groups, unit, of)] = matches
    taus = [m.groups() for words in TAUS if (m := re.fullmatch(words, tau))]
    assert len(taus) == 1, f"{key}: no reading of {tau!r}"
    return Axis(unit, 1000 * of_family(groups, key), of), of_family(taus[0], key)


def check(claim: Claim) -> None:
    """The claim is that of the document."""
    axis, tau = registered(claim.key)
    assert claim.statistic is not None
    assert claim.statistic.axis == axis
    assert isinstance(claim.side, Side)
    assert claim.side.tau == tau
    [(metric, window)] = [(m, w) for words, m, w in QUANTITIES if ROWS[claim.key][1].startswith(words)]
    assert isinstance(claim.statistic, Slope if claim.key[1:] == "4" else Ratio)
    assert (claim.statistic.metric, claim.statistic.window) == (metric, window)
    if isinstance(claim.statistic, Ratio):
        words = ROWS[claim.key][0]
        others = [name for name in ("actor-critic", "policy gradient") if name in words] or ["Greedy-GQ"]
        assert (claim.statistic.over, claim.statistic.under) == ("VR-Greedy-GQ", others[0])
        assert claim.side.direction == ("above" if "reward" in claim.statistic.metric else "below")


MEASURED = [claim for claim in CLAIMS if claim not in THEORY_CLAIMS]


def test_the_document_and_the_code_have_the_same_claims():
    assert list(ROWS) == sorted(ROWS, key=list(ROWS).index)
    assert set(ROWS) == {claim.key for claim in CLAIMS}
    assert len(CLAIMS) == len({claim.key for claim in CLAIMS}) == 27
    assert f"Registered on {REGISTERED}" in REGISTER
    assert f"seed {REGISTERED_SEED} is for the one run" in REGISTER.replace("\n", " ")


@pytest.mark.parametrize("claim", MEASURED, ids=lambda c: c.key)
def test_axis_budget_and_tau_are_those_of_the_document(claim):
    check(claim)


@pytest.mark.parametrize("claim", MEASURED, ids=lambda c: c.key)
def test_a_claim_that_was_changed_is_refused(claim):
    """Another unit, another budget, another start of counting, another τ, window or side: each by itself."""
    statistic, side = claim.statistic, claim.side
    axis = statistic.axis
    other = "samples" if axis.unit != "samples" else "computations"
    for change in ({"unit": other}, {"n": axis.n + 1000}, {"of": "both" if axis.of != "both" else ""}):
        changed = dataclasses.replace(statistic, axis=dataclasses.replace(axis, **change))
        with pytest.raises(AssertionError):
            check(dataclasses.replace(claim, statistic=changed))
    with pytest.raises(AssertionError):
        check(dataclasses.replace(claim, side=Side(side.direction, 3 - side.tau)))
    with pytest.raises(AssertionError):
        check(dataclasses.replace(claim, statistic=dataclasses.replace(statistic, window="median")))


def test_the_theory_claims_are_those_of_the_document():
    T1, T2 = THEORY_CLAIMS
    assert ROWS["T1"][3] == "holds if the interval lies below 0"
    assert T1.side.words == "below 0"
    assert ROWS["T2"][3] == f"holds if the interval lies {T2.side.words}"
    assert "M = 300 … 10000, η_θ = 0.02" in ROWS["T2"][1]
    assert "M = 300 … 10000, η_θ = 0.02" in T2.quantity


def test_population_and_settings_are_those_of_the_document():
    request = Request()
    assert request.n_problems == 24
    assert request.n_runs == 10
    assert SIZES == (300, 1000, 3000, 10_000)
    for family, etas, d in (("garnet", (0.02, 0.01), 4), ("frozen-lake", (0.2, 0.1), 8),
                            ("frozen-lake-evaluation", (0.2, 0.1), 8)):  # fmt: skip
        jobs = [j for e in BY_NAME.values() if e.family == family for j in request.jobs(e)]
        assert jobs[0].problem.build().dim == d
        names = {"GreedyGQ": 0, "VRGreedyGQ": 0}
        for job in jobs:
            assert job.algorithm.radius == 100.0
            if type(job.algorithm).__name__ in names:
                assert (job.algorithm.eta_theta, job.algorithm.eta_omega) == etas
                assert job.n_runs == 10
        population = {
            job.problem.number for job in jobs if job.problem.seed == request.seed and job.problem.number < 50
        }
        assert population == set(range(24))


@pytest.mark.parametrize("claim", MEASURED, ids=lambda c: c.key)
def test_means_are_over_500_evenly_spaced_updates_and_the_end_is_recorded(claim):
    """Read from the jobs themselves: what a run of them will keep."""
    request, statistic = Request(), claim.statistic
    experiment = BY_NAME[claim.experiment]
    part = experiment.part(statistic.part)
    slope = isinstance(statistic, Slope)
    names = (
        [e.label for e in part.entries if e.algorithm.epoch_size > 1] if slope else [statistic.over, statistic.under]
    )
    algorithms = [part.entry(name).algorithm for name in names]
    jobs = [request.job(experiment, part, part.entry(name), 0) for name in names]
    recorded = [
        recorded_updates(a.n_updates(j.n_samples), j.record_every) for a, j in zip(algorithms, jobs, strict=True)
    ]
    kept = [updates[job.kept(updates)] for updates, job in zip(recorded, jobs, strict=True)]
    for a, updates in zip(algorithms, kept, strict=True):
        counted = {"samples": a.samples, "computations": a.gradient_evaluations}.get(statistic.axis.unit, lambda u: u)
        if slope:
            assert abs(updates[-1] - statistic.axis.n) <= a.epoch_size / 2
            assert updates[-1] >= 10 * a.epoch_size
            end = updates[-1]
        else:
            counts = {
                "samples": [b.samples(u) for b, u in zip(algorithms, kept, strict=True)],
                "computations": [b.gradient_evaluations(u) for b, u in zip(algorithms, kept, strict=True)],
            }
            end = statistic.axis.common_end(tuple(algorithms), counts.get(statistic.axis.unit, kept))
            # within one batch, and one iteration of policy gradient, of the register's number
            assert 0 <= statistic.axis.end(tuple(algorithms)) - end <= 3000
        inside = updates[counted(updates) <= end]
        assert counted(inside[-1:] + 1)[0] > end or inside[-1] == updates[-1]  # the next update would pass the end
        if statistic.window in ("tail", "all"):
            window = inside[inside > 0.9 * inside[-1]] if statistic.window == "tail" else inside
            assert len(window) >= 500
            assert len(set(np.diff(window))) == 1
        else:
            assert part.watch or statistic.metric == "exact_reward"


def test_every_departure_and_choice_stands_in_the_document():
    for d in (*DEPARTURES, *CHOICES):
        assert f"| {d.point} | {d.paper} | {d.here} | {d.reason} |" in TEXT.splitlines()
