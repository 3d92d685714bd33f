"""``gqlab train``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from gqlab.support import checks
from gqlab.support.plain_json import print_json


@dataclass(frozen=True)
class Train:
    """Learn in a Gymnasium environment. Finished steps are kept: the same command resumes after Ctrl-C or a kill."""

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """The id of an environment with discrete actions, such as MountainCar-v0."""

    encoder: Annotated[str | None, tyro.conf.arg(metavar="NAME:NUMBER,KEY=VALUE", help_behavior_hint="")] = None
    """The features, e.g. tiles:16,bins=8 or fourier:3; bounds that are not given (low=-1/-2,high=1/2) are those of
    the environment. Default: the environment's preset, or one-hot where observations are discrete."""

    algorithm: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """Sarsa, QLearning, QRC, GreedyGQ, VRGreedyGQ, AveragedGreedyGQ or STORMGreedyGQ. Default: the preset's, or
    Sarsa."""

    eta: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The step size of θ; features have length 1. Default: 0.25."""

    eta_omega: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The step size of ω, for QRC, GreedyGQ and VRGreedyGQ. Default: that of θ for QRC, otherwise a tenth of it."""

    trace: Annotated[float | None, tyro.conf.arg(help_behavior_hint="")] = None
    """λ of the traces. Default: 0.9; VRGreedyGQ has none."""

    batch_size: Annotated[int | None, tyro.conf.arg(help_behavior_hint="")] = None
    """The steps of a batch of VRGreedyGQ. Default: 500."""

    discount: float = 0.99
    """γ."""

    epsilon: float = 0.1
    """The share of actions at random; it falls to 0 over all steps."""

    steps: int = 100_000
    """How long it learns."""

    seed: int = 0
    """Of everything."""

    every: int = 10_000
    """Steps between two checkpoints, each with an evaluation of the greedy policy."""

    episodes: int = 50
    """Of the evaluation at the end; those on the way have a fifth of them."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """The folder for the model, the agent, its log, the learning curve and report.html. Default: results/train/ENV."""

    quiet: tyro.conf.FlagCreatePairsOff[bool] = False
    """No progress bar."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print what was reached as JSON instead of a sentence."""


def train(options: Annotated[Train, tyro.conf.arg(name="")]) -> None:
    """Learn in a Gymnasium environment, and report what was learned."""
    from gqlab.cli import train_page
    from gqlab.learn.agent.train import read_history
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
    if options.json:
        print_json({"env": plan.env, "steps": steps, "evaluation": found._asdict(), "history": history, "out": folder})
        return
    print(f"{plan.env}: mean return {found.mean:.1f} over {n} episodes after {steps:,} steps")
    print(f"Written to {folder}: report.html, model.npz, agent.npz, progress.csv, curve.png and .svg")


def plan_of(options: Train) -> Any:
    """What the options ask for, with the preset's values for what is not given."""
    from gqlab.algorithms.schedules import LinearDecay
    from gqlab.learn.agent.presets import ALGORITHMS, preset_of
    from gqlab.learn.agent.train import Plan

    steps = checks.integer("steps", options.steps, least=1, below=2**48)
    preset = preset_of(options.env) if options.env in ALGORITHMS else None
    numbers = (options.eta, options.eta_omega, options.trace, options.batch_size)
    plain = options.algorithm is None and all(number is None for number in numbers)
    return Plan(
        env=options.env,
        encoder=_encoder(options, preset),
        algorithm=preset["algorithm"] if preset is not None and plain else algorithm_of(options),
        discount=options.discount,
        epsilon=LinearDecay(checks.number("epsilon", options.epsilon, least=0, most=1), 0.0, over=steps),
        seed=options.seed,
        steps=steps,
        every=checks.integer("every", options.every, least=1, below=2**48),
        n_episodes=checks.integer("episodes", options.episodes, least=1, below=2**31),
    )


def _encoder(options: Train, preset: dict[str, Any] | None) -> Any:
    from gqlab.encoders import OneHot
    from gqlab.encoders.specs import encoder_from_text
    from gqlab.learn.environments import make_env, single_spaces

    if options.encoder is not None:
        return encoder_from_text(options.encoder)
    if preset is not None:
        return preset["encoder"]
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

    known = {name: kind for name, kind in ALGORITHMS.items() if AGENT.takes(kind)}
    kind: Any = known[checks.one_of("algorithm", options.algorithm or "Sarsa", known)]
    takes = {field.name for field in fields(kind)}
    eta = 0.25 if options.eta is None else options.eta
    defaults: dict[str, Any] = {
        "eta_theta": eta,
        "eta_omega": eta if kind.__name__ == "QRC" else eta / 10,
        "trace": 0.9,
        "batch_size": 500,
    }
    given = {"eta_omega": options.eta_omega, "trace": options.trace, "batch_size": options.batch_size}
    for name, value in given.items():
        if value is not None and name not in takes:
            raise ValueError(f"{name} is {value}, which {kind.__name__} does not take")
    chosen = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    return kind(**{name: value for name, value in chosen.items() if name in takes})
