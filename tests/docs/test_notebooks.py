# SPDX-License-Identifier: Apache-2.0
"""The notebooks run from their first to their last cell, print what is kept in them, and are pages of the docs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from runpy import run_path

import ipykernel
import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell of code prints, without the blanks that frames of tables have."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    texts = ["".join(output.get("text", output["output_type"]) for output in cell.outputs) for cell in cells]
    return [" ".join(text.translate(dict.fromkeys(map(ord, "┌┬┐├┼┤└┴┘─│"), " ")).split()) for text in texts]


def test_there_are_two() -> None:
    assert ipykernel.__name__
    assert [path.stem for path in NOTEBOOKS] == ["hard-for-all-models", "length-and-loss"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(FOLDER / "make_results.py", tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    kept = nbformat.read(path, as_version=4)
    running = nbformat.read(path, as_version=4)
    for cell in running.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(running, timeout=300, kernel_name="python3", resources=resources).execute()
    assert printed(running) == printed(kept)
    assert any(printed(kept))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_traces_of_a_machine(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert all(cell["metadata"] == {} for cell in notebook["cells"])
    assert str(Path.home()) not in path.read_text(encoding="utf-8")


def test_notebooks_are_pages_of_the_docs() -> None:
    pages = run_path(str(ROOT / "docs" / "generated_pages.py"))["notebook_pages"]()
    page = pages["notebooks/hard-for-all-models.md"]
    assert page.startswith("# Which problems are hard for all models?\n")
    assert "[Download this notebook](hard-for-all-models.ipynb)" in page
    assert "```python\nanswers = samples(RESULTS" in page
    assert "```text\n960 samples of 3 runs\n```" in page
    assert "p23" in page.partition("most_frequent")[2]
