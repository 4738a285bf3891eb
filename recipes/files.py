# SPDX-License-Identifier: Apache-2.0
"""What the steps of the recipes share: rows from files, rows to a file, and what a model said in a row."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Rows = Iterable[Row]
Step = Callable[[Rows], Iterator[Row]]


def said(row: Row) -> str:
    """Return the reply behind its reasoning."""
    return str(row.get("generation") or "").rpartition("</think>")[2].strip()


def between(tag: str) -> re.Pattern[str]:
    """Return a pattern for what stands in `<tag>…</tag>`, which takes time linear in the text's length."""
    return re.compile(rf"<{tag}>((?:(?!<{tag}>).)*?)</{tag}>", re.DOTALL)


def last(pattern: re.Pattern[str], text: str) -> str | None:
    """Return the first group of the last match; None where there is none."""
    found = pattern.findall(text)
    return found[-1] if found else None


def read(paths: Sequence[Path]) -> Iterator[Row]:
    """Yield the rows of all files, in order."""
    for path in paths:
        with path.open() as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def main(steps: Mapping[str, Step], description: str, argv: Sequence[str] | None = None) -> None:
    """Run a step, `python steps.py STEP OUT IN…`: the file is there once it is whole."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("step", choices=steps)
    parser.add_argument("output", type=Path)
    parser.add_argument("inputs", type=Path, nargs="+")
    args = parser.parse_args(argv)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    counted: Counter[str] = Counter()

    def counting() -> Iterator[Row]:
        for row in read(args.inputs):
            counted["read"] += 1
            yield row

    unfinished = args.output.with_name(f".{args.output.name}.new")
    with unfinished.open("w") as file:
        for row in steps[args.step](counting()):
            counted["written"] += 1
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    unfinished.replace(args.output)
    print(f"{args.step}: {counted['read']} rows read, {counted['written']} written to {args.output}")
