# SPDX-License-Identifier: Apache-2.0
"""Questions to databases: BIRD (Li et al. 2023, arXiv:2305.03111) and Spider (Yu et al. 2018, arXiv:1809.08887).

The schema that a model is shown is made of the data set's own list of tables; the databases are only needed to grade.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_TRAPS = (
    "Answers are run: unpack the databases and give their folder as ++sandbox.data_dir=FOLDER, in which "
    "<db_id>/<db_id>.sqlite lies. Without it answers are unscored.",
    "The schema shown is made of the list of tables (types, keys), not of the databases.",
)


def with_schemas(raws: Iterable[Row]) -> Iterator[Row]:
    """Yield the questions, each with the schema of its database; both are rows of their files."""
    rows = list(raws)
    schemas = {raw["db_id"]: schema_statements(raw) for raw in rows if "table_names_original" in raw}
    for raw in rows:
        if "table_names_original" not in raw:
            yield {**raw, "sql_context": schemas[raw["db_id"]]}


def schema_statements(raw: Row) -> str:
    """Return the CREATE TABLE statements of one entry of the list of tables."""
    columns: list[tuple[int, str]] = raw["column_names_original"]
    foreign = {column: columns[other] for column, other in raw["foreign_keys"]}
    single = {key for key in raw["primary_keys"] if isinstance(key, int)}
    several = [key for key in raw["primary_keys"] if isinstance(key, list)]
    tables = raw["table_names_original"]
    text = []
    for number, table in enumerate(tables):
        lines = []
        for at, (owner, column) in enumerate(columns):
            if owner != number:
                continue
            if at in foreign:
                refers = f" REFERENCES {_quote_name(tables[foreign[at][0]])}({_quote_name(foreign[at][1])})"
            else:
                refers = ""
            key = " PRIMARY KEY" if at in single else ""
            lines.append(f"  {_quote_name(column)} {raw['column_types'][at]}{key}{refers}")
        for keys in several:
            if columns[keys[0]][0] == number:
                lines.append(f"  PRIMARY KEY ({', '.join(_quote_name(columns[key][1]) for key in keys)})")
        text.append(f"CREATE TABLE {_quote_name(table)} (\n" + ",\n".join(lines) + "\n);")
    return "\n".join(text)


def _quote_name(name: Any) -> str:
    text = str(name)
    if text.replace("_", "a").isalnum() and text.isascii():
        return text
    return f"`{text}`"


def bird_row(raw: Row, index: int) -> Row:
    hint = f"\n\nHint: {raw['evidence']}" if raw.get("evidence") else ""
    return {
        "id": str(raw["question_id"]),
        "question": f"{raw['question']}{hint}",
        "gt_sql": raw["SQL"],
        "sql_context": raw["sql_context"],
        "difficulty": raw["difficulty"],
        "db_id": raw["db_id"],
    }


def spider_row(raw: Row, index: int) -> Row:
    return {
        "id": str(index),
        "question": raw["question"],
        "gt_sql": raw["query"],
        "sql_context": raw["sql_context"],
        "db_id": raw["db_id"],
    }


BENCHMARKS = (
    Benchmark(
        name="birdbench",
        aliases=("bird",),
        category="code",
        title="BIRD: SQL for questions to real databases",
        sources=(
            Source(
                split="dev",
                url="https://bird-bench.oss-cn-beijing.aliyuncs.com/dev.zip",
                members="*/{dev,dev_tables}.json",
                format="json",
            ),
        ),
        row=bird_row,
        join=with_schemas,
        prompt="generic/text_to_sql",
        grader="bird",
        metric="bird",
        defaults={"inference.temperature": 0.6, "inference.top_k": 20, "inference.tokens_to_generate": 10000},
        split="dev",
        items={"dev": 1534},
        licence="CC-BY-SA-4.0",
        homepage="https://bird-bench.github.io",
        citation="arXiv:2305.03111",
        needs_sandbox=True,
        unverified=True,
        traps=(*_TRAPS, "Sets of rows are compared: neither order nor repetition counts."),
    ),
    Benchmark(
        name="spider",
        category="code",
        title="Spider: SQL across many databases",
        sources=(
            Source(
                split="dev",
                github="taoyds/spider",
                ref="master",
                members="evaluation_examples/examples/{dev,tables}.json",
                format="json",
            ),
        ),
        row=spider_row,
        join=with_schemas,
        prompt="generic/text_to_sql",
        grader="bird",
        grader_config={"comparison": "rows"},
        metric="bird",
        split="dev",
        items={"dev": 1034},
        licence="CC-BY-SA-4.0",
        homepage="https://yale-lily.github.io/spider",
        citation="arXiv:1809.08887",
        needs_sandbox=True,
        traps=(
            *_TRAPS,
            "Rows are compared as often as they occur; their order only where the reference orders them.",
        ),
    ),
)
