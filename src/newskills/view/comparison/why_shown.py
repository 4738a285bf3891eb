# SPDX-License-Identifier: Apache-2.0
"""Explanations as text of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from newskills.base.terminal import printable
from newskills.view.comparison.shown import align_columns, wrap_text
from newskills.view.comparison.why import STEP_ORDER, Explanation

_DIFF_LINE = 76


def as_text(explanation: Explanation) -> str:
    """Return a text: what differs, the prompts as a diff, and a table of how many points each step explains."""
    return printable("\n".join(_explanation_lines(explanation))) + "\n"


def _explanation_lines(explanation: Explanation) -> Iterator[str]:
    yield from wrap_text(f"{explanation.benchmark}: {explanation.before} → {explanation.after}", "")
    yield ""
    if not explanation.differs:
        yield "  Nothing that the records tell differs."
    for difference in sorted(explanation.differs, key=lambda difference: STEP_ORDER.index(difference.kind)):
        yield from wrap_text(f"{difference.kind} differs: {difference}", "  ")
    if explanation.prompt_diff:
        yield ""
        for line in explanation.prompt_diff:
            if len(line) <= _DIFF_LINE:
                yield f"    {line}"
            else:
                yield f"    {line[: _DIFF_LINE - 1]}…"
    yield ""
    head = ("", "before", "after", "points", "explained", "problems")
    rows = [head]
    for number, step in enumerate(explanation.steps):
        problems = f"{step.problems:,}"
        if step.left_out:
            problems += f" (−{step.left_out:,})"
        explained = "" if number == 0 else f"{step.worth:+.2f}"
        rows.append(
            (
                step.what,
                f"{step.before:.2f}",
                f"{step.after:.2f}",
                f"{step.difference:+.2f}",
                explained,
                problems,
            )
        )
    yield from align_columns(rows)
    yield ""
    for sentence in (*explanation.unknown, *(f"note: {note}" for note in explanation.notes)):
        yield from wrap_text(sentence, "  ")
