# SPDX-License-Identifier: Apache-2.0
"""Where the sandbox is, what its sessions may use, and how they are kept apart (`++sandbox.*`)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one session may use, with all its processes (`++sandbox.limits.*`)."""

    memory_mb: Annotated[int, Meta(ge=64, description="memory limit of all processes and files together")] = 2048
    disk_mb: Annotated[int, Meta(ge=1, description="disk limit of /tmp, /sandbox and /dev/shm together")] = 256
    files: Annotated[int, Meta(ge=64, description="largest number of files there")] = 8192
    processes: Annotated[int, Meta(ge=4, description="largest number of processes and threads")] = 64
    open_files: Annotated[int, Meta(ge=32, description="largest number of open files of a process")] = 256
    timeout: Annotated[float, Meta(gt=0, description="largest timeout that a request may ask for, in seconds")] = (
        3600.0
    )


class SandboxConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A running server (`host`, `port`), or one inside this process (all other keys)."""

    type: Annotated[Literal["local"], Meta(description="accepted for older scripts")] = "local"
    host: Annotated[
        str, Meta(description="address of a running sandbox server; empty: use a sandbox of this machine")
    ] = ""
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None, Meta(description="port of that server (6000)")
    ] = None
    disable_session_restore: Annotated[
        bool, Meta(description="if the state of a session is lost, do not run its finished cells again")
    ] = False
    isolation: Annotated[
        Literal["auto", "a", "b", "none"],
        Meta(
            description="auto: the strongest isolation of this machine; none: no isolation at all, at your "
            "own risk"
        ),
    ] = "auto"
    network: Annotated[bool, Meta(description="let the code use the network")] = False
    python: Annotated[
        str, Meta(description="Python interpreter whose packages the code may use; empty: this one")
    ] = ""
    preload: Annotated[tuple[str, ...], Meta(description="modules imported once and shared by all sessions")] = (
        "numpy",
        "sympy",
    )
    packages: Annotated[
        tuple[str, ...] | None,
        Meta(description="Python packages that the code may import, with their dependencies; null = all"),
    ] = None
    data_dir: Annotated[
        str,
        Meta(
            description="folder that the code can read: as /data at isolation level a, at every level as $DATA_DIR"
        ),
    ] = ""
    lean: Annotated[
        str,
        Meta(description="Lean 4: a lean program, a toolchain or a built Lake project; empty: the installed one"),
    ] = ""
    concurrency: Annotated[
        int, Meta(ge=0, description="cells that run at once; 0 = two per core, plus more while those sleep")
    ] = 0
    max_sessions: Annotated[int, Meta(ge=1, description="largest number of open sessions")] = 1000
    session_timeout: Annotated[
        float, Meta(ge=0, description="idle seconds after which a session ends; 0 = never")
    ] = 0.0
    free_memory_mb: Annotated[
        int,
        Meta(
            ge=0,
            description="while less memory is free, idle sessions end, the longest idle first (their clients run "
            "their cells again); 0 = an eighth of the machine's, at most 4096",
        ),
    ] = 0
    limits: Limits = Limits()
