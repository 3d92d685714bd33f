"""Fitted Q iteration beside the same in ten lines of NumPy: what it costs to be called gqlab.fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.table import Table

#: Rows, states, actions and iterations, the discount and the ridge.
ROWS, STATES, ACTIONS, ITERATIONS = 50_000, 20, 3, 200
DISCOUNT, RIDGE = 0.99, 1e-4


def ten_lines(s: Any, a: Any, r: Any, t: Any) -> Any:
    """Fitted Q iteration with one-hot features, as one would write it down, (A, S)."""
    x, after = np.eye(STATES)[s], np.eye(STATES)[t]
    rows = [np.flatnonzero(a == k) for k in range(ACTIONS)]
    first = [x[which] for which in rows]
    inverse = [np.linalg.inv(z.T @ z / len(s) + RIDGE * np.eye(STATES)) for z in first]
    theta = np.zeros((ACTIONS, STATES))
    for _ in range(ITERATIONS):
        y = r + DISCOUNT * (after @ theta.T).max(axis=1)
        theta = np.stack([inverse[k] @ (first[k].T @ y[rows[k]] / len(s)) for k in range(ACTIONS)])
    return theta


def cpu_seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """The least processor time of a few calls."""
    out = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        out.append(time.process_time() - begin)
    return min(out)


def costs(table: Table) -> None:
    """Both, with their ratio, and the two that are new: pessimistic values, and a policy that is solved for."""
    from threadpoolctl import threadpool_limits

    import gqlab as gq

    random = np.random.default_rng(0)
    s, t = random.integers(STATES, size=(2, ROWS))
    a, r = random.integers(ACTIONS, size=ROWS), random.normal(size=ROWS)
    data = gq.Transitions.from_arrays(s, a, r, t)
    policy = np.full((STATES, ACTIONS), 1 / ACTIONS)

    def fitted(algorithm: Any, target: Any = None) -> Any:
        return gq.fit(data, gq.OneHot(STATES), algorithm, target, discount=DISCOUNT, progress=False).theta

    table.section(f"Fitted Q: {ROWS:,} rows, {STATES} one-hot features, {ACTIONS} actions, {ITERATIONS} iterations")
    plain, ours = "ten lines of NumPy", "gqlab.fit with FittedQ"
    with threadpool_limits(1, user_api="blas"):
        assert np.allclose(fitted(gq.FittedQ(RIDGE)), ten_lines(s, a, r, t))
        table.row(plain, cpu_seconds(lambda: ten_lines(s, a, r, t)), "CPU s")
        table.row(ours, cpu_seconds(lambda: fitted(gq.FittedQ(RIDGE))), "CPU s")
        table.note(f"{ours}: {table.ratio(ours, plain)}")
        table.row("with pessimism", cpu_seconds(lambda: fitted(gq.FittedQ(pessimism=1))), "CPU s")
        table.row("a policy, solved for at once", cpu_seconds(lambda: fitted(gq.FittedQ(), policy)), "CPU s")
