# SPDX-License-Identifier: Apache-2.0
"""`ns convert`: a model in another file format, here or as a job of a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from newskills.base.errors import ConfigError
from newskills.commands._command import Command
from newskills.commands._dry_run import show_dry_run
from newskills.commands._options import AtLeastOne, PlacementOptions, doc
from newskills.config.command_line import Parsed
from newskills.train.pipelines.conversion import OWN, Dtype, From, ModelType, To

if TYPE_CHECKING:
    from newskills.launch.experiments import Experiment

ENGINE = {"group": "TensorRT-LLM"}


class Options(PlacementOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        list[str], doc("further arguments of the converter, behind --", {"positional": True})
    ] = []  # noqa: RUF012 - copied
    input_model: Annotated[str, doc("Hugging Face folder, checkpoint (step_N of NeMo-RL), .gguf file, or smollm2")]
    output_model: Annotated[str, doc("folder (file: gguf) to write")]
    convert_from: Annotated[From, doc("form of the input; dcp, megatron: checkpoints of NeMo-RL")]
    convert_to: Annotated[To, doc("form of the output; gguf: matrices in F16")]
    model_type: Annotated[ModelType | None, doc("kind of model, where the converter has to know it")] = None
    num_gpus: Annotated[AtLeastOne, doc("GPUs per node; the model is split over them for trtllm and megatron")] = 1
    num_nodes: Annotated[AtLeastOne, doc("parts of the pipeline (trtllm, megatron)")] = 1
    hf_model_name: Annotated[str | None, doc("the model on the hub, for its tokenizer and configuration")] = None
    dtype: Annotated[Dtype, doc("numbers of the output; fp8 for trtllm only")] = "bf16"
    calib_dataset: Annotated[str | None, doc("data set for the scales of fp8", ENGINE)] = None
    calib_size: Annotated[AtLeastOne, doc("its rows that are used", ENGINE)] = 4096
    trt_prepare_args: Annotated[str, doc("further arguments of the step that calibrates", ENGINE)] = ""
    trt_reuse_tmp_engine: Annotated[bool, doc("keep a calibrated checkpoint that is there", ENGINE)] = True
    max_position_embeddings: Annotated[AtLeastOne | None, doc("written into config.json (hf)")] = None
    container: Annotated[str | None, doc("image of the converter")] = None


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if (options.convert_from, options.convert_to) not in OWN:
        from newskills.commands import _converting

        return _converting.run(parsed)
    if options.arguments:
        raise ConfigError(f"unexpected word '{options.arguments[0]}': this conversion takes no further arguments.")
    from newskills.commands._cluster import placed
    from newskills.commands._submitting import run_prepared

    cluster = placed(options, parsed.given)
    if cluster is not None:
        from newskills.commands._converting import prepare

        return run_prepared(prepare(parsed, cluster), show=("main",))
    target = Path(options.output_model)
    if options.dry_run:
        show_dry_run(
            [("reads", options.input_model, options.convert_from), ("writes", target, options.convert_to)]
        )
        return 0
    _here(options, target)
    sys.stdout.write(f"{target}\n")
    return 0


def _here(options: Options, target: Path) -> None:
    """Between Hugging Face folders and GGUF, in this process. Raises ConfigError, DataError."""
    from newskills.commands._training import require_train

    require_train("torch", "safetensors", "gguf")
    from newskills.models.serving.weights import resolve_weights
    from newskills.train.convert.from_gguf import gguf_to_hf
    from newskills.train.convert.to_gguf import hf_to_gguf

    if options.convert_from == "gguf":
        gguf_to_hf(resolve_weights(options.input_model, say=print), target)
    else:
        hf_to_gguf(Path(options.input_model), target)


def result(parsed: Parsed[Options]) -> Experiment | None:
    """For Python: the experiment, where it was submitted. Raises NewskillsError."""
    options = parsed.options
    if (options.convert_from, options.convert_to) in OWN and options.cluster in (None, "none"):
        run(parsed)
        return None
    from newskills.commands import _converting

    return _converting.result(parsed)


COMMAND = Command(
    name="convert",
    summary="Convert a model. Llama models between a Hugging Face folder (float16, tokenizer and chat template "
    "included) and a GGUF file that the embedded server runs: here. Checkpoints of NeMo-RL to Hugging Face, "
    "Hugging Face to Megatron-LM, and to an fp8 engine of TensorRT-LLM: by their own programs, in their containers.",
    options=Options,
    run=run,
    prepare="newskills.commands._converting:prepare",
    result=result,
    examples=(
        "ns convert --input_model=smollm2 --output_model=models/base --convert_from=gguf --convert_to=hf",
        "ns convert --input_model=models/sft --output_model=models/sft.gguf --convert_from=hf --convert_to=gguf",
        "ns convert --cluster=slurm --input_model=/results/sft/checkpoints/step_500 --output_model=/models/mine "
        "--convert_from=dcp --convert_to=hf --num_gpus=8",
        "ns convert --cluster=slurm --input_model=/models/mine --output_model=/models/mine-fp8 --convert_from=hf "
        "--convert_to=trtllm --dtype=fp8 --calib_dataset=cnn_dailymail --num_gpus=8",
    ),
)
