# SPDX-License-Identifier: Apache-2.0
"""The `++` keys of a command as a struct."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from msgspec import Struct

from newskills.config.command_line import Parsed
from newskills.config.layers import Layer, explain, resolve

S = TypeVar("S", bound=Struct)


def keys_of(kind: type[S], parsed: Parsed[Any]) -> S | None:
    """Return the `++` keys; None where only their origin was to be shown, which is done. Raises ConfigError."""
    resolved = resolve(kind, [Layer("command line", parsed.overrides)])
    if not parsed.explain:
        return resolved.value
    for key, value, source in explain(resolved):
        sys.stdout.write(f"++{key} = {value}  ({source})\n")
    return None
