"""An adversary for the constants and inequalities of the proofs: it climbs towards the worst point it can find.

Each entry is a ratio, left side over right side, at points (θ, ω, θ̃, ω̃) of the balls, for a batch given by its
frequencies, with step sizes η_θ and η_ω: a proof stands only if no ratio exceeds 1. The search starts from random
points and climbs: the best ones are perturbed at random, with ever smaller changes, and improvements are kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gqlab.problems.problem import Problem
from gqlab.support.checks import FloatArray
from gqlab.theory.greedy import greedy_bound, poisson, solve_poisson
from gqlab.theory.plugin_ratios import PLUG_IN
from gqlab.theory.points import Points, Ratio, into_ball, square
from gqlab.theory.sharp import Sharp, next_state
from gqlab.theory.theorems import tracking_step
from gqlab.theory.uniform import Roots, pieces, uniform

#: The ratio of two step sizes that Greedy-GQ's inequalities are tried at, as a fraction of λ_C/(2L₁L₃).
GREEDY_RATIO = 0.3


def _lemma_g(p: Points) -> Ratio:
    c, e = p.c, p.errors
    right = c.L1**2 * (6 * e["track"] + 3 * e["track_ref"]) + 3 * c.L2**2 * e["moved"] + 3 * e["C1"] + 3 * e["gradient"]
    return p.mean(square(p.updates[0])), right


def _lemma_h(p: Points) -> Ratio:
    e = p.errors
    right = 5 * e["track"] + 3 * e["track_ref"] + 3 * p.c.L5**2 * e["moved"] + 2 * e["C2"]
    return p.mean(square(p.updates[1])), right


def _variance_g(p: Points) -> Ratio:
    g, e = p.updates[0], p.errors
    left = p.mean(square(g - p.mean(g)[:, None]))
    return left, 3 * (p.c.L1**2 * (e["track"] + e["track_ref"]) + p.c.L2**2 * e["moved"])


def _deviations(p: Points) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """‖ΔB‖, ‖ΔC‖ and the batch's own u_V and u_φ̂."""
    x = p.problem.exact.transitions
    C, b, K = p.problem.exact.moments
    one_hot = np.eye(p.problem.mdp.n_states)[x.s_next]
    dB = np.linalg.norm((p.batch * x.reward) @ x.phi - b, axis=1)
    dC = np.linalg.norm(np.einsum("kn,ni,nj->kij", p.batch, x.phi, x.phi) - C, axis=(1, 2))
    dK = np.einsum("kn,ni,nt->kit", p.batch * x.gamma, x.phi, one_hot) - K
    columns, together = np.linalg.norm(dK, axis=1).sum(axis=1), np.linalg.norm(dK.sum(axis=2), axis=1)
    return dB, dC, *next_state(p.problem, p.c.phi_hat, columns, together)


def _uniform_G(p: Points) -> Ratio:
    """Lemma 4 for this batch: ‖Ĝ(θ, ω*(θ)) − ∇J(θ)‖."""
    dB, dC, u_V, u_slope = _deviations(p)
    return np.sqrt(p.errors["C1"]), dB + p.c.R * (dC + u_V) + p.c.omega_star * u_slope


def _uniform_H(p: Points) -> Ratio:
    dB, dC, u_V, _ = _deviations(p)
    return np.sqrt(p.errors["C2"]), dB + p.c.parts["U"] * dC + p.c.R * u_V


def _fitted(p: Points) -> tuple[FloatArray, FloatArray]:
    """The bounds of :mod:`gqlab.theory.uniform` for this batch."""
    x = p.problem.exact.transitions
    each, together, Y = pieces(p.problem)
    norms = np.linalg.norm(np.einsum("kn,njd->kjd", p.batch, each), axis=-1)
    total = np.linalg.norm(p.batch @ together, axis=-1)
    wide = np.linalg.norm((p.batch - x.probability) @ Y, axis=-1)
    one_hot = np.eye(p.problem.mdp.n_states)[x.s_next] * x.gamma[:, None]
    dK = np.einsum("kn,ni,nt->kit", p.batch - x.probability, x.phi, one_hot)
    columns = np.linalg.norm(dK, axis=1).sum(axis=1)
    u = Roots(norms[:, 0], norms[:, 1:].sum(axis=1), total, _deviations(p)[1], columns, wide)
    G, H = uniform(p.problem, p.c.phi_hat, p.c.R, p.c.omega_star, u)
    return G, H


def _moved_theta(p: Points, project: bool) -> tuple[FloatArray, FloatArray]:
    """θ after the step for every index, (n, N, d), and the η_θ that was used."""
    eta = p.steps[:, 0] if project else p.eta_theta
    after = p.theta[:, None] - eta[:, None, None] * p.updates[0]
    return into_ball(after, p.c.R), eta  # without ``project`` this only removes rounding


def _tracking(p: Points, theorem: str, order: int) -> Ratio:
    after, eta = _moved_theta(p, theorem == "projected")
    alpha = p.steps[:, 1]
    star = p.problem.exact.omega_star(after.reshape(-1, p.problem.dim)).reshape(after.shape)
    left = p.mean(square(p.omega[:, None] - alpha[:, None, None] * p.updates[1] - star))
    t, e = tracking_step(p.measured, theorem, eta, alpha, order), p.errors
    length = p.mean(square(after - p.theta[:, None]))
    # (1 − 2λη_ω)‖Δ‖² is subtracted from both sides: with small steps it would hide everything else.
    kept = (1 - 2 * p.c.lambda_C * alpha) * e["track"]
    right = (1 - t.y) * e["track"] + t.P * e["track_ref"] + t.S * e["moved"] + t.Q * e["gradient"] + t.N0
    return left - kept, right + t.N_s * length - kept


def _descent_interior(p: Points) -> Ratio:
    after, eta = _moved_theta(p, project=False)
    exact, e, c = p.problem.exact, p.errors, p.c
    J = p.mean(exact.mspbe(after.reshape(-1, p.problem.dim)).reshape(after.shape[:2]))
    right = eta * (e["C1"] + c.L1**2 * e["track"]) + 0.5 * c.L * eta**2 * p.mean(square(p.updates[0]))
    return J - exact.mspbe(p.theta) + 0.5 * eta * e["gradient"], right


def _descent_projected(p: Points) -> Ratio:
    after, eta = _moved_theta(p, project=True)
    exact, e, c = p.problem.exact, p.errors, p.c
    J = p.mean(exact.mspbe(after.reshape(-1, p.problem.dim)).reshape(after.shape[:2]))
    length = p.mean(square(after - p.theta[:, None]))
    mapping = square(p.theta - into_ball(p.theta - eta[:, None] * p.gradient, c.R)) / eta**2
    left = J - exact.mspbe(p.theta) + 0.5 * eta * mapping + (0.5 / eta - 0.5 * c.L) * length
    noise = c.L1**2 * (5 * e["track"] + 3 * e["track_ref"]) + 3 * c.L2**2 * e["moved"] + 2 * e["C1"]
    return left, 0.5 * eta * noise


def _away(p: Points) -> Ratio:
    """‖θ_{t+1} − θ̃‖² − ‖θ_t − θ̃‖² with Young's weight β = 1."""
    after, eta = _moved_theta(p, project=False)
    c, e = p.c, p.errors
    mean_square = 3 * (e["gradient"] + e["C1"] + c.L1**2 * e["track"])
    noise = 3 * (c.L1**2 * (e["track"] + e["track_ref"]) + c.L2**2 * e["moved"])
    right = eta * e["moved"] + (eta + eta**2) * mean_square + eta**2 * noise
    return p.mean(square(after - p.theta_ref[:, None])) - e["moved"], right


def _greedy_ratio(c: Sharp) -> float:
    return GREEDY_RATIO * c.lambda_C / max(2 * c.L1 * c.L3, 1e-12)


def _greedy_step(p: Points) -> Ratio:
    """One step of Greedy-GQ on an independent sample, against ρη_θ‖∇J‖² and N."""
    bound = greedy_bound(p.c, _greedy_ratio(p.c), None)
    exact, D = p.problem.exact, p.problem.exact.transitions.probability
    eta = p.eta_theta
    after = into_ball(p.theta[:, None] - eta[:, None, None] * p.sampled[0], p.c.R)
    omega = p.omega[:, None] - eta[:, None, None] / bound.x * p.sampled[1]
    flat = after.reshape(-1, p.problem.dim)
    J = exact.mspbe(flat).reshape(after.shape[:2]) @ D
    track = square(omega - exact.omega_star(flat).reshape(after.shape)) @ D
    fallen = J - exact.mspbe(p.theta) + bound.b * (track - p.errors["track"])
    return fallen + bound.rho * eta * p.errors["gradient"], bound.N * eta**2


def _greedy_potential(p: Points, theta: FloatArray, omega: FloatArray) -> FloatArray:
    """The solution of Poisson's equation for what correlation costs Greedy-GQ, at every sample, (n, N)."""
    bound = greedy_bound(p.c, _greedy_ratio(p.c), None)
    exact = p.problem.exact
    n, d = theta.shape
    solved = []
    for values in exact.sample_gradients(theta, omega):
        mean = np.einsum("n,kni->ki", exact.transitions.probability, values)
        deviations = (values - mean[:, None]).transpose(1, 0, 2).reshape(values.shape[1], -1)
        solved.append(solve_poisson(p.problem, deviations).reshape(-1, n, d).transpose(1, 0, 2))
    C, _, K = exact.moments
    derivative = np.linalg.solve(C, K @ exact.phi_hat(theta)) - np.eye(d)  # Dω*, (n, d, d)
    track = omega - exact.omega_star(theta)
    towards = 2 * bound.b * np.einsum("kij,ki->kj", derivative, track) - exact.gradient(theta)
    along_G, along_H = (np.einsum("kni,ki->kn", u, v) for u, v in zip(solved, (towards, track), strict=True))
    return np.asarray(along_G - 2 * bound.b / bound.x * along_H)


def _greedy_size(p: Points) -> Ratio:
    bound = greedy_bound(p.c, _greedy_ratio(p.c), poisson(p.problem))
    left = np.abs(_greedy_potential(p, p.theta, p.omega)).max(axis=1)
    return left, np.full(len(left), bound.M_U)


def _greedy_slope(p: Points) -> Ratio:
    bound = greedy_bound(p.c, _greedy_ratio(p.c), poisson(p.problem))
    change = _greedy_potential(p, p.theta, p.omega) - _greedy_potential(p, p.theta_ref, p.omega_ref)
    far = bound.U_theta * np.sqrt(p.errors["moved"]) + bound.U_omega * np.linalg.norm(p.omega - p.omega_ref, axis=1)
    return np.abs(change).max(axis=1), far


def _constants(p: Points) -> dict[str, Ratio]:
    """Norms and Lipschitz ratios, each against its constant."""
    c, exact = p.c, p.problem.exact
    C, _, K = exact.moments
    star_ref = exact.omega_star(p.theta_ref)
    step, step_omega = np.sqrt(p.errors["moved"]), np.linalg.norm(p.omega - p.omega_ref, axis=1)
    G, H = p.sampled
    G_omega, H_omega = exact.sample_gradients(p.theta, p.omega_ref)
    at_theta, at_ref = exact.sample_gradients(p.theta, p.star), exact.sample_gradients(p.theta_ref, star_ref)
    phi_hat, phi_hat_ref = exact.phi_hat(p.theta), exact.phi_hat(p.theta_ref)
    slope, slope_ref = (np.linalg.solve(C, K @ value) for value in (phi_hat, phi_hat_ref))

    def most(values: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm(values, axis=-1).reshape(len(values), -1).max(axis=1))

    def against(name: str, per: FloatArray | float = 1.0) -> FloatArray:
        constant = c.parts[name] if name in c.parts else getattr(c, name)
        return np.broadcast_to(constant * per, step.shape)

    spread = np.linalg.norm(slope - slope_ref, 2, axis=(1, 2))
    return {
        "phi_hat": (most(phi_hat), against("phi_hat")),
        "L_phi_hat": (most(phi_hat - phi_hat_ref), against("L_phi_hat", step)),
        "delta_max": (np.abs(exact.delta(p.theta)).max(axis=1), against("delta_max")),
        "omega_star": (most(p.star), against("omega_star")),
        "U": (most(p.star + p.theta), against("U")),
        "G": (most(G), against("G")),
        "H": (most(H), against("H")),
        "C_grad_J": (most(p.gradient), against("C_grad_J")),
        "L1": (most(G - G_omega), against("L1", step_omega)),
        "L2": (most(at_theta[0] - at_ref[0]), against("L2", step)),
        "L3": (most(p.star - star_ref), against("L3", step)),
        "L4": (most(H - H_omega), against("L4", step_omega)),
        "L5": (most(at_theta[1] - at_ref[1]), against("L5", step)),
        "L6": (spread, against("L6", step)),
        "least_J": (np.array([c.least_J(r) for r in np.linalg.norm(p.theta, axis=1)]), exact.mspbe(p.theta)),
        "L": (most(p.gradient - exact.gradient(p.theta_ref)), against("L", step)),
    }


#: The inequalities by name; the constants come from ``_constants``.
INEQUALITIES: dict[str, Callable[[Points], Ratio]] = {
    "batch mean of G, uniform in θ": _uniform_G,
    "batch mean of H, uniform in θ": _uniform_H,
    "batch mean of G, by residuals": lambda p: (np.sqrt(p.errors["C1"]), _fitted(p)[0]),
    "batch mean of H, by residuals": lambda p: (np.sqrt(p.errors["C2"]), _fitted(p)[1]),
    "E‖g‖² (6,3,3,3,3)": _lemma_g,
    "E‖h‖² (5,3,3,2)": _lemma_h,
    "variance of g": _variance_g,
    "tracking step, order 2": lambda p: _tracking(p, "interior", 2),
    "tracking step, order 1": lambda p: _tracking(p, "interior", 1),
    "tracking step, projected": lambda p: _tracking(p, "projected", 2),
    "descent, interior": _descent_interior,
    "descent, projected": _descent_projected,
    "distance from the reference": _away,
    "Greedy-GQ, one step": _greedy_step,
    "Greedy-GQ, Poisson: size": _greedy_size,
    "Greedy-GQ, Poisson: slope": _greedy_slope,
    **PLUG_IN,
}

CONSTANTS = (
    "phi_hat", "L_phi_hat", "delta_max", "omega_star", "U", "G", "H", "C_grad_J",
    "L1", "L2", "L3", "L4", "L5", "L6", "L", "least_J",
)  # fmt: skip


def largest_ratios(
    problem: Problem, c: Sharp, seed: int = 0, rounds: int = 30, population: int = 128,
    names: tuple[str, ...] | None = None,
) -> dict[str, float]:  # fmt: skip
    """The largest left/right that the climb found, by name.

    Examples
    --------
    >>> import gqlab as gq
    >>> from gqlab.theory.sharp import sharp_constants
    >>> problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[-1.0]], discount=0.9), [[[1.0]]])
    >>> c = sharp_constants(problem, 2.0)
    >>> found = largest_ratios(problem, c, rounds=5, population=32, names=("omega_star", "L3"))
    >>> max(found.values()) <= 1 + 1e-6
    True
    """
    out = {}
    for k, name in enumerate(names or (*CONSTANTS, *INEQUALITIES)):
        find = INEQUALITIES.get(name, lambda p, name=name: _constants(p)[name])
        out[name] = _climb(problem, c, find, np.random.default_rng([seed, k]), rounds, population)
    return out


def _climb(
    problem: Problem, c: Sharp, find: Callable[[Points], Ratio], rng: np.random.Generator, rounds: int, population: int
) -> float:
    size = Points.size(problem)

    def ratio(u: FloatArray) -> FloatArray:
        """Where both sides vanish, rounding would decide: so its bound is subtracted from the left side first."""
        p = Points.decode(problem, c, u)
        left, right = find(p)
        return np.asarray((left - p.rounding) / np.maximum(right, p.rounding))

    u = rng.standard_normal((population, size)) * rng.choice([0.3, 1.0, 3.0], size=(population, 1))
    values = ratio(u)
    width = 0.5
    for _ in range(rounds):
        keep = np.argsort(values)[-max(4, population // 16) :]
        parents, best = u[keep], float(values[keep].max())
        children = np.repeat(parents, -(-population // len(parents)), axis=0)
        change = rng.standard_normal(children.shape) * (rng.random(children.shape) < rng.choice([0.1, 0.3, 1.0]))
        children = children + width * change
        u = np.concatenate([parents, children])
        values = np.concatenate([values[keep], ratio(children)])
        width *= 1.1 if values.max() > best else 0.8
    return float(values.max())
