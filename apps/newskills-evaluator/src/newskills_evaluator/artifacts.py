# SPDX-License-Identifier: Apache-2.0
"""Ends the work of a task: `python -m newskills_evaluator.artifacts FOLDER FACTS COMMAND…` writes FOLDER/results.yml.

FACTS is a file with the task's `config` and `target`, which stand in run_config.yml, too. A task of which nothing was
scored has failed, whatever its exit code.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.base.records import Row
from newskills.base.store import atomic_write
from newskills_evaluator.results_yml import results_document, task_results

FACTS = "task.json"
RESULTS_YML, RUN_CONFIG_YML = "results.yml", "run_config.yml"


class RunFacts(Struct, frozen=True, kw_only=True):
    """As NeMo Evaluator has them; keys by the names of their variables only."""

    config: Row
    target: Row


def write_results(folder: Path, facts: RunFacts, command: Sequence[str]) -> None:
    """Write `results.yml` and `run_config.yml` into `folder`. Raises DataError where nothing was scored,
    StorageError."""
    import yaml

    text = shlex.join(command)
    results = task_results(folder)
    document = results_document(command=text, config=facts.config, target=facts.target, results=results)
    run = {"config": facts.config, "target": facts.target, "command": text}
    for name, content in ((RUN_CONFIG_YML, run), (RESULTS_YML, document)):
        with atomic_write(folder / name) as file:
            file.write(yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode())


def main(words: Sequence[str]) -> int:
    try:
        facts = msgspec.json.decode(Path(words[1]).read_bytes(), type=RunFacts)
        write_results(Path(words[0]), facts, words[2:])
    except NewskillsError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
