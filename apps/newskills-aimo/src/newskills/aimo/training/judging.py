# SPDX-License-Identifier: Apache-2.0
"""Rewards in which a model's opinion of a solution has a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from newskills.aimo.local_model import LocalModel
from newskills.aimo.training.rewards import MathRewardFunction, Verifier
from newskills.base.errors import ConfigError
from newskills.base.records import Failure
from newskills.run.rewarding.judge import UNKNOWN_ANSWER, read_points, weighted_mark
from newskills.run.rewarding.reward import JudgeReward

JUDGE_TOKENS = 512
"""Tokens of a judge's reply: some sentences and three lines."""
_BEGINNINGS = ("<|im_start|>user", "<|user|>", "[INST]", "Problem:", "Question:")
_ENDS = ("<|im_end|>", "<|im_start|>assistant", "<|assistant|>", "[/INST]")


class LLMJudgeRewardFunction:
    """Rewards of completions: (1 − w) · reward of the answer + w · (1.5 · the judge's score from 0 to 1 − 0.5).

    The judge, a model of transformers in this process, rates logic, correctness and clarity; without one of its own
    the trained model is asked (`set_policy_model`). None for what the grader or the judge gives no verdict on: trainers
    of TRL leave it out of its group. `ns aimo train --use-llm-judge` asks a served judge instead.
    """

    __name__ = "llm_judge_reward"

    def __init__(
        self,
        answer_verifier: Verifier | None = None,
        judge_model: Any = None,
        judge_tokenizer: Any = None,
        correctness_weight: float = 0.4,
        consistency_weight: float = 0.4,
        clarity_weight: float = 0.2,
        llm_judge_weight: float = 0.5,
        correct_reward: float = 1.0,
        incorrect_reward: float = -0.5,
        format_reward: float = 0.1,
    ) -> None:
        self.answer_verifier, self.llm_judge_weight = answer_verifier, llm_judge_weight
        self.judge_model, self.judge_tokenizer = judge_model, judge_tokenizer
        self._answers = MathRewardFunction(answer_verifier, correct_reward, incorrect_reward, format_reward)
        self._weights = JudgeReward(
            logic=consistency_weight, correctness=correctness_weight, clarity=clarity_weight
        )
        self._policy_model: Any = None

    def set_policy_model(self, model: Any, tokenizer: Any) -> None:
        """Ask the model that is trained, where there is no judge of its own."""
        self._policy_model = model
        self.judge_tokenizer = self.judge_tokenizer or tokenizer

    def __call__(
        self, prompts: Sequence[str], completions: Sequence[str], answer: Sequence[str], **_: Any
    ) -> list[float | None]:
        """Return the reward of each completion; None where its answer or the judge's score is not known. Raises
        ConfigError without a judge."""
        weight = self.llm_judge_weight
        rewards: list[float | None] = []
        answers = self._answers(prompts, completions, answer)
        for prompt, completion, truth, reward in zip(prompts, completions, answer, answers, strict=True):
            score: float | Failure = 0.0
            if weight:
                score = self._score(prompt, completion, truth)
            if reward is None or isinstance(score, Failure):
                rewards.append(None)
            else:
                rewards.append((1 - weight) * reward + weight * (1.5 * score - 0.5))
        return rewards

    def _score(self, prompt: str, completion: str, truth: str) -> float | Failure:
        model = self.judge_model
        if model is None:
            model = self._policy_model
        if model is None or self.judge_tokenizer is None:
            raise ConfigError(
                "There is no judge.", hint="Give judge_model and judge_tokenizer, or call set_policy_model()."
            )
        judge = LocalModel(model, self.judge_tokenizer)
        row = {"problem": problem_in(prompt), "expected_answer": truth or UNKNOWN_ANSWER, "generation": completion}
        (reply,) = judge.generate([judge.prompt(self._weights.prompt, row)], max_new_tokens=JUDGE_TOKENS)
        return weighted_mark(read_points(reply.text), self._weights)


def problem_in(prompt: str) -> str:
    """Return the last user turn of a rendered prompt; a prompt without marks as it is.

    >>> problem_in("<|im_start|>user\\nAdd 1 and 2.<|im_end|>\\n<|im_start|>assistant\\n")
    'Add 1 and 2.'
    """
    start = next((mark for mark in _BEGINNINGS if mark in prompt), "")
    text = prompt
    if start:
        text = prompt.rpartition(start)[2]
    for end in _ENDS:
        text = text.partition(end)[0]
    return text.strip()
