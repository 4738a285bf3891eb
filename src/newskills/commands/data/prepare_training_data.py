# SPDX-License-Identifier: Apache-2.0
"""`ns prepare_training_data`: generations, or a published set, become data to train on."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.data.prepare_training_data_options import PrepareTrainingDataOptions
from newskills.train.data.settings import TrainingDataConfig

COMMAND = Command(
    name="prepare_training_data",
    summary="Build training data: filter generations or a published set, remove duplicates and benchmark "
    "problems (decontamination), sample, shuffle, and write SFT, conversation or RL rows with a data "
    "card that says what each step removed. Keys marked code_sft and math_rl belong to these "
    "recipes; the defaults shown are those of math_sft.",
    options=PrepareTrainingDataOptions,
    config=TrainingDataConfig,
    run="newskills.pipelines.data.prepare_training_data:run",
    result="newskills.pipelines.data.prepare_training_data:prepare_training_data",
    examples=(
        "ns prepare_training_data --config-name=math_sft --decontaminate=math-500,aime24 "
        "++input_files='results/output-rs*.jsonl' ++output_path=sft.jsonl ++tokenizer=Qwen/Qwen2.5-7B-Instruct "
        "++prompt_config=generic/math",
        "ns prepare_training_data --config-name=math_rl --dataset=dapo-math-17k --decontaminate=aime25 "
        "++output_path=rl.jsonl ++filters.remove_len_outlier_problems=false",
    ),
)
