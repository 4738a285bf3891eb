# SPDX-License-Identifier: Apache-2.0
"""LiveBench's task of writing a table in another form: the right table in many dresses, and wrong ones."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

from newskills.base.records import Row
from newskills.graders.reading import tables

LONGEST = 900
"""Characters of a right table that is taken: replies repeat it."""
Table = list[dict[str, Any]]


def forms(row: Row) -> dict[str, str]:
    form = re.findall(r"format to (\w+) format", row["question"])[0].lower()
    table = tables.read_table(form, row["ground_truth"])
    assert table is not None
    gold = row["ground_truth"].strip()
    changed = [dict(line) for line in table]
    changed[0][next(iter(changed[0]))] = "changed"
    made = {
        "as it is": gold,
        "fenced": f"```{form}\n{gold}\n```",
        "fence without name": f"```\n{gold}\n```",
        "words before": f"Here is the table in {form} format:\n{gold}",
        "words and fence": f"Here is the table:\n```{form}\n{gold}\n```\nDone.",
        "tag": f"<solution>\n{gold}\n</solution>",
        "written again": written(form, table),
        "columns in another order": written(form, [dict(reversed(line.items())) for line in table]),
        "rows in another order": written(form, table[::-1]),
        "a row less": written(form, table[:-1]),
        "a row twice": written(form, [*table, table[-1]]),
        "a cell changed": written(form, changed),
        "nothing": "I cannot do that.",
        "cut short": gold[: len(gold) // 2],
    }
    if any(cell is None for line in table for cell in line.values()):
        made |= _nothing_written(form, table)
    if form in ("csv", "tsv"):
        made["words around"] = f"Here it is:\n\n{gold}\n\nThat is the table."
    return made


def _nothing_written(form: str, table: Table) -> dict[str, str]:
    """Cells that are missing, in other words."""
    words = {"empty": "", "NaN": "NaN", "null": "null", "None": "None", "a dash": "-"}
    return {
        f"{name} for nothing": written(
            form, [{key: word if cell is None else cell for key, cell in line.items()} for line in table]
        )
        for name, word in words.items()
    }


def written(form: str, table: Table) -> str:
    if form == "json":
        return json.dumps(table)
    if form == "jsonl":
        return "\n".join(map(json.dumps, table))
    if form == "html":
        head = "".join(f"<th>{name}</th>" for name in table[0])
        lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in line.values()) + "</tr>" for line in table]
        return f"<table>\n<tr>{head}</tr>\n" + "\n".join(lines) + "\n</table>"
    file = io.StringIO()
    writer = csv.writer(file, delimiter="," if form == "csv" else "\t", lineterminator="\n")
    writer.writerow(table[0])
    writer.writerows(line.values() for line in table)
    return file.getvalue()
