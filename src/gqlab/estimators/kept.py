"""Estimators over samples that are kept: a finite sum, to which samples come and from which they go.

    F̄(z) = (1/N) Σ_x F_x(z)  over the N samples that are kept

A stream that keeps its samples tells an estimator of every sample that enters the sum (``enter``), and of every one
that leaves it (``leave``); in between the estimator makes its steps along samples that are drawn from all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gqlab.estimators.needs import Need, Needs
from gqlab.rules.dispatch import by_type, rule
from gqlab.rules.gradient import evaluate
from gqlab.rules.lagged import add_to_sum, drift_by_mean, drift_from_zero
from gqlab.rules.memory import COUNT, Array, Sizes, far, near
from gqlab.rules.point import descend_from
from gqlab.rules.vectors import entry_of
from gqlab.samples.streams import draw

#: More updates than any epoch has: the first update of all begins one.
BEFORE_THE_FIRST = 1 << 62


@by_type
def enter(self, samples, x, n, point, d, A):
    """Estimator: sample x has become one of the n that are kept."""


@by_type
def leave(self, samples, x, n, point, d, A):
    """Estimator: sample x goes, and n are left."""


@by_type
def kept(self):
    """Stream: the first sample that is kept, and the end behind the last."""


class SAGAKept(NamedTuple):
    """SAGA over the samples that are kept: each remembers its last pseudo-gradient T_x, as coefficients.

        f = F_x(z) − T_x          z ← Π_R[z − η (f + Σ/N)]          Σ ← Σ + f,  T_x ← F_x(z)

    Σ is the sum of all T, so that Σ/N is their mean over the N samples, not over those that were drawn. A sample enters
    with T_x = F_x(z) at the z of that time, and takes its T_x out of Σ when it leaves. θ and ω drift along Σ/N, as
    lagged vectors, and no step costs O(d). Without ω one coefficient is all that there is to remember.
    """

    has_omega: int
    T: Any  # (K · (A + 2),) or (K,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.KEPT})

    @staticmethod
    def drifts() -> bool:
        return True

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        width = n.A + 2 if n.most["has_omega"] else 1
        return {"T": far(n.samples * width), "q": near(n.A), "w": near(n.A), "c": near(n.A + 2)}

    def enter(self, samples, x, n, point, d, A):
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        width = remembered(self, A)
        for j in range(width):
            self.T[x * width + j] = self.c[j]
        add_to_sum(point, samples, x, self.c, 1.0, self.has_omega, d, A)
        drift_by_mean(point, n)

    def leave(self, samples, x, n, point, d, A):
        recall(self, x, self.c, A)
        add_to_sum(point, samples, x, self.c, -1.0, self.has_omega, d, A)
        drift_by_mean(point, max(n, 1))

    def step(self, world, point, cursor, u, rates, d, A):
        samples = world.samples
        x, cursor = draw(world.stream, world.run, cursor, u)
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        width = remembered(self, A)
        for j in range(width):  # f, and T_x ← F_x(z)
            now = self.c[j]
            self.c[j] = now - self.T[x * width + j]
            self.T[x * width + j] = now
        moved = descend_from(point, samples, x, self.c, (), rates, d, A)
        add_to_sum(point, samples, x, self.c, 1.0, self.has_omega, d, A)
        return moved, cursor


@rule
def remembered(saga, A):
    """The coefficients that a sample remembers."""
    return A + 2 if saga.has_omega else 1


@rule
def recall(saga, x, c, A):
    """The coefficients of T_x, into ``c``."""
    width = remembered(saga, A)
    for j in range(A + 2):
        c[j] = saga.T[x * width + j] if j < width else 0.0


class SVRGKept(NamedTuple):
    """SVRG whose batch is all samples that are kept.

        z ← Π_R[z − η (F_x(z) − F_x(z̃) + F̃)],   F̃ the mean of F_x(z̃) over the N samples

    A sample that enters, or leaves, changes F̃ at once. z̃ ← z, and F̃ anew, when as many updates as there are samples,
    and at least ``batch_size``, were made since the last time: a pass costs O(N), so an update O(1) of it.
    """

    batch_size: int
    theta_tilde: Any  # (d,)
    omega_tilde: Any  # (d,)
    since: Any  # (1,)  the updates since z̃ was renewed
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    c_tilde: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.KEPT})

    @staticmethod
    def drifts() -> bool:
        return True

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        vectors = dict.fromkeys(("theta_tilde", "omega_tilde"), near(n.d))
        work = {"q": near(n.A), "w": near(n.A), "c": near(n.A + 2), "c_tilde": near(n.A + 2)}
        return {**vectors, "since": near(1, COUNT, fill=BEFORE_THE_FIRST, within=(0, 2 * BEFORE_THE_FIRST)), **work}

    def enter(self, samples, x, n, point, d, A):
        add_reference(self, samples, x, 1.0, point, d, A)
        drift_by_mean(point, n)

    def leave(self, samples, x, n, point, d, A):
        add_reference(self, samples, x, -1.0, point, d, A)
        drift_by_mean(point, max(n, 1))

    def step(self, world, point, cursor, u, rates, d, A):
        samples = world.samples
        first, end = kept(world.stream)
        if self.since[0] >= max(self.batch_size, end - first):
            renew(self, samples, first, end, point, d, A)
        self.since[0] += 1
        x, cursor = draw(world.stream, world.run, cursor, u)
        evaluate(samples, x, self.theta_tilde, self.omega_tilde, self.q, self.w, self.c_tilde, d, A)
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        for j in range(A + 2):
            self.c[j] -= self.c_tilde[j]
        return descend_from(point, samples, x, self.c, (), rates, d, A), cursor


@rule
def add_reference(svrg, samples, x, share, point, d, A):
    """Add ``share`` times F_x(z̃) to the sum."""
    evaluate(samples, x, svrg.theta_tilde, svrg.omega_tilde, svrg.q, svrg.w, svrg.c, d, A)
    add_to_sum(point, samples, x, svrg.c, share, True, d, A)


@rule
def renew(svrg, samples, first, end, point, d, A):
    """z̃ ← z, and F̃ ← the mean over all samples there."""
    drift_from_zero(point, d)
    for i in range(d):
        svrg.theta_tilde[i], svrg.omega_tilde[i] = entry_of(point.theta, i), entry_of(point.omega, i)
    for x in range(first, end):
        add_reference(svrg, samples, x, 1.0, point, d, A)
    drift_by_mean(point, end - first)
    svrg.since[0] = 0
