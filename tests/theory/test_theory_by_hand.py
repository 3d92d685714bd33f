"""The constants, conditions and terms of the theory on problems that are worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gqlab as gq
from gqlab.theory import constants
from gqlab.theory.bound import bound
from gqlab.theory.conditions import conditions, recursion
from gqlab.theory.deviation import deviation
from gqlab.theory.ergodicity import certify
from helpers.theory_problems import benign_problem, by_hand


def test_printed_constants_by_hand() -> None:
    c = constants.printed(by_hand(), 2.0)
    expected = {
        "phi_hat": 3,  # 1 + |A|R k₁ = 1 + 2·2·½
        "L_phi_hat": 6,  # |A|(k₂R + 2k₁) = 2(1·2 + 2·½)
        "delta_max": 4,  # r_max + (1+γ)R = 1 + 1.5·2
        "omega_star": 8,  # 4/½
        "G": 7,  # 4 + γΦ̂R = 4 + ½·3·2
        "H": 6,  # (2+γ)R + r_max = 5 + 1
        "C_grad_J": 16,  # 4 + γΦ̂W = 4 + ½·3·8
        "C1": 529,  # ρ = 0: (7 + 16)²
        "C2": 36,  # H²
        "C3": 64,  # 8R²/λ_C = 8·4·2
        "C4": 144,  # (2/λ_C)·6² = 4·36
        "L1": 1.5,  # γΦ̂
        "L2": 34,  # L_δ + γ(Φ̂L₃ + L_φ̂W) = 2.5 + ½(15 + 48)
        "L3": 5,  # L_δ/λ_C = 2.5·2
        "L4": 1,
        "L5": 8,  # γ|A|k₁R + 2 + L₃ = 1 + 2 + 5
        "L": 34,
        "drift": 68,  # 9/λ_C + 2L₃² = 18 + 50
    }
    assert {name: getattr(c, name) for name in expected} == pytest.approx(expected, rel=1e-12)
    assert c.D(0.01) == pytest.approx(155.8125)  # 6·1.5(17 + ⅛) + 1.5 + 1.5/8


def test_printed_conditions_by_hand() -> None:
    c = constants.printed(by_hand(), 2.0)
    tests = {test.label: test for test in conditions(c, 0.01, 0.1, 10)}
    # x² = (0.01/0.1)² = 0.01.  κ₁ = 8[12·64·0.1 + 68·9·34²·0.01] = 8[76.8 + 7074.72] = 57212.16
    assert tests["lr-1"].left == pytest.approx(57212.16)
    assert tests["lr-2"].left == 0.1
    assert tests["lr-3"].left == pytest.approx(2.7)  # (3 + 24)·0.01·10
    # [15/2·1.5·34·0.01 + 1.5·57212.16]·28/27·(e−1) = 85822.065·1.037037·1.718282
    assert tests["lr-4"].left == pytest.approx(85822.065 * 28 / 27 * (math.e - 1))
    # 9(17.125)·0.01 + 155.8125·68·72·0.01 = 1.54125 + 7628.58
    assert tests["lr-5"].left == pytest.approx(7630.12125)
    assert (tests["lr-5"].right, tests["lr-5"].holds) == (0.125, False)
    assert tests["tracking"].left == pytest.approx(10.38)  # 68·6·2.25·0.01 + 12·0.1
    assert tests["tracking"].right == 0.125  # λ_C/4
    assert tests["tracking"].margin == pytest.approx(-10.255)


def test_printed_bound_by_hand() -> None:
    problem = by_hand()
    theta0 = np.zeros(2)
    # θ = 0: δ = r, E[δφ] = (½, 0), ω* = (1, 0), J = ½·½·1 = ¼, ‖ω_0 − ω*‖² = 1.
    assert float(problem.exact.mspbe(theta0)) == pytest.approx(0.25)
    assert problem.exact.omega_star(theta0).tolist() == pytest.approx([1.0, 0.0])
    c = constants.printed(problem, 2.0)
    terms = bound(c, 0.01, 0.1, 10, 5, 0.25, 1.0).terms
    assert terms["initialisation"] == pytest.approx(2.0)  # 4·¼/(0.01·5·10)
    assert terms["bias"] == pytest.approx(264.5)  # 4/10·1.25·529
    assert terms["variance"] == pytest.approx(326.1285)  # 4/10·9·17.125·0.01·529
    # 4/10·155.8125·[16·208 + 72·68·0.01·529 + 96·0.1·36] = 62.325·[3328 + 25899.84 + 345.6]
    assert terms["tracking: noise"] == pytest.approx(62.325 * 29573.44)
    # 1/50·[9·1.5·17.125·0.01·10 + 155.8125·8·(10 + 10(68·9·2.25·0.01 + 1.8))]/(1 − 0.975¹⁰)
    start = (23.11875 + 1246.5 * (10 + 10 * (13.77 + 1.8))) / 50 / (1 - 0.975**10)
    assert terms["tracking: start"] == pytest.approx(start)
    # 9·1.5·17.125·0.01 + 155.8125·8·[1 + 13.77 + 1.8]·[8·208/10 + 8·36·0.1 + 4·68·49·0.01]
    assert terms["tracking: reference"] == pytest.approx(2.311875 + 1246.5 * 16.57 * (166.4 + 28.8 + 133.28))


def test_corrected_constants_by_hand() -> None:
    c = constants.corrected(by_hand(), 2.0)
    # D = ‖e_0 − e_1‖ = √2; the peak of (1−P)(P·logit P − 1) is at P = 0.9168, where logit P = 2.40 < σRD = 2.83.
    P = np.linspace(0.9, 0.93, 300_001)
    phi_hat = 1 + 2 * float(((1 - P) * (P * np.log(P / (1 - P)) - 1)).max())
    assert phi_hat == pytest.approx(1.19968, abs=1e-5)
    r = math.sqrt(0.5)
    # b = (½, 0), K = ¼ I: C⁻¹b = (1, 0), C⁻¹K = ½ I; sup over signs ½√2 = r; γ/√λ_C = ½/r = r.
    U = 1 + 2 * r
    W = 3 + 2 * r  # U + R, below δ_max/√λ_C = 4/r
    L3 = 1 + phi_hat * r
    l_psi = r + 0.5 * phi_hat
    psi_max = r * W  # √λ_max W = 3.12, below δ_max = 4
    # B = rφ is (1,0) or 0: F = ±(½, 0).  φφᵀ − C = ±½ diag(1, −1).  K_t is ½e_t or 0: F = ±¼ e_t.
    # The next state is independent of the state, so nothing is correlated: v is the variance itself.
    u_B, u_C, u_K = 0.5, r, 0.25 + 0.25
    C2 = (u_B + U * u_C + 2 * u_K) ** 2
    expected = {
        "phi_hat": phi_hat,
        "L_phi_hat": 1,  # σ(D²/4)·2 = ½·2
        "omega_star": W,
        "G": 4 + 0.5 * phi_hat * 2,
        "H": 6,
        "C_grad_J": l_psi * psi_max,
        "C1": (u_B + 2 * u_C + (2 + phi_hat * W) * u_K) ** 2,
        "C2": C2,
        "C3": 4 * ((2 + W) * u_C) ** 2,
        "C4": 4 * C2,
        "L1": 0.5 * phi_hat,
        "L2": 1 + 0.5 * phi_hat + 0.5 * (phi_hat * L3 + W),
        "L3": L3,
        "L4": 1,
        "L5": phi_hat * (0.5 + r),
        "L": l_psi**2 + 0.5 * psi_max,
        "drift": 4 * L3**2,  # L₃²/½ + 2L₃²
    }
    assert {name: getattr(c, name) for name in expected} == pytest.approx(expected, rel=1e-7)
    assert c.D(0.01) == pytest.approx(c.L1**2 * (6 * (c.L / 2 + 0.125) * 0.01 + 1.125))


def test_corrected_conditions_and_bound_by_hand() -> None:
    """With round constants put in: L₁ = 2, L₂ = 3, L₃ = 1, L₅ = 1, L = 4, λ_C = ½, drift = 4, all C = 1, G = H = 1."""
    values = {
        **vars(constants.corrected(by_hand(), 2.0)), "L1": 2.0, "L2": 3.0, "L3": 1.0, "L5": 1.0, "L": 4.0,
        "drift": 4.0, "C1": 1.0, "C2": 1.0, "C3": 1.0, "C4": 1.0, "G": 1.0, "H": 1.0,
    }  # fmt: skip
    c = constants.Constants(**values)
    # D = 4(6·2.125·0.1 + 1.125) = 4·2.4 = 9.6;  η_θ = 0.1, η_ω = 0.2, x² = ¼, M = 10
    assert c.D(0.1) == pytest.approx(9.6)
    tests = {test.label: test.left for test in conditions(c, 0.1, 0.2, 10)}
    # κ₁ = 8[12·0.2 + 4·9·9·¼] = 8[2.4 + 81] = 667.2
    # lr-3: (3 + 81·0.1)·0.1·10 = 11.1;  lr-4: (e−1)·10·0.1·[4.5·9·4·0.1 + 9.6·667.2] = (e−1)·[16.2 + 6405.12]
    # lr-5: 9·2.125·0.1 + 9.6·4·72·¼ = 1.9125 + 691.2;  tracking: 6·4·4·¼ + 12·0.2 = 24 + 2.4
    expected = {
        "lr-1": 667.2, "lr-2": 0.2, "lr-3": 11.1, "lr-4": (math.e - 1) * 6421.32, "lr-5": 693.1125, "tracking": 26.4,
    }  # fmt: skip
    assert tests == pytest.approx(expected)
    terms = bound(c, 0.1, 0.2, 10, 5, 0.25, 2.0).terms
    # E = 9·4·2.125·0.1 + 9.6·8·[½ + 9·4·4·¼ + 18·0.2] = 7.65 + 76.8·[0.5 + 36 + 3.6] = 3087.33
    expected = {
        "initialisation": 0.2,  # 4·¼/(0.1·5·10)
        "bias": 0.45,  # 0.4·1.125
        "variance": 0.765,  # 0.4·9·2.125·0.1
        "tracking: noise": 0.4 * 9.6 * (16 * 2 + 72 * 4 * 0.25 + 96 * 0.2),
        "tracking: start": 0.8 * 3087.33 * 2 / (1 - 0.95**10),
        "tracking: reference": 4 * 3087.33 * (8 * 2 / 10 + 8 * 5 * 0.2 + 4 * 4 * 5 * 0.25),
    }
    assert terms == pytest.approx(expected)


@pytest.mark.parametrize("version", ["printed", "corrected"])
def test_c_0_is_the_end_of_the_recursion(version: str) -> None:
    c = getattr(constants, version)(benign_problem(), 1.0)
    M, eta_theta, eta_omega = 50, 0.01, 0.02
    got = recursion(c, eta_theta, eta_omega, M)
    k1 = 4 / c.lambda_C * (12 * c.L5**2 * eta_omega + c.drift * 9 * c.L2**2 * (eta_theta / eta_omega) ** 2)
    value = 0.0
    for _ in range(M):  # backwards from c_M = 0, as the recursion is written
        grown = c.L / 2 * eta_theta**2 + value * eta_theta**2
        if version == "printed":
            weight = 6 * c.L1 * grown + eta_theta * c.L1 + eta_theta * c.L1 * value
            value = value * (eta_theta + 1 + 2 * eta_theta) + 9 * c.L1 * grown + weight * k1
        else:
            weight = 6 * c.L1**2 * (c.L / 2 + 0.125) * eta_theta**2 + eta_theta * c.L1**2 * 1.125
            value = value * (eta_theta + 1 + 2 * eta_theta) + 9 * c.L2**2 * grown + weight * k1
    assert got.c0 == pytest.approx(value, rel=1e-9)
    assert got.log10_c0 == pytest.approx(math.log10(value))


def test_batch_deviation_of_a_slow_chain_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two states that change with probability 0.05, φ = 1, r = ±1, γ = ½: all correlations are 0.9ᵏ.

    B = ±1: v = 1 + 2Σ0.9ᵏ = 19, the asymptotic variance itself. K_t = ½·1{s' = t} = ¼ ± ¼: v = 19/16, twice.
    """
    mdp = gq.FiniteMDP([[[0.95, 0.05]], [[0.05, 0.95]]], [[1.0], [-1.0]], discount=0.5)
    problem = gq.Problem(mdp, np.ones((2, 1, 1)))
    u = vars(deviation(problem, certify(problem)))
    assert u == pytest.approx({"B": math.sqrt(19), "C": 0.0, "K": 2 * math.sqrt(19) / 4}, abs=1e-8)
    # Cut off after k = 1, the rest is bounded by 2 max‖F‖ max‖F̄‖ Σ_{t≥1}0.9ᵗ = 2·9: v = 1 + 2(0.9 + 18).
    monkeypatch.setattr("gqlab.theory.deviation.MOST_WORK", 0)
    cut = deviation(problem, certify(problem))
    assert pytest.approx(math.sqrt(38.8)) == cut.B
    # K_t: v = 1/16 + 2(c_1 + rest), F̄ = ±0.225, c_1 = ¼·0.225, max‖F‖ taken as γ + ‖E[K_t]‖ = ¾, so that the rest is
    # 2·0.75·0.225·9 = 3.0375: v = 6.25 for each of the two.
    assert pytest.approx(2 * math.sqrt(6.25)) == cut.K


def test_the_largest_sum_over_signs_by_hand() -> None:
    """13 columns and more are too many for all signs: then the sum of the column norms, which is never too small."""
    few, many = np.ones((1, 12)), np.ones((1, 13))
    assert constants.signs_norm(few) == pytest.approx(12)
    assert constants.signs_norm(many) == pytest.approx(13)
    assert constants.signs_norm(np.array([[3.0, 0, 0], [0, 4, 0]])) == pytest.approx(5)
    assert constants.signs_norm(np.hstack([3 * np.eye(2), np.zeros((2, 20))])) == pytest.approx(3 * math.sqrt(2))
    rng = np.random.default_rng(0)
    for n in (12, 13, 40):
        matrix = rng.normal(size=(4, n))
        signs = rng.choice([-1.0, 1.0], size=(20_000, n))
        reached = np.linalg.norm(signs @ matrix.T, axis=1).max()
        assert reached <= constants.signs_norm(matrix) * (1 + 1e-12)


# --- Each building block has a case that reaches 90 % of it ---------------------------------------------------------


@pytest.mark.parametrize("n_actions", [2, 3, 5])
def test_softmax_phi_hat_is_reached(n_actions: int) -> None:
    """One action at u, the others at −u, and q_0 − q_a = logit P + log(|A| − 1) at the best P."""
    smooth = gq.Softmax(1.5).smoothness(n_actions, radius=10.0)
    gap = np.linspace(0, 10, 20_001)  # σ(q_0 − q_a)
    q = np.zeros((len(gap), n_actions))
    q[:, 0] = gap / 1.5
    w = gq.Softmax(1.5).weights(q)
    reached = np.abs(w[:, 0] - w[:, 1:].sum(axis=1)).max()
    assert 0.999999 * smooth.phi_hat <= reached <= smooth.phi_hat


@pytest.mark.parametrize(
    ("operator", "n_actions"), [(gq.Softmax(1.5), 2), (gq.Mellowmax(3.0), 2), (gq.Mellowmax(3.0), 4)]
)
def test_phi_hat_lipschitz_constant_is_reached(operator: gq.Operator, n_actions: int) -> None:
    """Half of the actions at u, half at −u, near θ = 0."""
    sign = np.where(np.arange(n_actions) % 2 == 0, 1.0, -1.0)
    step = 1e-6
    difference = ((operator.weights(step * sign) - operator.weights(-step * sign)) * sign).sum()
    constant = operator.smoothness(n_actions, radius=10.0).L_phi_hat
    assert 0.999 * constant <= abs(difference) / (2 * step) <= constant * (1 + 1e-6)


def test_softmax_policy_reaches_k1() -> None:
    """Two actions at ±u, θ = 0: π' = σπ(1−π)·2 = σ/2."""
    operator, step = gq.Softmax(1.5), 1e-6
    change = operator.policy(np.array([step, -step])) - operator.policy(np.array([-step, step]))
    assert abs(change[0]) / (2 * step) == pytest.approx(operator.smoothness(2, 1.0).k1)


def test_softmax_does_not_exceed_its_curvature_for_many_actions() -> None:
    """For |A| ≥ 3 the constant is not reached: the best two-level policy comes to 85 % of it."""
    rng = np.random.default_rng(0)
    for n_actions in (3, 4, 8):
        constant = gq.Softmax(1.0).smoothness(n_actions, radius=50.0).L_phi_hat
        q = rng.normal(size=(4000, n_actions)) * rng.choice([0.3, 1, 3, 10], size=(4000, 1))
        q[:1000, 0] = np.linspace(0, 5, 1000)
        q[:1000, 1:] = 0
        v = rng.choice([-1.0, 1.0], size=(4000, n_actions))
        v[:1000, 0], v[:1000, 1:] = 1.0, -1.0
        p = gq.Softmax(1.0).policy(q)
        y = q - (p * q).sum(axis=1, keepdims=True)
        centred = v - (p * v).sum(axis=1, keepdims=True)
        curvature = np.abs((p * (2 + y) * centred**2).sum(axis=1)).max()
        assert 0.75 * constant < curvature <= constant


def test_other_constants_are_reached() -> None:
    """One state, one action, φ = 1: ω*, ∇J and the Lipschitz constants are met exactly."""
    problem = gq.Problem(gq.FiniteMDP([[[1.0]]], [[-1.0]], discount=0.9), [[[1.0]]])
    c = constants.corrected(problem, 2.0)
    theta, omega = np.array([[2.0]]), np.array([[2.0]])
    assert pytest.approx(0.1) == c.L3  # |γ − 1|
    assert np.abs(problem.exact.omega_star(theta)).max() == pytest.approx(1.2)  # |r + (γ − 1)R|
    assert c.omega_star == pytest.approx(1.2)
    assert pytest.approx(0.01) == c.L  # (γ − 1)²
    assert c.C_grad_J == pytest.approx(0.12)  # (1 − γ)·1.2
    assert np.abs(problem.exact.gradient(theta)).max() == pytest.approx(0.12)
    slope = (problem.exact.sample_gradients(theta, omega)[0] - problem.exact.sample_gradients(theta, -omega)[0]) / 4
    assert np.abs(slope).max() == pytest.approx(c.L1)  # γ
    assert pytest.approx(1 + 0.9 + 0.9 * 0.1) == c.L2


def test_delta_G_and_H_are_reached() -> None:
    """Two states with opposite features and opposite rewards: δ = r + γV̄(s') − φᵀθ with all three of one sign."""
    mdp = gq.FiniteMDP([[[0.1, 0.9]], [[0.9, 0.1]]], [[-1.0], [1.0]], discount=0.9)
    problem = gq.Problem(mdp, [[[1.0]], [[-1.0]]])
    c = constants.corrected(problem, 5.0)
    theta, omega = np.array([[5.0]]), np.array([[5.0]])
    assert np.abs(problem.exact.delta(theta)).max() == pytest.approx(c.delta_max)  # −1 − 0.9·5 − 5
    assert np.abs(problem.exact.sample_gradients(theta, omega)[1]).max() == pytest.approx(c.H)
    assert np.abs(problem.exact.sample_gradients(theta, -omega)[0]).max() == pytest.approx(c.G)
