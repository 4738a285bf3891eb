# SPDX-License-Identifier: Apache-2.0
"""Single replies on disk, so that a sample of many calls that was cut short does not ask all of them again."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.protocols import Model
from newskills.base.records import Reply, Request
from newskills.base.store import encode_line
from newskills.run.records.log import GroupLog, LogReader, log_lines


class _Line(Struct):
    key: str
    reply: Reply


class CachedModel:
    """A Model that answers a request it has seen from `path`, by the request's hash."""

    def __init__(self, model: Model, path: Path, log: GroupLog) -> None:
        self.name = model.name
        self._model, self._path, self._log = model, path, log
        self._decoder = msgspec.json.Decoder(_Line)
        self._known = {key: offset for offset, line in log_lines(path) if (key := self._key(line))}

    async def complete(self, request: Request) -> Reply:
        key = request.key()
        if (offset := self._known.get(key)) is not None:
            await self._log.flush()
            with LogReader(self._path) as reader:
                return self._decoder.decode(reader.line(offset)).reply
        reply = await self._model.complete(request)
        self._known[key] = self._log.append(encode_line(_Line(key, reply)))
        return reply

    def _key(self, line: bytes) -> str:
        """Return the key of a line; empty for a damaged one, whose reply is asked for again."""
        try:
            return self._decoder.decode(line).key
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return ""

    async def close(self) -> None:
        """Close the log of replies; the model behind it belongs to its owner."""
        await self._log.close()
