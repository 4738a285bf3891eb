# SPDX-License-Identifier: Apache-2.0
"""The secret in the viewer's address, kept for the user, so that a bookmark works after a restart."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

_TOKEN = re.compile(r"[\w-]{32,64}")


def token_of_user(folder: Path, *, new: bool) -> str:
    """Return the token that is kept in `folder`, else a new one, which is then kept. A file that others may read or
    that belongs to somebody else is replaced; where nothing can be written, the token lasts as long as the process."""
    path = folder / "token"
    if not new and (kept := _read_token(path)):
        return kept
    token = secrets.token_urlsafe(24)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(token)
    except OSError:
        return token
    return token


def _read_token(path: Path) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii") as file:
            status = os.fstat(file.fileno())
            text = file.read(100)
    except (OSError, UnicodeDecodeError):
        return None
    is_private = status.st_uid == os.getuid() and not status.st_mode & 0o077
    if is_private and _TOKEN.fullmatch(text):
        return text
    return None
