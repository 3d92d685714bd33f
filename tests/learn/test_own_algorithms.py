"""Algorithms and operators of a user's own, wherever gqlab's own run; and names that mean nothing by chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import gqlab as gq
from gqlab.algorithms import ALGORITHMS
from gqlab.algorithms.places import unmet_need
from gqlab.estimators.needs import Need, needs_of
from gqlab.learn.agent.core import AGENT
from gqlab.rules.boltzmann import boltzmann, boltzmann_policy
from gqlab.rules.gradient import evaluate, scatter
from gqlab.rules.memory import COUNT, far, near
from gqlab.rules.point import descend, descend_along
from gqlab.samples.streams import draw
from helpers.agent_loops import Walk, coder, features
from helpers.family_loops import F
from helpers.log_loops import GAMMA, A, encoder_of, log_of, problem_of
from helpers.plain_loops import projected


class HeavyBallStep(NamedTuple):
    """v ← β v + F_x(z),  z ← Π_R[z − η v]."""

    beta: float
    G: Any
    H: Any
    q: Any
    w: Any
    c: Any

    @staticmethod
    def memory(n):
        kept = dict.fromkeys(("G", "H"), near(n.d, kept=True))
        return {**kept, "q": near(n.A), "w": near(n.A), "c": near(n.A + 2)}

    def step(self, world, point, cursor, u, rates, d, A):
        one = point.answer.dtype.type(1)
        x, cursor = draw(world.stream, world.run, cursor, u)
        for i in range(d):
            self.G[i] *= self.beta
            self.H[i] *= self.beta
        evaluate(world.samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        scatter(world.samples, x, self.c, one, one, self.G, self.H, d, A)
        return descend_along(point, self.G, self.H, rates, d), cursor


@dataclass(frozen=True)
class HeavyBall(gq.Algorithm):
    """Every field but the first three has a name that means something in one of gqlab's own algorithms."""

    estimator: ClassVar[type] = HeavyBallStep

    eta_theta: float = 0.05
    eta_omega: float = 0.05
    radius: float = math.inf
    beta: float = 0.6
    trace: float = 0.7
    batch_size: int = 3
    radius_omega: float | None = 0.01


@dataclass(frozen=True)
class PlainSubclass(gq.GreedyGQ):
    """Greedy-GQ under another name."""


@dataclass(frozen=True)
class HeavyGreedyGQ(gq.GreedyGQ):
    """A subclass of gqlab's own with an estimator of its own."""

    estimator: ClassVar[type] = HeavyBallStep
    beta: float = 0.6


def heavy_ball(problem, rows, algorithm, z):
    v = np.zeros_like(z)
    for row in rows:
        v = algorithm.beta * v + F(problem, z, row)
        z = z - np.array([[algorithm.eta_theta], [algorithm.eta_omega]]) * v
        z = np.array([projected(z[0], algorithm.radius), projected(z[1], algorithm.radius)])
    return z


def test_a_field_called_beta_is_no_decay_of_omega(garnet_problem):
    algorithm = HeavyBall()
    result = gq.run(garnet_problem, algorithm, n_samples=300, n_runs=2)
    for k in range(2):
        rows = list(zip(*gq.trajectory(garnet_problem, 300, run=k), strict=True))
        theta, omega = heavy_ball(garnet_problem, rows, algorithm, np.zeros((2, 4)))
        np.testing.assert_allclose(result.theta[k, -1], theta, rtol=0, atol=1e-13)
        np.testing.assert_allclose(result.omega[k, -1], omega, rtol=0, atol=1e-13)
    assert np.abs(result.omega[:, -1]).max() > 0.01  # no projection on radius_omega either
    asked = algorithm.omega_decay, algorithm.trace_decay, algorithm.epoch_size, algorithm.samples_per_update
    assert (*asked, algorithm.own_radius_omega) == (0.0, 0.0, 0, 1, math.inf)


@pytest.mark.parametrize("name", ["samples_per_update", "omega_decay", "epoch_size", "ways", "samples", "check"])
def test_a_field_that_would_hide_what_gqlab_asks_for_is_refused(name):
    with pytest.raises(ValueError, match=rf"^algorithm Hiding: a field cannot be called {name}, which gqlab asks"):
        type("Hiding", (gq.Algorithm,), {"__annotations__": {name: int}, name: 3, "estimator": HeavyBallStep})
    assert "Hiding" not in ALGORITHMS


@pytest.mark.parametrize("kind", ["sparse", pytest.param("dense", marks=pytest.mark.long)])
@pytest.mark.parametrize("own", [HeavyBall, HeavyGreedyGQ])
def test_fit_takes_an_algorithm_of_ones_own(own, kind):
    encoder = encoder_of(kind)
    problem = problem_of(encoder)
    rows, data = log_of(problem, 60)
    algorithm = own(0.1, 0.05, 2.0)
    model = gq.fit(data, encoder, algorithm, discount=GAMMA, n_passes=2, rows="in order")
    z = heavy_ball(problem, 2 * rows, algorithm, np.zeros((2, A * encoder.n_features_out_)))
    np.testing.assert_allclose(model.theta.ravel(), z[0], rtol=0, atol=1e-12)


def test_a_plain_subclass_is_what_it_is_made_from():
    encoder = encoder_of("sparse")
    _, data = log_of(problem_of(encoder), 60)
    how = {"discount": GAMMA, "n_passes": 2}
    own, known = (gq.fit(data, encoder, kind(0.2, 0.1), **how) for kind in (PlainSubclass, gq.GreedyGQ))
    np.testing.assert_array_equal(own.theta, known.theta)
    kinds = PlainSubclass, gq.GreedyGQ
    agents = [gq.Agent(Walk(limit=12), coder(), kind(0.2, 0.1, trace=0.5)).learn(80) for kind in kinds]
    np.testing.assert_array_equal(agents[0].theta, agents[1].theta)


def test_an_estimator_of_ones_own_has_no_traces():
    with pytest.raises(ValueError, match=r"^trace is 0.5, but HeavyBallStep.*, its estimator, has no traces$"):
        HeavyGreedyGQ(trace=0.5)


# --- Beside an environment -------------------------------------------------------------------------------------------


def moves(agent, log, algorithm, target):
    """(F_x, z ↦ Π[z − η v]) along the steps of an environment."""
    encoder = agent.encoder

    def gradient(step, z):
        phi, after = features(encoder, step.observation)[step.action], features(encoder, step.next_observation)
        q = after @ z[0]
        V, w = target.value(q), target.weights(q)
        gamma = 0.0 if step.terminated else agent.discount
        delta = step.reward + gamma * V - phi @ z[0]
        return np.array([-delta * phi + gamma * (z[1] @ phi) * (w @ after), (phi @ z[1] - delta) * phi])

    return [lambda z, step=step: gradient(step, z) for step in log]


def moved(z, v, algorithm, t):
    etas = (eta(t) if isinstance(eta, gq.Decay) else eta for eta in (algorithm.eta_theta, algorithm.eta_omega))
    radii = algorithm.radius, algorithm.own_radius_omega
    return np.array([projected(a - eta * b, R) for a, b, eta, R in zip(z, v, etas, radii, strict=True)])


STEPS = 120


def learned(algorithm, target=None):
    """An agent that has made some steps, and what its environment saw of them."""
    env = Walk(limit=12)
    agent = gq.Agent(env, coder(), algorithm, target=target, discount=0.95, epsilon=0.3, seed=4).learn(STEPS)
    return agent, moves(agent, env.log, algorithm, gq.Greedy() if target is None else target)


def test_an_agent_runs_an_algorithm_of_ones_own():
    algorithm = HeavyBall(0.1, 0.05, radius=3.0)
    agent, steps = learned(algorithm)
    z, v = np.zeros((2, agent.theta.size)), 0.0
    for t, gradient in enumerate(steps):
        v = algorithm.beta * v + gradient(z)
        z = moved(z, v, algorithm, t)
    np.testing.assert_allclose(agent.theta.ravel(), z[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(agent.omega.ravel(), z[1], rtol=0, atol=1e-12)


@pytest.mark.long
def test_an_agent_averages():
    """It acts by its last iterate, and what is learned is the mean of them."""
    algorithm = gq.AveragedGreedyGQ(gq.Decay(0.3), gq.Decay(0.1), radius=2.0)
    agent, steps = learned(algorithm)
    z, total = np.zeros((2, agent.theta.size)), 0.0
    for t, gradient in enumerate(steps):
        z = moved(z, gradient(z), algorithm, t)
        total = total + z[0]
    np.testing.assert_allclose(agent.theta.ravel(), total / STEPS, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(agent.model.theta, agent.theta)


def test_an_agent_runs_storm():
    algorithm = gq.STORMGreedyGQ(gq.Decay(0.3), gq.Decay(0.1), a=0.8, power=0.7, radius=2.0)
    agent, steps = learned(algorithm)
    z = before = np.zeros((2, agent.theta.size))
    v = 0.0
    for t, gradient in enumerate(steps):
        share = 1 - min(1.0, 0.8 * (t + 1) ** -0.7)
        v = gradient(z) + (share * (v - gradient(before)) if t else 0.0)
        before, z = z, moved(z, v, algorithm, t)
    np.testing.assert_allclose(agent.theta.ravel(), z[0], rtol=0, atol=1e-12)


@pytest.mark.long
def test_an_agent_of_such_an_algorithm_goes_on_from_its_file(tmp_path):
    algorithm = gq.STORMGreedyGQ(gq.Decay(0.3), gq.Decay(0.1), radius=2.0)
    whole = gq.Agent(Walk(limit=12), coder(), algorithm, seed=4).learn(100)
    half = gq.Agent(Walk(limit=12), coder(), algorithm, seed=4).learn(50)
    half.save(tmp_path / "agent.npz")
    again = gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12)).learn(50)
    np.testing.assert_array_equal(again.theta, whole.theta)


class CountingStep(NamedTuple):
    """Greedy-GQ whose steps shrink with the number of updates, which is an array of whole numbers."""

    seen: Any  # (1,)
    q: Any
    w: Any
    c: Any

    @staticmethod
    def memory(n):
        return {
            "seen": near(1, COUNT, kept=True, within=(0, 2**48)),
            "q": near(n.A),
            "w": near(n.A),
            "c": near(n.A + 2),
        }

    def step(self, world, point, cursor, u, rates, d, A):
        x, cursor = draw(world.stream, world.run, cursor, u)
        evaluate(world.samples, x, point.theta, point.omega, self.q, self.w, self.c, d, A)
        self.seen[0] += 1
        for j in range(A + 2):
            self.c[j] /= math.sqrt(self.seen[0])
        return descend(point, world.samples, x, self.c, rates, d, A), cursor


@dataclass(frozen=True)
class Counting(gq.Algorithm):
    estimator: ClassVar[type] = CountingStep

    eta_theta: float = 0.3
    eta_omega: float = 0.1
    radius: float = math.inf


def test_an_agent_with_whole_numbers_of_ones_own_resumes_from_its_file(tmp_path):
    """gqlab knows no range for them: whoever wrote the estimator does."""
    whole = gq.Agent(Walk(limit=12), coder(), Counting(), seed=4).learn(100)
    half = gq.Agent(Walk(limit=12), coder(), Counting(), seed=4).learn(50)
    half.save(tmp_path / "agent.npz")
    again = gq.Agent.load(tmp_path / "agent.npz", env=Walk(limit=12))
    assert again._live.estimator.seen.tolist() == [50]
    np.testing.assert_array_equal(again.learn(50).theta, whole.theta)
    agent, steps = learned(Counting())
    z = np.zeros((2, agent.theta.size))
    for t, gradient in enumerate(steps):
        z = moved(z, gradient(z) / math.sqrt(t + 1), agent.algorithm, t)
    np.testing.assert_allclose(agent.theta.ravel(), z[0], rtol=0, atol=1e-12)


# --- What an estimator that says nothing needs ------------------------------------------------------------------------


class Remembering(HeavyBallStep):
    """Memory for every sample."""

    @staticmethod
    def memory(n):
        return {"T": far(n.samples), "M": far(int(n.most["batch_size"]))}


class Growing(HeavyBallStep):
    @staticmethod
    def memory(n):
        return {"batch": far(n.updates), "of_state": far(n.states)}

    def next_begin(self, u):
        return u


def test_needs_follow_from_the_memory_where_nothing_is_declared():
    assert needs_of(HeavyBallStep) == frozenset()
    assert needs_of(Remembering) == {Need.NUMBERED}
    assert needs_of(Growing) == {Need.GROWING, Need.STATES, Need.BATCH, Need.REPLAY}
    assert unmet_need(AGENT, HeavyBall()) is None


class EpsilonSoftmaxPart(NamedTuple):
    sigma: float
    epsilon: float

    def improve(self, row, q, w, A):
        top, over_Z, mean = boltzmann(q, self.sigma, w, A)
        rest, each = 1.0 - self.epsilon, self.epsilon / A
        V = rest * (top + mean)
        for a in range(A):
            p = w[a] * over_Z
            w[a] = rest * (p + p * (self.sigma * (q[a] - top - mean))) + each
            V += each * q[a]
        return V

    def act(self, row, q, p, A):
        boltzmann_policy(q, self.sigma, p, A)
        for a in range(A):
            p[a] = (1.0 - self.epsilon) * p[a] + self.epsilon / A


@dataclass(frozen=True)
class EpsilonSoftmax(gq.Operator):
    compiled: ClassVar[type] = EpsilonSoftmaxPart
    sigma: float = 1.0
    epsilon: float = 0.1

    def policy(self, q):
        return (1 - self.epsilon) * gq.Softmax(self.sigma).policy(q) + self.epsilon / q.shape[-1]

    def weights(self, q):
        return (1 - self.epsilon) * gq.Softmax(self.sigma).weights(q) + self.epsilon / q.shape[-1]


@pytest.mark.long
def test_an_operator_of_ones_own_runs_in_fit_and_agents():
    target = EpsilonSoftmax(2.0, 0.1)
    encoder = encoder_of("sparse")
    problem = problem_of(encoder, target)
    rows, data = log_of(problem, 60)
    model = gq.fit(data, encoder, gq.GreedyGQ(0.2, 0.1), target, discount=GAMMA, n_passes=1, rows="in order")
    z = np.zeros((2, model.theta.size))
    for row in rows:
        z = z - np.array([[0.2], [0.1]]) * F(problem, z, row)
    np.testing.assert_allclose(model.theta.ravel(), z[0], rtol=0, atol=1e-12)
    algorithm = gq.GreedyGQ(0.2, 0.1)
    agent, steps = learned(algorithm, target)
    z = np.zeros((2, agent.theta.size))
    for t, gradient in enumerate(steps):
        z = moved(z, gradient(z), algorithm, t)
    np.testing.assert_allclose(agent.theta.ravel(), z[0], rtol=0, atol=1e-12)
