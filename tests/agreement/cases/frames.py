# SPDX-License-Identifier: Apache-2.0
"""FRAMES (arXiv:2409.12941): TRUE or FALSE of a judge with the paper's prompt. The authors published no program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import VERDICTS, Comparison, Verdict, by_grader
from tests.agreement.originals import defined

_EXPLANATIONS = (
    "Both name Jane Ballou.",
    "The predicted answer says 506000, the ground truth answer 506,000.",
    "The ground truth answer is not present: it is TRUE that 1925 is a year, but another one.",
    "Only the first of two names is there. Decision rule 3 wants both.",
    "The predicted answer is cut off.",
    "The difference is 4 years: the same.",
    '"Mendelevium" is named after Mendeleev.',
    "It says France, then FALSE friends are discussed.",
    "The order differs\nand the names agree.",
    "37th: the rank in 2024.",
    "It says that it does not know.",
    "The unit is missing; the value agrees.",
)


def rows() -> Iterator[Row]:
    for decision in ("TRUE", "FALSE"):
        for explanation in _EXPLANATIONS:
            yield {"decision": decision, "explanation": explanation}


def forms(row: Row) -> Mapping[str, Row]:
    decision, explanation = row["decision"], row["explanation"]
    before = f"Explanation: {explanation}"
    texts = {
        "as wanted": f"{before}\nDecision: {decision}",
        "blank line": f"{before}\n\nDecision: {decision}\n",
        "no blank": f"{before}\nDecision:{decision}",
        "alone": f"Decision: {decision}",
        "decision first": f"Decision: {decision}\n{before}",
        "small letters": f"{before}\nDecision: {decision.lower()}",
        "in other words": f"{explanation}\n\nDecision: {decision}",
        "heading": f"{before}\n\n### Decision: {decision}",
        "label in bold": f"**Explanation:** {explanation}\n\n**Decision:** {decision}",
        "line in bold": f"{before}\n\n**Decision: {decision}**",
        "in quotes": f'"Explanation:" {explanation}\n"Decision:" "{decision}"',
        "point": f"{before}\nDecision: {decision}.",
        "nothing": before,
        "cut off": f"{before}\nDecision:",
    }
    return {form: {"judgement": text, "generation": "text"} for form, text in texts.items()}


def original(folder: Path) -> Verdict:
    """The judge says what it is told to."""
    asked = SimpleNamespace()
    client = SimpleNamespace(chat=SimpleNamespace(completions=asked))
    evaluate = defined(
        folder / "scripts" / "eval_frames_benchmark.py", "evaluate_response", client=client, Dict=dict
    )

    def verdict(row: Row, reply: Any) -> float:
        choice = SimpleNamespace(message=SimpleNamespace(content=reply["judgement"]))
        asked.create = lambda **settings: SimpleNamespace(choices=[choice])
        said: Row = evaluate.evaluate_response("Who?", "text", "Jane", "judge")
        return float(said["decision"] == "TRUE")

    return verdict


def ours(row: Row, reply: Any) -> float:
    """−1: no verdict."""
    verdict = _JUDGED(row, reply)
    return -1.0 if verdict is None else verdict


_JUDGED = by_grader("judgement", value="judge_correct")
_DRESSED = "the original reads a line that begins with `Decision:` and is over after the word"
COMPARISON = Comparison(
    name="frames",
    benchmarks=("frames",),
    scorer="optillm `eval_frames_benchmark.py`, with the judge of the paper",
    compared=VERDICTS,
    repository="codelion/optillm",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        **dict.fromkeys(("heading", "label in bold", "line in bold", "in quotes", "point"), _DRESSED),
        **dict.fromkeys(
            ("nothing", "cut off"),
            "the original counts a text without a decision as false; ours leaves the sample unscored",
        ),
    },
    left_out=(
        "a program of the authors, who published data and the judge's prompt only (looked for on their data "
        "card, in their paper and in public repositories); optillm's is the one that others refer to."
    ),
)
