# SPDX-License-Identifier: Apache-2.0
"""The reward that an environment gave is the verdict."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.errors import DataError
from newskills.base.records import Row, Score


class EnvironmentRewardConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=environment_reward`."""

    threshold: Annotated[float, Meta(description="reward from which a task counts as solved")] = 1.0


class EnvironmentRewardGrader:
    """The record carries `reward`, None where the task did not come to its end.

    Fields written: `symbolic_correct` (the reward, cut to 0–1: partial credit). The value is the reward as it is.
    """

    name = "environment_reward"
    version = "1"
    Config = EnvironmentRewardConfig

    def __init__(self, config: EnvironmentRewardConfig = EnvironmentRewardConfig()) -> None:  # noqa: B008 - frozen
        self._threshold = config.threshold

    def grade(self, record: Row) -> Score:
        """Return the score that the record's reward gives. Raises DataError for a record without a reward."""
        label = f"{self.name}@{self.version}"
        if "reward" not in record:
            raise DataError("The record has no 'reward', which the solver of an environment writes.")
        reward = record["reward"]
        if reward is None:
            return Score(
                outcome="no_answer",
                fields={"symbolic_correct": 0.0},
                grader=label,
                why=f"the task was not finished: {record.get('exit_status')}",
                cause="truncation",
            )
        solved = reward >= self._threshold
        return Score(
            outcome="correct" if solved else "wrong",
            fields={"symbolic_correct": min(1.0, max(0.0, float(reward)))},
            grader=label,
            why=f"reward {reward:g}",
            cause=None if solved else "model",
            value=float(reward),
        )
