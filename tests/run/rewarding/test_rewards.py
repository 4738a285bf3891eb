# SPDX-License-Identifier: Apache-2.0
from math import isclose
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.run.math_rewards import MATH_RL

from newskills.base.errors import ConfigError
from newskills.base.reading.reply_text import thinks_once
from newskills.base.records import Failure, Outcome, Score
from newskills.config.layers import Layer, resolve
from newskills.models.config import ServerConfig
from newskills.run.rewarding.judge import read_points, weighted_mark
from newskills.run.rewarding.reward import (
    FormatReward,
    JudgeReward,
    LengthPenalty,
    OverlongPenalty,
    RewardConfig,
    RewardItem,
    SampleMeasurements,
    has_box,
    reward_of_verdict,
)

OUTCOMES = ("correct", "wrong", "no_answer")
SMALL = st.floats(-4, 4, allow_nan=False)


def score(outcome: Outcome, **more: Any) -> Score:
    return Score(outcome=outcome, fields={"predicted_answer": "4"}, grader="g@1", **more)


def sample(text: str, tokens: int | None = None) -> RewardItem:
    return RewardItem(record={"generation": text}, tokens=tokens)


@pytest.mark.parametrize(
    ("outcome", "text", "reward", "parts"),
    [
        ("correct", r"so \boxed{4}", 1.1, {"verdict": 1.0, "box": 0.1}),
        ("wrong", r"so \boxed{5}", -0.4, {"verdict": -0.5, "box": 0.1}),
        ("wrong", "The answer is 5.", -0.5, {"verdict": -0.5, "box": 0.0}),
        ("no_answer", "I do not know.", -0.5, {"verdict": -0.5, "box": 0.0}),
        ("no_answer", r"so \boxed{4", -0.5, {"verdict": -0.5, "box": 0.0}),
    ],
)
def test_the_rewards_of_mathematics(outcome: str, text: str, reward: float, parts: dict[str, float]) -> None:
    found = reward_of_verdict(score(outcome), sample(text), MATH_RL)
    assert (found.reward, found.components, found.outcome) == (reward, parts, outcome)
    assert found.correct is (outcome == "correct")


@given(st.sampled_from(["grader", "sandbox", "timeout", "judge"]), st.text(), SMALL, SMALL)
def test_what_an_instrument_lost_has_no_reward(cause: str, text: str, wrong: float, box: float) -> None:
    config = RewardConfig(wrong=wrong, format=FormatReward(box=box), length=LengthPenalty(penalty=1.0))
    found = reward_of_verdict(score("unscored", why="it broke", cause=cause), sample(text), config)
    assert (found.reward, found.correct, found.components) == (None, False, {})
    assert found.why == f"{cause}: it broke"


@given(
    st.sampled_from(OUTCOMES),
    st.integers(0, 9000),
    st.integers(0, 9000),
    st.builds(RewardConfig, correct=SMALL, wrong=SMALL, no_answer=SMALL),
    st.builds(FormatReward, box=SMALL, think=SMALL, pattern=st.just("4"), pattern_bonus=SMALL),
    st.booleans(),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_the_reward_is_the_sum_of_its_components(
    outcome: str,
    size: int,
    tokens: int,
    base: RewardConfig,
    form: FormatReward,
    there: bool,
    weight: float,
    given_mark: float,
) -> None:
    text = "x" * size
    config = replace(
        base,
        format=form,
        length=LengthPenalty(penalty=0.25),
        overlong=OverlongPenalty(max_tokens=4096),
        judge=JudgeReward(weight=weight, server=ServerConfig(model="j")),
    )
    found = reward_of_verdict(
        score(outcome), sample(text, tokens), config, SampleMeasurements(mark=given_mark, pattern=there)
    )
    plain = replace(config, judge=JudgeReward())
    without = reward_of_verdict(score(outcome), sample(text, tokens), plain, SampleMeasurements(pattern=there))
    assert found.reward == pytest.approx(sum(found.components.values()), abs=1e-12)
    assert found.reward == pytest.approx((1 - weight) * without.reward + weight * given_mark, abs=1e-9)
    expected = getattr(base, outcome) + (form.pattern_bonus if there else 0.0)
    expected -= 0.25 * max(0.0, size / 1000 - 2)
    expected -= min(1.0, max(0.0, (tokens - 3968) / 128))
    assert without.reward == pytest.approx(expected, abs=1e-9)


@given(st.integers(1, 5000), st.integers(1, 5000), st.floats(0, 3), st.integers(0, 12000), st.integers(0, 200))
def test_overlong_samples_are_punished_softly(
    longest: int, buffer: int, penalty: float, tokens: int, more: int
) -> None:
    assume(buffer <= longest)
    config = RewardConfig(overlong=OverlongPenalty(max_tokens=longest, buffer=buffer, penalty=penalty))

    def part(length: int) -> float:
        return reward_of_verdict(score("correct"), sample("x", length), config).components["overlong"]

    assert -penalty <= part(tokens) <= 0
    assert part(tokens + more) <= part(tokens)
    assert part(longest - buffer) == 0
    assert isclose(part(longest), -penalty)
    assert part(longest + more) == part(longest)


def test_the_published_figures_of_overlong_shaping() -> None:
    config = RewardConfig(overlong=OverlongPenalty(max_tokens=512))
    worth = [
        reward_of_verdict(score("correct"), sample("", n), config).reward for n in (0, 384, 416, 448, 512, 600)
    ]
    assert worth == [1.0, 1.0, 0.75, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(("size", "penalty"), [(0, 0), (2000, 0), (2500, 0.05), (4000, 0.2), (12000, 1.0)])
def test_long_texts_cost(size: int, penalty: float) -> None:
    config = RewardConfig(length=LengthPenalty(penalty=0.1))
    assert reward_of_verdict(score("correct"), sample("é" * size), config).reward == pytest.approx(1 - penalty)
    config = RewardConfig(length=LengthPenalty(penalty=0.1, unit="tokens"))
    assert reward_of_verdict(score("correct"), sample("é", size), config).reward == pytest.approx(1 - penalty)


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("<think>two and two</think>4", True),
        ("\n<think>\n</think>\n4", True),
        ("two and two</think>4", True),
        ("<think>two and two</think> \n", False),
        ("<think>two and two", False),
        ("4", False),
        ("First <think>two</think> 4", False),
        ("<think>a</think> b <think>c</think> 4", False),
        ("<think><think>a</think> 4", False),
        ("a</think>b</think> 4", False),
        ("[THINK]two and two[/THINK]4", True),
        ("◁think▷two◁/think▷4", True),
        ("<|channel|>analysis<|message|>two<|end|><|start|>assistant<|channel|>final<|message|>4", True),
        ("[THINK]two[/THINK][THINK]two[/THINK]4", False),
    ],
)
def test_the_form_of_thinking(text: str, there: bool) -> None:
    assert thinks_once(text) is there


def test_a_box_in_unfinished_thinking_is_none() -> None:
    assert has_box(r"<think>so \boxed{4}</think> \boxed{4}")
    assert not has_box(r"<think>so \boxed{4}")
    assert not has_box("boxed 4")


@pytest.mark.parametrize(
    ("reply", "marks"),
    [
        ("Logic: 8\nCorrectness: 7\nClarity: 9", (8, 7, 9)),
        ("It is fine.\n\n**Logic:** 8/10\n- *Correctness*: 7.5\n1. Clarity = 10.", (8, 7.5, 10)),
        ("Logic: 1\nLogic: 2", (2, None, None)),
        ("<think>Logic: 1</think>\nlogic: 3", (3, None, None)),
        ("<think>Logic: 1", (None, None, None)),
        ("Logic: 11\nCorrectness: -3\nClarity: ten", (None, None, None)),
        ("Logic: 8.5.1", (None, None, None)),
        ("The logic: 8 of 9 steps", (None, None, None)),
    ],
)
def test_the_lines_of_the_judge(reply: str, marks: tuple[float, ...]) -> None:
    names = ("logic", "correctness", "clarity")
    assert read_points(reply) == {
        name: value for name, value in zip(names, marks, strict=True) if value is not None
    }


@given(st.text(max_size=400), st.lists(st.tuples(st.sampled_from(["logic", "Clarity"]), st.integers(0, 10))))
def test_any_reply_has_a_mark_or_is_a_failure_of_the_judge(noise: str, lines: list[tuple[str, int]]) -> None:
    reply = noise + "".join(f"\n{name}: {value}\n{noise}" for name, value in lines)
    found = read_points(reply)
    value = weighted_mark(found, JudgeReward())
    assert isinstance(value, Failure) is (not found)
    assert value.cause == "judge" if isinstance(value, Failure) else 0 <= value <= 1


def test_missing_lines_count_five() -> None:
    assert weighted_mark({"logic": 10.0}, JudgeReward()) == pytest.approx(0.4 + 0.2 + 0.1)
    assert weighted_mark({"logic": 10.0, "correctness": 10.0, "clarity": 10.0}, JudgeReward()) == pytest.approx(
        1.0
    )


def test_settings_come_from_the_command_line() -> None:
    words = {
        "correct": "1",
        "wrong": "-0.5",
        "format.box": "0.1",
        "overlong.max_tokens": "512",
        "judge.server.model": "j",
    }
    config = resolve(RewardConfig, [Layer("command line", words)]).value
    assert (config.wrong, config.format.box, config.overlong.max_tokens, config.judges) == (-0.5, 0.1, 512, True)
    for key, value, said in (
        ("format.pattern", "(", "not a regular expression"),
        ("overlong.max_tokens", "64", "longer than"),
        ("judge.weight", "2", "weight"),
        ("length.unit", "words", "unit"),
    ):
        with pytest.raises(ConfigError, match=said):
            resolve(RewardConfig, [Layer("command line", {key: value})])
