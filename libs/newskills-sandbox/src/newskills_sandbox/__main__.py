# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills_sandbox serve|doctor|run`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from newskills_sandbox.errors import SandboxError, SettingsError
from newskills_sandbox.settings import SandboxSettings, SessionLimits
from newskills_sandbox.variables import DEFAULT_HOST, DEFAULT_PORT, PORT_VARIABLE, TOKEN_VARIABLE


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit code."""
    options = _make_parser().parse_args(words)
    try:
        settings = _read_settings(options)
        if options.action == "doctor":
            return _print_diagnosis(settings)
        if options.action == "serve":
            return _serve_sandbox(options, settings)
        return _run_file(options, settings)
    except SandboxError as error:
        print(error, file=sys.stderr)
        if isinstance(error, SettingsError):
            return 2
        return 1


def _make_parser() -> argparse.ArgumentParser:
    usual, limits = SandboxSettings(), SessionLimits()
    common = argparse.ArgumentParser(add_help=False)
    add = common.add_argument_group("what the code may do").add_argument
    add(
        "--isolation",
        choices=("auto", "a", "b", "none"),
        default="auto",
        help="auto: the strongest; none: at your own risk",
    )
    add("--network", action="store_true", help="let the code use the network")
    add("--python", default="", help="interpreter whose packages the code may use (default: this one)")
    add("--preload", nargs="*", default=usual.preload, help="modules imported once for all (default: numpy sympy)")
    add("--packages", nargs="*", help="packages that the code may import, with what they need (default: all)")
    add("--data_dir", default="", help="folder that the code can read, at /data")
    add("--lean", default="", help="Lean 4: a program, a toolchain or a project (default: the installed one)")
    add("--memory_mb", type=int, default=limits.memory_mb, help="memory limit of a session (default: %(default)s)")
    add("--disk_mb", type=int, default=limits.disk_mb, help="disk limit of a session (default: %(default)s)")
    add("--files", type=int, default=limits.files, help="limit on its files (default: %(default)s)")
    add(
        "--processes",
        type=int,
        default=limits.processes,
        help="limit on its processes and threads (default: %(default)s)",
    )
    add(
        "--open_files",
        type=int,
        default=limits.open_files,
        help="limit on open files of a process (default: %(default)s)",
    )
    parser = argparse.ArgumentParser(prog="python -m newskills_sandbox", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    serve = actions.add_parser("serve", parents=[common], help="run a server until Ctrl-C")
    serve.add_argument("--host", default=DEFAULT_HOST, help="address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=int, help=f"0 = a free one (default: {PORT_VARIABLE}, or {DEFAULT_PORT})")
    serve.add_argument("--open", action="store_true", help="serve other machines without a token")
    serve.add_argument("--max_timeout", type=float, default=600.0, help="of a request (default: %(default)s)")
    serve.add_argument(
        "--max_sessions", type=int, default=usual.max_sessions, help="open at once (default: %(default)s)"
    )
    serve.add_argument(
        "--session_timeout", type=float, default=0.0, help="idle seconds until a session ends; 0 = never"
    )
    serve.add_argument("--concurrency", type=int, default=0, help="cells that run at once; 0 = two per core")
    actions.add_parser("doctor", parents=[common], help="show what isolates code on this machine")
    run = actions.add_parser("run", parents=[common], help="run one file, and end as it does")
    run.add_argument("file", help="the code; - = standard input")
    run.add_argument("--language", default="python", help="python, cpp, shell, lean4, … (default: %(default)s)")
    run.add_argument("--timeout", type=float, default=10.0, help="in seconds (default: %(default)s)")
    return parser


def _read_settings(options: argparse.Namespace) -> SandboxSettings:
    if options.data_dir and not Path(options.data_dir).is_dir():
        raise SettingsError(f"data_dir is not a folder: {options.data_dir}.")
    packages = None if options.packages is None else tuple(options.packages)
    return SandboxSettings(
        isolation=options.isolation,
        network=options.network,
        python=options.python,
        preload=tuple(options.preload),
        packages=packages,
        data_dir=options.data_dir,
        lean=options.lean,
        concurrency=getattr(options, "concurrency", 0),
        max_sessions=getattr(options, "max_sessions", 1000),
        session_timeout=getattr(options, "session_timeout", 0.0),
        limits=SessionLimits(
            memory_mb=options.memory_mb,
            disk_mb=options.disk_mb,
            files=options.files,
            processes=options.processes,
            open_files=options.open_files,
            timeout=getattr(options, "max_timeout", SessionLimits().timeout),
        ),
    )


def _serve_sandbox(options: argparse.Namespace, settings: SandboxSettings) -> int:
    from newskills_sandbox.http.hosts import is_loopback
    from newskills_sandbox.http.serving import serve_until_stopped

    token = os.environ.get(TOKEN_VARIABLE, "")
    try:
        near = is_loopback(options.host)
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"'{options.host}' is not an address of this machine ({error}).") from error
    if not (near or token or options.open):
        raise SettingsError(
            f"Whoever reaches {options.host or 'this machine'} could run code here.",
            hint=f"Set {TOKEN_VARIABLE} to a secret that clients send, or say --open.",
        )
    port = _listening_port(options.port)
    asyncio.run(serve_until_stopped(settings, options.host, port, token, os.environ, say=_print_line))
    return 0


def _listening_port(port: int | None) -> int:
    text = os.environ.get(PORT_VARIABLE, "")
    if port is None and text and not text.isdigit():
        raise SettingsError(f"{PORT_VARIABLE} must be a port, not {text!r}.")
    value = int(text or DEFAULT_PORT) if port is None else port
    if not 0 <= value <= 65535:
        raise SettingsError(f"{value} is not a port; expected a number from 0 to 65535.")
    return value


def _print_diagnosis(settings: SandboxSettings) -> int:
    from newskills_sandbox.doctor import MEANING, diagnose

    diagnosis = asyncio.run(diagnose(settings))
    rows = [(probe.name, probe.ok, probe.detail) for probe in diagnosis.probes]
    rows += [(name, name not in diagnosis.missing, "") for name in settings.preload]
    for name, ok, detail in rows:
        answer = "yes" if ok else "no"
        print(f"{name:22} {answer:4} {detail}".rstrip())
    for line in (*diagnosis.obstacles, MEANING[diagnosis.level]):
        print(line)
    return int(diagnosis.level == "none")


def _run_file(options: argparse.Namespace, settings: SandboxSettings) -> int:
    from newskills_sandbox.sandbox import Sandbox

    try:
        if options.file == "-":
            code = sys.stdin.read()
        else:
            code = Path(options.file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{options.file} cannot be read: {error}.") from error
    with Sandbox(settings) as sandbox:
        result = sandbox.run(code, language=options.language, timeout=options.timeout)
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    if result.exit_code is not None and result.exit_code > 0:
        return result.exit_code
    return int(result.status != "completed" or result.exit_code != 0)


def _print_line(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
