# SPDX-License-Identifier: Apache-2.0
"""Which models become which, and by whose program: the words of `ns convert` for what newskills does not do itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.models import REMOVED
from newskills.train.pipelines import megatron_lm, nemo_rl
from newskills.train.pipelines.inside import PYTHON

From = Literal["hf", "nemo", "dcp", "megatron", "gguf"]
To = Literal["hf", "trtllm", "megatron", "nemo", "gguf"]
ModelType = Literal["llama", "qwen", "deepseek_v3"]
Dtype = Literal["bf16", "fp16", "fp32", "fp8"]

OWN = (("hf", "gguf"), ("gguf", "hf"))
"""Pairs that newskills converts in its own process."""
CONTAINERS = {
    ("dcp", "hf"): "nemo-rl",
    ("megatron", "hf"): "nemo-rl",
    ("hf", "megatron"): "megatron",
    ("hf", "trtllm"): "trtllm",
}
QUANTIZE = "/app/tensorrt_llm/examples/quantization/quantize.py"
"""Where NVIDIA's TensorRT-LLM images have the program that calibrates."""

BUILD = """\
set -e
input=$1 temporary=$2 output=$3 reuse=$4 count=$5
shift 5
prepare=("${@:1:count}") build=("${@:1+count}")
if [[ $reuse != yes ]]; then rm -rf -- "$temporary"; fi
if [[ ! -f $temporary/config.json ]]; then "${prepare[@]}"; fi
"${build[@]}"
for file in "$input"/tokenizer* "$input"/generation_config.json; do
    if [[ -e $file ]]; then cp -- "$file" "$output"/; fi
done
"""
"""Arguments: the model, the calibrated checkpoint, the engine, whether to keep a calibrated checkpoint that is there,
the number of words that make it, these words, the words that build the engine. None of them is read by a shell."""


class Conversion(Struct, frozen=True, kw_only=True):
    """What `ns convert` is asked for. Paths are those that the job sees; `extra` goes to the last program."""

    input_model: str
    output_model: str
    convert_from: From
    convert_to: To
    model_type: ModelType | None = None
    num_gpus: int = 1
    num_nodes: int = 1
    hf_model_name: str | None = None
    dtype: Dtype = "bf16"
    calib_dataset: str | None = None
    calib_size: int = 4096
    trt_prepare_args: Sequence[str] = ()
    trt_reuse_tmp_engine: bool = True
    extra: Sequence[str] = ()

    @property
    def pair(self) -> tuple[str, str]:
        return self.convert_from, self.convert_to

    @property
    def container(self) -> str:
        return CONTAINERS[self.pair]

    def check(self) -> None:
        """Raise ConfigError for a conversion that no program does, or does not do without more options."""
        there = ", ".join(f"{source_format} → {other}" for source_format, other in (*CONTAINERS, *OWN))
        if self.convert_from == self.convert_to:
            raise ConfigError(f"From {self.convert_from} to {self.convert_to} there is nothing to convert.")
        if "nemo" in self.pair:
            raise ConfigError(
                f"Converting {self.convert_from} to {self.convert_to} is not supported.", hint=REMOVED["nemo"]
            )
        if self.pair not in (*CONTAINERS, *OWN):
            raise ConfigError(
                f"Converting {self.convert_from} to {self.convert_to} is not supported; supported: {there}."
            )
        if self.dtype == "fp8" and self.convert_to != "trtllm":
            raise ConfigError("--dtype=fp8 works only for TensorRT-LLM engines (--convert_to=trtllm).")
        if self.dtype == "fp8" and not self.calib_dataset:
            raise ConfigError("--dtype=fp8 needs --calib_dataset: texts to choose its scales with.")
        if self.convert_to == "trtllm" and self.dtype != "fp8":
            raise ConfigError(
                f"--dtype={self.dtype}: TensorRT-LLM serves Hugging Face folders directly; only fp8 is converted.",
                hint="ns start_server --server_type=trtllm --model=FOLDER",
            )
        if self.pair == ("hf", "megatron"):
            self._check_megatron()
        if self.convert_to == "hf" and self.model_type == "deepseek_v3":
            raise ConfigError("Converting DeepSeek v3 back to hf is not supported.")

    def _check_megatron(self) -> None:
        if self.model_type != "llama":
            raise ConfigError("Megatron-LM's converter reads only Llama models: give --model_type=llama.")
        if self.dtype != "bf16":
            raise ConfigError(f"--dtype={self.dtype}: Megatron-LM's converter writes bf16 here.")
        if not self.hf_model_name:
            raise ConfigError("--hf_model_name is missing: the model whose tokenizer belongs to the checkpoint.")

    def words(self) -> list[str]:
        """Return argv of the job; raises nothing after `check`."""
        if self.pair == ("hf", "trtllm"):
            return self._trtllm()
        if self.pair == ("hf", "megatron"):
            return self._megatron()
        backend: nemo_rl.Backend = "megatron" if self.convert_from == "megatron" else "fsdp"
        return [*nemo_rl.converter(backend, nemo_rl.ROOT), *self.extra]

    @property
    def project(self) -> str:
        """Folder in which the program has to be started; empty: any."""
        if self.pair == ("hf", "megatron"):
            return megatron_lm.ROOT
        return nemo_rl.ROOT if self.convert_to == "hf" else ""

    def _megatron(self) -> list[str]:
        return [
            PYTHON,
            "tools/checkpoint/convert.py",
            "--model-type=GPT",
            "--loader=llama_mistral",
            "--model-size=llama3",
            f"--load-dir={self.input_model}",
            "--saver=core",
            f"--save-dir={self.output_model}",
            "--checkpoint-type=hf",
            f"--tokenizer-model={self.hf_model_name}",
            "--bf16",
            f"--target-tensor-parallel-size={self.num_gpus}",
            f"--target-pipeline-parallel-size={self.num_nodes}",
            *self.extra,
        ]

    def _trtllm(self) -> list[str]:
        temporary = f"{self.output_model}-tmp-ckpt"
        prepare = [
            "python3",
            QUANTIZE,
            f"--model_dir={self.input_model}",
            "--dtype=auto",
            f"--qformat={self.dtype}",
            f"--output_dir={temporary}",
            f"--calib_size={self.calib_size}",
            f"--calib_dataset={self.calib_dataset}",
            "--batch_size=4",
            f"--tp_size={self.num_gpus}",
            f"--pp_size={self.num_nodes}",
            *self.trt_prepare_args,
        ]
        build = [
            "trtllm-build",
            f"--checkpoint_dir={temporary}",
            f"--output_dir={self.output_model}",
            "--gemm_plugin=auto",
            "--use_paged_context_fmha=enable",
            "--max_batch_size=512",
            "--max_input_len=4096",
            "--max_seq_len=8192",
            "--max_num_tokens=8192",
            *self.extra,
        ]
        reuse = "yes" if self.trt_reuse_tmp_engine else "no"
        head = ["bash", "-c", BUILD, "bash", self.input_model, temporary, self.output_model, reuse]
        return [*head, str(len(prepare)), *prepare, *build]
