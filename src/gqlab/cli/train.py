"""``gqlab train``."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gqlab.cli.replay_options import ReplayOptions, replay_of
from gqlab.support import checks
from gqlab.support.plain_json import print_json
from gqlab.support.printable import say

if TYPE_CHECKING:
    from gqlab.learn.agent.presets import Preset


#: How long it learns, and the steps between two checkpoints: without replay and with it.
STEPS, EVERY = (100_000, 20_000), (10_000, 1_000)


@dataclass(frozen=True)
class _Train:
    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """The id of an environment with discrete actions, such as MountainCar-v0."""

    encoder: Annotated[str | None, tyro.conf.arg(metavar="NAME:NUMBER,KEY=VALUE", help_behavior_hint="")] = None
    """The features, e.g. tiles:16,bins=8 or fourier:3; bounds that are not given (low=-1/-2,high=1/2) are those of
    the environment. Default: the environment's preset, or one-hot where observations are discrete."""

    algorithm: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """Sarsa, QLearning, QRC, GreedyGQ, VRGreedyGQ, AveragedGreedyGQ or STORMGreedyGQ; with --replay the first five,
    SAGAQLearning or SAGAGreedyGQ. Default: the preset's, or Sarsa, or SAGAQLearning with --replay."""

    eta: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The step size of θ; features have length 1. Default: 0.25."""

    eta_omega: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The step size of ω, for QRC and the algorithms of Greedy-GQ. Default: that of θ for QRC, otherwise a tenth of
    it."""

    trace: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """λ of the traces. Default: 0.9; VRGreedyGQ has none, nor has anything with --replay."""

    batch_size: Annotated[int | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The steps of a batch of VRGreedyGQ. Default: 500."""

    discount: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """γ. Default: the preset's, or 0.99."""

    epsilon: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The share of actions at random; it falls to 0 over all steps. Default: 0.1, or as the preset with --replay has
    it."""

    initial_value: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """What all action values are at first: an optimistic one explores. Default: the preset's, or 0."""

    steps: Annotated[int | None, tyro.conf.arg(help_behavior_hint="")] = None
    """How long it learns. Default: 100,000, or 20,000 with --replay."""

    seed: int = 0
    """Of everything."""

    every: Annotated[int | None, tyro.conf.arg(help_behavior_hint="")] = None
    """Steps between two checkpoints, each with an evaluation of the greedy policy. Default: 10,000, or 1,000 with
    --replay."""

    threshold: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The mean return from which on the environment counts as solved. Default: what Gymnasium says of it."""

    episodes: int = 50
    """Of the evaluation at the end; those on the way have a fifth of them."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for the model, the agent, its log, the learning curve and report.html. Default: results/train/ENV."""

    quiet: tyro.conf.FlagCreatePairsOff[bool] = False
    """No progress bar."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print what was reached as JSON instead of a sentence."""


@dataclass(frozen=True)
class Train(ReplayOptions, _Train):
    """Learn in a Gymnasium environment. Finished steps are kept: the same command resumes after Ctrl-C or a kill."""


def train(options: Annotated[Train, tyro.conf.arg(name="")]) -> None:
    """Learn in a Gymnasium environment, and report what was learned."""
    from gqlab.cli import train_page
    from gqlab.learn.agent.train import read_history, solved_after
    from gqlab.learn.agent.train import train as learn
    from gqlab.support.files import write_whole

    plan = plan_of(options)
    folder = options.out or Path("results/train") / plan.env.replace("/", "-")
    agent, found = learn(plan, folder, not options.quiet)
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
    say(f"{plan.env}: mean return {found.mean:.1f} over {n} episodes after {steps:,} steps")
    if plan.threshold is not None:
        print(train_page.solved_words(plan, solved))
    say(f"Written to {folder}: report.html, model.npz, agent.npz, progress.csv, curve.png and .svg")


def plan_of(options: Train) -> Any:
    """What the options ask for, with the preset's values for what is not given."""
    from gqlab.learn.agent.presets import PRESETS, REPLAYING_PRESETS
    from gqlab.learn.agent.train import Plan

    known = REPLAYING_PRESETS if options.replay else PRESETS
    preset = known.get(options.env)
    numbers = (options.eta, options.eta_omega, options.trace, options.batch_size)
    plain = options.algorithm is None and all(number is None for number in numbers)
    steps, every = (
        kinds[options.replay] if given is None else given
        for kinds, given in ((STEPS, options.steps), (EVERY, options.every))
    )
    steps = checks.integer("steps", steps, least=1, below=2**48)
    return Plan(
        env=options.env,
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
        threshold=_threshold(options),
    )


def _first_given(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _exploration(options: Train, preset: Preset | None, steps: int) -> Any:
    from gqlab.algorithms.schedules import LinearDecay

    if options.replay and preset is not None and options.epsilon is None:
        return preset.epsilon
    epsilon = 0.1 if options.epsilon is None else options.epsilon
    return LinearDecay(checks.number("epsilon", epsilon, least=0, most=1), 0.0, over=steps)


def _threshold(options: Train) -> float | None:
    """What was given, or what Gymnasium says of the environment."""
    import gymnasium

    if options.threshold is not None:
        return checks.number("threshold", options.threshold)
    spec = gymnasium.registry.get(options.env)
    return None if spec is None or spec.reward_threshold is None else float(spec.reward_threshold)


def _encoder(options: Train, preset: Preset | None) -> Any:
    from gqlab.encoders import OneHot
    from gqlab.encoders.specs import encoder_from_text
    from gqlab.learn.environments import make_env, single_spaces

    if options.encoder is not None:
        return encoder_from_text(options.encoder)
    if preset is not None:
        return preset.encoder
    env = make_env(options.env)
    flat, _ = single_spaces(env)
    env.close()
    if not flat.whole.all():
        raise ValueError(f"encoder is missing: {options.env} has no preset; try --encoder tiles:16,bins=8")
    return OneHot()


def algorithm_of(options: Train) -> Any:
    """The algorithm of that name, with the numbers that it takes."""
    from gqlab.algorithms import ALGORITHMS
    from gqlab.learn.agent.core import AGENT
    from gqlab.learn.agent.replay import is_over_kept

    takes_it = is_over_kept if options.replay else AGENT.takes
    known = {name: kind for name, kind in ALGORITHMS.items() if takes_it(kind)}
    default = "SAGAQLearning" if options.replay else "Sarsa"
    kind: Any = known[checks.one_of("algorithm", options.algorithm or default, known)]
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
