"""The Boltzmann weights exp(σq), which several operators and policies share."""

from __future__ import annotations

from gqlab.rules.dispatch import rule
from gqlab.rules.numbers import exp


@rule
def boltzmann(q, sigma, w, A):
    """exp(σ(q_a − max q)) into ``w``; returns max q, 1/Z with Z = Σ_a of them, and the mean of q − max q under w/Z."""
    top = q[0]
    for a in range(A):
        top = max(top, q[a])
    Z = q.dtype.type(0)
    mean = q.dtype.type(0)
    for a in range(A):
        w[a] = exp(sigma * (q[a] - top))
        Z += w[a]
        mean += w[a] * (q[a] - top)
    over_Z = q.dtype.type(1) / Z
    return top, over_Z, mean * over_Z


@rule
def boltzmann_policy(q, sigma, p, A):
    """softmax(σq) into ``p``."""
    _, over_Z, _ = boltzmann(q, sigma, p, A)
    for a in range(A):
        p[a] *= over_Z
