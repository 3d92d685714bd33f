"""The solve for a policy's value, written out densely: one matrix of all rows, nothing shared with gqlab."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def pairs(x, n_actions):
    """φ(s, a) of all actions, (n, A, d), of features (n, K)."""
    n, K = x.shape
    out = np.zeros((n, n_actions, n_actions * K))
    for a in range(n_actions):
        out[:, a, a * K : (a + 1) * K] = x
    return out


def plain_solve(chunk, x, x_after, pi, pi_after, discount, c, extremes):
    """Everything that is said of one policy, from features (n, K) and probabilities (n, A) of the rows' two states."""
    n, A = pi.shape
    r, live = chunk.rewards, 1.0 - chunk.terminated
    phi = pairs(x, A)[np.arange(n), chunk.actions]
    after = np.einsum("na,nad->nd", pi_after, pairs(x_after, A)) * live[:, None]
    first = np.flatnonzero(np.append(True, np.diff(chunk.episode) != 0))
    last = np.append(first[1:], n) - 1
    m, d = len(first), phi.shape[1]
    begin = np.einsum("na,nad->nd", pi[first], pairs(x[first], A))
    v0 = r.sum() / (1 - discount * live).sum()
    C = phi.T @ phi
    big_c = np.tile(c, A)
    spread = np.abs(r - r.mean()).max()

    def solved(X, b, lam, x0):
        M = phi.T @ X + lam * np.eye(X.shape[1])
        return np.linalg.solve(M, b + lam * v0 * big_c[: len(b)]), np.linalg.solve(M.T, x0)

    lam = 1.0
    for _ in range(3):
        theta, _ = solved(phi - discount * after, phi.T @ r, lam, begin.mean(axis=0))
        delta = r - (phi - discount * after) @ theta
        degrees = np.trace(np.linalg.solve(C + lam * np.eye(d), C))
        sigma2 = (delta**2).sum() / (n - degrees)
        tau2 = max(((theta - v0 * big_c) ** 2).mean(), spread**2)
        lam = float(np.clip(sigma2 / tau2, 1e-6, 1))
    inverse = np.linalg.inv(C + lam * np.eye(d))
    h = np.einsum("nd,de,ne->n", phi, inverse, phi)
    degrees = h.sum()
    G = behaviour(chunk, x, x_after, discount, c, v0, spread, first, last)

    def answer(after, begin, lost_after, lost_first, value):
        X = phi - discount * after
        target = r + discount * lost_after * value
        theta, u = solved(X, phi.T @ target, lam, begin.mean(axis=0))
        tau2 = max(((theta - v0 * big_c) ** 2).mean(), spread**2)
        delta, w = target - X @ theta, phi @ u
        sigma2 = (delta**2).sum() / (n - degrees)
        V0 = begin @ theta + lost_first * value
        seen = np.diag(C) > 0
        prior = lam**2 * tau2 * ((u[~seen] @ big_c[~seen]) ** 2 + (u[seen] ** 2).sum())
        through_v0 = lam * u @ big_c * (r - v0 * (1 - discount * live)) / (1 - discount * live).sum()
        moved = w * delta + through_v0
        M = phi.T @ X + lam * np.eye(d)
        refined = theta + np.linalg.solve(M, phi.T @ delta)
        u2 = np.linalg.solve(M.T, u)
        w2, v = phi @ u2, w + lam * (phi @ u2)
        moved_gain = w * (target - X @ refined) + lam * w2 * delta
        moved_gain += lam**2 * u2 @ big_c * (r - v0 * (1 - discount * live)) / (1 - discount * live).sum()
        shrunk_by = lam * u @ (theta - v0 * big_c)
        variance = V0.var(ddof=1) / m + (moved**2).sum() + (w**2 * h).sum() * sigma2 + prior + shrunk_by**2
        sums = np.array([moved_gain[i : j + 1].sum() for i, j in zip(first, last, strict=True)])
        psi = begin @ refined + lost_first * value + m * (sums - sums.mean())
        gain = psi - G
        gain_variance = gain.var(ddof=1) / m + (v**2 * h).sum() * sigma2 + prior
        return SimpleNamespace(
            value=V0.mean(), se=np.sqrt(variance), gain=gain.mean(), gain_se=np.sqrt(gain_variance), lam=lam,
            unsupported=lam * u @ big_c, ess=w.sum() ** 2 / (w**2).sum(), theta=theta, now=G.mean(), psi=psi, moved=moved, moved_gain=moved_gain, phi=phi, ahead=X, target=target, begin=begin,
            shares=1 - discount * live, c=big_c, u=u, shrunk_by=shrunk_by,
        )  # fmt: skip

    def kept(x, p):
        every = pairs(x, A)
        good = np.einsum("nad,de,nae->na", every, inverse, every) <= 1 / 3 + 1e-9
        return np.einsum("na,nad->nd", p * good, every), (p * ~good).sum(axis=1)

    plain = answer(after, begin, np.zeros(n), np.zeros(m), 0.0)
    inner, lost = kept(x_after, pi_after)
    outer, lost_first = kept(x[first], pi[first])
    comes = plain.u @ phi.T @ (discount * lost * live) + lost_first.mean()  # Σ γ^t P(a pair hardly seen at t)
    plain.moves = abs(comes) * (extremes[1] - extremes[0]) / plain.se
    plain.bracket = [answer(inner * live[:, None], outer, lost * live, lost_first, value) for value in extremes]
    return plain


def behaviour(chunk, x, x_after, discount, c, v0, spread, first, last):
    """G of every episode: its return, and where it was cut off the on-policy value behind."""
    n, live, r = len(x), 1.0 - chunk.terminated, chunk.rewards
    X = x - discount * live[:, None] * x_after
    C, lam = x.T @ x, 1.0
    for k in range(4):
        theta = np.linalg.solve(x.T @ X + lam * np.eye(len(c)), x.T @ r + lam * v0 * c)
        delta = r - X @ theta
        degrees = np.trace(np.linalg.solve(C + lam * np.eye(len(c)), C))
        if k < 3:
            tau2 = max(((theta - v0 * c) ** 2).mean(), spread**2)
            lam = float(np.clip((delta**2).sum() / (n - degrees) / tau2, 1e-6, 1))
    m, G, tails = len(first), [], []
    for i, j in zip(first, last, strict=True):
        times = np.arange(j + 1 - i)
        tail = 0 * c if chunk.terminated[j] else discount ** (j + 1 - i) * x_after[j]
        G.append((discount**times * r[i : j + 1]).sum() + tail @ theta)
        tails.append(tail)
    w = x @ np.linalg.solve((x.T @ X + lam * np.eye(len(c))).T, np.mean(tails, axis=0))
    return np.array(G) + m * np.array([(w * delta)[i : j + 1].sum() for i, j in zip(first, last, strict=True)])
