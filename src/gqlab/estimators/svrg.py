"""SVRG (Algorithm 1 of VR-Greedy-GQ): a batch, its mean at a reference point, and steps corrected by it.

    G_x(θ, ω) − G_x(θ̃, ω̃) + G̃,   G̃ the mean of G_x(θ̃, ω̃) over the batch, and likewise H

Epoch k has M·growth^k updates, and draws as many new samples. Its batch consists of these (Algorithm 1: growth 1), or
of all samples so far: then the trajectory is drawn again from its random numbers, so that a run need not store it.

Where the batch is spread over machines, G̃ and H̃ come from these (GivenMeans). Else
V̄ and w at θ̃ are kept once for each next state that the batch visits: ``slot`` says where.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gqlab.estimators.base import move
from gqlab.estimators.epochs import GROWTH_UNIT, epoch_from
from gqlab.estimators.kept import SVRGKept
from gqlab.estimators.needs import Need, Needs
from gqlab.rules.dispatch import rule
from gqlab.rules.gradient import add, evaluate, next_value, td_terms
from gqlab.rules.memory import COUNT, INDEX, SAMPLE, Array, Sizes, far, near
from gqlab.rules.point import descend_from, follow
from gqlab.rules.vectors import entry_of
from gqlab.samples.random import BATCH_INDEX, below, word
from gqlab.samples.streams import STOP_LOOK, draw, key, start

#: ``slot`` of a next state that the batch has not visited.
EMPTY = 0xFFFFFFFF


class SVRG(NamedTuple):
    """A batch for each epoch."""

    batch_size: int  # M
    growth_units: int  # growth, in units of 2⁻³²
    keeps_all: int  # 1: the batch is all samples so far
    theta_tilde: Any  # (d,)
    omega_tilde: Any  # (d,)
    G_tilde: Any  # (d,)
    H_tilde: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    batch: Any  # (n_batch,)  the samples
    n_batch: Any  # (1,)
    x: Any  # (1,)  the sample of the next update
    n_visited: Any  # (1,)
    visited: Any  # (n_slots,)  which entry of ``slot`` points to each slot
    slot: Any  # (S,)
    V: Any  # (n_slots,)
    w_tilde: Any  # (n_slots · A,)
    correction: Any  # (n_slots,)  Σ γ (ω̃ᵀφ) over the samples of the batch that lead there

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.BATCH})

    @staticmethod
    def drifts() -> bool:
        return True

    @staticmethod
    def kept_form() -> Any:
        return SVRGKept

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        return {
            **dict.fromkeys(("theta_tilde", "omega_tilde", "G_tilde", "H_tilde"), near(n.d)),
            **{"q": near(n.A), "w": near(n.A), "c": near(n.A + 2), "x": near(1, INDEX, within=(0, max(1, n.samples)))},
            **batch_memory(n),
        }

    def next_begin(self, u):
        return epoch_from(self.batch_size, self.growth_units, u)[0]

    def begin(self, world, point, cursor, u, d, A):
        """θ̃, ω̃ ← the last iterate; G̃, H̃ ← the means over the batch there."""
        cursor = new_batch(self, world, point, cursor, u, d, A)
        self.x[0] = self.batch[below(word(key(world.run, BATCH_INDEX), u), self.n_batch[0])]
        return cursor

    def step(self, world, point, cursor, u, rates, d, A):
        x = self.x[0]
        # The next update's sample is on its way from memory during this one.
        self.x[0] = self.batch[below(word(key(world.run, BATCH_INDEX), u + 1), self.n_batch[0])]
        return move(self, world.samples, x, point, rates, d, A), cursor

    def move(self, samples, x, point, rates, d, A):
        """Algorithm 1's inner step: G_x(θ, ω) − G_x(θ̃, ω̃) + G̃ and H_x(θ, ω) − H_x(θ̃, ω̃) + H̃."""
        evaluate(samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        subtract_reference(self, samples, x, d, A)
        return descend_from(point, samples, x, self.c, (self.G_tilde, self.H_tilde), rates, d, A)

    def fault(self, n: Sizes) -> str:
        """Every next state has one of the slots, or none."""
        taken = self.slot[self.slot != EMPTY]
        return "slot holds a place that there is not" if (taken >= len(self.V)).any() else ""

    def count_batch(self, count):
        count[:] = 0.0
        for k in range(self.n_batch[0]):
            count[self.batch[k]] += 1.0

    def drawn(self, w):
        return self.batch[below(w, self.n_batch[0])]


class GivenMeans(NamedTuple):
    """Algorithm 1's inner steps where G̃ and H̃ come from elsewhere: they are written here before an epoch begins.

    Epochs have ``epoch_updates`` updates, and each takes the next sample.
    """

    epoch_updates: int
    theta_tilde: Any  # (d,)
    omega_tilde: Any  # (d,)
    G_tilde: Any  # (d,)
    H_tilde: Any  # (d,)
    q: Any  # (A,)
    w: Any  # (A,)
    c: Any  # (A + 2,)
    c_tilde: Any  # (A + 2,)

    @staticmethod
    def needs() -> Needs:
        return frozenset({Need.WHOLE_MEAN})

    @staticmethod
    def drifts() -> bool:
        return True

    @staticmethod
    def memory(n: Sizes) -> dict[str, Array]:
        vectors = dict.fromkeys(("theta_tilde", "omega_tilde", "G_tilde", "H_tilde"), near(n.d))
        return {**vectors, "q": near(n.A), "w": near(n.A), "c": near(n.A + 2), "c_tilde": near(n.A + 2)}

    def next_begin(self, u):
        return epoch_from(self.epoch_updates, GROWTH_UNIT, u)[0]

    def begin(self, world, point, cursor, u, d, A):
        """θ̃, ω̃ ← the last iterate, where G̃ and H̃ were taken."""
        for i in range(d):
            self.theta_tilde[i], self.omega_tilde[i] = entry_of(point.theta, i), entry_of(point.omega, i)
        follow(point, self.G_tilde, self.H_tilde, d)
        return cursor

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        return move(self, world.samples, x, point, rates, d, A), cursor

    def move(self, samples, x, point, rates, d, A):
        evaluate(samples, x, self.theta_tilde, self.omega_tilde, self.q, self.w, self.c_tilde, d, A)
        return move_corrected(self, samples, x, point, rates, d, A)


@rule
def move_corrected(svrg, samples, x, point, rates, d, A):
    """G_x(θ, ω) − G_x(θ̃, ω̃) + G̃, and likewise H; ``c_tilde`` holds the coefficients of the second."""
    evaluate(samples, x, point.theta, point.omega, svrg.q, svrg.w, svrg.c, d, A)
    for j in range(A + 2):
        svrg.c[j] -= svrg.c_tilde[j]
    return descend_from(point, samples, x, svrg.c, (svrg.G_tilde, svrg.H_tilde), rates, d, A)


def batch_memory(n: Sizes) -> dict[str, Array]:
    """The arrays that :func:`new_batch` needs, but for the reference point and its means."""
    M, growth, keeps_all = (int(n.most[name]) for name in ("batch_size", "growth_units", "keeps_all"))
    size = M if growth == GROWTH_UNIT and not keeps_all else n.updates
    n_slots = min(size, n.states)
    return {
        "batch": far(size, SAMPLE, within=(0, max(1, n.samples))),
        "n_batch": near(1, COUNT, within=(0, size + 1)),
        "n_visited": near(1, COUNT, within=(0, n_slots + 1)),
        "visited": far(n_slots, INDEX, within=(0, max(1, n.states))),
        "slot": far(n.states, INDEX, fill=EMPTY, within=(0, EMPTY + 1)),
        "V": far(n_slots),
        "w_tilde": far(n_slots * n.A),
        "correction": far(n_slots),
    }


@rule
def new_batch(svrg, world, point, cursor, u, d, A):
    """The batch of the epoch that begins at update u, and its means at (θ̃, ω̃) ← (θ, ω); returns the new cursor."""
    start_reference(svrg, point, d)
    first, end = u, u + epoch_from(svrg.batch_size, svrg.growth_units, u)[1]
    if svrg.keeps_all:
        first, cursor = 0, start(world.stream, world.run)
    for t in range(first, end):
        x, cursor = draw(world.stream, world.run, cursor, t)
        svrg.batch[t - first] = x
        add_reference(svrg, world.samples, x, d, A)
        if t & (STOP_LOOK - 1) == 0 and world.stop[0] != 0:
            break
    svrg.n_batch[0] = end - first
    mean_reference(svrg, world.samples, end - first, d, A)
    follow(point, svrg.G_tilde, svrg.H_tilde, d)
    return cursor


@rule
def start_reference(svrg, point, d):
    """θ̃, ω̃ ← (θ, ω); G̃, H̃ ← 0; no next state has a slot."""
    for i in range(d):
        svrg.theta_tilde[i] = entry_of(point.theta, i)
        svrg.omega_tilde[i] = entry_of(point.omega, i)
        svrg.G_tilde[i] = svrg.G_tilde.dtype.type(0)
        svrg.H_tilde[i] = svrg.H_tilde.dtype.type(0)
    for k in range(svrg.n_visited[0]):
        svrg.slot[svrg.visited[k]] = EMPTY
    svrg.n_visited[0] = 0


@rule
def next_state(samples, x, A):
    """Which of the problem's states sample x leads to."""
    return (samples.next_row[x] - np.uint32(samples.first_row)) // np.uint32(A)


@rule
def subtract_reference(svrg, samples, x, d, A):
    """Subtract the coefficients of G_x, H_x(θ̃, ω̃) from ``c``."""
    k = svrg.slot[next_state(samples, x, A)]
    delta, phi_omega = td_terms(samples, x, svrg.V[k], svrg.theta_tilde, svrg.omega_tilde, d)
    svrg.c[0] += delta
    svrg.c[1] -= phi_omega - delta
    for a in range(A):
        svrg.c[2 + a] -= samples.discount[x] * phi_omega * svrg.w_tilde[k * A + a]


@rule
def add_reference(svrg, samples, x, d, A):
    """Add G_x, H_x(θ̃, ω̃) to the sums of the batch: the part on φ(s,a) at once, γ (ω̃ᵀφ) for each next state."""
    s_next = next_state(samples, x, A)
    k = svrg.slot[s_next]
    if k == EMPTY:
        k = np.uint32(svrg.n_visited[0])
        svrg.n_visited[0] += 1
        svrg.slot[s_next] = k
        svrg.visited[k] = s_next
        svrg.V[k] = next_value(samples, x, svrg.theta_tilde, svrg.q, svrg.w, d, A)
        svrg.correction[k] = svrg.V.dtype.type(0)
        for a in range(A):
            svrg.w_tilde[k * A + a] = svrg.w[a]
    delta, phi_omega = td_terms(samples, x, svrg.V[k], svrg.theta_tilde, svrg.omega_tilde, d)
    add(samples.features, samples.row[x], -delta, svrg.G_tilde, d)
    add(samples.features, samples.row[x], phi_omega - delta, svrg.H_tilde, d)
    svrg.correction[k] += samples.discount[x] * phi_omega


@rule
def mean_reference(svrg, samples, n, d, A):
    """G̃, H̃ ← the means over n samples: Σ_x γ (ω̃ᵀφ) φ̂_{s'} is one φ̂ for each next state."""
    for k in range(svrg.n_visited[0]):
        row = samples.first_row + svrg.visited[k] * A
        for a in range(A):
            add(samples.features, row + a, svrg.correction[k] * svrg.w_tilde[k * A + a], svrg.G_tilde, d)
    for i in range(d):
        svrg.G_tilde[i] /= svrg.G_tilde.dtype.type(n)
        svrg.H_tilde[i] /= svrg.H_tilde.dtype.type(n)
