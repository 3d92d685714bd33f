"""What least squares needs of linear algebra, as scalar loops over matrices in rows: compiled code cannot call LAPACK
without allocating."""

from __future__ import annotations

import math

from gqlab.rules.dispatch import routine

#: The most sweeps over all pairs; about ten are enough.
MOST_SWEEPS = 60


@routine
def eigen(M, U, d):
    """M = U diag(e) Uᵀ of a symmetric M by Jacobi's rotations: e ends up on the diagonal of M, U holds columns."""
    for i in range(d):
        for j in range(d):
            U[i * d + j] = 1.0 if i == j else 0.0
    for _ in range(MOST_SWEEPS):
        off, diagonal = 0.0, 0.0
        for i in range(d):
            diagonal += M[i * d + i] ** 2
            for j in range(i):
                off += M[i * d + j] ** 2
        if not off > 1e-34 * diagonal:  # NaN too
            break
        for p in range(d - 1):
            for q in range(p + 1, d):
                rotate(M, U, p, q, d)


@routine
def rotate(M, U, p, q, d):
    """The rotation of the axes p and q that makes M[p, q] zero."""
    pq = M[p * d + q]
    if pq == 0.0:
        return
    tau = (M[q * d + q] - M[p * d + p]) / (2.0 * pq)
    t = math.copysign(1.0, tau) / (abs(tau) + math.sqrt(1.0 + tau * tau))
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    for k in range(d):
        kp, kq = M[k * d + p], M[k * d + q]
        M[k * d + p] = c * kp - s * kq
        M[k * d + q] = s * kp + c * kq
    for k in range(d):
        pk, qk = M[p * d + k], M[q * d + k]
        M[p * d + k] = c * pk - s * qk
        M[q * d + k] = s * pk + c * qk
    for k in range(d):
        kp, kq = U[k * d + p], U[k * d + q]
        U[k * d + p] = c * kp - s * kq
        U[k * d + q] = s * kp + c * kq
    M[p * d + q] = M[q * d + p] = 0.0


@routine
def pseudo_inverse(M, U, out, cutoff, d):
    """out = M⁺ of a symmetric M ≥ 0, without the eigenvalues under ``cutoff`` times the largest; M is overwritten."""
    eigen(M, U, d)
    largest = 0.0
    for k in range(d):
        largest = max(largest, M[k * d + k])
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                if M[k * d + k] > cutoff * largest:
                    total += U[i * d + k] * U[j * d + k] / M[k * d + k]
            out[i * d + j] = total
