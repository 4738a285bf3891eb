# SPDX-License-Identifier: Apache-2.0
"""Pairs of a preferred and a rejected reply: from files of pairs, or from graded outputs, right beside wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.stats import mean_interval
from newskills.base.store import read_rows
from newskills.base.terminal import counted
from newskills.run.training.rows import MEDIA, TEXT_ONLY, alpaca_messages, with_system
from newskills.run.training.skill import Skill
from newskills.train.data.reading import recorded_verdict
from newskills.train.data.row_fields import REASONING, TOLD, field_text, reasoning_of, refuse_lost
from newskills.train.loops.dpo import Pair
from newskills.train.loops.reward_model import HeldOutPairs, PairScores, right
from newskills.train.verbs import Datum

DECIDED = ("correct", "wrong", "no_answer")
LAST_STEPS = 10
CUT = "length"
"""The finish reason of a reply that reached its limit of tokens: no token ends it."""


class Preference(Struct, frozen=True, kw_only=True):
    """A row of a file of pairs. `prompt` is a conversation, or a text that is used as it is, and so are the replies."""

    prompt: list[Row] | str
    chosen: str
    rejected: str
    tools: list[Row] | None = None


class LabelledText(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply that is good or bad. `prompt` is a conversation, or a text that is used as it is, and so is the reply."""

    prompt: list[Row] | str
    completion: str
    label: bool
    tools: list[Row] | None = None

    def example(self, skill: Skill) -> Datum:
        """Return the token ids of the reply after the prompt. Raises DataError where one is empty."""
        if isinstance(self.prompt, str):
            return skill.continuation(self.prompt, self.completion)
        return skill.reply(self.prompt, self.completion, self.tools)


class PairCount(Struct, frozen=True, kw_only=True):
    """How many graded replies gave no pair. Problems: all correct, all wrong; replies: unscored, cut off."""

    problems: int
    all_correct: int
    all_wrong: int
    unscored: int
    cut_off: int


class _Reply(NamedTuple):
    text: str
    ended: bool


class _Problem(NamedTuple):
    row: Row
    correct: dict[str, _Reply]
    wrong: dict[str, _Reply]


def read_preferences(path: Path) -> list[Preference]:
    """Read rows `{prompt, chosen, rejected}` of texts or of conversations, as TRL reads them, or `{chosen,
    rejected}` of two whole conversations. Raises DataError."""
    rows = [_preference(row, f"{path}, row {number}") for number, row in enumerate(read_rows(path), 1)]
    if not rows:
        raise DataError(f"{path} has no rows to train on.")
    return rows


def read_labelled(path: Path) -> list[LabelledText]:
    """Read rows `{prompt, completion, label}` of texts or of conversations, as TRL reads them. Raises
    DataError."""
    rows = [_labelled(row, f"{path}, row {number}") for number, row in enumerate(read_rows(path), 1)]
    if not rows:
        raise DataError(f"{path} has no rows to train on.")
    return rows


def label_outputs(files: Sequence[Path], skill: Skill, *, keep_cut_off: bool) -> tuple[list[LabelledText], int]:
    """Return the different replies of graded outputs, correct ones as good, and the number of replies without a
    verdict.

    Raises DataError for a row without a reply, or where no reply is left.
    """
    labelled: dict[tuple[str, str], LabelledText] = {}
    unscored = 0
    for path in files:
        for number, row in enumerate(read_rows(path), 1):
            where, correct = f"{path}, row {number}", _verdict(row)
            if correct is None:
                unscored += 1
                continue
            ended = row.get("finish_reason") != CUT
            if not ended and not keep_cut_off:
                continue
            text = _generation(row, where)
            reply = skill.pair(row, text)["output"] if ended else text
            made = LabelledText(prompt=skill.prompt_text(row), completion=reply, label=correct)
            labelled.setdefault((_identity(row, where), text), made)
    if not labelled:
        raise DataError(
            f"No reply of {files[0]} has a verdict.", hint="ns grade grades any JSONL file of answers."
        )
    return list(labelled.values()), unscored


def pair_outputs(
    files: Sequence[Path], skill: Skill, per_problem: int, seed: int, *, keep_cut_off: bool
) -> tuple[list[Preference], PairCount]:
    """Pair correct replies with wrong ones to the same problem, at most `per_problem` pairs, drawn by `seed`.

    Rows of `files` are those of an evaluation, with a verdict; what nobody has decided is in no pair. The prompt is
    what `skill` makes of the row. Raises DataError where no problem has both kinds, or a row has no reply.
    """
    problems: dict[str, _Problem] = {}
    unscored = cut_off = 0
    for path in files:
        for number, row in enumerate(read_rows(path), 1):
            where = f"{path}, row {number}"
            correct = _verdict(row)
            if correct is None:
                unscored += 1
                continue
            ended = row.get("finish_reason") != CUT
            if not ended and not keep_cut_off:
                cut_off += 1
                continue
            problem = problems.setdefault(_identity(row, where), _Problem(row, {}, {}))
            text = _generation(row, where)
            (problem.correct if correct else problem.wrong).setdefault(text, _Reply(text, ended))
    count = PairCount(
        problems=len(problems),
        all_correct=sum(not problem.wrong for problem in problems.values()),
        all_wrong=sum(not problem.correct for problem in problems.values()),
        unscored=unscored,
        cut_off=cut_off,
    )
    pairs = [
        _rendered(problem.row, *replies, skill)
        for identity, problem in problems.items()
        for replies in _drawn(problem, per_problem, f"{seed}-{identity}")
    ]
    if not pairs:
        raise DataError(
            f"None of {counted(count.problems, 'problem')} has both a correct and a wrong reply "
            f"({count.all_correct} only correct ones, {count.all_wrong} only wrong ones, {unscored} replies unscored).",
            hint="Draw more replies: ns eval --benchmarks=NAME:8, with a higher ++inference.temperature.",
        )
    return pairs, count


def fitting_pairs(pairs: Sequence[Pair], limit: int | None, *, drop: bool, say: PrintLine) -> list[Pair]:
    """Return the pairs of at most `limit` tokens. Raises DataError for longer ones, unless they are to be left out."""
    if limit is None:
        return list(pairs)
    kept = [pair for pair in pairs if max(len(pair.chosen.tokens), len(pair.rejected.tokens)) < limit]
    if len(kept) == len(pairs):
        return kept
    what = f"{len(pairs) - len(kept)} of {len(pairs)} pairs are longer than the limit of {limit} tokens"
    if not drop:
        raise DataError(f"{what}.", hint="Set ++too_long=drop.")
    if not kept:
        raise DataError(f"{what}, so nothing is left to train on.")
    say(f"{what}; they are left out")
    return kept


def held_out_pairs(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], HeldOutPairs]:
    """Split into (pairs to train on, pairs of other problems to evaluate on). A problem is what stands before the
    replies.

    Raises DataError where `share` of the problems leaves none on one of the two sides.
    """
    problems: dict[tuple[int, ...], list[Pair]] = {}
    for pair in pairs:
        problems.setdefault(_prompt_of(pair), []).append(pair)
    prompts = list(problems)
    random.Random(seed).shuffle(prompts)  # noqa: S311 - no secret
    count = round(share * len(prompts))
    if share and not 0 < count < len(prompts):
        raise DataError(
            f"{counted(len(prompts), 'problem')} cannot be split: a share of {share:g} holds out {count} of them.",
            hint="Give pairs of more problems, or set ++held_out=0.",
        )
    names = {prompt: f"problem-{number}" for number, prompt in enumerate(prompts[:count], 1)}
    held = [pair for pair in pairs if _prompt_of(pair) in names]
    training = [pair for pair in pairs if _prompt_of(pair) not in names]
    return training, HeldOutPairs(pairs=held, problems=[names[_prompt_of(pair)] for pair in held])


def told_accuracy(path: Path) -> str:
    """Return a sentence with the share of held-out pairs that are ranked right, with a 95 % interval over their
    problems."""
    by_problem: dict[str, list[float]] = {}
    for row in read_rows(path):
        by_problem.setdefault(row["problem"], []).append(right(PairScores(row["chosen"], row["rejected"])))
    shares = [fmean(values) for values in by_problem.values()]
    interval = mean_interval(Counter(shares))
    pairs = sum(map(len, by_problem.values()))
    return (
        f"accuracy on held-out pairs: {100 * fmean(shares):.1f} % (95 % interval {100 * interval.low:.1f} to "
        f"{100 * interval.high:.1f}; {counted(pairs, 'pair')} of {counted(len(shares), 'problem')}, each problem "
        "counts once)"
    )


def displacement(metrics: Path) -> str:
    """Return a sentence where the chosen replies are less likely at the end of DPO than with the initial model; else an
    empty text."""
    last = [row["rewards/chosen"] for row in read_rows(metrics)][-LAST_STEPS:]
    if not last or fmean(last) >= 0:
        return ""
    return (
        "The chosen replies are less likely now than with the initial model (rewards/chosen "
        f"{fmean(last):.3g} in the last {counted(len(last), 'step')}), so the model may answer worse. Compare answers "
        "to held-out problems (--eval_benchmark), raise ++sft_weight or lower ++learning_rate."
    )


def as_pair(preference: Preference, skill: Skill) -> Pair:
    """Return the token ids of both replies after the prompt. Raises DataError where one is empty."""

    def reply(text: str) -> Datum:
        if isinstance(preference.prompt, str):
            return skill.continuation(preference.prompt, text)
        return skill.reply(preference.prompt, text, preference.tools)

    return Pair(chosen=reply(preference.chosen), rejected=reply(preference.rejected))


def _prompt_of(pair: Pair) -> tuple[int, ...]:
    """Return the token ids before the replies."""
    weights = list(pair.chosen.weights or ())
    return tuple(pair.chosen.tokens[: weights.index(1.0) + 1])


def _drawn(problem: _Problem, most: int, seed: str) -> list[tuple[_Reply, _Reply]]:
    pairs = list(product(problem.correct.values(), problem.wrong.values()))
    random.Random(seed).shuffle(pairs)  # noqa: S311 - no secret
    return pairs[:most]


def _rendered(row: Row, correct: _Reply, wrong: _Reply, skill: Skill) -> Preference:
    """Render the pair as texts: a truncated reply has no token at its end."""
    chosen, rejected = (
        skill.pair(row, reply.text)["output"] if reply.ended else reply.text for reply in (correct, wrong)
    )
    return Preference(prompt=skill.prompt_text(row), chosen=chosen, rejected=rejected)


def _verdict(row: Row) -> bool | None:
    """Return whether a reply is correct; None where nobody has decided."""
    outcome = row.get("outcome")
    return outcome == "correct" if outcome in DECIDED else recorded_verdict(row)


def _identity(row: Row, where: str) -> str:
    """Return the text that tells problems apart: their id, else what they ask. Raises DataError where a row has
    neither."""
    for name in ("id", "problem_id", "problem", "question", "prompt"):
        if row.get(name) is not None:
            return f"{name}: {row[name]}"
    raise DataError(
        f"{where} has neither `id` nor `problem`, so replies to one problem cannot be found.",
        hint="Use output files of ns eval or ns generate that ns grade has graded.",
    )


def _generation(row: Row, where: str) -> str:
    text = row.get("generation")
    if not isinstance(text, str) or not text:
        raise DataError(f"{where} has no `generation`, so there is no reply to compare.")
    if row.get("reasoning_content"):
        raise DataError(
            f"{where} keeps its reasoning apart in `reasoning_content`; DPO trains on the reply alone.",
            hint="Evaluate without a reasoning parser, so that `generation` holds all of the reply.",
        )
    return text


def _labelled(row: Row, where: str) -> LabelledText:
    refuse_lost(row, MEDIA, "", where, TEXT_ONLY)
    prompt, completion, label = row.get("prompt"), row.get("completion"), row.get("label")
    if not isinstance(label, bool) or not prompt or completion is None:
        raise DataError(
            f"{where}: expected {{prompt, completion, label}}, with true or false as the label; its keys are "
            f"{', '.join(sorted(row)) or 'none'}.",
            hint="Graded outputs go to --input_files.",
        )
    prompt = _prompt(prompt, row, where)
    if isinstance(prompt, list):
        text = _said(completion, where)
        return LabelledText(prompt=prompt, completion=text, label=label, tools=row.get("tools"))
    if not isinstance(completion, str) or not completion:
        raise DataError(f"{where}: `completion` must be a text that is not empty.")
    return LabelledText(prompt=prompt, completion=completion, label=label)


def _prompt(prompt: Any, row: Row, where: str) -> Any:
    """Return the prompt with what stands in keys of its own: an instruction, a system message. Raises DataError for
    what would be lost."""
    if not isinstance(prompt, list):
        messages = alpaca_messages(row, where)
        if messages:
            return messages
    if isinstance(prompt, list):
        refuse_lost(row, ("history",), "", where, "Put it into `prompt`, or remove the field.")
        return with_system(prompt, row, where)
    refuse_lost(
        row,
        TOLD,
        str(prompt),
        where,
        "Texts are taken as they are: put it into `prompt`, or write `prompt` as messages, or remove the field.",
    )
    return prompt


def _preference(row: Row, where: str) -> Preference:
    refuse_lost(row, MEDIA, "", where, TEXT_ONLY)
    chosen, rejected, prompt = row.get("chosen"), row.get("rejected"), row.get("prompt", row.get("input"))
    if chosen is None or rejected is None:
        raise DataError(
            f"{where} has no `chosen` and `rejected`; its keys are {', '.join(sorted(row)) or 'none'}.",
            hint="Rows are {prompt, chosen, rejected}; graded outputs go to --input_files.",
        )
    if prompt is None and not field_text(row, "instruction"):
        prompt, chosen, rejected = _split(chosen, rejected, where)
    prompt = _prompt(prompt, row, where)
    tools = row.get("tools")
    if isinstance(prompt, list):
        return Preference(prompt=prompt, chosen=_said(chosen, where), rejected=_said(rejected, where), tools=tools)
    texts = [text for text in (prompt, chosen, rejected) if isinstance(text, str) and text]
    if len(texts) < 3:
        raise DataError(f"{where}: `prompt`, `chosen` and `rejected` must be texts that are not empty.")
    return Preference(prompt=texts[0], chosen=texts[1], rejected=texts[2])


def _split(chosen: Any, rejected: Any, where: str) -> tuple[list[Row], list[Row], list[Row]]:
    """Split two whole conversations: what is before the last turn is the prompt."""
    if not (isinstance(chosen, list) and isinstance(rejected, list) and len(chosen) > 1 and len(rejected) > 1):
        raise DataError(f"{where} has no `prompt`, and `chosen` and `rejected` are not conversations.")
    if chosen[:-1] != rejected[:-1]:
        raise DataError(f"{where}: the conversations of `chosen` and `rejected` differ before the last turn.")
    return chosen[:-1], chosen[-1:], rejected[-1:]


def _said(reply: Any, where: str) -> str:
    """Return the text of a reply, which is a text, or one turn of the assistant, alone or in a list."""
    turn = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply
    text = turn.get("content") if isinstance(turn, dict) and turn.get("role") == "assistant" else turn
    if isinstance(turn, dict):
        hint = "The loss is on the text alone: put it into `content` as the model writes it, or remove the field."
        refuse_lost(turn, ("tool_calls", *(REASONING if reasoning_of(turn) else ())), str(text), where, hint)
    if not isinstance(text, str) or not text:
        raise DataError(f"{where}: a reply must be one turn of the assistant with a text.")
    return text
