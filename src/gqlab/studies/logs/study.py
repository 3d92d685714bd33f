"""Where variance reduction pays: small logged data on which Q-learning blows up. The design, as data, and its runs.

CartPole, 5,000 transitions of a uniformly random policy, Fourier features of order 2, discount 0.95, so that no |Q|
above 1/(1 − 0.95) = 20 makes sense; 500,000 updates from θ₀ = 0, each with a row that is drawn at random, as the theory
has it. A model reaches the mark if its greedy policy's mean return over 20 episodes is at least 475. Beside it the same
with rows in an order that is drawn once, which is what :func:`gqlab.fit` does where nothing else is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.algorithms import QRC, FittedQ, GreedyGQ, QLearning, VRGreedyGQ
from gqlab.data import collect
from gqlab.encoders import Fourier
from gqlab.learn.fit.fit import fit
from gqlab.support.files import check_writable, write_whole

ENV, DISCOUNT, ROWS, PASSES, EPISODES, MARK = "CartPole-v1", 0.95, 5000, 100, 20, 475.0

#: The data sets, by their seeds: none was looked at before this design was written down.
SEEDS = tuple(range(2_026_000, 2_026_020))

#: For a look: data sets that the study does not use.
QUICK_SEEDS = (1000,)

#: The largest |Q| that makes sense.
BOUND = 1 / (1 - DISCOUNT)

STEP_SIZES = (0.03, 0.1, 0.5)
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3)


@dataclass(frozen=True)
class Setting:
    """One algorithm with one setting: a cell of the table."""

    row: str
    column: str
    algorithm: Any
    rows: str = "drawn"


def settings() -> Iterator[Setting]:
    """The cells of the table, in their order: η_ω = η_θ, and a batch is all rows."""
    for eta in STEP_SIZES:
        yield Setting("Q-learning", f"{eta:g}", QLearning(eta))
        yield Setting("QRC", f"{eta:g}", QRC(eta, eta))
        yield Setting("Greedy-GQ", f"{eta:g}", GreedyGQ(eta, eta))
        yield Setting("VR-Greedy-GQ", f"{eta:g}", VRGreedyGQ(eta, eta, batch_size=ROWS))
        yield Setting("Q-learning, shuffled", f"{eta:g}", QLearning(eta), "shuffled")
        yield Setting("VR-Greedy-GQ, shuffled", f"{eta:g}", VRGreedyGQ(eta, eta, batch_size=ROWS), "shuffled")
    for ridge in RIDGES:
        yield Setting("Fitted Q", f"ridge {ridge:g}", FittedQ(ridge))


ROW_ORDER = list(dict.fromkeys(setting.row for setting in settings()))

#: What the study must show, as it was asked: a row, a column, and how many data sets must, or may, reach the mark.
MARKS = (
    *(("VR-Greedy-GQ", f"{eta:g}", "at least", 17) for eta in STEP_SIZES),
    ("Q-learning", "0.1", "at most", 12),
)


def run_study(folder: Path, seeds: tuple[int, ...], progress: Callable[[int, int], None]) -> dict[str, list[Any]]:
    """[return, max |Q|] of every cell, "row|column", on every data set; those that are finished are read from files."""
    check_writable(folder)
    found: dict[str, list[Any]] = {}
    for k, seed in enumerate(seeds):
        progress(k, len(seeds))
        path = folder / f"{ENV}-{seed}.json"
        if not path.exists():
            text = json.dumps(one_data_set(seed), indent=1)
            write_whole(path, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
        for name, values in json.loads(path.read_text(encoding="utf-8")).items():
            found.setdefault(name, []).append(values)
    progress(len(seeds), len(seeds))
    return found


def one_data_set(seed: int) -> dict[str, list[float]]:
    """The mean return and max |Q| of every cell on one data set."""
    data = collect(ENV, n_steps=ROWS, seed=seed, progress=False)
    encoder = Fourier(2, low=(-2.4, -3.0, -0.21, -3.0), high=(2.4, 3.0, 0.21, 3.0))
    out: dict[str, list[float]] = {}
    for setting in settings():
        how: dict[str, Any] = {"n_passes": PASSES, "seed": seed, "rows": setting.rows, "progress": False}
        model = fit(data, encoder, setting.algorithm, discount=DISCOUNT, **how)
        played = model.evaluate(ENV, n_episodes=EPISODES, seed=seed)
        out[f"{setting.row}|{setting.column}"] = [played.mean, float(model.history["max_q"][-1])]
    return out


def report(found: dict[str, list[Any]]) -> str:
    """The table, and what was asked of it."""
    n = len(next(iter(found.values())))
    reached = {name: int(sum(mean >= MARK for mean, _ in values)) for name, values in found.items()}
    lines = [
        f"{ENV}, {ROWS} random transitions, discount {DISCOUNT:g} (no |Q| above {BOUND:g} makes sense):",
        f"on how many of {n} data sets a return of {MARK:g} is reached",
        f"{'':<24} {'step':>12} {'reached':>9} {'median return':>14} {'median max|Q|':>14}",
    ]
    for name, values in sorted(found.items(), key=lambda item: ROW_ORDER.index(item[0].split("|")[0])):
        row, column = name.split("|")
        returns, largest = np.median(np.array(values, dtype=float), axis=0)
        lines.append(f"{row:<24} {column:>12} {f'{reached[name]}/{n}':>9} {returns:>14.1f} {largest:>14.1f}")
    for row, column, word, wanted in MARKS if n == len(SEEDS) else ():
        got = reached[f"{row}|{column}"]
        met = got >= wanted if word == "at least" else got <= wanted
        lines.append(
            f"{row} at {column}: {word} {wanted} of 20 asked, {got} of {n} found: {'met' if met else 'missed'}"
        )
    return "\n".join(lines)
