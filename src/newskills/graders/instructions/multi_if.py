# SPDX-License-Identifier: Apache-2.0
"""Instructions over three turns in several languages (Multi-IF: He et al. 2024, arXiv:2410.15553).

Where it counts otherwise than IFEval: words and sentences of Chinese, Japanese, Thai and Hindi texts, by the language
that the text is in; quotation marks of other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar

from newskills.base.records import Row, Score
from newskills.graders.instructions import ifeval
from newskills.graders.instructions.grader import IFEvalGrader
from newskills.graders.instructions.language import detect_language
from newskills.graders.instructions.texts import plain_words, punkt_sentences
from newskills.graders.reading.replies import ungradable_score, verdict_score

_CHINESE_OR_JAPANESE = ("zh", "zh-cn", "zh-tw", "ja")
_MARKS = re.compile(r"[\\.!?．/_,{}<>:;$%^&*(+\"'—！，。？、`~@#￥…（）：；《》“”)\[\]»〔〕\-「」]+")
_ASIAN = re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf\u3040-\u309f\u30a0-\u30ff\uac00-\ud7af]")
_SENTENCE = re.compile(r"[^!?。.！？．\n]+")
_HINDI_END = re.compile(r"(?<=[।!?])\s*")
_QUOTES = (('"', '"'), ("“", "”"), ("「", "」"))
LEVELS = ("strict_eval", "loose_eval")


def words_by_character(text: str) -> int:
    """Count each Chinese, Japanese or Korean character, each emoji, and each stretch of other letters."""
    emoji = import_module("emoji")
    text = _MARKS.sub("", text)
    count = emoji.emoji_count(text)
    text = emoji.replace_emoji(text, "")
    return int(count + len(_ASIAN.findall(text)) + len(_ASIAN.sub(" ", text).split()))


def word_count(text: str) -> int:
    """Count the words as the text's own language counts them."""
    language = detect_language(text)
    if language == "th":
        return len(_thai_tokenizer().word_tokenize(text))
    if language in _CHINESE_OR_JAPANESE:
        return words_by_character(text)
    return len(plain_words(text))


def sentence_count(text: str) -> int:
    """Count the sentences as the text's own language counts them."""
    language = detect_language(text)
    if language == "th":
        return sum(len(_thai_tokenizer().sent_tokenize(line)) for line in text.splitlines())
    if language == "hi":
        return sum(bool(part.strip()) for part in _HINDI_END.split(text))
    if language in _CHINESE_OR_JAPANESE:
        return sum(len(_SENTENCE.findall(line.strip())) for line in text.splitlines())
    return len(punkt_sentences(text))


def _thai_tokenizer() -> Any:
    return import_module("pythainlp.tokenize")


def _has_word_count(text: str, args: Row) -> bool:
    return ifeval.is_in_relation(word_count(text), args["relation"], args["num_words"])


def _has_sentence_count(text: str, args: Row) -> bool:
    return ifeval.is_in_relation(sentence_count(text), args["relation"], args["num_sentences"])


def _is_quotation(text: str, args: Row) -> bool:
    text = text.strip()
    return len(text) > 1 and (text[0], text[-1]) in _QUOTES


class MultiIFGrader(IFEvalGrader):
    """Each of `turn_answers` against its entry of `turn_instructions` (`instruction_id_list`, `kwargs`).

    Fields written: `turn_evals`, a list with `strict_eval` and `loose_eval` for each turn; `is_correct`: all
    instructions of all turns are followed strictly.
    """

    name = "multi-if"
    checks: ClassVar[Mapping[str, ifeval.Check]] = {
        **ifeval.CHECKS,
        "length_constraints:number_words": _has_word_count,
        "length_constraints:number_sentences": _has_sentence_count,
        "startend:quotation": _is_quotation,
    }
    needs: ClassVar[tuple[str, ...]] = ("langdetect", "emoji", "pythainlp", "pycrfsuite")
    extras = "instructions,thai"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        turns, answers = record.get("turn_instructions"), record.get("turn_answers")
        nothing: Row = {"turn_evals": None, "is_correct": None}
        if not isinstance(turns, list) or not isinstance(answers, list) or not 0 < len(turns) == len(answers):
            return ungradable_score(
                stamp, "turn_instructions and turn_answers must be lists of the same length", nothing
            )
        scores = [super(MultiIFGrader, self).grade(row) for row in _answered_turns(turns, answers)]
        if (lost := next((score for score in scores if score.outcome == "unscored"), None)) is not None:
            return ungradable_score(stamp, str(lost.why), nothing)
        right = all(score.fields["is_correct"] for score in scores)
        evals = [{level: score.fields[level] for level in LEVELS} for score in scores]
        broken = [str(number) for number, score in enumerate(scores, 1) if not score.fields["is_correct"]]
        why = "all followed"
        if broken:
            why = f"not followed in turn {', '.join(broken)}"
        return verdict_score(stamp, right, {"turn_evals": evals, "is_correct": right}, why)


def _answered_turns(turns: list[Any], answers: list[Any]) -> Iterator[Row]:
    for turn, answer in zip(turns, answers, strict=True):
        yield {**turn, "generation": answer}
