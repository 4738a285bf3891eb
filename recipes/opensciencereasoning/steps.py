# SPDX-License-Identifier: Apache-2.0
"""What happens between the generations: `python steps.py STEP OUT IN…`. Files of JSON lines in, one out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase

sys.path.append(str(Path(__file__).resolve().parents[1]))

from files import Row, Rows, between, last, main, said

QUESTION = between("question")
OPTION = re.compile(r"^[ \t]*([A-Z])\)(.+)$", re.MULTILINE)
OPTIONS = 10
SHARE = 0.6
"""Of the votes that the right option needs."""


def questions(rows: Rows) -> Iterator[Row]:
    """Yield written questions with the ten options in order and no two alike, each question once."""
    seen: set[str] = set()
    for row in rows:
        text = (last(QUESTION, said(row)) or "").strip()
        options = OPTION.findall(text)
        letters = [letter for letter, _ in options]
        contents = {content.strip().lower() for _, content in options}
        whole = letters == list(ascii_uppercase[:OPTIONS]) and len(contents) == OPTIONS
        if whole and OPTION.match(text) is None and text not in seen:
            seen.add(text)
            yield {"problem": text, "seed_id": row.get("id")}


def agreed(rows: Rows) -> Iterator[Row]:
    """Yield questions on whose option enough of the votes agree, unless all do: those are too easy to learn from."""
    for row in rows:
        votes = row.get("votes") or {}
        answer = row.get("predicted_answer")
        share = max(votes.values(), default=0) / max(1, row["num_votes"])
        if answer in ascii_uppercase[:OPTIONS] and SHARE <= share < 1:
            kept = {key: row[key] for key in ("problem", "seed_id")}
            yield {**kept, "expected_answer": answer, "agreement": round(share, 3)}


if __name__ == "__main__":
    main({"questions": questions, "agreed": agreed}, str(__doc__))
