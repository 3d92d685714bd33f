"""Completion, asked of bash itself."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from gqlab.cli.commands import COMMANDS
from gqlab.cli.completion import bash_script, known_words

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "gqlab"
    path.write_text(bash_script(COMMANDS, known_words()))
    return path


def offered(script, line: str, folder=None) -> list[str]:
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    ask = (
        f"source {script}; COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; "
        '_gqlab; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, cwd=folder)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("gqlab tr", ["train"]),
        ("gqlab train --alg", ["--algorithm"]),
        ("gqlab train MountainCar-v0 --algorithm Sa", ["Sarsa"]),
        ("gqlab train CartP", ["CartPole-v0", "CartPole-v1"]),
        ("gqlab train X --seed ", []),
        ("gqlab theory fro", ["frozen-lake"]),
        ("gqlab theory garnet --sampling ", ["markov", "iid"]),
        ("gqlab benchmark re", ["replay"]),
        ("gqlab fit log.csv --drop-nulls ", ["rows", "episodes"]),
        ("gqlab fit log.csv --no-d", ["--no-decide"]),
        ("gqlab compare --algorithm GreedyGQ SAGA", ["SAGAGreedyGQ", "SAGAQLearning"]),
        ("gqlab reproduce --device c", ["cpu", "cuda"]),
        ("gqlab help wat", ["watch"]),
    ],
)
def test_bash_offers_what_may_stand_there_and_nothing_else(script, line, wanted):
    assert offered(script, line) == wanted


def test_every_option_is_offered_and_no_fragment_of_a_help_text(script, tmp_path):
    for name in COMMANDS:
        found = offered(script, f"gqlab {name} -")
        assert "--json" in found
        assert all(word.startswith("--") for word in found)
        assert not any(mark in word for word in offered(script, f"gqlab {name} ", tmp_path) for mark in ".:,()")


def test_files_are_offered_where_a_file_is_wanted(script, tmp_path):
    (tmp_path / "log.csv").touch()
    assert offered(script, "gqlab fit lo", tmp_path) == ["log.csv"]
    assert offered(script, "gqlab train MountainCar-v0 --out lo", tmp_path) == ["log.csv"]
    assert offered(script, "gqlab train lo", tmp_path) == []
