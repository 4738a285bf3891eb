# SPDX-License-Identifier: Apache-2.0
"""What speech services are asked for: a row's sound as text, or its text as sound."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError, ServerError, storage_error
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.base.store import atomic_write
from newskills.models.kinds import MODELS
from newskills.models.riva import Recognition, Speech, Synthesis, read_options
from newskills.solve.chat import MAIN, ask
from newskills.solve.parts import SolverParts

SOUNDS = "audio"
"""Folder of the sounds, beside the output file."""


class SpeechSolver:
    """Base: fields of a row that are options of the service are sent with it."""

    options: type[Speech] = Speech
    field, other = "", ""

    def __init__(self, parts: SolverParts) -> None:
        self._chat = parts.chat
        self._folder = parts.folder

    def request(self, sample: Sample) -> Request:
        """Return the request, with the row's options of the service. Raises DataError: neither field is there, the
        sound cannot be read, or an option is wrong."""
        row = sample.row
        if self.field not in row and self.other in row:
            row = {**row, self.field: row[self.other]}
        request = self._chat.request(replace(sample, row=row))
        options = {name: row[name] for name in self.options.__struct_fields__ if row.get(name) is not None}
        try:
            read_options(options, self.options)
        except ValueError as error:
            raise DataError(f"Record {sample.id}: {error}.") from error
        return replace(request, extra_body={**request.extra_body, **options})


class TranscriptionSolver(SpeechSolver):
    """The sound named by `audio_path` (or `audio_file`) → its text, under the generation key.

    Written beside it: `audio_file`, and `words` with times in seconds where they were asked for.
    """

    options, field, other = Recognition, "audio_path", "audio_file"

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        reply = await ask(kit.models[MAIN], request)
        attempt = await self._chat.attempt(sample, request, reply, reply.text)
        attempt.fields["audio_file"] = sample.row.get(self.field, sample.row.get(self.other))
        if words := (reply.raw_message or {}).get("words"):
            attempt.fields["words"] = words
        return attempt


class SynthesisSolver(SpeechSolver):
    """The `text` (or `prompt`) → a WAV file, whose path from the output's folder is under the generation key.

    Written beside it: the same as `audio_file`, and `duration` in seconds.
    """

    options, field, other = Synthesis, "text", "prompt"

    def request(self, sample: Sample) -> Request:
        """Return the request of a sound. Raises DataError also for a file name that leads elsewhere."""
        request = super().request(sample)
        self._name(request)
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Write the sound into a file, which the attempt names. Raises ServerError where none came."""
        reply = await ask(kit.models[MAIN], request)
        sound: Row | None = (reply.raw_message or {}).get("audio")
        if sound is None:
            raise ServerError(f"{kit.models[MAIN].name} sent no audio.")
        name = self._name(request)
        await asyncio.to_thread(_write_sound, self._folder / name, base64.b64decode(sound["data"]))
        attempt = await self._chat.attempt(sample, request, reply, name)
        attempt.fields |= {"audio_file": name, "duration": sound["seconds"]}
        return attempt

    def _name(self, request: Request) -> str:
        """Return the path of the sound below the output's folder. Raises DataError."""
        chosen = request.extra_body.get("output_filename") or f"{request.key()}.wav"
        path = PurePosixPath(chosen)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise DataError(f"output_filename is '{chosen}', but audio is written only below {SOUNDS}/.")
        return f"{SOUNDS}/{path}"


def check_speech(server_type: str, solver: str) -> None:
    """Raise ConfigError where sound would come back and nothing kept it."""
    properties = MODELS.properties(server_type)
    if properties.sends_media and solver != properties.solver:
        raise ConfigError(
            f"{server_type} answers with audio, which solver={solver} does not keep.",
            hint=f"Use ns generate without ++solver, or set ++solver={properties.solver}.",
        )


def _write_sound(path: Path, sound: bytes) -> None:
    """Write `sound` to `path`. Raises StorageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, path) from error
    with atomic_write(path) as file:
        file.write(sound)
