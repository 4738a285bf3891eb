# SPDX-License-Identifier: Apache-2.0
"""What a sample is worth to a trainer: the verdict and whatever else counts, as data and as arithmetic.

The reward is the sum of named components. An instrument that failed (grader, sandbox, judge) leaves a sample without
reward: it is never 0, which would teach that the answer was bad.
"""

from __future__ import annotations

import re
from math import fsum, isfinite
from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.base.reading.reply_text import thinks_once
from newskills.base.records import Inference, Row, Score
from newskills.models.config import ServerConfig
from newskills.train.loops.samples import Judged

ANSWER_FIELDS = ("generation", "finish_reason")
MARK_NAMES = ("logic", "correctness", "clarity")
"""What a judge gives points for, 0 to 10 each."""
MAX_MARK = 10.0
BOX_SOURCES = ("box", "boxes")


class FormatReward(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Worth of the form, whatever the verdict (`++reward.format.*`)."""

    box: Annotated[float, Meta(description="reward if the answer has a \\boxed{…}")] = 0.0
    think: Annotated[
        float,
        Meta(description="reward for one thinking part that ends, by any model's marks, followed by an answer"),
    ] = 0.0
    pattern: Annotated[str, Meta(description="regular expression to search for in the text")] = ""
    pattern_bonus: Annotated[float, Meta(description="reward if the expression is found")] = 0.0

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"pattern is not a regular expression ({error})") from error


class LengthPenalty(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """−penalty · max(0, length / 1000 − free) (`++reward.length.*`)."""

    penalty: Annotated[
        float,
        Meta(ge=0, description="penalty per thousand characters or tokens above length.free thousand; 0 = none"),
    ] = 0.0
    free: Annotated[float, Meta(ge=0, description="thousands without penalty")] = 2.0
    unit: Annotated[Literal["characters", "tokens"], Meta(description="unit of length: what is counted")] = (
        "characters"
    )


class OverlongPenalty(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Soft overlong punishment of DAPO (https://arxiv.org/abs/2503.14476, equation 13) (`++reward.overlong.*`).

    0 up to max_tokens − buffer, then falling in a straight line to −penalty at max_tokens and beyond.
    """

    max_tokens: Annotated[int, Meta(ge=0, description="longest sample in tokens; 0 = no overlong penalty")] = 0
    buffer: Annotated[
        int, Meta(ge=1, description="number of tokens before that limit over which the penalty grows")
    ] = 128
    penalty: Annotated[float, Meta(ge=0, description="largest penalty")] = 1.0

    def __post_init__(self) -> None:
        if 0 < self.max_tokens < self.buffer:
            raise ValueError(f"overlong.buffer {self.buffer} is longer than overlong.max_tokens {self.max_tokens}")


class JudgeReward(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model marks logic, correctness and clarity; asked where `server.model` names one (`++reward.judge.*`).

    reward = (1 − weight) · all other components + weight · (logic · a + correctness · b + clarity · c) / 10
    """

    weight: Annotated[float, Meta(ge=0, le=1, description="weight of the judge's score in the reward")] = 0.5
    logic: Annotated[float, Meta(ge=0, description="weight of the judge's score for logic")] = 0.4
    correctness: Annotated[float, Meta(ge=0, description="weight of the judge's score for correctness")] = 0.4
    clarity: Annotated[float, Meta(ge=0, description="weight of the judge's score for clarity")] = 0.2
    missing: Annotated[
        float, Meta(ge=0, le=10, description="score of a line that is missing in the judge's reply")
    ] = 5.0
    prompt: Annotated[str, Meta(description="prompt of the judge")] = "judge/reward"
    max_concurrent: Annotated[int, Meta(ge=1, description="questions in flight")] = 64
    tries: Annotated[int, Meta(ge=1, description="tries per question if the endpoint fails")] = 3
    server: ServerConfig = ServerConfig()
    inference: Inference = Inference(tokens_to_generate=1024, timeout=120.0)


class RewardConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a verdict is worth, and what else counts. An unscored sample is worth nothing at all: it takes no part."""

    correct: Annotated[float, Meta(description="reward of a correct answer")] = 1.0
    wrong: Annotated[float, Meta(description="reward of a wrong answer")] = 0.0
    no_answer: Annotated[float, Meta(description="reward of a sample without an answer")] = 0.0
    value: Annotated[
        bool | None,
        Meta(
            description="take the grader's own number, where it gives one, instead of correct and wrong; default: only "
            "for rewards of environments"
        ),
    ] = None
    format: FormatReward = FormatReward()
    length: LengthPenalty = LengthPenalty()
    overlong: OverlongPenalty = OverlongPenalty()
    judge: JudgeReward = JudgeReward()

    @property
    def judges(self) -> bool:
        """Whether a model is asked."""
        return self.judge.server.model is not None

    @property
    def counts_tokens(self) -> bool:
        return self.overlong.max_tokens > 0 or (self.length.penalty > 0 and self.length.unit == "tokens")


class RewardItem(Struct, frozen=True, kw_only=True):
    """One answer to be rewarded. `record` is what an evaluation would hand to the grader; `tokens` its length;
    `written` the whole text of the model, where the record keeps only a part of it.
    """

    record: Row
    tokens: int | None = None
    written: str | None = None

    @property
    def text(self) -> str:
        if self.written is None:
            return str(self.record["generation"])
        return self.written


class SampleMeasurements(Struct, frozen=True, kw_only=True):
    """What instruments said of a sample beside the grader: the judge's mark, 0 to 1; whether the pattern is there."""

    mark: float | None = None
    pattern: bool = False


def answered_record(row: Row, text: str, finish_reason: str | None) -> Row:
    """Return the record that a grader gets of an evaluation, with the fields of a generation."""
    return {**row, **dict(zip(ANSWER_FIELDS, (text, finish_reason), strict=True))}


def reward_of_verdict(
    score: Score,
    sample: RewardItem,
    config: RewardConfig,
    measured: SampleMeasurements = SampleMeasurements(),  # noqa: B008
) -> Judged:
    """Turn a verdict into a reward. Raises nothing: what could not be measured must have become an unscored
    `score` before."""
    answer = score.fields.get("predicted_answer")
    shown = None if answer is None else str(answer)
    if score.outcome == "unscored":
        if score.why:
            why = f"{score.cause or 'grader'}: {score.why}"
        else:
            why = score.cause or "grader"
        return Judged(None, False, shown, outcome="unscored", why=why)
    if config.value and score.value is not None:
        worth = score.value
    else:
        worth = getattr(config, score.outcome)
    parts = reward_components(worth, sample, config, measured)
    total = fsum(parts.values())
    if not isfinite(total):
        why = f"grader: the reward is {total}, which is not a finite number"
        return Judged(None, False, shown, outcome="unscored", why=why)
    return Judged(total, score.outcome == "correct", shown, outcome=score.outcome, components=parts)


def reward_components(
    verdict: float,
    sample: RewardItem,
    config: RewardConfig,
    measured: SampleMeasurements,
) -> dict[str, float]:
    """Return name → what each setting in use adds, beside what the `verdict` is worth; the names are the same for
    every sample."""
    worth: dict[str, float] = {"verdict": verdict}
    form, length, overlong = config.format, config.length, config.overlong
    if form.box:
        worth["box"] = form.box if has_box(sample.text) else 0.0
    if form.think:
        worth["think"] = form.think if thinks_once(sample.text) else 0.0
    if form.pattern:
        worth["pattern"] = form.pattern_bonus if measured.pattern else 0.0
    if length.penalty:
        size = len(sample.text) if length.unit == "characters" else _token_count(sample)
        worth["length"] = -length.penalty * max(0.0, size / 1000 - length.free)
    if overlong.max_tokens:
        over = _token_count(sample) - (overlong.max_tokens - overlong.buffer)
        worth["overlong"] = -overlong.penalty * min(1.0, max(0.0, over / overlong.buffer))
    if config.judges:
        rest = 1 - config.judge.weight
        worth = {name: rest * value for name, value in worth.items()}
        assert measured.mark is not None
        worth["judge"] = config.judge.weight * measured.mark
    return worth


def has_box(text: str) -> bool:
    """Return whether a whole \\boxed{…} stands in the answer, where the math grader would look for it."""
    from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy

    return extract_by_policy(text, ExtractionPolicy()).how in BOX_SOURCES


def _token_count(sample: RewardItem) -> int:
    assert sample.tokens is not None
    return sample.tokens
