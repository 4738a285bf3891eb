# SPDX-License-Identifier: Apache-2.0
"""Plain TRL at the settings of a spec: `python -m bench.gpu.plain SPEC.json MODEL` → one line of JSON."""

import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import msgspec
import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from transformers.utils import logging
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from bench.gpu.spec import Work
from bench.gpu.timing import Timing, even_share

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Clock(TrainerCallback):  # type: ignore[misc]
    def __init__(self, timing: Timing) -> None:
        self.timing = timing

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if logs and "loss" in logs:
            self.timing.step(logs.get("reward", logs["loss"]), logs.get("completions/mean_length", 0.0))


def model_of(folder: str, work: Work) -> Any:
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


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable_progress_bar()
    work, folder = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Work), sys.argv[2]
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    pairs = LoraConfig(r=16, lora_alpha=32, target_modules=PROJECTIONS) if work.weights == "lora" else None
    sft, grpo = Timing(work), Timing(work)
    SFTTrainer(
        model=model_of(folder, work),
        args=SFTConfig(**common(work, work.batch), max_length=None),
        train_dataset=Dataset.from_dict({"input_ids": work.sequences()}),
        processing_class=tokenizer,
        peft_config=pairs,
        callbacks=[Clock(sft)],
    ).train()
    sft.end()
    prompts = [tokenizer.decode(prompt) for prompt in work.prompts()]
    trainer = GRPOTrainer(
        model=model_of(folder, work),
        reward_funcs=lambda completion_ids, **_: [even_share(ids) for ids in completion_ids],
        args=GRPOConfig(
            **common(work, work.problems * work.samples),
            num_generations=work.samples,
            max_completion_length=work.tokens,
        ),
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        processing_class=tokenizer,
        peft_config=pairs,
        callbacks=[Clock(grpo)],
    )
    trainer.train()
    grpo.end()
    print(json.dumps({"sft": sft.found(), "grpo": grpo.found()}))


if __name__ == "__main__":
    main()
