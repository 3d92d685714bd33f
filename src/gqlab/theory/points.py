"""Points at which the inequalities of the proofs are tried: (θ, ω, θ̃, ω̃), a batch, step sizes; many at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.sharp import Sharp

#: A left side and a right side, (n,) each.
Ratio = tuple[FloatArray, FloatArray]


def square(v: FloatArray) -> FloatArray:
    return np.asarray((v**2).sum(axis=-1))


def into_ball(v: FloatArray, radius: float) -> FloatArray:
    return v * np.minimum(1, radius / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300))


@dataclass(frozen=True)
class Points:
    """n points at once, and what the proofs need to know about them."""

    problem: Problem
    c: Sharp
    theta: FloatArray  # (n, d)
    omega: FloatArray
    theta_ref: FloatArray
    omega_ref: FloatArray
    batch: FloatArray  # (n, N), the frequencies of the samples in the batch
    steps: FloatArray  # (n, 2), η_θ and η_ω before η_θ is limited

    @classmethod
    def size(cls, problem: Problem) -> int:
        """How many numbers define one point."""
        return 4 * problem.dim + len(problem.exact.transitions.s) + 4

    @classmethod
    def decode(cls, problem: Problem, c: Sharp, u: FloatArray) -> Points:
        """(n, size) free numbers as points."""
        d, N = problem.dim, len(problem.exact.transitions.s)
        theta, omega = into_ball(c.R * u[:, :d], c.R), into_ball(c.R_omega * u[:, d : 2 * d], c.R_omega)
        near = 10 ** np.clip(2 * u[:, -4:-2] - 2, -5, 0.5)  # how far the second points are, in radii
        theta_ref = into_ball(theta + near[:, :1] * c.R * u[:, 2 * d : 3 * d], c.R)
        omega_ref = into_ball(omega + near[:, 1:] * c.R_omega * u[:, 3 * d : 4 * d], c.R_omega)
        logits = 3 * u[:, 4 * d : 4 * d + N]
        batch = np.exp(logits - logits.max(axis=1, keepdims=True))
        batch /= batch.sum(axis=1, keepdims=True)
        steps = 10 ** np.clip(u[:, -2:] - 2, -4, 0)
        return cls(problem, c, theta, omega, theta_ref, omega_ref, batch, steps)

    def mean(self, values: FloatArray) -> FloatArray:
        """Over the batch."""
        return np.asarray(np.einsum("kn,kn...->k...", self.batch, values))

    @cached_property
    def star(self) -> FloatArray:
        return self.problem.exact.omega_star(self.theta)

    @cached_property
    def gradient(self) -> FloatArray:
        return self.problem.exact.gradient(self.theta)

    @cached_property
    def sampled(self) -> tuple[FloatArray, FloatArray]:
        """G_x and H_x at (θ, ω), (n, N, d)."""
        return self.problem.exact.sample_gradients(self.theta, self.omega)

    @cached_property
    def updates(self) -> tuple[FloatArray, FloatArray]:
        """g and h of VR-Greedy-GQ for every index that may be drawn, (n, N, d)."""
        reference = self.problem.exact.sample_gradients(self.theta_ref, self.omega_ref)
        g, h = (new - old + self.mean(old)[:, None] for new, old in zip(self.sampled, reference, strict=True))
        return g, h

    @cached_property
    def eta_theta(self) -> FloatArray:
        """η_θ, small enough that no step from θ leaves the ball, (n,); 0 on the sphere."""
        room = np.maximum(self.c.R * (1 - 1e-12) - np.linalg.norm(self.theta, axis=1), 0)
        longest = np.maximum(*(np.linalg.norm(v, axis=-1).max(axis=1) for v in (self.updates[0], self.sampled[0])))
        return np.minimum(self.steps[:, 0], room / np.maximum(longest, 1e-300))

    @cached_property
    def rounding(self) -> FloatArray:
        """An upper bound on the rounding of a difference of norms or squares, (n,): 1e-13 of the largest of them."""
        vectors = (self.theta, self.omega, self.theta_ref, self.omega_ref, self.star, *self.sampled, *self.updates)
        largest = np.max([np.linalg.norm(v, axis=-1).reshape(len(v), -1).max(axis=1) for v in vectors], axis=0)
        return np.asarray(1e-13 * (largest + largest**2))

    @cached_property
    def errors(self) -> dict[str, FloatArray]:
        """The squares that occur on the right sides."""
        exact, c = self.problem.exact, self.c
        G_star, H_star = exact.sample_gradients(self.theta, self.star)
        phi = exact.transitions.phi
        shift = np.einsum("kn,ni,nj->kij", self.batch, phi, phi) - exact.feature_covariance
        track = self.omega - self.star
        return {
            "track": square(track),
            "track_ref": square(self.omega_ref - exact.omega_star(self.theta_ref)),
            "moved": square(self.theta - self.theta_ref),
            "gradient": square(self.gradient),
            "C1": square(self.mean(G_star) - self.gradient),
            "C2": square(self.mean(H_star)),
            "C3": 2 / c.lambda_C * square(np.einsum("kij,kj->ki", shift, track)),
            "C4": 2 / c.lambda_C * square(self.mean(H_star)),
        }

    @cached_property
    def measured(self) -> Any:
        """The constants with the batch's own deviations in place of C₁ … C₄."""
        return replace(self.c, **{name: self.errors[name] for name in ("C1", "C2", "C3", "C4")})  # type: ignore[arg-type]
