# SPDX-License-Identifier: Apache-2.0
"""What job scripts start, of any version, as `python -m newskills.interop.auto_export`."""

from __future__ import annotations

import sys

from newskills_evaluator.auto_export import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
