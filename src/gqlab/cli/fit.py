"""``gqlab fit``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from gqlab.cli.own_decision import OwnDecision
    from gqlab.data.transitions import Transitions
    from gqlab.learn.linear_q import LinearQ

from gqlab.cli.engine_options import EngineOptions, engine_from
from gqlab.cli.log_options import LogOptions, read_log
from gqlab.cli.own_files import named_kind
from gqlab.cli.run_folder import run_folder
from gqlab.support.plain_json import print_json
from gqlab.support.printable import say

#: Passes over the rows, where nothing else is said.
PASSES = 100


@dataclass(frozen=True)
class Fit(EngineOptions, LogOptions):
    """Learn action values from logged data. Finished passes are kept: the same command goes on after a kill."""

    encoder: Annotated[str, tyro.conf.arg(metavar="NAME:NUMBER,KEY=VALUE")] = "fourier:2"
    """The features, e.g. tiles:16,bins=8 or fourier:3. Bounds that are not given (low=-1/-2,high=1/2) are fitted to
    the data."""

    algorithm: Annotated[str, tyro.conf.arg(metavar="NAME|FILE.py:NAME")] = "VRGreedyGQ"
    """Any of gqlab but ActorCritic and PolicyGradient, which need more than a log: VRGreedyGQ, GreedyGQ,
    SAGAGreedyGQ, FittedQ, …; or one of your own, FILE.py:NAME."""

    eta: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """The step size of θ; features have a length of at most 1. Default: 0.1, or the algorithm's own."""

    eta_omega: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """The step size of ω. Default: that of θ, or the algorithm's own."""

    batch_size: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """The rows of a batch of VRGreedyGQ, the updates of an epoch of WholeDataVRGreedyGQ. Default: all, as many as
    there are rows."""

    ridge: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """Of FittedQ and LSPI. Default: 1e-4."""

    pessimism: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """Of FittedQ and LSPI: values are lower by so many standard deviations; 1 where a log hardly explores."""

    discount: float = 0.99
    """γ."""

    passes: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Over the rows. Default: 100; FittedQ, LSPI and LeastSquaresGreedyGQ solve for θ and make none."""

    env: Annotated[str | None, tyro.conf.arg(metavar="ID", help_behavior_hint="")] = None
    """A Gymnasium environment in which the greedy policy is played at the end."""

    episodes: int = 50
    """That it plays."""

    seed: int = 0
    """Of the order of the rows, of batches and of the episodes."""

    decide: Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(help_behavior_hint="")] = True
    """Do not ask whether the model is better than what runs now, which takes a second fit, to half of the episodes, and
    a decision by the other half."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for the model, its history, the figure and report.html. Default: a folder in results/fit, named by the
    log and by every option that makes another fit."""

    code: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE.py ...", help_behavior_hint="")] = ()
    """Files of your own that --config may name, as in algorithm = "FILE.py:NAME"."""

    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE.toml", help_behavior_hint="")] = None
    """A file with any of these options, as in: passes = 50. Those that are given here count, not the file's."""

    force: tyro.conf.FlagCreatePairsOff[bool] = False
    """Start over, whatever the folder holds."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print what was learned as JSON instead of sentences."""


def fit(options: Annotated[Fit, tyro.conf.arg(name="")]) -> None:
    """Learn action values from logged data, and report what was learned."""
    from gqlab.cli import fit_page
    from gqlab.encoders.specs import encoder_from_text
    from gqlab.learn.fit.fit import fit as learn
    from gqlab.learn.fit.fit import place_and_way
    from gqlab.support.files import check_writable, write_whole

    encoder = encoder_from_text(options.encoder)
    if options.out is None:
        name = Path(options.files[0]).stem if options.files else "log"
        options = replace(options, out=run_folder(Path("results/fit"), name, options))
    folder: Path = options.out  # type: ignore[assignment]
    engine = engine_from(options)
    data = read_log(options)
    algorithm = algorithm_of(options, data.n_rows)
    solves = place_and_way(data, algorithm, engine)[1].estimator is None

    def made_of(rows: Transitions, kept: str, **how: Any) -> LinearQ:
        return learn(
            rows,
            encoder,
            algorithm_of(options, rows.n_rows),
            discount=options.discount,
            n_passes=PASSES if options.passes is None and not solves else options.passes,
            seed=options.seed,
            checkpoint=None if solves else folder / kept,
            **how,
        )

    check_writable(folder)
    if options.force:
        for kept in ("passes.npz", "passes_half.npz"):
            (folder / kept).unlink(missing_ok=True)
    # Ray prints what happens to its workers on stdout, which is for the report.
    with contextlib.redirect_stdout(sys.stderr) if engine is not None else contextlib.nullcontext():
        model = made_of(data, "passes.npz", engine=engine)
    played = None if options.env is None else model.evaluate(options.env, options.episodes, seed=options.seed)
    model.save(folder / "model.npz")
    own = own_decision(options, data, lambda half: made_of(half, "passes_half.npz"))
    text = fit_page.page(model, algorithm, data, played, folder, own.lines)
    write_whole(folder / "report.html", lambda file: file.write(text.encode()))
    if options.json:
        evaluation = None if played is None else played._asdict()
        found = {"decision": None if own.decision is None else own.decision.to_dict(), "judged": own.lines}
        print_json({**model.metadata, "history": model.history, "evaluation": evaluation, **found, "out": folder})
        return
    say("\n".join([*own.lines, *fit_page.summary(model, played)]))
    say(f"Written to {folder}: report.html, model.npz, history.csv, history.png and .svg")


def own_decision(options: Fit, data: Transitions, learn: Callable[[Transitions], LinearQ]) -> OwnDecision:
    """Whether such a model is better than what runs now; no word of it where nobody asks."""
    from gqlab.cli.own_decision import OwnDecision, judged, unjudged

    if not options.decide:
        return OwnDecision([])
    if options.engine is not None:
        return unjudged(
            "workers share files as they stand, and half of the episodes are none; gqlab select judges fits"
        )
    return judged(data, learn, options.discount, options.seed)


def algorithm_of(options: Fit, n_rows: int) -> Any:
    """The algorithm of that name, with the numbers that it takes."""
    from gqlab.algorithms import ALGORITHMS
    from gqlab.estimators.needs import Need
    from gqlab.learn.fit.fit import MEMORY

    known = {name: kind for name, kind in ALGORITHMS.items() if MEMORY.takes(kind)}
    kind: Any = named_kind(options.algorithm, known)
    takes = {field.name: field.default for field in fields(kind)}
    size = "epoch_updates" if "epoch_updates" in takes else "batch_size"
    given = {
        "eta_theta": options.eta,
        "eta_omega": options.eta_omega,
        size: options.batch_size,
        "ridge": options.ridge,
        "pessimism": options.pessimism,
    }
    for name, value in given.items():
        if value is not None and name not in takes:
            raise ValueError(f"{name} is {value}, which {kind.__name__} does not take")
    # Step sizes for features of length 1; where an algorithm has defaults of its own they stay.
    eta = 0.1 if options.eta is None else options.eta
    usual = {name: eta for name in ("eta_theta", "eta_omega") if takes.get(name) is not None}
    if kind().ways[0].needs in ({Need.BATCH}, {Need.WHOLE_MEAN}):
        usual[size] = n_rows
    chosen = {**usual, **{name: value for name, value in given.items() if value is not None}}
    return kind(**{name: value for name, value in chosen.items() if name in takes})
