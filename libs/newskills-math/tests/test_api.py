# SPDX-License-Identifier: Apache-2.0
"""What users import: the signatures of math-verify, reasons, and that little is loaded for them."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import newskills_math
from newskills_math import (
    ExprExtractionConfig,
    ExtractionPolicy,
    LatexExtractionConfig,
    ParsedAnswer,
    PatternError,
    StringExtractionConfig,
    compare,
    extract,
    math_metric,
    parse,
    verify,
)

NO_MATH_VERIFY = "no math-verify here: pip install 'newskills-math[symbolic]'"
BOXED = [LatexExtractionConfig(boxed_match_priority=0, try_extract_without_anchor=False)]


@pytest.mark.parametrize("name", ["parse", "verify", "math_metric"])
def test_the_signatures_are_those_of_math_verify(name: str) -> None:
    math_verify = pytest.importorskip("math_verify", reason=NO_MATH_VERIFY)
    ours, theirs = (
        inspect.signature(getattr(module, name)).parameters for module in (newskills_math, math_verify)
    )
    assert [*ours] == [*theirs]
    for parameter in theirs.values():
        if isinstance(parameter.default, int | float | str):
            assert ours[parameter.name].default == parameter.default
        assert (ours[parameter.name].default is inspect.Parameter.empty) == (
            parameter.default is inspect.Parameter.empty
        )


@pytest.mark.parametrize("kind", [LatexExtractionConfig, ExprExtractionConfig, StringExtractionConfig])
def test_the_configurations_have_the_fields_of_math_verify(kind: Callable[..., Any]) -> None:
    math_verify = pytest.importorskip("math_verify", reason=NO_MATH_VERIFY)
    theirs = getattr(math_verify, kind.__name__)
    assert [*inspect.signature(kind).parameters] == [*inspect.signature(theirs).parameters]


@pytest.mark.parametrize(
    ("text", "answer", "how"),
    [
        (r"So it is \boxed{\frac{1}{2}}.", r"\frac{1}{2}", "box"),
        ("<think>Is it 3?</think> The answer is 4.", "4", "phrase"),
        ("Natalia sold 48/2 = 24 clips in May.\n#### 72", "72", "hashes"),
        ("<answer>12</answer>", "12", "tag"),
        ("We buy 3 apples and 4 pears, so 7 pieces in all.", "7", "closing"),
        (r"\frac{1}{3}", r"\frac{1}{3}", "text"),
        ("$x^2 - 3x + 2$", "x^2 - 3x + 2", "text"),
        (r"\[ (3, -2) \]", "(3, -2)", "text"),
        ("$5$ or $6$", "$5$ or $6$", "text"),
        ("Tuesday afternoon", "Tuesday afternoon", "text"),
    ],
)
def test_replies_and_golds_are_parsed(text: str, answer: str, how: str) -> None:
    (parsed,) = parse(text)
    assert (parsed, parsed.how) == (answer, how)


@pytest.mark.parametrize(
    "text", ["", "<think>It is 4, or", r"It is \boxed{4", "I do not know what to say about all of this."]
)
def test_there_may_be_no_answer(text: str) -> None:
    assert parse(text) == []
    assert verify("4", parse(text)) is False


def test_without_an_anchor_nothing_counts_where_one_is_wanted() -> None:
    assert parse("We buy 3 apples and 4 pears, so 7 pieces in all.", BOXED) == []
    assert parse(r"\frac{1}{3}", BOXED) == []
    assert parse(r"So \boxed{7}.", BOXED) == ["7"]


def test_answers_may_be_one_of_a_few_texts() -> None:
    letters = [StringExtractionConfig()]
    assert parse("The answer is (B).", letters) == ["b"]
    assert parse("The answer is 12.", letters) == []
    assert parse("The answer is 12.", [*letters, ExprExtractionConfig()]) == ["12"]
    assert parse("The answer is b.", [StringExtractionConfig(lowercase=False)]) == ["B"]


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        (r"$\frac12$", r"So it is $\boxed{0.5}$.", True),
        ("52_8", r"\boxed{52_9}", False),
        (r"(-1,1)", r"\boxed{-1<x<1}", True),
        (r"10^{-20}", r"\boxed{10^{-21}}", False),
        ("1, 2, 3", r"\boxed{1，2}", False),
    ],
)
def test_a_reward_function_changes_one_import(gold: str, answer: str, equal: bool) -> None:
    assert verify(parse(gold), parse(answer, BOXED, extraction_mode="first_match")) is equal


def test_one_of_several_golds_and_answers_suffices() -> None:
    assert verify(["3", "4"], "4")
    assert verify("4", ["5", "4"])
    assert not verify(["3", "4"], ["5", "6"])
    assert not verify([], "4")
    assert verify(Fraction(1, 2), 0.5)


def test_what_is_not_offered_is_said() -> None:
    with pytest.raises(ValueError, match="strict=False of math-verify is not supported"):
        verify("x", "y", strict=False)
    with pytest.raises(ValueError, match="allow_set_relation_comp=True"):
        verify("x", "y", allow_set_relation_comp=True)
    with pytest.raises(TypeError, match=r"got dict: parse it with newskills_math\.parse"):
        verify("4", {})


def test_a_comparison_gives_its_reason() -> None:
    same = compare(r"\frac12", "0.5")
    assert same
    assert (same.equal, same.reason) == (True, "exact")
    other = compare("3", r"\sqrt{8}")
    assert not other
    assert other.equal is False
    assert other.reason


def test_the_score_of_several_replies() -> None:
    score = math_metric((LatexExtractionConfig(),), (ExprExtractionConfig(), LatexExtractionConfig()))
    assert score([r"\boxed{\frac{1}{4}}"], ["It is 0.25.", "The answer is 4."]) == (
        1.0,
        ([r"\frac{1}{4}"], ["0.25", "4"]),
    )
    assert score(["5"], ["The answer is 4."])[0] == 0.0
    mean = math_metric(aggregation_function=lambda scores: sum(scores) / len(scores))
    assert mean(["5"], ["The answer is 4.", "The answer is 5."])[0] == 0.5


def test_answers_are_sent_to_other_processes() -> None:
    (answer,) = parse(r"\boxed{7}")
    copy = pickle.loads(pickle.dumps(answer))
    assert isinstance(copy, ParsedAnswer)
    assert (copy, copy.how) == ("7", "box")


def test_a_pattern_of_ones_own() -> None:
    policy = ExtractionPolicy(extract_from_boxed=False, extract_regex=r"RESULT (\d+)")
    assert extract("RESULT 7", policy) == ("7", "regex")
    with pytest.raises(PatternError, match="is not a regular expression"):
        extract("", ExtractionPolicy(extract_from_boxed=False, extract_regex="("))


def test_an_import_loads_little_and_nothing_of_others() -> None:
    program = """
import sys
before = {name.partition(".")[0] for name in sys.modules}
from newskills_math import compare, parse, verify
print(sorted(name for name in sys.modules if name.startswith("newskills_math")))
compare("1/3", "0.5")
after = {name.partition(".")[0] for name in sys.modules} - before
print(sorted(after - sys.stdlib_module_names))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "['newskills_math', 'newskills_math._version', 'newskills_math.api']",
        "['newskills_math']",
    ]
