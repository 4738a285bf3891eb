# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.aimo.inference.generate …` is `ns aimo generate …`."""

from __future__ import annotations

import sys

from newskills.cli import main

if __name__ == "__main__":
    sys.exit(main(["aimo_generate", *sys.argv[1:]]))
