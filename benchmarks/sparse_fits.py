"""What an update of a fit costs on sparse tiles as the number of features grows: flat, where it is that of the entries.

Times are of the processor, on one core, the shortest of several passes over the rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import gqlab as gq
from benchmarks.table import Table
from gqlab.learn.fit.log_table import encode_log, samples_of
from gqlab.learn.fit.passes import Passes, values_of
from gqlab.rules.blocks import DenseBlocks
from gqlab.rules.gradient import Samples
from gqlab.rules.memory import Sizes
from gqlab.samples.tables import per_problem

A, TILINGS = 3, 16

#: Tiles along each of two axes: from a few thousand features to millions.
BINS = (8, 32, 128, 256)

#: Rows of the log, and of one whose features are written out in full.
ROWS, FEW = 50_000, 1000


def algorithms(n: int) -> dict[str, Any]:
    """One that needs no variance reduction, and those that move along a mean; a batch of SARAH is a pass."""
    return {
        "Greedy-GQ": gq.GreedyGQ(0.1, 0.05, radius=50.0),
        "SAGA": gq.SAGAGreedyGQ(0.1, 0.05, radius=50.0),
        "STORM": gq.STORMGreedyGQ(0.1, 0.05, radius=50.0),
        "STORM, a = 0.01": gq.STORMGreedyGQ(0.1, 0.05, a=0.01, power=0.0, radius=50.0),
        "SARAH": gq.SARAHGreedyGQ(0.01, 0.01, batch_size=n, growth=1.0, keep="new", radius=50.0),
    }


def table_of(encoder: Any, n: int) -> Samples:
    """A random walk in the unit square, in rows as a log has them, encoded."""
    random = np.random.default_rng(0)
    walk = 0.5 + np.cumsum(random.normal(scale=0.02, size=(n + 1, 2)), axis=0)
    states = np.abs((walk + 1.0) % 2.0 - 1.0)
    data = gq.Transitions.from_arrays(
        states[:-1], random.integers(A, size=n), random.normal(size=n), states[1:], n_actions=A
    )
    log = encode_log(data.to_chunk(), encoder, gq.Greedy(), A, 0.99)
    return samples_of(log, encoder, gq.Greedy(), A)


def in_full(samples: Samples, K: int) -> Samples:
    """The same with all features of every observation, most of them zero."""
    places = samples.features.places.reshape(-1, TILINGS)
    x = np.zeros((len(places), K))
    np.put_along_axis(x, places.astype(np.int64), samples.features.value[0], axis=1)
    sizes = {"n_active": per_problem([K]), "n_features": per_problem([K]), "n_actions": per_problem([A])}
    return samples._replace(features=DenseBlocks(x.reshape(-1), **sizes))


def update_time(samples: Samples, d: int, algorithm: Any, repeats: int) -> float:
    """Processor nanoseconds of an update: the first pass compiles, and fills what is remembered."""
    n, kind = len(samples.row), algorithm.estimator
    passes = Passes(samples, Sizes(d, A, 2 * n, n, n), algorithm, kind, values_of(algorithm, kind))
    passes.advance(n)
    times = []
    for k in range(repeats):
        begin = time.process_time()
        passes.advance((k + 2) * n)
        times.append((time.process_time() - begin) / n)
    if passes.diverged:
        raise RuntimeError(f"{algorithm} diverged: nothing was timed")
    return 1e9 * min(times)


def costs(table: Table, scale: float) -> None:
    """All of it."""
    table.section(f"An update of a fit on {TILINGS} tilings, {A} actions, {ROWS:,} rows, by the number of features")
    repeats, most = max(3, int(10 * scale)), BINS if scale == 1.0 else BINS[:-1]
    sizes = {}
    for bins in most:
        encoder = gq.TileCoder(n_tilings=TILINGS, bins=bins, low=[0.0, 0.0], high=[1.0, 1.0])
        encoder.fit(np.zeros((1, 2)))
        d = sizes[bins] = A * encoder.n_features_out_
        samples = table_of(encoder, ROWS)
        for name, algorithm in algorithms(ROWS).items():
            table.row(f"{name}, d = {d:,}", update_time(samples, d, algorithm, repeats), "ns an update")
        if bins == BINS[0]:
            full = in_full(table_of(encoder, FEW), encoder.n_features_out_)
            table.row(
                f"SAGA, in full, d = {d:,}", update_time(full, d, algorithms(FEW)["SAGA"], repeats), "ns an update"
            )
    for name in algorithms(ROWS):
        first, last = (f"{name}, d = {sizes[bins]:,}" for bins in (most[0], most[-1]))
        table.note(f"{'':<6}{last}: {table.ratio(last, first)}")
