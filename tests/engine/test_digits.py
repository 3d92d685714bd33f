"""Mellowmax and softmax keep their digits for every κ and σ: against 420 decimal digits, compiled and in NumPy."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
import pytest

import gqlab as gq
from gqlab.engine.compiled import entry
from gqlab.rules.gradient import act, improve

#: All digits between 1 and κq = 5e-354, and 60 more.
DIGITS = 420

#: Of V̄, relative to max |q|; of w and π, and of the curvature relative to σ max |v|.
TOLERANCE = 1e-14

#: Below, the curvature is no longer a normal number.
SMALLEST = 1e-280

INVERSE_TEMPERATURES = [
    5e-324,
    1e-300,
    1e-100,
    1e-30,
    1e-16,
    1e-12,
    1e-9,
    1e-6,
    1e-3,
    0.3,
    1.0,
    5.0,
    100.0,
    1e5,
    1e12,
    1e50,
]

VALUES = {
    "near": [0.3, -1.0, 2.0],
    "two": [1.0, 0.0],
    "equal": [0.7, 0.7, 0.7],
    "nearly equal": [1.0, 1.0 + 2.0**-52, 1.0 - 2.0**-53],
    "far from 0": [1e8, 1e8 + 1, 1e8 - 2],
    "large": [1e30, -3e29, 2e30],
    "small": [1e-30, 2e-30, -1e-30],
    "one action": [4.0],
    "many": np.random.default_rng(0).normal(size=40).tolist(),
    "one above many": [3.0] + [0.0] * 39,
}


@entry
def improve_entry(part, q, w, A):
    return improve(part, 0, q, w, A)


@entry
def act_entry(part, q, p, A):
    act(part, 0, q, p, A)


def context():
    return localcontext(Context(prec=DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX))


def exact_softmax(sigma, q):
    """p, V̄ = Σpq and w = p(1 + σ(q − V̄)), with many digits."""
    top = max(q)
    e = [(Decimal(sigma) * (b - top)).exp() for b in q]
    p = [b / sum(e) for b in e]
    V = sum(a * b for a, b in zip(p, q, strict=True))
    return p, V, [a * (1 + Decimal(sigma) * (b - V)) for a, b in zip(p, q, strict=True)]


def exact_mellowmax(kappa, q):
    """p = softmax(κq) and V̄ = log(mean exp(κq))/κ."""
    top = max(q)
    e = [(Decimal(kappa) * (b - top)).exp() for b in q]
    return [b / sum(e) for b in e], top + (sum(e) / len(q)).ln() / Decimal(kappa)


def direction(q):
    return np.cos(np.arange(len(q)))


def error(given, expected, scale):
    return max(abs(float(Decimal(float(g)) - e)) for g, e in zip(given, expected, strict=True)) / scale


@pytest.mark.parametrize("q", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("kappa", INVERSE_TEMPERATURES, ids=str)
def test_mellowmax_keeps_its_digits(kappa, q):
    operator, size = gq.Mellowmax(kappa), np.abs(q).max()
    w = np.empty(len(q))
    compiled = improve_entry(operator.compiled(kappa), np.array(q), w, len(q))
    with context():
        p, V = exact_mellowmax(kappa, [Decimal(b) for b in q])
        assert error([compiled, operator.value(np.array(q))], [V, V], size) <= TOLERANCE
        assert error(w, p, 1) <= TOLERANCE
        assert error(operator.weights(np.array(q)), p, 1) <= TOLERANCE
        v = direction(q)
        mean = sum(a * Decimal(float(b)) for a, b in zip(p, v, strict=True))
        curvature = [Decimal(kappa) * a * (Decimal(float(b)) - mean) for a, b in zip(p, v, strict=True)]
        assert error(operator.curvature(np.array(q), v), curvature, max(kappa, SMALLEST)) <= TOLERANCE


@pytest.mark.parametrize("q", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("sigma", [0.0, *INVERSE_TEMPERATURES], ids=str)
def test_softmax_keeps_its_digits(sigma, q):
    operator, size = gq.Softmax(sigma), np.abs(q).max()
    w, pi = np.empty(len(q)), np.empty(len(q))
    compiled = improve_entry(operator.compiled(sigma), np.array(q), w, len(q))
    act_entry(operator.compiled(sigma), np.array(q), pi, len(q))
    with context():
        p, V, exact_w = exact_softmax(sigma, [Decimal(b) for b in q])
        assert error([compiled, operator.value(np.array(q))], [V, V], size) <= TOLERANCE
        assert error(w, exact_w, 1) <= TOLERANCE
        assert error(operator.weights(np.array(q)), exact_w, 1) <= TOLERANCE
        assert error(pi, p, 1) <= TOLERANCE
        assert error(operator.policy(np.array(q)), p, 1) <= TOLERANCE
        v = [Decimal(float(b)) for b in direction(q)]
        surplus, S = [1 + Decimal(sigma) * (Decimal(b) - V) for b in q], Decimal(sigma)
        p_v, V_v = sum(a * b for a, b in zip(p, v, strict=True)), sum(a * b for a, b in zip(exact_w, v, strict=True))
        curvature = [S * a * ((b - p_v) * s + b - V_v) for a, b, s in zip(p, v, surplus, strict=True)]
        assert error(operator.curvature(np.array(q), direction(q)), curvature, max(sigma, SMALLEST)) <= TOLERANCE


@pytest.mark.parametrize(
    "q", [v for v in VALUES.values() if len(v) < 10], ids=[k for k, v in VALUES.items() if len(v) < 10]
)
@pytest.mark.parametrize("kappa", INVERSE_TEMPERATURES, ids=str)
def test_the_policy_of_mellowmax_has_its_value(kappa, q):
    operator, size, p = gq.Mellowmax(kappa), np.abs(q).max(), np.empty(len(q))
    act_entry(operator.compiled(kappa), np.array(q), p, len(q))
    for policy in (p, operator.policy(np.array(q))):
        assert abs(policy.sum() - 1) <= 4e-16 * len(q)
        assert abs(math.fsum(policy * (np.array(q) - max(q))) - (operator.value(np.array(q)) - max(q))) <= 4e-14 * size
