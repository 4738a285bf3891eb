# SPDX-License-Identifier: Apache-2.0
"""The options of `ns convert`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import AtLeastOne, PlacementOptions, doc
from newskills.train.pipelines.conversion import Dtype, From, ModelType, To

ENGINE = {"group": "TensorRT-LLM"}


class ConvertOptions(PlacementOptions, frozen=True, kw_only=True):
    arguments: Annotated[list[str], doc("more arguments for the converter, after --", {"positional": True})] = []  # noqa: RUF012 - copied
    input_model: Annotated[
        str, doc("Hugging Face folder, checkpoint (of NeMo-RL: step_N), .gguf file, or smollm2")
    ]
    output_model: Annotated[str, doc("folder to write (gguf: file)")]
    convert_from: Annotated[
        From, doc("format of the input; dcp: NeMo-RL checkpoint; megatron: one of NeMo-RL or of Megatron-LM")
    ]
    convert_to: Annotated[To, doc("format of the output; gguf: matrices in F16")]
    model_type: Annotated[ModelType | None, doc("model family, if the converter needs it")] = None
    num_gpus: Annotated[AtLeastOne, doc("GPUs per node; trtllm splits the model over them (tensor parallel)")] = 1
    num_nodes: Annotated[AtLeastOne, doc("pipeline parallel size (trtllm)")] = 1
    hf_model_name: Annotated[
        str | None, doc("Hugging Face folder or name of the same model, for its tokenizer and configuration")
    ] = None
    dtype: Annotated[Dtype, doc("number format of the output; fp8 only for trtllm")] = "bf16"
    calib_dataset: Annotated[str | None, doc("data set to calibrate the fp8 scales", ENGINE)] = None
    calib_size: Annotated[AtLeastOne, doc("number of its rows to use", ENGINE)] = 4096
    trt_prepare_args: Annotated[str, doc("more arguments for the calibration step", ENGINE)] = ""
    trt_reuse_tmp_engine: Annotated[bool, doc("reuse an existing calibrated checkpoint", ENGINE)] = True
    max_position_embeddings: Annotated[AtLeastOne | None, doc("value to write into config.json (hf)")] = None
    container: Annotated[str | None, doc("container image of the converter")] = None
