# SPDX-License-Identifier: Apache-2.0
"""`./mine.yaml` or `./questions.csv` → a benchmark. Only the first rows of files of this machine are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from newskills.base.benchmark import Judge, Source
from newskills.base.errors import ConfigError, DataError, suggest
from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.benchmarks.files.asking import asking_of, check_grader, check_solver, grading_of, judge_of
from newskills.benchmarks.files.describe import description_of
from newskills.benchmarks.files.described import DescribedBenchmark
from newskills.benchmarks.files.format import BenchmarkFile, Columns, Kind
from newskills.benchmarks.files.guess import Guess, UndecidedError, column_names, guess_kind_and_columns
from newskills.benchmarks.files.kinds import KINDS, ROLES, SYNONYMS
from newskills.benchmarks.files.names import is_table, is_text_file, name_of_file
from newskills.benchmarks.files.places import examples_source, first_rows, source_of
from newskills.benchmarks.files.positions import KeyPath, MarkedDocument, read_document
from newskills.benchmarks.files.rows import RowRules, columns_of, options_of
from newskills.benchmarks.files.rubrics import ROLE, rubric_of
from newskills.benchmarks.files.words import TableWords
from newskills.benchmarks.listing import catalog_entries
from newskills.prompts.official.table import NEWSKILLS

_NEARLY = 0.8
"""Similarity of a misspelt role; other names become fields of rows."""


class _Described(NamedTuple):
    """A description with what its errors need: where it stands, and whether it was typed at a command line."""

    file: BenchmarkFile
    document: MarkedDocument
    home: Path
    typed: bool


def load_described(name: str, words: TableWords | None = None) -> DescribedBenchmark:
    """Return the benchmark that the file `name` describes or, for CSV and its like, is.

    Raises ConfigError naming file, line and column of what does not fit, and what to write where two readings fit;
    DataError for data that cannot be read.
    """
    path = Path(name).expanduser().absolute()
    if not path.is_file():
        raise ConfigError(f"There is no file {path} to load the benchmark from.")
    if is_table(name):
        words = words or TableWords()
        kind: Kind | None = words.kind
        if kind is None and is_text_file(name):
            kind = "text"
        file = BenchmarkFile(data=path.name, columns=words.columns, kind=kind, answer_as=words.answer_as)
        described = _Described(file, MarkedDocument(path, {}, {}, {}), path.parent, typed=True)
    else:
        document = read_document(path)
        described = _Described(description_of(document), document, path.parent, typed=False)
    return _benchmark(described, path)


def _benchmark(described: _Described, path: Path) -> DescribedBenchmark:
    file, document, home, _ = described
    sources = [source_of(file.data, document, ("data",), home, "test")]
    if file.few_shot is not None:
        sources.append(examples_source(file.few_shot, file.data, document, home))
        if msgspec.structs.replace(sources[1], split=sources[0].split) == sources[0]:
            raise document.fault(
                ("few_shot",), "the examples are the questions themselves; take them from other data."
            )
    rows = _rows_seen(described, sources[0], ("data",))
    if file.few_shot is not None:
        _rows_seen(described, sources[1], ("few_shot", "data"))
    seen = _kind_and_columns(described, rows)
    kind = KINDS[seen.kind]
    rules = RowRules(
        kind=seen.kind,
        columns=seen.columns,
        fields=file.fields,
        answer_as=seen.answer_as,
        rubric=_rubric_criteria(described, seen),
    )
    asking = asking_of(file, document, home, kind, rules, rows)
    grading = grading_of(file, document, home, kind)
    if file.solver:
        check_solver(file.solver, document)
    judge: Judge | None = judge_of(file, document, home, kind)
    if not grading.grader and judge is None:
        raise document.fault(
            ("grader",),
            f"nobody decides whether an answer is correct (kind {seen.kind}).",
            hint="Write grader: NAME (ns list graders), or judge: true.",
        )
    return DescribedBenchmark(
        name=_results_name(described, path),
        category="external",
        title=file.title or f"questions of {path.name}",
        sources=tuple(sources),
        row=msgspec.structs.replace(rules, kept=tuple(sorted(rules.used_columns() & asking.fields))),
        prompt=asking.prompt,
        grader=grading.grader,
        grader_config=grading.grader_config,
        metric=grading.metric,
        metric_config=grading.metric_config,
        judge=judge,
        solver=file.solver or kind.solver,
        defaults={"prompt_source": NEWSKILLS, **kind.settings, **asking.defaults, **file.settings},
        samples=file.samples,
        chance=_guessing_score(seen, rows) if file.chance is None else file.chance,
        needs_sandbox=kind.needs_sandbox,
        licence=file.licence,
        homepage=file.homepage,
        home=str(home),
        place=f"files.{file.name or _name_of_place(path)}",
        guesses=tuple(f"{path.name}: {reason}" for reason in seen.reasons),
    )


def _rubric_criteria(described: _Described, seen: Guess) -> tuple[Row, ...]:
    """Return the criteria of all rows. Raises ConfigError where there are none at all, or nobody asks for them."""
    file, document, home, _ = described
    rubric = rubric_of(file, document, home)
    if rubric and seen.kind != "rubric":
        raise document.fault(("rubric",), f"kind {seen.kind} takes no rubric.", hint="Write kind: rubric.")
    if seen.kind == "rubric" and not rubric and ROLE not in seen.columns:
        raise document.fault(
            (), "there are no criteria.", hint="Write rubric: ./rubric.yaml, or columns: {rubrics: COLUMN}."
        )
    return rubric


def _name_of_place(path: Path) -> str:
    """Return the name of the folder of prepared rows: many folders have a `test.csv`."""
    return f"{name_of_file(path)}-{blake2b(str(path).encode(), digest_size=4).hexdigest()}"


def _results_name(described: _Described, path: Path) -> str:
    """Return the name of the results. Raises ConfigError where it is that of a benchmark of newskills."""
    built_in = {fold(name) for entry in catalog_entries() for name in (entry.name, *entry.aliases)}
    name = described.file.name
    if name is None:
        name = name_of_file(path)
        if fold(name) in built_in:
            return f"{name}-file"
        return name
    if fold(name) in built_in:
        raise described.document.fault(
            ("name",), f"'{name}' is the name of a benchmark of newskills; choose another name."
        )
    return name


def _rows_seen(described: _Described, source: Source, path: KeyPath) -> list[Row]:
    """Return the first rows of files of this machine. Raises ConfigError at the `path` that names them."""
    try:
        return first_rows(source, described.home)
    except DataError as error:
        if described.typed:
            raise
        hint = error.hint
        if source.format == "rows" and source.path.endswith(".json") and "invalid JSON" in error.message:
            hint = (
                "Where the list of rows is inside an object, name the keys that lead to it: records: [data, rows]"
            )
        raise described.document.fault(path, error.message, hint=hint) from error


def _kind_and_columns(described: _Described, rows: Sequence[Row]) -> Guess:
    """Return kind, columns and how answers name options: as the file says or, where it does not, as the rows show."""
    file, document, _, typed = described
    kind = file.kind or ("rubric" if file.rubric is not None else _kind_of_grader(file, document))
    columns = dict(file.columns) if kind == "free" else _by_role(described)
    if not rows:
        if kind is None:
            raise document.fault(
                (),
                "say which kind of questions these are: data from elsewhere are not looked at before they are "
                f"prepared. The kinds are {', '.join(KINDS)}.",
                hint="For example: kind: choice",
            )
        columns = {role: role for role in KINDS[kind].needs} | columns
        return Guess(kind, columns, file.answer_as, ())
    _check_columns(described, rows)
    try:
        return guess_kind_and_columns(rows, kind, columns, file.answer_as)
    except UndecidedError as undecided:
        write = f"++{undecided.key}=" if typed else f"{undecided.key}: "
        ways = "\n".join(
            f"  {_format_reading(write, value, typed)}   {meaning}"
            for value, meaning in undecided.readings.items()
        )
        raise document.fault((), f"{undecided}. Say which:\n{ways}") from undecided
    except LookupError as error:
        (reason,) = error.args
        if typed:
            example = "++columns='{question: COLUMN, answer: COLUMN}'"
        else:
            example = "columns: {question: COLUMN}"
        hint = f"For example: {example}. {_without_header(rows)}".strip()
        raise document.fault(("columns",), f"{reason}", hint=hint) from error


def _format_reading(write: str, value: str, typed: bool) -> str:
    if typed and value.startswith("{"):
        return f"{write}'{value}'"
    return f"{write}{value}"


def _without_header(rows: Sequence[Row]) -> str:
    """Return what to write where the first line of a table looks like a row."""
    names = column_names(rows[:1])
    looks_like_cells = any(len(name) > 40 or name.strip().isdecimal() or name.endswith("?") for name in names)
    if not looks_like_cells:
        return ""
    return "If the file has no line with names: data: {path: FILE.csv, header: [question, answer]} in a YAML file."


def _kind_of_grader(file: BenchmarkFile, document: MarkedDocument) -> Kind | None:
    """Return the kind that a named grader stands for; None where the rows have to show it. Raises ConfigError for one
    that there is not."""
    name = file.grader
    if isinstance(name, dict):
        name = name.get("name")
    if not name:
        return None
    check_grader(str(name), document, file)
    kinds: list[Kind] = [kind for kind, spec in KINDS.items() if fold(spec.grader) == fold(str(name))]  # type: ignore[misc]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        return None
    return "free"


def _by_role(described: _Described) -> dict[str, Columns]:
    """Return the columns by role. Raises ConfigError for a name that is nearly that of a role, which is meant then."""
    file, document, _, typed = described
    columns = {SYNONYMS.get(role, role): where for role, where in file.columns.items()}
    for name in file.columns:
        if name in (*ROLES, *SYNONYMS):
            continue
        near = get_close_matches(name.lower(), ROLES, cutoff=_NEARLY)
        if near and near[0] not in columns:
            where = "++columns: " if typed else ""
            raise document.fault(
                ("columns", name), f"{where}'{name}' is not a role; did you mean '{near[0]}'?", at_key=True
            )
    return columns


def _check_columns(described: _Described, rows: Sequence[Row]) -> None:
    """Raise ConfigError for a column that the first rows do not have."""
    header = column_names(rows)
    for role, where in described.file.columns.items():
        for name in columns_of(where):
            if name not in header and name.partition(".")[0] not in header:
                raise described.document.fault(
                    ("columns", role), f"there is no column '{name}'{suggest(name, header)}"
                )


def _guessing_score(seen: Guess, rows: Sequence[Row]) -> float:
    """Return the score of random guessing: the mean of 1 / number of options over the rows looked at."""
    if seen.kind == "yes_no":
        return 0.5
    if seen.kind not in ("choice", "likelihood"):
        return 0.0
    rules = RowRules(kind="free", columns={"options": seen.columns["options"]})
    shares = []
    for row in rows:
        try:
            shares.append(1 / len(options_of(rules.value(row, "options"), fewest=1)))
        except (KeyError, ValueError):
            continue  # preparing names the row, and what is wrong with it
    if shares:
        return round(sum(shares) / len(shares), 4)
    return 0.0
