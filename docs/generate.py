# SPDX-License-Identifier: Apache-2.0
"""Writes what is made from the code and kept: the catalog of benchmarks, the schema of files that describe them, types
and public modules of the Python API, and what NeMo Evaluator reads. Pages of commands and benchmarks are made by the
docs build (`generated_pages.py`).

python docs/generate.py            writes them
python docs/generate.py --check    exits 1 and names the files that are not current
"""

from __future__ import annotations

import sys
from itertools import dropwhile
from pathlib import Path

from newskills._api.functions import results_table
from newskills._api.public import public_table
from newskills._api.stub import write_stub
from newskills.benchmarks.files.schema import SCHEMA, schema_text
from newskills.benchmarks.generate_catalog import catalog_text
from newskills.benchmarks.listing import CATALOG
from newskills.pipelines.start.agents import agent_table
from newskills_evaluator.harness import framework_text
from newskills_evaluator.harness import target as framework

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PYTHON = DOCS / "python.md"
AGENTS = DOCS / "agents.md"


def page_with(path: Path, *new_tables: str) -> str:
    """Return the page with the tables as they should be; each is found by its two lines of head."""
    text = path.read_text(encoding="utf-8")
    for new in new_tables:
        before, head, rest = text.partition("".join(new.splitlines(keepends=True)[:2]))
        assert head, f"{path} has no table {new.splitlines()[0]}"
        after = dropwhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True))
        text = f"{before}{new}{''.join(after)}"
    return text


def main(argv: list[str]) -> int:
    catalog = catalog_text()
    if "--check" not in argv and _read(CATALOG) != catalog:
        CATALOG.write_text(catalog, encoding="utf-8")  # what follows reads it
    write_stub()  # git does not have it
    files = {
        PYTHON: page_with(PYTHON, results_table(), public_table()),
        AGENTS: page_with(AGENTS, agent_table()),
        CATALOG: catalog,
        SCHEMA: schema_text(),
        framework(): framework_text(),
    }
    stale = [path for path, text in files.items() if _read(path) != text]
    if "--check" in argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not current; run: python docs/generate.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(files[path], encoding="utf-8")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
