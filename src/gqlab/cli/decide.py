"""``gqlab decide``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from gqlab.cli.log_options import LogOptions, read_log
from gqlab.support.plain_json import print_json

#: What the command writes, beside the picture.
RECORD, PAGE = "decision.json", "report.html"


@dataclass(frozen=True)
class DecideOptions(LogOptions):
    """Say whether policies are better than what runs now, by a log of it."""

    models: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="MODEL...", help_behavior_hint="")] = ()
    """Saved models, as gqlab fit and gqlab train write them. Each is named by its file, or by its folder where the file
    is called model.npz."""

    discount: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """γ. Default: that of the models, where they agree."""

    features: Annotated[str, tyro.conf.arg(metavar="trees|tabular|NAME:NUMBER,KEY=VALUE")] = "trees"
    """What values are linear in: leaves of random trees; tabular, where observations are discrete; or an encoder such
    as tiles:8,bins=6."""

    baseline: str = "log"
    """What gains are over: log, what runs now; or the name of a model."""

    confidence: float = 0.95
    """Of intervals and verdicts."""

    reward_range: Annotated[tuple[float, float] | None, tyro.conf.arg(metavar="LEAST MOST", help_behavior_hint="")] = (
        None
    )
    """What rewards can be, where the log may not have seen all of it. Default: what the log has seen."""

    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[wpdis|dr|wdr ...]", help_behavior_hint="")] = ()
    """Further estimates of the values, for comparison; they need the probabilities of the actions taken."""

    seed: int = 0
    """Of the trees."""

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results/decide")
    """The folder for decision.json, the picture and report.html."""

    force: tyro.conf.FlagCreatePairsOff[bool] = False
    """Replace a decision that is in the folder."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the decision as JSON instead of the table."""


def decide(options: Annotated[DecideOptions, tyro.conf.arg(name="")]) -> None:
    """Say whether policies are better than what runs now, by a log of it."""
    from gqlab.encoders.specs import encoder_from_text
    from gqlab.judge.deciding import decide as judge

    if not options.models:
        raise ValueError("--models: none is given, expected files such as model.npz")
    models = read_models(options.models)
    features: Any = options.features
    if features not in ("trees", "tabular"):
        features = encoder_from_text(features)
    check_unwritten(options.out, options.force)
    data = read_log(options)
    decision = judge(
        data,
        models,
        common_discount(models) if options.discount is None else options.discount,
        features=features,
        baseline=options.baseline,
        methods=("solve", *options.methods),
        confidence=options.confidence,
        reward_range=options.reward_range,
        seed=options.seed,
    )
    write_decision(decision, options.out)
    if options.json:
        print_json(decision.to_dict() | {"out": options.out})
        return
    print(decision.table)
    print(f"\nWritten to {options.out}: {PAGE}, {RECORD}, gains.png and .svg")


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
            if str(error).startswith("encoder is missing"):
                raise ValueError(
                    f"{path} was saved with a transformer that no file can bring back: decide in Python, "
                    "with gqlab.LinearQ.load(path, encoder=...)"
                ) from None
            named = str(error) if str(path) in str(error) else f"{path} is no model, or damaged: {error}"
            raise ValueError(named) from None
    return models


def common_discount(models: dict[str, Any]) -> float:
    """The discount of all models."""
    found = {model.discount for model in models.values()}
    if len(found) > 1:
        listed = ", ".join(f"{value:g}" for value in sorted(found))
        raise ValueError(f"--discount is needed: the models were fitted with different ones, {listed}")
    return float(found.pop())


def check_unwritten(folder: Path, force: bool) -> None:
    """``ValueError`` where a decision would be overwritten."""
    from gqlab.support.files import check_writable

    if (folder / RECORD).exists() and not force:
        raise ValueError(
            f"{folder} holds a decision already: name another folder with --out, or replace it with --force"
        )
    check_writable(folder)


def write_decision(decision: Any, folder: Path) -> None:
    """The record, the picture and the page."""
    import json

    from gqlab.cli.decide_page import page
    from gqlab.support.files import write_whole
    from gqlab.support.plain_json import plain

    text = page(decision, folder)
    record = json.dumps(plain(decision.to_dict()), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    write_whole(folder / PAGE, lambda file: file.write(text.encode()))
    write_whole(folder / RECORD, lambda file: file.write(record.encode()))
