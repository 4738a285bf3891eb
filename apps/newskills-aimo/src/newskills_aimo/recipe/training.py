# SPDX-License-Identifier: Apache-2.0
"""Runs the stages one after the other. Each writes folders and files that count only when they are complete, so the
same command resumes where it was stopped."""

from __future__ import annotations

import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Source
from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Message, Row
from newskills.base.store import atomic_folder, decode_row, encode_line, read_rows, write_json, write_rows
from newskills.base.terminal import listed
from newskills.benchmarks.downloads.readers import read_source
from newskills.models.serving.weights import PACKAGED
from newskills.models.tokenizer import HFTokenizer
from newskills.prompts.official.table import official_folders
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.sandbox.config import SandboxConfig
from newskills.train.backends.cpu.weights import read_shape
from newskills.train.data.card import card_files
from newskills.train.data.published import resembling_schema
from newskills.train.loops.folder import CHECKPOINTS, SAMPLES, Checkpoint
from newskills_aimo.recipe.lines import (
    BUILT,
    DATA,
    FINAL,
    TRAIN,
    Backend,
    CommandLine,
    ReportingOptions,
    Sizes,
    convert_line,
    data_line,
    held_out_file,
    rl_line,
    sft_line,
)
from newskills_aimo.recipe.programs import KEPT, ProgramCheck, keep_true
from newskills_aimo.recipe.settings import AimoConfig, RlStage, SftStage, Stage, StageName, TirStage

T = TypeVar("T")
Ns = Callable[[CommandLine], int]
"""Runs a line; its exit code. Raises NewskillsError."""
OVERLAP = "remove_contaminated"
"""Step of the data's card that compares with the tests."""
FORMS = ("jsonl", "json", "parquet", "arrow", "csv", "tsv")
MADE, CHECKED = "made.json", "checked.jsonl"
RESUMED = "resumed_from.json"
POLL = 0.5
"""Seconds between two looks at what another process makes."""
_NUMBERED = re.compile(r"checkpoint-(\d+)")


class StagedTraining(Struct, frozen=True, kw_only=True):
    """Which stages, with which settings, and what this machine is.

    places       options of the data: data_dir, mirror, offline
    resume_from  checkpoint to begin at, of another folder or the last of this one
    """

    stages: tuple[StageName, ...]
    config: AimoConfig
    backend: Backend
    reporting: ReportingOptions = ReportingOptions()
    places: Mapping[str, Any] = {}
    sandbox: SandboxConfig = SandboxConfig()
    resume_from: str = ""


class _DataState(Struct, frozen=True, kw_only=True):
    """How many rows of data there are, and all they depend on."""

    made_with: dict[str, Any]
    rows: int
    held_out: int


def train_stages(training: StagedTraining, *, ns: Ns, say: PrintLine) -> int:
    """Run all stages; return 0, or the exit code of the first line that ended otherwise. Raises NewskillsError;
    what is done stays done."""
    check_training(training)
    for name in training.stages:
        stage = training.config.stage(name)
        if (Path(stage.output) / FINAL).is_dir():
            say(f"{name}: done, {Path(stage.output) / FINAL}")
            continue
        say(f"{name}: {stage.start} → {stage.output}")
        if code := _train_stage(stage, training, ns, say):
            return code
    return 0


def plan_stages(training: StagedTraining) -> Iterator[tuple[str, CommandLine]]:
    """Yield (stage, line) of all that would be run, as far as it is known before the data are there."""
    check_training(training)
    made: set[str] = set()
    for name in training.stages:
        stage = training.config.stage(name)
        if stage.start in made:
            start = str(Path(stage.start) / FINAL)
        else:
            start = model_in(stage.start, stage.output, there=False)
        if start.endswith(CONVERTED) and not Path(start).is_dir():
            yield name, convert_line(stage.start, Path(start))
        yield name, data_line(stage, _dataset_choices(stage)[0], training.config.decontaminate, training.places)
        yield name, training_line(stage, start, training, None)
        made.add(stage.output)


def check_training(training: StagedTraining) -> None:
    """Raise ConfigError for settings that do not fit together."""
    config = training.config
    for name in training.stages:
        stage = config.stage(name)
        if isinstance(stage, RlStage) and stage.batch % stage.num_generations:
            raise ConfigError(
                f"A step has {stage.batch_size} × {stage.accumulation} samples, which is not a multiple of "
                f"num_generations={stage.num_generations}.",
                hint="Change ++rl.batch_size, ++rl.accumulation or --num-generations.",
            )
    if training.resume_from and len(training.stages) > 1:
        raise ConfigError(
            "--resume-from-checkpoint PATH is for one stage only.",
            hint="Give the stage with --stage, or give no PATH: every stage resumes from its own last checkpoint.",
        )


def training_line(stage: Stage, start: str, training: StagedTraining, sizes: Sizes | None) -> CommandLine:
    if isinstance(stage, SftStage):
        return sft_line(stage, start, training.backend, sizes, training.reporting)
    assert isinstance(stage, RlStage)
    return rl_line(stage, start, training.backend, sizes, training.reporting)


CONVERTED = "base_hf_model"


def model_in(start: str, output: str, *, there: bool = True) -> str:
    """Return the model that can be trained: a Hugging Face folder, or a name on the hub.

    Of a training folder it is the trained model; a .gguf file and the model known by name will be converted.
    Raises ConfigError for a folder without a model, unless it need not be `there` yet.
    """
    path = Path(start).expanduser()
    if start.lower() in PACKAGED or path.suffix == ".gguf":
        return str(Path(output) / CONVERTED)
    if (path / FINAL).is_dir():
        return str(path / FINAL)
    if (path / "config.json").is_file():
        return str(path)
    if path.is_dir() or start.startswith((".", "/", "~", "outputs/")):
        if not there:
            return str(path / FINAL)
        what = f"There is no model in {start}"
        if path.is_dir() and (names := sorted(child.name for child in path.iterdir())):
            what += f", which has {', '.join(names[:6])}"
        raise ConfigError(
            f"{what}.",
            hint="Run the stage before (--stage cot, then tir), or give a model with --base-model.",
        )
    return start


def for_cpu_trainer(start: str, output: str) -> bool:
    """Return whether the cpu trainer can train `start`: a small Llama that is here, or one that will be
    converted."""
    folder = model_in(start, output, there=False)
    if folder.endswith(CONVERTED):
        return True
    try:
        read_shape(Path(folder))
    except (ConfigError, DataError):
        return False
    return True


def _train_stage(stage: Stage, training: StagedTraining, ns: Ns, say: PrintLine) -> int:
    """Run the lines of a stage; of several processes that train together the first one makes what all of them
    read."""
    start, final = model_in(stage.start, stage.output), Path(stage.output) / FINAL
    if os.environ.get("RANK", "0") != "0":
        sizes = _poll_until(lambda: _sizes_made_by_first(stage, start, training))
        code = ns(training_line(stage, start, training, sizes))
        if not code:
            _poll_until(final.is_dir)
        return code
    if (
        start.endswith(CONVERTED)
        and not Path(start).is_dir()
        and (code := ns(convert_line(stage.start, Path(start))))
    ):
        return code
    if training.resume_from:
        _checkpoint_at(Path(training.resume_from))
    sizes = _prepare_data(stage, start, training, ns, say)
    if training.resume_from:
        begin_at(Path(training.resume_from), Path(stage.output))
    if code := ns(training_line(stage, start, training, sizes)):
        return code
    if isinstance(stage, RlStage) and training.reporting.save_samples is not None:
        say(keep_samples(Path(stage.output), training.reporting))
    return 0


def _sizes_made_by_first(stage: Stage, start: str, training: StagedTraining) -> Sizes | None:
    if training.resume_from and not (Path(stage.output) / CHECKPOINTS).is_file():
        return None
    return _existing_sizes(stage, _made_with(stage, start, training))


def _poll_until(look: Callable[[], T | None]) -> T:
    """Call `look` every `POLL` seconds until it finds something, and return that. There is no time limit: a launcher
    ends all processes when one of them has failed."""
    while not (result := look()):
        time.sleep(POLL)
    return result


def keep_samples(output: Path, reporting: ReportingOptions) -> str:
    """Keep the wanted share of the samples, chosen by their text, in the wanted file; return a sentence with
    how many."""
    share, source = reporting.save_samples or 0.0, output / SAMPLES
    rows = list(read_rows(source))
    kept = [row for row in rows if crc32(encode_line(row)) < share * 2**32]
    target = output / reporting.samples_filename
    write_rows(target, kept)
    return (
        f"samples: {len(kept)} of {len(rows)} problems with their answers are kept in {target} "
        f"(--sample-save-rate={share:g}; 1, or no --save-samples, keeps all)"
    )


def _prepare_data(stage: Stage, start: str, training: StagedTraining, ns: Ns, say: PrintLine) -> Sizes:
    """Make the files to learn from and to validate with, once, and return their sizes."""
    folder, wanted = Path(stage.output) / DATA, _made_with(stage, start, training)
    if (existing := _existing_sizes(stage, wanted)) is not None:
        say(f"data: {existing.rows} training rows, {existing.held_out} problems held out; already prepared")
        return existing
    if (Path(stage.output) / CHECKPOINTS).is_file():
        raise ConfigError(
            f"{stage.output} has a training on other data.",
            hint="Use the same settings to resume it, or another --output-dir.",
        )
    _build_first_dataset(_data_lines(stage, training), ns, say)
    say(_describe_overlap(folder / BUILT))
    rows = list(read_rows(folder / BUILT))
    if isinstance(stage, TirStage) and stage.check_programs:
        rows = _with_true_programs(rows, folder, stage, training.sandbox, say)
    rows = _drop_long_rows(rows, stage, start, say)
    held = _held_out(stage, len(rows))
    problems = [problem for row in rows[:held] if (problem := _problem_of(row))["expected_answer"]]
    held_questions = {problem["problem"] for problem in problems}
    learnt = [row for row in rows[held:] if _problem_of(row)["problem"] not in held_questions]
    if not learnt:
        raise DataError(f"All {len(rows)} rows are held-out problems: there is nothing to train on.")
    write_rows(held_out_file(Path(stage.output)), problems)
    write_rows(folder / TRAIN, learnt)
    sizes = Sizes(len(learnt), len(problems))
    write_json(folder / MADE, _DataState(made_with=wanted, rows=sizes.rows, held_out=sizes.held_out))
    say(f"data: {sizes.rows} training rows, {sizes.held_out} problems held out")
    return sizes


def _data_lines(stage: Stage, training: StagedTraining) -> list[CommandLine]:
    return [
        data_line(stage, dataset, training.config.decontaminate, training.places)
        for dataset in _dataset_choices(stage)
    ]


def _made_with(stage: Stage, start: str, training: StagedTraining) -> dict[str, Any]:
    """Return all that the data of a stage depend on."""
    return {
        "lines": [line.words for line in _data_lines(stage, training)],
        **_length_settings(stage),
        "start": start,
    }


def _existing_sizes(stage: Stage, wanted: Row) -> Sizes | None:
    """Return the sizes of the data if they were made with the same settings, else None."""
    path = Path(stage.output) / DATA / MADE
    if not path.is_file():
        return None
    made = msgspec.json.decode(path.read_bytes(), type=_DataState)
    if made.made_with == wanted:
        return Sizes(made.rows, made.held_out)
    return None


def _problem_of(row: Row) -> Row:
    """Return a row of either form as a problem with its answer."""
    if "problem" in row:
        problem = row["problem"]
    else:
        problem = row["messages"][-2]["content"]
    return {"problem": problem, "expected_answer": row.get("expected_answer")}


def _describe_overlap(built: Path) -> str:
    """Describe the result of the comparison with the test sets."""
    card = msgspec.json.decode(card_files(built)[0].read_bytes(), type=Row)
    names = ", ".join(card["compared_with"])
    if not names:
        return "note: the data was not compared with any test set"
    removed = sum(step["removed"] for step in card["steps"] if step["name"] == OVERLAP)
    return f"overlap: {removed} of {card['rows_read']} rows are problems of {names}, and were left out"


def _build_first_dataset(lines: Sequence[CommandLine], ns: Ns, say: PrintLine) -> None:
    """Build the first of the sets that can be built. Raises DataError where none can."""
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        try:
            ns(line)
            return
        except DataError as error:
            if following is None:
                raise
            say(f"note: {line.options['dataset']}: {error}; {following.options['dataset']} is used instead")


def _with_true_programs(
    rows: Sequence[Row], folder: Path, stage: TirStage, sandbox: SandboxConfig, say: PrintLine
) -> list[Row]:
    checked = folder / CHECKED
    check = ProgramCheck(limit=stage.max_executions, timeout=stage.timeout, sandbox=sandbox)
    counts = keep_true(rows, checked, check, say=say)
    left_out = ", ".join(f"{count} {why}" for why, count in sorted(counts.items()) if why != KEPT)
    say(f"code: {counts[KEPT]} of {len(rows)} rows print what they show; left out: {left_out or 'none'}")
    return list(read_rows(checked))


def _drop_long_rows(rows: list[Row], stage: Stage, start: str, say: PrintLine) -> list[Row]:
    """Return the rows that fit into the longest sequence and the model's context. Raises DataError where none does."""
    tokenizer, limit = HFTokenizer(start), _context_length(start)
    prompt = load_prompt(stage.prompt, PromptOverrides(official_folders=official_folders(None)))
    if isinstance(stage, SftStage):
        limit = min(limit, stage.max_length)

        def size(row: Row) -> int:
            turns = [msgspec.convert(turn, Message) for turn in row["messages"]]
            return len(tokenizer.encode(tokenizer.render(turns, add_generation_prompt=False)))
    else:
        assert isinstance(stage, RlStage)
        limit -= stage.max_tokens

        def size(row: Row) -> int:
            return len(tokenizer.encode(tokenizer.render(prompt.messages(row))))

    kept = [row for row in rows if size(row) <= limit]
    if not kept:
        raise DataError(
            f"All {len(rows)} rows are longer than {limit} tokens.",
            hint="Raise ++cot.max_length or ++tir.max_length, lower ++rl.max_tokens, or use a model with a "
            "longer context.",
        )
    if len(kept) < len(rows):
        say(f"data: {len(rows) - len(kept)} rows are longer than {limit} tokens and were left out")
    return kept


def _context_length(start: str) -> int:
    """Return the tokens that the model in the folder `start` can see; without bound where it is not here."""
    path = Path(start) / "config.json"
    if not path.is_file():
        return 1 << 30
    return int(decode_row(path.read_bytes(), path, 1).get("max_position_embeddings", 1 << 30))


def _length_settings(stage: Stage) -> dict[str, Any]:
    names = (
        "max_length",
        "validation",
        "max_executions",
        "check_programs",
        "timeout",
        "max_tokens",
        "eval_samples",
    )
    return {name: getattr(stage, name) for name in names if hasattr(stage, name)}


def _held_out(stage: Stage, rows: int) -> int:
    """Return the number of rows to validate with; at least one is left to learn from."""
    wanted = 0
    if isinstance(stage, SftStage):
        wanted = math.ceil(stage.validation * rows)
    if isinstance(stage, RlStage):
        wanted = min(stage.eval_samples, rows // 10)
    return min(wanted, rows - 1)


def _dataset_choices(stage: Stage) -> Sequence[str | None]:
    """Return the published sets to try; for `data_files`, the one whose fields they have, None for `problem` and
    `generation`."""
    if not stage.data_files:
        return stage.datasets
    path = Path(stage.data_files[0]).expanduser()
    if path.suffix == ".gz":
        form: Any = path.with_suffix("").suffix[1:]
    else:
        form = path.suffix[1:]
    if not path.is_file() or form not in FORMS:
        raise DataError(f"{path}: expected a file that ends in {', '.join(FORMS)}, optionally with .gz.")
    if path.suffix == ".jsonl":
        rows = read_rows(path)
    else:
        rows = (raw.row for raw in read_source(path, Source(format=form)))
    return (resembling_schema(next(iter(rows), {})) or None,)


def begin_at(checkpoint: Path, output: Path) -> None:
    """Copy a checkpoint of another run into `output` as its first one; the last one of `output` itself needs
    nothing.

    Raises ConfigError for a folder that is no checkpoint, or where `output` has a run of its own.
    """
    source = _checkpoint_at(checkpoint)
    match = _NUMBERED.fullmatch(source.name)
    if match is None:
        raise ConfigError(f"{source} is not a checkpoint: its name should be checkpoint-STEP.")
    log, marker = output / CHECKPOINTS, output / RESUMED
    if log.is_file() and log.stat().st_size:
        last = list(read_rows(log))[-1]
        mine = source.parent.resolve() == output.resolve()
        if mine and last["name"] == source.name:
            return
        if marker.is_file() and msgspec.json.decode(marker.read_bytes()) == str(source.resolve()):
            return
        raise ConfigError(
            f"{output} has checkpoints up to {last['name']}; starting at {source.name} would lose them.",
            hint="Give another --output-dir for a run that branches off there.",
        )
    step = int(match[1])
    name = f"checkpoint-{step:06d}"
    if not (output / name).is_dir():
        with atomic_folder(output / name) as made:
            shutil.copytree(source, made, dirs_exist_ok=True)
    write_json(marker, str(source.resolve()))
    write_rows(log, [msgspec.to_builtins(Checkpoint(name=name, step=step, state_path=name))])


def _checkpoint_at(path: Path) -> Path:
    """Return the checkpoint's folder, also where its name has the step with more digits than `path`. Raises ConfigError
    where there is none."""
    path = path.expanduser()
    if path.is_dir():
        return path
    match = _NUMBERED.fullmatch(path.name)
    if match:
        padded = path.with_name(f"checkpoint-{int(match[1]):06d}")
        if padded.is_dir():
            return padded
    hint = ""
    if names := sorted(folder.name for folder in path.parent.glob("checkpoint-*")):
        hint = f"That folder has {listed(names[::-1])}."
    raise ConfigError(f"There is no checkpoint {path}.", hint=hint)
