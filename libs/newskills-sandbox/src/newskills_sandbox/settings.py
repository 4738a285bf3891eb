# SPDX-License-Identifier: Apache-2.0
"""What a sandbox's sessions may use, and how they are kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from newskills_sandbox.errors import SettingsError

Isolation = Literal["auto", "a", "b", "none"]


@dataclass(frozen=True, kw_only=True)
class SessionLimits:
    """What one session may use, with all its processes.

    memory_mb   of all processes and files together
    disk_mb     of /tmp, /sandbox and /dev/shm together
    files       that may be there
    processes   and threads
    open_files  of a process
    timeout     the largest that a request may ask for, in seconds
    """

    memory_mb: int = 2048
    disk_mb: int = 256
    files: int = 8192
    processes: int = 64
    open_files: int = 256
    timeout: float = 3600.0

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if not getattr(self, name) >= least:
                raise SettingsError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        if not self.timeout > 0:
            raise SettingsError(f"timeout must be above 0 seconds, not {self.timeout}.")


_LEAST = {"memory_mb": 64, "disk_mb": 1, "files": 64, "processes": 4, "open_files": 32}


@dataclass(frozen=True, kw_only=True)
class SettingWords:
    """How messages call settings and commands: a program that has a sandbox inside has names of its own for them.

    setting  template of the name of a setting
    doctor   what to do where code cannot be isolated
    """

    setting: str = "{}"
    doctor: str = (
        "`python -m newskills_sandbox doctor` shows what is missing; isolation='none' runs code without isolation, at "
        "your own risk."
    )

    def name(self, key: str) -> str:
        """Return how the setting `key` is called."""
        return self.setting.format(key)


@dataclass(frozen=True, kw_only=True)
class SandboxSettings:
    """How code is kept apart, and what it finds.

    isolation        auto: the strongest of this machine; a: name spaces; b: Landlock; none: at your own risk
    network          let the code use the network
    python           interpreter whose packages the code may use; empty: this one
    preload          modules imported once and shared by all sessions; those by default may be missing
    packages         Python packages that the code may import, with their dependencies; None: all
    data_dir         folder that the code can read: as /data at isolation level a, at every level as $DATA_DIR
    folders          places where sessions see further folders, read-only → these folders; isolation level a
    address_space    limit the addresses that a program maps to its memory; some map far more than they use
    lean             Lean 4: a lean program, a toolchain or a built Lake project; empty: the installed one
    concurrency      cells that run at once; 0: two per core, plus more while those sleep
    max_sessions     open at once
    session_timeout  idle seconds after which a session ends; 0: never
    free_memory_mb   while less is free, idle sessions end, the longest idle first; 0: an eighth of the machine's, at
                     most 4096
    """

    isolation: Isolation = "auto"
    network: bool = False
    python: str = ""
    preload: tuple[str, ...] = ("numpy", "sympy")
    packages: tuple[str, ...] | None = None
    data_dir: str = ""
    folders: Mapping[str, str] = field(default_factory=dict)
    address_space: bool = True
    lean: str = ""
    concurrency: int = 0
    max_sessions: int = 1000
    session_timeout: float = 0.0
    free_memory_mb: int = 0
    limits: SessionLimits = field(default_factory=SessionLimits)
    words: SettingWords = field(default_factory=SettingWords, repr=False)

    def __post_init__(self) -> None:
        if self.isolation not in ("auto", "a", "b", "none"):
            raise SettingsError(f"isolation must be auto, a, b or none, not {self.isolation!r}.")
        for name in ("concurrency", "session_timeout", "free_memory_mb"):
            if not getattr(self, name) >= 0:
                raise SettingsError(f"{name} must be at least 0, not {getattr(self, name)}.")
        if self.max_sessions < 1:
            raise SettingsError(f"max_sessions must be at least 1, not {self.max_sessions}.")
