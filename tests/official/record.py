# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.official.record NAME PLACE`: runs an original scorer and records what it says.

PLACE is a checkout of the original's repository. Where the original is a package, PLACE is a Python that has it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main(name: str, place: str) -> None:
    count = import_module(f"tests.official.{name}").record(Path(place))
    print(f"{name}: {count} attempts recorded")


if __name__ == "__main__":
    main(*sys.argv[1:])
