"""A tutorial as a notebook, executed by the tool that others use: no cell fails, and none warns."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
import executed

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # of the tools themselves
def test_a_tutorial_runs_as_a_notebook_without_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.from_dict(executed.notebook(executed.HERE / "tutorials" / "student.md"))
    for cell in notebook.cells:
        cell.pop("id", None)
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert outputs
    told = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    assert not any("Warning" in text for text in told), told
