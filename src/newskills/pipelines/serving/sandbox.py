# SPDX-License-Identifier: Apache-2.0
"""What `ns sandbox serve|doctor` does: code that a model wrote, run where it can do no harm."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct

from newskills.base import aio
from newskills.base.errors import ConfigError
from newskills.base.tables import print_table, print_text
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer, Resolved, explain, resolve
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.options import DryRun, doc
from newskills.pipelines.serving.ended import RunningService
from newskills.pipelines.serving.token import Open, TokenFile, check_reach, describe_access, token_of
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.make import port_of, with_environ_settings
from newskills_sandbox.variables import TOKEN_VARIABLE

if TYPE_CHECKING:
    from newskills_sandbox.doctor import Diagnosis

SERVE = {"group": "serve"}
CODE = {"group": "what the code may do"}

KEYS = {
    "sandbox": "isolation",
    "network": "network",
    "python": "python",
    "preload": "preload",
    "packages": "packages",
    "data_dir": "data_dir",
    "session_timeout": "session_timeout",
    "max_sessions": "max_sessions",
    "concurrency": "concurrency",
    "max_timeout": "limits.timeout",
    "memory_mb": "limits.memory_mb",
    "disk_mb": "limits.disk_mb",
    "files": "limits.files",
    "processes": "limits.processes",
}
"""SandboxOptions → keys of `++sandbox.*` that mean the same."""


class SandboxOptions(Struct, frozen=True, kw_only=True):
    action: Annotated[
        Literal["serve", "doctor"],
        doc(
            "serve: run the server until Ctrl-C; doctor: show what isolates code on this machine",
            {"positional": True},
        ),
    ]
    dry_run: DryRun = False
    host: Annotated[str, doc("address to listen on", SERVE)] = "127.0.0.1"
    port: Annotated[
        int | None, doc("port to listen on; 0 = a free one (default: NEMO_SKILLS_SANDBOX_PORT, or 6000)", SERVE)
    ] = None
    token_env: Annotated[
        str, doc("environment variable with the token that clients must send, if it is set", SERVE)
    ] = TOKEN_VARIABLE
    token_file: TokenFile = None
    open: Open = False
    max_sessions: Annotated[int, doc("largest number of open sessions", SERVE)] = 1000
    session_timeout: Annotated[float, doc("idle seconds after which a session ends; 0 = never", SERVE)] = 0.0
    concurrency: Annotated[
        int, doc("cells that run at once; 0 = two per core, plus more while those sleep", SERVE)
    ] = 0
    max_timeout: Annotated[float, doc("largest timeout that a request may ask for, in seconds", SERVE)] = 600.0
    sandbox: Annotated[
        Literal["auto", "a", "b", "none"],
        doc("isolation; auto: the strongest that this machine offers; none: no isolation, at your own risk", CODE),
    ] = "auto"
    network: Annotated[bool, doc("let the code use the network", CODE)] = False
    python: Annotated[str, doc("interpreter whose packages the code may use (default: this one)", CODE)] = ""
    preload: Annotated[tuple[str, ...], doc("modules imported once and shared by all sessions", CODE)] = (
        "numpy",
        "sympy",
    )
    packages: Annotated[
        list[str] | None,
        doc("Python packages that the code may import, with their dependencies (default: all)", CODE),
    ] = None
    data_dir: Annotated[str, doc("folder that the code can read, at /data", CODE)] = ""
    memory_mb: Annotated[int, doc("memory limit of a session", CODE)] = 2048
    disk_mb: Annotated[int, doc("disk limit of a session", CODE)] = 256
    files: Annotated[int, doc("limit on the number of files of a session", CODE)] = 8192
    processes: Annotated[int, doc("limit on processes and threads of a session", CODE)] = 64


class Keys(Struct, frozen=True, kw_only=True):
    """What `++` reaches."""

    sandbox: SandboxConfig = SandboxConfig()


class SandboxService(RunningService):
    """A sandbox at `address` until `close()`; empty where the machine was only looked at.

    isolation_level   what isolates code here; `none` where nothing does
    missing           modules to preload that are not installed
    """

    def __init__(self, address: str, isolation_level: str, missing: Sequence[str], stack: ExitStack) -> None:
        super().__init__(address, stack)
        self.isolation_level, self.missing = isolation_level, tuple(missing)


def run(parsed: Parsed[SandboxOptions]) -> int:
    resolved = _resolve_keys(parsed)
    if parsed.explain:
        print_table(explain(resolved))
        return 0
    config = _settled_config(resolved.value.sandbox)
    if parsed.options.action == "doctor":
        diagnosis = _diagnose_isolation(config)
        _print_diagnosis(diagnosis, config.preload)
        return int(diagnosis.level == "none")
    from newskills.sandbox.serving import serve_until_stopped

    if (place := _listening_place(parsed, resolved)) is not None:
        aio.run(lambda: serve_until_stopped(config, *place, say=_print_paragraph))
    return 0


def serve_or_examine_sandbox(parsed: Parsed[SandboxOptions]) -> SandboxService | None:
    """Return the sandbox that serves until it is closed, or what isolates code on this machine; None for a dry run.

    Raises SandboxError where a sandbox is to be served and code cannot be isolated, ConfigError, ServerStartError.
    """
    resolved = _resolve_keys(parsed)
    config = _settled_config(resolved.value.sandbox)
    if parsed.options.action == "doctor":
        diagnosis = _diagnose_isolation(config)
        return SandboxService("", diagnosis.level, diagnosis.missing, ExitStack())
    from newskills.run.grade import LoopThread
    from newskills.sandbox.serving import serve_sandbox

    if (place := _listening_place(parsed, resolved)) is None:
        return None
    with ExitStack() as stack:
        loop = stack.enter_context(LoopThread())
        serving = serve_sandbox(config, *place)
        running = loop.run(serving.__aenter__())
        stack.callback(lambda: loop.run(serving.__aexit__(None, None, None)))
        return SandboxService(running.url, running.isolation_level, running.missing, stack.pop_all())


def _listening_place(
    parsed: Parsed[SandboxOptions], resolved: Resolved[Keys]
) -> tuple[str, int, dict[str, str]] | None:
    """Return host, port and environment of the server; show them and return None for a dry run. Raises ConfigError."""
    options = parsed.options
    port = port_of(options.port, os.environ)
    token = token_of(options.token_env, options.token_file, os.environ, usual=TOKEN_VARIABLE)
    check_reach(options.host, token, open_to_all=options.open)
    if options.dry_run:
        rows = explain(resolved)
        settings: list[Step] = [("setting", f"++{key}", f"{value} ({source})") for key, value, source in rows]
        show_dry_run([("listens", f"{options.host}:{port or 'a free port'}", describe_access(token)), *settings])
        return None
    return options.host, port, {**os.environ, TOKEN_VARIABLE: token}


def _resolve_keys(parsed: Parsed[SandboxOptions]) -> Resolved[Keys]:
    options_given: dict[str, Any] = {
        f"sandbox.{key}": getattr(parsed.options, name) for name, key in KEYS.items() if name in parsed.given
    }
    options_given["sandbox.limits.timeout"] = (
        parsed.options.max_timeout
    )  # of strangers' requests; a run's own may be longer
    return resolve(Keys, [Layer("options", options_given), Layer("command line", parsed.overrides)])


def _settled_config(config: SandboxConfig) -> SandboxConfig:
    if config.host or config.port is not None:
        raise ConfigError(
            "++sandbox.host and ++sandbox.port are for a running server.", hint="Give --host and --port here."
        )
    return with_environ_settings(config, os.environ)


def _diagnose_isolation(config: SandboxConfig) -> Diagnosis:
    from newskills.sandbox.host import settings_of
    from newskills.sandbox.own_errors import own_errors
    from newskills_sandbox.doctor import diagnose

    with own_errors():
        return aio.run(lambda: diagnose(settings_of(config)))


def _print_diagnosis(diagnosis: Diagnosis, preload: Sequence[str]) -> None:
    from newskills.sandbox.serving import INSTALL
    from newskills_sandbox.doctor import MEANING

    absent, level = diagnosis.missing, diagnosis.level
    rows = [(probe.name, "yes" if probe.ok else "no", probe.detail) for probe in diagnosis.probes]
    print_table([*rows, *((name, "no" if name in absent else "yes", "") for name in preload)])
    if absent:
        _print_paragraph(f"The sandbox finds no {' and no '.join(absent)} on this machine. {INSTALL}")
    for obstacle in diagnosis.obstacles:
        _print_paragraph(obstacle)
    _print_paragraph(NO_ISOLATION if level == "none" else MEANING[level])


NO_ISOLATION = (
    "Code cannot be isolated on this machine; --sandbox=none would run it without isolation, at your own risk."
)


def _print_paragraph(text: str) -> None:
    print_text(text)
    sys.stdout.flush()
