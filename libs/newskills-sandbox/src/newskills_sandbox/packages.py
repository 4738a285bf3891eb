# SPDX-License-Identifier: Apache-2.0
"""Which packages the code may import: asked of the sandbox's interpreter, which need not be this one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from newskills_sandbox.errors import SandboxError, SettingsError
from newskills_sandbox.settings import SandboxSettings

_ASK = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from newskills_sandbox.inside import installed; sys.path.pop(0); installed.main(sys.argv[2])"
)
_SOURCE = str(Path(__file__).parents[1])


class _ImportAnswer(NamedTuple):
    places: Sequence[str]
    path: Sequence[str]
    missing: Sequence[str]
    shown: Mapping[str, Sequence[str]]
    unknown: Sequence[str]
    hidden: Sequence[str]


class Interpreter(NamedTuple):
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


async def examine_interpreter(settings: SandboxSettings) -> Interpreter:
    """Check the interpreter of `settings`. Raises SandboxError where it does not start, SettingsError for packages it
    does not have."""
    python = settings.python or sys.executable
    answer = await _ask_interpreter(python, settings)
    name = settings.words.name
    insists = settings.preload != SandboxSettings().preload
    if answer.unknown:
        raise _not_installed(python, name("packages"), answer.unknown)
    if answer.missing and insists:
        raise _not_installed(python, name("preload"), answer.missing)
    if answer.hidden and insists:
        raise SettingsError(
            f"{name('preload')} names {', '.join(answer.hidden)}, which {name('packages')} does not include."
        )
    left_out = {*answer.missing, *answer.hidden}
    return Interpreter(
        program=python,
        visible=(*answer.places, *answer.path),
        shown={site: tuple(entries) for site, entries in answer.shown.items()},
        preload=tuple(module for module in settings.preload if module not in left_out),
        missing=tuple(answer.missing),
    )


async def _ask_interpreter(python: str, settings: SandboxSettings) -> _ImportAnswer:
    job = json.dumps({"preload": settings.preload, "packages": settings.packages})
    try:
        process = await asyncio.create_subprocess_exec(
            *(python, "-I", "-B", "-c", _ASK, _SOURCE, job),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        return _ImportAnswer(**json.loads(output))
    except OSError as error:
        raise SandboxError(f"{python} does not start: {error.strerror}.") from error
    except (ValueError, TypeError) as error:
        error_lines = [line for line in errors.decode(errors="replace").strip().splitlines() if "Error" in line]
        why = f" ({error_lines[-1]})" if error_lines else ""
        raise SandboxError(f"{python} is not a working Python interpreter (3.11 or later){why}.") from error


def _not_installed(python: str, key: str, names: Sequence[str]) -> SettingsError:
    return SettingsError(
        f"{key} names {', '.join(names)}, which {python} does not have.",
        hint=f"`{python} -m pip install {' '.join(names)}` installs it.",
    )


def narrow_places(places: Iterable[str], shown: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """Return `places` without what `shown` leaves out, as (files and folders to read, folders to list) for Landlock,
    whose rules hold for all that lies below."""
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


def link_folders(shown: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Map each site folder to a new folder with links to what is shown: where no mounts can hide the rest, this is
    what is searched for imports. The caller removes them."""
    places = {}
    for site, entries in shown.items():
        places[site] = folder = tempfile.mkdtemp(prefix="newskills-packages-")
        os.chmod(folder, 0o755)  # noqa: S103 - sessions are other users
        for entry in entries:
            os.symlink(f"{site}/{entry}", f"{folder}/{entry}")
    return places
