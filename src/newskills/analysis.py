# SPDX-License-Identifier: Apache-2.0
"""Results as tables of Arrow: `runs`, `scores`, `samples`, `messages`, and SQL (extra `newskills[analysis]`).

    from newskills.analysis import samples

    answers = samples("results", where="outcome = wrong and tokens > 2000")
    frame = answers.to_pandas()   # or polars.from_arrow(answers), or duckdb.sql("SELECT … FROM answers")

Docs: docs/analysis.md has all columns. Importing this module loads no other package.
"""

from newskills.view.analysis.arrow import SCHEMA_VERSION
from newskills.view.analysis.comparisons import comparisons
from newskills.view.analysis.messages import messages
from newskills.view.analysis.runs import runs
from newskills.view.analysis.samples import sample_batches, samples
from newskills.view.analysis.scores import scores
from newskills.view.analysis.sql import query

__all__ = ["SCHEMA_VERSION", "comparisons", "messages", "query", "runs", "sample_batches", "samples", "scores"]
