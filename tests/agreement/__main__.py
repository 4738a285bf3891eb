# SPDX-License-Identifier: Apache-2.0
"""Compares our graders with the official scorers of benchmarks.

python -m tests.agreement                          prints the table and every disagreement
python -m tests.agreement --write                  and writes it into docs/agreement.md and, for
                                                   pages of benchmarks, its figures into the package
python -m tests.agreement --record NAME=FOLDER     runs the original that is checked out in FOLDER, writes its verdicts
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.agreement.compare import record
from tests.agreement.page import FACTS, PAGE, facts, measured, page
from tests.agreement.registry import comparisons


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.agreement", description=__doc__)
    parser.add_argument("names", nargs="*", help="default: all")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--record", action="append", default=[], metavar="NAME=FOLDER", help="run an original")
    parser.add_argument("--commit", default="", help="commit of the original; default: git's answer in FOLDER")
    arguments = parser.parse_args(argv)
    for item in arguments.record:
        name, _, folder = item.partition("=")
        comparison = comparisons()[name]
        count = record(comparison, Path(folder), arguments.commit or head(Path(folder)))
        print(f"{name}: {count} verdicts recorded")
    names = arguments.names or ([item.partition("=")[0] for item in arguments.record] or list(comparisons()))
    figures = [measured(comparisons()[name]) for name in names]
    for figure in figures:
        print(f"{figure.comparison.name}: {figure.share:.1%} of {figure.attempts}")
        for (key, known), count in Counter((one.key, one.official) for one in figure.disagreements).items():
            reason = figure.comparison.known.get(key)
            print(f"  {count:4} {key}, officially {known}: {reason or 'NOT EXPLAINED'}")
    if arguments.write:
        PAGE.write_text(page(figures), encoding="utf-8")
        FACTS.write_text(facts(figures), encoding="utf-8")
    return 0


def head(folder: Path) -> str:
    """The commit that is checked out in `folder`."""
    argv = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
