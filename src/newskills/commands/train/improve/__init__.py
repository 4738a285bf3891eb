# SPDX-License-Identifier: Apache-2.0
"""`ns improve`: rounds of training on the model's own correct replies, each kept only if it is better."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.commands.command import Command
from newskills.pipelines.options import DryRun, doc
from newskills.recipes.improve.records import ImproveKeys


class Options(Struct, frozen=True, kw_only=True):
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
    split: Annotated[str, doc("split of the benchmark to train on")] = "train"
    training_data: Annotated[
        str | None, doc("JSONL file of problems to train on instead, with the fields of the benchmark's")
    ] = None
    solutions: Annotated[
        list[str],
        doc(
            "JSONL files {id, generation}: replies of others to training problems, which are graded and used, too"
        ),
    ] = []
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
    dry_run: DryRun = False


COMMAND = Command(
    name="improve",
    summary="Improve a model in rounds on this machine: sample replies to training problems, grade them, train on "
    "the correct ones (or by GRPO), evaluate on held-out problems, and keep the round only if a paired test shows "
    "that it is better; else go back to the last kept model and change the mixture. A killed or stopped run resumes "
    "with the same command. Needs newskills[train,local].",
    options=Options,
    config=ImproveKeys,
    run="newskills.commands.train.improve.work:run",
    aliases={"hf_model": "model"},
    examples=(
        "ns improve --model=smollm2 --benchmark=sorting-lesson --solutions=solutions.jsonl --rounds=3 "
        "--output_dir=results/improve ++learning_rate=1e-3",
    ),
    essentials=(
        "benchmark",
        "output_dir",
        "model",
        "rounds",
        "patience",
        "method",
        "training_data",
        "solutions",
        "guard",
        "margin",
        "dry_run",
        "++problems",
        "++samples",
        "++max_tokens",
        "++held_out",
        "++alpha",
        "++epochs",
        "++learning_rate",
        "++seed",
    ),
)
