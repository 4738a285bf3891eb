# SPDX-License-Identifier: Apache-2.0
"""`--dry_run` of commands that work with files: what would be read, written, fetched."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from newskills.base.tables import print_table
from newskills.base.terminal import printable

Step = tuple[str, object, object]
"""(reads, writes, fetches, …; where; what there is to say about it)."""


def show_dry_run(steps: Iterable[Step]) -> None:
    """Print the steps of a dry run: everything has been checked that can be; nothing has been done."""
    print_table([tuple(printable(str(cell)) for cell in step) for step in steps])
    sys.stdout.write("Nothing was done: this is a dry run.\n")
