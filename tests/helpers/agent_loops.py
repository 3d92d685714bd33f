"""What agents are tested with: a small environment that notes what happens, and their updates in plain NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np

import gqlab as gq
from helpers.plain_loops import projected

A = 3


class Step(NamedTuple):
    """A step as the environment saw it."""

    env: int
    observation: np.ndarray
    action: int
    reward: float
    next_observation: np.ndarray
    terminated: bool
    truncated: bool


class Walk(gymnasium.Env[Any, Any]):
    """A walk in a square with random rewards; it ends at the right side, and is cut off after ``limit`` steps."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(A)

    def __init__(self, log: list[Step] | None = None, number: int = 0, limit: int = 40) -> None:
        self.log, self.number, self.limit = [] if log is None else log, number, limit

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-0.5, 0.5, 2)
        self.steps = 0
        return self.place.copy(), {}

    def step(self, action: int) -> Any:
        before = self.place
        push = np.array([0.1 * (action - 0.8), 0.0]) + self.np_random.normal(0, 0.15, 2)
        self.place = np.clip(before + push, -1, 1)
        self.steps += 1
        reward = float(self.np_random.normal() + self.place[1])
        terminated = bool(self.place[0] > 0.9)
        truncated = self.steps == self.limit and not terminated
        self.log.append(Step(self.number, before, int(action), reward, self.place, terminated, truncated))
        return self.place.copy(), reward, terminated, truncated, {}


def coder() -> gq.TileCoder:
    return gq.TileCoder(n_tilings=3, bins=3)


def features(encoder: Any, observation: np.ndarray) -> np.ndarray:
    """φ of every action, (A, d)."""
    x = encoder.transform(observation[None])
    x = x.toarray()[0] if hasattr(x, "toarray") else x[0]
    return np.kron(np.eye(A), x)


def clipped_sum(z: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """z + φ, where no entry is larger than the larger of the two."""
    most = np.maximum(np.abs(z), np.abs(phi))
    return np.clip(z + phi, -most, most)


def next_actions(log: list[Step], last: Any) -> list[int | None]:
    """The action that follows each step; None after the end of an episode."""
    out: list[int | None] = []
    following = dict(enumerate(np.asarray(last).tolist()))
    for step in reversed(log):
        out.append(None if step.terminated or step.truncated else following[step.env])
        following[step.env] = step.action
    return out[::-1]


def updates(agent: gq.Agent, log: list[Step], algorithm: Any, target: Any) -> tuple[np.ndarray, np.ndarray]:
    """θ and ω after the steps of a log, from the formulas; Sarsa, Q(λ), GQ(λ) and QRC(λ)."""
    encoder, gamma, lam = agent.encoder, agent.discount, algorithm.trace
    sarsa = isinstance(algorithm, gq.Sarsa)
    theta = np.zeros(agent.theta.size)
    omega, z = np.zeros_like(theta), {}
    for step, following in zip(log, next_actions(log, agent._live.action), strict=True):
        phi = features(encoder, step.observation)[step.action]
        phi_next = features(encoder, step.next_observation)
        q = phi_next @ theta
        greedy = following is None or q[following] == q.max()
        if sarsa:
            if following is None and step.truncated:
                assert np.sum(q == q.max()) == 1  # else the reference could not know the action
            w = np.eye(A)[q.argmax() if following is None else following]
            V = w @ q
        else:
            V, w = target.value(q), target.weights(q)
        discount = 0.0 if step.terminated else gamma
        delta = step.reward + discount * V - phi @ theta
        trace = z[step.env] = clipped_sum(gamma * lam * z.get(step.env, np.zeros_like(theta)), phi)
        G = -delta * trace + discount * (1 - lam) * (omega @ trace) * (w @ phi_next)
        H = (phi @ omega) * phi - delta * trace
        theta = projected(theta - algorithm.eta_theta * G, algorithm.radius)
        if algorithm.eta_omega > 0:
            omega = projected(omega - algorithm.eta_omega * (H + algorithm.omega_decay * omega), algorithm.radius)
        cut = isinstance(target, gq.Greedy) and not sarsa and not greedy
        if following is None or cut:
            z.pop(step.env)
    return theta, omega


class Rooms(Walk):
    """The walk, told as a dictionary."""

    observation_space = gymnasium.spaces.Dict(
        place=gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64), side=gymnasium.spaces.Discrete(2)
    )

    def reset(self, **kwargs: Any) -> Any:
        place, info = super().reset(**kwargs)
        return {"place": place, "side": int(place[0] > 0)}, info

    def step(self, action: int) -> Any:
        place, *rest = super().step(action)
        return {"place": place, "side": int(place[0] > 0)}, *rest
