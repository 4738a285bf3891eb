# SPDX-License-Identifier: Apache-2.0
"""The options of `ns convert`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import AtLeastOne, PlacementOptions, doc
from newskills.train.pipelines.conversion import Dtype, From, ModelType, To

ENGINE = {"group": "TensorRT-LLM"}


class ConvertOptions(PlacementOptions, frozen=True, kw_only=True):
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
