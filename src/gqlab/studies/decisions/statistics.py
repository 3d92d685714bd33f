"""What is made of the results: errors, coverage, verdicts and gains, and whether each criterion holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from gqlab.studies.decisions.design import CRITERIA, DISCOUNTS, EXPLORATION, LEAST_GAIN, SELECTION_ROWS, Criterion
from gqlab.studies.decisions.measure import FIELDS
from gqlab.studies.intervals import student
from gqlab.support.checks import FloatArray

#: What logs say in one cell, by name: (problems,) each.
CellNumbers = dict[str, FloatArray]


@dataclass(frozen=True)
class CriterionVerdict:
    """A criterion, with what was found."""

    criterion: Criterion
    value: float

    @property
    def holds(self) -> bool:
        return self.criterion.holds(self.value)


def standard_error(values: FloatArray) -> float:
    """Of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def column(estimates: FloatArray, name: str) -> FloatArray:
    """A field of estimates (…, fields)."""
    return np.asarray(estimates[..., FIELDS.index(name)])


def cell_of(estimates: FloatArray, rivals: FloatArray, truth: FloatArray, n_rows: int) -> Mapping[str, float]:
    """One problem in one cell: estimates (n_logs, fields), rivals (n_logs, 6), and its EfficiencyBound.

    Where nothing is random there is no bound to compare with: what is divided by it is NaN.
    """
    bound, gain_bound, value, gain = truth
    efficient, efficient_gain = (x / np.sqrt(n_rows) if x > 0 else np.nan for x in (bound, gain_bound))
    low, high = column(estimates, "low"), column(estimates, "high")
    out = {
        "coverage": float(np.mean((low <= value) & (value <= high))),
        "rmse": float(np.sqrt(np.mean((column(estimates, "value") - value) ** 2)) / efficient),
        "width": float(np.mean(high - low) / (2 * stats.norm.ppf(0.975) * efficient)),
        "gain coverage": float(
            np.mean((column(estimates, "gain_low") <= gain) & (gain <= column(estimates, "gain_high")))
        ),
        "gain rmse": float(np.sqrt(np.mean((column(estimates, "gain") - gain) ** 2)) / efficient_gain),
        "thin": float(column(estimates, "thin").mean()),
    }
    for k, name in enumerate(("fqe", "wpdis")):
        estimate, lowest, highest = rivals[:, 3 * k : 3 * k + 3][~np.isnan(rivals[:, 3 * k])].T
        out[f"{name} coverage"] = float(np.mean((lowest <= value) & (value <= highest)))
        out[f"{name} rmse"] = float(np.sqrt(np.mean((estimate - value) ** 2)) / efficient)
        out[f"{name} width"] = float(np.mean(highest - lowest) / (2 * stats.norm.ppf(0.975) * efficient))
    return out


def pessimism_gains(gains: FloatArray) -> dict[str, Any]:
    """What is said of gains (n, 3), of the fits of FITTED: their means, shares below 0, and what pessimism adds.

    ``added`` is that to the plain fit, ``added to usual`` that to the fit with its usual ridge.
    """
    found = np.maximum(gains, LEAST_GAIN)
    return {
        "n": len(found),
        "gain": found.mean(axis=0),
        "worse": (gains < -1e-9).mean(axis=0),
        "added": student(found[:, 1] - found[:, 0]),
        "added to usual": student(found[:, 1] - found[:, 2]),
    }


def verdict_shares(verdicts: Sequence[str], truth: FloatArray) -> dict[str, float]:
    """Shares of verdicts; truth (n, 3): gain, its efficient standard error, the estimate."""
    found, gain = np.array(verdicts), truth[:, 0]
    wrong = ((found == "better") & (gain < 0)) | ((found == "worse") & (gain > 0))
    clear = np.abs(gain) > 3 * truth[:, 1]
    decided = found != "cannot say"
    return {
        "n": float(len(found)),
        "wrong": float(wrong.mean()),
        "right": float((decided & ~wrong).mean()),
        "cannot say": float((~decided).mean()),
        "clear": float(clear.sum()),
        "decided": float((decided & clear).sum() / max(clear.sum(), 1)),
    }


def criteria_values(found: Mapping[str, Any], sizes: Sequence[int]) -> dict[str, float]:
    """The number of every criterion that the design of this run has."""
    out = {
        f"evaluation {gamma:g}": float(np.mean(found["evaluation"][gamma][~found["rare"][sizes[-1], "small"]]))
        for gamma in DISCOUNTS
    }
    cells: Mapping[tuple[int, str], CellNumbers] = found["cells"]
    large = [(n, shift) for n, shift in cells if n >= 5_000]
    for (n, shift), cell in cells.items():
        out[f"coverage {n} {shift}"] = float(cell["coverage"][~found["rare"][n, shift]].mean())
    out["coverage worst"] = min(float(cells[key]["coverage"][~found["rare"][key]].min()) for key in large)
    for name in ("rmse", "width"):
        out[f"efficiency {name}"] = max(float(np.nanmedian(cells[key][name][~found["rare"][key]])) for key in large)
    out["null"] = float(np.mean(np.array(found["null"]) == "better"))
    for name, known in (("", "known"), (" unknown", "unknown")):
        out[f"verdicts wrong{name}"] = found["verdicts"][known]["wrong"]
        out[f"verdicts decided{name}"] = found["verdicts"][known]["decided"]
    for n in SELECTION_ROWS:
        out[f"selection worse {n}"] = float(np.mean(found["selection"][n] < -1e-9))
        out[f"selection gain {n}"] = float(found["selection"][n].mean())
    little, much = (found["pessimism"][share]["added"] for share in EXPLORATION)
    out["pessimism little"], out["pessimism much"] = little.mean, much.high
    return out


def judge_all(values: Mapping[str, float]) -> list[CriterionVerdict]:
    """Every criterion that has a value, in the order of the register."""
    return [CriterionVerdict(criterion, values[criterion.name]) for criterion in CRITERIA if criterion.name in values]
