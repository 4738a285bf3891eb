# SPDX-License-Identifier: Apache-2.0
"""What a record tells of its grading beside one answer: programs, instructions, options, calls, judges, votes, steps.

A face is a list of blocks that the page knows how to draw, each `{"kind": …, "title": …}` with fields of its kind. They
come from fields of the record alone; what is not there, or has another form, gives no block.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from newskills.base.reading.json_values import list_or_empty, object_or_empty
from newskills.base.records import Row
from newskills.graders.tool_calls.calls import answered_calls, api_name
from newskills.view.records import as_text, messages_in

MOST_STEPS = 500
MOST_ITEMS = 200
LONGEST_OUTPUT = 20_000
LONGEST_PART = 2_000
_OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s+(\S.*)$", re.MULTILINE)
_OPTION_FIELDS = ("options", "choices", "problem", "question")
_REPORTS = ("swe-bench-metrics", "task-tests")
_JUDGED_ORDERS = {
    "judgement-gen-base": "First order: A is this model, B the baseline",
    "judgement-base-gen": "Second order: A is the baseline, B this model",
}
_HUNK = re.compile(r"^(?:diff --git |--- |\+\+\+ |@@ )", re.MULTILINE)


def face_of(row: Row) -> list[Row]:
    """Return the blocks of a record."""
    makers = (
        _program_blocks,
        _failed_test,
        _test_classes,
        _instruction_blocks,
        _option_blocks,
        _call_blocks,
        _criterion_blocks,
        _judgement_blocks,
        _test_blocks,
        _patch_blocks,
        _step_blocks,
    )
    return [block for make in makers for block in make(row)]


def vote_block(answers: Sequence[str | None], gold: str | None) -> list[Row]:
    """Return the block of the answers of several samples of a problem, those with most votes first; none for one
    sample or where none has an answer."""
    if len(answers) < 2 or not any(answers):
        return []
    groups = [
        {"answer": answer, "count": count, "gold": answer is not None and answer == gold}
        for answer, count in Counter(answers).most_common(MOST_ITEMS)
    ]
    return [{"kind": "votes", "title": "Answers of all seeds", "groups": groups, "total": len(answers)}]


def _program_blocks(row: Row) -> Iterator[Row]:
    code = row.get("completion")
    if isinstance(code, str) and code.strip():
        suspicious = row.get("suspicious")
        warning = f"Suspicious: {as_text(suspicious)}" if suspicious else ""
        yield {"kind": "code", "title": "Program that was tested", "text": code, "note": warning}


def _failed_test(row: Row) -> Iterator[Row]:
    """Yield the first test that failed: number, input, expected and actual output, time."""
    failed = row.get("failed_test")
    if isinstance(failed, dict):
        names = ("input", "expected", "actual", "error")
        parts = [{"name": name, "text": as_text(failed[name])} for name in names if failed.get(name) is not None]
        number, total, seconds = failed.get("number"), failed.get("total"), failed.get("seconds")
        why = as_text(failed.get("why"))
        time = f"{seconds:.2f} s" if isinstance(seconds, (int, float)) else ""
        yield {
            "kind": "test",
            "title": f"Test {number} of {total} failed",
            "parts": parts,
            "note": " · ".join(part for part in (why, time) if part),
        }


def _test_classes(row: Row) -> Iterator[Row]:
    passed = row.get("test_classes_passed")
    if isinstance(passed, dict) and passed:
        items = [{"text": str(name), "passed": bool(value), "note": ""} for name, value in passed.items()]
        yield {"kind": "checks", "title": "Tests", "items": items[:MOST_ITEMS]}


def _instruction_blocks(row: Row) -> Iterator[Row]:
    """Yield the instructions of IFEval's kind, and which of them were followed."""
    names, strict = row.get("instruction_id_list"), row.get("strict_eval")
    followed = None
    if isinstance(strict, dict):
        followed = strict.get("follow_instruction_list")
    if not isinstance(names, list) or not isinstance(followed, list) or len(names) != len(followed):
        return
    loose = row.get("loose_eval")
    loosely = None
    if isinstance(loose, dict):
        loosely = loose.get("follow_instruction_list")
    arguments = row.get("kwargs")
    items = []
    for place, (name, kept) in enumerate(zip(names, followed, strict=True)):
        values = None
        if isinstance(arguments, list) and place < len(arguments):
            values = arguments[place]
        if isinstance(values, dict):
            actual_values = {k: v for k, v in values.items() if v is not None}
        else:
            actual_values = {}
        note = ", ".join(f"{key}={as_text(value)}" for key, value in actual_values.items())
        if not kept and isinstance(loosely, list) and place < len(loosely) and loosely[place]:
            note = f"{note}; followed by the loose reading".removeprefix("; ")
        items.append({"text": str(name), "passed": bool(kept), "note": note[:LONGEST_PART]})
    yield {"kind": "checks", "title": "Instructions", "items": items[:MOST_ITEMS]}


def _option_blocks(row: Row) -> Iterator[Row]:
    """Yield the options of a multiple-choice question, with the expected and the chosen one."""
    gold, chosen = row.get("expected_answer"), row.get("predicted_answer")
    if not isinstance(gold, str) or not re.fullmatch(r"[A-Z]", gold.strip()):
        return
    for name in _OPTION_FIELDS:
        if options := _listed_options(row.get(name)):
            items = [
                {"label": label, "text": text, "chosen": label == chosen, "gold": label == gold.strip()}
                for label, text in options
            ]
            yield {"kind": "options", "title": "Options", "items": items}
            return


def _listed_options(value: Any) -> list[tuple[str, str]]:
    """Return (letter, text) of options that are a list, a table, or lines that begin with A, B, C …; else none."""
    if isinstance(value, list) and 1 < len(value) <= 26 and all(isinstance(item, str) for item in value):
        return [(chr(ord("A") + place), item) for place, item in enumerate(value)]
    if isinstance(value, dict) and value and all(re.fullmatch(r"[A-Z]", str(key)) for key in value):
        return [(str(key), as_text(text)) for key, text in value.items()]
    if not isinstance(value, str):
        return []
    lines = _OPTION.findall(value)
    while lines and lines[0][0] != "A":
        lines.pop(0)
    count = sum(1 for place, (letter, _) in enumerate(lines) if ord(letter) - ord("A") == place)
    if count == len(lines) > 1:
        return lines
    return []


def _call_blocks(row: Row) -> Iterator[Row]:
    """Yield the calls that were expected beside those that were made, argument by argument."""
    wanted = row.get("ground_truth")
    if (
        row.get("check") != "calls"
        or not isinstance(wanted, list)
        or not all(isinstance(goal, dict) for goal in wanted)
    ):
        return
    made, readable = answered_calls(row)
    left = list(made)
    rows = []
    for goal in wanted[:MOST_ITEMS]:
        for name, arguments in goal.items():
            same_name = [call for call in left if api_name(call.name) == api_name(name)]
            call = next(iter(same_name or left), None)
            if call is not None:
                left.remove(call)
            rows.append(_call_row(name, arguments, call))
    rows += [_call_row(None, {}, call) for call in left[:MOST_ITEMS]]
    note = "" if readable else "A call of the reply cannot be read."
    yield {"kind": "calls", "title": "Calls", "rows": rows, "note": note}


def _call_row(name: str | None, accepted: Any, call: Any) -> Row:
    values, actual_name, actual_values = object_or_empty(accepted), None, dict[str, Any]()
    if call is not None:
        actual_name, actual_values = call.name, dict(call.arguments)
    arguments = []
    for argument in dict.fromkeys([*values, *actual_values]):
        expected = " or ".join(as_text(value) or '""' for value in list_or_empty(values.get(argument)))
        actual = None
        if argument in actual_values:
            actual = as_text(actual_values[argument])[:LONGEST_PART]
        arguments.append({"name": argument, "expected": expected[:LONGEST_PART], "actual": actual})
    return {"expected": name, "actual": actual_name, "arguments": arguments}


def _judgement_blocks(row: Row) -> Iterator[Row]:
    """Yield what judges wrote, with the verdict that was read of it; both orders of a comparison."""
    texts = {name: row[name] for name in row if name == "judgement" or name.startswith("judgement-")}
    items = [
        {
            "title": _JUDGED_ORDERS.get(name, name.removeprefix("judgement").removeprefix("-").replace("-", " ")),
            "text": text[:LONGEST_OUTPUT],
        }
        for name, text in texts.items()
        if isinstance(text, str) and text.strip()
    ]
    if items:
        who = [as_text(row[name]) for name in ("judge_model", "judge_prompt") if row.get(name)]
        note = " · ".join(part for part in (_read_verdict(row), *who) if part)
        yield {"kind": "judgements", "title": "Judge", "items": items[:MOST_ITEMS], "note": note}


def _criterion_blocks(row: Row) -> Iterator[Row]:
    """Yield each criterion of a rubric with its points, and whether the judge says that it is met."""
    rubrics, met = row.get("rubrics"), row.get("rubric_met")
    if not isinstance(rubrics, list) or not isinstance(met, list):
        return
    items = []
    for number, (rubric, verdict) in enumerate(zip(rubrics[:MOST_ITEMS], met, strict=False), 1):
        if isinstance(rubric, dict):
            points = rubric.get("points")
            if not isinstance(verdict, bool):
                state = "no verdict"
            elif verdict:
                state = "met"
            else:
                state = "not met"
            is_fault = isinstance(points, (int, float)) and points < 0
            items.append(
                {
                    "text": f"{number}. {as_text(rubric.get('criterion'))[:LONGEST_PART]}",
                    "passed": isinstance(verdict, bool) and verdict != is_fault,
                    "note": f"{state}, {as_text(points)} points",
                }
            )
    if items:
        yield {"kind": "checks", "title": "Criteria", "items": items, "note": _read_verdict(row)}


def _read_verdict(row: Row) -> str:
    """Return how the judges' texts were read, where the record says so."""
    for name in ("judge_correct", "rubric_score", "arena_games", "ratings", "verdict", "rating", "score"):
        if row.get(name) is not None:
            verdict = row[name]
            if not isinstance(verdict, list):
                verdict = [verdict]
            return f"{name.replace('_', ' ')}: {', '.join(map(as_text, verdict))}"
    return ""


def _test_blocks(row: Row) -> Iterator[Row]:
    """Yield the report of a task's own tests, and the end of their output."""
    report = next((row[name] for name in _REPORTS if isinstance(row.get(name), dict)), None)
    if report is None:
        return
    items = []
    for name, value in report.items():
        if name == "tests_timed_out" and isinstance(value, bool):
            items.append({"text": "tests ended in time", "passed": not value, "note": ""})
        elif isinstance(value, bool):
            items.append({"text": name.replace("_", " "), "passed": value, "note": ""})
    if items:
        yield {"kind": "checks", "title": "Tests of the task", "items": items}
    output = row.get("test_output") or report.get("output")
    if isinstance(output, str) and output.strip():
        yield {"kind": "output", "title": "Output of the tests", "text": output[-LONGEST_OUTPUT:]}


def _patch_blocks(row: Row) -> Iterator[Row]:
    patch = row.get("model_patch")
    if isinstance(patch, str) and _HUNK.search(patch):
        yield {"kind": "diff", "title": "Patch", "text": patch[: 10 * LONGEST_OUTPUT]}


def _step_blocks(row: Row) -> Iterator[Row]:
    """Yield the steps of an agent: thought, command, output, exit code, seconds."""
    steps = row.get("steps")
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        return
    turns = list(_turns_with_commands(messages_in(row)))
    items = []
    for place, step in enumerate(steps[:MOST_STEPS]):
        thought, output = turns[place] if place < len(turns) else ("", "")
        code = step.get("exit_code")
        items.append(
            {
                "number": place + 1,
                "thought": thought[:LONGEST_PART],
                "command": as_text(step.get("command"))[:LONGEST_OUTPUT],
                "output": output[:LONGEST_OUTPUT],
                "status": as_text(step.get("status")),
                "exit_code": code,
                "seconds": step.get("seconds"),
                "tokens": step.get("num_generated_tokens"),
                "failed": bool(code) or step.get("status") not in (None, "completed", "ok", "done"),
            }
        )
    left = len(steps) - len(items)
    note = f"{left:,} more steps are not shown." if left else ""
    yield {
        "kind": "steps",
        "title": "Steps",
        "items": items,
        "note": note,
        "ended": as_text(row.get("exit_status")),
    }


def _turns_with_commands(messages: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield (what the model wrote, what it was turns) of each turn of a conversation that something followed."""
    for place, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        after = []
        for reply in messages[place + 1 :]:
            if reply.get("role") == "assistant":
                break
            after.append(as_text(reply.get("content")))
        if after:
            yield as_text(message.get("reasoning_content") or message.get("content")), "\n".join(after)
