"""What the sharper theorems say about one problem, one algorithm and one start: a record for each, and its text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.algorithms import GreedyGQ, VRGreedyGQ
from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.assumptions import HOLDS, Assumption
from gqlab.theory.choose import constant_steps
from gqlab.theory.greedy import LEAST_RHO, greedy_bound, poisson
from gqlab.theory.inputs import checked
from gqlab.theory.plugin_bound import plug_in
from gqlab.theory.search import Choice, largest_eta_theta
from gqlab.theory.sharp import Sharp
from gqlab.theory.theorems import THEOREMS, evaluate, leaves

BOUNDED = {
    "interior": "(1/TM) Σ_t E‖∇J(θ_t)‖² over the iterates before the first one within 3Gη_θ of the sphere",
    "projected": "E‖𝒢(θ_ξ)‖² over all iterates, 𝒢 = (θ − Π_R[θ − η_θ∇J(θ)])/η_θ",
    "plug-in": "E‖𝒢(θ̂)‖², θ̂ the minimiser over the ball of the objective of all n = TM samples",
    "greedy": "(1/n) Σ_t E‖∇J(θ_t)‖² over the iterates before the first one within Gη_θ of the sphere",
}

NEEDS = {
    "steps": "max(η_θ, η_ω) ≤ 1",
    "y": "the tracking error contracts, y ≥ 0",
    "P < y": "the reference's share of it is smaller, P ≤ y",
    "c_hat": "a bound ĉ on c_t exists: the slope of ĉ ↦ c_0(ĉ) is at most 1",
    "rho": "ρ ≥ 1/4 is left of ‖∇J‖²",
    "step of θ": "c_0(1 + M/1.6) + B N_s ≤ 1/(2η_θ) − L/2",
    "x": "2xL₁L₃ < λ_C,  x = η_θ/η_ω",
}

TERMS = {
    "initialisation": "J(θ_0)/(ρη_θTM)",
    "tracking: start": "B‖ω_0 − ω*(θ_0)‖²/(ρη_θTM)",
    "batch": "the batch means, through the step of θ: of order C₁/M",
    "tracking: batch": "the batch means, through ω − ω*(θ): of order (C₁ + C₂ + C₃ + C₄)/M",
    "deviation": "(√C₁ + γΦ̂√(C₂/κλ_C))²/n: of ∇Ĵ from ∇J",
    "singular": "(C_∇J u_C/((1 − κ)λ_C))²/n: where λ_min(Ĉ) < κλ_C",
    "correlation": "2M_U/(ρn)",
    "noise": "Nη_θ/ρ",
}

TITLES = {
    "interior": "Sharper, interior",
    "projected": "Sharper, projected",
    "plug-in": "The plug-in, another algorithm on the same samples",
    "greedy": "Greedy-GQ",
}

#: A statement about runs that stay inside certifies progress only if at most this share of the runs may leave.
MOST_LEAVE = 0.05


@dataclass(frozen=True)
class Statement:
    """One theorem at the given steps. ``needs`` are margins: what the proof needs holds where none is negative.

    ``guarantee`` is "yes" for the algorithm as it was given; a "yes" with a comma is about another one, and says which.
    """

    name: str
    bounds: str
    needs: dict[str, float]
    terms: dict[str, float]
    coefficients: dict[str, float]
    trivial: float
    at_start: float
    guarantee: str
    reasons: tuple[str, ...]
    largest: Choice | None = None
    leaves: float | None = None  # a bound on the probability that the run comes near the sphere

    @property
    def total(self) -> float:
        return sum(self.terms.values())

    @property
    def holds(self) -> bool:
        """Whether every need of the proof holds at these steps."""
        return all(margin >= 0 for margin in self.needs.values())

    @property
    def says_something(self) -> bool:
        """Whether the bound lies below C_∇J², which is true without any theorem."""
        return self.total < self.trivial

    @property
    def staying(self) -> float:
        """The bound on the mean of ‖∇J‖² over all iterates, given that the run never comes near the sphere.

        That is total/(1 − leaves), and infinite where leaves is 1; for the projected theorem, which counts every
        iterate, the total itself.
        """
        if self.leaves is None:
            return self.total
        return self.total / (1 - self.leaves) if self.leaves < 1 else math.inf

    @property
    def certifies_progress(self) -> bool:
        """Whether a guarantee is given and its bound, given that the run stays inside, lies below the value at θ_0.

        A run must be likely to stay inside: with a probability of at least 0.95.
        """
        inside = self.leaves is None or self.leaves <= MOST_LEAVE
        return self.guarantee == "yes" and inside and self.staying < self.at_start

    def lines(self) -> Iterator[str]:
        title = TITLES[self.name]
        yield f"{title}: {self.bounds}"
        for name, margin in self.needs.items():
            yield f"  {'holds' if margin >= 0 else 'FAILS'}  {NEEDS[name]} (margin {margin:.4g})"
        for name, value in self.terms.items():
            yield f"  {name:<20}{value:>12.5g}  {TERMS[name]}"
        yield f"  {'total':<20}{self.total:>12.5g}  (C_∇J² = {self.trivial:.5g}; at θ_0 it is {self.at_start:.5g})"
        if self.leaves is not None:
            yield f"  the probability that the run ever comes that near the sphere is at most {self.leaves:.4g}"
            if self.leaves < 1:
                yield f"  the mean of ‖∇J‖² over the runs that never do is at most {self.staying:.5g}"
        if self.largest is not None:
            yield f"  largest admissible pair: {self.largest}"
        reasons = self.reasons
        if self.guarantee.startswith("yes") and not self.says_something:
            reasons = ("true, but the bound says nothing: it is above C_∇J²",)
        elif self.guarantee.startswith("yes") and self.leaves == 1:
            reasons = ("true of the iterates that are counted; that the run stays inside is not shown",)
        elif self.guarantee.startswith("yes") and self.leaves is not None and self.leaves > MOST_LEAVE:
            reasons = ("true of the iterates that are counted; that the run is likely to stay inside is not shown",)
        yield f"  guarantee: {self.guarantee}" + (f" ({'; '.join(reasons)})" if reasons else "")


def statements(
    problem: Problem, algorithm: VRGreedyGQ, c: Sharp, n_epochs: float, points: tuple[FloatArray, FloatArray],
    start: tuple[float, float], known: tuple[Assumption, ...],
) -> tuple[Statement, ...]:  # fmt: skip
    """Both theorems on VR-Greedy-GQ, and the one on what its samples allow; ``points`` are (θ_0, ω_0), ``start`` is
    (J(θ_0), ‖ω_0 − ω*(θ_0)‖²)."""
    out = []
    (eta_theta, eta_omega), M = constant_steps(algorithm), float(algorithm.batch_size)
    theta0_norm = float(np.linalg.norm(points[0]))
    for name in THEOREMS:
        with np.errstate(all="ignore"):
            found = evaluate(c, name, eta_theta, eta_omega, M)
            terms = {key: _number(value, math.inf) for key, value in found.terms(float(n_epochs), *start).items()}
        needs = {key: _number(value) for key, value in found.needs.items()}
        shell = 3 * c.G * eta_theta if name == "interior" else 0.0
        word, reasons = _verdict(algorithm, c, known, needs, points, shell)
        at_start = _at_start(problem, c, points[0], eta_theta if name == "projected" else None)
        coefficients = {key: _number(value) for key, value in found.coefficients.items()}
        try:
            largest = largest_eta_theta(c, name, batch_size=algorithm.batch_size, theta0_norm=theta0_norm)
        except ValueError:
            largest = None
        probability = None
        if name == "interior":
            risen = sum(terms.values()) * coefficients["rho"] * eta_theta * n_epochs * M
            probability = leaves(c, risen, shell, n_epochs * M, theta0_norm)
        value = (terms, coefficients, c.C_grad_J**2, at_start, word, reasons, largest, probability)
        out.append(Statement(name, BOUNDED[name], needs, *value))
    return (*out, plug_in_statement(problem, c, n_epochs * M, points[0], eta_theta, known))


def plug_in_statement(
    problem: Problem, c: Sharp, n_samples: float, theta0: FloatArray, eta_theta: float, known: tuple[Assumption, ...]
) -> Statement:
    """Theorem 5: about the minimiser of the samples' own objective, with 𝒢 of any step, here η_θ."""
    found = plug_in(c)
    terms = {"deviation": found.deviation / n_samples, "singular": found.singular / n_samples}
    reasons = tuple(f"{a.name}: {a.status}" for a in known if a.status != HOLDS)
    word = "no" if reasons else "yes, for the minimiser of the samples' objective over the ball"
    if not reasons and c.sampling == "iid":
        word += ", for i.i.d. batches, which run() does not draw"
    at_start = _at_start(problem, c, theta0, eta_theta)
    coefficients = {"kappa": found.kappa}
    return Statement("plug-in", BOUNDED["plug-in"], {}, terms, coefficients, c.C_grad_J**2, at_start, word, reasons)


def greedy_statement(
    problem: Problem, algorithm: GreedyGQ, c: Sharp, n_samples: float, points: tuple[FloatArray, FloatArray],
    start: tuple[float, float], known: tuple[Assumption, ...],
) -> Statement:  # fmt: skip
    """The companion theorem on Greedy-GQ with constant steps."""
    eta_theta, eta_omega = constant_steps(algorithm)
    x = eta_theta / eta_omega
    found = greedy_bound(c, x, None if c.sampling == "iid" else poisson(problem))
    rho = found.rho if found.b >= 0 else -math.inf
    needs = {"x": c.lambda_C - 2 * x * c.L1 * c.L3, "rho": rho - LEAST_RHO}
    scale = max(rho, 1e-300) * n_samples
    terms = {
        "initialisation": start[0] / (scale * eta_theta),
        "tracking: start": max(found.b, 0.0) * start[1] / (scale * eta_theta),
        "correlation": 2 * found.M_U / scale,
        "noise": found.N * eta_theta / max(rho, 1e-300) if found.b >= 0 else math.inf,
    }
    if any(margin < 0 for margin in needs.values()):
        terms = dict.fromkeys(terms, math.inf)
    shell = c.G * eta_theta
    word, reasons = _verdict(algorithm, c, known, needs, points, shell)
    risen = sum(terms.values()) * scale * eta_theta
    coefficients = {"b": found.b, "rho": found.rho, "M_U": found.M_U, "N": found.N}
    return Statement(
        "greedy", BOUNDED["greedy"], needs, terms, coefficients, c.C_grad_J**2, _at_start(problem, c, points[0], None),
        word, reasons, None, leaves(c, risen, shell, n_samples, float(np.linalg.norm(points[0]))),
    )  # fmt: skip


def _verdict(
    algorithm: GreedyGQ | VRGreedyGQ, c: Sharp, known: tuple[Assumption, ...], needs: dict[str, float],
    points: tuple[FloatArray, FloatArray], shell: float,
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    """ "yes", for the algorithm or for another one that is named, or "no", and why: nothing here depends on the run."""
    reasons = [f"{a.name}: {a.status}" for a in known if a.status != HOLDS]
    if not c.tracks:
        reasons.append(f"W = {c.omega_star:.4g} is not known to be at most R_ω = {c.R_omega:.4g}")
    if float(np.linalg.norm(points[0])) > c.R - shell:
        reasons.append(f"θ_0 has norm {float(np.linalg.norm(points[0])):.4g}, above {c.R - shell:.4g}")
    if float(np.linalg.norm(points[1])) > c.R_omega:
        reasons.append("ω_0 lies outside its ball")
    if any(not margin >= 0 for margin in needs.values()):
        reasons.append("a need of the proof fails")
    if reasons:
        return "no", tuple(reasons)
    others = []
    if c.R_omega != algorithm.own_radius_omega:
        others.append(f"for ω projected on R_ω = {c.R_omega:.4g} (the algorithm has {algorithm.own_radius_omega:.4g})")
    if c.sampling == "iid":
        others.append("for i.i.d. batches, which run() does not draw")
    return ", ".join(["yes", *others]), ()


def mixing_free(known: tuple[Assumption, ...]) -> tuple[Assumption, ...]:
    """The assumptions without the fourth: independent samples need no ergodicity, nor does Greedy-GQ."""
    return tuple(a for a in known if not a.name.startswith("4"))


@checked
def mapping(problem: Problem, theta: FloatArray, *, eta_theta: float, radius: float) -> FloatArray:
    """𝒢(θ) = (θ − Π_R[θ − η_θ∇J(θ)])/η_θ, the projected-gradient mapping, (..., d): ∇J(θ) where nothing is projected.

    Examples
    --------
    One state, φ = 1, r = 2, γ = 0.5: ∇J = −0.5(2 − 0.5θ) pushes θ to 4. On the edge of the ball of radius 1 it stays.

    >>> import numpy as np, gqlab as gq
    >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[2.0]], discount=0.5), [[[1.0]]])
    >>> [float(mapping(problem, np.array([x]), eta_theta=0.1, radius=1.0)[0]) for x in (0.0, 1.0)]
    [-1.0, 0.0]
    """
    after = theta - eta_theta * problem.exact.gradient(theta)
    norm = np.linalg.norm(after, axis=-1, keepdims=True)
    inside = norm <= radius
    projected = np.where(inside, after, after * radius / np.maximum(norm, 1e-300))
    out = np.where(inside, problem.exact.gradient(theta), (theta - projected) / eta_theta)
    if not np.isfinite(out).all():
        raise ValueError("theta: the result overflows: some entry is too large")
    return out


def _at_start(problem: Problem, c: Sharp, theta: FloatArray, eta_theta: float | None) -> float:
    value = (
        problem.exact.gradient(theta) if eta_theta is None else mapping(problem, theta, eta_theta=eta_theta, radius=c.R)
    )
    return float((value**2).sum())


def _number(value: Any, unknown: float = -math.inf) -> float:
    """A number; where a need fails the formulas may have no value, and a margin is minus infinity, a term infinity."""
    out = float(value)
    return unknown if math.isnan(out) else out
