# SPDX-License-Identifier: Apache-2.0
"""The sums over segments are what sacrebleu says about the corpus."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.base.errors import ConfigError
from newskills.metrics import make_metric

sacrebleu = pytest.importorskip("sacrebleu.metrics")

CORPORA = {
    "de": (
        [
            "Der Hund schläft auf dem Boden.",
            "Zwei Katzen trinken heute Milch, oder nicht?",
            "Es regnet in Rom am 3.4.",
        ],
        [
            "Der Hund schlief auf dem Boden.",
            "Zwei Katzen tranken heute frische Milch!",
            "In Rom regnet es am 3.4.",
        ],
    ),
    "zh": (["狗睡在地板上。", "今天有两只猫喝牛奶ABC。"], ["那只狗睡在地板上。", "今天两只猫在喝牛奶 ABC。"]),
    "ja_JP": (
        ["犬は床で寝ています。", "今日は猫が牛乳を飲みます。"],
        ["犬が床で寝ています。", "今日は猫が牛乳を飲んだ。"],
    ),
    "ko": (
        ["개가 바닥에서 잔다.", "고양이가 우유를 마신다."],
        ["개는 바닥에서 잠을 잔다.", "고양이 두 마리가 우유를 마신다."],
    ),
}
TOKENIZERS = {"de": "13a", "zh": "zh", "ja_JP": "ja-mecab", "ko": "ko-mecab"}
TOKENS = ["the", "a", "cat", "dog", "sat,", "on", "mat.", "3,5", "--", "näh"]
words = st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join)


def _scores(language: str, texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    grader, metric = plain_grader("translation", {}), make_metric("translation")
    for text, reference in zip(texts, references, strict=True):
        row = {"source_language": "en", "target_language": language, "reference": reference, "generation": text}
        score = grader.grade(row)
        metric.update([{**row, **score.fields, "outcome": score.outcome, "outcome_cause": score.cause}])
    return {name: number.value for name, number in metric.numbers()[f"en->{language}"].items()}


@pytest.mark.parametrize("language", CORPORA)
def test_agrees_with_sacrebleu(language: str) -> None:
    texts, references = CORPORA[language]
    found = _scores(language, texts, references)
    theirs = sacrebleu.BLEU(tokenize=TOKENIZERS[language]).corpus_score(texts, [references]).score
    assert found["bleu"] == pytest.approx(theirs)
    assert 5 < theirs < 95
    assert found["chrf"] == pytest.approx(sacrebleu.CHRF().corpus_score(texts, [references]).score)


@settings(max_examples=40)
@given(st.lists(st.tuples(words, words.filter(bool)), min_size=1, max_size=4))
def test_agrees_on_odd_corpora(pairs: list[tuple[str, str]]) -> None:
    texts, references = [text for text, _ in pairs], [reference for _, reference in pairs]
    found = _scores("de", texts, references)
    assert found["bleu"] == pytest.approx(sacrebleu.BLEU().corpus_score(texts, [references]).score, abs=1e-9)
    assert found["chrf"] == pytest.approx(sacrebleu.CHRF().corpus_score(texts, [references]).score, abs=1e-9)


def test_replies() -> None:
    grader = plain_grader("translation", {})
    row = {"reference": "Guten Tag, liebe Leute.", "target_language": "de"}
    thought = grader.grade({**row, "generation": "<think>Good day?</think>\nGuten Tag,\nliebe Leute."})
    assert (thought.outcome, thought.fields["sentence_chrf"]) == ("correct", pytest.approx(1))
    assert thought.fields["bleu_counts"] == [6, 6, 6, 5, 4, 3, 6, 5, 4, 3]
    cut = grader.grade({**row, "generation": "<think>Good day", "finish_reason": "length"})
    assert (cut.outcome, cut.cause, cut.fields["bleu_counts"][:3]) == ("no_answer", "truncation", [0, 6, 0])
    assert grader.grade({"generation": "x", "target_language": "de"}).outcome == "unscored"


def test_unknown_tokenizer() -> None:
    with pytest.raises(ConfigError, match="no tokenizer 'klingon'"):
        plain_grader("translation", {"tokenizer": "klingon"})
