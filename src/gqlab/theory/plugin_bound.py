"""Theorem 5, the plug-in: what minimising the samples' own objective over the ball gives (docs/theory_proofs.md).

For θ̂ with 𝒢̂(θ̂) = 0, 𝒢̂ the projected-gradient mapping of Ĵ_n with any step, and 𝒢 that of J with the same one,

    E‖𝒢(θ̂)‖² ≤ (1/n) {(√C₁ + γΦ̂ √(C₂/κλ))² + (C_∇J u_C/((1 − κ)λ))²}          for every κ between 0 and 1

The first part is how far ∇Ĵ lies from ∇J where λ_min(Ĉ) ≥ κλ, for all θ of the ball at once; the second is the price of
the batches in which it does not. No step sizes, no condition, every θ of the ball: O(1/ε) samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gqlab.support import checks
from gqlab.theory.inputs import checked, in_range
from gqlab.theory.sharp import Sharp

#: The fractions κ that are tried: the least bound of all is as true as each.
FRACTIONS = tuple(k / 1000 for k in range(1, 1000))


@dataclass(frozen=True)
class PlugIn:
    """The bound on E‖𝒢(θ̂)‖² times n, in two parts, and the κ that makes it least.

    Attributes
    ----------
    deviation : float
        (√C₁ + γΦ̂ √(C₂/κλ))².
    singular : float
        (C_∇J u_C/((1 − κ)λ))².
    kappa : float
        κ.
    trivial : float
        C_∇J², which bounds ‖𝒢‖² without any theorem.
    """

    deviation: float
    singular: float
    kappa: float
    trivial: float

    @property
    def per_sample(self) -> float:
        """The bound times n, where it says something."""
        return self.deviation + self.singular

    @checked
    def bound(self, n_samples: float) -> float:
        """The bound at n samples, C_∇J² where that is smaller."""
        return min(self.per_sample / n_samples, self.trivial)

    def samples(self, epsilon: float) -> int:
        """The least n for which the bound is at most ε."""
        return max(1, math.ceil(self.per_sample / in_range("epsilon", epsilon)))


@checked
def plug_in(c: Sharp) -> PlugIn:
    """Theorem 5 for these constants.

    Examples
    --------
    >>> import gqlab as gq
    >>> mdp = gq.garnet(seed=0)
    >>> problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
    >>> found = gq.theory.plug_in(gq.theory.sharp_constants(problem, radius=100.0))
    >>> f"{found.samples(0.01):.1e}"
    '1.7e+09'
    """
    return min((at_fraction(c, kappa) for kappa in FRACTIONS), key=lambda found: found.per_sample)


def at_fraction(c: Sharp, kappa: float) -> PlugIn:
    """The bound for one κ."""
    kappa = checks.number("kappa", kappa, above=0, below=1)
    deviation = (math.sqrt(c.C1) + c.gamma * c.phi_hat * math.sqrt(c.C2 / (kappa * c.lambda_C))) ** 2
    singular = (c.C_grad_J * c.parts["u_C"] / ((1 - kappa) * c.lambda_C)) ** 2
    return PlugIn(deviation, singular, kappa, c.C_grad_J**2)
