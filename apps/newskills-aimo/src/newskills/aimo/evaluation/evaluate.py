# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.aimo.evaluation.evaluate …` is `ns aimo evaluate …`."""

from __future__ import annotations

import sys

from newskills.cli import main

if __name__ == "__main__":
    sys.exit(main(["aimo_evaluate", *sys.argv[1:]]))
