# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.aimo.evaluation.evaluate_checkpoints …` is `ns aimo evaluate_checkpoints …`."""

from __future__ import annotations

import sys

from newskills.cli import main

if __name__ == "__main__":
    sys.exit(main(["aimo_evaluate_checkpoints", *sys.argv[1:]]))
