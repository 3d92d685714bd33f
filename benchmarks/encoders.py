"""Encoders: time for one observation and for a row of a batch, ours and scikit-learn's transformers beside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import gqlab as gq
from benchmarks.table import Table, best_of


def ours() -> list[tuple[str, Any, int]]:
    """Name, encoder, numbers of an observation."""
    return [
        ("TileCoder, 16 tilings of 2", gq.TileCoder(16, 8), 2),
        ("TileCoder, 16 tilings of 4", gq.TileCoder(16, 4), 4),
        ("TileCoder, 16 tilings of 4 pairs of 8", gq.TileCoder(16, 8, groups=[(0, 1), (2, 3), (4, 5), (6, 7)]), 8),
        ("TileCoder, 16 tilings of 8, hashed", gq.TileCoder(16, 8, hash_size=2**20), 8),
        ("Fourier, order 2 of 4", gq.Fourier(2), 4),
        ("Fourier, order 3 of 4", gq.Fourier(3), 4),
        ("RBF, 4 centres a dimension of 4", gq.RBF(4), 4),
        ("OneHot, 500 values", gq.OneHot(500), 1),
        ("Identity of 4", gq.Identity(), 4),
    ]


def transformers() -> list[tuple[str, Any]]:
    """What scikit-learn has for 4 numbers."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures

    bins = KBinsDiscretizer(8, strategy="uniform")
    return [
        ("scikit-learn's RBFSampler(256) of 4", RBFSampler(n_components=256, random_state=0)),
        ("scikit-learn's PolynomialFeatures(3) of 4", PolynomialFeatures(3)),
        ("scikit-learn's KBinsDiscretizer(8) of 4", bins),
    ]


def per_call(call: Callable[[], object], count: int) -> float:
    """Microseconds."""

    def calls() -> None:
        for _ in range(count):
            call()

    call()
    return best_of(calls, 5) / count * 1e6


def costs(table: Table, scale: float) -> None:
    """Microseconds for one observation, and for a row of a batch."""
    n = 65_536
    repeats = max(200, int(20_000 * scale))
    rng = np.random.default_rng(0)
    table.section(f"Encoders: one observation with encode, a row of {n:,} with encode_batch, one thread")
    if find_spec("sklearn") is None:
        table.note("skipped: encoders need scikit-learn, pip install 'gqlab[learn]'")
        return
    for name, encoder, n_in in ours():
        X = rng.integers(0, 500, (n, n_in)).astype(float) if isinstance(encoder, gq.OneHot) else rng.random((n, n_in))
        encoder.fit(X)
        one = per_call(partial(encoder.encode, X[0].copy()), repeats)
        row = per_call(partial(encoder.encode_batch, X), 1) / n
        table.row(name, one, "us", f"{row:8.3f} us a row; {encoder.n_features_out_:,} features")
    X = rng.random((n, 4))
    for name, transformer in transformers():
        transformer.fit(X)
        one = per_call(partial(transformer.transform, X[:1].copy()), repeats // 100)
        row = per_call(partial(transformer.transform, X), 1) / n
        features = len(transformer.get_feature_names_out())
        table.row(name, one, "us", f"{row:8.3f} us a row; {features:,} features")
