# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.aimo.training.train …` is `ns aimo train …`."""

from __future__ import annotations

import sys

from newskills.cli import main

if __name__ == "__main__":
    sys.exit(main(["aimo_train", *sys.argv[1:]]))
