"""The documents' code is the real one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.S)


@pytest.mark.parametrize("block", blocks("CONTRIBUTING.md"), ids=lambda b: b.split("(")[0].split()[-1])
def test_contributing_quotes_the_source(block):
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    assert any(block in source for source in sources)


def test_contributing_lists_every_module():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in (ROOT / "src" / "gqlab").glob("*.py"):
        assert path.name in text or path.name in ("__init__.py", "version.py", "cli.py"), path.name
    for path in (ROOT / "src" / "gqlab" / "engine").glob("*.py"):
        assert path.name in text or path.name == "__init__.py", path.name


@pytest.mark.parametrize("name", ["README.md", "docs/tour.md"])
def test_the_code_of_the_document_runs_when_pasted(tmp_path, name):
    code = "\n".join(blocks(name))
    assert "import gqlab as gq" in code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_no_document_or_source_names_a_path_of_a_machine_or_an_index():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("not a checkout")
    for name in tracked:
        if name.endswith((".md", ".py", ".toml", ".txt", ".cff", "Makefile", "run")):
            text = (ROOT / name).read_text()
            assert (
                not re.search(r"/(?:root|home|work)/|pypi\.org/simple|index-url", text)
                or name == "tests/unit/test_documents.py"
            ), name
