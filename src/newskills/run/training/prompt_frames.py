# SPDX-License-Identifier: Apache-2.0
"""Is a model trained on the prompt that it is evaluated with? What stands around the questions is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from newskills.run.training.leakage import question_of
from newskills.train.loops.samples import Problem
from newskills.train.verbs import Datum

LOOKED_AT = 200
"""Prompts of each side that are compared."""
_MOST = 60
"""Characters of a prompt's end in a message."""

Decode = Callable[[Sequence[int]], str]


class PromptFrame(NamedTuple):
    """What all prompts of an evaluation begin and end with."""

    begin: str
    end: str

    def fits(self, prompt: str) -> bool:
        """Return whether a prompt begins and ends like those of the evaluation."""
        return prompt.startswith(self.begin) and prompt.endswith(self.end)


def frame_of(prompts: Sequence[tuple[str, str | None]]) -> PromptFrame:
    """Return what stands around the questions of (prompt, question) pairs; without a question, around what differs."""
    heads, tails = [], []
    for prompt, question in prompts:
        at = prompt.rfind(question) if question else -1
        head = prompt[:at] if at >= 0 else prompt
        heads.append(head)
        tails.append(prompt[at + len(question or "") :] if at >= 0 else prompt)
    begin = _common_beginning(heads)
    return PromptFrame(begin, _common_beginning([tail[::-1] for tail in tails])[::-1])


def prompt_difference(examples: Sequence[Datum], problems: Sequence[Problem], decode: Decode, name: str) -> str:
    """Return a sentence where training prompts begin or end otherwise than those of the evaluation `name`; else an
    empty text."""
    if not problems or not examples:
        return ""
    frame = frame_of([(decode(problem.prompt), question_of(problem.row)) for problem in problems[:LOOKED_AT]])
    prompts = [decode(_prompt_of(datum)) for datum in examples[:LOOKED_AT]]
    others = [prompt for prompt in prompts if not frame.fits(prompt)]
    if not others:
        return ""
    first = others[0]
    begins = not first.startswith(frame.begin)
    trained, evaluated = _where_differs(first, frame.begin) if begins else _text_ends(first, frame.end)
    place = "begin" if begins else "end"
    return (
        f"{len(others)} of {len(prompts)} training prompts are not asked as {name} asks: they "
        f"{place} with {trained!r}, its prompts with {evaluated!r}. A model answers best to the "
        f"prompt that it was trained on. Next: ns prepare_training_data --benchmark={name.partition('=')[2] or 'NAME'}"
    )


def _prompt_of(datum: Datum) -> list[int]:
    """Return the tokens before the first one with a loss."""
    weights = [*(datum.weights or ())]
    start = next((at for at, weight in enumerate(weights) if weight), len(weights))
    return [*datum.tokens[: start + 1]]


def _common_beginning(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    count = next((at for at in range(min(len(first), len(last))) if first[at] != last[at]), None)
    common = min(len(first), len(last)) if count is None else count
    return first[:common]


def _where_differs(text: str, begin: str) -> tuple[str, str]:
    """Return how both go on from a little before they differ."""
    at = max(0, len(_common_beginning([text, begin])) - _MOST // 3)
    return text[at : at + _MOST], begin[at : at + _MOST]


def _text_ends(text: str, end: str) -> tuple[str, str]:
    return text[-min(len(end), _MOST) :], end[-_MOST:]
