# SPDX-License-Identifier: Apache-2.0
"""Groups of failures, and the rules that put a sample into one: the first that holds counts."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from msgspec import Struct

from newskills.base.records import INSTRUMENT
from newskills.train.data.arithmetic import equality_chains, is_wrong
from newskills.view.scans.finding import Finding
from newskills.view.scans.reply_rules import (
    format_lost,
    last_line,
    line_at,
    loop,
    not_extracted,
    refusal,
    truncated,
)
from newskills.view.scans.tool_rules import empty_tool_output, tool_error_ignored, unresolved_error
from newskills.view.scans.transcript import Transcript
from newskills.view.stories import story_by_record

FailureGroup = Literal[
    "truncation",
    "environment",
    "tool",
    "extraction",
    "grader",
    "gold",
    "instruction",
    "arithmetic",
    "knowledge",
]


class GroupText(Struct, frozen=True, kw_only=True):
    """`title`: as it is shown; `rule`: what puts a sample there; `change`: what would change it."""

    title: str
    rule: str
    change: str


GROUPS: Mapping[FailureGroup, GroupText] = {
    "truncation": GroupText(
        title="truncated replies",
        rule="the token limit ended the reply, or it never left its reasoning",
        change="Raise ++inference.tokens_to_generate; where replies loop, change the sampling or the model instead.",
    ),
    "environment": GroupText(
        title="environment",
        rule="a request, sandbox, judge or harness failed, so that there is no verdict",
        change="Fix the endpoint, sandbox or judge and run the same command again: only these samples are repeated.",
    ),
    "tool": GroupText(
        title="tool failures",
        rule="a tool or executed code failed or returned nothing, and the reply did not recover",
        change="Fix the tool or its time limit, and tell the model what an error of the tool looks like.",
    ),
    "grader": GroupText(
        title="suspected grader fault",
        rule="the extracted answer equals the expected one but for notation, and was judged wrong",
        change="Read these samples; if they are right, choose another grader or settings with ns regrade --grader.",
    ),
    "extraction": GroupText(
        title="answer not extracted",
        rule="the reply ends with the expected answer, and another answer, or none, was extracted",
        change="Compare with ns regrade --lenient, or ask for the format that the grader reads.",
    ),
    "gold": GroupText(
        title="suspected gold fault",
        rule="samples of the problem agree on one other answer and none is correct, or no answer is expected",
        change="Check the expected answers of these problems by hand, and leave out those that are wrong.",
    ),
    "instruction": GroupText(
        title="instructions not followed",
        rule="the reply declines, lacks the format or the answer that was asked for, or breaks a checked instruction",
        change="Change the prompt (say the format at its end, give an example), or fine-tune on the format.",
    ),
    "arithmetic": GroupText(
        title="arithmetic",
        rule="a calculation in the reply is wrong",
        change="Give the model a code tool, or train on solutions with checked arithmetic.",
    ),
    "knowledge": GroupText(
        title="knowledge or reasoning",
        rule="another answer, and no other rule holds",
        change="A stronger model, more samples with a vote, retrieval, or training on such problems.",
    ),
}
"""In the order in which rules are tried, but for `gold`, which needs all samples of a problem."""
_GRADER_CAUSES = ("grader", "judge")
_TOLERANCE = 0.01
_NOTATION = str.maketrans("", "", " \t\n$,{}()[]\\'\"`*")
_LONGEST_ANSWER = 200
_SIGNS = {"\\times": "  *   ", "\\cdot": "  *  ", "\\div": "  / ", "×": "*", "·": "*", "÷": "/", "−": "-"}
"""Signs of a reply → the same for `chains`, of equal length."""


class GroupedFailure(NamedTuple):
    """`reason`: the rule that put the sample into the group; `quote`: what of the transcript shows it; `detail`: the
    reason with figures of this sample."""

    group: FailureGroup
    reason: str
    quote: str
    detail: str = ""


def group_failure(transcript: Transcript) -> GroupedFailure:
    """Return the group of a sample that is not fully correct, as far as this sample alone tells."""
    reply = transcript.reply
    row, cause, outcome = transcript.row, transcript.cause, transcript.outcome
    if cut := truncated(transcript):
        if looping := loop(transcript):
            return _group_by_finding(looping, "truncation", "loops until its end")
        return _group_by_finding(cut, "truncation", cut.label)
    if cause == "data" or (not transcript.gold and "expected_answer" in row):
        return GroupedFailure("gold", "no expected answer", "")
    if cause in _GRADER_CAUSES:
        return GroupedFailure("grader", f"the {cause} failed", "")
    if outcome == "unscored" or (cause in INSTRUMENT and cause != "tool"):
        return GroupedFailure("environment", cause or "no verdict", "")
    error = unresolved_error(transcript) or tool_error_ignored(transcript)
    unseen = story_by_record(row, outcome) == "tool" and not any(True for _ in transcript.exchanges())
    if error:
        return _group_by_finding(error, "tool", error.label)
    if cause == "tool" or unseen:
        return _group_by_finding(empty_tool_output(transcript), "tool", "failed calls")
    if transcript.answer and transcript.gold and same_but_for_notation(transcript.answer, transcript.gold):
        return GroupedFailure("grader", "equal but for notation", last_line(reply))
    if missed := not_extracted(transcript):
        return _group_by_finding(missed, "extraction", missed.label)
    instruction = _instruction_failure(transcript)
    if instruction is not None:
        return instruction
    if wrong := wrong_calculation(reply):
        return GroupedFailure("arithmetic", "wrong calculation", wrong)
    return GroupedFailure("knowledge", "another answer", last_line(reply))


def _group_by_finding(finding: Finding | None, group: FailureGroup, reason: str) -> GroupedFailure:
    quote = ""
    if finding is not None and finding.quotes:
        quote = finding.quotes[0]
    return GroupedFailure(group, reason, quote)


def _instruction_failure(transcript: Transcript) -> GroupedFailure | None:
    if declined := refusal(transcript):
        return _group_by_finding(declined, "instruction", "declined")
    if transcript.row.get("instruction_id_list"):
        return GroupedFailure("instruction", "checked instruction broken", last_line(transcript.reply))
    if transcript.outcome != "no_answer":
        return None
    if lost := format_lost(transcript):
        return _group_by_finding(lost, "instruction", lost.label)
    return GroupedFailure("instruction", "no answer", "")


def same_but_for_notation(answer: str, gold: str) -> bool:
    """Return whether two answers are equal once case, blanks, brackets and notation of numbers are set aside.

    >>> same_but_for_notation("$1,000.0$", "1000")
    True
    """
    first, second = _plain_answer(answer), _plain_answer(gold)
    if not first or not second:
        return False
    if first == second:
        return True
    try:
        return Fraction(first) == Fraction(second)
    except (ValueError, ZeroDivisionError):
        return False


def _plain_answer(answer: str) -> str:
    text = answer[:_LONGEST_ANSWER].replace("\\text", "").replace("\\boxed", "").translate(_NOTATION)
    return text.casefold().strip(".:;")


def wrong_calculation(reply: str) -> str:
    """Return the line of the first calculation of a reply that is wrong by more than 1 %; an empty text without one."""
    text = reply
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    for chain in equality_chains(text, 1):
        if all(map(str.strip, chain.sides)) and is_wrong(chain, _TOLERANCE):
            return line_at(reply, chain.start)
    return ""
