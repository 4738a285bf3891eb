# SPDX-License-Identifier: Apache-2.0
"""Answers to questions over several paragraphs, with the sentences they rest on (HotpotQA, arXiv:1809.09600)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from newskills.base.records import Row, Score
from newskills.graders.reading.overlap import squad_tokens
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply
from newskills.graders.short_answer import short_answer

_OBJECT = re.compile(r'\{\s*"(?:answer|supporting_facts)"')
_MOST_OBJECTS = 20
_WHOLE = ("yes", "no", "noanswer")
_SPELT = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty first second third fourth fifth nineteenth twentieth twenty-first"
)
_FIGURES = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 1st 2nd 3rd 4th 5th 19th 20th 21st"
_NUMBERS = dict(zip(_SPELT.split(), _FIGURES.split(), strict=True))
_WORDS = {digits: word for word, digits in _NUMBERS.items()}
_PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', **dict.fromkeys("‐‑‒–—―", "-")})
_FUNCTION_WORDS = (
    "the a an of in on at for and or to by is was are were be been with from that this it its his her my our their no "
    "not but if as into about than then"
)
_SMALL = frozenset(_FUNCTION_WORDS.split())
_LONGEST, _SHORTEST = 40, 3


class HotpotConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=hotpotqa`."""

    supporting_facts: Annotated[bool, Meta(description="score the sentences named as support, too")] = True


class WordOverlap(NamedTuple):
    """Exact match, precision and recall, each 0–1."""

    exact: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        if both:
            return 2 * self.precision * self.recall / both
        return 0.0


class HotpotGrader:
    """Reads the last JSON object with an `answer`; without one, the marked answer or the last line.

    Fields written: `predicted_answer`, `answer_em`, `answer_f1`, `is_correct` (some spelling of the gold answer is
    within the answer), `is_correct_strict` (the same without chance hits), `reliable` (whether that can be told from
    the gold answer); with supporting facts `sp_em`, `sp_f1`, `joint_em`, `joint_f1`.
    """

    name = "hotpotqa"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True
    Config = HotpotConfig

    def __init__(self, config: HotpotConfig = HotpotConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def gold_reply(self, record: Row) -> str:
        reply = {"answer": record.get("expected_answer"), "supporting_facts": record.get("supporting_facts") or []}
        return json.dumps(reply)

    def same_replies(self, record: Row) -> list[str]:
        """Return the right reply after some thinking, and the right answer alone, marked."""
        return [f"So it is:\n```json\n{self.gold_reply(record)}\n```", f"Answer: {record.get('expected_answer')}"]

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        gold, facts = record.get("expected_answer"), record.get("supporting_facts")
        if gold is None or (self.config.supporting_facts and not isinstance(facts, list)):
            return ungradable_score(stamp, "the record has no expected_answer or no supporting_facts", {})
        answer, named = parse_reply(visible_reply(str(record.get("generation") or "")) or "")
        words = answer_overlap(answer or "", str(gold))
        spellings = gold_spellings(str(gold))
        fields: Row = {
            "predicted_answer": answer,
            "answer_em": words.exact,
            "answer_f1": words.f1,
            "is_correct": answer is not None and holds_spelling(spellings, answer),
            "is_correct_strict": answer is not None and holds_spelling(spellings, answer, strict=True),
            "reliable": is_findable_by_text(str(gold)),
        }
        if self.config.supporting_facts:
            support = facts_overlap(named, {(str(title), int(place)) for title, place in facts or ()})
            joint = WordOverlap(
                words.exact * support.exact, words.precision * support.precision, words.recall * support.recall
            )
            fields |= {"sp_em": support.exact, "sp_f1": support.f1, "joint_em": joint.exact, "joint_f1": joint.f1}
        if answer is None:
            return no_answer_score(stamp, record, fields)
        why = "exact match" if words.exact else "another answer"
        return verdict_score(stamp, words.exact == 1.0, fields, why, words.f1)


def parse_reply(text: str) -> tuple[str | None, set[tuple[str, int]]]:
    """Return (answer, supporting facts) of a reply."""
    for candidate in _answer_objects(text):
        answer, facts = candidate.get("answer"), candidate.get("supporting_facts")
        if answer is None or isinstance(answer, dict | list):
            continue
        if isinstance(facts, list):
            pairs = [fact for fact in facts if isinstance(fact, list) and len(fact) == 2]
        else:
            pairs = []
        return str(answer), {(str(title), place) for title, place in pairs if type(place) is int}
    return short_answer(text), set()


def _answer_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects with the expected keys, from the last one backwards."""
    decoder = json.JSONDecoder()
    for match in list(_OBJECT.finditer(text))[: -_MOST_OBJECTS - 1 : -1]:
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield value


def answer_overlap(answer: str, gold: str) -> WordOverlap:
    """Return the overlap of the words; yes and no match wholly or not at all."""
    first, second = squad_tokens(answer), squad_tokens(gold)
    exact = float(first == second)
    if not exact and (" ".join(first) in _WHOLE or " ".join(second) in _WHOLE):
        return WordOverlap(0.0, 0.0, 0.0)
    common = sum((Counter(first) & Counter(second)).values())
    if not common:
        return WordOverlap(exact, 0.0, 0.0)
    return WordOverlap(exact, common / len(first), common / len(second))


def facts_overlap(named: set[tuple[str, int]], gold: set[tuple[str, int]]) -> WordOverlap:
    common = len(named & gold)
    precision = common / len(named) if named else 0.0
    recall = common / len(gold) if gold else 0.0
    return WordOverlap(float(named == gold), precision, recall)


def gold_spellings(gold: str) -> set[str]:
    """Return ways to write the gold answer.

    These are without article, quotes, brackets, commas, dots or hyphens; numbers are digits or words.
    """
    forms = {gold, gold.replace('"', ""), gold.replace("“", "").replace("”", "")}
    outside, inside = re.sub(r"\s*\([^()]*\)\s*", " ", gold), re.findall(r"\(([^()]+)\)", gold)
    forms |= {outside, *inside}
    lower = gold.lower().strip()
    forms |= {form for form in (_NUMBERS.get(lower), _WORDS.get(lower)) if form}
    forms |= {re.sub(r"(?<=\d),(?=\d{3})", "", gold), gold.rstrip(".,;:!?"), re.sub(r"(?<!\d)\.(?!\d)", "", gold)}
    forms |= {gold.replace(" & ", " and "), re.sub(r" and ", " & ", gold, flags=re.IGNORECASE)}
    if not gold.startswith("-"):
        forms.add(gold.replace("-", " "))
    forms |= {re.sub(r"\A(?:the|an?)\s+", "", form, flags=re.IGNORECASE) for form in forms}
    plain = {" ".join(form.split()) for form in forms}
    return {form for form in plain if len(form) >= _SHORTEST or form == gold.strip() or form.isdigit()} - {""}


def holds_spelling(spellings: set[str], answer: str, *, strict: bool = False) -> bool:
    """Return whether some spelling stands in the answer.

    `strict`: short spellings must be words of their own, and near the answer's start.
    """
    spoken = _spoken_form(answer)
    for form in map(_spoken_form, spellings):
        at = spoken.find(form)
        if at < 0 or not form:
            continue
        if not strict:
            return True
        alone = len(form) > 4 or re.search(rf"(?<![a-z]){re.escape(form)}(?![a-z])", spoken) is not None
        if alone and not (len(spoken) > 80 and at > 40):
            return True
    return False


def _spoken_form(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text.lower()).translate(_PLAIN).split())


def is_findable_by_text(gold: str) -> bool:
    """Return whether an answer can be found by its text.

    Long ones and names of many words are written in too many ways.
    """
    if len(gold) > _LONGEST:
        return False
    words = gold.strip().rstrip(".").split()
    capitals = [word for word in words if word[0].isupper() and word.lower() not in _SMALL]
    if len(words) in (3, 4):
        return len(capitals) < len(words)
    return not (len(words) in (5, 6) and len(capitals) >= 3)
