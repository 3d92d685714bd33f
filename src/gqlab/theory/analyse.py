"""``analyse``: what the theorem says about one problem and one algorithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gqlab.algorithms import Algorithm, VRGreedyGQ
from gqlab.lab.results import RunResult
from gqlab.problems.problem import Problem
from gqlab.support import checks
from gqlab.theory import assumptions, constants
from gqlab.theory.assumptions import Assumption
from gqlab.theory.bound import bound
from gqlab.theory.choose import StepSizes, constant_steps, largest_admissible, start_points, start_terms, step_sizes
from gqlab.theory.conditions import conditions, recursion
from gqlab.theory.constants import C_HAT, Constants
from gqlab.theory.inputs import checked
from gqlab.theory.practical import mean_dynamics_step_sizes
from gqlab.theory.report import MeasuredGradient, Quantity, Report, Version, guarantee
from gqlab.theory.sampled import sampled, sampled_deviations
from gqlab.theory.sharp import Sharp, sharp_constants
from gqlab.theory.statements import mixing_free, statements


@checked
def analyse(
    problem: Problem,
    algorithm: Algorithm,
    n_epochs: int = 100,
    *,
    theta0: ArrayLike | None = None,
    omega0: ArrayLike | None = None,
    result: RunResult | None = None,
    radius_omega: float | None = None,
    sampling: str = "markov",
) -> Report:
    """Every assumption, constant, condition and bound of the paper's theorem, for this problem.

    Parameters
    ----------
    problem : Problem
    algorithm : VRGreedyGQ
        Its step sizes, batch size and radius; the constants need a finite radius.
    n_epochs : int
        T.
    theta0, omega0 : (d,) array, optional
        Where the run begins; default zeros.
    result : RunResult, optional
        A run of this algorithm on this problem: its measured E‖∇J(θ_ξ)‖² is reported next to the bound.
    radius_omega : float, optional
        R_ω, the radius of ω's projection, for the sharper theorems; default: the algorithm's own. With a
        different one, the verdict is about that other algorithm, and says so.
    sampling : "markov" or "iid"
        For the sharper theorems: batches of one trajectory, or of independent samples, which ``run`` does not draw.

    Returns
    -------
    Report
        ``print`` it, or take ``report.corrected.bound.total``, ``report.to_json()``, …

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> algorithm = gq.VRGreedyGQ(eta_theta=3e-5, eta_omega=1.5e-3, batch_size=10_000, radius=1.0)
    >>> report = gq.theory.analyse(problem, algorithm, n_epochs=10_000, theta0=[0.5, 0.5])
    >>> report.corrected.conditions_hold, report.corrected.says_something, report.corrected.bound.dominating
    (True, True, 'tracking: reference')
    """
    if not isinstance(algorithm, VRGreedyGQ):
        raise ValueError(
            f"algorithm is {algorithm!r}: the theorem is about gqlab.VRGreedyGQ; analyse_greedy is for gqlab.GreedyGQ"
        )
    n_epochs, steps = checks.integer("n_epochs", n_epochs, least=1), constant_steps(algorithm)
    _check_result(problem, algorithm, n_epochs, theta0, result)
    measured = None if result is None else _measured(problem, result)
    stated = assumptions.stated(problem, algorithm.radius)
    own = algorithm.own_radius_omega if radius_omega is None else radius_omega
    practical = mean_dynamics_step_sizes(problem, theta0) if _smooth(problem) else None
    common = _settings(problem, algorithm) | {
        "n_epochs": n_epochs, "radius_omega": own, "sampling": sampling, "measured": measured, "practical": practical
    }  # fmt: skip
    try:
        both = {
            "as_printed": constants.printed(problem, algorithm.radius),
            "corrected": constants.corrected(problem, algorithm.radius),
        }
        tight = sharp_constants(problem, algorithm.radius, radius_omega=own, sampling=sampling)
    except ValueError as error:
        return Report(
            **common, assumptions=stated, as_printed=None, corrected=None, admissible={}, sharp={}, statements=(),
            messages=(f"no constants, conditions or bound: {error}",),
        )  # fmt: skip
    updates = float(n_epochs) * algorithm.batch_size
    start = start_terms(problem, theta0, omega0, algorithm.radius, own)
    known = stated + assumptions.implicit_assumptions(problem, both["corrected"], steps[0], updates, theta0, result)
    known += assumptions.one_ball(algorithm.radius, algorithm.own_radius_omega, omega0)
    seen = sampled(problem, algorithm.radius) | sampled_deviations(problem, algorithm.radius, algorithm.radius)
    points = start_points(problem, theta0, omega0, algorithm.radius, own)
    counted = mixing_free(stated) if sampling == "iid" else stated
    versions = {name: _version(name, c, algorithm, n_epochs, start, known, seen) for name, c in both.items()}
    return Report(
        **common, assumptions=known, as_printed=versions["as_printed"], corrected=versions["corrected"],
        admissible=_admissible(problem, algorithm),
        sharp=_sharp_quantities(problem, tight, seen),
        statements=statements(problem, algorithm, tight, n_epochs, points, start, counted),
        messages=tuple(_messages(algorithm, versions, both)),
    )  # fmt: skip


def _settings(problem: Problem, algorithm: VRGreedyGQ) -> dict[str, Any]:
    return {
        "problem": repr(problem), "algorithm": repr(algorithm), "batch_size": algorithm.batch_size,
        **dict(zip(("eta_theta", "eta_omega"), constant_steps(algorithm), strict=True)), "radius": algorithm.radius,
    }  # fmt: skip


def _version(
    name: str, c: Constants, algorithm: VRGreedyGQ, n_epochs: int, start: tuple[float, float],
    known: tuple[Assumption, ...], seen: dict[str, float | None],
) -> Version:  # fmt: skip
    steps = (c, *constant_steps(algorithm), float(algorithm.batch_size))
    tests, c_t = conditions(*steps), recursion(*steps)
    hold = c_t.holds and all(test.holds for test in tests if test.needed)
    word, reasons = guarantee(name, known, hold, valid_proof=name == "corrected")
    return Version(
        name=name,
        constants=_quantities(c, steps[1], seen),
        conditions=tests,
        recursion=c_t,
        bound=bound(*steps, float(n_epochs), *start),
        guarantee=word,
        reasons=reasons,
    )


def _admissible(problem: Problem, algorithm: VRGreedyGQ) -> dict[str, StepSizes]:
    return {
        name: step_sizes(problem, algorithm.batch_size, radius=algorithm.radius, version=version)
        for name, version in (("as_printed", "printed"), ("corrected", "corrected"))
    }


def _sharp_quantities(problem: Problem, c: Sharp, seen: dict[str, float | None]) -> dict[str, Quantity]:
    """The constants for two radii; ``seen`` is for one, so G and H, which depend on ω's radius, are left out."""
    return quantities(c, seen | sampled_deviations(problem, c.R, c.R_omega, c.sampling) | {"G": None, "H": None})


def _quantities(c: Constants, eta_theta: float, seen: dict[str, float | None]) -> dict[str, Quantity]:
    return quantities(c, seen, {"D": c.D(eta_theta), "c_hat": C_HAT}, {"c_hat": "1/8"})


def quantities(
    c: Constants | Sharp, seen: dict[str, float | None], more: dict[str, float] | None = None,
    formulas: dict[str, str] | None = None,
) -> dict[str, Quantity]:  # fmt: skip
    """Constants with their formulas and the values that random points reach."""
    values = {**vars(c), **c.parts, **(more or {})}
    formulas = {**c.formulas, **(formulas or {})}
    return {
        name: Quantity(name, float(values[name]), formula, seen.get(name))
        for name, formula in formulas.items()
        if name in values
    }


def _messages(algorithm: VRGreedyGQ, versions: dict[str, Version], both: dict[str, Constants]) -> list[str]:
    out = []
    eta_theta, eta_omega = constant_steps(algorithm)
    for name, version in versions.items():
        words = "satisfy" if version.conditions_hold else "do not satisfy"
        failed = [test.label for test in version.conditions if test.needed and not test.holds]
        failed += [] if version.recursion.holds else ["c_0 ≤ 1/8"]
        which = {"as_printed": "the paper's conditions as printed", "corrected": "the corrected conditions"}[name]
        most = largest_admissible(both[name], algorithm.batch_size)
        times = f"; η_θ is {eta_theta / most:.3g} times the largest admissible {most:.3g}" if failed else ""
        out.append(
            f"the step sizes η_θ = {eta_theta:g}, η_ω = {eta_omega:g} {words} {which}"
            + (f" ({', '.join(failed)} fail{times})" if failed else "")
        )
    return out


def _smooth(problem: Problem) -> bool:
    return problem.target.smoothness(problem.mdp.n_actions, 1.0) is not None


def _check_result(
    problem: Problem, algorithm: VRGreedyGQ, n_epochs: int, theta0: ArrayLike | None, result: RunResult | None
) -> None:
    if result is None:
        return
    if result.metadata["problem"] != problem.fingerprint:
        raise ValueError("result: that run is of another problem")
    if result.algorithm != algorithm:
        raise ValueError(f"result: that run is of {result.algorithm!r}, not of {algorithm!r}")
    done = int(result.updates[-1]) // algorithm.batch_size
    if done != n_epochs:
        raise ValueError(f"result: that run has {done} epochs, but n_epochs is {n_epochs}")
    if not np.allclose(result.theta[:, 0], 0.0 if theta0 is None else theta0, rtol=1e-12, atol=0):
        raise ValueError("result: that run did not begin at theta0")


def _measured(problem: Problem, result: RunResult) -> MeasuredGradient:
    """The mean of ‖∇J‖² over all iterates of a run, by the trapezoid rule between its records."""
    values = (problem.exact.gradient(result.theta) ** 2).sum(axis=-1)
    squares = np.trapezoid(values, result.updates, axis=1) / result.updates[-1]
    n = len(squares)
    error = float(np.std(squares, ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    return MeasuredGradient(float(squares.mean()), error, n)
