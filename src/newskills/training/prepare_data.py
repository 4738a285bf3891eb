# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.training.prepare_data …` is `ns prepare_training_data …`."""

from __future__ import annotations

import sys

from newskills.cli import main

if __name__ == "__main__":
    sys.exit(main(["prepare_training_data", *sys.argv[1:]]))
