"""An agent that replays once more, in plain NumPy: dense vectors, windows made of the log, sums taken anew."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gqlab as gq
from gqlab.learn.agent.core import arrays_of
from helpers.agent_loops import Step, features, next_actions
from helpers.plain_loops import projected
from helpers.random_words import key, word


def references(agent: gq.Agent) -> dict[str, int]:
    """How often each of an agent's arrays is held."""
    return {name: sys.getrefcount(array) for name, array in arrays_of(agent._live)}


#: The stream of random numbers that samples are drawn with.
REPLAY = 33


@dataclass
class Window:
    """A sample: φ(s,a), the rows φ(s',·), Σ γʲr, and γᵐ, or 0."""

    phi: np.ndarray
    phi_next: np.ndarray
    reward: float
    discount: float
    remembered: Any = None  # SAGA's T, as two dense vectors


@dataclass
class Replayed:
    """What an agent learned from the steps of a log."""

    agent: gq.Agent
    theta: np.ndarray
    omega: np.ndarray
    average: np.ndarray
    offset: float = 0.0
    windows: list[Window] = field(default_factory=list)  # those that are kept
    total: Any = 0.0  # SAGA's sum of all T
    waiting: dict[int, list[Step]] = field(default_factory=dict)
    n_updates: int = 0
    epsilon: float = 0.0
    reference: Any = None  # SVRG's z̃
    since: int = 0

    @property
    def target(self) -> gq.Operator:
        return gq.EpsilonGreedy(self.epsilon) if isinstance(self.agent.algorithm, gq.Sarsa) else self.agent.target

    def F(self, x: Window, theta: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """(G_x, H_x), (2, d)."""
        q = x.phi_next @ theta
        V, w = self.target.value(q), self.target.weights(q)
        delta = x.reward + x.discount * V - x.phi @ theta
        G = -delta * x.phi + x.discount * (omega @ x.phi) * (w @ x.phi_next)
        return np.stack([G, (x.phi @ omega - delta) * x.phi])

    def add_step(self, step: Step, following: int | None) -> None:
        """One more step, the windows that end with it, and the updates after it."""
        waiting = self.waiting.setdefault(step.env, [])
        waiting.append(step)
        over = step.terminated or step.truncated
        q = features(self.agent.encoder, step.next_observation) @ self.average
        below = q.max() - q
        assert not ((below > 1e-12) & (below < 1e-9)).any()  # whether an action is a best one is clear
        explored = not over and following is not None and q[following] < q.max() - 1e-10
        replay = self.agent.replay
        while waiting and (over or len(waiting) == replay.n_step or (replay.cut and explored)):
            self.enter(waiting)
            waiting.pop(0)

    def enter(self, steps: list[Step]) -> None:
        """A window of these steps."""
        gamma, last = self.agent.discount, steps[-1]
        discount = 0.0 if last.terminated else gamma ** len(steps)
        total = sum(gamma**k * step.reward for k, step in enumerate(steps)) + (discount - 1) * self.offset
        encoder, first = self.agent.encoder, steps[0]
        phi = features(encoder, first.observation)[first.action]
        x = Window(phi, features(encoder, last.next_observation), total, discount)
        x.remembered = self.F(x, self.theta, self.omega)
        size = self.agent.replay.size
        self.windows.append(x)
        self.total = self.total + x.remembered
        if size and len(self.windows) > size:
            self.total = self.total - self.windows.pop(0).remembered

    def drawn(self) -> Window:
        w, n = word(key(self.agent.seed, 0, REPLAY), self.n_updates), len(self.windows)
        if self.agent.replay.sampling == "recent":
            u = 1.0 - ((w >> 11) + 0.5) / 2**53
            return self.windows[n - 1 - min(int(n * (u * u)), n - 1)]
        return self.windows[w * n >> 64]

    def direction(self, x: Window) -> np.ndarray:
        """What an update subtracts, but for the step sizes, (2, d)."""
        algorithm, f = self.agent.algorithm, self.F(x, self.theta, self.omega)
        if isinstance(algorithm, gq.SAGAGreedyGQ | gq.SAGAQLearning):
            mean, old = self.total / len(self.windows), x.remembered
            x.remembered, self.total = f, self.total + (f - old)
            return f - old + mean
        if isinstance(algorithm, gq.VRGreedyGQ):
            if self.reference is None or self.since >= max(algorithm.batch_size, len(self.windows)):
                self.reference, self.since = (self.theta, self.omega), 0
            self.since += 1
            mean = np.mean([self.F(each, *self.reference) for each in self.windows], axis=0)
            return f - self.F(x, *self.reference) + mean
        return f

    def update(self) -> None:
        algorithm, x = self.agent.algorithm, self.drawn()
        G, H = self.direction(x)
        etas = [
            eta(self.n_updates) if isinstance(eta, gq.Decay) else eta
            for eta in (algorithm.eta_theta, algorithm.eta_omega)
        ]
        beta = getattr(algorithm, "beta", 0.0)
        self.theta = projected(self.theta - etas[0] * G, algorithm.radius)
        if etas[1] > 0:
            self.omega = projected(self.omega - etas[1] * (H + beta * self.omega), algorithm.radius)
        rho = self.agent.replay.average
        self.average = self.theta if rho == 0 else (1 - rho) * self.average + rho * self.theta
        self.n_updates += 1


def replayed(agent: gq.Agent, log: list[Step]) -> Replayed:
    """θ, ω and θ̄ after the steps of a log."""
    encoder, A = agent.encoder, agent.n_actions
    theta, offset = np.zeros(A * encoder.n_features_out_), agent.initial_value
    if encoder.kind == "binary":
        theta, offset = theta + agent.initial_value / (encoder.n_active_ * encoder.value_), 0.0
    out = Replayed(agent, theta, np.zeros_like(theta), theta.copy(), offset)
    for t, (step, following) in enumerate(zip(log, next_actions(log, agent._live.action), strict=True)):
        out.epsilon = agent.epsilon(t)
        out.add_step(step, following)
        due = int(np.floor((t + 1) * agent.replay.updates)) - int(np.floor(t * agent.replay.updates))
        for _ in range(due if out.windows else 0):
            out.update()
    return out
