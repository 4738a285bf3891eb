# SPDX-License-Identifier: Apache-2.0
"""Transcripts, translations and silence: what each sample adds to the scores of its corpus."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.records import Row, Score
from newskills.graders.audio import texts
from newskills.graders.audio.errors import (
    Edits,
    align_words,
    count_edits,
    joined_compounds,
    mark_errors,
    mark_hits,
    same_case,
)
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply
from newskills.graders.short_answer import short_answer
from newskills.graders.translation import bleu_counter, bleu_counts

Counts = dict[str, tuple[float, float]]
"""Measure → (what is counted, out of how many); scores of a corpus are quotients of sums."""

_HALF = 0.5
_TRANSLATION = re.compile(r"\A(?:ast|st|s2tt|translation|speech[ _-]?translation)\Z", re.IGNORECASE)
_SILENCE = re.compile(r"\Ahallucination\Z", re.IGNORECASE)
_HEARING = re.compile(r"\A(?:asr|cer|transcription|pc[-_ ]rate)(?:[-_ ].*)?\Z", re.IGNORECASE)
_MARKED = re.compile(r"\A(?:asr[-_ ]pc|pc[-_ ]rate)", re.IGNORECASE)
_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}


class AudioConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=audio`."""

    normalization_mode: Annotated[
        texts.Mode,
        Meta(
            description="how texts are made alike: standard (English, Whisper), audiobench, hf_leaderboard, "
            "no_tn_itn (numbers as written), multilingual, none"
        ),
    ] = "standard"
    apply_normalization: Annotated[bool, Meta(description="false: texts are compared as they are")] = True
    strip_helpful_prefixes: Annotated[
        bool,
        Meta(description="leave out 'The audio says', quotes and time stamps; a refusal is an empty transcript"),
    ] = False
    normalize_asr_pc_standard_wer: Annotated[
        bool, Meta(description="the plain wer of ASR-PC is that of texts made alike")
    ] = True
    reference_fields: Annotated[
        tuple[str, ...], Meta(description="further right transcripts, each with a wer of its own: wer_<field>")
    ] = ()

    @property
    def mode(self) -> texts.Mode:
        """How texts are made alike."""
        if self.apply_normalization:
            return self.normalization_mode
        return "none"


class AudioGrader:
    """By `task_type` of the record; correct = word error rate below one half, or as said.

    ASR (also CER)    `wer`, `cer`, `substitutions`, `insertions`, `deletions`, `ref_words`
    ASR-PC (PC-Rate)  these, `wer_c` (case counts), `wer_pc` (case and punctuation), `per` (errors of punctuation),
                      `punct_f1` (marks that were heard), `cap_accuracy` (of words heard rightly)
    AST, Translation  counts of BLEU; correct from sentence BLEU 0.5 on
    Hallucination     correct = no word; `char_rate` where the record has `audio_duration` or `duration`
    any other         a short answer: correct = the right one's words; a judge may decide instead

    Fields written: these, `predicted_answer`, `is_correct`, `audio_counts` (measure → [counted, out of]). Raises
    ConfigError when made where the libraries are missing.
    """

    name = "audio"
    version = "4"
    answer_keys = ("generation",)
    gold_is_text = True
    Config = AudioConfig

    def __init__(self, config: AudioConfig = AudioConfig()) -> None:  # noqa: B008 - frozen
        self.config = config
        texts.require_libraries()

    def gold_reply(self, record: Row) -> str | None:
        if _SILENCE.match(str(record.get("task_type"))):
            return ""
        right = record.get("expected_answer")
        if isinstance(right, str):
            return right
        return None

    def same_replies(self, record: Row) -> list[str]:
        """Return the transcript in capital letters, and with punctuation, where neither counts; else an empty list."""
        task, right = str(record.get("task_type") or "ASR"), self.gold_reply(record)
        plain = _HEARING.match(task) and self.config.mode != "none" and not _MARKED.match(task)
        if right and plain:
            return [right.upper(), f" {right} ."]
        return []

    def grade(self, record: Row) -> Score:
        task = str(record.get("task_type") or "ASR")
        heard = texts.spoken_text(
            visible_reply(self._reply_text(record)) or "", strip=self.config.strip_helpful_prefixes
        )
        if _SILENCE.match(task):
            return self._grade_silence(record, heard)
        right = record.get("expected_answer")
        if not isinstance(right, str) or not right.strip():
            return self._unscored_record("the record has no expected_answer")
        if _TRANSLATION.match(task):
            return self._grade_translation(record, right, heard)
        if _HEARING.match(task):
            return self._grade_transcript(record, task, right, heard)
        return self._grade_answer(record, right, heard)

    def _reply_text(self, record: Row) -> str:
        return str(record.get("generation") or "")

    def _grade_transcript(self, record: Row, task: str, right: str, heard: str) -> Score:
        counts: Counts = {}
        marks = bool(_MARKED.match(task))
        mode = self.config.mode if self.config.normalize_asr_pc_standard_wer or not marks else "none"
        words = self._normalised_words(right, mode, record)
        if not words:
            return self._unscored_record("the right transcript has no words once it is normalised")
        errors = self._compare_words(words, heard, mode, record, counts)
        if marks:
            _with_marks(right, heard, counts)
        for field in self.config.reference_fields:
            other = self._normalised_words(str(record.get(field) or ""), mode, record)
            if not other:
                return self._unscored_record(f"the record has no words in {field}")
            ours = self._heard_words(other, heard, mode, record)
            counts[f"wer_{field}"] = _error_ratio(count_edits(align_words(other, ours)))
        fields: Row = {
            "wer": errors.rate,
            "substitutions": errors.substitutions,
            "insertions": errors.insertions,
            "deletions": errors.deletions,
            "ref_words": errors.length,
            **{name: _safe_quotient(pair) for name, pair in counts.items() if name != "wer"},
        }
        return self._decide_score(record, heard, errors.rate < _HALF, fields, counts, max(0.0, 1 - errors.rate))

    def _compare_words(self, words: list[str], heard: str, mode: texts.Mode, record: Row, counts: Counts) -> Edits:
        ours = self._heard_words(words, heard, mode, record)
        word_edits = count_edits(align_words(words, ours))
        counts["wer"] = _error_ratio(word_edits)
        for name in ("substitutions", "insertions", "deletions"):
            counts[name] = (getattr(word_edits, name), 1)
        counts["ref_words"] = (word_edits.length, 1)
        counts["cer"] = _error_ratio(count_edits(align_words(list(" ".join(words)), list(" ".join(ours)))))
        return word_edits

    def _normalised_words(self, text: str, mode: texts.Mode, record: Row) -> list[str]:
        return texts.normalise_transcript(text, mode, _language_code(record)).split()

    def _heard_words(self, words: list[str], heard: str, mode: texts.Mode, record: Row) -> list[str]:
        ours = self._normalised_words(heard, mode, record)
        if mode in ("multilingual", "hf_leaderboard"):
            return joined_compounds(words, ours)
        return ours

    def _grade_translation(self, record: Row, right: str, heard: str) -> Score:
        tokenizer = _TOKENIZERS.get(_language_code(record, "target_language"), "13a")
        counted = bleu_counts(heard, right, tokenizer)
        score = bleu_counter(tokenizer).sentence_score(heard, [right]).score / 100
        fields: Row = {"bleu_counts": counted, "sentence_bleu": score}
        return self._decide_score(record, heard, score >= _HALF, fields, {}, score)

    def _grade_silence(self, record: Row, heard: str) -> Score:
        invented = bool(texts.normalise_transcript(heard, "multilingual"))
        counts: Counts = {"hallucination_rate": (int(invented), 1)}
        seconds = record.get("audio_duration") or record.get("duration")
        if isinstance(seconds, int | float) and seconds > 0:
            errors = len(heard) if invented else 0
            counts["char_rate"] = (errors, float(seconds))
        fields = self._score_fields(heard, not invented, {}, counts)
        why = "text for silence" if invented else "no words"
        return verdict_score(self._stamp, not invented, fields, why)

    def _grade_answer(self, record: Row, right: str, heard: str) -> Score:
        answer = short_answer(visible_reply(self._reply_text(record)))
        alike = texts.normalise_transcript(answer or "", "standard") == texts.normalise_transcript(
            right, "standard"
        )
        return self._decide_score(record, answer or "", bool(answer) and alike, {}, {}, float(alike))

    def _decide_score(
        self, record: Row, heard: str, correct: bool, fields: Row, counts: Counts, value: float
    ) -> Score:
        all_fields = self._score_fields(heard, correct, fields, counts)
        if not heard.strip():
            return no_answer_score(self._stamp, record, all_fields)
        why = "heard" if correct else "misheard"
        return verdict_score(self._stamp, correct, all_fields, why, value)

    def _score_fields(self, heard: str, correct: bool | None, fields: Row, counts: Counts) -> Row:
        return {
            "predicted_answer": heard or None,
            "is_correct": correct,
            **fields,
            "audio_counts": {name: list(pair) for name, pair in counts.items()},
        }

    def _unscored_record(self, why: str) -> Score:
        return ungradable_score(
            self._stamp, why, {"predicted_answer": None, "is_correct": None, "audio_counts": None}
        )

    @property
    def _stamp(self) -> str:
        return f"{self.name}@{self.version}"


def _with_marks(right: str, heard: str, counts: Counts) -> None:
    counts["wer_c"] = _error_ratio(count_edits(align_words(texts.cased_words(right), texts.cased_words(heard))))
    chunks = align_words(texts.words_and_marks(right), texts.words_and_marks(heard))
    counts["wer_pc"] = _error_ratio(count_edits(chunks))
    counts["per"] = mark_errors(chunks, _is_mark)
    counts["punct_f1"] = mark_hits(chunks, _is_mark)
    counts["cap_accuracy"] = same_case(texts.cased_words(right), texts.cased_words(heard))


def _is_mark(token: str) -> bool:
    return all(map(texts.is_punctuation, token))


def _error_ratio(word_edits: Edits) -> tuple[int, int]:
    return word_edits.errors, word_edits.length


def _safe_quotient(pair: tuple[float, float]) -> float:
    counted, total = pair
    if total:
        return counted / total
    return 0.0


def _language_code(record: Row, key: str = "language") -> str:
    language = record.get(key) or record.get("source_language") or "en"
    return str(language).replace("_", "-").partition("-")[0].lower()
