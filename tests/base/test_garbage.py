# SPDX-License-Identifier: Apache-2.0
"""What a process of our own leaves out of the search for garbage, and a process of somebody else's does not."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from newskills.base.garbage import keep_imports, keep_later_imports
before = gc.get_freeze_count()
keep_later_imports()
assert gc.get_freeze_count() == before
keep_imports()
first = gc.get_freeze_count()
import fractions
keep_later_imports()
assert gc.get_freeze_count() > first > before
"""


def test_what_is_imported_later_is_left_out_where_the_rest_was() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
