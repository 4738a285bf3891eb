# SPDX-License-Identifier: Apache-2.0
"""A comparison as text of 80 columns, and as the blocks of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from newskills.base import tables
from newskills.base.tables import WIDTH, stacked_blocks
from newskills.base.terminal import counted, printable
from newskills.view.comparison.changes import CHANGE_WORDS
from newskills.view.comparison.paired_runs import BenchmarkComparison, Comparison, p_text
from newskills.view.documents.document import Block, Fold, Heading, Paragraph, Table
from newskills.view.stories import STORY_NAMES

_MAX_SHOWN_IDS = 5
TABLE_HEAD = ("benchmark", "before", "after", "points", "95 % interval", "p", "verdict")


def as_text(comparison: Comparison, flips: int) -> str:
    """Render a comparison; `flips`: how many problems that changed are listed for each benchmark."""
    lines: list[str] = []
    for before, after in dict.fromkeys((item.before.run, item.after.run) for item in comparison.benchmarks):
        items = [item for item in comparison.benchmarks if (item.before.run, item.after.run) == (before, after)]
        lines += [*wrap_text(f"before: {before}", "  "), *wrap_text(f"after:  {after}", "  "), ""]
        lines += align_columns([TABLE_HEAD, *map(_comparison_row, items)])
        for item in items:
            lines += [
                "",
                item.benchmark,
                *(line for text in _result_sentences(item) for line in wrap_text(text, "  ")),
            ]
            lines += _flip_lines(item, flips)
        lines.append("")
    for name, why in comparison.left_out.items():
        lines += wrap_text(f"not compared: {name}: {why}", "  ")
    for note in comparison.notes:
        lines += wrap_text(f"note: {note}", "  ")
    return printable("\n".join(lines).rstrip("\n")) + "\n"


def _comparison_row(item: BenchmarkComparison) -> tuple[str, ...]:
    return (
        item.benchmark,
        f"{item.before.value:.2f}",
        f"{item.after.value:.2f}",
        f"{item.difference:+.1f}",
        f"[{item.low:.1f}, {item.high:.1f}]",
        p_text(item.p_adjusted).removeprefix("= "),
        item.verdict,
    )


def align_columns(rows: Sequence[Sequence[str]], width: int = WIDTH) -> list[str]:
    """Align cells below each other in lines of at most `width` columns; what does not fit follows in further
    blocks."""
    blocks = stacked_blocks(rows, width, "  ")
    return [line.rstrip() for block in blocks for line in ("", *block)][1:]


def shorten_text(text: str, longest: int) -> str:
    """Shorten `text` to at most `longest` characters."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - 1]}…"


def _result_sentences(item: BenchmarkComparison) -> Iterator[str]:
    yield item.sentence
    not_worse = "excluded" if item.not_worse else "not excluded"
    yield f"A loss of more than {counted_points(item.margin)} is {not_worse} (95 % interval)."
    yield (
        f"A true difference of {item.minimum_detectable:.1f} points would be detected in 80 % of such comparisons "
        f"({item.method})."
    )
    if item.gained or item.lost:
        gain, loss = CHANGE_WORDS[item.change]
        yield f"Problems that changed: {item.gained:,} {gain}, {item.lost:,} {loss}."
    for run, ids in ((item.before.run, item.only_before), (item.after.run, item.only_after)):
        if ids:
            names = ", ".join(ids[:_MAX_SHOWN_IDS])
            if len(ids) > _MAX_SHOWN_IDS:
                names += ", …"
            yield f"{counted(len(ids), 'problem')} only in {run}, left out: {names}."
    for difference in item.differs:
        yield f"{difference.kind} differs: {difference}"


def counted_points(points: float) -> str:
    if points == 1:
        return "1 point"
    return f"{points:g} points"


def _flip_lines(item: BenchmarkComparison, most: int) -> list[str]:
    if not item.flips or not most:
        return []
    rows = _flip_rows(item, most)
    lines = ["", *(f"  {line}" for line in align_columns(rows, WIDTH - 2))]
    if len(item.flips) > most:
        lines.append(f"  and {len(item.flips) - most:,} more (--flips N shows more, --json all)")
    return lines


def _flip_rows(item: BenchmarkComparison, most: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("problem", "changed", "why the wrong one failed", "seed of that")]
    for flip in item.flips[:most]:
        turn = flip.change
        if item.change == "verdict":
            turn = f"{flip.before} → {flip.after}"
        seed = "—" if flip.seed is None else str(flip.seed)
        rows.append((flip.id, turn, STORY_NAMES[flip.story], seed))
    if all(flip.seed is None for flip in item.flips):
        return [row[:-1] for row in rows]
    return rows


def wrap_text(text: str, indent: str) -> list[str]:
    """Wrap `text` at 80 columns, with following lines indented by two more."""
    return tables.wrap_text(text, WIDTH, indent, "  ", break_words=True)


def comparison_blocks(comparison: Comparison, flips: int, level: int = 2) -> list[Block]:
    """Return the comparison as blocks of a page, with headings of this `level` and at most `flips` changed problems of
    each benchmark."""
    page: list[Block] = [
        Paragraph(
            f"{comparison.runs[0].name} is compared with {', '.join(run.name for run in comparison.runs[1:])}, "
            "paired by sample. p-values are adjusted for all comparisons of this page (Holm)."
        ),
        Table(
            [("run", *TABLE_HEAD), *((item.after.run, *_comparison_row(item)) for item in comparison.benchmarks)]
        ),
    ]
    for item in comparison.benchmarks:
        details: list[Block] = [Paragraph(" ".join(_result_sentences(item)))]
        if item.stories:
            stories = sorted(item.stories.items(), key=lambda story: (-story[1], story[0]))
            details.append(
                Table([("problems that changed", "number"), *((name, f"{n:,}") for name, n in stories)])
            )
        if item.flips and flips:
            details.append(Table(_flip_rows(item, flips)))
        title = f"{item.benchmark}: {item.before.run} → {item.after.run}"
        page.append(Fold(title, details, level, is_open=bool(flips)))
    if comparison.left_out or comparison.notes:
        page.append(Heading("Left out", level))
        page += [Paragraph(f"{name}: {why}") for name, why in comparison.left_out.items()]
        page += [Paragraph(note) for note in comparison.notes]
    return page
