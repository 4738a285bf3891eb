# SPDX-License-Identifier: Apache-2.0
"""What `ns push DIR --to=hf://…` does: results, scores and models to the Hugging Face hub."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import DataError
from newskills.base.tables import print_table
from newskills.base.terminal import counted, printable
from newskills.config.command_line import Parsed
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import doc, optional_path

if TYPE_CHECKING:
    from newskills.exchange.hub.secrets import FoundSecret
    from newskills.exchange.hub.upload import HubTarget
    from newskills.pipelines.results.pushed import PreparedPush

MOST_SECRETS = 10
"""Secrets that are listed."""


class PushOptions(Struct, frozen=True, kw_only=True):
    folder: Annotated[str, doc("folder of results, of a training, or of a model", {"positional": True})]
    to: Annotated[
        str,
        doc("hf://datasets/OWNER/NAME: samples as a data set; hf://OWNER/NAME: a model, or the scores of a model"),
    ]
    results: Annotated[str | None, doc("with a model: folder of its results, whose scores are sent along")] = None
    hub_dataset: Annotated[
        list[str], doc("what the hub calls a benchmark, for scores: gsm8k=openai/gsm8k:main; repeatable")
    ] = []
    send: Annotated[bool, doc("send it; without this option nothing leaves this machine")] = False
    public: Annotated[bool, doc("make a new repository public, and write to one that is public")] = False
    allow_secrets: Annotated[bool, doc("send although texts look like secrets")] = False
    message: Annotated[str, doc("message of the commit")] = "Upload with newskills"


class Push(Struct, frozen=True, kw_only=True):
    """Files for a repository of the hub, by their paths in it: `address` of the repository, and of the `commit`, empty
    where nothing was sent."""

    files: list[str]
    address: str
    commit: str = ""


def push_folder(parsed: Parsed[PushOptions]) -> Push:
    """Show what would be sent, and send it where that is told; return what it is. Raises ConfigError, DataError,
    HttpError."""
    from newskills.exchange.hub.upload import parse_target, push_files
    from newskills.pipelines.results.pushed import PushSource, prepare_push

    options = parsed.options
    target = parse_target(options.to)
    with tempfile.TemporaryDirectory(prefix="newskills-push-") as name:
        source = PushSource(Path(options.folder), optional_path(options.results), options.hub_dataset)
        prepared = prepare_push(source, target, Path(name))
        for note in prepared.notes:
            print_note(note)
        _print_files(prepared, target, options)
        if prepared.secrets and not options.allow_secrets:
            raise DataError(
                f"{counted(len(prepared.secrets), 'text')} of these files look like secrets, so nothing is sent.",
                hint="Remove them, or if they are none: --allow_secrets",
            )
        push = Push(files=[file.path for file in prepared.files], address=target.address)
        if not options.send:
            sys.stdout.write("Nothing was sent: this is a dry run. To send it, add --send.\n")
            return push
        commit = push_files(target, prepared.files, is_public=options.public, message=options.message)
    sys.stdout.write(f"{commit}\n")
    return replace(push, commit=commit)


def _print_files(prepared: PreparedPush, target: HubTarget, options: PushOptions) -> None:
    rows = [(printable(file.path), _format_size(file.size)) for file in prepared.files]
    print_table(rows, ("file", "size"))
    visibility = "public" if options.public else "private"
    sys.stdout.write(
        f"to {target.address} ({visibility}), {_format_size(sum(file.size for file in prepared.files))}\n"
    )
    _show_secrets(prepared.secrets)


def _show_secrets(secrets: Sequence[FoundSecret]) -> None:
    if secrets:
        rows = [
            (printable(secret.file), secret.form, printable(secret.shown)) for secret in secrets[:MOST_SECRETS]
        ]
        print_table(rows, ("looks like a secret in", "form", "begins"))


def _format_size(size: int) -> str:
    if size >= 1e6:
        return f"{size / 1e6:.1f} MB"
    return f"{max(size, 1) / 1e3:.1f} kB"
