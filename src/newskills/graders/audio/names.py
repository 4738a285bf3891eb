# SPDX-License-Identifier: Apache-2.0
"""Transcripts in which some words matter most: named entities, and keywords that were given beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from newskills.base.records import Row, Score
from newskills.graders.audio import texts
from newskills.graders.audio.errors import align_words, count_edits
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

_HALF = 0.5


class _NamesGrader:
    """Base: `names_key` is the field with the list of names."""

    name: str
    version = "2"
    names_key: str

    def __init__(self) -> None:
        """Check that the libraries are installed. Raises ConfigError where they are missing."""
        texts.require_libraries()

    def gold_reply(self, record: Row) -> str | None:
        right = record.get("expected_answer")
        if isinstance(right, str):
            return right
        return None

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        right, names = record.get("expected_answer"), record.get(self.names_key)
        nothing: Row = {"predicted_answer": None, "is_correct": None, "audio_counts": None}
        if not isinstance(right, str) or not isinstance(names, list):
            return ungradable_score(
                stamp, f"the record lacks expected_answer or the list {self.names_key}", nothing
            )
        language = str(record.get("language") or "en")
        mode: texts.Mode = "standard" if language.startswith("en") else "multilingual"

        def words(text: object) -> tuple[str, ...]:
            return tuple(texts.normalise_transcript(str(text), mode, language).split())

        spoken_words, heard = words(right), words(visible_reply(str(record.get("generation") or "")) or "")
        if not spoken_words:
            return ungradable_score(stamp, "the right transcript has no words once it is normalised", nothing)
        word_edits = count_edits(align_words(spoken_words, heard))
        wanted = [name for name in dict.fromkeys(map(words, names)) if name]
        counts = {"wer": [word_edits.errors, word_edits.length], **self.count_names(spoken_words, heard, wanted)}
        rates = {name: counted / total for name, (counted, total) in counts.items() if total}
        correct = word_edits.rate < _HALF
        text = " ".join(heard)
        fields: Row = {"predicted_answer": text or None, "is_correct": correct, **rates, "audio_counts": counts}
        if not heard:
            return no_answer_score(stamp, record, fields)
        return verdict_score(stamp, correct, fields, f"wer {word_edits.rate:.2f}", max(0.0, 1 - word_edits.rate))

    def count_names(
        self, spoken_words: Sequence[str], heard: Sequence[str], names: Sequence[tuple[str, ...]]
    ) -> dict[str, list[int]]:
        """Measure → [counted, out of]."""
        raise NotImplementedError


class ContextASRGrader(_NamesGrader):
    """`wer`; `ne_wer`: errors in the words of entities (`entity_list`); `ne_fnr`: entities that were not heard whole.

    An entity counts as often as it is said (ContextASR-Bench, arXiv:2507.05727). Fields written: the rates,
    `predicted_answer`, `is_correct` (word error rate below one half), `audio_counts`.
    """

    name = "contextasr"
    answer_keys = ("generation",)
    gold_is_text = True
    names_key = "entity_list"

    def count_names(
        self, spoken_words: Sequence[str], heard: Sequence[str], names: Sequence[tuple[str, ...]]
    ) -> dict[str, list[int]]:
        inside = _words_in_names(spoken_words, names)
        errors = total = at = 0
        for chunk in align_words(spoken_words, heard):
            touched = sum(inside[at : at + len(chunk.right)])
            total += touched
            if chunk.kind in ("substitute", "delete"):
                errors += touched
            elif chunk.kind == "insert" and 0 < at < len(spoken_words) and inside[at - 1] and inside[at]:
                errors += len(chunk.heard)
            at += len(chunk.right)
        spoken, got = _name_counts(spoken_words, names), _name_counts(heard, names)
        return {
            "ne_wer": [errors, total],
            "ne_fnr": [(spoken - got).total(), spoken.total()],
        }


class EarningsGrader(_NamesGrader):
    """`wer`, and precision, recall and F1 of the keywords (`keyword_list`) that are heard where they are said.

    Each keyword counts as often as it is said or heard. Fields written as for `contextasr`.
    """

    name = "contextual_earnings22"
    answer_keys = ("generation",)
    gold_is_text = True
    names_key = "keyword_list"

    def count_names(
        self, spoken_words: Sequence[str], heard: Sequence[str], names: Sequence[tuple[str, ...]]
    ) -> dict[str, list[int]]:
        spoken, got = _name_counts(spoken_words, names), _name_counts(heard, names)
        both = (spoken & got).total()
        return {
            "keyword_precision": [both, got.total()],
            "keyword_recall": [both, spoken.total()],
            "keyword_f1": [2 * both, spoken.total() + got.total()],
        }


def _name_places(words: Sequence[str], names: Sequence[tuple[str, ...]]) -> list[tuple[int, tuple[str, ...]]]:
    """Return (place, name) of each name in the text, without overlaps.

    Where several begin at one word, the longest counts.
    """
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for name in sorted(names, key=len, reverse=True):
        by_first.setdefault(name[0], []).append(name)
    positions, at = [], 0
    while at < len(words):
        here = next(
            (n for n in by_first.get(words[at], ()) if tuple(words[at : at + len(n)]) == n),
            None,
        )
        if here is not None:
            positions.append((at, here))
            at += len(here)
        else:
            at += 1
    return positions


def _name_counts(words: Sequence[str], names: Sequence[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    return Counter(name for _, name in _name_places(words, names))


def _words_in_names(words: Sequence[str], names: Sequence[tuple[str, ...]]) -> list[bool]:
    covered = [False] * len(words)
    for at, name in _name_places(words, names):
        covered[at : at + len(name)] = [True] * len(name)
    return covered
