# SPDX-License-Identifier: Apache-2.0
"""Solutions of an earlier run, found by the md5 of the rendered prompt. Only their places are held in memory."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Request, Row, Sample
from newskills.base.store import decode_row
from newskills.solve.parts import SolverParts
from newskills.solve.selection.candidates import Candidate, CandidateSet
from newskills.solve.selection.selecting import Design, shown_text

_SEEDED = re.compile(r"output-rs(\d+)\.jsonl")
_KEPT = (
    "reasoning_content",
    "finish_reason",
    "_full_generation",
    "_generation_finished_thinking",
    "predicted_answer",
    "num_generated_tokens",
)


class StoredSource:
    """Solutions in `output-rs*.jsonl` of a folder; of each row the first `most`, in the order of their seeds.

    Records that their run could not get (`error`) are left out. A prompt that differs in a single character is
    another problem.
    """

    def __init__(self, parts: SolverParts, design: Design, folder: Path, key: str, most: int | None) -> None:
        """Read all files once. Raises DataError for a folder without such files, and for what is no JSON."""
        self._solver, self._own, self._key = parts.drawn_by, parts.chat.generation_key, key
        self._most = most
        self._end = parts.chat.end_reasoning if design.settings.parse_reasoning_solutions else None
        self._folder = folder
        self._files = _seeded_files(folder)
        self._places: dict[bytes, list[tuple[int, int]]] = {}
        for number, path in enumerate(self._files):
            for offset, row in _read_rows(path):
                if "error" not in row:
                    key_of = prompt_md5(self._solver.request(_make_sample(row)))
                    self._places.setdefault(key_of, []).append((number, offset))

    @property
    def digest(self) -> Row:
        return {"files": [[path.name, path.stat().st_size] for path in self._files], "most": self._most}

    async def candidates(self, sample: Sample, request: Request, kit: Kit) -> CandidateSet:
        """Return the solutions of this row, `most` at most. Raises DataError where the folder has no solution of this
        row."""
        places = self._places.get(prompt_md5(request), [])[: self._most]
        if not places:
            raise DataError(
                f"Record {sample.id}: no solution in {self._folder} was generated with the same prompt.",
                hint="Use the prompt_config, system_message and code_tags with which the solutions were generated.",
            )
        return CandidateSet(candidates=await asyncio.to_thread(self._read, places))

    def _read(self, places: list[tuple[int, int]]) -> list[Candidate]:
        return [self._candidate(number, *place) for number, place in enumerate(places)]

    def _candidate(self, number: int, file: int, offset: int) -> Candidate:
        path = self._files[file]
        with path.open("rb") as lines:
            lines.seek(offset)
            row = decode_row(lines.readline(), path, 0)
        text = shown_text(row, self._key, self._own, self._end)
        fields = {self._own: str(row.get(self._own) or text)} | {n: row[n] for n in _KEPT if n in row}
        return Candidate(number=number, text=text, fields=fields)


def prompt_md5(request: Request) -> bytes:
    """Hash all that the model would be shown."""
    shown = request.prompt if request.messages is None else request.messages
    return hashlib.md5(msgspec.json.encode(shown), usedforsecurity=False).digest()


def _seeded_files(folder: Path) -> list[Path]:
    seeded_files = [
        (int(match[1]), path) for path in folder.glob("*.jsonl") if (match := _SEEDED.fullmatch(path.name))
    ]
    if not seeded_files:
        raise DataError(
            f"{folder} has no output-rs*.jsonl to take solutions from.",
            hint="Generate them first: ns generate … --num_random_seeds=8 --output_dir=…",
        )
    return [path for _, path in sorted(seeded_files)]


def _read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    with path.open("rb") as lines:
        offset = 0
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield offset, decode_row(line, path, number)
            offset += len(line)


def _make_sample(row: Row) -> Sample:
    return Sample(id=str(row.get("id", "")), row=row)
