# SPDX-License-Identifier: Apache-2.0
"""Speech: word errors as jiwer counts them, texts as the published normaliser of Whisper makes them alike."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.base.records import Row, Score
from newskills.graders.audio import texts
from newskills.graders.audio.errors import align_words, count_edits, joined_compounds

jiwer = pytest.importorskip("jiwer")
english = pytest.importorskip("whisper_normalizer.english").EnglishTextNormalizer()

WORDS = st.lists(st.sampled_from(["a", "bb", "ccc", "d", "ee", "the", "of"]), max_size=12)
SPEECH = (
    "Mr. Smith's colour TV cost twenty-one dollars, didn't it?",
    "um, I'm gonna [noise] be there at 5 p.m. (laughs) on the 3rd",
    "one hundred and five point three percent of £2,000",
    "It's a <unk> test ' s of the naïve café",
    "double oh seven, nineteen ninety nine",
    "a ( b ) c () d [e",
)


def graded(reply: str, name: str = "audio", config: Row | None = None, **row: object) -> Score:
    return plain_grader(name, config or {}).grade({"id": 1, "generation": reply, **row})


@given(WORDS, WORDS)
@settings(max_examples=200)
def test_counts_are_those_of_jiwer(right: list[str], heard: list[str]) -> None:
    found = count_edits(align_words(right, heard))
    assert found.length == len(right)
    if right:
        known = jiwer.process_words(" ".join(right), " ".join(heard))
        assert found.errors == known.substitutions + known.insertions + known.deletions
        assert found.rate == pytest.approx(known.wer)
        if heard:
            counts = (found.substitutions, found.insertions, found.deletions)
            assert counts == (known.substitutions, known.insertions, known.deletions)


@pytest.mark.parametrize("text", SPEECH)
def test_english_is_normalised_as_published(text: str) -> None:
    assert texts.normalise_transcript(text, "standard") == " ".join(english(text).split())


@given(st.text(alphabet="abc 1'’[]()<>.,$%", max_size=40))
@settings(max_examples=300)
def test_brackets_go_as_published(text: str) -> None:
    text = " ".join(text.split())
    assert texts.normalise_transcript(text, "standard") == " ".join(english(text).split())


def test_other_modes() -> None:
    said = "Twenty-one (sic) Häuser, 5 Uhr!"
    assert texts.normalise_transcript(said, "multilingual", "de") == "twenty one häuser 5 uhr"
    assert texts.normalise_transcript("你好， 世界。", "multilingual", "zh_cn") == "你 好 世 界"
    assert texts.normalise_transcript("It's twenty-one  dollars.", "no_tn_itn") == "it is twenty one dollars"
    assert texts.normalise_transcript(" A  b, ", "none") == "A b,"
    assert texts.normalise_transcript("It's $5, uh, OK.", "audiobench") == "it is 5 ok"
    assert joined_compounds(["ein", "hausboot"], ["ein", "haus", "boot", "da"]) == ["ein", "haus", "boot", "da"]
    assert joined_compounds(["ein", "hausboot", "da"], ["ein", "haus", "boot", "da"]) == ["ein", "hausboot", "da"]


def test_recognition() -> None:
    score = graded("the CAT sat, on a mat", expected_answer="The cat sat on the mat.", task_type="ASR")
    assert (score.outcome, score.fields["wer"]) == ("correct", pytest.approx(1 / 6))
    assert [score.fields[name] for name in ("substitutions", "insertions", "deletions", "ref_words")] == [
        1,
        0,
        0,
        6,
    ]
    assert score.fields["cer"] == pytest.approx(jiwer.cer("the cat sat on the mat", "the cat sat on a mat"))
    half = graded("one two x y", expected_answer="one two three four", config={"normalization_mode": "no_tn_itn"})
    assert (half.outcome, half.fields["wer"]) == ("wrong", 0.5)
    assert graded("7", expected_answer="seven").outcome == "correct"
    assert graded("<think>seven</think> eight", expected_answer="seven").outcome == "wrong"


def test_no_answer_and_no_reference() -> None:
    silent = graded("", expected_answer="two words")
    assert (silent.outcome, silent.fields["wer"], silent.fields["deletions"]) == ("no_answer", 1.0, 2)
    assert graded("<think> hm", expected_answer="x y").cause == "truncation"
    for row in ({}, {"expected_answer": " "}, {"expected_answer": "(noise)"}):
        assert graded("a word", **row).outcome == "unscored"
        assert graded("a word", **row).cause == "data"


def test_punctuation_and_case() -> None:
    right = "Hello, World. How are you?"
    same = graded(right, expected_answer=right, task_type="ASR-PC").fields
    assert [same[name] for name in ("wer", "wer_c", "wer_pc", "per")] == [0, 0, 0, 0]
    other = graded("hello World. How are you!", expected_answer=right, task_type="ASR-PC").fields
    assert other["wer"] == 0
    assert other["wer_c"] == pytest.approx(1 / 5)
    assert other["wer_pc"] == pytest.approx(3 / 8)
    assert other["per"] == pytest.approx(2 / 3)
    assert other["punct_f1"] == pytest.approx(2 / 5), "the full stop, of three right marks and two that were heard"
    assert other["cap_accuracy"] == pytest.approx(4 / 5)
    assert (same["punct_f1"], same["cap_accuracy"]) == (1.0, 1.0)
    rate = graded("hello World. How are you!", expected_answer=right, task_type="PC-Rate").fields
    assert rate["audio_counts"] == other["audio_counts"]


def test_several_references() -> None:
    config = {"normalization_mode": "no_tn_itn", "reference_fields": ["text_tn", "text_itn"]}
    row = {"expected_answer": "five cats", "text_tn": "five cats", "text_itn": "5 cats"}
    fields = graded("5 cats", config=config, **row).fields
    assert (fields["wer"], fields["wer_text_tn"], fields["wer_text_itn"]) == (0.5, 0.5, 0.0)
    assert graded("5 cats", config=config, expected_answer="five cats").outcome == "unscored"


def test_what_assistants_put_around() -> None:
    config = {"strip_helpful_prefixes": True}
    for reply in (
        'The audio says: "hello there friend"',
        "Sure! Here is the transcript: hello there friend",
        "00:00:01,000 --> 00:00:02,500 hello there friend",
    ):
        assert graded(reply, config=config, expected_answer="hello there friend").fields["wer"] == 0, reply
    refused = graded(
        "I'm sorry, but I can't process the audio file.", config=config, expected_answer="hello there"
    )
    assert refused.outcome == "no_answer"
    assert graded("I can't hear you", config=config, expected_answer="I can't hear you").outcome == "correct"


def test_silence() -> None:
    assert graded(" [music] ... ", task_type="Hallucination").outcome == "correct"
    invented = graded("Thanks for watching!", task_type="Hallucination", audio_duration=4.0)
    assert invented.outcome == "wrong"
    assert invented.fields["audio_counts"] == {"hallucination_rate": [1, 1], "char_rate": [20, 4.0]}
    assert graded("", task_type="Hallucination").outcome == "correct"


def test_translation_and_questions() -> None:
    row = {"expected_answer": "The cat sat on the mat today.", "task_type": "AST", "target_language": "en"}
    assert graded("The cat sat on the mat today.", **row).outcome == "correct"
    assert graded("A dog barked.", **row).fields["bleu_counts"][1] == 8
    assert graded("Answer: Two dogs", expected_answer="two dogs", task_type="QA").outcome == "correct"
    assert graded("Answer: a cat", expected_answer="two dogs", task_type="QA").outcome == "wrong"


def test_entities() -> None:
    row = {"expected_answer": "Ann Lee met Bo in Rome, and Ann Lee left", "entity_list": ["Ann Lee", "Rome", "Bo"]}
    fields = graded("Ann Lee met Joe in Rome and Ann left", "contextasr", **row).fields
    assert fields["audio_counts"] == {"wer": [2, 10], "ne_wer": [2, 6], "ne_fnr": [2, 4]}
    assert graded("Ann Lee met Bo in Rome and Ann Lee left", "contextasr", **row).fields["ne_fnr"] == 0
    assert graded("x", "contextasr", expected_answer="x").outcome == "unscored"


def test_keywords() -> None:
    row = {"expected_answer": "revenue of Acme grew, Acme said", "keyword_list": ["Acme", "Zeta"]}
    counts = graded("revenue of acme grew zeta said", "contextual_earnings22", **row).fields["audio_counts"]
    assert counts == {
        "wer": [1, 6], "keyword_precision": [1, 2], "keyword_recall": [1, 2], "keyword_f1": [2, 4]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "outcome", "fields"),
    [
        ("audio_rating", "Fine.\n**Rating: 4**", "correct", {"judge_rating": 4.0, "judge_correct": True}),
        ("audio_rating", "Rating: 2", "wrong", {"judge_rating": 2.0, "judge_correct": False}),
        ("audio_rating", "Judgement: No", "wrong", {"judge_rating": 0.0, "judge_correct": False}),
        ("audio_rating", "no idea", "unscored", {"judge_rating": None, "judge_correct": None}),
        ("mmau-pro", "Correctness: 5\nRelevance: 4\nCompleteness: 3\nClarity: 5\nOverall: 4", "correct", {}),
        ("mmau-pro", "Correctness: 5\nRelevance: 4\nCompleteness: 3\nClarity: 5\nOverall: 2", "wrong", {}),
        ("mmau-pro", "Correctness: 5, Overall: 4", "unscored", {"judge_overall": None}),
    ],
)
def test_judges_that_give_points(name: str, text: str, outcome: str, fields: Row) -> None:
    score = plain_grader(name, {}).grade({"judgement": text})
    assert score.outcome == outcome
    assert fields.items() <= score.fields.items()


def test_drafts() -> None:
    counts = {"spec_num_drafts": 10, "spec_draft_tokens": 40, "spec_accepted_tokens": 25}
    fields = graded("x", "specdec", **counts).fields
    assert (fields["spec_acceptance_rate"], fields["spec_acceptance_length"]) == (0.625, 3.5)
    assert graded("x", "specdec").outcome == "unscored"
    assert graded("x", "specdec", **{**counts, "spec_accepted_tokens": 41}).outcome == "unscored"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 60_000,
        "[" * 60_000,
        " " * 60_000 + "'",
        "9" * 60_000,
        "one " * 15_000,
        "nine hundred " * 5_000,
        "'" * 60_000,
    ],
)
@pytest.mark.timeout(300)
def test_hostile_text_is_graded_in_linear_time(text: str) -> None:
    score = graded(text, config={"strip_helpful_prefixes": True}, expected_answer="seven words " * 20)
    assert score.outcome in ("wrong", "no_answer")


def test_wrong_words_are_wrong() -> None:
    draw = random.Random(3)
    vocabulary = ["river", "stone", "window", "paper", "garden", "yellow", "quickly", "seldom", "honest", "broken"]
    for _ in range(50):
        said = draw.sample(vocabulary, 5)
        assert graded(" ".join(said), expected_answer=" ".join(said)).outcome == "correct"
        assert (
            graded(" ".join(w for w in vocabulary if w not in said), expected_answer=" ".join(said)).outcome
            == "wrong"
        )
