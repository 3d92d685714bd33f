"""The sharper theorems and their companion on Greedy-GQ: values by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from gqlab.theory.deviation import deviation
from gqlab.theory.ergodicity import certify
from gqlab.theory.greedy import GreedyBound, Poisson, greedy_bound, poisson
from gqlab.theory.sharp import Sharp, sharp_constants
from gqlab.theory.theorems import evaluate, tracking_step
from helpers.theory_problems import by_hand

# --- By hand --------------------------------------------------------------------------------------------------------


def test_control_constants_by_hand() -> None:
    """C = ½I, b = (½, 0), K = ¼I: C⁻¹b = (1, 0), and C⁻¹B_π has the rows ½φ_π(0), ½φ_π(1)."""
    c = sharp_constants(by_hand(), 2.0)
    r = math.sqrt(0.5)
    phi_hat = c.phi_hat  # 1.19968, worked out in test_theory_by_hand.py
    o = (phi_hat - 1) / 2
    # π = (1, 0): ½[[0,1],[1,0]] − I has the eigenvalues −½ and −1.5; with weights 1 + o and −o: −1.5 − o.
    W, L3 = 1 + 2 * 1.5, 1.5 + o
    U = 1 + 2 * r  # π = (0, 0): ½[[1,0],[1,0]] has the norm ½√2
    l_psi = r * L3  # C^{−1/2}(B − C) = √½ (C⁻¹B − I)
    psi_max = r * W  # 2.83, below δ_max = 4
    # u_γ: γφ − E[γφ] = ±¼(1, −1); φ̄ = (½, ½): around it nothing is gained, u_V = u_K = ½.
    expected = {
        "R_omega": W,
        "omega_star": W,
        "G": 4 + 0.5 * phi_hat * W,
        "H": 4 + W,
        "C_grad_J": l_psi * psi_max,
        # r and 1{s'=t} are functions of the action, which one-hot features fit exactly: H(θ, ω*) = 0 at every sample.
        # Y = (½φ̄ − φ)φᵀ is [[−¾, 0], [¼, 0]] or its mirror image: F = ±½[[−¾, −¼], [¼, ¾]], ‖F‖² = 5/16.
        "C1": (W * (math.sqrt(5 / 16) + math.sqrt(2) * (0.5 + o) * 0.5)) ** 2,
        "C2": 0,
        "C3": 4 * (2 * W * r) ** 2,
        "C4": 0,
        "L1": 0.5 * phi_hat,
        "L2": 1 + 0.5 * phi_hat + 0.5 * (phi_hat * L3 + W),
        "L3": L3,
        "L4": 1,
        "L6": r,  # n_K L_φ̂ = √½·1
        "L": l_psi**2 + W * 0.25 * math.sqrt(2),  # sup‖KV‖ = ¼‖(1, 1)‖
    }
    assert {name: getattr(c, name) for name in expected} == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert c.parts["u_gamma"] == pytest.approx(0.25 * math.sqrt(2))
    assert (c.parts["U"], c.parts["u_V"]) == pytest.approx((U, 0.5))
    # L₅ = γΦ̂ + sup‖C⁻¹B(θ)‖: both states at (1 + o)e_a − oe_b, ½√2‖(1 + o, −o)‖
    assert pytest.approx(0.5 * phi_hat + r * math.hypot(1 + o, o)) == c.L5


def round_constants() -> Sharp:
    """λ_C = 1, L₁ = ½, L₂ = 3, L₃ = 2, L₅ = 0.7, L₆ = 3, L = 2, C₁ … C₄ = 1, 2, 3, 4, G = 5, H = 7, C_∇J = 3, radii 1."""
    values: dict[str, Any] = {
        "lambda_C": 1.0, "L1": 0.5, "L2": 3.0, "L3": 2.0, "L5": 0.7, "L6": 3.0, "L": 2.0, "C1": 1.0, "C2": 2.0,
        "C3": 3.0, "C4": 4.0, "G": 5.0, "H": 7.0, "C_grad_J": 3.0, "R": 1.0, "R_omega": 1.0, "omega_star": 1.0,
        "phi_hat": 1.0, "L_phi_hat": 2.0,
    }  # fmt: skip
    return replace(sharp_constants(by_hand(), 2.0), **values)


def test_tracking_steps_by_hand() -> None:
    c = round_constants()
    # η_θ = 0.001, η_ω = 0.01.  Order 2: N = 2·4 + (1 + 1)·3 = 14, cross = 2·0.001·½·2, L₃²η_θ²/(λη_ω) = 4e-4.
    t = tracking_step(c, "interior", 0.001, 0.01, 2)
    expected = {
        "y": 0.0075 - 0.002 - 0.001 - 21e-6,  # ¾λη_ω − cross − 10η_ω² − 6NL₁²η_θ²
        "P": 6e-4 + 10.5e-6,  # 6η_ω² + 3NL₁²η_θ²
        "S": 2.94e-4 + 3.78e-4,  # 6L₅²η_ω² + 3NL₂²η_θ²
        "Q": 8e-4 + 42e-6,  # 2L₃²η_θ²/(λη_ω) + 3Nη_θ²
        "N_s": 0,
        "N0": 8e-4 + 0.02 * 7 + 16e-4 + 42e-6,  # 4η_ω²C₂ + 2η_ω(C₃ + C₄) + (4L₃²η_θ²/(λη_ω) + 3Nη_θ²)C₁
    }
    assert vars(t) == pytest.approx(expected)
    # Order 1: N = 4(2 + 4/(3·0.01)), and the mean of g has no part of its own.
    N = 4 * (2 + 4 / 0.03)
    t = tracking_step(c, "interior", 0.001, 0.01, 1)
    expected = {
        "y": 0.0075 - 0.001 - 1.5e-6 * N,
        "P": 6e-4 + 0.75e-6 * N,
        "S": 2.94e-4 + 27e-6 * N,
        "Q": 3e-6 * N,
        "N_s": 0,
        "N0": 8e-4 + 0.14 + 3e-6 * N,
    }
    assert vars(t) == pytest.approx(expected)
    # Projected: y = λη_ω − 10η_ω², N_s = 2L₃²(1 + 1/(λη_ω)) = 8·101.
    t = tracking_step(c, "projected", 0.001, 0.01)
    assert vars(t) == pytest.approx({"y": 0.009, "P": 6e-4, "S": 2.94e-4, "Q": 0, "N_s": 808, "N0": 0.1408})


def test_the_interior_theorem_by_hand() -> None:
    """M = 1: r = y, (1−y)ᴹ = 1 − y, and the sums over an epoch have one term; η_θ = 0.001, η_ω = 0.01."""
    c, eta = round_constants(), 0.001
    t = tracking_step(c, "interior", eta, 0.01, 2)
    found = evaluate(c, "interior", eta, 0.01, 1)
    c_hat = found.coefficients["c_hat"]
    A = 0.001 + c_hat * (0.001 / 1.6 + 0.001)  # ½Lη_θ + ĉ(1/β + η_θ)
    V = (1 + c_hat) * 0.001
    b_star = 0.001 * 0.25 * (1 + 3 * A + 3 * V) / t.y
    X = (3 * 0.25 * 0.001 * V + t.P * b_star) / (t.y - t.P)
    # c_0 = 3·½·L·L₂²η_θ² + S b* + a S X with a = 1 + 1.6 + 3L₂²η_θ², and that is ĉ itself
    assert c_hat == pytest.approx(27e-6 + t.S * b_star + (2.6 + 27e-6) * t.S * X)
    rho = 0.5 - 3 * A - (b_star + X) * t.Q / 0.001
    assert found.coefficients["rho"] == pytest.approx(rho)
    expected = {
        "initialisation": 0.25 / (rho * 0.001 * 5),
        "tracking: start": (b_star + X) * 2 / (rho * 0.001 * 5),
        "batch": (1 + 3 * A) / rho,
        "tracking: batch": (b_star + X) * t.N0 / (rho * 0.001),
    }
    assert found.terms(5.0, 0.25, 2.0) == pytest.approx(expected)
    assert bool(found.holds)


def test_the_projected_theorem_by_hand() -> None:
    """M = 1 again: p = 1.6, y = 0.009, P = 6e-4, b* = (5/2)L₁²η_θ/y, X = ((3/2)L₁²η_θ + Pb*)/(y − P)."""
    found = evaluate(round_constants(), "projected", 0.001, 0.01, 1)
    b_star = 2.5 * 0.25 * 0.001 / 0.009
    X = (1.5 * 0.25 * 0.001 + 6e-4 * b_star) / 0.0084
    c_0 = 1.5 * 0.001 * 9 + 2.94e-4 * b_star + 2.6 * 2.94e-4 * X
    assert found.coefficients["c_hat"] == pytest.approx(c_0)
    # 1/(2η_θ) − L/2 = 499;  c_0(1 + 1/p) + B·808
    assert found.needs["step of θ"] == pytest.approx(499 - c_0 * (1 + 1 / 1.6) - (b_star + X) * 808)
    expected = {
        "initialisation": 2 * 0.25 / 0.005,
        "tracking: start": 2 * (b_star + X) * 2 / 0.005,
        "batch": 2.0,
        "tracking: batch": 2 * (b_star + X) * 0.1408 / 0.001,
    }
    assert found.terms(5.0, 0.25, 2.0) == pytest.approx(expected)


def test_the_companion_on_greedy_gq_by_hand() -> None:
    """x = 0.1: b = 0.1·¼/(1 − 0.2) = 1/32, ρ = ¾ − 4·0.1/32 = 0.7375, ‖Δ‖ ≤ 2."""
    c = round_constants()
    free = greedy_bound(c, 0.1, None)
    # N = ½LG² + b[(2L₃² + 2L₆)G² + 2H²/x²] = 25 + (14·25 + 9800)/32
    N = 25 + (350 + 9800) / 32
    assert (free.b, free.rho, free.N, free.M_U) == pytest.approx((1 / 32, 0.7375, N, 0.0))
    found = greedy_bound(c, 0.1, Poisson(B=1.0, C=2.0, K=3.0))
    # R = R_ω = Φ̂ = 1, L_φ̂ = 2:  ‖U^G‖ = 1 + 2 + 2·3 = 9, in θ 2 + 3·3 = 11, in ω 3;  ‖U^H‖ = 1 + 4 + 3 = 8, 5, 2.
    # 2b/x = 5/8, 2b = 1/16:  M_U = 3·9 + (5/8)·2·8 + (1/16)·2·2·9
    assert pytest.approx(27 + 10 + 2.25) == found.M_U
    # θ: L·9 + 3·11 + (5/8)(2·8 + 2·5) + (1/16)[(4 + 2·3)9 + 2·2·11]
    # ω: 3·3 + (5/8)(8 + 2·2) + (1/16)·2(9 + 2·3)
    theta, omega = 18 + 33 + 16.25 + 134 / 16, 9 + 7.5 + 30 / 16
    assert (found.U_theta, found.U_omega) == pytest.approx((theta, omega))
    assert pytest.approx(N + 5 * theta + 70 * omega) == found.N
    # and the bound for two steps 0.2 and 0.1, J_0 = ¼, ‖Δ_0‖² = 2
    total = (0.25 + 2 / 32 + 2 * 0.2 * found.M_U + found.N * 0.05) / (0.7375 * 0.3)
    assert found.total(np.array([0.2, 0.1]), 0.25, 2.0) == pytest.approx(total)
    eta, best = free.best(100, 0.25, 2.0)  # √(s/(100N)) balances s/(100η) and Nη, s = ¼ + 2/32
    s = 0.25 + 2 / 32
    assert (eta, best) == pytest.approx((math.sqrt(s / (100 * N)), 2 * math.sqrt(N * s / 100) / 0.7375))


def test_decaying_steps_lose_a_logarithm_and_nothing_else() -> None:
    """η_t = η_0(1+t)^{−½}: Ση = 2√T, Ση² = log T, to the order: the bound times √T/log T settles."""
    bound = GreedyBound(x=0.1, b=0.125, rho=0.7375, M_U=1.0, N=1.0)
    scaled = []
    for T in (10**4, 10**5, 10**6):
        etas = 0.5 / np.sqrt(1 + np.arange(T))
        scaled.append(bound.total(etas, 0.0, 0.0) * math.sqrt(T) / math.log(T))
    assert scaled[0] > scaled[1] > scaled[2] > 0.3
    assert scaled[1] / scaled[2] < 1.1
    with pytest.raises(ValueError, match="must not increase"):
        bound.total(np.array([0.1, 0.2]), 0.0, 0.0)


def test_alternating_correlations_cancel_in_v() -> None:
    """A chain that nearly alternates: correlations (−0.98)ᵏ, whose partial sums stay below the variance, 1."""
    mdp = gq.FiniteMDP([[[0.01, 0.99]], [[0.99, 0.01]]], [[1.0], [-1.0]], discount=0.5)
    problem = gq.Problem(mdp, np.ones((2, 1, 1)))
    assert pytest.approx(1.0, abs=1e-6) == deviation(problem, certify(problem)).B
    # The positive parts alone, lag by lag, would add up to 1 + 2Σ0.98^{2k} = 49.5.


def test_poisson_of_independent_next_states_by_hand() -> None:
    """Where the next state does not depend on this one, U = F: B = rφ − b is ±(½, 0)."""
    found = poisson(by_hand())
    assert pytest.approx(0.5) == found.B
    assert pytest.approx(math.sqrt(0.5)) == found.C
