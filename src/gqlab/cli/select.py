"""``gqlab select``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from gqlab.cli.judging import PAGE, RECORD, JudgeOptions, check_unwritten, write_decision
from gqlab.cli.log_options import read_log
from gqlab.support.plain_json import print_json
from gqlab.support.printable import say

#: The choice, where one is better than what runs now.
MODEL = "model.npz"


@dataclass(frozen=True)
class SelectOptions(JudgeOptions):
    """Fit candidates to one part of a log's episodes, judge them by the other, and keep what runs now unless sure."""

    candidates: Annotated[Path | None, tyro.conf.arg(metavar="FILE.toml", help_behavior_hint="")] = None
    """The candidates, a table for each: [careful], then algorithm = "FittedQ" and its parameters, such as ridge = 1e-3;
    encoder = "tiles:8,bins=6" and passes = 20 where they are its own."""

    encoder: Annotated[str, tyro.conf.arg(metavar="NAME:NUMBER,KEY=VALUE")] = "fourier:2"
    """The features of candidates that have none of their own. Bounds that are not given are fitted to the data."""

    discount: float = 0.99
    """γ."""

    split: float = 0.5
    """The share of the episodes that candidates are fitted to; the others judge."""

    refit: tyro.conf.FlagCreatePairsOff[bool] = False
    """Fit the choice again, to all episodes, for the model that is saved. What is claimed remains a claim of the fit to
    a part of them."""

    seed: int = 0
    """Of the split, of fits and of the trees."""

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results/select")
    """The folder for the chosen model, decision.json, the picture and report.html."""


def select(options: Annotated[SelectOptions, tyro.conf.arg(name="")]) -> None:
    """Fit candidates to one part of a log's episodes, judge them by the other, and keep what runs now unless sure."""
    from gqlab.cli.candidates import read_candidates
    from gqlab.encoders.specs import encoder_from_text
    from gqlab.judge.selecting import select as choose

    if options.candidates is None:
        raise ValueError("--candidates: no file is given, expected a TOML file")
    candidates = read_candidates(options.candidates)
    encoder = encoder_from_text(options.encoder)
    how = options.how
    check_unwritten(options.out, options.force, MODEL)
    data = read_log(options)
    found = choose(
        data, candidates, encoder, options.discount, options.split, refit=options.refit, seed=options.seed, **how
    )
    record = found.to_dict() | {"candidates": {name: repr(one.algorithm) for name, one in candidates.items()}}
    _write_model(found.model, options.out)
    write_decision(record, found.decision, options.out, [found.sentence, *found.notes], _facts(candidates, options))
    if options.json:
        print_json(record | {"out": options.out})
        return
    say(found.table)
    files = [*([] if found.model is None else [MODEL]), PAGE, RECORD]
    pictures = "" if found.decision is None else ", gains.png and .svg"
    say(f"\nWritten to {options.out}: {', '.join(files)}{pictures}")


def _write_model(model: Any, folder: Path) -> None:
    """The chosen model; none of an earlier choice is left beside a decision that chose nothing."""
    if model is None:
        (folder / MODEL).unlink(missing_ok=True)
    else:
        model.save(folder / MODEL)


def _facts(candidates: Any, options: SelectOptions) -> list[tuple[str, str]]:
    """How each candidate was fitted."""
    from gqlab.cli.pages import written

    facts = [(f"candidate {name}", _described(one, written)) for name, one in candidates.items()]
    share = f"{100 * options.split:g} % of the episodes; the others judged"
    return [("fitted to", share), ("encoder", options.encoder), *facts]


def _described(one: Any, written: Any) -> str:
    own = "" if one.encoder is None else f", with {written(one.encoder)}"
    passes = "" if one.n_passes is None else f", {one.n_passes} passes"
    return f"{one.algorithm!r}{own}{passes}"
