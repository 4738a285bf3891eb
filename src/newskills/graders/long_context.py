# SPDX-License-Identifier: Apache-2.0
"""Texts that must occur in a reply (RULER), be repeated in it (MRCR), or be listed at its end (Graphwalks)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from newskills.base.reading.reply_text import after_thinking
from newskills.base.records import Row, Score
from newskills.graders.reading.overlap import edit_distance
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

_CONTROL = re.compile(r"[\x00-\x1f]")
_FINAL = re.compile(r"final answer\s{0,4}:\s{0,4}\[([^\[\]]*)\]\W{0,8}\Z", re.IGNORECASE)
_QUESTION = re.compile(r"question \d{1,12}")
_LONGEST = 200_000
_MOST_WORDS = 2_000


def _gold_texts(gold: object) -> list[str]:
    golds = gold if isinstance(gold, list) else [gold]
    return [str(text) for text in golds if text is not None and str(text)]


def _folded_reply(record: Row) -> str:
    """Return the reply as one folded text; what a server was given to begin with counts as well as what follows."""
    return _CONTROL.sub("\n", visible_reply(str(record.get("generation") or "")) or "").strip().lower()


class RulerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=ruler`."""

    match_type: Annotated[
        Literal["all", "part"],
        Meta(description="all: the share of right texts that occur; part: whether any does"),
    ] = "all"
    parse_func: Annotated[Literal["default"], Meta(description="how replies are read; there is one way")] = (
        "default"
    )


class RulerGrader:
    """Fields written: `predicted_answer`, `is_correct` (0–1). A record may override `match_type`."""

    name = "ruler"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True
    Config = RulerConfig

    def __init__(self, config: RulerConfig = RulerConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def grade(self, record: Row) -> Score:
        stamp, golds = f"{self.name}@{self.version}", _gold_texts(record.get("expected_answer"))
        if not golds:
            return ungradable_score(
                stamp, "the record has no expected_answer", {"predicted_answer": None, "is_correct": None}
            )
        answer = _folded_reply(record)
        if not answer:
            return no_answer_score(stamp, record, {"predicted_answer": None, "is_correct": 0.0})
        share = _found_share(answer, golds, str(record.get("match_type", self.config.match_type)))
        fields: Row = {"predicted_answer": answer, "is_correct": share}
        return verdict_score(stamp, share == 1, fields, f"{share:.0%} of the texts occur", share)


def _found_share(answer: str, golds: Sequence[str], match: str) -> float:
    matches = [gold.lower() in answer for gold in golds]
    if match == "part":
        return float(any(matches))
    return sum(matches) / len(matches)


class Ruler2Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=ruler2`."""

    match_type: Annotated[
        Literal["all", "part", "2steps"],
        Meta(description="all, part: as for ruler; 2steps: all, in what follows the last 'Question <number>'"),
    ] = "all"


class Ruler2Grader:
    """As `ruler`, with the least word error rate beside it. Fields: also `soft_score`, 1 − WER, at least 0."""

    name = "ruler2"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True
    Config = Ruler2Config

    def __init__(self, config: Ruler2Config = Ruler2Config()) -> None:  # noqa: B008 - frozen
        self.config = config
        self._exact = RulerGrader(RulerConfig(match_type="part" if config.match_type == "part" else "all"))

    def grade(self, record: Row) -> Score:
        if self.config.match_type == "2steps":
            record = {**record, "generation": _last_question(_folded_reply(record))}
        score = self._exact.grade(record)
        if score.outcome == "unscored":
            return ungradable_score(
                f"{self.name}@{self.version}", score.why or "", {**score.fields, "soft_score": None}
            )
        words = _folded_reply(record).split()[:_MOST_WORDS]
        softs = [_soft_score(words, gold.lower().split()) for gold in _gold_texts(record["expected_answer"])]
        part = record.get("match_type", self.config.match_type) == "part"
        soft_score = max(softs) if part else sum(softs) / len(softs)
        fields = {**score.fields, "soft_score": soft_score}
        if score.outcome == "no_answer":
            return no_answer_score(f"{self.name}@{self.version}", record, fields)
        return verdict_score(
            f"{self.name}@{self.version}", score.outcome == "correct", fields, score.why or "", score.value
        )


def _last_question(reply: str) -> str:
    """Return what follows the last `Question <number>`; without any, the last paragraph."""
    starts = [question.end() for question in _QUESTION.finditer(reply)]
    if starts:
        return reply[starts[-1] :]
    return reply.rpartition("\n\n")[2]


def _soft_score(words: Sequence[str], gold: Sequence[str]) -> float:
    """Return 1 − word errors / words, of the stretch of the reply that has as many words and is nearest."""
    if not gold:
        return 0.0
    bag = set(gold)
    starts = [at for at, word in enumerate(words) if word in bag] or [0]
    windows = {max(0, start - shift) for start in starts[:64] for shift in (0, len(gold) - 1)}
    return max(0.0, *(1 - edit_distance(words[at : at + len(gold)], gold) / len(gold) for at in windows))


def _to_the_letter(text: str) -> str:
    """Return the reply as it came; where thinking is before it, what follows that, stripped."""
    after = after_thinking(text) or ""
    if after == text:
        return text
    return after.strip()


class MrcrGrader:
    """The reply must begin with the random text and then be the right one; its likeness counts (difflib's ratio).

    To the letter, as OpenAI scores it: with a blank before the random text it does not begin with it. Only thinking
    is taken off. Fields written: `seq_match_ratio` (0–1), `predicted_answer`. Source: openai/mrcr on the Hugging Face
    hub.
    """

    name = "mrcr"
    version = "3"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str | None:
        if record.get("expected_answer") is None:
            return None
        return str(record["expected_answer"])

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        prefix, gold = record.get("random_string_to_prepend"), record.get("expected_answer")
        if not prefix or gold is None:
            why = "the record has no random_string_to_prepend or no expected_answer"
            return ungradable_score(stamp, why, {"predicted_answer": None, "seq_match_ratio": None})
        reply = _to_the_letter(str(record.get("generation") or ""))[:_LONGEST]
        if not reply.strip():
            return no_answer_score(stamp, record, {"predicted_answer": None, "seq_match_ratio": 0.0})
        if not reply.startswith(prefix):
            fields: Row = {"predicted_answer": reply, "seq_match_ratio": 0.0}
            return verdict_score(stamp, False, fields, "the random text is not at the beginning", 0.0)
        answer, right = reply.removeprefix(prefix), str(gold).removeprefix(prefix)
        ratio = float(SequenceMatcher(None, answer, right).ratio())
        return verdict_score(
            stamp, ratio == 1, {"predicted_answer": answer, "seq_match_ratio": ratio}, f"ratio {ratio:.2f}", ratio
        )


class GraphwalksGrader:
    """`Final Answer: [a, b]` at the end, as a set of nodes. Fields written: `f1`, `parse_failed`, `predicted_answer`.

    The right nodes are a list, or a list as JSON text. Source: openai/graphwalks on the Hugging Face hub.
    """

    name = "graphwalks"
    version = "3"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str:
        return f"Final Answer: [{', '.join(map(str, _gold_nodes(record.get('expected_answer')) or ()))}]"

    def grade(self, record: Row) -> Score:
        stamp, gold = f"{self.name}@{self.version}", _gold_nodes(record.get("expected_answer"))
        if gold is None:
            nothing: Row = {"predicted_answer": None, "f1": None, "parse_failed": None}
            return ungradable_score(stamp, "the record has no list as expected_answer", nothing)
        last = (visible_reply(str(record.get("generation") or "")) or "").rstrip().rpartition("\n")[2]
        match = _FINAL.search(last[-_LONGEST:])
        if match is None:
            return no_answer_score(stamp, record, {"predicted_answer": None, "f1": 0.0, "parse_failed": True})
        nodes = {node for part in match[1].split(",") if (node := part.strip(" \t'\"`"))}
        right = {str(node) for node in gold}
        f1 = 1.0
        if nodes or right:
            f1 = 2 * len(nodes & right) / (len(nodes) + len(right))
        fields: Row = {"predicted_answer": ", ".join(sorted(nodes)), "f1": f1, "parse_failed": False}
        return verdict_score(stamp, f1 == 1, fields, f"F1 {f1:.2f}", f1)


def _gold_nodes(gold: object) -> list[Any] | None:
    """Return the nodes; None for what is no list of nodes."""
    if isinstance(gold, str):
        try:
            gold = json.loads(gold)
        except (ValueError, RecursionError):
            return None
    if isinstance(gold, list):
        return gold
    return None
