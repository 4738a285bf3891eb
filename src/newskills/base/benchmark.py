# SPDX-License-Identifier: Apache-2.0
"""A skill, written once: data + prompt + solver + grader. It evaluates, filters, rewards and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import Struct

from newskills.base.records import Row

Format = Literal["jsonl", "json", "csv", "tsv", "xml", "parquet", "text", "generated"]


class Drop(Struct, frozen=True):
    """Returned by a row mapper to leave a row out; the reason is counted and reported."""

    reason: str


RowMapper = Callable[[Row, int], Row | Iterable[Row] | Drop]
"""(raw row, 0-based index) → prepared row, several rows, or `Drop` with the reason to leave it out."""


class Source(Struct, frozen=True, kw_only=True):
    """Where the raw rows of one split come from. Sources of a split are alternatives, tried in order.

    url         https address of a file or archive
    hf          data set on the Hugging Face hub, with `config` and `hf_split` (read as parquet)
    revision    commit that is fetched in place of the branch named in `url`
    members     glob of members inside an archive, in sorted order; each of their rows gets `_file`
    columns     names for a csv without a header
    records     path of keys to the list inside a json file (`("Instances",)`), or of the element in xml
    span        only these rows of the file: 0-based, the end not included
    note        licence page to accept, token to set
    """

    split: str = "test"
    url: str = ""
    hf: str = ""
    config: str = ""
    hf_split: str = ""
    revision: str = ""
    format: Format = "jsonl"
    members: str = ""
    columns: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    span: tuple[int, int] | None = None
    sha256: str = ""
    gated: bool = False
    note: str = ""


class Judge(Struct, frozen=True, kw_only=True):
    """Another model that says what an answer is worth: an ordinary generation over the answers, one text for each.

    prompt          name in the prompt library; sees all fields of the answer's record
    kind            registered solver: `llm` asks about each answer; `math_judge` does not where the predicted answer
                    is missing or is the expected text
    grader          registered name: reads the verdict in the judge's text, with `grader_config`
    generation_key  field of the record that gets the judge's text
    defaults        `++` options of the judge that differ from the general defaults
    model, server_type, server_address  the benchmark's usual judge; empty = the user names one
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


class Benchmark(Struct, frozen=True, kw_only=True):
    """One benchmark; its file in `benchmarks/<category>/` is the only place that knows it.

    name, aliases   how users call it
    row             raw row → prepared row with the fields that the prompt and the grader need
    generate_rows   (split) → prepared rows, for benchmarks that are generated instead of downloaded
    generator       distribution whose version decides what is generated (recorded with the rows)
    prompt          name in the prompt library
    grader          registered name, with `grader_config` for its constructor; empty = only the judge decides
    metric          registered name
    judge           who decides on the answers beside or instead of the grader; None = no judge is needed
    defaults        `++` options that differ from the general defaults (lowest precedence but one)
    samples         default number of seeds; 0 = one greedy run
    chance          score of random guessing, 0–1
    items           prepared rows by split where they were counted; another number is reported
    folder          holds `<split>.jsonl` already (benchmarks that come with their data)
    requires        extra of newskills to install (`newskills[local]`)
    version         raised whenever the same generations could score differently
    """

    name: str
    category: str
    title: str
    sources: tuple[Source, ...] = ()
    row: RowMapper | None = None
    generate_rows: Callable[[str], Iterable[Row]] | None = None
    generator: str = ""
    prompt: str = "generic/default"
    grader: str = "math"
    grader_config: Row = {}
    metric: str = "math"
    metric_config: Row = {}
    judge: Judge | None = None
    solver: str = "chat"
    defaults: Row = {}
    samples: int = 0
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
    folder: str = ""
    version: str = "1"

    def splits(self) -> tuple[str, ...]:
        """Names of the splits there are: the default one, then those of the sources and counts."""
        return tuple(dict.fromkeys([self.split, *(source.split for source in self.sources), *self.items]))
