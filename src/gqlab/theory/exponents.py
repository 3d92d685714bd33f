"""How the least number of samples grows as ε falls: each bound, optimised over everything it leaves free.

The slope of the paper's theorem comes to 2 from below: c_0 ≤ 1/8 itself, where lr-3 has η_θM ≤ const, lets η_θM grow
like a logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gqlab.checks import FloatArray
from gqlab.problem import Problem
from gqlab.theory.choose import least_plan
from gqlab.theory.constants import corrected
from gqlab.theory.greedy import samples_for
from gqlab.theory.search import least_samples
from gqlab.theory.sharp import Sharp

#: ε, six decades of them below the largest.
EPSILONS = tuple(10.0**-k for k in range(2, 9))

#: The theorems by name: (theorem, order), and the exponent that is proved.
CASES = {
    "VR-Greedy-GQ, the paper's theorem, corrected": ("corrected", 1, "2"),
    "VR-Greedy-GQ, interior": ("interior", 2, "5/3"),
    "VR-Greedy-GQ, interior, ω* Lipschitz alone": ("interior", 1, "7/4"),
    "VR-Greedy-GQ, projected": ("projected", 2, "2"),
    "Greedy-GQ": ("greedy", 2, "2"),
}


@dataclass(frozen=True)
class Growth:
    """The least samples at each ε, and the local slopes of log samples against log 1/ε."""

    name: str
    proved: str
    epsilons: tuple[float, ...]
    samples: tuple[float, ...]

    @property
    def slopes(self) -> FloatArray:
        return np.diff(np.log(self.samples)) / -np.diff(np.log(self.epsilons))

    def __str__(self) -> str:
        counts = ", ".join(f"{n:.3g}" for n in self.samples)
        slopes = ", ".join(f"{slope:.3f}" for slope in self.slopes)
        return f"{self.name}: samples {counts}; slopes {slopes} (proved: {self.proved})"


def growth(
    problem: Problem, c: Sharp, start: tuple[float, float], epsilons: tuple[float, ...] = EPSILONS,
    names: tuple[str, ...] = tuple(CASES),
) -> tuple[Growth, ...]:  # fmt: skip
    """Every case that is named; ``start`` is (J(θ_0), ‖ω_0 − ω*(θ_0)‖²).

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> mdp = gq.FiniteMDP([[[0.75, 0.25]], [[0.25, 0.75]]], [[0.03], [0.0]], discount=0.1)
    >>> problem = gq.Problem(mdp, np.eye(2)[:, None, :], target=gq.FixedPolicy([[1.0], [1.0]]))
    >>> names = ("VR-Greedy-GQ, interior", "Greedy-GQ")
    >>> found = growth(problem, sharp_constants(problem, 1.0), (0.1, 0.1), (1e-8, 1e-10), names)
    >>> [f"{case.slopes[0]:.2f}" for case in found]
    ['1.67', '2.00']
    """
    out = []
    for name in names:
        theorem, order, proved = CASES[name]
        if theorem == "corrected":
            plans = [least_plan(corrected(problem, c.R), epsilon, start) for epsilon in epsilons]
            samples = [float(T) * M for T, M, *_ in plans]
        elif theorem == "greedy":
            samples = [samples_for(problem, c, epsilon, start) for epsilon in epsilons]
        else:
            samples = [least_samples(c, theorem, epsilon, start, order).samples for epsilon in epsilons]
        out.append(Growth(name, proved, epsilons, tuple(samples)))
    return tuple(out)
