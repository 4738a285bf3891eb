# SPDX-License-Identifier: Apache-2.0
"""What `ns aggregate_answers DIR` does: the majority answer of several runs, as the expected answer or as one run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.terminal import counted
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.options import AtLeastOne, DryRun, doc

if TYPE_CHECKING:
    from newskills.run.reporting.aggregation import Way

FILL, EXTRACT = "fill", "extract"


class AggregateAnswersOptions(Struct, frozen=True, kw_only=True):
    input_dir: Annotated[str, doc("folder of the runs", {"positional": True})]
    mode: Annotated[
        Literal["fill", "extract"],
        doc(
            "fill: write all records again, with the common answer as expected_answer; extract: write one record "
            "per problem, which gives that answer, to output-agg.jsonl"
        ),
    ] = "fill"
    input_files: Annotated[
        list[str], doc("files of the runs in that folder, as names or patterns (default: output-rs*.jsonl)")
    ] = []
    output_dir: Annotated[str | None, doc("folder to write to (extract: default is the folder of the runs)")] = (
        None
    )
    fill_key: Annotated[
        str | None, doc("field that gets the answer (default: expected_answer; extract: predicted_answer)")
    ] = None
    ignore_if_not_none: Annotated[bool, doc("leave records alone whose field has a value already")] = False
    fill_symbolic_correct: Annotated[
        bool, doc("set symbolic_correct to whether a record gives the common answer; otherwise it is removed")
    ] = True
    use_majority_rm_score: Annotated[bool, doc("each vote counts as much as its reward_model_score")] = False
    use_highest_rm_score: Annotated[bool, doc("the answer with the highest reward_model_score wins")] = False
    require_num_files: Annotated[
        AtLeastOne | None, doc("number of files that must be found, for pipelines in which one may be missing")
    ] = None
    dry_run: DryRun = False


class AggregatedAnswers(Struct, frozen=True, kw_only=True):
    """The files that were written; how many problems were aggregated (or changed), and how many records changed."""

    outputs: list[Path]
    problems: int
    records: int = 0


def aggregate_answers(parsed: Parsed[AggregateAnswersOptions]) -> AggregatedAnswers | None:
    """Aggregate for Python, and return what was written, None for a dry run. Raises ConfigError, DataError,
    StorageError."""
    from newskills.run.reporting.aggregation import AGGREGATED_FILE, FillOptions, extract_best, fill_answers

    options = parsed.options
    way = _aggregation_way(options)
    folder = Path(options.input_dir)
    files = _find_run_files(folder, options)
    if options.mode == FILL and options.output_dir is None:
        raise ConfigError("--mode=fill needs a folder for the filled files.", hint="Add --output_dir=DIR.")
    target = folder if options.output_dir is None else Path(options.output_dir)
    outputs = [target / AGGREGATED_FILE]
    if options.mode == FILL:
        outputs = [target / file.relative_to(folder) for file in files]
    if options.dry_run:
        show_dry_run([*(("reads", path, "") for path in files), *(("writes", path, way) for path in outputs)])
        return None
    for path in outputs:
        path.parent.mkdir(parents=True, exist_ok=True)
    if options.mode == EXTRACT:
        problems = extract_best(files, outputs[0], way, options.fill_key or "predicted_answer")
        sys.stdout.write(f"{outputs[0]}: {counted(problems, 'problem')}\n")
        return AggregatedAnswers(outputs=outputs, problems=problems)
    filling = FillOptions(
        key=options.fill_key or "expected_answer",
        keep_filled=options.ignore_if_not_none,
        verdict=options.fill_symbolic_correct,
    )
    problems, records = fill_answers(files, outputs, way, filling)
    sys.stdout.write(
        f"{target}: {counted(len(files), 'file')}; changed: {counted(problems, 'problem')}, "
        f"{counted(records, 'record')}\n"
    )
    return AggregatedAnswers(outputs=outputs, problems=problems, records=records)


def _aggregation_way(options: AggregateAnswersOptions) -> Way:
    if options.use_majority_rm_score and options.use_highest_rm_score:
        raise ConfigError("--use_majority_rm_score and --use_highest_rm_score exclude each other.")
    if options.use_majority_rm_score:
        return "majority_rm"
    if options.use_highest_rm_score:
        return "highest_rm"
    return "majority"


def _find_run_files(folder: Path, options: AggregateAnswersOptions) -> list[Path]:
    """Return the files to read. Raises DataError where there are none, or another number than must be."""
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}.")
    from newskills.run.reporting.results import output_files

    patterns = [pattern for text in options.input_files for pattern in text.replace(",", " ").split()]
    if patterns:
        matching = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
        files = sorted(matching, key=lambda path: (len(path.name), path))
    else:
        files = list(output_files(folder))
    if not files:
        raise DataError(
            f"{folder} has no files {', '.join(patterns) or 'output-rs*.jsonl'}.",
            hint="Name them, relative to the folder: --input_files=…",
        )
    wanted = options.require_num_files
    if wanted not in (None, len(files)):
        raise DataError(f"{folder} has {counted(len(files), 'file')}, but --require_num_files={wanted}.")
    return files
