"""Learning from logged rows once more, in plain NumPy: a finite MDP, its log, and the updates along its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gqlab as gq
from gqlab.samples.random import BATCH_INDEX, below, stream_key, word
from helpers.agent_loops import clipped_sum
from helpers.plain_loops import projected

#: As in the tests of agents, so that they share compiled code.
S, A, GAMMA = 6, 3, 0.9


def encoder_of(kind: str) -> Any:
    """One that gives sparse features of a state, or dense ones."""
    made = gq.OneHot(S) if kind == "sparse" else gq.Fourier(3, low=[0], high=[S - 1])
    return made.fit(np.arange(S, dtype=float)[:, None])


def problem_of(encoder: Any, target: Any = None) -> gq.Problem:
    """A Garnet with a terminal state, with the features that the encoder gives its states."""
    mdp = gq.garnet(S, A, branching=3, discount=GAMMA, seed=3)
    ends = np.arange(S) == 0
    mdp = gq.FiniteMDP(mdp.transition, mdp.reward, GAMMA, terminal=ends, initial=np.eye(S)[1])
    x = encoder.transform(np.arange(S, dtype=float)[:, None])
    x = x.toarray() if hasattr(x, "toarray") else x
    phi = np.einsum("sk,ab->sabk", x, np.eye(A)).reshape(S, A, -1)
    return gq.Problem(mdp, phi, target=gq.Greedy() if target is None else target)


def log_of(problem: gq.Problem, n: int, seed: int = 5, **columns: Any) -> tuple[list[tuple[int, int, int]], Any]:
    """The rows (s, a, s') of a trajectory, and the same as logged data."""
    x = gq.trajectory(problem, n, seed=seed)
    reward, ended = problem.mdp.reward[x.s, x.a, x.s_next], problem.mdp.terminal[x.s_next]
    states = (column.astype(float)[:, None] for column in (x.s, x.s_next))
    first, after = states
    data = gq.Transitions.from_arrays(first, x.a, reward, after, terminated=ended, n_actions=A, **columns)
    return list(zip(*(column.tolist() for column in x), strict=True)), data


def index_of(seed: int) -> Callable[[int, int], int]:
    """What the inner loop of update u draws from a batch of n."""
    draws = np.uint64(stream_key(np.uint64(seed), 0, BATCH_INDEX))
    return lambda u, n: int(below(np.uint64(word(draws, u)), n))


def traced(problem: gq.Problem, rows: list[Any], algorithm: Any, begins: list[bool], probability: Any = None) -> Any:
    """θ and ω of GQ(λ), Q(λ) and QRC(λ) along rows; with ``probability`` a trace is carried on by π/π_b.

    For Sarsa(λ) a row is (s, a, s', a'), and a' may be anything where s' is terminal.
    """
    phi, mdp, lam = problem.features, problem.mdp, algorithm.trace
    sarsa = isinstance(algorithm, gq.Sarsa)
    theta = np.zeros(phi.shape[-1])
    omega, z = np.zeros_like(theta), np.zeros_like(theta)
    for t, (s, a, s_next, *following) in enumerate(rows):
        q, here = phi[s_next] @ theta, phi[s] @ theta
        w = np.eye(A)[following[0]] if sarsa else problem.target.weights(q)
        V = w @ q if sarsa else problem.target.value(q)
        gamma = 0.0 if mdp.terminal[s_next] else GAMMA
        delta = mdp.reward[s, a, s_next] + gamma * V - here[a]
        if sarsa:
            share = 1.0
        elif probability is None:
            share = float(here[a] == here.max())
        else:
            share = problem.target.policy(here)[a] / probability[t]
        z = clipped_sum((0.0 if begins[t] else share) * GAMMA * lam * z, phi[s, a])
        G = -delta * z + gamma * (1 - lam) * (omega @ z) * (w @ phi[s_next])
        H = (phi[s, a] @ omega) * phi[s, a] - delta * z
        theta = projected(theta - algorithm.eta_theta * G, algorithm.radius)
        if algorithm.eta_omega > 0:
            decay = algorithm.omega_decay * omega
            omega = projected(omega - algorithm.eta_omega * (H + decay), algorithm.own_radius_omega)
    return theta, omega
