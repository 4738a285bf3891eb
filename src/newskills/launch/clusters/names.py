# SPDX-License-Identifier: Apache-2.0
"""Which names may be given to jobs, commands and variables."""

from __future__ import annotations

import re

MAX_NAME_CHARS = 100
"""Characters; Slurm shows no more, and file names get endings."""

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]*\Z", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_SECRET = re.compile(r"(?:\A|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)_?\d*\Z", re.IGNORECASE)


def is_file_name(text: str) -> bool:
    """Return whether jobs and commands may have this name, which is part of file names, job names and host-side
    paths."""
    return len(text) <= MAX_NAME_CHARS and _FILE.match(text) is not None


def is_variable(text: str) -> bool:
    """Return whether a shell takes `text` as the name of a variable."""
    return _VARIABLE.match(text) is not None


def looks_secret(variable: str) -> bool:
    """Return whether the variable holds a key, token or password, by its name."""
    return _SECRET.search(variable) is not None
