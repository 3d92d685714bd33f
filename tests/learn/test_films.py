"""``gqlab watch``: the film shows the very episodes whose returns are printed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gqlab as gq
from gqlab.cli.main import main
from gqlab.learn.agent import render

pytest.importorskip("pygame")
Image = pytest.importorskip("PIL.Image")

LAKE = {"id": "FrozenLake-v1", "max_episode_steps": 12, "is_slippery": True}


@pytest.fixture
def path(tmp_path):
    """A model that walks right wherever it is."""
    theta = np.zeros((4, 16))
    theta[2] = 1.0
    gq.LinearQ(theta, gq.OneHot(16).fit([[0]]), metadata={"env": LAKE}).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def test_a_film_of_the_episodes_that_are_told(path, capsys):
    main(["watch", str(path), "--episodes", "2", "--seed", "5", "--fps", "10"])
    env = render.rendered_env(None, LAKE)
    found = gq.LinearQ.load(path).evaluate(env, n_episodes=2, seed=5)
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == [f"episode {k + 1}: return {found.returns[k]:g} in {found.lengths[k]} steps" for k in range(2)]
    with Image.open(path.with_suffix(".gif")) as film:
        assert film.size == (256, 256)
        length = 0
        for k in range(film.n_frames):  # equal pictures in a row are one that lasts longer
            film.seek(k)
            length += film.info["duration"]
        env.reset(seed=int(np.random.SeedSequence([5, 0]).generate_state(1)[0]))
        film.seek(0)
        first = np.asarray(film.convert("RGB")).astype(int)
    assert length == 100 * (found.lengths.sum() + 2)  # the first state of each episode is seen, too
    assert np.abs(first - env.render()).mean() < 3  # but for the colours that a GIF has


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "film.avi"], "out is film.avi, expected a name that ends in .gif or .mp4"),
        (["--out", "no/folder/film.gif"], "out is no/folder/film.gif, whose folder is not there"),
        (["--env", "CliffWalking-v1"], "env has observations of 1 numbers and 4 actions"),
        (["--env", "NoLake-v1"], "env is 'NoLake-v1': "),
        (["--episodes", "0"], "episodes is 0, expected at least 1"),
        (["--fps", "0"], "fps is 0, expected at least 1"),
    ],
)
def test_messages(path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(path.parent)
    if "CliffWalking-v1" in arguments:  # of as many actions; its observations are other numbers
        gq.LinearQ(np.zeros((3, 16)), gq.OneHot(16).fit([[0]])).save(path)
    with pytest.raises(SystemExit) as end:
        main(["watch", str(path), *arguments])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.startswith(f"gqlab: {message}")
    assert said.count("\n") == 1
    assert [p.name for p in path.parent.iterdir()] == ["model.npz"]


def test_a_file_of_another_kind_and_one_that_names_no_environment(path, capsys, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("nothing")
    for file, message in (
        (other, "which is neither a LinearQ nor an Agent"),
        (path, "env is missing: the file does not say"),
    ):
        gq.LinearQ(np.zeros((4, 16)), gq.OneHot(16).fit([[0]])).save(path)
        with pytest.raises(SystemExit):
            main(["watch", str(file)])
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("recipe", [{"id": "os:FrozenLake-v1"}, {"id": 3}, ["FrozenLake-v1"]])
def test_no_file_makes_gqlab_import_a_module(recipe):
    with pytest.raises(ValueError, match="env is missing: "):
        render.rendered_env(None, recipe)


def test_what_is_missing_is_named(path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr(render.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit):
        main(["watch", str(path), "--out", "film.mp4"])
    assert "MP4 needs ffmpeg, which is missing; pip install imageio-ffmpeg, or name a .gif" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(SystemExit):
        main(["watch", str(path)])
    assert "env is 'FrozenLake-v1', whose pictures need more: " in capsys.readouterr().err
