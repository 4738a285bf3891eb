# SPDX-License-Identifier: Apache-2.0
"""Secrets in files that are about to be published: keys by their form, and values of this process's own variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import DataError

SECRET_PATTERNS: Mapping[str, str] = {
    "a token of the Hugging Face hub": r"\bhf_[A-Za-z0-9]{30,}",
    "a key of OpenAI, Anthropic or a service like them": r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{24,}",
    "a key of NVIDIA": r"\bnvapi-[A-Za-z0-9_-]{30,}",
    "a key of Google": r"\bAIza[A-Za-z0-9_-]{35}",
    "a key of AWS": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})",
    "a token of GitLab": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "a token of Slack": r"\bxox[abprs]-[A-Za-z0-9-]{20,}",
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "a password in an address": r"\bhttps?://[^\s/:@\"']{1,64}:[^\s/@\"']{3,128}@",
}
_VARIABLE = re.compile(r"KEY|TOKEN(?!I[SZ])|SECRET|PASSWORD|PASSWD|CREDENTIAL")
_MIN_SECRET_CHARS = 12
"""Characters of a variable's value that is looked for: shorter ones occur by chance."""
_PIECE, _OVERLAP = 1 << 22, 4_096
TEXT_SUFFIXES = (
    ".json",
    ".jsonl",
    ".txt",
    ".md",
    ".yaml",
    ".yml",
    ".jinja",
    ".csv",
    ".py",
    ".toml",
    ".cfg",
    ".model",
)


class FoundSecret(NamedTuple):
    """`shown`: the beginning of the secret, which tells it without giving it away."""

    file: str
    form: str
    shown: str


class SecretScanner:
    """Looks for secrets in texts."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Search for the values of variables whose names speak of a secret, too."""
        self._forms = {form: re.compile(pattern) for form, pattern in SECRET_PATTERNS.items()}
        self._values = {
            value: name
            for name, value in environ.items()
            if _VARIABLE.search(name.upper()) and len(value) >= _MIN_SECRET_CHARS and not value.startswith("/")
        }

    def in_texts(self, file: str, texts: Iterable[str]) -> Iterator[FoundSecret]:
        """Yield the secrets in texts, each form once for a text."""
        for text in texts:
            for form, pattern in self._forms.items():
                if match := pattern.search(text):
                    yield FoundSecret(file, form, f"{match[0][:8]}…")
            for value, name in self._values.items():
                if value in text:
                    yield FoundSecret(file, f"the value of {name}", f"{value[:3]}…")

    def in_file(self, file: str, path: Path) -> Iterator[FoundSecret]:
        """Yield the secrets in a file of text. Raises DataError where it cannot be read."""
        if path.suffix not in TEXT_SUFFIXES:
            return
        yield from self.in_texts(file, _text_pieces(path))


def _text_pieces(path: Path) -> Iterator[str]:
    """Yield the text of a file piece by piece; each begins with the end of the one before."""
    try:
        with path.open("rb") as file:
            rest = b""
            while piece := file.read(_PIECE):
                yield (rest + piece).decode("utf-8", "replace")
                rest = piece[-_OVERLAP:]
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
