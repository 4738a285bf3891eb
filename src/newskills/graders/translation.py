# SPDX-License-Identifier: Apache-2.0
"""What BLEU and chrF count in one translated segment, so that corpus scores are sums over segments.

BLEU (Papineni et al. 2002) as sacrebleu counts it (Post 2018, arXiv:1804.08771); chrF2 (Popović 2015).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Annotated, Any

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
_CHRF_ORDER = 6
_LONGEST = 100_000
_HALF = 0.5


class TranslationConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=translation`."""

    tokenizer: Annotated[
        str,
        Meta(description="of sacrebleu, for BLEU; empty: zh, ja-mecab or ko-mecab by target language, else 13a"),
    ] = ""
    reference_key: Annotated[str, Meta(description="field with the right translation")] = "reference"


class TranslationGrader:
    """Fields written: `predicted_answer`, `bleu_counts`, `chrf_counts`, `sentence_chrf` (0–1), `bleu_tokenizer`.

    bleu_counts   [tokens of the translation, of the reference, matches of 1 to 4 tokens, n-grams of 1 to 4 tokens]
    chrf_counts   [n-grams of the translation, of the reference, matches] for 1 to 6 characters

    A segment is called correct from half of the points of chrF on; nothing but filters should rely on that. Raises
    ConfigError when made where sacrebleu is missing.
    """

    name = "translation"
    version = "2"
    answer_keys = ("generation",)
    Config = TranslationConfig

    def __init__(self, config: TranslationConfig = TranslationConfig()) -> None:  # noqa: B008 - frozen
        self.config = config
        bleu_counter(config.tokenizer or "13a")

    def gold_reply(self, record: Row) -> str | None:
        reference = record.get(self.config.reference_key)
        if reference is None:
            return None
        return str(reference)

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        names = ("bleu_counts", "chrf_counts", "sentence_chrf", "bleu_tokenizer")
        reference = record.get(self.config.reference_key)
        if not reference:
            nothing: Row = {"predicted_answer": None, **dict.fromkeys(names)}
            return ungradable_score(stamp, f"the record has no {self.config.reference_key}", nothing)
        language = str(record.get("target_language") or "").replace("-", "_").partition("_")[0].lower()
        tokenizer = self.config.tokenizer or _TOKENIZERS.get(language, "13a")
        text = " ".join((visible_reply(str(record.get("generation") or "")) or "").split())[:_LONGEST]
        counts = bleu_counts(text, str(reference), tokenizer)
        characters = chrf_counts(text, str(reference))
        value = _sentence_chrf(characters)
        fields: Row = dict(zip(names, (counts, characters, value, tokenizer), strict=True))
        if not text:
            return no_answer_score(stamp, record, {"predicted_answer": None, **fields})
        return verdict_score(
            stamp, value >= _HALF, {"predicted_answer": text, **fields}, f"chrF {value:.2f}", value
        )


@lru_cache(maxsize=8)
def bleu_counter(tokenizer: str) -> Any:
    """Return the counter of sacrebleu. Raises ConfigError where it, the tokenizer, or what that needs for a language is
    missing."""
    hint = "pip install 'newskills[translation]'"
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise ConfigError("Translations are scored with sacrebleu, which is not installed.", hint=hint) from error
    if tokenizer not in BLEU.TOKENIZERS:
        raise ConfigError(f"sacrebleu has no tokenizer '{tokenizer}'; there are {', '.join(BLEU.TOKENIZERS)}.")
    try:
        return BLEU(tokenize=tokenizer, effective_order=True)
    except (ImportError, RuntimeError) as error:
        raise ConfigError(
            f"The tokenizer '{tokenizer}' of sacrebleu cannot be used: {error}", hint=hint
        ) from error


def bleu_counts(text: str, reference: str, tokenizer: str) -> list[int]:
    """Return the counts of BLEU, as `TranslationGrader` describes them."""
    score = bleu_counter(tokenizer).sentence_score(text, [reference])
    return [score.sys_len, score.ref_len, *score.counts, *score.totals]


def chrf_counts(text: str, reference: str) -> list[int]:
    """Return the counts of chrF, as `TranslationGrader` describes them."""
    first, second = "".join(text.split()), "".join(reference.split())
    counts = []
    for order in range(1, _CHRF_ORDER + 1):
        ours, theirs = _count_grams(first, order), _count_grams(second, order)
        own_total = ours.total() if theirs else 0
        counts += [own_total, theirs.total(), (ours & theirs).total()]
    return counts


def _count_grams(text: str, order: int) -> Counter[str]:
    return Counter(text[at : at + order] for at in range(len(text) - order + 1))


def _sentence_chrf(counts: list[int]) -> float:
    """Return the F2 of the mean precision and recall over the orders that both texts have, 0–1."""
    matched = [counts[at : at + 3] for at in range(0, len(counts), 3) if counts[at] and counts[at + 1]]
    precision = sum(same / ours for ours, _, same in matched)
    recall = sum(same / theirs for _, theirs, same in matched)
    if precision + recall:
        return 5 * precision * recall / (4 * precision + recall) / len(matched)
    return 0.0
