# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.aimo.evaluation.evaluate_all …` is `ns aimo evaluate_all …`."""

from __future__ import annotations

import sys

from newskills.cli import main

if __name__ == "__main__":
    sys.exit(main(["aimo_evaluate_all", *sys.argv[1:]]))
