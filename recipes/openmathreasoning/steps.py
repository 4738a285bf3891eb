# SPDX-License-Identifier: Apache-2.0
"""What happens between the generations: `python steps.py STEP OUT IN…`. Files of JSON lines in, one out."""

from __future__ import annotations

import math
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from files import Row, Rows, Step, between, last, main, said

PROBLEM, ANSWER = between("problem"), between("answer")
KIND, CODE = re.compile(r"Kind:\s*(\w+)"), re.compile(r"Code:\s*(\w+)\W+(\w+)")
JUDGMENT = re.compile(r"Judg[e]?ment:\s*(\d{1,6})(?!\d)")
BLOCK = "```python"
SMALLEST, PEAK, LARGEST, SPREAD, GROUPS = 2, 8, 16, 4.0, 8
"""Solutions of a group: a normal distribution around PEAK, cut off at both ends; so many groups of each problem."""
SHARE = 0.5
"""Of the votes that an answer needs which nobody has given."""


def problems(rows: Rows) -> Iterator[Row]:
    """Yield the problems in posts, each once."""
    seen: set[str] = set()
    for row in rows:
        for text in PROBLEM.findall(said(row)):
            problem = text.strip()
            if problem and problem not in seen:
                seen.add(problem)
                yield {"problem": problem, "forum_post": row["forum_post"]}


def kind(wanted: str) -> Callable[[Rows], Iterator[Row]]:
    """Select those classified problems that are of the kind."""

    def chosen(rows: Rows) -> Iterator[Row]:
        for row in rows:
            if (last(KIND, said(row)) or "").lower() == wanted:
                yield {key: row[key] for key in ("problem", "forum_post")}

    return chosen


def questions(rows: Rows) -> Iterator[Row]:
    """Join problems to find something, and rewritten proofs → one list."""
    for row in rows:
        if "generation" not in row:
            yield {**row, "problem_type": "has_answer_extracted"}
        elif text := (last(PROBLEM, said(row)) or "").strip():
            # What the discussion proves is no answer to what is asked now.
            yield {"problem": text, "forum_post": "", "problem_type": "converted_proof"}


def known(rows: Rows) -> Iterator[Row]:
    """Yield questions whose answer is in the discussion."""
    for row in rows:
        if answer := (last(ANSWER, said(row)) or "").strip():
            yield {**question(row), "expected_answer": answer}


def unknown(rows: Rows) -> Iterator[Row]:
    """Return the questions for which no answer was found."""
    return (question(row) for row in rows if not (last(ANSWER, said(row)) or "").strip())


def gold(rows: Rows) -> Iterator[Row]:
    """Yield questions with an answer, and those on whose answer enough of the votes agree."""
    for row in rows:
        if "votes" not in row:
            yield row
        elif row["votes"] and row["votes"][next(iter(row["votes"]))] >= SHARE * sum(row["votes"].values()):
            found = {**question(row), "expected_answer": row["predicted_answer"]}
            yield {**found, "problem_type": "no_answer_extracted"}


def within_limit(rows: Rows) -> Iterator[Row]:
    """Yield solutions with code that keep to the number of executions they were told."""
    return (row for row in rows if 0 < row["num_code_executions"] <= row["total_code_executions"])


def good_code(rows: Rows) -> Iterator[Row]:
    """Select, of judged solutions with code those whose one or two blocks find something that is hard to find
    without."""
    for row in rows:
        match = CODE.findall(said(row))
        if match and match[-1] == ("novel", "significant") and row["solution"].count(BLOCK) <= 2:
            yield {**row, "generation": row["solution"]}


def as_solution(rows: Rows) -> Iterator[Row]:
    """Yield right solutions, to be judged."""
    return ({**row, "solution": row["generation"]} for row in rows if row.get("symbolic_correct"))


def to_summarize(rows: Rows) -> Iterator[Row]:
    """Yield graded solutions with an answer; the summary is right if it comes to the same answer, right or wrong."""
    for number, row in enumerate(rows):
        if row.get("outcome") in ("correct", "wrong") and row.get("predicted_answer"):
            yield {
                "id": str(number),
                "problem": row["problem"],
                "solution": said(row),
                "expected_answer": row["predicted_answer"],
                "right": row["outcome"] == "correct",
            }


def groups(rows: Rows) -> Iterator[Row]:
    """Group summaries of solutions, each with right and wrong ones, no two alike."""
    longest: dict[tuple[str, str], Row] = {}
    for row in rows:
        place = row["problem"], row["id"]
        if row.get("symbolic_correct") and len(said(row)) > len(said(longest.get(place, {}))):
            longest[place] = row
    of_problem: dict[str, list[Row]] = defaultdict(list)
    for (problem, _), row in longest.items():
        of_problem[problem].append(row)
    for problem, several in of_problem.items():
        yield from _groups(problem, several)


def _groups(problem: str, summaries: Sequence[Row]) -> Iterator[Row]:
    right = [row for row in summaries if row["right"]]
    wrong = [row for row in summaries if not row["right"]]
    if not right or not wrong:
        return
    draw = random.Random(problem)  # noqa: S311 - repeatable on purpose
    seen: set[frozenset[str]] = set()
    for _ in range(GROUPS):
        size = min(group_size(draw), len(summaries))
        most = min(len(right), size - 1)
        count = draw.randint(max(1, size - len(wrong)), most)
        chosen = [*draw.sample(right, count), *draw.sample(wrong, size - count)]
        if (members := frozenset(row["id"] for row in chosen)) in seen:
            continue
        seen.add(members)
        draw.shuffle(chosen)
        yield {
            "problem": problem,
            "solutions": "\n\n".join(f"Solution {n}:\n{said(row)}" for n, row in enumerate(chosen)),
            "num_solutions": size,
            "max_idx": size - 1,
            "right": [n for n, row in enumerate(chosen) if row["right"]],
        }


def group_size(draw: random.Random) -> int:
    """Draw a size from the truncated normal distribution, by rejection."""
    while True:
        size = math.floor(draw.gauss(PEAK, SPREAD) + 0.5)
        if SMALLEST <= size <= LARGEST:
            return size


def chosen_right(rows: Rows) -> Iterator[Row]:
    """Yield comparisons that chose a right solution."""
    for row in rows:
        if (index := judged(row)) in row["right"]:
            yield {**row, "comparison": said(row), "expected_answer": str(index)}


def genselect(rows: Rows) -> Iterator[Row]:
    """Select, of the summaries of a comparison the longest that chooses the same, as training data."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        place = row["problem"], row["solutions"]
        if str(judged(row)) == row["expected_answer"] and len(said(row)) > len(said(best.get(place, {}))):
            best[place] = row
    for row in best.values():
        yield {**row, "generation": said(row), "symbolic_correct": True}


def judged(row: Row) -> int | None:
    """Return the number that the reply chose; None where it chose none."""
    found = last(JUDGMENT, said(row))
    return None if found is None else int(found)


def question(row: Row) -> Row:
    """Return the row without what was generated for it."""
    return {key: row[key] for key in ("problem", "problem_type", "forum_post") if key in row}


STEPS: dict[str, Step] = {
    "problems": problems,
    "find": kind("find"),
    "proofs": kind("proof"),
    "questions": questions,
    "known": known,
    "unknown": unknown,
    "gold": gold,
    "within_limit": within_limit,
    "as_solution": as_solution,
    "good_code": good_code,
    "to_summarize": to_summarize,
    "groups": groups,
    "chosen_right": chosen_right,
    "genselect": genselect,
}


if __name__ == "__main__":
    main(STEPS, str(__doc__))
