# SPDX-License-Identifier: Apache-2.0
"""Paths of the packaged code, as containers call it, where there is no container."""

from __future__ import annotations

import os
import re
from pathlib import Path

CODE = "/nemo_run/code"
_CODE_IN_TEXT = re.compile(rf"(?<![\w./-]){CODE}(?![\w.-])")


def with_code_at(text: str, folder: str) -> str:
    """Return `text`, of a command say, with `folder` in place of /nemo_run/code, wherever a path begins so."""
    if CODE in text:
        return _CODE_IN_TEXT.sub(lambda match: folder, text)
    return text


def without_container(path: str) -> str:
    """Return where a path that a row names lies: one of the packaged code below the working folder, or the nearest
    folder above it that has the file, unless there is such a folder here."""
    rest = path.removeprefix(f"{CODE}/")
    if rest == path or os.path.isdir(CODE):
        return path
    working_folder = Path.cwd()
    for folder in (working_folder, *working_folder.parents):
        if (folder / rest).exists():
            return str(folder / rest)
        if (folder / ".git").exists():
            break
    return str(working_folder / rest)
