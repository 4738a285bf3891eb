# SPDX-License-Identifier: Apache-2.0
"""Trained models on the benchmarks of the recipe: one of them, all of them, and every checkpoint of a training."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError, NewskillsError
from newskills.base.records import Number, Row
from newskills.base.store import atomic_write, write_json
from newskills.base.tables import WIDTH, markdown_table, output_width, stacked_blocks
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import split_folder
from newskills.models.serving.weights import PACKAGED
from newskills.run.planning.plan import RESULTS_FOLDER
from newskills.run.reporting.summarize import EXTENDED_FILE
from newskills_aimo.recipe.lines import FINAL, CommandLine

BENCHMARKS: Mapping[str, str] = {
    "math": "hendrycks_math",
    "math_level1": "math_level1",
    "math_level5": "math_level5",
    "math500": "math-500",
    "aime": "aime25",
    "amc": "amc23",
    "gsm8k": "gsm8k",
}
"""Names of the recipe → names of the catalog."""
ALL = ("math", "math500", "aime", "amc", "gsm8k")
COT, TIR = "qwen/math-cot", "qwen/math-tir"
TIR_TOKENS = 2048
"""New tokens of an answer with programs, unless ++inference.tokens_to_generate says otherwise."""
EVERYTHING, CURVE, PAGE = "all_results.json", "checkpoints.json", "checkpoints.md"
Ns = Callable[[CommandLine], int]
_NUMBERED = re.compile(r"checkpoint-(\d+)")
_WIDTH = 40


class EvaluationSettings(Struct, frozen=True, kw_only=True):
    """`samples` 1 = greedy; more = that many seeds. `gpus` 0: llama.cpp on the CPU serves, else vLLM.

    address  of a running server, which knows the model by the name `model`
    keys     further `++` keys
    """

    model: str
    benchmarks: Sequence[str]
    output_dir: Path
    max_samples: int | None = None
    samples: int = 1
    gpus: int = 0
    address: str | None = None
    tir: bool = False
    data_dir: str | None = None
    keys: Mapping[str, Any] = {}


def catalog_names(benchmarks: Sequence[str]) -> list[str]:
    """Return names of the catalog; those of the recipe are translated."""
    return [BENCHMARKS.get(name.strip().lower(), name.strip()) for name in benchmarks if name.strip()]


def server_options(model: str, gpus: int, address: str | None) -> dict[str, Any]:
    """Return the options of `ns` that name the model and its server. Without `address`, a training folder stands for
    the model that it made."""
    if address:
        return {"model": model, "server_type": "openai", "server_address": address}
    weights = weights_of(model)
    if gpus:
        return {"model": str(weights), "server_type": "vllm", "server_gpus": gpus}
    if weights.is_dir():
        weights = gguf_of(weights)
    return {"model": str(weights), "server_type": "llamacpp"}


def weights_of(model: str) -> Path:
    """Return the trained model of a training folder, else `model` itself."""
    trained = Path(model).expanduser() / FINAL
    if trained.is_dir():
        return trained
    return Path(model).expanduser()


def gguf_of(folder: Path) -> Path:
    """Return where the folder lies in the form that llama.cpp serves."""
    return folder.with_name(f"{folder.name}.F16.gguf")


def evaluation_lines(spec: EvaluationSettings) -> Iterator[CommandLine]:
    """Yield the command lines of an evaluation; converting and preparing are among them only where not done yet."""
    names = catalog_names(spec.benchmarks)
    missing = [name for name in names if not _is_prepared(name, spec.data_dir)]
    yield from serving_lines(spec.model, spec.gpus, spec.address)
    if missing:
        own = {"data_dir": spec.data_dir}
        yield CommandLine(command="prepare_data", places=tuple(missing), options=own, why="the problems")
    samples = spec.samples if spec.samples > 1 else 0
    counted = ",".join(f"{name}:{samples}" for name in names)
    options: dict[str, Any] = {
        "benchmarks": counted,
        **server_options(spec.model, spec.gpus, spec.address),
        "output_dir": spec.output_dir,
        "data_dir": spec.data_dir,
    }
    keys = {"max_samples": spec.max_samples, **prompt_settings(spec.tir, spec.model, spec.address), **spec.keys}
    if spec.tir:
        options["with_sandbox"] = True
    yield CommandLine(command="eval", options=options, keys=keys, why="answers, verdicts, and scores")


def serving_lines(model: str, gpus: int, address: str | None) -> Iterator[CommandLine]:
    """Yield the command line that makes the file for llama.cpp where it is not there yet. Raises ConfigError for a
    missing model."""
    weights = weights_of(model)
    if address or gpus or model.lower() in PACKAGED or weights.suffix == ".gguf":
        return
    if weights.is_dir() and not (weights / "config.json").is_file():
        raise ConfigError(f"There is no model in {model}: neither {FINAL} nor config.json.")
    if not gguf_of(weights).is_file():
        options = {"input_model": weights, "output_model": gguf_of(weights)}
        form = {"convert_from": "hf", "convert_to": "gguf"}
        yield CommandLine(
            command="convert", options={**options, **form}, why="the model in the format that is served"
        )


def prompt_settings(tir: bool, model: str, address: str | None) -> dict[str, Any]:
    """Return the settings for the prompts that the stages were trained with; with `tir`, the model's programs are run.

    Where the tokenizer is here, texts are sent: a chat endpoint may end the model's turn at the output of a program.
    """
    if not tir:
        return {"prompt_config": COT}
    keys: dict[str, Any] = {"prompt_config": TIR, "code_execution": True, "code_tags": "qwen"}
    folder = weights_of(model)
    if address is None and (folder / "tokenizer.json").is_file():
        keys |= {
            "inference.endpoint_type": "text",
            "tokenizer": folder,
            "inference.tokens_to_generate": TIR_TOKENS,
        }
    return keys


def _is_prepared(name: str, data_dir: str | None) -> bool:
    benchmark = get_benchmark(name)
    return (split_folder(benchmark, data_dir) / f"{benchmark.split}.jsonl").is_file()


def run_evaluation(spec: EvaluationSettings, *, ns: Ns) -> int:
    """Run the lines of an evaluation; return 0, or the exit code of the first line that ended otherwise."""
    for line in evaluation_lines(spec):
        if code := ns(line):
            return code
    return 0


def headline_scores(folder: Path) -> dict[str, Number]:
    """Map each benchmark to its headline with interval. Raises DataError where nothing was measured."""
    path = folder / EXTENDED_FILE
    if not path.is_file():
        path = folder / RESULTS_FOLDER / EXTENDED_FILE
    try:
        reports = msgspec.json.decode(path.read_bytes(), type=dict[str, Row])
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(
            f"{folder} has no summary: {error}.", hint="ns aimo regenerate_summary writes it."
        ) from error
    headlines = {}
    for benchmark, report in reports.items():
        numbers = next((metrics for metrics in report["numbers"].values() if metrics), None)
        if numbers and not report["withheld"]:
            headlines[benchmark] = msgspec.convert(next(iter(numbers.values())), Number)
    return headlines


def write_everything(folder: Path) -> Path:
    """Write the scores of all benchmarks of an evaluation into one file, and return its path."""
    path = folder / EVERYTHING
    write_json(path, headline_scores(folder))
    return path


class CheckpointScores(Struct, frozen=True):
    """The scores of a checkpoint."""

    step: int
    name: str
    scores: dict[str, Number]


def checkpoints_of(training: Path) -> list[tuple[int, Path]]:
    """Return (step, folder) of the checkpoints, in order. Raises DataError where there are none."""
    folders = [
        (int(match[1]), path)
        for path in training.glob("checkpoint-*")
        if path.is_dir() and (match := _NUMBERED.fullmatch(path.name))
    ]
    if not folders:
        raise DataError(f"{training} has no checkpoints (checkpoint-STEP).")
    return sorted(folders)


def evaluate_checkpoints(spec: EvaluationSettings, base: str | None, *, ns: Ns, say: PrintLine) -> int:
    """Evaluate every checkpoint of the training folder `spec.model`; merged models are removed when they are
    measured.

    `base`: what the pairs belong to, where the checkpoint does not say. Raises NewskillsError.
    """
    for step, folder in checkpoints_of(Path(spec.model)):
        place = spec.output_dir / folder.name
        if (place / EXTENDED_FILE).is_file():
            say(f"step {step}: already evaluated")
            continue
        merged = spec.output_dir / "models" / folder.name
        for line in checkpoint_lines(spec, folder, base):
            if code := ns(line):
                return code
        shutil.rmtree(merged, ignore_errors=True)
        gguf_of(merged).unlink(missing_ok=True)
    say(write_checkpoint_table(spec.output_dir))
    return 0


def checkpoint_lines(spec: EvaluationSettings, folder: Path, base: str | None) -> Iterator[CommandLine]:
    """Yield the command lines for one checkpoint: a LoRA adapter is merged first, a whole model is taken as it is."""
    model = folder
    if (folder / "adapter_config.json").is_file():
        model = spec.output_dir / "models" / folder.name
        options = {"base_model": base or _base_of(folder), "adapter": folder, "output_model": model}
        if not model.is_dir():
            yield CommandLine(command="merge_lora", options=options, why="the checkpoint merged into its model")
    own = msgspec.structs.replace(spec, model=str(model), output_dir=spec.output_dir / folder.name)
    if spec.gpus or (model / "config.json").is_file() or model == folder:
        yield from evaluation_lines(own)
        return
    yield CommandLine(
        command="convert",
        options={"input_model": model, "output_model": gguf_of(model), "convert_from": "hf", "convert_to": "gguf"},
        why="the model in the format that is served",
    )
    yield from evaluation_lines(msgspec.structs.replace(own, model=str(gguf_of(model))))


def _base_of(folder: Path) -> str:
    try:
        config = msgspec.json.decode((folder / "adapter_config.json").read_bytes(), type=Row)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{folder} is not a LoRA adapter: {error}.") from error
    base = str(config.get("base_model_name_or_path") or "")
    if not base:
        raise ConfigError(f"{folder} does not name its base model.", hint="Give --base-model.")
    return base


def checkpoint_scores(folder: Path) -> list[CheckpointScores]:
    """Return the scores of the evaluated checkpoints in `folder`, by step."""
    scores = []
    for path in folder.glob("checkpoint-*"):
        match = _NUMBERED.fullmatch(path.name)
        if match and (path / EXTENDED_FILE).is_file():
            scores.append(CheckpointScores(int(match[1]), path.name, headline_scores(path)))
    return sorted(scores, key=lambda point: point.step)


def write_checkpoint_table(folder: Path) -> str:
    """Return the table and a curve for each benchmark, and write the results to checkpoints.md and checkpoints.json as
    well.

    Raises NewskillsError where nothing was measured.
    """
    measured = checkpoint_scores(folder)
    if not measured:
        raise NewskillsError(f"{folder}: no checkpoint was evaluated.")
    names = list(dict.fromkeys(name for point in measured for name in point.scores))
    rows = [["step", *names]]
    rows += [[str(point.step), *(_format_score(point.scores.get(name)) for name in names)] for point in measured]
    curves = [
        line for name in names for line in ("", f"{name}, % and 95 % interval", *_curve_lines(measured, name))
    ]
    text = "\n".join([*markdown_table(rows), "", "```", *curves[1:], "```"])
    with atomic_write(folder / PAGE) as file:
        file.write(f"# Checkpoints\n\n{text}\n".encode())
    write_json(folder / CURVE, measured)
    blocks = ["\n".join(block) for block in stacked_blocks(rows, output_width() or WIDTH, "  ")]
    return "\n\n".join([*blocks, "\n".join(curves[1:]), f"written to {folder / PAGE}"])


def _format_score(number: Number | None) -> str:
    if number is None:
        return "–"
    return f"{number.value:.1f} ({number.low:.1f} to {number.high:.1f})"


def _curve_lines(measured: Sequence[CheckpointScores], name: str) -> Iterator[str]:
    """Yield a line for each step with a score: the interval on a scale of 0 to 100 %, and where the score lies in
    it."""
    for point in measured:
        number = point.scores.get(name)
        if number is None:
            continue
        low, at, high = (round(value / 100 * _WIDTH) for value in (number.low, number.value, number.high))
        bar = "".join(_bar_sign(place, low, at, high) for place in range(_WIDTH + 1))
        yield f"{point.step:>7} |{bar}| {number.value:.1f}"


def _bar_sign(place: int, low: int, at: int, high: int) -> str:
    if place == at:
        return "●"
    if low <= place <= high:
        return "─"
    return " "
