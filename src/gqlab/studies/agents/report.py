"""The benchmark's table: as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gqlab.studies.agents.design import ENVIRONMENTS, FULL, GOALS, LANDER, PRESET, Goal, Scale
from gqlab.studies.agents.runs import Cell
from gqlab.support.checks import FloatArray

#: The scales that were written down with goals: a smaller one says nothing about them.
JUDGED = (FULL, LANDER)


@dataclass(frozen=True)
class Entry:
    """One row on one environment."""

    step_sizes: tuple[float | None, ...]
    means: FloatArray  # (n_step_sizes, n_seeds)  the mean return of each agent's greedy policy
    solved: float
    diverged: int  # agents

    @property
    def medians(self) -> FloatArray:
        """Over seeds, (n_step_sizes,)."""
        return np.median(self.means, axis=1)

    @property
    def best(self) -> int:
        """Which step size has the largest median."""
        return int(self.medians.argmax())

    @property
    def n_solve(self) -> int:
        """How many step sizes solve it, in the median over seeds."""
        return int((self.medians >= self.solved).sum())


Table = dict[str, dict[str, Entry]]


def table_of(found: Mapping[Cell, Any], scale: Scale) -> Table:
    """Row ↦ environment ↦ entry."""
    table: Table = {}
    seeds = range(scale.first_seed, scale.first_seed + scale.n_seeds)
    cells = {(c.environment, c.row, c.step_size, c.seed): result for c, result in found.items()}
    for row in (PRESET, *scale.rows):
        etas: tuple[float | None, ...] = (None,) if row == PRESET else scale.step_sizes
        table[row] = {}
        for name in scale.environments:
            results = [[cells[name, row, eta, seed] for seed in seeds] for eta in etas]
            table[row][name] = Entry(
                etas,
                np.array([[r["mean"] for r in each] for each in results]),
                ENVIRONMENTS[name].solved,
                sum(r["diverged"] for each in results for r in each),
            )
    return table


def _score(value: float) -> str:
    return f"{value:.0f}".replace("-", "−")


def _step(eta: float | None) -> str:
    return "" if eta is None else f"1/{round(1 / eta)}" if eta < 1 else f"{eta:g}"


def _cells(entry: Entry) -> list[str]:
    """The median at the best step size, its range over seeds, and how many step sizes solve."""
    k = entry.best
    low, high = entry.means[k].min(), entry.means[k].max()
    at = f", η = {_step(entry.step_sizes[k])}" if entry.step_sizes[k] is not None else ""
    share = "–" if entry.step_sizes == (None,) else f"{entry.n_solve} of {len(entry.medians)}"
    lost = f", {entry.diverged} diverged" if entry.diverged else ""
    return [f"{_score(entry.medians[k])} ({_score(low)} … {_score(high)}{at})", share + lost]


def markdown(table: Table, scale: Scale) -> str:
    """The table, and what it was to show."""
    header = [""]
    for name in scale.environments:
        env = ENVIRONMENTS[name]
        steps = round(scale.share * env.steps / 1000)
        header += [f"{name}, {steps}k steps, {env.features}", f"step sizes with ≥ {_score(env.solved)}"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for row, entries in table.items():
        cells = [cell for entry in entries.values() for cell in _cells(entry)]
        lines.append("| " + " | ".join([row, *cells]) + " |")
    dqn = [cell for name in scale.environments for cell in (ENVIRONMENTS[name].dqn, "")]
    lines.append("| " + " | ".join(["Stable-Baselines3's DQN, published by rl-zoo3 (one run)", *dqn]) + " |")
    notes = [
        "",
        f"Median over {scale.n_seeds} seeds of the greedy policy's mean return at the best of {len(scale.step_sizes)} "
        f"step sizes (least … largest seed), over {scale.n_episodes} episodes after learning.",
        *(["", *verdicts(table, scale)] if scale in JUDGED else []),
    ]
    return "\n".join(lines + notes) + "\n"


def verdicts(table: Table, scale: Scale) -> list[str]:
    """Of every goal on these environments: met or missed, with the number."""
    out = []
    for goal in GOALS:
        if goal.environment not in scale.environments:
            continue
        value, unit = reached(table, goal)
        out.append(f"* {goal.text}: {'met' if value >= goal.least else 'missed'} ({_score(value)}{unit})")
    return out


def reached(table: Table, goal: Goal) -> tuple[float, str]:
    """The number that a goal asks for."""
    entries = [table[row][goal.environment] for row in goal.rows]
    if goal.counts_step_sizes:
        return max(entry.n_solve for entry in entries), f" of {len(entries[0].medians)}"
    return float(max(entry.medians.max() for entry in entries)), ""


def text(table: Table, scale: Scale) -> str:
    """The table for a terminal."""
    header = ["", *(cell for name in scale.environments for cell in (name, "solve"))]
    rows = [[row, *(cell for entry in entries.values() for cell in _cells(entry))] for row, entries in table.items()]
    widths = [max(len(r[k]) for r in [header, *rows]) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(r, widths, strict=True)) for r in [header, *rows]]
    dqn = ", ".join(f"{name} {ENVIRONMENTS[name].dqn}" for name in scale.environments)
    judged = ["", *verdicts(table, scale)] if scale in JUDGED else []
    return "\n".join([*lines, "", f"Stable-Baselines3's DQN, published by rl-zoo3: {dqn}", *judged])


def numbers(table: Table, found: Mapping[Cell, Any]) -> str:
    """Everything as JSON."""
    rows = {
        row: {
            name: {
                "step_sizes": entry.step_sizes,
                "means": entry.means.tolist(),
                "medians": entry.medians.tolist(),
                "n_solve": entry.n_solve,
                "diverged": entry.diverged,
            }
            for name, entry in entries.items()
        }
        for row, entries in table.items()
    }
    seconds = sum(result["seconds"] for result in found.values())
    return json.dumps({"rows": rows, "cpu_seconds": seconds}, ensure_ascii=False, indent=1, allow_nan=False)
