# SPDX-License-Identifier: Apache-2.0
"""`ns convert`: a model in another file format, here or as a job of a cluster."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.conversion.options import ConvertOptions

COMMAND = Command(
    name="convert",
    summary="Convert a model. On this machine: Llama models between a Hugging Face folder (float16, with "
    "tokenizer and chat template) and a GGUF file that the embedded server runs. In the containers "
    "of their own programs: NeMo-RL checkpoints to Hugging Face, Hugging Face from and to Megatron-LM by "
    "Megatron-Bridge, and Hugging Face to an fp8 engine of TensorRT-LLM.",
    options=ConvertOptions,
    run="newskills.pipelines.conversion.work:run",
    prepare="newskills.pipelines.conversion.jobs:prepare",
    result="newskills.pipelines.conversion.work:convert_model",
    examples=(
        "ns convert --input_model=smollm2 --output_model=models/base --convert_from=gguf --convert_to=hf",
        "ns convert --input_model=models/sft --output_model=models/sft.gguf --convert_from=hf --convert_to=gguf",
        "ns convert --cluster=slurm --input_model=/results/sft/checkpoints/step_500 --output_model=/models/mine "
        "--convert_from=dcp --convert_to=hf --num_gpus=8",
        "ns convert --cluster=slurm --input_model=/models/mine --output_model=/models/mine-fp8 --convert_from=hf "
        "--convert_to=trtllm --dtype=fp8 --calib_dataset=cnn_dailymail --num_gpus=8",
    ),
)
