# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.aimo.evaluation.regenerate_summary …` is `ns aimo regenerate_summary …`."""

from __future__ import annotations

import sys

from newskills.cli import main

if __name__ == "__main__":
    sys.exit(main(["aimo_regenerate_summary", *sys.argv[1:]]))
