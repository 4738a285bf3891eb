# SPDX-License-Identifier: Apache-2.0
"""`ns improve`: rounds of training on the model's own correct replies, each kept only if it is better."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.terminal import counted
from newskills.commands.command import Command
from newskills.commands.shared.training import STOPPED, keys_of
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.options import DryRun, doc
from newskills.recipes.improve.problems import load_problems
from newskills.recipes.improve.records import ROUNDS, ImproveKeys, ImproveSpec
from newskills.recipes.steps_shown import steps_shown
from newskills.train.loops.stopping import StoppedError, ended_by_term

EMBEDDED = ("xllamacpp", "gguf")


class Options(Struct, frozen=True, kw_only=True):
    benchmark: Annotated[
        str, doc("benchmark to get better at; evaluated on its own split, which is never trained on")
    ]
    output_dir: Annotated[str, doc("folder for everything; a run in the same folder resumes where it stopped")]
    model: Annotated[str, doc("Hugging Face folder or hub name, .gguf file, or smollm2")] = "smollm2"
    rounds: Annotated[
        int, Meta(ge=1, description="rounds at most; raise it to go on with a run that has ended")
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


def run(parsed: Parsed[Options]) -> int:
    """Returns the exit code. Raises ConfigError (keys, packages), DataError (problems, overlap), TrainingError."""
    options, keys = parsed.options, keys_of(ImproveKeys, parsed)
    if keys is None:
        return 0
    spec = _spec(options, keys)
    if options.dry_run:
        show_dry_run(_steps(spec))
        return 0
    require_train("torch", "safetensors", "tokenizers")
    if spec.server_type == "llamacpp" and (missing := [name for name in EMBEDDED if find_spec(name) is None]):
        raise ConfigError(
            f"The embedded server needs {', '.join(missing)}, which this environment does not have.",
            hint="Run: pip install 'newskills[local]', or choose another --server_type.",
        )
    from newskills.pipelines.improvement_report import write_improvement_report
    from newskills.recipes.improve.loop import improve

    try:
        with ended_by_term():
            improvement = improve(spec, say=_say)
    except StoppedError as stopped:
        _say(str(stopped))
        return STOPPED
    except KeyboardInterrupt:
        _say("stopped; finished work is kept, run the same command to resume")
        return STOPPED
    page = write_improvement_report(spec, improvement)
    _say(f"ended: {improvement.why}")
    kept = ", ".join(record.name for record in improvement.kept) or "none: the model is the initial one"
    _say(
        f"kept      {kept}\nmodel     {improvement.model}\nrounds    {spec.output_dir / ROUNDS}\nreport    {page}"
    )
    return 0


def _spec(options: Options, keys: ImproveKeys) -> ImproveSpec:
    return ImproveSpec(
        output_dir=Path(options.output_dir),
        model=options.model,
        benchmark=options.benchmark,
        watch=steps_shown,
        split=options.split,
        training_data=Path(options.training_data) if options.training_data else None,
        solutions=tuple(map(Path, options.solutions)),
        rounds=options.rounds,
        patience=options.patience,
        method=options.method,
        guards=tuple(filter(None, map(str.strip, (options.guard or "").split(",")))),
        margin=options.margin,
        backend=options.backend,
        server_type=options.server_type,
        server_gpus=options.server_gpus,
        data_dir=Path(options.data_dir) if options.data_dir else None,
        keys=keys,
    )


def _say(text: str) -> None:
    print(text, flush=True)


def _steps(spec: ImproveSpec) -> Iterator[Step]:
    problems = load_problems(spec, lambda text: print(text, file=sys.stderr), writes=False)
    keys, out = spec.keys, spec.output_dir
    yield "reads", spec.model, "the model"
    yield (
        "reads",
        problems.source,
        f"{counted(len(problems.training), 'problem')} to train on, at most {keys.problems} in each round",
    )
    for run_ in problems.evaluated:
        yield "reads", run_.input_file, f"{run_.name}: evaluated after each round, never trained on"
    yield "writes", out / "rounds", f"{keys.samples} samples per problem, examples, checkpoints of each round"
    yield "writes", out / "models", "the models of kept rounds"
    yield "writes", out / ROUNDS, "the test of each round"
    yield (
        "writes",
        out / "report.html",
        "curve, cost and gain of each round, samples that changed; and as Markdown",
    )


COMMAND = Command(
    name="improve",
    summary="Improve a model in rounds on this machine: sample replies to training problems, grade them, train on "
    "the correct ones (or by GRPO), evaluate on held-out problems, and keep the round only if a paired test shows "
    "that it is better; else go back to the last kept model and change the mixture. A killed or stopped run resumes "
    "with the same command. Needs newskills[train,local].",
    options=Options,
    config=ImproveKeys,
    run=run,
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
