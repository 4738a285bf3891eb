# SPDX-License-Identifier: Apache-2.0
"""What `ns scan DIR` does: scanners by rule and by model over all transcripts, with results beside the records."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.records import Row
from newskills.base.store import file_digest, write_rows
from newskills.base.terminal import counted
from newskills.config.command_line import Parsed
from newskills.config.values import Text
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.json_output import print_json
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import split_names
from newskills.pipelines.results.reader_models import (
    AskedModels,
    RequestRows,
    ask_models,
    asking_digest,
    model_names,
    replies_of,
)
from newskills.pipelines.results.scan_options import ScanOptions
from newskills.run.records.completeness import row_count
from newskills.run.reporting.results import BenchmarkResults, file_parts
from newskills.view.labels import LabelledSample, read_labelled
from newskills.view.scans import SCANNERS
from newskills.view.scans.agreement import ScanAgreement, scan_agreements
from newskills.view.scans.files import ScanHead, made_folder, scan_folder
from newskills.view.scans.finding import Finding
from newskills.view.scans.question import (
    PROMPT,
    TranscriptQuestion,
    combine_verdicts,
    load_question,
    read_reply,
    request_rows,
)
from newskills.view.scans.reading import SampleRow, chosen_below, sample_rows
from newskills.view.scans.scanning import (
    LabelFiles,
    ScanResult,
    ScanTally,
    scan_by_rules,
    scanner_name,
    write_head,
)
from newskills.view.scans.shown import as_text
from newskills.view.scans.transcript import Transcript

QUESTION_ENDINGS = (".yaml", ".yml")


class Scan(Struct, frozen=True, kw_only=True):
    """What scanners said: one result for each scanner and benchmark, and, with labelled samples, how they agree."""

    results: tuple[ScanResult, ...]
    agreement: tuple[ScanAgreement, ...] = ()
    notes: tuple[str, ...] = ()


def run(parsed: Parsed[ScanOptions]) -> int:
    """Scan, and print what was reported. Raises NewskillsError."""
    if parsed.options.dry_run:
        _show_dry_run(_plan_scan(parsed))
        return 0
    done, asking = _run_scan(parsed)
    for note in done.notes:
        print_note(note)
    if parsed.options.json:
        print_json(done)
    else:
        sys.stdout.write(as_text(done.results, done.agreement, parsed.options.results_dir))
    if asking.exit_code:
        sys.stderr.write(f"{asking.message}\n")
    return asking.exit_code


def scan_transcripts(parsed: Parsed[ScanOptions]) -> Scan | None:
    """Scan for Python, None for a dry run. Raises NewskillsError, also where a model left samples without an answer."""
    if parsed.options.dry_run:
        _show_dry_run(_plan_scan(parsed))
        return None
    done, asking = _run_scan(parsed)
    if asking.exit_code:
        raise NewskillsError(asking.message)
    return done


class ScanPlan(NamedTuple):
    """What is scanned by which scanners, all checked as far as that needs no sample."""

    items: list[BenchmarkResults]
    rules: list[str]
    questions: list[TranscriptQuestion]
    models: list[str]
    labelled: list[LabelledSample]
    notes: list[str]


def _plan_scan(parsed: Parsed[ScanOptions]) -> ScanPlan:
    options = parsed.options
    wanted = split_names(options.benchmarks)
    specs = options.scanners or list(SCANNERS.built_in())
    questions = [load_question(Path(spec)) for spec in specs if spec.endswith(QUESTION_ENDINGS)]
    rules = [spec for spec in specs if not spec.endswith(QUESTION_ENDINGS)]
    if (options.model or parsed.overrides) and not questions:
        raise ConfigError("--model and ++ keys are for questions, and no scanner is a YAML file.")
    for spec in rules:
        scanner_name(spec)
        SCANNERS.get(spec)
    notes: list[str] = []
    labelled: list[LabelledSample] = []
    if options.labels:
        labelled = read_labelled(Path(options.labels))
    return ScanPlan(
        items=chosen_below(Path(options.results_dir), wanted, notes),
        rules=rules,
        questions=questions,
        models=model_names(options) if questions else [],
        labelled=labelled,
        notes=notes,
    )


def _show_dry_run(plan: ScanPlan) -> None:
    steps: list[Step] = []
    for item in plan.items:
        samples = sum(row_count(part) for file in item.files for part in file_parts(file))
        steps.append(("reads", item.folder, counted(samples, "sample")))
        for model in plan.models:
            steps += [
                ("asks", model, f"{question.name}: {counted(samples * question.orders, 'request')}")
                for question in plan.questions
            ]
        names = [*map(scanner_name, plan.rules), *(question.name for question in plan.questions)]
        steps += [("writes", scan_folder(item.files[0], name), "") for name in names]
    show_dry_run(steps)


def _run_scan(parsed: Parsed[ScanOptions]) -> tuple[Scan, AskedModels]:
    options, plan = parsed.options, _plan_scan(parsed)
    items, labelled, notes = plan.items, plan.labelled, plan.notes
    results = scan_by_rules(items, plan.rules, options.time_limit, notes)
    asking = AskedModels(models=())
    for question in plan.questions:
        answered, last_asking = _ask_question(parsed, question, items, notes)
        results += answered
        if last_asking.exit_code:
            asking = last_asking
    agreement = []
    if options.labels:
        agreement = scan_agreements(labelled, items, [result.scanner for result in results])
    whole = Scan(results=tuple(results), agreement=tuple(agreement), notes=tuple(dict.fromkeys(notes)))
    return whole, asking


def _ask_question(
    parsed: Parsed[ScanOptions], question: TranscriptQuestion, items: Sequence[BenchmarkResults], notes: list[str]
) -> tuple[list[ScanResult], AskedModels]:
    """Ask a question of all samples, check the replies against the transcripts, and keep what they say."""
    requests = [
        (item, output, _write_request(question, item, output, parsed.overrides, notes))
        for item in items
        for output in item.files
    ]
    asking = ask_models(parsed.options, parsed.overrides, [rows for *_, rows in requests], PROMPT, "scan")
    results: list[ScanResult] = []
    for item in items:
        tally = ScanTally(question.name, item)
        with LabelFiles() as files:
            for _, output, rows in (request for request in requests if request[0] is item):
                replies = {model: replies_of(rows, model) for model in asking.models}
                for number, sample in enumerate(_file_samples(item, output, [])):
                    transcript = _transcript_of(sample)
                    verdicts = dict(_read_verdicts(question, number, transcript, replies))
                    line = combine_verdicts(str(sample.row.get("id")), verdicts)
                    tally.add(line, sample.seed)
                    files.write(output, question.name, replace(line, place=sample.place))
        head = ScanHead(
            scanner=question.name,
            kind="model",
            looks_for=question.question,
            labels=tuple(question.labels),
            models=asking.models,
            version=question.digest,
        )
        write_head(item, head)
        results.append(tally.result())
    return results, asking


def _write_request(
    question: TranscriptQuestion,
    item: BenchmarkResults,
    output: Path,
    overrides: Mapping[str, Text],
    notes: list[str],
) -> RequestRows:
    """Write the rows that ask about an output file, unless they are there: their folder is named after all that
    decides on them."""
    number = item.seeds[item.files.index(output)]
    seed = "" if number is None else f"-rs{number}"
    settings = [question.digest, file_digest(output), asking_digest(overrides)]
    digest = hashlib.blake2b(msgspec.json.encode(settings), digest_size=6).hexdigest()
    folder = scan_folder(output, question.name) / f"requests{seed}-{digest}"
    if not (folder / "rows.jsonl").exists():
        write_rows(made_folder(folder) / "rows.jsonl", _question_rows(question, item, output, notes))
    return RequestRows(folder / "rows.jsonl", folder)


def _question_rows(
    question: TranscriptQuestion, item: BenchmarkResults, output: Path, notes: list[str]
) -> Iterator[Row]:
    for number, sample in enumerate(_file_samples(item, output, notes)):
        yield from request_rows(question, number, _transcript_of(sample))


def _file_samples(item: BenchmarkResults, output: Path, notes: list[str]) -> Iterator[SampleRow]:
    return sample_rows(item._replace(files=(output,)), notes)


def _transcript_of(sample: SampleRow) -> Transcript:
    return Transcript(**sample.for_worker)


def _read_verdicts(
    question: TranscriptQuestion,
    number: int,
    transcript: Transcript,
    replies: Mapping[str, Mapping[str, str | None]],
) -> Iterator[tuple[str, Finding | str]]:
    """Yield what each model said in each order of the labels."""
    for model, replies_of_model in replies.items():
        for order in range(1, question.orders + 1):
            asker = model
            if question.orders > 1:
                asker = f"{model}, order {order}"
            yield asker, read_reply(question, replies_of_model.get(f"{number}-{order}"), transcript)
