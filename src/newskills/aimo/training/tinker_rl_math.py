# SPDX-License-Identifier: Apache-2.0
"""`python src/newskills/aimo/training/tinker_rl_math.py key=value …` is `ns tinker rl key=value …`."""

from __future__ import annotations

import sys

from newskills.cli import main

if __name__ == "__main__":
    sys.exit(main(["tinker_rl", *sys.argv[1:]]))
