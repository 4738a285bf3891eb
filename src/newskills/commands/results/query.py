# SPDX-License-Identifier: Apache-2.0
"""`ns query "SELECT …" DIR`: SQL over results."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.query import QueryCommandOptions, query_results, run

COMMAND = Command(
    name="query",
    summary="Ask results in SQL (of DuckDB): tables runs, scores, samples and messages of all runs below the folders. "
    "DESCRIBE samples names the columns. A query only reads, has no access to files or network, and is stopped "
    "at its limit of time or memory. Needs newskills[analysis].",
    options=QueryCommandOptions,
    run=run,
    result=query_results,
    examples=(
        "ns query 'SELECT run, benchmark, mode, value, low, high FROM scores' results",
        "ns query 'SELECT id, count(*) AS wrong FROM samples WHERE score < 1 GROUP BY id ORDER BY wrong DESC' results",
        "ns query \"SELECT id, reply FROM samples WHERE outcome = 'no_answer'\" results --json",
    ),
)
