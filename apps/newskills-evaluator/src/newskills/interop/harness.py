# SPDX-License-Identifier: Apache-2.0
"""What `python -m newskills.interop.harness` and Dockerfiles name: `newskills_evaluator.harness`."""

from __future__ import annotations

import sys

from newskills_evaluator.harness import framework_text, main, target

__all__ = ["framework_text", "main", "target"]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
