# SPDX-License-Identifier: Apache-2.0
"""What `ns view DIR…` does: results, samples, comparisons and trainings in a browser."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.options import DryRun, doc
from newskills.pipelines.serving.ended import RunningService

NEEDS = ("starlette", "uvicorn")


class ViewCommandOptions(Struct, frozen=True, kw_only=True):
    folders: Annotated[
        list[str], doc("folders with results or trainings, at any depth (default: this one)", {"positional": True})
    ] = []
    export: Annotated[
        str | None, doc("write a folder that opens from a file, without this program, instead of serving")
    ] = None
    export_samples: Annotated[
        int,
        Meta(
            ge=0,
            description="samples of each benchmark and run that an export holds; the page says what is left out",
        ),
    ] = 1000
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 = any free port")] = 0
    host: Annotated[
        str,
        doc("address to listen on; with any other than this machine's own, everybody who knows the token gets in"),
    ] = "127.0.0.1"
    new_token: Annotated[
        bool, doc("make a new token for the address: earlier addresses and bookmarks stop working")
    ] = False
    open: Annotated[bool, doc("also open the page in this machine's browser")] = False
    dry_run: DryRun = False


def run(parsed: Parsed[ViewCommandOptions]) -> int:
    """Serve until Ctrl-C, or export. Raises as `start_or_export_viewer`."""
    try:
        service = start_or_export_viewer(parsed)
        if service is None or parsed.options.export is not None:
            return 0
        with service:
            sys.stdout.write(f"{service.address}\n")
            sys.stdout.flush()
            port = service.address.split("/")[2].rpartition(":")[2]
            sys.stderr.write(
                f"From another machine: ssh -L {port}:127.0.0.1:{port} HOST, then open this address. Ctrl-C stops.\n"
            )
            if parsed.options.open:
                webbrowser.open(service.address)
            Event().wait()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
    return 0


def start_or_export_viewer(parsed: Parsed[ViewCommandOptions]) -> RunningService | None:
    """Return the viewer that serves until it is closed, or the page that was exported, at its file: address; None for a
    dry run. Raises ConfigError, DataError, ServerStartError."""
    options = parsed.options
    folders = tuple(Path(folder).expanduser() for folder in options.folders or ["."])
    if options.dry_run:
        show_dry_run(_dry_run_steps(folders, options))
        return None
    if options.export is not None:
        from newskills.view.export import export_viewer

        written = export_viewer(folders, Path(options.export).expanduser(), options.export_samples)
        sys.stdout.write(f"{written.page}: {written.samples:,} samples, {written.size / 1e6:.1f} MB\n")
        for note in written.notes:
            sys.stderr.write(f"note: {note}\n")
        return RunningService(written.page.resolve().as_uri())
    return _start_viewer(folders, options)


def _start_viewer(folders: tuple[Path, ...], options: ViewCommandOptions) -> RunningService:
    if missing := [module for module in NEEDS if find_spec(module) is None]:
        raise ConfigError(
            f"ns view needs {' and '.join(missing)}, which this environment lacks.",
            hint="Run: pip install 'newskills[view]'. Without them, ns view DIR --export OUT writes a folder to open.",
        )
    from newskills.view.server import ViewOptions, serve_viewer

    place = ViewOptions(folders=folders, host=options.host, port=options.port, new_token=options.new_token)
    with ExitStack() as stack:
        address = stack.enter_context(serve_viewer(place))
        return RunningService(address, stack.pop_all())


def _dry_run_steps(folders: tuple[Path, ...], options: ViewCommandOptions) -> list[Step]:
    reads: list[Step] = [("reads", folder, "results and trainings in it") for folder in folders]
    if options.export is not None:
        return [*reads, ("writes", Path(options.export), "a page, its data and its scripts")]
    return [*reads, ("writes", ".view", "an index beside each file of records that is looked at")]
