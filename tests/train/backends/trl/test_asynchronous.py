# SPDX-License-Identifier: Apache-2.0
"""TRL's AsyncGRPOTrainer with our problems, on a CPU: its own loss, packing and sending of pairs, a double of vLLM's
server, and the plain mathematics of FlashAttention."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from peft import PeftModel
from tests.train.backends.trl.test_trl_trainer import (
    END,
    GRPO,
    PROBLEMS,
    SETTINGS,
    alike,
    close,
    decode,
    metrics,
    reinforce,
    scorer,
)
from tests.train.tiny import tiny_folder, with_tokenizer
from transformers import AutoModelForCausalLM

from newskills.base.errors import ConfigError, DataError, TrainingError
from newskills.base.store import read_rows
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.evaluation import HeldOut
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import RewardedProblems, grpo
from newskills.train.loops.samples import Judged, Rollout, SampledTurn, Scorer
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import EvalSettings, TrainerSettings
from newskills.train.trainers import make_trainer
from newskills.train.verbs import Sampled, SamplingParams

pytest.importorskip("trl")
from tests.train.backends.trl.vllm_double import FlashAttention, VllmDouble, served

from newskills.train.backends.trl.vllm_server import VllmServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # TRL warns of what is experimental
    from trl.experimental.async_grpo import async_grpo_trainer, packing

    from newskills.train.backends.trl import asynchronous

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow, pytest.mark.timeout(240)]
ASYNC = msgspec.structs.replace(GRPO, steps=5, max_tokens=4, save_every=2, loss="ppo", temperature=0.8)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END))


@pytest.fixture
def double(model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VllmDouble]:
    monkeypatch.setattr(packing, "_flash_attn", lambda: FlashAttention)
    monkeypatch.setattr(async_grpo_trainer, "get_peak_flops_per_device", lambda *_: None)  # asks for a GPU
    monkeypatch.setattr(asynchronous, "check_gpu", lambda settings: None)
    with served(VllmDouble(model)) as server:
        yield server


def ahead(double: VllmDouble, staleness: int = 2, **trl: Any) -> TrainerSettings:
    changed = TrlSettings(staleness=staleness, vllm_url=double.url, **trl)
    return msgspec.structs.replace(SETTINGS, trl=changed)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[list[Sampled]]]:
    """What the server sampled, by the seed of the step."""
    kept: dict[int, list[list[Sampled]]] = {}
    sample = VllmServer.sample

    def recorded(
        self: VllmServer, prompts: Sequence[Sequence[int]], count: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        made = kept[params.seed] = sample(self, prompts, count, params)
        return made

    monkeypatch.setattr(VllmServer, "sample", recorded)
    return kept


@pytest.mark.parametrize("micro", [0, 3])
def test_steps_are_those_of_the_cpu_trainer_on_the_same_samples(
    model: Path, tmp_path: Path, double: VllmDouble, drawn: dict[int, list[list[Sampled]]], micro: int
) -> None:
    assert reinforce(model, tmp_path / "trl", ASYNC, ahead(double, micro_batch_size=micro))
    rows = metrics(tmp_path / "trl")
    ages = [row["staleness"] for row in rows]
    assert ages[0] == 0
    assert max(ages) in (1, 2)
    assert all(abs(row["ratio"] - 1) < 1e-3 for row in rows if row["staleness"] == 0)
    assert any(row["sampler_kl"] > 1e-6 for row in rows if row["staleness"])
    assert {"entropy", "clip_ratio/region_mean"} <= rows[0].keys()

    class Recorded(CpuTrainer):
        def sample(
            self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
        ) -> list[list[Sampled]]:
            return drawn[params.seed]

    lora = LoraConfig(rank=4, alpha=8, seed=3)
    own = Recorded(model, CpuTrainerConfig(lora=lora, dtype="float32", threads=1))
    folder = TrainingFolder(tmp_path / "cpu", {"steps": ASYNC.steps})
    assert grpo(own, PROBLEMS, ASYNC, folder, scorer())
    folder.close()
    close(tmp_path / "trl", tmp_path / "cpu", ["loss", "grad_norm", "learning_rate", "reward"])
    alike(tmp_path / "trl", tmp_path / "cpu", 5)
    texts = [
        [response["text"] for row in read_rows(tmp_path / name / "samples.jsonl") for response in row["responses"]]
        for name in ("trl", "cpu")
    ]
    assert texts[0] == texts[1]


def test_pairs_reach_the_server_before_they_are_sampled_from(
    model: Path, tmp_path: Path, double: VllmDouble
) -> None:
    assert reinforce(model, tmp_path / "run", ASYNC, ahead(double, staleness=1))
    loaded = [event.split()[1] for event in double.events if event.startswith("load")]
    assert [name.rpartition("-v")[2] for name in loaded] == ["1", "2", "3", "4", "5", "6"]
    sampled = [event.split()[1] for event in double.events if event.startswith("sample")]
    assert len(sampled) == ASYNC.steps
    assert not double.adapters
    assert not (tmp_path / "run" / ".vllm_lora").exists()
    # The pairs of step n are sampled from for step n + 1 (in step) or n + 2 (one update old).
    for step, name in enumerate(sampled):
        assert step <= int(name.rpartition("-v")[2]) <= step + 1


def test_a_run_goes_on_and_measures_with_the_newest_weights(
    model: Path, tmp_path: Path, double: VllmDouble
) -> None:
    held = EvalSettings(every=2, max_problems=3, max_tokens=4, final="last")
    held_out = HeldOut(problems=PROBLEMS[:3], scorer=scorer(), settings=held)
    stops = iter([False, False, True])
    where = tmp_path / "run"
    assert not reinforce(model, where, ASYNC, ahead(double), held_out=held_out, stop=lambda: next(stops, False))
    assert [row["step"] for row in metrics(where)] == [0, 1, 2, 3]
    assert reinforce(model, where, ASYNC, ahead(double), held_out=held_out)
    rows = metrics(where)
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["step"] for row in rows if "eval_reward" in row] == [0, 2, 4, 5]
    assert rows[4]["staleness"] == 0  # what was sampled ahead of the stop is not learnt from
    assert [row["step"] for row in read_rows(where / "samples.jsonl")] == [
        step for step in range(1, 6) for _ in range(ASYNC.batch_size)
    ]
    # A greedy answer after the last step is that of the pairs in the last checkpoint.
    merged = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), where / "checkpoint-000005")
    last = [
        scorer().reward([(problem.row, decode(greedy(merged, problem.prompt, 4)), "length")])[0].reward
        for problem in PROBLEMS[:3]
    ]
    assert rows[-1]["eval_reward"] == pytest.approx(sum(last) / 3)


def greedy(model: Any, prompt: Sequence[int], count: int) -> list[int]:
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
        if tokens[-1] == END:
            return tokens[len(prompt) : -1]
    return tokens[len(prompt) :]


def two_sequences(client: Any, problems: Sequence[Any], count: int, params: SamplingParams) -> list[list[Rollout]]:
    """Each attempt asks twice; the second prompt does not go on from the first."""
    groups = []
    for problem in problems:
        first = client.sample([problem.prompt], count, params)[0]
        again = [[7, 8, *sampled.tokens[:2]] for sampled in first]
        second = [
            client.sample([prompt], 1, msgspec.structs.replace(params, seed=params.seed + 1))[0][0]
            for prompt in again
        ]
        groups.append(
            [
                Rollout(
                    turns=(SampledTurn(problem.prompt, one), SampledTurn(prompt, other)),
                    row=problem.row,
                    text=decode(other.tokens),
                    finish_reason=other.stop_reason,
                )
                for one, prompt, other in zip(first, again, second, strict=True)
            ]
        )
    return groups


def test_attempts_of_several_turns_are_several_sequences(model: Path, tmp_path: Path, double: VllmDouble) -> None:
    several = Scorer(scorer().reward, decode, [END], roll_out=two_sequences)
    config = msgspec.structs.replace(ASYNC, steps=2)
    folder = TrainingFolder(tmp_path / "run", {"steps": 2})
    trainer = make_trainer("trl", model, ahead(double, staleness=1))
    assert trainer.run(config, RewardedProblems(PROBLEMS, several), folder, Hooks())
    folder.close()
    assert all(row["grad_norm"] > 0 for row in metrics(tmp_path / "run"))


def test_what_fails_is_said_by_the_training(model: Path, tmp_path: Path, double: VllmDouble) -> None:
    double.broken = True
    with pytest.raises(TrainingError, match=r"did not sample: status 404"):
        reinforce(model, tmp_path / "broken", ASYNC, ahead(double))
    double.broken = False

    def unfair(samples: Sequence[Any]) -> list[Judged]:
        raise DataError("no grader")

    with pytest.raises(DataError, match="no grader"):
        reinforce(model, tmp_path / "unfair", ASYNC, ahead(double), reward=unfair)
    double.max_loras = 3
    with pytest.raises(ConfigError, match=r"--max-loras 4"):
        reinforce(model, tmp_path / "few", ASYNC, ahead(double))
    double.logprobs_mode = "raw_logprobs"
    with pytest.raises(ConfigError, match=r"temperature 1, but \+\+temperature is 0\.8"):
        reinforce(model, tmp_path / "raw", ASYNC, ahead(double))
    away = msgspec.structs.replace(SETTINGS, trl=TrlSettings(staleness=1, vllm_url="http://127.0.0.1:9"))
    with pytest.raises(ConfigError, match=r"needs a vLLM server, but http://127.0.0.1:9/v1/models cannot be read"):
        reinforce(model, tmp_path / "away", ASYNC, away)


@pytest.mark.parametrize(
    ("changed", "trl", "name"),
    [
        ({"kl": 0.1}, {}, r"\+\+kl"),
        ({"resample": 1}, {}, r"\+\+resample"),
        ({}, {"loss": "sapo"}, r"trl\.loss=sapo"),
        ({}, {"algorithm": "rloo"}, r"algorithm=rloo"),
        ({}, {"sampler": "paged"}, r"sampler=paged"),
        ({}, {}, r"needs a GPU for the trainer and another for vLLM"),
    ],
)
def test_what_it_cannot_have_is_refused(
    model: Path, tmp_path: Path, changed: dict[str, Any], trl: dict[str, Any], name: str
) -> None:
    settings = msgspec.structs.replace(SETTINGS, trl=TrlSettings(staleness=1, **trl))
    with pytest.raises(ConfigError, match=name):
        reinforce(model, tmp_path / "run", msgspec.structs.replace(GRPO, **changed), settings)
