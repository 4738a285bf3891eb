# SPDX-License-Identifier: Apache-2.0
"""Pages that the docs build makes from the code: of commands, benchmarks, their headlines, notebooks. None is a file.

MkDocs calls `on_files` (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newskills.benchmarks.pages import pages as benchmark_pages
from newskills.benchmarks.pages import stored_figures
from newskills.benchmarks.standing import standing_page
from newskills.commands.loading import load
from newskills.commands.table import GROUPS, overview, shown

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

FIGURES = Path(__file__).resolve().parents[1] / "tests" / "official" / "figures.json"
"""Of comparisons that docs/agreement.md does not show, made by `python -m tests.official --write`."""
NOTEBOOKS = Path(__file__).resolve().parent / "notebooks"


def generated_pages() -> dict[str, str]:
    """Return path below docs/ → markdown."""
    pages = command_pages() | {f"benchmarks/{name}": text for name, text in benchmark_pages().items()}
    pages["headlines.md"] = standing_page(stored_figures(FIGURES))
    return pages | notebook_pages()


def notebook_pages() -> dict[str, str]:
    """Return path below docs/ → markdown: texts, code and printed outputs of each notebook."""
    return {f"notebooks/{path.stem}.md": _notebook(path) for path in sorted(NOTEBOOKS.glob("*.ipynb"))}


def _notebook(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title, _, rest = "".join(cells[0]["source"]).partition("\n")
    files = f"[Download this notebook]({path.name}) and [what makes its results](make_results.py)."
    blocks = [title, files, rest.strip(), *(block for cell in cells[1:] for block in _blocks(cell))]
    return "\n\n".join(blocks) + "\n"


def _blocks(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    printed = "".join(text for output in cell["outputs"] for text in output.get("text", ())).strip("\n")
    return [f"```python\n{source}\n```", *([f"```text\n{printed}\n```"] if printed else [])]


def command_pages() -> dict[str, str]:
    """Return path below docs/ → markdown."""
    links = [
        f"- [ns {shown(name)}]({name}.md): {summary}"
        for group in GROUPS.values()
        for name, summary in group.items()
    ]
    index = "\n".join(["# Commands", "", f"```text\n{overview()}```", "", *links])
    pages = {"commands/index.md": f"{index}\n"}
    for group in GROUPS.values():
        for name, summary in group.items():
            pages[f"commands/{name}.md"] = (
                f"# ns {shown(name)}\n\n{_sentence(summary)}\n\n```text\n{load(name).help(full=True)}```\n"
            )
    return pages


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those of the folder."""
    from mkdocs.structure.files import File

    for path, text in generated_pages().items():
        files.append(File.generated(config, path, content=text))
    return files
