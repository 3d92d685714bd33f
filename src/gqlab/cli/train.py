"""``gqlab train``."""

from __future__ import annotations

import math
import shutil
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gqlab.cli.env_options import EnvOptions, env_plan
from gqlab.cli.own_files import named_kind
from gqlab.cli.replay_options import ReplayOptions, replay_of
from gqlab.cli.run_folder import run_folder
from gqlab.support import checks
from gqlab.support.plain_json import print_json
from gqlab.support.printable import say
from gqlab.support.words import counted

if TYPE_CHECKING:
    from gqlab.learn.agent.presets import Preset


#: How long it learns, and the steps between two checkpoints: without replay and with it.
STEPS, EVERY = (100_000, 20_000), (10_000, 1_000)


@dataclass(frozen=True)
class _Train:
    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """The id of an environment with discrete actions, such as MountainCar-v0; module:ID or FILE.py:ID where a module or
    a file of your own registers it."""

    encoder: Annotated[str | None, tyro.conf.arg(metavar="NAME:NUMBER,KEY=VALUE", help_behavior_hint="")] = None
    """The features, e.g. tiles:16,bins=8 or fourier:3; bounds that are not given (low=-1/-2,high=1/2) are those of
    the environment. Default: the environment's preset, or a table where observations are discrete, or tiles over all
    numbers and pairs of numbers."""

    algorithm: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE.py:NAME", help_behavior_hint="")] = None
    """Sarsa, QLearning, QRC, GreedyGQ, VRGreedyGQ, AveragedGreedyGQ or STORMGreedyGQ; with --replay the first five,
    SAGAQLearning or SAGAGreedyGQ; or FILE.py:NAME, one of your own. Default: the preset's, or
    Sarsa, or SAGAQLearning with --replay."""

    eta: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """The step size of θ; features have length 1. Default: 0.25."""

    eta_omega: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """The step size of ω, for QRC and the algorithms of Greedy-GQ. Default: that of θ for QRC, otherwise a tenth of
    it."""

    trace: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """λ of the traces. Default: 0.9; VRGreedyGQ has none, nor has anything with --replay."""

    batch_size: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """The steps of a batch of VRGreedyGQ. Default: 500."""

    discount: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """γ. Default: the preset's, or 0.99."""

    epsilon: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """The share of actions at random; it falls to 0 over all steps. Default: 0.1, or as the preset with --replay has
    it."""

    initial_value: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """What all action values are at first: an optimistic one explores. Default: the preset's, or 0."""

    steps: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """How long it learns. Default: 100,000, or 20,000 with --replay."""

    seed: int = 0
    """Of everything; with --seeds the first."""

    seeds: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Learn with so many seeds, each in a process of its own, and report the interquartile mean with its interval."""

    workers: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """With --seeds: processes at a time. Default: one for each core."""

    every: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Steps between two checkpoints, each with an evaluation of the greedy policy. Default: 10,000, or 1,000 with
    --replay."""

    threshold: Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")] = None
    """The mean return from which on the environment counts as solved. Default: what Gymnasium says of it."""

    episodes: int = 50
    """Of the evaluation at the end; those on the way have a fifth of them."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for the model, the agent, its log, the learning curve and report.html. Default: a folder in
    results/train, named by the environment and by every option that makes another run."""

    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE.toml", help_behavior_hint="")] = None
    """A file with any of these options, as in: steps = 50_000. Those that are given here count, not the file's."""

    force: tyro.conf.FlagCreatePairsOff[bool] = False
    """Start over, whatever the folder holds."""

    quiet: tyro.conf.FlagCreatePairsOff[bool] = False
    """No progress bar."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print what was reached as JSON instead of a sentence."""


@dataclass(frozen=True)
class Train(EnvOptions, ReplayOptions, _Train):
    """Learn in a Gymnasium environment. Finished steps are kept: the same command resumes after Ctrl-C or a kill."""


def train(options: Annotated[Train, tyro.conf.arg(name="")]) -> None:
    """Learn in a Gymnasium environment, and report what was learned."""
    from gqlab.cli import train_page
    from gqlab.learn.agent.train import read_history, solved_after
    from gqlab.learn.agent.train import train as learn
    from gqlab.support.files import write_whole

    plan = plan_of(options)
    base = Path("results/train")
    if options.seeds is not None:
        return train_seeds(
            options, plan, options.out or run_folder(base, f"{plan.env}-seeds", options, frozenset({"seed"}))
        )
    if options.workers is not None:
        raise ValueError(f"workers is {options.workers}, which is for --seeds")
    folder = options.out or run_folder(base, plan.env, options)
    agent, found = learn(plan, folder, not options.quiet, options.force)
    if agent.epsilon != plan.epsilon:
        note = f"gqlab train: this run was begun with exploration until step {agent.epsilon.over:,.0f}, and kept it"
        print(note, file=sys.stderr)
    history = read_history(folder)
    svg = train_page.write_curve(agent, history, folder)
    text = train_page.page(agent, plan, found, history, svg)
    write_whole(folder / "report.html", lambda file: file.write(text.encode()))
    steps, n = agent.num_timesteps, len(found.returns)
    solved = solved_after(plan, history)
    if options.json:
        reached = {"threshold": plan.threshold, "steps_to_threshold": solved if solved < math.inf else None}
        about = {"env": plan.env, "steps": steps, "evaluation": found._asdict(), "history": history}
        print_json({**about, **reached, "out": folder})
        return
    say(f"{plan.env}: mean return {found.mean:.1f} over {counted(n, 'episode')} after {counted(steps, 'step')}")
    if plan.threshold is not None:
        print(train_page.solved_words(plan, solved))
    say(f"Written to {folder}: report.html, model.npz, agent.npz, progress.csv, curve.png and .svg")


def train_seeds(options: Train, plan: Any, folder: Path) -> None:
    """Learn with several seeds, and report what they reached together."""
    from gqlab.cli import seeds_page
    from gqlab.learn.agent.many import folder_of, learn_seeds
    from gqlab.support.files import check_writable, write_whole
    from gqlab.tasks import Processes

    n = checks.integer("seeds", options.seeds, least=1, below=2**20)
    seeds = [options.seed + k for k in range(n)]
    check_writable(folder)
    if options.force:
        for seed in seeds:
            shutil.rmtree(folder_of(folder, seed), ignore_errors=True)
    progress = None if not options.quiet else False
    found = learn_seeds(plan, seeds, folder, Processes(options.workers), progress, tuple(map(str, code_of(options))))
    text = seeds_page.page(found, plan, folder)
    write_whole(folder / "report.html", lambda file: file.write(text.encode()))
    if options.json:
        print_json({**found.to_dict(), "out": folder})
        return
    print(
        f"{found.sentence}\nWritten to {folder}: report.html, seeds.csv, curve.png and .svg, and a folder for each seed"
    )


def code_of(options: Train) -> list[Path]:
    """The files of the user's own that a worker has to run first."""
    named = [text.rpartition(":")[0] for text in (options.env, options.algorithm or "")]
    return [*options.code, *(Path(path) for path in named if path.endswith(".py"))]


def plan_of(options: Train) -> Any:
    """What the options ask for, with the preset's values for what is not given."""
    from gqlab.learn.agent.presets import PRESETS, REPLAYING_PRESETS
    from gqlab.learn.agent.train import Plan

    world = env_plan(options.env, options)
    preset = (REPLAYING_PRESETS if options.replay else PRESETS).get(world.id)
    numbers = (options.eta, options.eta_omega, options.trace, options.batch_size)
    plain = options.algorithm is None and all(number is None for number in numbers)
    steps, every = (
        kinds[options.replay] if given is None else given
        for kinds, given in ((STEPS, options.steps), (EVERY, options.every))
    )
    steps = checks.integer("steps", steps, least=1, below=2**48)
    return Plan(
        env=world.id,
        env_kwargs=world.kwargs,
        wrappers=world.wrappers,
        encoder=_encoder(options, preset),
        algorithm=preset.algorithm if preset is not None and plain else algorithm_of(options),
        discount=_first_given(options.discount, preset and preset.discount, 0.99),
        epsilon=_exploration(options, preset, steps),
        seed=options.seed,
        steps=steps,
        every=checks.integer("every", every, least=1, below=2**48),
        n_episodes=checks.integer("episodes", options.episodes, least=1, below=2**31),
        replay=replay_of(options, preset),
        initial_value=_first_given(options.initial_value, preset and preset.initial_value, 0.0),
        threshold=world.threshold if options.threshold is None else checks.number("threshold", options.threshold),
    )


def _first_given(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _exploration(options: Train, preset: Preset | None, steps: int) -> Any:
    from gqlab.learn.agent.train import usual_exploration

    if options.replay and preset is not None and options.epsilon is None:
        return preset.epsilon
    return usual_exploration(steps, 0.1 if options.epsilon is None else options.epsilon)


def _encoder(options: Train, preset: Preset | None) -> Any:
    """What is asked for, or the preset's; None: the agent chooses."""
    from gqlab.encoders.specs import encoder_from_text

    if options.encoder is not None:
        return encoder_from_text(options.encoder)
    return None if preset is None else preset.encoder


def algorithm_of(options: Train) -> Any:
    """The algorithm of that name, with the numbers that it takes."""
    from gqlab.algorithms import ALGORITHMS
    from gqlab.learn.agent.core import AGENT
    from gqlab.learn.agent.replay import is_over_kept

    takes_it = is_over_kept if options.replay else AGENT.takes
    known = {name: kind for name, kind in ALGORITHMS.items() if takes_it(kind)}
    default = "SAGAQLearning" if options.replay else "Sarsa"
    kind: Any = named_kind(options.algorithm or default, known)
    takes = {field.name for field in fields(kind)}
    eta = 0.25 if options.eta is None else options.eta
    defaults: dict[str, Any] = {
        "eta_theta": eta,
        "eta_omega": eta if kind.__name__ == "QRC" else eta / 10,
        "trace": 0.0 if options.replay else 0.9,
        "batch_size": 500,
    }
    given = {"eta_omega": options.eta_omega, "trace": options.trace, "batch_size": options.batch_size}
    for name, value in given.items():
        if value is not None and name not in takes:
            raise ValueError(f"{name} is {value}, which {kind.__name__} does not take")
    chosen = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    return kind(**{name: value for name, value in chosen.items() if name in takes})
