# SPDX-License-Identifier: Apache-2.0
"""Ends the work of a task: `python -m newskills.interop.artifacts FOLDER -- COMMAND` writes FOLDER/results.yml.

A task of which nothing was scored has failed, whatever its exit code.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from newskills.base.errors import NewskillsError, storage_error
from newskills.base.records import Row
from newskills.interop.results_yml import results_document, task_results

RESULTS_YML = "results.yml"


def flattened(results: Mapping[str, Row]) -> dict[str, float]:
    """`{"tasks": …, "groups": …}` of results.yml → `T_M_S`, or `T_M` where score and metric have one name.

    T is the benchmark, M the mode (`pass@1[avg-of-8]`), S the metric. What is no number is left out.
    """
    found: dict[str, float] = {}
    for kind in ("tasks", "groups"):
        for task, body in (results.get(kind) or {}).items():
            for metric, scores in (body.get("metrics") or {}).items():
                for score, told in (scores.get("scores") or {}).items():
                    value = told.get("value")
                    if isinstance(value, int | float) and not isinstance(value, bool):
                        found[f"{task}_{metric}" if score == metric else f"{task}_{metric}_{score}"] = float(value)
    return found


def finish(folder: Path, command: Sequence[str]) -> Path:
    """Writes results.yml. Raises DataError where nothing was scored, StorageError."""
    import yaml

    results = task_results(folder)
    document = results_document(command=shlex.join(command), config={}, target={}, results=results)
    place = folder / RESULTS_YML
    try:
        new = place.with_suffix(".new")
        new.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
        new.replace(place)
    except OSError as error:
        raise storage_error(error, place) from error
    return place


def main(words: Sequence[str]) -> int:
    try:
        finish(Path(words[0]), words[2:])
    except NewskillsError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
