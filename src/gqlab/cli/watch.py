"""``gqlab watch``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gqlab.cli.own_files import from_file
from gqlab.support import checks
from gqlab.support.plain_json import print_json
from gqlab.support.printable import say
from gqlab.support.words import counted


@dataclass(frozen=True)
class WatchFilm:
    """Watch what was learned: render episodes of a policy's best actions to a GIF or an MP4."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL.npz|FILE.py:NAME")]
    """A file that LinearQ.save, Agent.save or `gqlab train` wrote (model.npz, agent.npz), or a policy in a file of your
    own: a model, a function of observations, a table."""

    operator: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[FILE.py:NAME ...]", help_behavior_hint="")] = ()
    """The class of the model's target, where that is an operator of your own."""

    env: Annotated[str | None, tyro.conf.arg(metavar="ID", help_behavior_hint="")] = None
    """The environment. Default: the one that the file names."""

    episodes: int = 3
    """How many are played."""

    seed: int = 0
    """Of their first states."""

    fps: int = 30
    """Pictures a second; a GIF shows at most 50."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Where to write, a name that ends in .gif or .mp4. Default: beside the model, model.gif, or NAME.gif."""

    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the returns and lengths of the episodes as JSON."""


def watch(options: Annotated[WatchFilm, tyro.conf.arg(name="")]) -> None:
    """Render episodes of a learned policy to a GIF or an MP4, and print their returns."""
    from gqlab.learn.agent import render

    n = checks.integer("episodes", options.episodes, least=1, below=1000)
    fps = checks.integer("fps", options.fps, least=1, below=1000)
    seed = checks.integer("seed", options.seed, least=0, below=2**63)
    own = ".py:" in options.model
    file, name = options.model.rsplit(":", 1) if own else (options.model, "")
    out = options.out or (Path(file).with_name(f"{name}.gif") if own else Path(file).with_suffix(".gif"))
    ffmpeg = render.check_out(out)
    if not out.parent.is_dir():
        raise ValueError(f"out is {out}, whose folder is not there")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # no window, and no words about one
    if own:
        policy, recipe = from_file("model", options.model)[0], None
    else:
        operators = [from_file("operator", text)[0] for text in options.operator]
        policy, recipe = render.read_policy(Path(file), operators or None)
    env = render.rendered_env(options.env, recipe)
    try:
        frames, found = render.film(policy, env, n, seed)
    finally:
        env.close()
    render.write_film(frames, out, fps, ffmpeg)
    if options.json:
        print_json({"out": str(out), "returns": found.returns, "lengths": found.lengths, "pictures": len(frames)})
        return
    for k, (total, length) in enumerate(zip(found.returns, found.lengths, strict=True), 1):
        say(f"episode {k}: return {total:g} in {counted(length, 'step')}")
    say(f"Written to {out}: {len(frames)} pictures, {len(frames) / fps:.1f} s")
