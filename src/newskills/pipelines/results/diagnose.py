# SPDX-License-Identifier: Apache-2.0
"""What `ns diagnose DIR [DIR2]` does: groups of failures as a page, as Markdown and as JSON."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.store import atomic_write, write_json, write_rows
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
    replies_of,
)
from newskills.pipelines.results.scan_options import DiagnoseOptions, ReaderOptions
from newskills.run.reporting.results import SCANS_FOLDER
from newskills.view.diagnosis.claims import PROMPT, claim_rows, with_claims
from newskills.view.diagnosis.diagnose import GroupChange, RunDiagnosis, diagnose_run, group_changes
from newskills.view.diagnosis.groups import FailureGroup
from newskills.view.diagnosis.shown import as_text, diagnosis_blocks
from newskills.view.documents.document import as_html, as_markdown
from newskills.view.scans.files import made_folder
from newskills.view.scans.reading import SampleRow, chosen_benchmarks


class FailureReport(Struct, frozen=True, kw_only=True):
    """Why a run fails. `other`: the second run, and `changes`: the groups of both; `files`: HTML, Markdown, JSON."""

    run: RunDiagnosis
    other: RunDiagnosis | None = None
    changes: tuple[GroupChange, ...] = ()
    model: str | None = None
    files: tuple[str, ...] = ()


def run(parsed: Parsed[DiagnoseOptions]) -> int:
    """Write the report, print the tables and where it lies. Raises NewskillsError."""
    if parsed.options.dry_run:
        _show_dry_run(parsed)
        return 0
    made, asking = _diagnose_folders(parsed)
    for side in (made.run, made.other):
        if side is not None:
            for note in side.notes:
                print_note(note)
    if parsed.options.json:
        print_json(made)
    else:
        other = made.other.run if made.other else ""
        sys.stdout.write(as_text(made.run, made.changes, other))
        sys.stdout.write("".join(f"{path}\n" for path in made.files))
    if asking.exit_code:
        sys.stderr.write(f"{asking.message}\n")
    return asking.exit_code


def diagnose_failures(parsed: Parsed[DiagnoseOptions]) -> FailureReport | None:
    """Write the report for Python, and return what it holds, None for a dry run. Raises NewskillsError."""
    if parsed.options.dry_run:
        _show_dry_run(parsed)
        return None
    made, asking = _diagnose_folders(parsed)
    if asking.exit_code:
        raise NewskillsError(asking.message)
    return made


class DiagnosisPlan(NamedTuple):
    """What is read and written, checked as far as that needs no sample."""

    folders: list[Path]
    benchmarks: tuple[str, ...]
    files: tuple[str, ...]


def _plan_diagnosis(options: DiagnoseOptions, overrides: Mapping[str, Text]) -> DiagnosisPlan:
    folders = [Path(name) for name in options.results_dirs]
    if len(folders) > 2:
        raise ConfigError(f"ns diagnose takes one folder or two, got {len(folders)}.")
    if len(options.model) > 1:
        raise ConfigError("--model: one model writes the claims.")
    if overrides and not options.model:
        raise ConfigError("++ keys are for the model that writes claims: give --model.")
    wanted = split_names(options.benchmarks)
    for folder in folders:
        chosen_benchmarks(folder, wanted)
    output = Path(options.output or folders[0] / "diagnosis")
    files = tuple(str(output.with_name(f"{output.name}.{ending}")) for ending in ("html", "md", "json"))
    return DiagnosisPlan(folders, wanted, files)


def _show_dry_run(parsed: Parsed[DiagnoseOptions]) -> None:
    plan = _plan_diagnosis(parsed.options, parsed.overrides)
    asks: list[Step] = [("asks", model, "a request for each group of failures") for model in parsed.options.model]
    writes: list[Step] = [("writes", file, "") for file in plan.files]
    show_dry_run([*(("reads", folder, "") for folder in plan.folders), *asks, *writes])


def _diagnose_folders(parsed: Parsed[DiagnoseOptions]) -> tuple[FailureReport, AskedModels]:
    options = parsed.options
    folders, wanted, files = _plan_diagnosis(options, parsed.overrides)
    asking = AskedModels(models=())
    kept: dict[tuple[str, FailureGroup], list[SampleRow]] = {}
    first = diagnose_run(folders[0], wanted, kept)
    if options.model and kept:
        first, asking = _ask_claims(options, parsed.overrides, folders[0], first, kept)
    other = None
    changes: tuple[GroupChange, ...] = ()
    if len(folders) > 1:
        other = diagnose_run(folders[1], wanted)
        changes = tuple(group_changes(first, other))
    made = FailureReport(
        run=first,
        other=other,
        changes=changes,
        model=options.model[0] if options.model else None,
        files=files,
    )
    _write_report(made)
    return made, asking


def _ask_claims(
    options: ReaderOptions,
    overrides: Mapping[str, Text],
    folder: Path,
    diagnosis: RunDiagnosis,
    kept: dict[tuple[str, FailureGroup], list[SampleRow]],
) -> tuple[RunDiagnosis, AskedModels]:
    """Ask the model about each group, and keep the claims that hold. The folder of the requests is named after them."""
    rows = claim_rows(kept)
    digest = hashlib.blake2b(msgspec.json.encode([rows, asking_digest(overrides)]), digest_size=6).hexdigest()
    place = made_folder(folder / SCANS_FOLDER / "diagnosis" / f"requests-{digest}")
    write_rows(place / "rows.jsonl", rows)
    requests = RequestRows(place / "rows.jsonl", place)
    asking = ask_models(options, overrides, [requests], PROMPT, "diagnose")
    return with_claims(diagnosis, kept, replies_of(requests, asking.models[0])), asking


def _write_report(made: FailureReport) -> None:
    title = f"Why {made.run.run} fails"
    page = diagnosis_blocks(made.run, made.changes, made.other)
    html, markdown, json = map(Path, made.files)
    made_folder(html.parent)
    for path, text in ((html, as_html(title, page)), (markdown, as_markdown(title, page))):
        with atomic_write(path) as file:
            file.write(text.encode("utf-8", "replace"))
    write_json(json, made)
