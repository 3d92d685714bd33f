"""``gqlab decide``."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from gqlab.cli.engine_options import EngineOptions, engine_from
from gqlab.cli.judging import PAGE, RECORD, JudgeOptions, check_unwritten, write_decision
from gqlab.cli.log_options import read_log
from gqlab.support.plain_json import print_json
from gqlab.support.printable import say


@dataclass(frozen=True)
class DecideOptions(EngineOptions, JudgeOptions):
    """Say whether policies are better than what runs now, by a log of it."""

    models: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="MODEL...", help_behavior_hint="")] = ()
    """Saved models, as gqlab fit and gqlab train write them. Each is named by its file, or by its folder where the file
    is called model.npz."""

    discount: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """γ. Default: that of the models, where they agree."""

    baseline: str = "log"
    """What gains are over: log, what runs now; or the name of a model."""

    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[wpdis|dr|wdr ...]", help_behavior_hint="")] = ()
    """Further estimates of the values, for comparison; they need the probabilities of the actions taken."""

    seed: int = 0
    """Of the trees."""

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results/decide")
    """The folder for decision.json, the picture and report.html."""


def decide(options: Annotated[DecideOptions, tyro.conf.arg(name="")]) -> None:
    """Say whether policies are better than what runs now, by a log of it."""
    from gqlab.judge.deciding import decide as judge

    if not options.models:
        raise ValueError("--models: none is given, expected files such as model.npz")
    models = read_models(options.models)
    how, engine = options.how, engine_from(options)
    check_unwritten(options.out, options.force)
    # Ray prints what happens to its workers on stdout, which is for the table.
    with contextlib.redirect_stdout(sys.stderr) if engine is not None else contextlib.nullcontext():
        decision = judge(
            read_log(options),
            models,
            common_discount(models) if options.discount is None else options.discount,
            baseline=options.baseline,
            methods=("solve", *options.methods),
            seed=options.seed,
            engine=engine,
            **how,
        )
    write_decision(decision.to_dict(), decision, options.out, [decision.sentence])
    if options.json:
        print_json(decision.to_dict() | {"out": options.out})
        return
    say(decision.table)
    say(f"\nWritten to {options.out}: {PAGE}, {RECORD}, gains.png and .svg")


def read_models(paths: tuple[Path, ...]) -> dict[str, Any]:
    """Saved models by their names."""
    from gqlab.learn.linear_q import LinearQ

    models: dict[str, Any] = {}
    for path in paths:
        name = path.resolve().parent.name if path.name == "model.npz" else path.stem
        if name in models:
            raise ValueError(f"--models: two are called {name!r}; give them names of their own")
        try:
            models[name] = LinearQ.load(path)
        except ValueError as error:
            if str(error).startswith(f"{path}: encoder is missing"):
                raise ValueError(
                    f"{path} was saved with a transformer that no file can bring back: decide in Python, "
                    "with gqlab.LinearQ.load(path, encoder=...)"
                ) from None
            raise
    return models


def common_discount(models: dict[str, Any]) -> float:
    """The discount of all models."""
    found = {model.discount for model in models.values()}
    if len(found) > 1:
        listed = ", ".join(f"{value:g}" for value in sorted(found))
        raise ValueError(f"--discount is needed: the models were fitted with different ones, {listed}")
    return float(found.pop())
