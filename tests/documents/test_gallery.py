"""The gallery: every script is on its page with its picture, and the scripts run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"

spec = importlib.util.spec_from_file_location("gallery_build", GALLERY / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)


def test_every_script_is_on_the_page_with_a_small_picture():
    assert {path.stem for path in GALLERY.glob("*.py")} == {*build.NAMES, "build"}
    assert {path.stem for path in GALLERY.glob("*.png")} == set(build.NAMES)
    assert (GALLERY / "index.md").read_text() == build.page()
    for name in build.NAMES:
        assert (GALLERY / f"{name}.png").stat().st_size < 150_000
        script = (GALLERY / f"{name}.py").read_text()
        shown = int(build.section(name).rpartition(":lines: ")[2].partition("-")[0])
        assert script.splitlines()[shown - 1].startswith("import ")
        assert not [line for line in script.splitlines() if "gq._" in line or "from gqlab" in line]


@pytest.mark.parametrize("name", ["variance", pytest.param("tiles", marks=pytest.mark.long)])
def test_a_script_draws_its_picture(tmp_path, name):
    build.draw(name, tmp_path)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
