# SPDX-License-Identifier: Apache-2.0
"""Writes what is made from the code: the catalog of benchmarks, pages of commands and benchmarks, types and public
modules of the Python API, and what NeMo Evaluator reads.

python docs/generate.py            writes them
python docs/generate.py --check    exits 1 and names the files that are not current
"""

from __future__ import annotations

import subprocess
import sys
from itertools import dropwhile
from pathlib import Path

from newskills._api.public import HEAD, table
from newskills._api.stub import stub
from newskills.benchmarks.generate_catalog import TARGET as CATALOG
from newskills.benchmarks.generate_catalog import catalog_text
from newskills.benchmarks.pages import pages as benchmark_pages
from newskills.benchmarks.pages import stored_figures
from newskills.benchmarks.standing import standing_page
from newskills.commands.loading import load
from newskills.commands.table import GROUPS, overview, shown
from newskills.interop.harness import framework_text
from newskills.interop.harness import target as framework

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
STUB = ROOT / "src" / "newskills" / "_api" / "__init__.pyi"
FIGURES = ROOT / "tests" / "official" / "figures.json"
"""Of comparisons that docs/agreement.md does not show, made by `python -m tests.official --write`."""
PYTHON = DOCS / "python.md"


def command_pages() -> dict[str, str]:
    """path below docs/ → markdown."""
    links = [
        f"- [ns {shown(name)}]({name}.md): {summary}"
        for group in GROUPS.values()
        for name, summary in group.items()
    ]
    index = "\n".join(["# Commands", "", f"```text\n{overview()}```", "", *links])
    found = {"commands/index.md": f"{index}\n"}
    for group in GROUPS.values():
        for name, summary in group.items():
            found[f"commands/{name}.md"] = (
                f"# ns {shown(name)}\n\n{_sentence(summary)}\n\n```text\n{load(name).help(full=True)}```\n"
            )
    return found


def python_page() -> str:
    """The page of the Python API as it is, with the table of public modules as it should be."""
    before, head, rest = PYTHON.read_text(encoding="utf-8").partition("\n".join(HEAD) + "\n")
    assert head, f"{PYTHON} has no table of public modules"
    after = dropwhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True))
    return f"{before}{table()}{''.join(after)}"


def main(argv: list[str]) -> int:
    catalog = catalog_text()
    if "--check" not in argv and _read(CATALOG) != catalog:
        CATALOG.write_text(catalog, encoding="utf-8")
        return subprocess.call([sys.executable, *sys.argv])  # what follows reads the new catalog
    pages = command_pages() | {f"benchmarks/{name}": text for name, text in benchmark_pages().items()}
    pages["headlines.md"] = standing_page(stored_figures(FIGURES))
    files = {DOCS / name: text for name, text in pages.items()} | {STUB: stub(), PYTHON: python_page()}
    files |= {CATALOG: catalog, framework(): framework_text()}
    stale = [path for path, text in files.items() if _read(path) != text]
    pages_there = [path for folder in ("commands", "benchmarks") for path in (DOCS / folder).rglob("*.md")]
    orphans = [path for path in pages_there if path not in files]
    if "--check" in argv:
        for path in [*stale, *orphans]:
            print(f"{path.relative_to(ROOT)} is not current; run: python docs/generate.py", file=sys.stderr)
        return 1 if stale or orphans else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    for path in orphans:
        path.unlink()
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
