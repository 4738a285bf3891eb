# SPDX-License-Identifier: Apache-2.0
"""Which packages the code may import: asked of the sandbox's interpreter, which need not be this one."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, SandboxError
from newskills.sandbox.config import SandboxConfig

_ASK = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from newskills.sandbox.inside import installed; sys.path.pop(0); installed.main(sys.argv[2])"
)
_SOURCE = str(Path(__file__).parents[2])


class _ImportAnswer(Struct, frozen=True):
    places: tuple[str, ...]
    path: tuple[str, ...]
    missing: tuple[str, ...]
    shown: dict[str, tuple[str, ...]]
    unknown: tuple[str, ...]
    hidden: tuple[str, ...]


class Interpreter(Struct, frozen=True, kw_only=True):
    """The sandbox's interpreter.

    visible  folders that it needs
    shown    site folder → the only entries of it that may be imported; empty: all may
    preload  modules to import once
    missing  modules that would have been preloaded by default but are not installed
    """

    program: str
    visible: tuple[str, ...]
    shown: Mapping[str, Sequence[str]]
    preload: tuple[str, ...]
    missing: tuple[str, ...]


async def examine(config: SandboxConfig) -> Interpreter:
    """Examine the interpreter of `config`. Raises SandboxError where it does not start, ConfigError for packages it
    does not have."""
    python = config.python or sys.executable
    answer = await _ask(python, config)
    insists = config.preload != SandboxConfig().preload
    if answer.unknown:
        raise _not_installed(python, "packages", answer.unknown)
    if answer.missing and insists:
        raise _not_installed(python, "preload", answer.missing)
    if answer.hidden and insists:
        raise ConfigError(
            f"++sandbox.preload names {', '.join(answer.hidden)}, which ++sandbox.packages does not include."
        )
    left_out = {*answer.missing, *answer.hidden}
    return Interpreter(
        program=python,
        visible=(*answer.places, *answer.path),
        shown=answer.shown,
        preload=tuple(module for module in config.preload if module not in left_out),
        missing=answer.missing,
    )


async def _ask(python: str, config: SandboxConfig) -> _ImportAnswer:
    job = msgspec.json.encode({"preload": config.preload, "packages": config.packages}).decode()
    try:
        process = await asyncio.create_subprocess_exec(
            *(python, "-I", "-B", "-c", _ASK, _SOURCE, job),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        return msgspec.json.decode(output, type=_ImportAnswer)
    except OSError as error:
        raise SandboxError(f"{python} does not start: {error.strerror}.") from error
    except msgspec.DecodeError as error:
        error_lines = [line for line in errors.decode(errors="replace").strip().splitlines() if "Error" in line]
        why = f" ({error_lines[-1]})" if error_lines else ""
        raise SandboxError(f"{python} is not a working Python interpreter (3.11 or later){why}.") from error


def _not_installed(python: str, key: str, names: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"++sandbox.{key} names {', '.join(names)}, which {python} does not have.",
        hint=f"`{python} -m pip install {' '.join(names)}` installs it.",
    )


def narrowed(places: Iterable[str], shown: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """`places` without what `shown` leaves out, as (files and folders to read, folders to list) for Landlock, whose
    rules hold for all that lies below."""
    readable: list[str] = []
    listed: list[str] = []
    heads = [os.path.realpath(place) for place in places]
    while heads:
        place = heads.pop()
        if place in shown:
            listed.append(place)
            readable += [f"{place}/{entry}" for entry in shown[place]]
        elif any(site.startswith(f"{place}/") for site in shown):
            listed.append(place)
            heads += [entry.path for entry in os.scandir(place) if not entry.is_symlink()]
        elif not any(place.startswith(f"{site}/") for site in shown):
            readable.append(place)
    return readable, listed


def links(shown: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Site folder → a new folder with links to what is shown: where no mounts can hide the rest, this is what is
    searched for imports. The caller removes them."""
    places = {}
    for site, entries in shown.items():
        places[site] = folder = tempfile.mkdtemp(prefix="newskills-packages-")
        os.chmod(folder, 0o755)  # noqa: S103 - sessions are other users
        for entry in entries:
            os.symlink(f"{site}/{entry}", f"{folder}/{entry}")
    return places
