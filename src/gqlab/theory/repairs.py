"""What the corrected version changes in the paper's proof: where, from what to what, and why.

``kind`` is "misprint" (the intended formula is plain from the context), "slip" (a step that changes a constant), "gap"
(a step that does not follow, or an assumption that is not made) or "loose" (right, but a smaller quantity does as
well). The derivations are in docs/theory_proofs.md.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = {
    "misprint": "Misprints: the intended formula is plain from the context",
    "slip": "Slips that change a constant",
    "gap": "Gaps: a step that does not follow, or an assumption that is not made",
    "loose": "Loose: right, but a smaller quantity does as well",
}


@dataclass(frozen=True)
class Repair:
    """One change. ``in_bound`` is False if it changes no number."""

    place: str
    kind: str
    printed: str
    corrected: str
    why: str
    in_bound: bool = True


#: Every place where the paper's proof differs: the table of docs/theory_proofs.md, section 9.
REPAIRS: tuple[Repair, ...] = (
    Repair(
        "final inequality and the display before it, fourth term",
        "misprint",
        "9L₁(L/2 + ĉ)η_θ + D[…]·[bound on ‖ω̃ − ω*‖²]",
        "(9L₁²(L/2 + ĉ)η_θ + D[…])·[bound on ‖ω̃ − ω*‖²]",
        "both summands multiply E‖ω̃ − ω*(θ̃)‖²; the outer bracket closes too late, after the product, and "
        "so leaves the first summand out of it",
    ),
    Repair(
        "eq. zeta",
        "misprint",
        "E‖G_t(θ_t, ω*) − ∇J‖² ≤ C₁/M for the single sample of step t",
        "the batch mean in place of G_t",
        "the same step for ξ takes the expectation over the index first; one sample lacks the small variance of M",
        in_bound=False,
    ),
    Repair(
        "tracking-error-2 and the sum over epochs",
        "misprint",
        "θ̃^(0), ω̃^(0) and (1 − ½λ_Cη_ω)^{mM}; ω̃^(m) = ω_M^(m)",
        "θ̃^(1) = θ_0, ω̃^(1) = ω_0, (…)^{(m−1)M}; ω̃^(m+1) = ω_M^(m)",
        "Algorithm 1 starts with epoch 1 at the initial point; Σ_m (…)^{(m−1)M} ≤ 1/(1 − (…)^M) is what is printed",
        in_bound=False,
    ),
    Repair(
        "tracking-error-1, telescoped",
        "misprint",
        "E‖ω_M − ω*(θ_M)‖² on the right",
        "E‖ω_0 − ω*(θ_0)‖² = E‖ω̃ − ω*(θ̃)‖²",
        "Σ(a_t − a_{t+1}) = a_0 − a_M; the lemma itself has the right term",
        in_bound=False,
    ),
    Repair(
        "filtration",
        "misprint",
        "F_{m,0} ∋ B_{m−1}, θ̃^(m−1), and E_{t,m} beside E_{m,t}",
        "F_{m,t}: all earlier epochs, the batch B_m and the indices drawn before step t",
        "“the third inner product is unbiased” holds given the batch; the indices are those of another paper",
        in_bound=False,
    ),
    Repair(
        "Lemma 4",
        "misprint",
        "‖h‖² ≤ … + 6C₂/M",
        "E‖h‖² ≤ … + 6C₂/M",
        "C₂/M bounds an expectation; likewise the pathwise display of tracking-error-1",
        in_bound=False,
    ),
    Repair(
        "Lemmas sigma and kappa",
        "misprint",
        "E ς ≤ …, E ϰ ≤ …",
        "|E ς| ≤ …, |E ϰ| ≤ …",
        "they enter as −2η_ωE ς − 2η_ωE ϰ; Young's inequality gives both signs",
        in_bound=False,
    ),
    Repair(
        "bounding ξ; Lemma 2; Lemma C2; eq. w-2; L₄",
        "misprint",
        "“=” for “≤”, E‖H_i‖ for E‖H_i‖², η for η_ω, ω₂ twice, Lemma kappa proved “as Lemma kappa”",
        "as meant",
        "plain from the context",
        in_bound=False,
    ),
    Repair(
        "Theorem 1 (conditions)",
        "misprint",
        "lr-1 … lr-5",
        "and the unnumbered condition of tracking-error-1",
        "the main proof uses that lemma, hence its condition",
        in_bound=False,
    ),
    Repair(
        "final inequality, third and fourth terms",
        "slip",
        "1/(TM)[…] and […] without a factor",
        "4/(TM)[…] and 4[…]",
        "multiplying by 4/η_θ turns every term's η_θ/(TM) into 4/(TM); the first two terms have the 4, these lost it",
    ),
    Repair(
        "bounding ξ and ζ; eq. ref1; recursion of c_t; D; lr-3, lr-4; final inequality",
        "slip",
        "L₁‖ω − ω*‖², 6L₁, 9L₁, D = 6L₁(…) + L₁ + L₁ĉ",
        "L₁²‖ω − ω*‖², 6L₁², 9L₁², D = 6L₁²(…) + L₁² + L₁²ĉ",
        "Young's inequality squares ‖G(θ,ω) − G(θ,ω*)‖ ≤ L₁‖ω − ω*‖; Lemma 3 has the squares, its use drops them",
    ),
    Repair(
        "eq. ref1 and all that follows, coefficient of ‖θ_t − θ̃‖²",
        "slip",
        "9L₂ in ref1, then 9L₁ in the recursion of c_t, hence (3 + 16L₁)η_θ and (15/2)L₁L",
        "9L₂², hence (3 + 9L₂²η_θ)η_θ and (9/2)L₂²L",
        "Lemma 3 gives 9L₂²‖θ_t − θ̃‖²; the square is lost in ref1 and the index turns into 1 one line later",
    ),
    Repair(
        "Lemmas C1, C2, sigma, kappa, cross terms",
        "slip",
        "E⟨F_i, F_j⟩ ≤ Λρ^{|i−j|}F²",
        "v_X, which has 2 d(|i−j|−1) where the paper has Λρ^{|i−j|}",
        "x_i contains s_{i+1} (after an end its law), one step nearer to x_j; neighbours (|i−j| = 1) have no mixing at "
        "all, and Assumption 4 says nothing about t = 0. The factor 2 belongs to d_TV = ½Σ|p − μ|, a convention that "
        "the paper does not state: with Σ|p − μ| it is not needed",
    ),
    Repair(
        "C₂, C₃, C₄",
        "slip",
        "1 + Λρ/(1−ρ)",
        "v_X (which has the factor 2)",
        "Σ_{i≠j} ρ^{|i−j|} ≤ 2Mρ/(1−ρ): C₁ has the 2, the others lost it",
    ),
    Repair(
        "Lemma sigma, C₃",
        "slip",
        "‖(C̃ − C)(ω_t − ω*)‖² ≤ R²‖C̃ − C‖²",
        "(R + W)²‖C̃ − C‖² in the Frobenius norm",
        "two vectors are subtracted: with ‖ω‖ ≤ R and ‖ω*‖ ≤ W ≤ R the factor is up to (2R)²",
    ),
    Repair(
        "Lemmas tracking-error-1 and -2; lr-1, lr-4, lr-5; final inequality",
        "slip",
        "9/λ_C + 2L₃²",
        "L₃²/λ_C + 2L₃²",
        "2⟨ω − ω*, ω*(θ_t) − ω*(θ_{t+1})⟩ ≤ λ_Cη_ω‖ω − ω*‖² + (L₃²/λ_C)(η_θ²/η_ω)‖g‖². The printed 9 is "
        "enough where L₃ ≤ 3, and too small only beyond",
    ),
    Repair(
        "Lemma tracking-error-2",
        "slip",
        "‖g‖² ≤ G², ‖h‖² ≤ H²",
        "E‖g‖² ≤ 5G², E‖h‖² ≤ 5H²",
        "g = G_x(θ,ω) − G_x(θ̃,ω̃) + G̃ is a sum of three: ‖g‖ ≤ 3G; in expectation mean² + variance ≤ G² + (2G)²",
    ),
    Repair(
        "eq. 3 to eq. ref2",
        "gap",
        "−[… c_{t+1} …]κ₁‖θ_t − θ̃‖² ≤ −[… ĉ …]κ₁‖θ_t − θ̃‖²",
        "ĉ is put into the coefficient of ‖ω_t − ω*‖² first, then κ₁‖θ_t − θ̃‖² is added and subtracted with "
        "it: c_t = c_{t+1}(1 + 3η_θ) + 9L₂²(L/2 + c_{t+1})η_θ² + η_θDκ₁",
        "c_{t+1} ≤ ĉ makes a negative term smaller, not larger; with the constant coefficient the sum over t "
        "closes. lr-1 (κ₁ ≤ 1) is then no longer needed",
    ),
    Repair(
        "Lemma C1 as used at θ_t, and Lemma kappa",
        "gap",
        "E‖G̃(θ_t, ω*(θ_t)) − ∇J(θ_t)‖² ≤ C₁/M by expanding the square over the batch",
        "E sup_{‖θ‖≤R}‖G̃(θ, ω*(θ)) − ∇J(θ)‖² ≤ C₁/M, C₁ = (u_B + R u_C + (R + Φ̂W)u_K)²",
        "θ_t (t ≥ 1) is made from the very batch that is averaged; the expansion needs a θ independent of "
        "it. G̃ − ∇J is linear in three batch means, so the bound holds for all θ at once. (Lemma sigma is "
        "not touched: its last expectation has no θ_t in it)",
    ),
    Repair(
        "Lemmas tracking-error-1 and -2, first line",
        "gap",
        "‖Π_R(ω_t − η_ωh) − ω*(θ_{t+1})‖ ≤ ‖ω_t − η_ωh − ω*(θ_{t+1})‖",
        "the same, under the assumption W ≤ R",
        "a projection is non-expansive towards points of the ball only: ω*(θ) must lie in it. The same "
        "assumption lets G and H, which are bounds for ‖ω‖ ≤ R, be used at ω*(θ) in Lemmas C1, C2 and kappa",
    ),
    Repair(
        "eq. 1 (descent)",
        "gap",
        "θ_{t+1} − θ_t = −η_θ g_t",
        "the same, under the assumption that the projection of θ is idle, almost surely",
        "where the projection acts, ∇J need not vanish at the limit: no bound of this form can hold",
    ),
    Repair(
        "Lemma L-smooth",
        "gap",
        "|J(θ₁) − J(θ₂) − ⟨∇J(θ₂), θ₁ − θ₂⟩| ≤ (L/2)‖θ₁ − θ₂‖² for any θ₁ and θ₂",
        "for θ₁ and θ₂ in the ball, with an L that depends on R",
        "the Hessian holds Σ_s (K_sᵀω*(θ))∇²V̄_s(θ), and ω*(θ) grows with θ while a state whose actions tie "
        "keeps its curvature: no L serves all of ℝᵈ",
    ),
    Repair(
        "from the final inequality to the O(·) of Theorem 1",
        "gap",
        "third term O(1/(η_ωTM) + (η_ω + x²)/T), fourth O((η_ω + x²)² + 1/M)",
        "both under η_ωM ≥ const",
        "1/(1 − (1 − ½λ_Cη_ω)ᴹ) is of order 1/(η_ωM) where η_ωM is small, and (η_ωM)⁻¹·1/M is O(1/M) only "
        "where it is not; Corollary 1's η_ω = Θ(M^{−2/3}) has it",
        in_bound=False,
    ),
    Repair(
        "Theorem 1 (assumptions)",
        "gap",
        "no word on the start",
        "‖θ_0‖ ≤ R and ‖ω_0‖ ≤ R",
        "the bounds on G_x and H_x are used at the first point, before any projection",
        in_bound=False,
    ),
    Repair(
        "L₁, L₂, L₃, L, C_∇J",
        "loose",
        "“see another paper”; with its blocks |A|(k₂R + 2k₁), 1 + |A|Rk₁ and 1/λ_C",
        "derived; Φ̂, L_φ̂ free of R; 1/√λ_C",
        "E[δφ] is a projection of δ: ‖C^{−1/2}E[δφ]‖ ≤ (E δ²)^{1/2}; the softmax terms are bounded by entropy",
    ),
    Repair(
        "L₅",
        "loose",
        "γ|A|k₁R + 2 + L₃",
        "γΦ̂ + Lip(ω* + θ)",
        "H_x(θ, ω*(θ)) = φ(φᵀ(ω* + θ) − r − γV̄): the two θ cancel",
    ),
    Repair(
        "lr-3, lr-4",
        "loose",
        "c_0 ≤ ab(aᴹ − 1)/(a − 1) with a ≤ 4 + 16L₁",
        "c_0 = b(aᴹ − 1)/(a − 1) ≤ (e−1)Mb for (a − 1)M ≤ 1",
        "the factor a is not needed, and it is near 1, not near 4 + 16L₁",
    ),
    Repair(
        "D",
        "loose",
        "η_θ ≤ 1 put into 6L₁²(L/2 + ĉ)η_θ",
        "D keeps its η_θ",
        "the steps that satisfy the conditions are far below 1",
    ),
    Repair(
        "coefficient of C₁/M",
        "loose",
        "η_θ + 2ĉη_θ + …",
        "η_θ + ĉη_θ + …",
        "ζ enters as 2c_{t+1}η_θ·½C₁/M",
    ),
)


def markdown() -> str:
    """The list as tables, one for each kind, as in docs/theory_proofs.md."""
    out, number = [], 0
    for kind, title in KINDS.items():
        out += [f"### {title}", "", "| # | place | printed | corrected | why |", "|---|---|---|---|---|"]
        for repair in REPAIRS:
            if repair.kind == kind:
                number += 1
                cells = (repair.place, repair.printed, repair.corrected, repair.why)
                out.append(f"| {number} | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        out.append("")
    return "\n".join(out[:-1])
