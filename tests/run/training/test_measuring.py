# SPDX-License-Identifier: Apache-2.0
"""A model in training writes programs; the sandbox runs them, and it goes on with their output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, SandboxError
from newskills.base.records import Message
from newskills.config.layers import Layer
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.policy import PolicyFormat
from newskills.run.rewarding.questions import asking_of
from newskills.run.rewarding.reward import RewardConfig
from newskills.run.rewarding.rollouts import SolverRollouts, with_code
from newskills.run.training.skill import Skill
from newskills.train.loops.evaluation import HeldOut, Measured, measure
from newskills.train.settings import EvalSettings
from newskills.train.verbs import Sampled, SamplingParams

ROWS = [{"id": str(n), "problem": f"{n} * 3", "expected_answer": str(3 * n)} for n in (5, 7, 11)]


class Characters:
    """A tokenizer of characters, so that programs need no vocabulary."""

    name = "characters"

    def encode(self, text: str) -> list[int]:
        return [*map(ord, text)]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def render(self, messages: Sequence[Message], **_: Any) -> str:
        return "".join(f"<{one.role}>{one.content}" for one in messages)


class Programmer:
    """Asked for n * 3 it writes a program (and makes up an output), then boxes whatever output it is shown."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        self.batches.append(len(prompts))
        return [[self._written("".join(map(chr, prompt)))] for prompt in prompts]

    def _written(self, prompt: str) -> Sampled:
        shown = re.search(r"```output\n(\d+)\n```\n$", prompt)
        asked = re.findall(r"(\d+) \* 3", prompt)[-1]
        text = (
            f"So \\boxed{{{shown[1]}}}." if shown else f"```python\nprint({asked} * 3)\n```\n```output\n999\n```\n"
        )
        tokens = [*map(ord, text), 0]
        return Sampled(tokens=tokens, logprobs=[0.0] * len(tokens), stop_reason="stop")


def measured(tmp_path: Path, client: Programmer, **changes: object) -> Measured:
    settings = EvalSettings(max_tokens=400, code_tags="qwen", batch_size=2)
    model = with_tokenizer(tiny_folder(tmp_path / "model", eos_token_id=VOCAB - 1, max_position_embeddings=4096))
    benchmark = Benchmark(name="mine", category="", title="mine", prompt="qwen/math-tir", defaults=dict(changes))
    overrides = with_code("qwen", settings.code_executions, settings.max_tokens)
    asking = asking_of(benchmark, tmp_path / "rows.jsonl", str(model), [Layer("test", overrides)])
    characters = Characters()
    with (
        BatchGrader("math", {}) as verdicts,
        SolverRollouts(asking, PolicyFormat(tokenizer=characters, stops=[0])) as rollouts,
    ):
        skill = Skill(model, asking)
        held_out = HeldOut(
            problems=[skill.problem(row) for row in ROWS],
            scorer=msgspec.structs.replace(skill.scorer(verdicts, RewardConfig()), roll_out=rollouts, stops=[0]),
            settings=settings,
        )
        return measure(client, held_out, seed=1)


def test_programs_of_answers_are_run_and_rows_are_sampled_together(tmp_path: Path) -> None:
    client = Programmer()
    found = measured(tmp_path, client)
    assert found.metrics == {"eval_reward": 1.0, "eval_correct": 1.0, "eval_unscored": 0.0}
    assert found.rewards == [[1.0], [1.0], [1.0]]
    assert client.batches == [2, 2, 1, 1]


def test_a_sandbox_that_is_not_there_is_told_before_training(tmp_path: Path) -> None:
    with pytest.raises(SandboxError):
        measured(tmp_path, Programmer(), **{"sandbox.host": "127.0.0.1", "sandbox.port": 1})
    with pytest.raises(ConfigError, match="expected 1 or more"):
        with_code("qwen", 0, 10)
