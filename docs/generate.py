# SPDX-License-Identifier: Apache-2.0
"""Writes the pages that are made from the code: one per command, one per benchmark.

python docs/generate.py            writes them
python docs/generate.py --check    exits 1 and names the pages that are not current
"""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.benchmarks.pages import pages as benchmark_pages
from newskills.commands.loading import load
from newskills.commands.table import GROUPS, overview, shown

DOCS = Path(__file__).parent


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
                f"# ns {shown(name)}\n\n{_sentence(summary)}\n\n```text\n{load(name).help()}```\n"
            )
    return found


def main(argv: list[str]) -> int:
    pages = command_pages() | {f"benchmarks/{name}": text for name, text in benchmark_pages().items()}
    stale = [name for name, text in pages.items() if _read(DOCS / name) != text]
    made = {DOCS / name for name in pages}
    orphans = [p for folder in ("commands", "benchmarks") for p in (DOCS / folder).rglob("*.md") if p not in made]
    if "--check" in argv:
        for name in [*stale, *(str(p.relative_to(DOCS)) for p in orphans)]:
            print(f"docs/{name} is not current; run: python docs/generate.py", file=sys.stderr)
        return 1 if stale or orphans else 0
    for name in stale:
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages[name], encoding="utf-8")
    for path in orphans:
        path.unlink()
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
