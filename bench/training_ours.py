# SPDX-License-Identifier: Apache-2.0
"""Seconds a step of the cpu trainer: `python -m bench.training_ours FOLDER ROWS` (JSON of rows) → one line of JSON."""

import json
import sys
import time
from itertools import repeat
from pathlib import Path

from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.loops.groups import advantages_of
from newskills.train.loops.sft import example
from newskills.train.verbs import AdamParams, Datum, SamplingParams

WARM = 1


def sft(trainer: CpuTrainer, batch: list[list[list[int]]]) -> None:
    trainer.forward_backward([example(prompt, completion) for prompt, completion in batch], "cross_entropy")
    trainer.optim_step(AdamParams(learning_rate=1e-4))


def grpo(trainer: CpuTrainer, prompts: list[list[int]], samples: int, tokens: int, step: int) -> None:
    found = trainer.sample(prompts, samples, SamplingParams(max_tokens=tokens, stop=[2], seed=step))
    data = []
    for prompt, group in zip(prompts, found, strict=True):
        rewards = [float(len(set(one.tokens))) for one in group]
        for one, advantage in zip(group, advantages_of(rewards, by_std=True), strict=True):
            whole, zeros = [*prompt, *one.tokens], [0.0] * (len(prompt) - 1)
            data.append(
                Datum(
                    tokens=whole[:-1],
                    targets=whole[1:],
                    logprobs=[*zeros, *one.logprobs],
                    advantages=[*zeros, *repeat(advantage or 1e-9, len(one.tokens))],
                )
            )
    trainer.forward_backward(data, "importance_sampling")
    trainer.optim_step(AdamParams(learning_rate=1e-5))


def main() -> None:
    folder, work = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    trainer = CpuTrainer(folder, CpuTrainerConfig(lora=LoraConfig(rank=16, alpha=32), dtype=work["dtype"]))
    times: dict[str, list[float]] = {"sft": [], "grpo": []}
    for batch in work["sft"]:
        begun = time.perf_counter()
        sft(trainer, batch)
        times["sft"].append(time.perf_counter() - begun)
    for step, prompts in enumerate(work["grpo"]):
        begun = time.perf_counter()
        grpo(trainer, prompts, work["samples"], work["tokens"], step)
        times["grpo"].append(time.perf_counter() - begun)
    print(json.dumps({name: sum(one[WARM:]) / len(one[WARM:]) for name, one in times.items()}))


if __name__ == "__main__":
    main()
