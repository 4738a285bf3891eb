# SPDX-License-Identifier: Apache-2.0
"""What may stand in a YAML file that describes a benchmark; the JSON schema for editors is made of these types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Kind = Literal[
    "math",
    "choice",
    "choices",
    "yes_no",
    "short_answer",
    "word",
    "judged",
    "rubric",
    "likelihood",
    "text",
    "translation",
    "code",
    "free",
]
AnswerAs = Literal["letter", "text", "from_0", "from_1"]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Text = Annotated[str, Meta(min_length=1)]
Named = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
            "description": "the name, and its settings beside it",
        }
    ),
]


class ColumnRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column whose cells are not the value itself."""

    column: Annotated[Text, Meta(description="name of the column; `answers.text` reaches into objects")]
    pattern: Annotated[
        str, Meta(description="regular expression: its first group (or all that it matches) is the value")
    ] = ""
    split: Annotated[str, Meta(description="what separates several values in one cell")] = ""
    decimal: Annotated[
        Literal[",", ".", ""],
        Meta(
            description="numbers have a decimal comma (1.234,5 is 1234.5), or a point; with a comma, both are right"
        ),
    ] = ""


Columns = Annotated[Text, Meta(description="name of the column")] | ColumnRule | tuple[Text, ...]


class DataPlace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where rows come from: one of `path`, `url` and `hf`."""

    path: Annotated[
        Text | tuple[Text, ...], Meta(description="a file, or several; relative paths begin at the YAML file")
    ] = ()
    url: Annotated[str, Meta(pattern="^https?://", description="address of a file")] = ""
    hf: Annotated[
        str, Meta(pattern=r"^[\w.-]+(/[\w.-]+)?$", description="data set of the Hugging Face hub: owner/name")
    ] = ""
    config: Annotated[str, Meta(description="configuration of the data set of the hub")] = ""
    split: Annotated[str, Meta(description="split of the data set of the hub (default: test)")] = ""
    revision: Annotated[str, Meta(description="commit of the file at `url`")] = ""
    sha256: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$", description="refuse a file with another one")] = ""
    records: Annotated[
        Text | tuple[Text, ...],
        Meta(description="keys that lead to the list of rows inside a JSON object: [data, rows]"),
    ] = ()
    format: Annotated[
        Literal["rows", "yaml", "lines", "text", "xml", ""],
        Meta(
            description="rows (default: CSV, TSV, JSON, JSON lines, Parquet), yaml, lines of text, text (a whole file; "
            "default of .txt), xml"
        ),
    ] = ""
    separator: Annotated[str, Meta(max_length=1, description="what separates the cells of a CSV file")] = ""
    header: Annotated[
        tuple[Text, ...], Meta(description="names of the columns of a CSV file without a first line of names")
    ] = ()
    encoding: Annotated[str, Meta(description="of a CSV file or of lines, where it is not UTF-8: cp1252")] = ""


class Criterion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reply may meet, and what that is worth."""

    criterion: Annotated[Text, Meta(description="what the judge decides about: The reply names a dose.")]
    points: Annotated[float, Meta(description="points of a reply that meets it; negative for a fault")]
    name: Annotated[str, Meta(description="short name, for figures of this criterion")] = ""
    tags: Annotated[tuple[str, ...], Meta(description="`axis:NAME` adds it to the score of an axis")] = ()


class FewShot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Solved examples that stand in each prompt, in place of `{examples}`: the first rows of other data."""

    data: Annotated[
        DataPlace | Text | None, Meta(description="where they come from (default: `split` of the same data set)")
    ] = None
    split: Annotated[str, Meta(description="split of the hub's data set that holds them: train, dev")] = ""
    count: Annotated[int, Meta(ge=1, le=100, description="number of examples")] = 5
    template: Annotated[str, Meta(description="text of one example, with {fields}")] = ""
    prefix: Annotated[str | None, Meta(description="text before all examples")] = None
    suffix: Annotated[str | None, Meta(description="text after all examples")] = None


class JudgeSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another model that decides. It writes a last line `Judgement: Yes` or `Judgement: No`, unless `grader` reads
    something else."""

    prompt: Annotated[
        str,
        Meta(
            description="name of a prompt, or its text with {question}, {expected_answer} and {generation} (the reply)"
        ),
    ] = "judge/general-judge"
    grader: Annotated[str | Named, Meta(description="how the judge's verdict is read")] = "judgement"
    model: Annotated[str, Meta(description="usual judge; --judge_model names another")] = ""
    server_type: Annotated[str, Meta(description="kind of its server or provider: openai, vllm, …")] = ""
    server_address: Annotated[str, Meta(description="address of its server")] = ""
    settings: Annotated[
        dict[str, Any], Meta(description="`++` settings of the judge: {inference.temperature: 0}")
    ] = {}
    at_once: Annotated[
        bool, Meta(description="kind rubric: one question about all criteria, instead of one for each")
    ] = False


class BenchmarkFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark: `ns eval --benchmarks=./mine.yaml`."""

    data: Annotated[
        DataPlace | Text,
        Meta(description="the questions: a file, an address (https://…), or {hf: owner/name, split: test}"),
    ]
    kind: Annotated[
        Kind | None, Meta(description="what answers look like (default: seen from the data of this machine)")
    ] = None
    name: Annotated[Name | None, Meta(description="name of the results (default: that of the file)")] = None
    title: Annotated[str, Meta(description="one line that says what is measured")] = ""
    columns: Annotated[
        dict[str, Columns],
        Meta(
            description="role → column: question, answer, options (a column, or one for each option), accepted, id, "
            "subset, context, solution, rubrics; any other name becomes a field of that name"
        ),
    ] = {}
    fields: Annotated[dict[str, Any], Meta(description="fields that are the same for all rows")] = {}
    answer_as: Annotated[
        AnswerAs | None,
        Meta(description="how the right option is named: by letter, by its text, by number from 0 or from 1"),
    ] = None
    prompt: Annotated[
        str, Meta(description="name of a prompt, a prompt file (.yaml), or a text with {question}, {options}, …")
    ] = ""
    system: Annotated[str | None, Meta(description="system message")] = None
    few_shot: Annotated[FewShot | None, Meta(description="solved examples in each prompt")] = None
    grader: Annotated[
        str | Named | None, Meta(description="who decides whether an answer is correct; null: only the judge")
    ] = ""
    metric: Annotated[str | Named, Meta(description="how scores become figures")] = ""
    rubric: Annotated[
        tuple[Criterion, ...] | Text | None,
        Meta(
            description="criteria of all rows with points: a list, or a file of them (YAML with `criteria`, JSON lines)"
        ),
    ] = None
    judge: Annotated[JudgeSection | bool | str | None, Meta(description="a model that decides")] = None
    solver: Annotated[str, Meta(description="how an answer is produced")] = ""
    settings: Annotated[dict[str, Any], Meta(description="`++` settings: {inference.temperature: 0.6}")] = {}
    samples: Annotated[int, Meta(ge=0, le=10_000, description="number of seeds; 0: one greedy run")] = 0
    chance: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, Meta(description="score of random guessing, 0–1")
    ] = None
    licence: Annotated[str, Meta(description="licence of the data")] = ""
    homepage: Annotated[str, Meta(description="page of the data")] = ""
