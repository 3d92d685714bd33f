"""The pages that show what their code prints: it is what it prints, and their notebooks have it too."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
import executed

#: These take long by themselves.
LONG = {"decide", "log", "environment", "own", "theorist"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=[pytest.mark.long] * (page.stem in LONG)) for page in executed.PAGES],
)
def test_a_page_shows_what_its_code_prints(tmp_path, pytestconfig, page):
    warned, *_ = pytestconfig.getini("filterwarnings")  # an error, but for old packages (`make lowest`)
    assert executed.differences(page, tmp_path, warned) == []


@pytest.mark.parametrize(
    ("printed", "is_same"),
    [
        ("J = 1.4e-04 after 300", True),
        ("J = 1.5e-04  after 300", True),  # one unit of the last digit
        ("J = 1.6e-04 after 300", False),
        ("J = 1.4e-05 after 300", False),
        ("J = 1.4e-04 after 301", False),  # whole numbers are exact
        ("K = 1.4e-04 after 300", False),
        ("J = 1.4e-04 after 300 400", False),
    ],
)
def test_outputs_are_compared_by_their_digits(printed, is_same):
    assert executed.same("J = 1.4e-04 after 300\n", printed) is is_same


@pytest.mark.parametrize("page", executed.TUTORIALS, ids=lambda page: page.stem)
def test_the_notebook_of_a_tutorial_has_its_code_and_outputs(page):
    notebook = executed.notebook(page)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and not cell["source"].startswith("%%sh")]
    sources = [re.sub(r"^%%writefile \S+\n", "", cell["source"]) + "\n" for cell in code]
    assert sources == re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)
    shown = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    text = page.read_text()
    assert len(shown) == text.count("```output") + len(re.findall(r"^!\[", text, flags=re.M))
