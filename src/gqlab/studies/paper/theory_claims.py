"""The claims of the theory, from what ``gqlab rates`` wrote into the folder of the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gqlab.studies.paper.claims import THEORY_CLAIMS, Judged
from gqlab.studies.paper.statistics import Effect, Verdict

#: The file, and the names of the slopes in it.
FILE = "rates.json"
SLOPES = {
    "T1": ("slopes", "VR-Greedy-GQ less Greedy-GQ, tuned, paired"),
    "T2": ("floor_slopes", "M = 300 … 10000, η_θ = 0.02"),
}
#: T1 asks for two decades of ε.
DECADES = 100.0


def judge_theory(folder: Path, seed: int) -> tuple[tuple[Judged, ...], str]:
    """The verdicts, and what a reader should know where there are none."""
    run = f"gqlab rates --seed {seed} --out DIR"  # no name of a folder: verdicts do not depend on where they lie
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if found["quick"] or found["seed"] != seed:
            return (), f"{FILE} is of other problems (seed {found['seed']}): T1 and T2 come from `{run}`."
        family = next(f for f in found["families"] if f["name"] == "Garnet")
        fractions = found["settings"]["fractions"]
        if fractions[0] / fractions[-1] < DECADES:
            return (), f"{FILE} covers less than two decades of ε: T1 and T2 come from `{run}`."
        return tuple(_judge(claim.key, family) for claim in THEORY_CLAIMS), ""
    except FileNotFoundError:
        return (), f"T1 and T2 are shown once `{run}` has been run, DIR being the folder of this page."
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return (), f"{FILE} is not a file that gqlab rates of this version wrote: T1 and T2 come from `{run}`."


def _judge(key: str, family: dict[str, Any]) -> Judged:
    claim = next(claim for claim in THEORY_CLAIMS if claim.key == key)
    column, name = SLOPES[key]
    row = next(row for row in family[column] if row["name"] == name)
    effect = Effect(row["mean"], row["low"], row["high"])
    return Judged(claim, Verdict(claim.side.outcome(effect.low, effect.high), effect, row["n"]))
