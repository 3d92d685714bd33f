"""The family of estimators once more, in plain NumPy, from the formulas alone.

Each function gives all answers θ, (n + 1, d), and the last ω, for the samples x = [(s, a, s'), …] of a run. ``radii`` are
those of θ's and ω's projections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gqlab as gq
from helpers.plain_loops import StepSizes, projected, pseudo_gradients

Samples = Sequence[tuple[int, int, int]]


def F(problem: gq.Problem, z: np.ndarray, x: tuple[int, int, int]) -> np.ndarray:
    """(G_x, H_x) at z = (θ, ω), (2, d)."""
    return np.array(pseudo_gradients(problem, z[0], z[1], *x))


def moved(z: np.ndarray, direction: np.ndarray, etas: tuple[float, float], radii: tuple[float, float]) -> np.ndarray:
    return np.array([projected(v - eta * g, R) for v, eta, g, R in zip(z, etas, direction, radii, strict=True)])


def averaged(problem, x: Samples, z, etas: StepSizes, radii):
    iterates = [z]
    for t, sample in enumerate(x):
        iterates.append(moved(iterates[-1], F(problem, iterates[-1], sample), etas(t), radii))
    means = [np.mean([z[0] for z in iterates[1 : n + 1]], axis=0) for n in range(1, len(x) + 1)]
    return np.array([z[0], *means]), iterates[-1][1]


def saga(problem, x: Samples, z, etas: StepSizes, radii, numbers: Sequence[Any] | None = None):
    """Every sample remembers the gradient that its transition, or that of its number, had when it last came."""
    last, out = {}, [z[0]]
    numbers = x if numbers is None else numbers
    for t, (sample, number) in enumerate(zip(x, numbers, strict=True)):
        f = F(problem, z, sample)
        last.setdefault(number, f)
        mean = np.mean([last[seen] for seen in numbers[: t + 1]], axis=0)
        z = moved(z, f - last[number] + mean, etas(t), radii)
        last[number] = f
        out.append(z[0])
    return np.array(out), z[1]


def streaming(problem, x: Samples, z, etas: StepSizes, radii, first: int, growth: float):
    reference, renewals = z, {round(first * growth**k) for k in range(20)}
    out = [z[0]]
    for t, sample in enumerate(x):
        n = t + 1
        mean = np.mean([F(problem, reference, seen) for seen in x[:n]], axis=0)
        if n >= first:
            z = moved(z, F(problem, z, sample) - F(problem, reference, sample) + mean, etas(t), radii)
        if n in renewals:
            reference = z
        out.append(z[0])
    return np.array(out), z[1]


def storm(problem, x: Samples, z, etas: StepSizes, radii, a: float, power: float):
    v, before, out = None, z, [z[0]]
    for t, sample in enumerate(x):
        share = min(1.0, a * (t + 1) ** -power)
        f = F(problem, z, sample)
        v = f if v is None else f + (1 - share) * (v - F(problem, before, sample))
        before, z = z, moved(z, v, etas(t), radii)
        out.append(z[0])
    return np.array(out), z[1]


def svrg(problem, x: Samples, z, etas: StepSizes, radii, recursive=False, *, M: int, growth: float, keep: str,
         index: Callable[[int, int], int]):  # fmt: skip
    """SVRG, or SARAH where ``recursive``; ``index(u, n)`` is the draw of update u from a batch of n."""
    u, k, out = 0, 0, [z[0]]
    while u + round(M * growth**k) <= len(x):
        size = round(M * growth**k)
        batch = x[: u + size] if keep == "all" else x[u : u + size]
        v = np.mean([F(problem, z, sample) for sample in batch], axis=0)
        reference = z
        for _ in range(size):
            sample = batch[index(u, len(batch))]
            direction = F(problem, z, sample) - F(problem, reference, sample) + v
            if recursive:
                reference, v = z, direction
            z = moved(z, direction, etas(u), radii)
            u += 1
            out.append(z[0])
        k += 1
    return np.array(out), z[1]


def sarah(*args, **kwargs):
    return svrg(*args, True, **kwargs)


def nested(problem, x: Samples, z, etas: StepSizes, radii, inner_steps: int, batch_size: int):
    out, (theta, omega) = [z[0]], z
    for u in range(len(x) // (inner_steps + batch_size)):
        eta_theta, eta_omega = etas(u)
        own_samples = x[u * (inner_steps + batch_size) : (u + 1) * (inner_steps + batch_size)]
        for sample in own_samples[:inner_steps]:
            omega = projected(omega - eta_omega * pseudo_gradients(problem, theta, omega, *sample)[1], radii[1])
        G = np.mean(
            [pseudo_gradients(problem, theta, omega, *sample)[0] for sample in own_samples[inner_steps:]], axis=0
        )
        theta = projected(theta - eta_theta * G, radii[0])
        out.append(theta)
    return np.array(out), omega


def least_squares(problem, x: Samples, z, radius, first: int, growth: float):
    """θ is the stationary point of the samples' own objective, searched at n = first·growth^k."""
    moments = {round(first * growth**k) for k in range(200)}
    theta, out, omega, doubled = z[0], [z[0]], z[1], 0
    for n in range(1, len(x) + 1):
        if n in moments:
            best = newton(problem, x[:n], theta, radius, 20)
            if not best["stationary"] or n >= doubled:
                other, doubled = newton(problem, x[:n], z[0], radius, 60), 2 * n
                same = best["stationary"] == other["stationary"]
                if other["J"] < best["J"] if same else other["stationary"]:
                    best = other
            theta, omega = best["theta"], best["omega"]
        out.append(theta)
    return np.array(out), omega


def empirical(problem, x: Samples, theta) -> dict[str, Any]:
    """Ĵ, its gradient and its Hessian as means over the samples; the Hessian by differences of the gradient."""

    def gradient(theta):
        q, mdp, phi = problem.features @ theta, problem.mdp, problem.features
        V, w = problem.target.value(q), problem.target.weights(q)
        C, m, A = np.zeros((len(theta),) * 2), np.zeros(len(theta)), np.zeros((len(theta),) * 2)
        for s, a, s_next in x:
            row, gamma = phi[s, a], mdp.discount[s, a, s_next]
            delta = mdp.reward[s, a, s_next] + gamma * V[s_next] - row @ theta
            C += np.outer(row, row) / len(x)
            m += delta * row / len(x)
            A += np.outer(row, row - gamma * w[s_next] @ phi[s_next]) / len(x)
        omega = np.linalg.pinv(C, rcond=1e-13, hermitian=True) @ m
        return 0.5 * m @ omega, -A.T @ omega, omega

    J, g, omega = gradient(theta)
    h = 1e-5
    H = np.array([(gradient(theta + h * e)[1] - gradient(theta - h * e)[1]) / (2 * h) for e in np.eye(len(theta))])
    return {"J": J, "gradient": g, "omega": omega, "H": 0.5 * (H + H.T), "theta": theta}


def newton(problem, x: Samples, theta, radius, most: int) -> dict[str, Any]:
    here = empirical(problem, x, theta)
    for _ in range(most):
        if np.linalg.norm(here["gradient"]) <= 1e-13:
            break
        e, U = np.linalg.eigh(here["H"])
        size = np.abs(e)
        for damping in (0.0, *(10.0**k for k in range(-8, 9))):
            tried_theta = here["theta"] - U @ ((U.T @ here["gradient"]) / (size + damping * size.max()))
            if np.linalg.norm(tried_theta) > radius:
                continue
            tried = empirical(problem, x, tried_theta)
            halved = np.linalg.norm(tried["gradient"]) <= 0.5 * np.linalg.norm(here["gradient"])
            if tried["J"] < here["J"] - 1e-17 or (damping == 0 and halved and tried["J"] <= here["J"] + 1e-17):
                here = tried
                break
        else:
            break
    return here | {"stationary": np.linalg.norm(here["gradient"]) <= 1e-10}
