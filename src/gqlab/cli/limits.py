"""``gqlab limits``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from gqlab.cli.study_options import StudyOptions
from gqlab.studies.limits.design import FULL, QUICK
from gqlab.studies.limits.study import LimitsStudy
from gqlab.studies.study import run_study

OUT = Path("results/limits")


def limits(options: Annotated[StudyOptions, tyro.conf.arg(name="")]) -> None:
    """Measure what samples allow: the efficiency bounds, an estimator that attains them, and the plug-in's theorem.

    limits.md and limits.json go to results/limits, or to --out. Finished work is kept: a second call, or one after
    Ctrl-C, does only what is missing.
    """
    folder = options.folder(OUT)
    command = "gqlab limits --quick" if options.quick else "gqlab limits"
    done = run_study(LimitsStudy(QUICK if options.quick else FULL, command), folder, options.how())
    if options.json:
        print((folder / "limits.json").read_text(encoding="utf-8"))
        return
    print(f"{done.text}\n\nWritten to {folder}: limits.md and limits.json")
