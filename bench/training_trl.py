# SPDX-License-Identifier: Apache-2.0
"""Seconds a step of plain TRL at the same settings: `training_trl.py FOLDER ROWS` → one line of JSON.

Runs in an environment of its own, so it imports nothing of ours.
"""

import json
import sys
import time
from pathlib import Path

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

WARM = 1
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
COMMON = {
    "use_cpu": True,
    "bf16": True,
    "report_to": [],
    "gradient_checkpointing": False,
    "dataloader_pin_memory": False,
    "save_strategy": "no",
    "num_train_epochs": 1,
    "disable_tqdm": True,
    "logging_steps": 1000,
}


class Clock(TrainerCallback):
    def __init__(self):
        self.times = []

    def on_step_begin(self, *_, **__):
        self.begun = time.perf_counter()

    def on_step_end(self, *_, **__):
        self.times.append(time.perf_counter() - self.begun)

    def mean(self):
        return sum(self.times[WARM:]) / len(self.times[WARM:])


def lora():
    return LoraConfig(r=16, lora_alpha=32, target_modules=PROJECTIONS, task_type="CAUSAL_LM")


def variety(completion_ids, **_):
    return [float(len(set(ids))) for ids in completion_ids]


def main():
    folder, work = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    found = {}
    rows = [
        {"input_ids": prompt + completion, "completion_mask": [0] * len(prompt) + [1] * len(completion)}
        for batch in work["sft"]
        for prompt, completion in batch
    ]
    clock = Clock()
    size = len(work["sft"][0])
    SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        args=SFTConfig("out", per_device_train_batch_size=size, max_length=512, learning_rate=1e-4, **COMMON),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=lora(),
        callbacks=[clock],
    ).train()
    found["sft"] = clock.mean()
    prompts = [{"prompt": tokenizer.decode(prompt)} for batch in work["grpo"] for prompt in batch]
    clock, samples = Clock(), work["samples"]
    GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        reward_funcs=variety,
        args=GRPOConfig(
            "out",
            per_device_train_batch_size=len(work["grpo"][0]) * samples,
            num_generations=samples,
            max_completion_length=work["tokens"],
            learning_rate=1e-5,
            **COMMON,
        ),
        train_dataset=Dataset.from_list(prompts),
        processing_class=tokenizer,
        peft_config=lora(),
        callbacks=[clock],
    ).train()
    found["grpo"] = clock.mean()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
