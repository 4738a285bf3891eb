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
from newskills.run.training.conversations import REPLY, template_of, tools_of, turns_of
from newskills.run.training.rows import MEDIA, TEXT_ONLY, alpaca_messages, with_system
from newskills.run.training.skill import Skill
from newskills.train.data.reading import recorded_verdict
from newskills.train.data.row_fields import TOLD, field_text, refuse_lost
from newskills.train.loops.dpo import Pair
from newskills.train.loops.reward_model import HeldOutPairs, PairScores, right
from newskills.train.verbs import Datum

DECIDED = ("correct", "wrong", "no_answer")
LAST_STEPS = 10
CUT = "length"
"""The finish reason of a reply that reached its limit of tokens: no token ends it."""


class Preference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of a file of pairs. `prompt` is a conversation, or a text that is used as it is, and so are the replies.

    A reply to a conversation is a text, or a message with calls of tools or reasoning.
    unfinished  names of the replies that no token ends: they reached their limit of tokens
    """

    prompt: list[Row] | str
    chosen: str | Row
    rejected: str | Row
    tools: list[Row] | None = None
    chat_template_kwargs: Row | None = None
    unfinished: tuple[str, ...] = ()


class LabelledText(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply that is good or bad. `prompt` is a conversation, or a text that is used as it is, and so is the reply.

    unfinished  no token ends the reply: it reached its limit of tokens
    """

    prompt: list[Row] | str
    completion: str | Row
    label: bool
    tools: list[Row] | None = None
    chat_template_kwargs: Row | None = None
    unfinished: bool = False

    def example(self, skill: Skill) -> Datum:
        """Return the token ids of the reply after the prompt. Raises DataError where one is empty, ConfigError where
        the chat template does not show a call."""
        return _reply_datum(self, self.completion, skill, unfinished=self.unfinished)


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
    rows = [_read_preference(row, f"{path}, row {number}") for number, row in enumerate(read_rows(path), 1)]
    if not rows:
        raise DataError(f"{path} has no rows to train on.")
    return rows


def read_labelled(path: Path) -> list[LabelledText]:
    """Read rows `{prompt, completion, label}` of texts or of conversations, as TRL reads them. Raises
    DataError."""
    rows = [_read_labelled_text(row, f"{path}, row {number}") for number, row in enumerate(read_rows(path), 1)]
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
            where, correct = f"{path}, row {number}", _reply_verdict(row)
            if correct is None:
                unscored += 1
                continue
            ended = row.get("finish_reason") != CUT
            if not ended and not keep_cut_off:
                continue
            text = _generated_text(row, where)
            reply = skill.pair(row, text)["output"] if ended else text
            made = LabelledText(
                prompt=skill.prompt_text(row), completion=reply, label=correct, unfinished=not ended
            )
            labelled.setdefault((_problem_key(row, where), text), made)
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
            correct = _reply_verdict(row)
            if correct is None:
                unscored += 1
                continue
            ended = row.get("finish_reason") != CUT
            if not ended and not keep_cut_off:
                cut_off += 1
                continue
            problem = problems.setdefault(_problem_key(row, where), _Problem(row, {}, {}))
            text = _generated_text(row, where)
            (problem.correct if correct else problem.wrong).setdefault(text, _Reply(text, ended))
    count = PairCount(
        problems=len(problems),
        all_correct=sum(not problem.wrong for problem in problems.values()),
        all_wrong=sum(not problem.correct for problem in problems.values()),
        unscored=unscored,
        cut_off=cut_off,
    )
    pairs = [
        _render_pair(problem.row, *replies, skill)
        for identity, problem in problems.items()
        for replies in _draw_pairs(problem, per_problem, f"{seed}-{identity}")
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


def displacement_warning(metrics: Path) -> str:
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
    """Return the token ids of both replies after the prompt. Raises DataError where one is empty, ConfigError where the
    chat template does not show a call."""
    chosen, rejected = (
        _reply_datum(preference, reply, skill, unfinished=name in preference.unfinished)
        for name, reply in (("chosen", preference.chosen), ("rejected", preference.rejected))
    )
    return Pair(chosen=chosen, rejected=rejected)


def _reply_datum(row: Preference | LabelledText, reply: str | Row, skill: Skill, *, unfinished: bool) -> Datum:
    if isinstance(row.prompt, str):
        return skill.continuation(row.prompt, str(reply), unfinished=unfinished)
    if isinstance(reply, dict):
        message = reply
    else:
        message = {"role": REPLY, "content": reply}
    return skill.turn(row.prompt, message, row.tools, row.chat_template_kwargs)


def _prompt_of(pair: Pair) -> tuple[int, ...]:
    """Return the token ids before the replies."""
    weights = list(pair.chosen.weights or ())
    return tuple(pair.chosen.tokens[: weights.index(1.0) + 1])


def _draw_pairs(problem: _Problem, most: int, seed: str) -> list[tuple[_Reply, _Reply]]:
    pairs = list(product(problem.correct.values(), problem.wrong.values()))
    random.Random(seed).shuffle(pairs)  # noqa: S311 - no secret
    return pairs[:most]


def _render_pair(row: Row, correct: _Reply, wrong: _Reply, skill: Skill) -> Preference:
    """Render the pair as texts: a truncated reply has no token at its end."""
    chosen, rejected = (
        skill.pair(row, reply.text)["output"] if reply.ended else reply.text for reply in (correct, wrong)
    )
    ended = {"chosen": correct.ended, "rejected": wrong.ended}
    unfinished = tuple(name for name, is_ended in ended.items() if not is_ended)
    return Preference(prompt=skill.prompt_text(row), chosen=chosen, rejected=rejected, unfinished=unfinished)


def _reply_verdict(row: Row) -> bool | None:
    """Return whether a reply is correct; None where nobody has decided."""
    outcome = row.get("outcome")
    return outcome == "correct" if outcome in DECIDED else recorded_verdict(row)


def _problem_key(row: Row, where: str) -> str:
    """Return the text that tells problems apart: their id, else what they ask. Raises DataError where a row has
    neither."""
    for name in ("id", "problem_id", "problem", "question", "prompt"):
        if row.get(name) is not None:
            return f"{name}: {row[name]}"
    raise DataError(
        f"{where} has neither `id` nor `problem`, so replies to one problem cannot be found.",
        hint="Use output files of ns eval or ns generate that ns grade has graded.",
    )


def _generated_text(row: Row, where: str) -> str:
    text = row.get("generation")
    if not isinstance(text, str) or not text:
        raise DataError(f"{where} has no `generation`, so there is no reply to compare.")
    if row.get("reasoning_content"):
        raise DataError(
            f"{where} keeps its reasoning apart in `reasoning_content`; DPO trains on the reply alone.",
            hint="Evaluate without a reasoning parser, so that `generation` holds all of the reply.",
        )
    return text


def _read_labelled_text(row: Row, where: str) -> LabelledText:
    refuse_lost(row, MEDIA, "", where, TEXT_ONLY)
    completion, label = row.get("completion"), row.get("label")
    prompt = row.get("prompt", row.get("conversations"))
    if not isinstance(label, bool) or not (prompt or field_text(row, "instruction")) or completion is None:
        raise DataError(
            f"{where}: expected {{prompt, completion, label}}, with true or false as the label; its keys are "
            f"{', '.join(sorted(row)) or 'none'}.",
            hint="Graded outputs go to --input_files.",
        )
    prompt = _complete_prompt(prompt, row, where)
    unfinished = bool(row.get("unfinished"))
    if isinstance(prompt, list):
        return LabelledText(
            prompt=prompt,
            completion=_reply_content(completion, where, "completion"),
            label=label,
            tools=tools_of(row, where),
            chat_template_kwargs=template_of(row, where) or None,
        )
    if not isinstance(completion, str) or not completion:
        raise DataError(f"{where}: `completion` must be a text that is not empty.")
    return LabelledText(prompt=prompt, completion=completion, label=label, unfinished=unfinished)


def _complete_prompt(prompt: Any, row: Row, where: str) -> Any:
    """Return the prompt with what stands in keys of its own: an instruction, a system message. Raises DataError for
    what would be lost."""
    if not isinstance(prompt, list):
        messages = alpaca_messages(row, where)
        if messages:
            return messages
    if isinstance(prompt, list):
        refuse_lost(row, ("history",), "", where, "Put it into `prompt`, or remove the field.")
        return with_system(turns_of(prompt, where, "prompt"), row, where)
    hint = "Texts are taken as they are: put it into `prompt`, or write `prompt` as messages, or remove the field."
    refuse_lost(row, TOLD, str(prompt), where, hint)
    if not all(tool["function"]["name"] in str(prompt) for tool in tools_of(row, where) or ()):
        refuse_lost(row, ("tools",), str(prompt), where, hint)
    return prompt


def _read_preference(row: Row, where: str) -> Preference:
    refuse_lost(row, MEDIA, "", where, TEXT_ONLY)
    if isinstance(row.get("margin"), int | float):
        raise DataError(f"{where}: the field `margin` would be lost.", hint="Remove it: all pairs count the same.")
    chosen, rejected = row.get("chosen"), row.get("rejected")
    prompt = row.get("prompt", row.get("conversations", row.get("input")))
    if chosen is None or rejected is None:
        raise DataError(
            f"{where} has no `chosen` and `rejected`; its keys are {', '.join(sorted(row)) or 'none'}.",
            hint="Rows are {prompt, chosen, rejected}; graded outputs go to --input_files.",
        )
    if chosen == rejected:
        raise DataError(f"{where}: `chosen` and `rejected` are the same, so there is nothing to prefer.")
    if prompt is None and not field_text(row, "instruction"):
        prompt, chosen, rejected = _split_conversations(chosen, rejected, where)
    prompt = _complete_prompt(prompt, row, where)
    if isinstance(prompt, list):
        return Preference(
            prompt=prompt,
            chosen=_reply_content(chosen, where, "chosen"),
            rejected=_reply_content(rejected, where, "rejected"),
            tools=tools_of(row, where),
            chat_template_kwargs=template_of(row, where) or None,
        )
    texts = [text for text in (prompt, chosen, rejected) if isinstance(text, str) and text]
    if len(texts) < 3:
        raise DataError(f"{where}: `prompt`, `chosen` and `rejected` must be texts that are not empty.")
    unfinished = tuple(name for name in row.get("unfinished") or () if name in ("chosen", "rejected"))
    return Preference(prompt=texts[0], chosen=texts[1], rejected=texts[2], unfinished=unfinished)


def _split_conversations(chosen: Any, rejected: Any, where: str) -> tuple[Any, Any, Any]:
    """Split two whole conversations, or two whole texts: what they begin with is the prompt."""
    if isinstance(chosen, str) and isinstance(rejected, str):
        return _split_texts(chosen, rejected, where)
    if not (isinstance(chosen, list) and isinstance(rejected, list) and len(chosen) > 1 and len(rejected) > 1):
        raise DataError(f"{where} has no `prompt`, and `chosen` and `rejected` are not conversations.")
    if chosen[:-1] != rejected[:-1]:
        raise DataError(f"{where}: the conversations of `chosen` and `rejected` differ before the last turn.")
    return chosen[:-1], chosen[-1:], rejected[-1:]


def _split_texts(chosen: str, rejected: str, where: str) -> tuple[str, str, str]:
    """Split two texts where the first word begins that differs; the blank before it belongs to the replies.

    Raises DataError for texts without a common beginning.
    """
    differs = (at for at, pair in enumerate(zip(chosen, rejected, strict=False)) if len({*pair}) > 1)
    at = next(differs, min(len(chosen), len(rejected)))
    while at and not (chosen[at - 1 : at].isspace() or chosen[at : at + 1].isspace()):
        at -= 1
    if at and chosen[at - 1] == " ":
        at -= 1
    if not at:
        raise DataError(f"{where} has no `prompt`, and `chosen` and `rejected` do not begin with the same words.")
    return chosen[:at], chosen[at:], rejected[at:]


def _reply_content(reply: Any, where: str, field: str) -> str | Row:
    """Return a reply as its text, or as a message where it calls tools or keeps its reasoning apart.

    A reply is a text, or one turn of the assistant, alone or in a list. Raises DataError for others.
    """
    turns = reply if isinstance(reply, list) else [reply]
    if len(turns) != 1 or not (isinstance(turns[0], dict) or (isinstance(reply, str) and reply)):
        raise DataError(f"{where}: `{field}`: a reply must be one turn of the assistant with a text.")
    if isinstance(reply, str):
        return reply
    (turn,) = turns_of(turns, where, field)
    if turn["role"] != REPLY or not (turn.get("content") or turn.get("tool_calls")):
        raise DataError(f"{where}: `{field}`: a reply must be one turn of the assistant with a text.")
    if turn.get("tool_calls") or turn.get("reasoning_content"):
        return turn
    return str(turn["content"])
