# SPDX-License-Identifier: Apache-2.0
"""Every kind of instruction, on the arguments of the real prompts and on any text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graders.instructions.witnesses import IFBENCH, IFEVAL, SAMPLES, Witness
from tests.night import NIGHTLY

from newskills.base.protocols import Grader
from newskills.base.records import Row
from newskills.graders import make_grader
from newskills.graders.instructions.language import detect_language
from newskills.graders.instructions.texts import punkt_sentences, split_sentences, treebank_tokens

pytest.importorskip("langdetect", reason="needs newskills[instructions]")
DATA = {
    "if": "raw.githubusercontent.com/google-research/google-research/master/instruction_following_eval/data/"
    "input_data.jsonl",
    "ifbench": "raw.githubusercontent.com/allenai/IFBench/refs/heads/main/data/IFBench_test.jsonl",
}
WITNESSES: Mapping[str, Mapping[str, Witness]] = {"if": IFEVAL, "ifbench": IFBENCH}
ARGUMENTS: Mapping[str, Row] = {
    "keywords:existence": {"keywords": ["a.b", "c+"]},
    "keywords:frequency": {"keyword": "tree", "frequency": 2, "relation": "at least"},
    "keywords:forbidden_words": {"forbidden_words": ["rock"]},
    "keywords:letter_frequency": {"letter": "q", "let_frequency": 2, "let_relation": "less than"},
    "language:response_language": {"language": "de"},
    "length_constraints:number_sentences": {"num_sentences": 3, "relation": "at least"},
    "length_constraints:number_paragraphs": {"num_paragraphs": 3},
    "length_constraints:number_words": {"num_words": 5, "relation": "less than"},
    "length_constraints:nth_paragraph_first_word": {"num_paragraphs": 3, "nth_paragraph": 2, "first_word": "So"},
    "detectable_content:number_placeholders": {"num_placeholders": 2},
    "detectable_content:postscript": {"postscript_marker": "P.P.S"},
    "detectable_format:number_bullet_lists": {"num_bullets": 2},
    "detectable_format:number_highlighted_sections": {"num_highlights": 2},
    "detectable_format:multiple_sections": {"section_spliter": "Section", "num_sections": 2},
    "combination:repeat_prompt": {"prompt_to_repeat": "Say it again."},
    "startend:end_checker": {"end_phrase": "Any other questions?"},
    "change_case:capital_word_frequency": {"capital_frequency": 2, "capital_relation": "at least"},
    "count:word_count_range": {"min_words": 3, "max_words": 5},
    "count:unique_word_count": {"N": 4},
    "count:conjunctions": {"small_n": 3},
    "count:person_names": {"N": 4},
    "count:numbers": {"N": 3},
    "count:pronouns": {"N": 3},
    "count:words_japanese": {"N": 3},
    "count:keywords_multiple": {
        f"keyword{i}": word for i, word in enumerate(["one", "two", "six", "ten", "red"], 1)
    },
    "ratio:stop_words": {"percentage": 30},
    "ratio:overlap": {"percentage": 50, "reference_text": " ".join(f"word{i}" for i in range(100))},
    "words:repeats": {"small_n": 2},
    "words:keywords_specific_position": {"keyword": "giggle", "n": 2, "m": 3},
    "words:words_position": {"keyword": "vibrant"},
    "sentence:increment": {"small_n": 2},
    "sentence:keyword": {"word": "eat", "N": 2},
    "format:options": {"options": "yes/no/maybe"},
    "format:list": {"sep": "!?!?"},
    "repeat:repeat_change": {"prompt_to_repeat": "Write it down."},
    "repeat:repeat_span": {"prompt_to_repeat": "Write it down for me now.", "n_start": 1, "n_end": 3},
}
KINDS = [(name, kind) for name, kinds in WITNESSES.items() for kind in kinds]


@cache
def grader(name: str) -> Grader:
    made = make_grader(name, {})
    assert isinstance(made, Grader)
    return made


def verdict(name: str, kind: str, args: Row, text: str) -> tuple[bool, bool]:
    """(strictly, loosely) followed."""
    score = grader(name).grade({"instruction_id_list": [kind], "kwargs": [args], "generation": text})
    assert score.outcome in ("correct", "wrong", "no_answer"), score.why
    strict, loose = score.fields["strict_eval"], score.fields["loose_eval"]
    assert score.fields["is_correct"] is strict["follow_all_instructions"] is (score.outcome == "correct")
    return strict["follow_instruction_list"][0], loose["follow_instruction_list"][0]


def test_all_kinds_are_here() -> None:
    assert (len(IFEVAL), len(IFBENCH)) == (25, 58)
    assert grader("if").checks.keys() == IFEVAL.keys()  # type: ignore[attr-defined]
    assert grader("ifbench").checks.keys() == IFBENCH.keys()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_followed_and_not(name: str, kind: str) -> None:
    args = ARGUMENTS.get(kind, {})
    right, wrong = WITNESSES[name][kind]
    assert verdict(name, kind, args, right(args)) == (True, True)
    assert verdict(name, kind, args, wrong(args))[0] is False


def _instructions(mirror: Path, name: str) -> Iterator[tuple[str, Row]]:
    for line in (mirror / DATA[name]).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for kind, args in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            known = {key: value for key, value in args.items() if value is not None}
            yield kind, {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in known.items()}


@pytest.mark.mirror
@pytest.mark.parametrize(("name", "count"), [("if", 834), ("ifbench", 344)])
def test_every_real_instruction_can_be_followed_and_broken(mirror: Path, name: str, count: int) -> None:
    found = list(_instructions(mirror, name))
    assert len(found) == count
    assert {kind for kind, _ in found} == WITNESSES[name].keys()
    for kind, args in found:
        right, wrong = WITNESSES[name][kind]
        assert verdict(name, kind, args, right(args)) == (True, True), (kind, args)
        assert verdict(name, kind, args, wrong(args))[0] is False, (kind, args)


TEXTS = st.one_of(
    st.text(max_size=80),
    st.text(alphabet=" \n\t.,!?\"'*-_[]{}()<>#`:;…“”aAbIzé日😀01", max_size=80),
)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_any_text_gets_a_verdict(name: str, kind: str) -> None:
    args = ARGUMENTS.get(kind, {})

    @settings(max_examples=40, database=None)
    @given(TEXTS)
    def check(text: str) -> None:
        strict, loose = verdict(name, kind, args, text)
        assert loose >= strict

    check()


LONG = 30_000 if NIGHTLY else 10_000
HOSTILE = [text * (LONG // len(text)) for text in ("[", "<<", "*", "\n", "a.", '"', "(")]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: repr(text[:2]))
@pytest.mark.slow
def test_hostile_texts_take_linear_time(hostile: str) -> None:
    """Quadratic checks would take half a minute for 30,000 characters; the pool's limit is 10 s of CPU for a prompt."""
    for name, kind in KINDS:
        verdict(name, kind, ARGUMENTS.get(kind, {}), hostile)


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ('Sure:\n"Yes."', False),
        ('"Yes."\nDone', False),
        ('*"Yes."*', False),
        ('Sure:\n*"Yes."*\nDone', False),
        ('Sure.\n\nHere: "Yes."', None),
        ('"Yes."', True),
    ],
)
def test_loose_forgives_lines_and_asterisks(text: str, strict: bool | None) -> None:
    assert verdict("if", "startend:quotation", {}, text) == ((False, False) if strict is None else (strict, True))


@pytest.mark.parametrize(
    ("record", "outcome", "cause"),
    [
        ({"instruction_id_list": ["words:unheard_of"], "kwargs": [{}]}, "unscored", "data"),
        ({"instruction_id_list": ["keywords:frequency"], "kwargs": [{}]}, "unscored", "data"),
        ({"instruction_id_list": ["keywords:frequency"], "kwargs": []}, "unscored", "data"),
        ({"instruction_id_list": [], "kwargs": []}, "unscored", "data"),
        ({}, "unscored", "data"),
        (
            {
                "instruction_id_list": ["keywords:frequency"],
                "kwargs": [{"keyword": "a", "frequency": 1, "relation": "about"}],
            },
            "unscored",
            "data",
        ),
    ],
)
def test_the_datas_mistakes_are_not_the_models(record: Row, outcome: str, cause: str) -> None:
    score = grader("if").grade({"generation": "a text", **record})
    assert (score.outcome, score.cause) == (outcome, cause)
    assert score.fields["strict_eval"] is None


@pytest.mark.parametrize(
    ("generation", "outcome", "cause"),
    [
        ("", "no_answer", "model"),
        (" \n", "no_answer", "model"),
        ("<think>no, comma", "no_answer", "truncation"),
        ("no, comma", "wrong", "model"),
        ("<think>no, comma</think>\n\nnone", "correct", None),
    ],
)
def test_endings(generation: str, outcome: str, cause: str | None) -> None:
    record = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}], "generation": generation}
    score = grader("if").grade(record)
    assert (score.outcome, score.cause) == (outcome, cause)
    assert score.fields["strict_eval"]["follow_instruction_list"] == [outcome == "correct"]
    assert score.fields["loose_eval"]["follow_all_instructions"] is (outcome == "correct")


def test_nulls_and_floats_in_arguments() -> None:
    args: dict[str, Any] = {"N": 2.0, "keyword": None}
    assert verdict("ifbench", "count:numbers", args, "1 and 2") == (True, True)


@pytest.mark.parametrize(
    ("kind", "args", "text", "followed"),
    [
        ("punctuation:no_comma", {}, "네", True),
        ("detectable_format:constrained_response", {}, "제 답변은 예입니다.", True),
        ("detectable_format:constrained_response", {}, "My answer is yes.", False),
        ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, "가-나 다.라", True),
        ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "가 나 다", True),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "기업"},
            "기업은 바쁩니다.",
            True,
        ),
        ("keywords:existence", {"keywords": ["\u1112\u1161\u11ab"]}, "한국", True),
        ("keywords:existence", {"keywords": ["일본"]}, "한국", False),
    ],
)
def test_korean(kind: str, args: Row, text: str, followed: bool) -> None:
    assert verdict("koifeval", kind, args, text)[0] is followed


@pytest.mark.parametrize("code", SAMPLES)
def test_languages(code: str) -> None:
    assert detect_language(SAMPLES[code]) == code
    assert detect_language(SAMPLES[code] * 3) == code


def test_texts_without_a_language() -> None:
    assert [detect_language(text) for text in ("1234", "", "😀 !")] == [None, None, None]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Dr. Smith has 3.5 apples. He ate one!", ["Dr. Smith has 3.5 apples.", "He ate one!"]),
        ("See example.com for more. Really?", ["See example.com for more.", "Really?"]),
        ('He said "no." Then he left', ['He said "no".', "Then he left"]),
        ("Wait... what", ["Wait...", "what"]),
        ("The U.S. is big.", ["The U.S. is big."]),
        ("", []),
    ],
)
def test_sentences_by_rules(text: str, found: list[str]) -> None:
    assert list(split_sentences(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Mr. Smith went to Washington, D.C. He stayed. Why?", 3),
        ("It was 5 p.m. on Monday. J. Smith came at 6.30.", 2),
        ("One!! Two?! Three.", 3),
        ('He said "Stop!" and left. (It was late.) Done', 4),
        ("no end", 1),
        ("", 0),
    ],
)
def test_sentences_by_punkt(text: str, found: int) -> None:
    assert len(punkt_sentences(text)) == found


def test_tokens() -> None:
    text = "I can't go, \"he\" said (to the U.S. team). It's $5.50--cheap."
    wanted = "I ca n't go , `` he '' said ( to the U.S. team ) . It 's $ 5.50 -- cheap ."
    assert " ".join(treebank_tokens(text)) == wanted


RECORDED = Path(__file__).with_name("recorded.jsonl")
"""Verdicts of the published checks (lm-eval 0.4.13's for IFEval, IFBench of 2026) on generated replies. Left out are
`words:start_verb`, which they decide with a tagger's data, replies on which they raise, and two on which keywords with
signs (`c+`) are read as patterns."""


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kind in KINDS if kind != "words:start_verb"])
def test_verdicts_of_the_published_checks(name: str, kind: str) -> None:
    cases = [case for case in map(json.loads, _recorded()) if (case["grader"], case["kind"]) == (name, kind)]
    assert len(cases) >= 8
    assert {case["strict"] for case in cases} == {True, False}
    for case in cases:
        assert verdict(name, kind, case["args"], case["text"]) == (case["strict"], case["loose"]), case["text"]


@cache
def _recorded() -> list[str]:
    return RECORDED.read_text(encoding="utf-8").splitlines()
