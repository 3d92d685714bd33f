"""``gqlab rates``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gqlab.cli.study_options import StudyOptions
from gqlab.studies.rates.design import QUICK, RateSettings
from gqlab.studies.rates.rates import RatesStudy
from gqlab.studies.study import run_study
from gqlab.support import checks
from gqlab.support.plain_json import print_json

#: Where everything goes unless ``--out`` says otherwise; a quick version has other names there.
OUT = Path("results/rates")


@dataclass(frozen=True)
class RatesOptions(StudyOptions):
    """Measure how many samples Greedy-GQ and VR-Greedy-GQ need for ε on random Garnets."""

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """A tiny version of everything, to try the command; it writes rates-quick.html and so on."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for rates.html, .md, .json and .png, and for finished work. Default: results/rates."""

    seed: int = 0
    """Of the Garnets and the runs; the documentation's rates are those of 3, the reproduction's of 2026."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the numbers, as in rates.json, instead of the tables."""


def rates(options: Annotated[RatesOptions, tyro.conf.arg(name="")]) -> None:
    """Measure how many samples Greedy-GQ and VR-Greedy-GQ need for ε on random Garnets, beside what the theorems say.

    Finished work is kept: a second call, or one after Ctrl-C, does only what is missing.
    """
    seed, folder = checks.integer("seed", options.seed, least=0), options.out or OUT
    done = run_study(RatesStudy(QUICK if options.quick else RateSettings(), seed, options.quick), folder, options.how())
    if options.json:
        print_json(done.gathered.to_dict())
    else:
        print(f"{done.text}\n\nWritten to {folder}")
