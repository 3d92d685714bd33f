"""The algorithms once more, in plain NumPy loops: what the compiled ones are compared with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gqlab as gq

#: t ↦ (η_θ, η_ω)
StepSizes = Callable[[int], tuple[float, float]]


def pseudo_gradients(problem: gq.Problem, theta, omega, s: int, a: int, s_next: int) -> tuple[np.ndarray, np.ndarray]:
    """(G_x, H_x) from the definition."""
    mdp, phi = problem.mdp, problem.features
    q = phi @ theta
    V, w = problem.target.value(q)[s_next], problem.target.weights(q)[s_next]
    gamma, row = mdp.discount[s, a, s_next], phi[s, a]
    delta = mdp.reward[s, a, s_next] + gamma * V - row @ theta
    G = -delta * row + gamma * (omega @ row) * (w @ phi[s_next])
    H = (row @ omega - delta) * row
    return G, H


def projected(v: np.ndarray, radius: float) -> np.ndarray:
    norm = np.linalg.norm(v)
    return v * (radius / norm) if norm > radius else v


def greedy_gq(problem, x: gq.Trajectory, theta, omega, etas: StepSizes, radii=(np.inf, np.inf), beta=0.0) -> np.ndarray:
    """All iterates of Greedy-GQ, (n + 1, 2, d); with β > 0 of QRC. ``radii`` are θ's and ω's."""
    out = [(theta, omega)]
    for t, sample in enumerate(zip(*x, strict=True)):
        G, H = pseudo_gradients(problem, theta, omega, *sample)
        eta_theta, eta_omega = etas(t)
        theta = projected(theta - eta_theta * G, radii[0])
        omega = projected(omega - eta_omega * (H + beta * omega), radii[1])
        out.append((theta, omega))
    return np.array(out)


def vr_greedy_gq(
    problem, x: gq.Trajectory, indices, theta, omega, etas: StepSizes, radii=(np.inf, np.inf)
) -> np.ndarray:
    """All iterates of VR-Greedy-GQ on the batches of x and the indices (n_epochs, M)."""
    n_epochs, M = indices.shape
    out = [(theta, omega)]
    samples = list(zip(*x, strict=True))
    for m in range(n_epochs):
        batch = samples[m * M : (m + 1) * M]
        reference = np.array([pseudo_gradients(problem, theta, omega, *sample) for sample in batch])
        mean = reference.mean(axis=0)
        for t, j in enumerate(indices[m]):
            G, H = np.array(pseudo_gradients(problem, theta, omega, *batch[j])) - reference[j] + mean
            eta_theta, eta_omega = etas(m * M + t)
            theta, omega = projected(theta - eta_theta * G, radii[0]), projected(omega - eta_omega * H, radii[1])
            out.append((theta, omega))
    return np.array(out)
