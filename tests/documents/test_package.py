"""What is packed: the wheel, the source distribution, their metadata, and the bounds on other packages."""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import gqlab

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def build(kind: str, source: Path, folder: Path) -> Path:
    """A wheel or an sdist of a source tree, by the build backend itself: no network, no virtual environment."""
    code = f"import sys; from hatchling import build; print(build.build_{kind}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source, without what git ignores."""
    folder = tmp_path_factory.mktemp("tree")
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\n")
    names = [name for name in tracked if name and (ROOT / name).is_file()]
    if not names:
        pytest.skip("not a checkout")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    pytest.importorskip("hatchling")
    return zipfile.ZipFile(build("wheel", tree, tmp_path_factory.mktemp("wheel")))


def test_the_wheel_holds_the_package_whole_and_nothing_else(tree, wheel):
    info = f"gqlab-{gqlab.__version__}.dist-info"
    names = {name for name in wheel.namelist() if not name.startswith(f"{info}/")}
    source = tree / "src"
    assert names == {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    assert {
        "gqlab/py.typed",
        "gqlab/studies/paper/report.css",
        "gqlab/studies/paper/paper.mplstyle",
        "gqlab/studies/page.css",
    } <= names
    assert f"{info}/licenses/LICENSE" in wheel.namelist()
    assert "gqlab = gqlab.cli.main:main" in wheel.read(f"{info}/entry_points.txt").decode()


def test_the_metadata_say_what_the_project_says(wheel):
    metadata = email.message_from_string(wheel.read(f"gqlab-{gqlab.__version__}.dist-info/METADATA").decode())
    assert (metadata["Name"], metadata["Version"]) == ("gqlab", gqlab.__version__)
    assert (metadata["Requires-Python"], metadata["License-Expression"]) == (">=3.11", "MIT")
    assert metadata["Author"] == "The gqlab developers"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text().strip()
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert set(metadata.get_all("Classifier")) == set(PROJECT["classifiers"])
    assert metadata.get_all("Project-URL") == [f"{name}, {url}" for name, url in PROJECT["urls"].items()]
    needed = {re.split(r"[^\w.-]", text)[0] for text in metadata.get_all("Requires-Dist") if "extra ==" not in text}
    assert needed == {"numpy", "scipy", "numba", "gymnasium", "matplotlib", "tqdm", "tyro"}


def test_the_source_distribution_makes_the_same_wheel(tree, wheel, tmp_path):
    with tarfile.open(build("sdist", tree, tmp_path)) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    [source] = (tmp_path / "unpacked").iterdir()
    names = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "PKG-INFO", "constraints.txt"} <= names
    assert {
        "tests/greedy_gq.json",
        "tests/documents/test_package.py",
        "docs/conf.py",
        "benchmarks/__main__.py",
    } <= names
    again = zipfile.ZipFile(build("wheel", source, tmp_path))
    assert sorted(again.namelist()) == sorted(wheel.namelist())
    assert all(again.read(name) == wheel.read(name) for name in wheel.namelist())


def bounds(texts: list[str]) -> dict[str, tuple[int, ...]]:
    """The versions of requirements, by package, without zeros at the end."""
    found = re.findall(r"^([\w.-]+)(?:\[\w+\])?(?:>=|==)([\d.]+)", "\n".join(texts), flags=re.M)
    return {name: tuple(int(n) for n in re.sub(r"(\.0)+$", "", version).split(".")) for name, version in found}


def test_the_lowest_versions_that_are_tested_are_the_bounds():
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["learn"]]
    asked += [text for text in PYPROJECT["dependency-groups"]["test"] if isinstance(text, str)]
    lowest = bounds((ROOT / "constraints-lowest.txt").read_text().splitlines())
    for name, least in bounds(asked).items():
        assert lowest[name] == least, name


def test_the_pinned_versions_satisfy_the_bounds_and_cover_every_group():
    pinned = bounds((ROOT / "constraints.txt").read_text().lower().splitlines())
    groups = [text for group in PYPROJECT["dependency-groups"].values() for text in group if isinstance(text, str)]
    for name, least in bounds([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["learn"], *groups]).items():
        assert pinned[name] >= least, name


def test_setup_ends_by_saying_how_to_go_on():
    command = ["make", "--no-print-directory", "-n", "setup", "VENV=here"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "To activate it: . here/bin/activate" in shown.stdout.splitlines()[-1]


def test_this_python_is_one_that_the_classifiers_name():
    named = {c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert min(named, key=lambda v: int(v[2:])) == PROJECT["requires-python"].removeprefix(">=")
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in named
