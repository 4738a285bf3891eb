# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills_evaluator.auto_export FILE`: the last job of an invocation. FILE is an ExportPlan."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from newskills.base.errors import NewskillsError
from newskills.base.terminal import printable
from newskills_evaluator.export_results import ExportPlan, export_results


def main(words: Sequence[str]) -> int:
    plan = msgspec.json.decode(Path(words[0]).read_bytes(), type=ExportPlan)
    try:
        failed = export_results(plan, os.environ, _print_line)
    except NewskillsError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return int(failed > 0)


def _print_line(text: str) -> None:
    sys.stdout.write(f"{printable(text)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
