# SPDX-License-Identifier: Apache-2.0
"""Options of commands about trained models beside the methods of training; light, since `--help` loads them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.pipelines.options import DryRun, PlacementOptions, doc


class ImproveOptions(PlacementOptions, frozen=True, kw_only=True):
    """What `ns improve` takes."""

    benchmark: Annotated[
        str, doc("benchmark to get better at; evaluated on its own split, which is never trained on")
    ]
    output_dir: Annotated[str, doc("folder for everything; a run in the same folder resumes where it stopped")]
    model: Annotated[str, doc("Hugging Face folder or hub name, .gguf file, or smollm2")] = "smollm2"
    rounds: Annotated[
        int, Meta(ge=1, description="largest number of rounds; raise it to continue a run that has ended")
    ] = 5
    patience: Annotated[int, Meta(ge=1, description="end after this many rounds in a row that were not kept")] = 2
    method: Annotated[
        Literal["sft", "grpo"],
        doc("sft: on correct replies (rejection sampling); grpo: on problems that are sometimes correct"),
    ] = "sft"
    config: Annotated[
        str | None, doc("YAML file of ++ keys, and of stages: the first rounds, each with settings of its own")
    ] = None
    split: Annotated[str, doc("split of the benchmark to train on")] = "train"
    training_data: Annotated[
        str | None, doc("JSONL file of problems to train on instead, with the fields of the benchmark's")
    ] = None
    solutions: Annotated[
        list[str],
        doc(
            "JSONL files {id, generation}: replies of others to training problems, which are graded and used, too"
        ),
    ] = []  # noqa: RUF012 - copied
    guard: Annotated[
        str | None,
        doc(
            "benchmarks, separated by commas, that must not get worse than with the initial model (non-inferiority)"
        ),
    ] = None
    margin: Annotated[float, Meta(gt=0, description="points that a guard may lose: less than this")] = 2.0
    backend: Annotated[str, doc("cpu: LoRA, small Llama models; trl: any model, GPUs (newskills[trl])")] = "cpu"
    server_type: Annotated[str, doc("what serves the models on this machine: llamacpp, vllm, sglang, …")] = (
        "llamacpp"
    )
    server_gpus: Annotated[int, Meta(ge=0, description="GPUs of the server")] = 0
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None


class AverageOptions(PlacementOptions, frozen=True, kw_only=True):
    """What `ns average_checkpoints` takes."""

    checkpoints: Annotated[
        list[str],
        doc("Hugging Face folders of the same model (several words); with --steps: the folder that contains them"),
    ]
    output_model: Annotated[str, doc("folder to write; must not exist yet")]
    steps: Annotated[str | None, doc("step numbers N of the folders step_N in --checkpoints, comma separated")] = (
        None
    )
    remove: Annotated[list[str], doc("folders to remove after the average is written")] = []  # noqa: RUF012 - copied
    remove_checkpoints_after_average: Annotated[
        bool, doc("remove the averaged checkpoints after the average is written")
    ] = False


class MergeOptions(Struct, frozen=True, kw_only=True):
    """What `ns merge_lora` takes."""

    base_model: Annotated[str, doc("Hugging Face folder of the base model")]
    adapter: Annotated[
        str, doc("folder with adapter_model.safetensors (PEFT format), for example a checkpoint of ns sft")
    ]
    output_model: Annotated[str, doc("folder to write; must not exist yet")]
    dry_run: DryRun = False
