"""The documents' code is the real one."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gqlab
from gqlab.cli.commands import COMMANDS
from gqlab.cli.main import main

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import executed  # noqa: E402 - it lies beside the pages


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.S)


@pytest.mark.parametrize("block", blocks("CONTRIBUTING.md"), ids=lambda b: b.split("(")[0].split()[-1])
def test_contributing_quotes_the_source(block):
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    assert any(block in source for source in sources)


def test_contributing_maps_every_room_and_is_short_enough_to_read():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    tree = text[text.index("    src/gqlab/") :].split("\n\n", 1)[0].splitlines()
    assert len(tree) <= 60
    rooms = {path.name for path in (ROOT / "src" / "gqlab").iterdir() if (path / "__init__.py").is_file()}
    named = [line.split()[0].rstrip("/") for line in tree[1:] if line.startswith(" " * 6) and line[6] != " "]
    assert sorted(named) == sorted(rooms)


#: What the code of a page takes for granted, where it does not begin with the imports.
PREPARED = {
    "docs/theory.md": """
import gqlab as gq
mdp = gq.garnet(seed=0)
problem = gq.Problem(mdp, gq.random_features(mdp, dim=4))
"""
}

#: The pages with code, but for the one whose files test_extending.py writes first, and those that show their output;
#: the README has a test of its own.
PAGES = [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if "```python" in path.read_text() and path.name != "extending.md" and path not in executed.PAGES
]


#: These start or compile much.
LONG = {"docs/learning.md", "docs/scale.md", "docs/theory.md"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in PAGES])
def test_the_code_of_the_document_runs_when_pasted(tmp_path, name):
    code = PREPARED.get(name, "") + "\n".join(blocks(name))
    assert "import gqlab as gq" in code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr


def test_every_block_of_the_readme_runs_alone_and_makes_its_picture(tmp_path, pytestconfig):
    """As the script does that made the pictures; none but those that are shown, and every one of them."""
    text = (ROOT / "README.md").read_text()
    assert all("import gqlab as gq" in block for block in blocks("README.md"))
    warned, *_ = pytestconfig.getini("filterwarnings")  # an error, but for old packages (`make lowest`)
    code = [sys.executable, "-W", warned, str(ROOT / "docs" / "_ext" / "readme_pictures.py"), str(tmp_path / "made")]
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    made = {path.name for path in (tmp_path / "made").iterdir()}
    assert made == set(re.findall(r'plt.savefig\("(\w+\.png)"\)', text))
    assert all(f"](docs/images/{name})" in text and (ROOT / "docs" / "images" / name).is_file() for name in made)


@pytest.mark.long
def test_the_table_of_the_tour_is_what_its_code_prints(tmp_path):
    page = (ROOT / "docs" / "tour.md").read_text()
    [code] = [block for block in blocks("docs/tour.md") if 'watch=gq.Watch("gradient")' in block]
    start = "\n".join(blocks("docs/tour.md")[:2])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", start + code], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^\| (\d+) \| (\S+) \| (\S+) \|$", page, flags=re.M)
    assert [line.split() for line in done.stdout.splitlines()] == [list(row) for row in rows]


def test_the_slopes_on_the_page_of_rates_are_those_of_its_appendix():
    [table] = re.findall(
        r"^\| slope of log samples.*?\n\n", (ROOT / "docs" / "rates.md").read_text(), flags=re.M | re.S
    )
    assert table.count("\n") > 10
    assert table in (ROOT / "docs" / "rates_tables.md").read_text()


def test_every_file_that_a_page_includes_or_links_to_is_there():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text()
        targets = re.findall(r"\{literalinclude\} (\S+)", text) + re.findall(r"\]\(([^)#:]+\.(?:md|png))\)", text)
        for target in targets:
            assert (path.parent / target).is_file(), f"{path.name}: {target}"


def documented() -> set[str]:
    """The full names that docs/api.md documents."""
    found, module = set(), "gqlab"
    for kind, name in re.findall(
        r"^\.\. (currentmodule|auto\w+):: (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.M
    ):
        if kind == "currentmodule":
            module = name
        else:
            found.add(name if name.startswith("gqlab.") else f"{module}.{name}")
    return found


def test_the_reference_has_every_public_name_and_none_that_is_gone():
    for name in documented():
        thing: object = gqlab
        for k, word in enumerate(name.split(".")[1:], 2):
            path = ".".join(name.split(".")[:k])
            thing = getattr(thing, word) if hasattr(thing, word) else importlib.import_module(path)
        assert callable(thing), name
    public = {f"gqlab.{name}": getattr(gqlab, name) for name in gqlab.__all__}
    public |= {f"gqlab.theory.{name}": getattr(gqlab.theory, name) for name in gqlab.theory.__all__}
    assert {name for name, thing in public.items() if callable(thing)} - documented() == set()


def test_what_public_functions_return_is_documented_too():
    classes = {
        name for path in (ROOT / "src").rglob("*.py") for name in re.findall(r"^class (\w+)", path.read_text(), re.M)
    }
    known = {name.rpartition(".")[2] for name in documented()}
    for name in documented():
        _, _, last = name.rpartition(".")
        owner = gqlab.theory if name.startswith("gqlab.theory.") else gqlab
        function = getattr(owner, last, None)
        if inspect.isfunction(function):
            returned = set(re.findall(r"\w+", str(inspect.signature(function).return_annotation))) & classes
            assert returned <= known, name


def test_no_document_or_source_names_a_path_of_a_machine_or_an_index():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("not a checkout")
    for name in tracked:
        if name.endswith((".md", ".py", ".toml", ".txt", ".cff", "Makefile", "run")):
            text = (ROOT / name).read_text()
            assert (
                not re.search(r"/(?:root|home|work)/|pypi\.org/simple|index-url", text)
                or name == "tests/documents/test_documents.py"
            ), name


DOCUMENTS = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]


def code_of(path: Path) -> list[str]:
    """The code of a page, without that in Python: between backquotes, and line by line in blocks."""
    text = re.sub(r"```python\n.*?```", "", path.read_text(), flags=re.S)
    shell = re.findall(r"```(?:sh|)\n(.*?)```", text, flags=re.S)
    return re.findall(r"`([^`\n]+)`", text) + [line.partition("#")[0] for block in shell for line in block.splitlines()]


def test_every_target_of_make_that_a_document_names_is_there():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = {t for path in DOCUMENTS for code in code_of(path) for t in re.findall(r"^make ([a-z]+)", code)}
    assert {"test", "reproduce", "lowest"} <= named <= targets, named - targets


def test_every_command_and_option_that_a_document_names_is_there(capsys):
    options: dict[str, set[str]] = {}
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        options[name] = {*re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out), "--help"}
    for path in DOCUMENTS:
        for code in code_of(path):
            for name, rest in re.findall(r"(?:^|\| )gqlab ([a-z]+)((?: [^|]*)?)", code):
                if name == "help":  # of a command
                    continue
                assert name in COMMANDS, f"{path.name}: {code}"
                assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= options[name], f"{path.name}: {code}"


def test_every_test_that_the_page_on_reliability_names_is_there():
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text())
    assert len(named) > 20
    for path, name in named:
        assert f"\ndef {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
