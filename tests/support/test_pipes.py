"""A pipe in place of a file is refused: nobody may ever write into it."""

from __future__ import annotations

import os

import pytest

import gqlab as gq
from gqlab.grids.recipe import read_recipe

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")

READERS = {
    "LinearQ.load": gq.LinearQ.load,
    "RunResult.load": gq.RunResult.load,
    "Agent.load": gq.Agent.load,
    "read_recipe": read_recipe,
    "Transitions.from_csv": gq.Transitions.from_csv,
    "Transitions.from_parquet": gq.Transitions.from_parquet,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_does_not_keep_the_reader_waiting(name, tmp_path):
    os.mkfifo(tmp_path / "file")
    with pytest.raises(ValueError, match="file is a pipe or a device, expected a file"):
        READERS[name](tmp_path / "file")


@pytest.mark.parametrize("name", ["LinearQ.load", "RunResult.load"])
def test_a_folder_is_still_a_folder(name, tmp_path):
    with pytest.raises((IsADirectoryError, ValueError)):
        READERS[name](tmp_path)
