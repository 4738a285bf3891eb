# SPDX-License-Identifier: Apache-2.0
"""What `--json` prints."""

from __future__ import annotations

import sys

import msgspec


def print_json(value: object) -> None:
    """Print `value`, structs included, as JSON with an indent of two."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
