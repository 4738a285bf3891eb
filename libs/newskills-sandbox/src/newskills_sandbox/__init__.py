# SPDX-License-Identifier: Apache-2.0
"""Code that a language model wrote, run where it can do no harm.

    from newskills_sandbox import Sandbox

    with Sandbox() as sandbox, sandbox.session() as session:
        session.run("x = 20 + 1")
        print(session.run("print(2 * x)").stdout)  # 42

What is imported here loads when it is first used: `newskills_sandbox.inside` is imported by interpreters that have
nothing else installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from newskills_sandbox._version import __version__

if TYPE_CHECKING:
    from newskills_sandbox.errors import ExecutionRefusedError, SandboxError, SettingsError
    from newskills_sandbox.execution import CodeRunner, Execution, ExecutionResult
    from newskills_sandbox.http.client import SandboxClient
    from newskills_sandbox.replay import ReplayingSandbox
    from newskills_sandbox.sandbox import Sandbox, SandboxSession
    from newskills_sandbox.sessions import AsyncSandbox
    from newskills_sandbox.settings import SandboxSettings, SessionLimits

__all__ = [
    "AsyncSandbox",
    "CodeRunner",
    "Execution",
    "ExecutionRefusedError",
    "ExecutionResult",
    "ReplayingSandbox",
    "Sandbox",
    "SandboxClient",
    "SandboxError",
    "SandboxSession",
    "SandboxSettings",
    "SessionLimits",
    "SettingsError",
    "__version__",
]

_PLACES = {
    "AsyncSandbox": "sessions",
    "CodeRunner": "execution",
    "Execution": "execution",
    "ExecutionRefusedError": "errors",
    "ExecutionResult": "execution",
    "ReplayingSandbox": "replay",
    "Sandbox": "sandbox",
    "SandboxClient": "http.client",
    "SandboxError": "errors",
    "SandboxSession": "sandbox",
    "SandboxSettings": "settings",
    "SessionLimits": "settings",
    "SettingsError": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"newskills_sandbox.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
