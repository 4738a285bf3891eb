# SPDX-License-Identifier: Apache-2.0
"""The memory that is told before a training, beside the peak of what PyTorch allocates in the whole training."""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.tiny import with_tokenizer
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from newskills.train.backends.trl import fitting
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.dpo import DpoConfig, Pair
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.kto import KtoConfig, LabelledReply
from newskills.train.loops.method import Method
from newskills.train.loops.reward_model import HeldOutPairs, PreferenceData, RewardModelConfig
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.sft import SftConfig, example
from newskills.train.memory import memory_by_use
from newskills.train.settings import TrainerSettings
from newskills.train.trainers import make_trainer
from newskills.train.verbs import Datum

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
WORDS = {"eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0}
SHAPES: dict[str, Any] = {
    "llama": LlamaConfig(
        vocab_size=4000,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=2,
        tie_word_embeddings=False,
        **WORDS,
    ),
    "qwen2": Qwen2Config(
        vocab_size=16000,
        hidden_size=192,
        intermediate_size=1024,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        **WORDS,
    ),
    "qwen3": Qwen3Config(
        vocab_size=2000,
        hidden_size=320,
        intermediate_size=960,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=64,
        tie_word_embeddings=True,
        **WORDS,
    ),
}
LENGTH, BATCH = 192, 4


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for name, config in SHAPES.items():
        made[name] = tmp_path_factory.mktemp("models") / name
        # In bfloat16, so that float32 is a copy and no file in memory.
        AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(made[name])
        with_tokenizer(made[name])
    return made


def sequences(count: int, vocabulary: int, length: int = LENGTH) -> list[Datum]:
    draw = random.Random(0)
    rows = [draw.choices(range(10, vocabulary), k=length) for _ in range(count)]
    return [example(row[: length // 4], row[length // 4 :]) for row in rows]


def ratio(
    base: Path, settings: TrainerSettings, method: Method[Any], data: Any, folder: Path, patch: pytest.MonkeyPatch
) -> float:
    """Return the estimate of a training / the most that PyTorch had allocated at any time of it."""
    told: list[float] = []
    estimate: Callable[..., Any] = fitting.estimate_step

    def noted(*args: Any, **more: Any) -> Any:
        sizes = estimate(*args, **more)
        told.append(sum(memory_by_use(*sizes).values()))
        return sizes

    patch.setattr(fitting, "estimate_step", noted)
    patch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")  # the profiler sees what its own thread allocates
    peak = allocated("trl", base, settings, method, data, folder)
    assert len(told) == 1
    return told[0] / peak


def allocated(
    backend: str, base: Path, settings: TrainerSettings, method: Method[Any], data: Any, folder: Path
) -> float:
    """Return the most bytes that PyTorch had allocated at any time of a training."""
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        assert make_trainer(backend, base, settings).run(method, data, TrainingFolder(folder / "run", {}))
    trace = folder / "trace.json"
    profiler.export_chrome_trace(str(trace))
    events = json.loads(trace.read_bytes())["traceEvents"]
    changes = [event["args"] for event in events if event.get("name") == "[memory]"]
    before = changes[0]["Total Allocated"] - changes[0]["Bytes"]  # by trainings before this one
    return float(max(change["Total Allocated"] for change in changes) - before)


CASES = {
    "pairs": ("lora", "float32", TrlSettings()),
    "all weights": ("full", "float32", TrlSettings()),
    "half": ("full", "bfloat16", TrlSettings(micro_batch_size=2)),
    "half, pairs": ("lora", "bfloat16", TrlSettings()),
    "computed again": ("full", "float32", TrlSettings(gradient_checkpointing=True)),
}


@pytest.mark.parametrize(
    ("shape", "case"),
    [
        *(("llama", case) for case in CASES),
        *((shape, case) for shape in ("qwen2", "qwen3") for case in ("all weights", "half, pairs")),
    ],
)
def test_fine_tuning(
    shape: str, case: str, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, dtype, trl = CASES[case]
    settings = TrainerSettings(weights=weights, dtype=dtype, trl=trl)
    examples = sequences(8, SHAPES[shape].vocab_size)
    method = SftConfig(steps=2, batch_size=BATCH, save_every=0)
    value = ratio(folders[shape], settings, method, examples, tmp_path, monkeypatch)
    assert value == pytest.approx(1.0, abs=0.15)


def methods(vocabulary: int) -> dict[str, tuple[Method[Any], Any]]:
    replies = sequences(8, vocabulary)
    others = [
        example(datum.tokens[: LENGTH // 4], [*datum.tokens[LENGTH // 4 + 1 :], 11, 12]) for datum in replies
    ]
    pairs = [Pair(chosen=chosen, rejected=rejected) for chosen, rejected in zip(replies, others, strict=True)]

    def reward(samples: Sequence[Any]) -> list[Judged]:
        return [Judged(float(index % 2), correct=False) for index, _ in enumerate(samples)]

    problems = [Problem(list(datum.tokens[:96]), {}) for datum in replies]
    scorer = Scorer(reward, lambda tokens: " ".join(map(str, tokens)), [2])
    steps: dict[str, Any] = {"steps": 2, "save_every": 0}
    return {
        "dpo": (DpoConfig(batch_size=2, **steps), pairs),
        "kto": (
            KtoConfig(batch_size=4, **steps),
            [LabelledReply(reply=datum, good=at % 2 == 0) for at, datum in enumerate(replies)],
        ),
        "grpo": (
            GrpoConfig(batch_size=2, group_size=4, max_tokens=64, **steps),
            RewardedProblems(problems, scorer),
        ),
        "reward_model": (
            RewardModelConfig(batch_size=2, **steps),
            PreferenceData(pairs=pairs, held_out=HeldOutPairs(pairs=(), problems=())),
        ),
    }


@pytest.mark.parametrize("name", ["dpo", "kto", "grpo", "reward_model"])
def test_othermethods(
    name: str, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, data = methods(SHAPES["llama"].vocab_size)[name]
    value = ratio(folders["llama"], TrainerSettings(dtype="float32"), method, data, tmp_path, monkeypatch)
    assert value == pytest.approx(1.0, abs=0.15)
