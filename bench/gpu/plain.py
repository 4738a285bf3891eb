# SPDX-License-Identifier: Apache-2.0
"""Plain TRL at the settings of parts: `python -m bench.gpu.plain PARTS.json MODEL DEADLINE`."""

import tempfile
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from transformers.utils import logging
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from bench.gpu.spec import Work
from bench.gpu.timing import Timing, even_share, run_parts

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Clock(TrainerCallback):  # type: ignore[misc]
    def __init__(self, timing: Timing, sequences: int, length: int) -> None:
        """Keep the sequences of a step, and their length where the logs do not say it."""
        self.timing, self.sequences, self.length = timing, sequences, length

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if logs and "loss" in logs:
            length = logs.get("completions/mean_length", self.length)
            self.timing.step(logs.get("reward", logs["loss"]), self.sequences * length)


def model_of(folder: Path, work: Work) -> Any:
    dtype = getattr(torch, work.dtype) if work.weights == "lora" else torch.float32
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)


def common(work: Work, sequences: int) -> dict[str, Any]:
    return {
        "output_dir": tempfile.mkdtemp(),
        "per_device_train_batch_size": work.micro,
        "gradient_accumulation_steps": sequences // work.micro,
        "max_steps": work.steps,
        "learning_rate": work.learning_rate,
        "lr_scheduler_type": "constant",
        "bf16": work.dtype == "bfloat16",
        "gradient_checkpointing": work.checkpointing,
        "use_cpu": not torch.cuda.is_available(),
        "dataloader_pin_memory": torch.cuda.is_available(),
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
    }


def measure(kind: str, work: Work, folder: Path) -> dict[str, Any]:
    logging.disable_progress_bar()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    pairs = LoraConfig(r=16, lora_alpha=32, target_modules=PROJECTIONS) if work.weights == "lora" else None
    timing = Timing(work)
    trainer: Any
    if kind == "sft":
        trainer = SFTTrainer(
            model=model_of(folder, work),
            args=SFTConfig(**common(work, work.batch), max_length=None),
            train_dataset=Dataset.from_dict({"input_ids": work.sequences()}),
            processing_class=tokenizer,
            peft_config=pairs,
            callbacks=[Clock(timing, work.batch, work.length - 1)],
        )
    else:
        sequences = work.problems * work.samples
        trainer = GRPOTrainer(
            model=model_of(folder, work),
            reward_funcs=lambda completion_ids, **_: [even_share(ids) for ids in completion_ids],
            args=GRPOConfig(
                **common(work, sequences),
                num_generations=work.samples,
                max_completion_length=work.tokens,
                use_vllm=work.sampler == "vllm",
                vllm_mode="colocate",
            ),
            train_dataset=Dataset.from_dict({"prompt": [tokenizer.decode(prompt) for prompt in work.prompts()]}),
            processing_class=tokenizer,
            peft_config=pairs,
            callbacks=[Clock(timing, sequences, 0)],
        )
    trainer.train()
    return timing.figures()


if __name__ == "__main__":
    run_parts(measure)
