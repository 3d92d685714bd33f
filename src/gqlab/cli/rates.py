"""``gqlab rates``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gqlab.studies.rates.design import QUICK, RateSettings
from gqlab.studies.rates.rates import Rates
from gqlab.studies.study import How, run_study
from gqlab.support import checks
from gqlab.support.plain_json import print_json


def rates(
    *,
    out: Path = Path("results/rates"),
    quick: bool = False,
    seed: int = 0,
    engine: Literal["threads", "processes", "ray"] = "threads",
    workers: int | None = None,
    address: str | None = None,
    force: bool = False,
    json: bool = False,
) -> None:
    """Measure how many samples Greedy-GQ and VR-Greedy-GQ need for ε on random Garnets, beside what the theorems say.

    Finished work is kept: a second call, or one after Ctrl-C, does only what is missing.

    Args:
        out: Where the page, the tables, the numbers and the figure go: rates.html, rates.md, rates.json and rates.png.
        quick: A tiny version of everything, to try the command; it writes rates-quick.html and so on.
        seed: Of the Garnets and the runs; the documentation's rates are those of 3, the reproduction's of 2026.
        engine: Where the work is done: docs/scale.md.
        workers: How many tasks run at a time; default: one for each core.
        address: Of a Ray cluster to join.
        force: Start over: do again what is already finished.
        json: Print the numbers, as in rates.json, instead of the tables.
    """
    study = Rates(QUICK if quick else RateSettings(), checks.integer("seed", seed, least=0), quick)
    done = run_study(study, out, How(engine, workers, address, force, progress=True))
    if json:
        print_json(done.gathered.to_dict())
    else:
        print(f"{done.text}\n\nWritten to {out}")
