"""The report of :func:`gqlab.theory.analyse`: typed records, a readable print, JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from gqlab.theory.assumptions import FAILS, HOLDS, UNKNOWN, Assumption
from gqlab.theory.bound import Bound
from gqlab.theory.choose import StepSizes
from gqlab.theory.conditions import Condition, Recursion
from gqlab.theory.practical import Practical
from gqlab.theory.repairs import REPAIRS, Repair
from gqlab.theory.statements import Statement

#: Properties of records that are included in their JSON.
PROPERTIES = (
    "margin", "holds", "total", "groups", "dominating", "reached", "conditions_hold", "says_something", "applies",
    "certifies_progress", "staying",
)  # fmt: skip

SYMBOLS = {
    "R": "R", "r_max": "r_max", "gamma": "γ", "lambda_C": "λ_C", "phi_hat": "Φ̂ = sup‖φ̂‖", "L_phi_hat": "L_φ̂",
    "delta_max": "δ_max", "omega_star": "W = sup‖ω*‖", "G": "G", "H": "H", "C_grad_J": "C_∇J", "C1": "C₁", "C2": "C₂",
    "C3": "C₃", "C4": "C₄", "L1": "L₁", "L2": "L₂", "L3": "L₃", "L4": "L₄", "L5": "L₅", "L": "L", "drift": "drift",
    "D": "D", "mixing": "Λρ/(1−ρ)", "c_hat": "ĉ", "k1": "k₁", "k2": "k₂", "u_B": "u_B", "u_C": "u_C", "u_K": "u_K",
    "U": "U", "R_omega": "R_ω", "L6": "L₆", "l_psi": "ℓ_ψ", "psi_max": "ψ_max",
    "u_gamma": "u_γ", "u_V": "u_V", "u_slope": "u_φ̂", "G_fit": "G_fit", "H_fit": "H_fit", "C_inv_b": "‖C⁻¹b‖",
}  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A constant: its value, its formula, and the largest value found at random points of the ball (None: n/a)."""

    name: str
    value: float
    formula: str
    sampled: float | None = None

    @property
    def reached(self) -> float | None:
        """The fraction of the constant that was reached: its slack is one minus this."""
        return None if self.sampled is None or self.value == 0 else self.sampled / self.value


@dataclass(frozen=True)
class Version:
    """One version of the theorem at the given step sizes: "as_printed" or "corrected"."""

    name: str
    constants: dict[str, Quantity]
    conditions: tuple[Condition, ...]
    recursion: Recursion
    bound: Bound
    guarantee: str
    reasons: tuple[str, ...]

    @property
    def conditions_hold(self) -> bool:
        """Whether every needed condition holds, c_0 ≤ 1/8 included."""
        return self.recursion.holds and all(condition.holds for condition in self.conditions if condition.needed)

    @property
    def says_something(self) -> bool:
        """Whether the bound lies below C_∇J², which is true without any theorem."""
        return self.bound.total < self.constants["C_grad_J"].value ** 2


@dataclass(frozen=True)
class MeasuredGradient:
    """E‖∇J(θ_ξ)‖² of a run: the trapezoid rule over its records, the mean over runs, with its standard error."""

    mean: float
    standard_error: float
    n_runs: int


@dataclass(frozen=True)
class Report:
    """What the theorem says about one problem and one algorithm."""

    problem: str
    algorithm: str
    n_epochs: int
    batch_size: int
    eta_theta: float
    eta_omega: float
    radius: float
    radius_omega: float
    sampling: str
    assumptions: tuple[Assumption, ...]
    as_printed: Version | None
    corrected: Version | None
    sharp: dict[str, Quantity]
    statements: tuple[Statement, ...]
    admissible: dict[str, StepSizes]
    practical: Practical | None
    measured: MeasuredGradient | None
    messages: tuple[str, ...]
    repairs: tuple[Repair, ...] = REPAIRS

    @property
    def applies(self) -> bool:
        """Whether the theorem's constants exist at all for this problem."""
        return self.corrected is not None

    def statement(self, name: str) -> Statement:
        """The sharper theorem of this name: "interior", "projected" or "plug-in"."""
        return next(statement for statement in self.statements if statement.name == name)

    def to_json(self) -> str:
        """The whole report; numbers beyond float64 are the strings "inf" and "-inf".

        Examples
        --------
        >>> import json, gqlab as gq
        >>> mdp = gq.garnet(seed=0)
        >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
        >>> report = gq.theory.analyse(problem, gq.VRGreedyGQ(radius=100.0), n_epochs=10)
        >>> json.loads(report.to_json())["corrected"]["conditions"][2]["holds"]
        False
        """
        return json.dumps(plain(self), ensure_ascii=False, indent=1, allow_nan=False)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def plain(value: Any) -> Any:
    """A record as nested dictionaries, including its properties."""
    if is_dataclass(value) and not isinstance(value, type):
        out = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        for name in PROPERTIES:
            if isinstance(getattr(type(value), name, None), property):
                out[name] = plain(getattr(value, name))
        return out
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.problem}, {report.algorithm}, T = {report.n_epochs} epochs"
    yield ""
    yield "Assumptions"
    for assumption in report.assumptions:
        yield f"  [{assumption.status}] {assumption.name}: {assumption.detail}"
    for message in report.messages:
        yield f"  ! {message}"
    for version in (report.as_printed, report.corrected):
        if version is not None:
            yield ""
            yield from _version_lines(version)
    if report.statements:
        yield ""
        yield from _sharp_lines(report)
    if report.measured is not None:
        yield ""
        m = report.measured
        yield f"Measured E‖∇J(θ_ξ)‖² = {m.mean:.4g} ± {m.standard_error:.2g} (standard error, {m.n_runs} runs)"
    yield ""
    yield "Choosing"
    for pair in report.admissible.values():
        yield f"  largest admissible pair: {pair.line()}"
    if report.practical is not None:
        yield f"  mean dynamics: {report.practical}"


def quantity_lines(quantities: dict[str, Quantity]) -> Iterator[str]:
    """A table of constants: value, the fraction of it that random points reached, formula."""
    yield f"  {'constant':<16}{'value':>12}  {'reached':>7}  formula"
    for name, quantity in quantities.items():
        reached = "" if quantity.reached is None else f"{100 * quantity.reached:.0f} %"
        yield f"  {SYMBOLS[name]:<16}{quantity.value:>12.5g}  {reached:>7}  {quantity.formula}"


def _sharp_lines(report: Report) -> Iterator[str]:
    batches = "one trajectory" if report.sampling == "markov" else "independent samples"
    yield f"The sharper theorems: ‖θ‖ ≤ R = {report.radius:g}, ‖ω‖ ≤ R_ω = {report.radius_omega:.4g}, {batches}"
    yield from quantity_lines(report.sharp)
    for statement in report.statements:
        yield from statement.lines()


def _version_lines(version: Version) -> Iterator[str]:
    title = {"as_printed": "As printed in the paper", "corrected": "Corrected"}[version.name]
    yield f"{title}"
    yield from quantity_lines(version.constants)
    yield "  conditions (left ≤ right)"
    for condition in version.conditions:
        word = "holds" if condition.holds else "FAILS"
        spare = "" if condition.needed else "  (not needed by the repaired proof)"
        yield (
            f"  {condition.label:<9}{condition.left:>12.5g} ≤ {condition.right:<9.4g} margin {condition.margin:>12.5g}"
            f"  {word}  {condition.formula}{spare}"
        )
    r = version.recursion
    c0 = f"{r.c0:.4g}" if math.isfinite(r.c0) else f"10^{r.log10_c0:.4g}"
    yield f"  {'c_0':<9}{c0:>12} ≤ 0.125     {'holds' if r.holds else 'FAILS'}  {r.formula}"
    yield "  bound on E‖∇J(θ_ξ)‖²"
    for name, value in version.bound.terms.items():
        mark = "  ← dominates" if name == version.bound.dominating else ""
        yield f"  {name:<20}{value:>12.5g}  {version.bound.formulas[name]}{mark}"
    trivial = version.constants["C_grad_J"].value ** 2
    yield f"  {'total':<20}{version.bound.total:>12.5g}  (C_∇J² = {trivial:.5g} holds without any theorem)"
    yield f"  guarantee: {version.guarantee}" + (f" ({'; '.join(version.reasons)})" if version.reasons else "")


def guarantee(
    name: str, assumptions: tuple[Assumption, ...], conditions_hold: bool, valid_proof: bool
) -> tuple[str, tuple[str, ...]]:
    """ "yes", "no" or "cannot be known", and why it is not "yes"."""
    needed = [assumption for assumption in assumptions if name in assumption.needed_by]
    reasons = [f"{a.name}: {a.status}" for a in needed if a.status != HOLDS]
    if not conditions_hold:
        reasons.append("a condition fails")
    if not valid_proof:
        reasons.append("the printed proof has gaps")
    failed = not conditions_hold or not valid_proof or any(a.status == FAILS for a in needed)
    if failed:
        return "no", tuple(reasons)
    return (UNKNOWN if reasons else "yes"), tuple(reasons)
