# SPDX-License-Identifier: Apache-2.0
"""The table of published prompts (`sources.jsonl`), which is read only where a prompt is looked for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec
from msgspec import Struct

from newskills.base.cache import data_dir
from newskills.base.registry import fold

PromptSource = Literal["official", "newskills"]
NEWSKILLS = "newskills"
CASE, OTHERS = "<case>", "*"
FOLDER = "official_prompts"
"""Beside the rows of a benchmark, or at the top of the data folder."""
_TABLE = Path(__file__).with_name("sources.jsonl")
_SHOWN = 12


class OfficialPrompt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published prompt: which prompt of the library it is used in place of, and how its files are read.

    prompt         name in the library, or a name of its own that only its publisher has
    benchmarks     for these only; none: for all that are asked with this prompt
    repository     `owner/name` on GitHub, at the commit `revision`
    files          path in the repository → sha256
    licence        of the repository
    fields         placeholder of the published text → field of our rows
    style          braces: the text is a template of `str.format`; positions: one whose places are all `{}`, which
                   `fields` numbers from 0; marks: the keys of `fields` stand in it as they are, for a field, or for
                   a template of several
    user, system   parts of the text, one after the other; none of both: the file is a prompt in YAML as it is
    case, cases    field of our rows on which `user` depends, and its values (`*`: any other) → what `<case>` stands for
                   in the parts of `user`, or parts of their own
    same           the library's own text is the same: nothing is lost where it is not downloaded
    example        parts of one few-shot example
    examples_type  few-shot set, with fields of the row in braces
    image_field    as in a prompt's file

    A part that begins with `@` is read from a file: `@FILE` (a text), `@FILE:place` (see `reading`), of which `~REGEX`
    at the end takes the first match; with `=@` it is read as a text without places for fields. Other parts are texts of
    ours: fields, line ends, labels.
    """

    prompt: str
    repository: str
    revision: str
    files: dict[str, str]
    licence: str
    benchmarks: tuple[str, ...] = ()
    fields: dict[str, str] = {}
    style: Literal["braces", "marks", "positions"] = "braces"
    case: str = ""
    cases: dict[str, str | tuple[str, ...]] = {}
    same: bool = False
    user: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    example: tuple[str, ...] = ()
    examples_type: str | None = None
    image_field: str | None = None

    def url(self, path: str) -> str:
        """Return the address of one of its files."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.revision}/{path}"

    def places(self, folder: Path) -> dict[str, Path]:
        """Return path in the repository → where the file lies below `folder`."""
        own = folder.joinpath(*self.prompt.split("/"))
        return {path: own / PurePosixPath(path).name for path in self.files}

    @property
    def page(self) -> str:
        """The address at which people read it."""
        path = next(iter(self.files))
        return f"https://github.com/{self.repository}/blob/{self.revision}/{path}"

    @property
    def sum_shown(self) -> str:
        """The beginning of its sha256; of several files, of that of their sums."""
        sums = list(self.files.values())
        if len(sums) > 1:
            sums = [hashlib.sha256("".join(sums).encode()).hexdigest()]
        return f"sha256 {sums[0][:_SHOWN]}"

    @property
    def label(self) -> str:
        """What stands beside scores: `official (source, hash)`."""
        return f"official (github.com/{self.repository}@{self.revision[:_SHOWN]}, {self.sum_shown})"


def is_official(source: str) -> bool:
    """Return whether the `source` of a prompt says that its wording is a published one, if changed."""
    return source.startswith("official ")


@cache
def official_prompts() -> Sequence[OfficialPrompt]:
    """Return all published prompts that the table knows."""
    return tuple(msgspec.json.Decoder(OfficialPrompt).decode_lines(_TABLE.read_bytes()))


def entries_of(prompt: str) -> list[OfficialPrompt]:
    """Return what is published for the prompt `prompt`, that for single benchmarks first."""
    entries = [entry for entry in official_prompts() if fold(entry.prompt) == fold(prompt)]
    return sorted(entries, key=lambda entry: not entry.benchmarks)


def worded_otherwise(prompt: str) -> bool:
    """Return whether something is published for `prompt` that is not the library's own text."""
    return any(not entry.same for entry in entries_of(prompt))


def entries_for(benchmark: str, prompts: Sequence[str]) -> list[list[OfficialPrompt]]:
    """Return what is published for a benchmark that is asked and judged with `prompts`: alternatives for each prompt.

    What is published for this benchmark goes before what is for all.
    """
    own = [entry.prompt for entry in official_prompts() if benchmark in entry.benchmarks]
    fitting = [
        [entry for entry in entries_of(prompt) if not entry.benchmarks or benchmark in entry.benchmarks]
        for prompt in dict.fromkeys([*prompts, *own])
    ]
    return [alternatives for alternatives in fitting if alternatives]


def official_folders(source: PromptSource | None, beside: str | Path | None = None) -> tuple[str, ...]:
    """Return where official prompts are looked for: `beside` (a folder of them), then in the data folder."""
    if source == NEWSKILLS:
        return ()
    places = [beside] if beside else []
    return tuple(str(place) for place in (*places, data_dir() / FOLDER))
