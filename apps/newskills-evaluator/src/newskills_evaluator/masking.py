# SPDX-License-Identifier: Apache-2.0
"""Hides the secrets of a configuration that is shown."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

HIDDEN = "********"
_SECRET = re.compile(r"KEY|TOKEN(?!I[SZ])|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_REFERENCE = re.compile(r"(?:(?:host|runtime):)?\$?[A-Z_][A-Z0-9_]*\Z", re.ASCII)
_SHORTEST = 4


def mask_secrets(node: Any, hidden: Collection[str] = (), name: str = "") -> Any:
    """Return `node` without values of keys whose names speak of a secret, and without the texts `hidden` anywhere.

    Numbers (`max_new_tokens`), tokenizers and names of variables (`host:HF_TOKEN`) are none.
    """
    if isinstance(node, dict):
        return {key: mask_secrets(value, hidden, str(key)) for key, value in node.items()}
    if isinstance(node, list):
        return [mask_secrets(value, hidden, name) for value in node]
    if not isinstance(node, str):
        return node
    if node and _SECRET.search(name) and not _REFERENCE.match(node):
        return HIDDEN
    for text in hidden:
        if len(text) >= _SHORTEST:
            node = node.replace(text, HIDDEN)
    return node


def masked_word(key: str, text: str, value: Any) -> str:
    """Return the word `key=text`, whose value is `value`, of a command line; a text that holds a secret is hidden."""
    if mask_secrets(value, name=key.rpartition(".")[2]) != value:
        text = HIDDEN
    return f"{key}={text}"
