# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.run DIR`: executes `DIR/run.json`."""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.base.errors import ConfigError, NewskillsError


def main(argv: list[str]) -> int:
    """Exit code of the run."""
    try:
        if len(argv) != 1:
            raise ConfigError("usage: python -m newskills.run DIR   (DIR holds run.json)")
        from newskills.run.execute import execute
        from newskills.run.spec import load_spec

        result = execute(load_spec(Path(argv[0])))
    except NewskillsError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if result.message:
        sys.stderr.write(f"{result.message}\n")
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
