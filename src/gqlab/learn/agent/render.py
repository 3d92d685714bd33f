"""A learned policy at work, as pictures: episodes rendered by Gymnasium, written as GIF or MP4."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gqlab.learn.agent.saved import FORMAT as AGENT
from gqlab.learn.environments import env_of, make_env
from gqlab.learn.linear_q import FORMAT, LinearQ
from gqlab.learn.playing import Evaluation, play
from gqlab.operators import Operator
from gqlab.support import checks
from gqlab.support.files import one_line, read_arrays, write_whole

#: Pictures are made no wider than this: a minute of film stays a file that one can send.
WIDTH = 400

#: Colours of a GIF; the environments' drawings have a few dozen.
COLOURS = 64

SUFFIXES = (".gif", ".mp4")


def read_policy(path: Path, operators: Sequence[type[Operator]] | None = None) -> tuple[LinearQ, dict[str, Any] | None]:
    """The model in a file that a LinearQ or an Agent saved, and how its environment is made, where the file knows."""
    other = f"model is {path}, which is neither a LinearQ nor an Agent that gqlab saved"
    try:
        header = json.loads(str(read_arrays(checks.path("model", path))["header"]))
        kind, recipe = header["format"], header.get("env")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{other} ({one_line(error)})") from None
    if kind == AGENT:
        from gqlab.learn.agent.agent import Agent

        return Agent.load(path, operators=operators).model, recipe
    if kind != FORMAT:
        raise ValueError(other)
    model = LinearQ.load(path, operators=operators)  # the environment is named in its metadata
    return model, model.metadata.get("env")


def rendered_env(env: str | None, recipe: dict[str, Any] | None) -> Any:
    """The environment that is asked for, or the one that a file names, with pictures."""
    if env is not None:
        return make_env(env, render_mode="rgb_array")
    if recipe is None:
        raise ValueError("env is missing: the file does not say which one; give --env")
    return env_of(recipe, render_mode="rgb_array")


def film(policy: Any, env: Any, n_episodes: int, seed: int) -> tuple[list[Any], Evaluation]:
    """The pictures of so many episodes of a policy's best actions, and their returns."""
    import gymnasium
    from PIL import Image

    frames: list[Any] = []

    def look() -> None:
        picture: NDArray[Any] = np.asarray(env.render())
        if picture.ndim != 3:
            raise ValueError(
                f"env is {env.spec.id!r}, which draws no pictures: its rgb_array has shape {picture.shape}"
            )
        image = Image.fromarray(picture.astype(np.uint8))
        scale = min(1.0, WIDTH / image.width)
        size = (2 * round(scale * image.width / 2), 2 * round(scale * image.height / 2))  # films need even ones
        small = image.resize(size, Image.Resampling.LANCZOS)
        frames.append(small.quantize(COLOURS, dither=Image.Dither.NONE))

    try:
        found = play(policy, env, n_episodes, deterministic=True, seed=seed, look=look)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ValueError(_missing(env.spec.id, error)) from None
    return frames, found


def _missing(name: str, error: BaseException) -> str:
    what = one_line(error).partition(",")[0]
    return f"env is {name!r}, whose pictures need more: {what}; pip install 'gqlab[render]'"


def check_out(out: Path) -> str | None:
    """Where the film can be written, asked before anything is played; the ffmpeg that MP4 needs."""
    if out.suffix.lower() not in SUFFIXES:
        raise ValueError(f"out is {out}, expected a name that ends in .gif or .mp4")
    if out.suffix.lower() == ".gif":
        return None
    try:
        return str(import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        found = shutil.which("ffmpeg")
    if found is None:
        raise ValueError(
            f"out is {out}: MP4 needs ffmpeg, which is missing; pip install imageio-ffmpeg, or name a .gif"
        )
    return found


def write_film(frames: Sequence[Any], out: Path, fps: int, ffmpeg: str | None) -> None:
    """The pictures as a film, whole or not at all."""
    if ffmpeg is None:
        rest = list(frames[1:])
        # Hundredths of a second, of which all together are the film's time; browsers slow down fewer than two.
        ends = [round(100 * (k + 1) / fps) for k in range(len(frames))]
        pause = [10 * max(2, end - begin) for begin, end in zip([0, *ends], ends, strict=False)]
        write_whole(
            out,
            lambda file: frames[0].save(
                file, format="GIF", save_all=True, append_images=rest, duration=pause, loop=0, optimize=False
            ),
        )
        return
    width, height = frames[0].size
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        options = (
            f"-loglevel error -f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {fps} -i - -pix_fmt yuv420p".split()
        )
        done = subprocess.run(  # noqa: S603 - an ffmpeg of this machine, and no text of anybody's
            [ffmpeg, "-y", *options, str(film)],
            input=b"".join(frame.convert("RGB").tobytes() for frame in frames),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise ValueError(
                f"out is {out}: ffmpeg failed: {' '.join(done.stderr.decode(errors='replace').split())[-200:]}"
            )
        write_whole(out, lambda file: file.write(film.read_bytes()))
