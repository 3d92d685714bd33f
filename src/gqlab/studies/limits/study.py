"""``gqlab limits`` as a study: its calls, what is gathered from them, and the tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gqlab.studies.keys import Call
from gqlab.studies.limits.design import CELLS, DEGENERATE, RADII, GarnetKind, LimitsBudget
from gqlab.studies.limits.measure import measure_floors, measure_least_squares, measure_plug_in
from gqlab.studies.page import Table, count, number
from gqlab.studies.study import Result, Study, write_texts
from gqlab.support.checks import FloatArray
from gqlab.support.plain_json import plain

#: The rows of a cell's table: the estimator in words, what was measured of it, and the bound that it is divided by.
ROWS = (
    ("plug-in of the samples' frequencies ÷ tr Σ", "unknown", "trace_unknown"),
    ("plug-in that knows π_b ÷ tr Σ_b", "known", "trace_known"),
    ("least squares that know π_b ÷ tr Σ_b", "run", "trace_known"),
    ("plug-in weighted by π_b n(s)/n(s, a) ÷ tr Σ_b", "weighted", "trace_known"),
)


@dataclass(frozen=True)
class CellLimits:
    """One kind of Garnets; arrays are (n_problems, n_moments) if nothing else is said."""

    title: str
    seeds: tuple[int, ...]
    ratios: dict[str, FloatArray]  # by the second entry of ROWS
    errors: dict[str, FloatArray]  # their standard errors
    spread: FloatArray  # (n_problems,)  relative, of the samples' Hessian at the last moment
    share: FloatArray  # (n_problems,)  tr Σ_b ÷ tr Σ
    lost: int  # plug-ins without a stationary point

    @property
    def kept(self) -> Any:
        """Which minima are not degenerate by the rule, (n_problems,)."""
        return self.spread <= DEGENERATE


@dataclass(frozen=True)
class Limits:
    """Everything that ``gqlab limits`` measured."""

    budget: LimitsBudget
    cells: tuple[CellLimits, ...]
    plug_in_names: tuple[str, ...]
    bound: FloatArray  # (n_problems, n_radii, n_batches)  Theorem 5's right side
    mean: FloatArray  # the same, the mean of ‖𝒢(θ̂)‖²
    lost: int  # searches in the ball that did not end

    @property
    def looseness(self) -> FloatArray:
        """The bound over what was measured."""
        return np.asarray(self.bound / np.maximum(self.mean, 1e-300))


@dataclass(frozen=True)
class LimitsStudy(Study):
    """Theorems 5 and 6 against simulation."""

    budget: LimitsBudget
    command: str = "gqlab limits"

    name = "limits"

    def calls(self) -> list[Call]:
        return [*self._cell_calls(), *self._plug_in_calls()]

    def _cell_calls(self) -> list[Call]:
        b, out = self.budget, []
        for cell in CELLS:
            for seed in b.seeds(cell):
                own = (cell, seed, b.moments)
                cost = b.moments[-1]
                floors = (*own, b.n_early, b.n_floors)
                out.append(Call(measure_floors, floors, f"{cell.title}, {seed}", b.n_floors * cost))
                out.append(Call(measure_least_squares, (*own, b.n_runs), f"runs, {seed}", 2 * b.n_runs * cost))
        return out

    def _plug_in_calls(self) -> list[Call]:
        b = self.budget
        cost = b.n_batches * b.batches[-1]
        return [
            Call(measure_plug_in, (name, seed, b.batches, b.n_batches), f"Theorem 5, {name} {seed}", cost)
            for name, seed in b.plug_in_problems
        ]

    def gather(self, results: Sequence[Result]) -> Limits:
        n = len(self._cell_calls())
        each = [results[:n][2 * self.budget.n_problems * k :][: 2 * self.budget.n_problems] for k in range(len(CELLS))]
        plugged = results[n:]
        return Limits(
            budget=self.budget,
            cells=tuple(_cell(cell, self.budget, own[::2], own[1::2]) for cell, own in zip(CELLS, each, strict=True)),
            plug_in_names=tuple(f"{name} {seed}" for name, seed in self.budget.plug_in_problems),
            bound=np.array([found["bound"] for found in plugged]),
            mean=np.array([found["mean"] for found in plugged]),
            lost=int(sum(found["lost"].sum() for found in plugged)),
        )

    def write(self, gathered: Limits, folder: Path) -> str:
        texts = {"limits.json": numbers(gathered), "limits.md": markdown(gathered, self.command)}
        write_texts(folder, texts)
        return text(gathered)


def _cell(cell: GarnetKind, budget: LimitsBudget, floors: Sequence[Result], runs: Sequence[Result]) -> CellLimits:
    ratios, errors = {}, {}
    for _, name, bound in ROWS:
        traces = np.array([found[bound] for found in floors])[:, None]
        mean, error = ("mean", "error") if name == "run" else (name, f"{name}_error")
        source = runs if name == "run" else floors
        ratios[name] = np.array([found[mean] for found in source]) / traces
        errors[name] = np.array([found[error] for found in source]) / traces
    return CellLimits(
        title=cell.title,
        seeds=budget.seeds(cell),
        ratios=ratios,
        errors=errors,
        spread=np.array([found["spread"] for found in floors]) / np.sqrt(budget.moments[-1]),
        share=np.array([found["trace_known"] / found["trace_unknown"] for found in floors]),
        lost=int(sum(found[f"{name}_lost"].sum() for found in floors for name in ("unknown", "weighted", "known"))),
    )


# --- Text -----------------------------------------------------------------------------------------------------------


def cell_table(cell: CellLimits, budget: LimitsBudget) -> Table:
    """The mean over all runs of the Garnets that are kept, with its standard error; the range over these Garnets."""
    rows = []
    for words, name, _ in ROWS:
        ratios, errors = cell.ratios[name][cell.kept].T, cell.errors[name][cell.kept].T
        rows.append([words, *(pooled(r, e) for r, e in zip(ratios, errors, strict=True))])
    return Table(["n times the mean of ‖∇J‖²", *map(count, budget.moments)], rows)


def pooled(ratios: FloatArray, errors: FloatArray) -> str:
    """Mean ± standard error [least, largest]; a dash where every minimum is degenerate."""
    if not len(ratios):
        return "–"
    error = float(np.sqrt((errors**2).sum()) / len(errors))
    return f"{ratios.mean():.3f} ± {error:.3f} [{number(float(ratios.min()))}, {number(float(ratios.max()))}]"


def cell_title(cell: CellLimits) -> str:
    out = [str(seed) for seed, kept in zip(cell.seeds, cell.kept, strict=True) if not kept]
    left = f"; left out as degenerate: {', '.join(out)}" if out else "; none is degenerate"
    share = f"tr Σ_b is {number(float(np.median(cell.share)))} of tr Σ in the median"
    return f"{cell.title}: {len(cell.seeds)} Garnets, seeds {cell.seeds[0]} to {cell.seeds[-1]}{left}; {share}"


def plug_in_table(found: Limits) -> Table:
    """The least and the median of bound over measured, for each radius."""
    rows = []
    for i, R in enumerate(RADII):
        own = found.looseness[:, i]
        rows.append([f"R = {R:g}", *(f"{number(float(c.min()))}, {number(float(np.median(c)))}" for c in own.T)])
    return Table(["least and median over the problems", *map(count, found.budget.batches)], rows)


def plug_in_title(found: Limits) -> str:
    return (
        f"Theorem 5's right side over the mean of ‖𝒢(θ̂)‖²: {len(found.plug_in_names)} problems, "
        f"{found.budget.n_batches} batches of each size; {found.lost} searches of all did not end"
    )


def text(found: Limits) -> str:
    """For a terminal."""
    parts = []
    for cell in found.cells:
        parts += [cell_title(cell), "", cell_table(cell, found.budget).text(numbers=False), ""]
    return "\n".join([*parts, plug_in_title(found), "", plug_in_table(found).text(numbers=False)])


def markdown(found: Limits, command: str) -> str:
    """For a document."""
    parts = [f"As `{command}` wrote them.", ""]
    for cell in found.cells:
        parts += [f"**{cell_title(cell)}**", "", cell_table(cell, found.budget).markdown(), ""]
    return "\n".join([*parts, f"**{plug_in_title(found)}**", "", plug_in_table(found).markdown()]) + "\n"


def numbers(found: Limits) -> str:
    """Everything as JSON."""
    cells = [plain(cell) | {"kept": plain(cell.kept)} for cell in found.cells]
    content = {**plain(found), "cells": cells, "looseness": plain(found.looseness), "radii": list(RADII)}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
