"""``analyse_greedy``: what the companion theorem says about Greedy-GQ on one problem."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from gqlab.algorithms import Algorithm, GreedyGQ
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.support.notebook import html_card
from gqlab.theory import assumptions
from gqlab.theory.analyse import quantities
from gqlab.theory.assumptions import Assumption
from gqlab.theory.choose import start_points, start_terms
from gqlab.theory.greedy import best_greedy
from gqlab.theory.inputs import checked
from gqlab.theory.report import Quantity, plain, quantity_lines
from gqlab.theory.sampled import sampled
from gqlab.theory.sharp import sharp_constants
from gqlab.theory.statements import Statement, greedy_statement, mixing_free
from gqlab.theory.theorems import leaves


@dataclass(frozen=True)
class GreedyReport:
    """The theorem at the given steps, and its best steps for the same number of samples.

    The latter are None where θ_0 lies on the sphere: then no step is small enough.
    """

    problem: str
    algorithm: str
    n_samples: int
    radius_omega: float
    sampling: str
    assumptions: tuple[Assumption, ...]
    sharp: dict[str, Quantity]
    statement: Statement
    best_eta_theta: float | None
    best_eta_omega: float | None
    best_bound: float | None
    best_leaves: float | None  # a bound on the probability that the run comes near the sphere with these steps

    def to_json(self) -> str:
        """The whole report; infinite numbers are the strings "inf" and "-inf"."""
        return json.dumps(plain(self), ensure_ascii=False, indent=1, allow_nan=False)

    def __repr__(self) -> str:
        return f"GreedyReport({self.algorithm}, n_samples={self.n_samples}, guarantee={self.statement.guarantee!r})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        facts = {self.statement.name: self.statement.guarantee}
        return html_card(f"{self.algorithm}: is it guaranteed to converge?", facts, str(self))

    def __str__(self) -> str:
        samples = "one trajectory" if self.sampling == "markov" else "independent samples"
        lines = [
            f"{self.problem}, {self.algorithm}, {self.n_samples} samples ({samples})",
            "",
            "Assumptions",
        ]
        lines += [f"  [{a.status}] {a.name}: {a.detail}" for a in self.assumptions]
        lines += ["", *quantity_lines(self.sharp), *self.statement.lines()]
        if self.best_bound is not None:
            lines.append(
                f"  least bound for as many samples: {self.best_bound:.4g} with η_θ = {self.best_eta_theta:.4g}, "
                f"η_ω = {self.best_eta_omega:.4g}; near the sphere with a probability of at most {self.best_leaves:.4g}"
            )
        return "\n".join(lines)


def used(constants: dict[str, Quantity]) -> dict[str, Quantity]:
    """The constants that this theorem uses: it has no batch means, and no steps that share a batch."""
    left_out = (
        "C1",
        "C2",
        "C3",
        "C4",
        "L2",
        "L5",
        "u_B",
        "u_C",
        "u_K",
        "u_gamma",
        "u_V",
        "u_slope",
        "U",
        "G_fit",
        "H_fit",
    )
    return {name: quantity for name, quantity in constants.items() if name not in left_out}


@checked
def analyse_greedy(
    problem: Problem, algorithm: Algorithm, n_samples: int = 100_000, *, theta0: ArrayLike | None = None,
    omega0: ArrayLike | None = None, radius_omega: float | None = None, sampling: str = "markov",
) -> GreedyReport:  # fmt: skip
    """The companion theorem on plain Greedy-GQ, for this problem; the arguments are those of ``analyse``.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> algorithm = gq.GreedyGQ(eta_theta=1e-5, eta_omega=2e-5, radius=5.0)
    >>> report = gq.theory.analyse_greedy(problem, algorithm, n_samples=1_000_000, theta0=[0.5, -0.5])
    >>> report.statement.guarantee, report.statement.certifies_progress
    ('yes', True)
    """
    if not isinstance(algorithm, GreedyGQ):
        raise ValueError(f"algorithm is {algorithm!r}: this theorem is about gqlab.GreedyGQ")
    n_samples = checks.integer("n_samples", n_samples, least=1)
    own = algorithm.own_radius_omega if radius_omega is None else radius_omega
    # Poisson's equation replaces batch means and mixing, so a periodic chain is fine.
    c = replace(sharp_constants(problem, algorithm.radius, radius_omega=own, sampling="iid"), sampling=sampling)
    known = assumptions.stated(problem, algorithm.radius)
    points = start_points(problem, theta0, omega0, c.R, c.R_omega)
    start = start_terms(problem, *points, c.R, c.R_omega)
    statement = greedy_statement(problem, algorithm, c, float(n_samples), points, start, mixing_free(known))
    theta0_norm = float(np.linalg.norm(points[0]))
    chosen: tuple[float, float, float, float] | tuple[None, None, None, None] = (None, None, None, None)
    if theta0_norm < c.R:
        best, eta, total = best_greedy(problem, c, float(n_samples), start=start, theta0_norm=theta0_norm)
        probability = leaves(c, total * best.rho * n_samples * eta, c.G * eta, n_samples, theta0_norm)
        chosen = eta, eta / best.x, total, probability
    return GreedyReport(
        problem=repr(problem), algorithm=repr(algorithm), n_samples=n_samples, radius_omega=c.R_omega,
        sampling=sampling, assumptions=known,
        sharp=used(quantities(c, {**sampled(problem, c.R), "G": None, "H": None})),
        statement=statement, best_eta_theta=chosen[0], best_eta_omega=chosen[1], best_bound=chosen[2],
        best_leaves=chosen[3],
    )  # fmt: skip
