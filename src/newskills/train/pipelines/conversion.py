# SPDX-License-Identifier: Apache-2.0
"""Which models become which, and by whose program: the words of `ns convert` for what newskills does not do itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.models import REMOVED
from newskills.train.pipelines import megatron_bridge, nemo_rl
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
    def of_nemo_rl(self) -> bool:
        """Whether the input is a step of NeMo-RL, which has converters of its own."""
        name = self.input_model.rstrip("/").rpartition("/")[2]
        return self.convert_from == "dcp" or (self.convert_from == "megatron" and name.startswith(nemo_rl.PREFIX))

    @property
    def container(self) -> str:
        if self.pair == ("megatron", "hf") and not self.of_nemo_rl:
            return "megatron"
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
        if self.of_nemo_rl:
            if self.model_type == "deepseek_v3":
                raise ConfigError("NeMo-RL does not convert DeepSeek v3 back to hf.")
        elif self.convert_from == "megatron" and not self.hf_model_name:
            raise ConfigError(
                "--hf_model_name is missing: a Hugging Face folder or name of the same architecture, which "
                "Megatron-Bridge reads.",
                hint="A checkpoint of NeMo-RL needs none: give the folder of one step (…/step_500).",
            )

    def words(self) -> list[str]:
        """Return argv of the job; raises nothing after `check`."""
        if self.pair == ("hf", "trtllm"):
            return self._trtllm()
        if not self.of_nemo_rl:
            return self._bridge()
        backend: nemo_rl.Backend = "megatron" if self.convert_from == "megatron" else "fsdp"
        return [*nemo_rl.converter_words(backend, nemo_rl.ROOT), *self.extra]

    @property
    def project(self) -> str:
        """Folder in which the program has to be started; empty: any."""
        if self.of_nemo_rl:
            return nemo_rl.ROOT
        return ""

    def _bridge(self) -> list[str]:
        program = [PYTHON, "-m", megatron_bridge.MODULE]
        if self.convert_to == "megatron":
            words = ["import", f"--hf-model={self.input_model}", f"--megatron-path={self.output_model}"]
        else:
            words = ["export", f"--hf-model={self.hf_model_name}", f"--megatron-path={self.input_model}"]
            words.append(f"--hf-path={self.output_model}")
        return [*program, *words, f"--dtype={self.dtype}", *self.extra]

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
