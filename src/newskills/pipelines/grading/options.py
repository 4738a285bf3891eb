# SPDX-License-Identifier: Apache-2.0
"""The options of `ns grade`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from newskills.pipelines.options import AcceptLost, DryRun, doc


class GradeOptions(Struct, frozen=True, kw_only=True):
    grader: Annotated[str, doc("name, module::Class or file.py::Class")] = "math"
    input_files: Annotated[list[str], doc("files of rows (as in ns generate); none or - = standard input")] = []
    output_file: Annotated[str | None, doc("JSONL file to write (default: standard output)")] = None
    executor: Annotated[
        Literal["none", "ray"],
        doc("ray: many files on the nodes of RAY_ADDRESS, or of this machine, by Ray Data; rows stay the same"),
    ] = "none"
    accept_lost: AcceptLost = 1.0
    dry_run: DryRun = False
