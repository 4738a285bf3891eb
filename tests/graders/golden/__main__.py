# SPDX-License-Identifier: Apache-2.0
"""Compares the golden files with what graders say today.

python -m tests.graders.golden            prints each case that gives something else now
python -m tests.graders.golden --write    writes what they give now; the difference is for review
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.graders.golden.replay import cases, files, written, wrong


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.graders.golden", description=__doc__)
    parser.add_argument("names", nargs="*", help="golden files without their ending; default: all")
    parser.add_argument("--write", action="store_true", help="write what graders say today")
    arguments = parser.parse_args(argv)
    different = 0
    for path in files():
        if arguments.names and path.stem not in arguments.names:
            continue
        if arguments.write:
            lines = []
            for case in cases(path):
                case.gives = case.replayed()
                lines.append(written(case) + "\n")
            path.write_text("".join(lines), encoding="utf-8")
        for text in wrong(path):
            print(text)
            different += 1
    print(f"{different} cases differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
