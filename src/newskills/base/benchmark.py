# SPDX-License-Identifier: Apache-2.0
"""A skill, written once: data + prompt + solver + grader. It evaluates, filters, rewards and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from newskills.base.records import Row

Format = Literal[
    "rows",
    "jsonl",
    "json",
    "yaml",
    "object",
    "csv",
    "tsv",
    "xml",
    "parquet",
    "arrow",
    "lines",
    "text",
    "asset",
    "generated",
]
"""One row per line, item or record, whichever form the file has (rows: JSON lines, a JSON array, CSV, TSV or Parquet,
also packed with zstd); per line (jsonl; lines: `{"text"}`), list item or key (json, yaml; items that are no objects:
`{"value"}`), record, or file (object: the file is one JSON object; text: `{"text"}`; asset: `{"asset": Asset}`, for
images and sounds)."""


class Drop(Struct, frozen=True):
    """Returned by a row mapper to leave a row out; the reason is counted and reported."""

    reason: str


OTHER_SPLIT = Drop("they belong to another split")
"""For a source that holds the rows of several splits: counted, and nothing to tell a person about."""


class Asset(Struct, frozen=True):
    """An image or a sound that a row needs; wherever a prepared row holds one, it becomes the path of its copy.

    name    path of the copy below `<data dir>/<benchmark>/assets/<split>/`
    data    its bytes; None: those of the file `name` that the source's `assets` (or format "asset") brought
    """

    name: str
    data: bytes | None = None


RowMapper = Callable[[Row, int], Row | Iterable[Row | Drop] | Drop]
"""(raw row, 0-based index) → prepared row, several rows, or `Drop` with the reason to leave it out, also for some of
several."""

Joiner = Callable[[Iterable[Row]], Iterable[Row]]
"""All raw rows of a split → the raw rows that `row` gets, where one sample is spread over several files."""

GroupScore = Callable[[Mapping[str, Mapping[str, Row]]], Mapping[str, Any]]
"""{member: {mode: {metric: value}}}, as in metrics.json → {metric: number}."""


class Source(Struct, frozen=True, kw_only=True):
    """Where the raw rows of one split come from. Sources of a split are alternatives, tried in order.

    url         https address of a file or archive; `{a,b}` in it = several files, read in that order
    path        the same on this machine, or a folder with `members`; relative to the file in which `row` is defined
    hf          data set on the Hugging Face hub, with `config` and `hf_split` (read as parquet), each of which may
                hold `{a,b}`; rows of several get `_config` and `_split`, those of several sets `_hf`; `config`
                may name its split, too (`clean/test.clean`), and `hf` of several sets both (`owner/set:clean/test`)
    github      `owner/repository`, of whose files those that match `members` are read, at `ref` (branch or tag)
    revision    commit that is fetched in place of `ref`, or of the branch named in `url`
    members     glob (`*` matches `/` too; `{a,b}`) of members of an archive or repository, in sorted order
    assets      the same for files that rows refer to by `Asset(name)`: images, sounds
    partial     a mirror may hold only some of the files: fewer rows than are known are told of, and are no fault
    columns     names for a csv without a header
    separator   what stands between the cells of a csv, where it is no comma
    quoted      cells of a csv or tsv may stand in quotes; False: a quote is a character like any other
    encoding    of csv, tsv, lines and text, where it is not UTF-8 (`cp1252`)
    records     path of keys to the list inside a json file (`("Instances",)`), or of the element in xml
    span        only these rows: 0-based, the end not included
    sha256      of the file; of several: sha256 of the lines `<sha256>  <name>` of all that are read
    beside      https address of a JSON file (one value, or one per line) that each row gets as `_beside`
    note        licence page to accept, token to set
    instead     option by which the rows may come from this machine (`--tasks=FOLDER`), for who has no network

    Each row gets `_file`, in the same form wherever it comes from: the path of its file below what is the same for all
    files of the source: the folder, the repository, the archive (of several: with the archive's own before it), the
    address or path up to the folder in which the first brace list stands, the data set on the hub
    (`<config>/<split>/<number>.parquet`). Mapped rows are prepared without it.

    One source may name several of `path`, `github`, `hf` and `url`: its rows are those of all, in this order.
    """

    split: str = "test"
    url: str = ""
    path: str = ""
    hf: str = ""
    config: str = ""
    hf_split: str = ""
    github: str = ""
    ref: str = "HEAD"
    revision: str = ""
    format: Format = "jsonl"
    members: str = ""
    assets: str = ""
    partial: bool = False
    columns: tuple[str, ...] = ()
    separator: str = ""
    quoted: bool = True
    encoding: str = ""
    records: tuple[str, ...] = ()
    span: tuple[int, int] | None = None
    sha256: str = ""
    gated: bool = False
    beside: str = ""
    note: str = ""
    instead: str = ""


class Judge(Struct, frozen=True, kw_only=True):
    """Another model that says what an answer is worth: an ordinary generation over the answers, one text for each.

    prompt          name in the prompt library; sees all fields of the answer's record
    kind            registered solver: `llm` asks about each answer; `math_judge` does not where the predicted answer
                    is missing or is the expected text, `ruled` not about rows with a `rule`; `arena` asks about both
                    orders of two answers, `turns` about each turn, `rubric` about each of the row's criteria,
                    `agentharm` what the record's `judge_questions` say
    grader          registered name: reads the verdict in the judge's text, with `grader_config`
    generation_key  field of the record that gets the judge's text
    defaults        `++` options of the judge that differ from the general defaults
    model, server_type, server_address  the benchmark's usual judge; empty = the user names one
    model_defaults  further `++` options, where it is that usual judge that is asked
    """

    prompt: str = "judge/math"
    kind: str = "llm"
    grader: str = "judgement"
    grader_config: Row = {}
    generation_key: str = "judgement"
    defaults: Row = {}
    model: str = ""
    server_type: str = ""
    server_address: str = ""
    model_defaults: Row = {}


class Option(Struct, frozen=True, kw_only=True):
    """An option of `ns prepare_data` that a benchmark has for itself: `--name`, `--name value …`, `--name=a,b`.

    meaning   what it does, for the help
    apply     (benchmark, values) → the benchmark that is prepared in its place, or None to leave it out;
              None: `build` takes the values
    known     the values that there are; none = any
    usual     what holds where the option is not given, for the help
    """

    meaning: str
    apply: Callable[[Benchmark, tuple[str, ...]], Benchmark | None] | None = None
    known: tuple[str, ...] = ()
    usual: str = ""


class Benchmark(Struct, frozen=True, kw_only=True):
    """One benchmark; its file in `benchmarks/<category>/` is the only place that knows it.

    name, aliases   how users call it
    row             raw row → prepared row with the fields that the prompt and the grader need
    variants        split → mapper in place of `row`: another language, a subject, other instructions
    join            raw rows of all files of a split → one raw row per sample, before `row` sees them
    generate_rows   (split) → prepared rows, for benchmarks that are generated instead of downloaded
    reads           folder or file from which `generate_rows` makes them: what changes there is prepared again
    build           (folder, options of `ns prepare_data`, how to fetch) → names of the benchmarks written below the
                    folder, for those that are made for a tokenizer or a length (`--setup`)
    options         further options of `ns prepare_data`, by name
    chosen          those that were given, with their values (recorded with the rows)
    keep            field of prepared rows → values (as text): rows with others are left out
    generator       distribution whose version decides what is generated (recorded with the rows)
    prompt          name in the prompt library; empty = rows hold `messages` (`prompt_format` openai)
    grader          registered name, with `grader_config` for its constructor (`{folder}` in a text of it, or of
                    `defaults`: that of the prepared file); empty = only the judge decides
    metric          registered name
    headline        the figure that counts and what it says, where that is not the metric's usual one (`` `name`: … ``)
    judge           who decides on the answers beside or instead of the grader; None = no judge is needed
    defaults        `++` options that differ from the general defaults (lowest precedence but one)
    samples         default number of seeds; 0 = one greedy run
    chunks          default number of chunks that a run is cut into; 0 = whole
    chance          score of random guessing, 0–1
    items           prepared rows by split where they were counted; another number is reported
    data            name of the benchmark whose prepared files it shares (same sources, same mapping)
    folder          holds `<split>.jsonl` already (benchmarks that come with their data)
    misprints       id of a row → why its own answer cannot be called right: a fault of the source that is left in
    hedgeable       why a reply that says several things may be taken for right (a published scorer that looks for the
                    right words anywhere); "" = it may not. Told on its page, and where its scores become rewards
    unverified      its mapping was never run on rows of the live source, only on rows of the same schema
    requires        extra of newskills to install (`newskills[local]`)
    version         raised whenever the same generations could score differently
    """

    name: str
    category: str
    title: str
    sources: tuple[Source, ...] = ()
    row: RowMapper | None = None
    variants: dict[str, RowMapper] = {}
    join: Joiner | None = None
    generate_rows: Callable[[str], Iterable[Row]] | None = None
    reads: str = ""
    build: Callable[[Path, Row, Any], list[str]] | None = None
    options: dict[str, Option] = {}
    chosen: dict[str, tuple[str, ...]] = {}
    keep: dict[str, tuple[str, ...]] = {}
    generator: str = ""
    prompt: str = "generic/default"
    grader: str = "math"
    grader_config: Row = {}
    metric: str = "math"
    metric_config: Row = {}
    headline: str = ""
    judge: Judge | None = None
    solver: str = "chat"
    defaults: Row = {}
    samples: int = 0
    chunks: int = 0
    split: str = "test"
    aliases: tuple[str, ...] = ()
    licence: str = ""
    homepage: str = ""
    citation: str = ""
    chance: float = 0.0
    traps: tuple[str, ...] = ()
    needs_sandbox: bool = False
    requires: str = ""
    items: dict[str, int] = {}
    data: str = ""
    folder: str = ""
    misprints: dict[str, str] = {}
    hedgeable: str = ""
    unverified: bool = False
    version: str = "1"

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits: the default one, then those of the sources and counts."""
        return tuple(dict.fromkeys([self.split, *(source.split for source in self.sources), *self.items]))


class Group(Struct, frozen=True, kw_only=True):
    """Benchmarks that are evaluated together and have a score as a whole; exported as GROUP.

    members   benchmark → fields of `Benchmark` that differ in this group (`{"samples": 4, "prompt": …}`); mappings
              (`defaults`, `judge` with fields of `Judge`, …) are laid over its own. Results are in
              `eval-results/<group>/<member>`. Names of benchmarks in the group's file go first, paths start there
    score     metrics of all members → those of the group; None: the plain mean of what all members have
    columns   metrics that the table shows
    home      file or module that a user's group was loaded from
    """

    name: str
    category: str
    title: str
    members: dict[str, Row]
    score: GroupScore | None = None
    columns: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    homepage: str = ""
    citation: str = ""
    traps: tuple[str, ...] = ()
    home: str = ""

    def short(self, member: str) -> str:
        """Return the name of `member` inside the group: without the group's name, or the path, before it."""
        name = member.rpartition("::")[2].removeprefix(f"{self.name}.")
        return name.rpartition("/")[2].removesuffix(".py")
