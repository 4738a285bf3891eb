# SPDX-License-Identifier: Apache-2.0
"""Folders of results as `ns eval` writes them, small and written by hand, with what a viewer must cope with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# The smallest PNG: one red pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
HOSTILE = (
    "<script>window.pwned = 1; fetch('https://evil.invalid/')</script>"
    '<img src=x onerror="window.pwned = 2"><svg onload="window.pwned = 3">'
    '<a href="javascript:window.pwned=4">click</a><iframe srcdoc="<script>parent.pwned=5</script>"></iframe>'
    "<style>body{display:none}</style>\x1b[31mred\x1b]0;title\x07 \u202eevil\u202c</textarea></pre>"
    "`${window.pwned=6}` $\\href{javascript:window.pwned=7}{x}$ $\\includegraphics{https://evil.invalid/x.png}$ "
    "[link](javascript:window.pwned=8)"
)


def write_lines(path: Path, rows: list[Any]) -> Path:
    """Rows as JSON lines; a text is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def record(number: int, *, outcome: str = "correct", **fields: Any) -> dict[str, Any]:
    gold = str(number)
    answer = gold if outcome == "correct" else None if outcome in ("no_answer", "unscored") else str(number + 1)
    cause = {"correct": {}, "wrong": {"outcome_cause": "model"}, "unscored": {"outcome_cause": "provider"}}
    return {
        "id": f"p{number}",
        "problem": f"What is {number} times one?",
        "expected_answer": gold,
        "generation": f"So it is \\boxed{{{answer}}}." if answer else "I cannot say.",
        "num_generated_tokens": 10 + number % 40,
        "finish_reason": "stop",
        "predicted_answer": answer,
        "symbolic_correct": outcome == "correct",
        "outcome": outcome,
        **cause.get(outcome, {"outcome_cause": "model"}),
        "grader": "math@6",
        "why": "exact (box)" if answer else "no answer (none)",
    } | fields


def benchmark(run: Path, name: str, seeds: list[list[Any]]) -> Path:
    """A finished benchmark; one list of records for each seed."""
    folder = run / "eval-results" / name
    for seed, rows in enumerate(seeds):
        output = folder / ("output.jsonl" if len(seeds) == 1 else f"output-rs{seed}.jsonl")
        write_lines(output, rows)
        settings = {
            "prompt": "generic/math 1b2ac63f8d887a7a",
            "server.model": run.name,
            "inference.temperature": 0.7,
        }
        known = [row for row in rows if isinstance(row, dict)]
        outcomes = [row.get("outcome") for row in known]
        ledger = {kind: outcomes.count(kind) for kind in ("correct", "wrong", "no_answer", "unscored")}
        state = {
            "status": "done",
            "settings": settings,
            "rows": len(rows),
            "done": len(rows),
            "ledger": ledger,
            "input_tokens": 100,
            "output_tokens": sum(row.get("num_generated_tokens") or 0 for row in known),
            "cost": 0.0125,
            "started": 1000.0,
            "ended": 1060.0,
        }
        output.with_name(f"{output.name}.run.json").write_text(json.dumps(state))
    return folder


def mixed(count: int, right: int, *, shift: int = 0) -> list[dict[str, Any]]:
    """`count` records of which about `right` in 10 are correct."""
    return [record(n, outcome="correct" if (n * 7 + shift) % 10 < right else "wrong") for n in range(count)]


CALL = {"id": "1", "type": "function", "function": {"name": "python", "arguments": '{"code": "print(84 / 2)\\n"}'}}
CONVERSATION = [
    {"role": "system", "content": "You may call tools."},
    {"role": "user", "content": "What is $\\frac{84}{2}$?"},
    {"role": "assistant", "content": "Let me compute.", "tool_calls": [CALL]},
    {"role": "tool", "name": "python", "tool_call_id": "1", "content": "42.0\n"},
    {"role": "assistant", "content": "It is \\boxed{42}."},
]
FORMULAS = (
    "We use the quadratic formula $x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$, so\n\n"
    "$$\\sum_{k=1}^{n} k = \\frac{n(n+1)}{2}$$\n\n"
    "```python\ndef total(n):\n    return n * (n + 1) // 2\n```\n\n"
    "Hence \\(n = 7\\) and the answer is $\\boxed{28}$, for $5 to $6."
)
MARKDOWN = (
    "## Steps\n\n1. First is **bold** and $a_1 * b_1$\n2. Second is `code` and <b>not bold</b>\n\n"
    "| n | square |\n|---|---|\n| 2 | 4 |\n\n```python\nprint(1)\n```\n\n"
    "See [a page](https://elsewhere.invalid/) and [link](javascript:window.pwned=9).\n\nSo $\\boxed{11}$."
)
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def rich_records() -> list[Any]:
    """One of each kind that is shown in a way of its own."""
    asked = [{"role": "user", "content": [{"type": "text", "text": "What colour is this?"}, PICTURE]}]
    hostile = {"generation": HOSTILE, "problem": f"Say it: {HOSTILE}", "predicted_answer": "<b>bold</b>"}
    tools = {"generation": "It is \\boxed{42}.", "predicted_answer": "42", "expected_answer": "42"}
    cut = {"finish_reason": "length", "outcome_cause": "truncation", "generation": "Let us see. " * 50}
    return [
        record(0, generation=FORMULAS, predicted_answer="28", expected_answer="28"),
        record(1, outcome="wrong", id=HOSTILE[:40], **hostile),
        record(2, conversation=CONVERSATION, **tools),
        record(3, outcome="wrong", reasoning_content="I think. Then I err. " * 30, generation="So \\boxed{4}."),
        record(4, messages=asked),
        record(5, outcome="no_answer", **cut),
        record(6, outcome="unscored", error="timeout", detailed_error="the server did not answer", generation=""),
        record(7, outcome="wrong", judgement="Reasoning: no.\nJudgement: No", why="judged"),
        '{"id": "broken", "generation": "half',
        record(9, subset_for_metrics="algebra"),
        record(10, outcome="wrong", subset_for_metrics="geometry"),
        record(11, generation=MARKDOWN),
    ]


def shares(count: int, gain: float) -> list[dict[str, Any]]:
    """Records of graphwalks, whose score is a share (F1); from the third on it is `gain` higher."""
    return [
        record(n, outcome="wrong", f1=min(1.0, (n % 4) / 4 + (gain if n > 1 else 0.0)), parse_failed=0.0)
        for n in range(count)
    ]
