# SPDX-License-Identifier: Apache-2.0
"""What `ns retrieve_similar` does: the first step of a contamination check, which problems resemble each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.store import write_rows
from newskills.config.command_line import Parsed
from newskills.models.embeddings import Embedder
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.options import AtLeastOne, DryRun, doc
from newskills.run.judging.similar import SimilarMeanings, SimilarTexts, TextIndex, retrieve_similar


class RetrieveSimilarOptions(Struct, frozen=True, kw_only=True):
    retrieve_from: Annotated[
        list[str], doc("JSONL files to search for similar problems (separated by commas or blanks)")
    ]
    compare_to: Annotated[list[str], doc("JSONL files with the problems to look up")]
    output_file: Annotated[str, doc("JSONL file to write: problem, similar_items, similarities")]
    retrieve_key: Annotated[str, doc("field that holds the problem, in all files")] = "problem"
    top_k: Annotated[AtLeastOne, doc("similar problems to find for each problem")] = 3
    model: Annotated[
        str | None,
        doc(
            "sentence-transformers model (name or folder), to compare by meaning; without it: by "
            "shared words (TF-IDF)"
        ),
    ] = None
    batch_size: Annotated[AtLeastOne, doc("texts per batch of the model")] = 32
    dry_run: DryRun = False


class SimilarFile(Struct, frozen=True):
    """The file that was written: a line for each problem, with the texts that are most similar to it."""

    output: Path
    problems: int


def run(parsed: Parsed[RetrieveSimilarOptions]) -> int:
    retrieve_similar_problems(parsed)
    return 0


def retrieve_similar_problems(parsed: Parsed[RetrieveSimilarOptions]) -> SimilarFile | None:
    """Retrieve for Python, and return what was written, None for a dry run. Raises DataError, ConfigError."""
    options = parsed.options
    sources, compared = _existing_files(options.retrieve_from), _existing_files(options.compare_to)
    output = Path(options.output_file)
    if options.dry_run:
        steps = [("reads", path, options.retrieve_key) for path in (*sources, *compared)]
        show_dry_run([*steps, ("writes", output, f"top {options.top_k}")])
        return None
    index_of = SimilarTexts if options.model is None else _index_by_meaning(options.model, options.batch_size)
    rows = retrieve_similar(sources, compared, key=options.retrieve_key, top_k=options.top_k, index_of=index_of)
    output.parent.mkdir(parents=True, exist_ok=True)
    count = write_rows(output, rows)
    sys.stdout.write(f"{output}: {count} problems\n")
    return SimilarFile(output, count)


def _index_by_meaning(model: str, batch: int) -> Callable[[Iterable[str]], TextIndex]:
    """Return a function that indexes texts by meaning. Raises ConfigError where the library is missing."""
    embed = partial(Embedder(model, option="--model"), batch=batch)
    return partial(SimilarMeanings, embed=embed)


def _existing_files(texts: list[str]) -> list[Path]:
    """Return the files that are named. Raises DataError for a file that is not there."""
    paths = [Path(name.strip()).expanduser() for text in texts for name in text.split(",") if name.strip()]
    for path in paths:
        if not path.is_file():
            raise DataError(f"There is no file {path}.")
    return paths
