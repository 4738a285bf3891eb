# SPDX-License-Identifier: Apache-2.0
"""The data card: where a training set comes from, what each step removed and changed, and what it holds.

Nothing in it depends on time, machine or number of workers: the same build gives the same card.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills._version import __version__
from newskills.base.records import Row
from newskills.base.store import atomic_write, write_json
from newskills.config.fields import leaves
from newskills.train.data.chunks import ChunkCounts
from newskills.train.data.job import BuildJob
from newskills.train.data.overlap import Overlap
from newskills.train.data.partitions import CODE_TEXT, PartitionCounts

DUPLICATES, REPEATED, UNSAMPLED = "duplicates", "repeated outputs", "not sampled"


class Step(Struct, frozen=True, kw_only=True):
    """Rows that a step removed, and changed."""

    name: str
    removed: int
    changed: int = 0


class LengthSummary(Struct, kw_only=True):
    """Of texts, in characters."""

    total: int = 0
    shortest: int = 0
    longest: int = 0
    count: int = 0

    def add(self, lengths: Sequence[int]) -> None:
        if not lengths:
            return
        shortest, longest = min(lengths), max(lengths)
        self.shortest = min(self.shortest, shortest) if self.count else shortest
        self.longest = max(self.longest, longest)
        self.total += sum(lengths)
        self.count += len(lengths)

    @property
    def mean(self) -> float:
        if self.count:
            return self.total / self.count
        return 0.0


class Card(Struct, kw_only=True):
    """`rows_read` = rows removed by `steps` + `rows_written`. `problems`: distinct ones before sampling."""

    newskills: str
    recipe: str
    output: str
    settings: Row
    inputs: list[Row] = []
    rows_read: int
    steps: list[Step]
    rows_kept: int
    problems: int
    rows_written: int = 0
    bytes: int = 0
    sha256: str = ""
    input_chars: LengthSummary = msgspec.field(default_factory=LengthSummary)
    output_chars: LengthSummary = msgspec.field(default_factory=LengthSummary)
    compared_with: Sequence[str] = ()
    overlap: Overlap | None = None

    @classmethod
    def of(
        cls,
        job: BuildJob,
        read: ChunkCounts,
        counts: PartitionCounts,
        *,
        names: Sequence[str],
        compared: Sequence[str],
    ) -> Card:
        """Make the card with all but what writing adds."""
        steps = [Step(name=reason, removed=count) for reason, count in sorted(read.left_out.items())]
        if job.config.deduplicate:
            steps.append(Step(name=DUPLICATES, removed=counts.duplicates))
        shown = [*names, *([CODE_TEXT] if job.config.filters.code_text_filter else [])]
        for name in shown:
            count = counts.filters[name]
            steps.append(Step(name=name, removed=count.removed, changed=count.changed))
        if job.config.output_key is not None:
            steps.append(Step(name=REPEATED, removed=counts.repeated_outputs))
        return cls(
            newskills=__version__,
            recipe=job.recipe_name,
            output=Path(job.config.output_path).name,
            settings=_changed_settings(job),
            rows_read=read.seen,
            steps=steps,
            rows_kept=counts.kept,
            problems=counts.problems,
            compared_with=list(compared),
            overlap=Overlap(ngram=job.overlap.ngram, share=job.overlap.share) if compared else None,
        )


def steps_of(card: Card) -> list[Step]:
    """Return the steps, and what sampling left out."""
    unsampled = card.rows_kept - card.rows_written
    if unsampled and card.rows_written:
        return [*card.steps, Step(name=UNSAMPLED, removed=unsampled)]
    return list(card.steps)


def card_files(output: Path) -> tuple[Path, Path]:
    """Return the paths (JSON, markdown) beside the output."""
    return output.with_name(f"{output.name}.card.json"), output.with_name(f"{output.name}.card.md")


def write_card(output: Path, card: Card) -> None:
    """Write the card as JSON and as a page for people. Raises StorageError."""
    machine, page = card_files(output)
    card.steps = steps_of(card)
    write_json(machine, card)
    with atomic_write(page) as file:
        file.write(card_markdown(card).encode())


def card_markdown(card: Card) -> str:
    """Return the card as a page for people."""
    lines = [f"# {card.output}", ""]
    lines.append(
        f"{card.rows_written:,} rows of {card.problems:,} problems, made with newskills {card.newskills} "
        f"(`--config-name={card.recipe}`). sha256 `{card.sha256}`."
    )
    lines += ["", "## Inputs", "", "| file | bytes | origin |", "| --- | --- | --- |"]
    lines += [
        f"| {_escape_cell(row['path'])} | {row['bytes']:,} | {_escape_cell(_format_origin(row))} |"
        for row in card.inputs
    ]
    lines += ["", "## Steps", "", "| step | removed | changed |", "| --- | --- | --- |"]
    lines += [f"| {_escape_cell(step.name)} | {step.removed:,} | {step.changed:,} |" for step in card.steps]
    lines += [f"| **rows read → written** | {card.rows_read:,} → {card.rows_written:,} | |"]
    lines += ["", "## Lengths (characters)", "", "| of | shortest | mean | longest |", "| --- | --- | --- | --- |"]
    for name, lengths in (("input", card.input_chars), ("output", card.output_chars)):
        if lengths.longest:
            lines.append(f"| {name} | {lengths.shortest:,} | {lengths.mean:,.0f} | {lengths.longest:,} |")
    if card.overlap is not None:
        lines += ["", "## Decontamination", "", _overlap_sentence(card)]
    lines += ["", "## Settings", "", "| key | value |", "| --- | --- |"]
    lines += [f"| {key} | `{_escape_cell(_format_value(value))}` |" for key, value in card.settings.items()]
    return "\n".join(lines) + "\n"


def _overlap_sentence(card: Card) -> str:
    assert card.overlap is not None
    return (
        f"Compared with {', '.join(card.compared_with)}: a problem was removed if at least "
        f"{card.overlap.share:.0%} of the sequences of {card.overlap.ngram} words of the shorter text are in both."
    )


def _format_origin(row: Row) -> str:
    return ", ".join(str(row[key]) for key in ("dataset", "split", "revision", "licence") if row.get(key))


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _changed_settings(job: BuildJob) -> Row:
    """Return the settings that differ from the keys' defaults, without the paths of inputs and output."""
    changed: Row = {}
    for path, leaf in leaves(type(job.config)).items():
        value: Any = job.config
        for name in path.split("."):
            value = getattr(value, name)
        if value != leaf.default and path not in ("output_path", "input_files", "preprocessed_dataset_files"):
            changed[path] = value
    return changed
