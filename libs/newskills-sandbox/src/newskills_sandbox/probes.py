# SPDX-License-Identifier: Apache-2.0
"""How strongly code can be kept apart on this machine, found out by trying (`doctor`).

Level a: name spaces of its own and a system call filter. Level b: Landlock and the filter, where name spaces are
refused, as in most containers. "none": neither.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from newskills_sandbox.cgroups import Cgroups

IsolationLevel = Literal["a", "b", "none"]

_DEADLINE = 120.0  # seconds for all trials together; they take a tenth of one, unless one hangs
_START = "import sys; sys.path.append(sys.argv[1]); from newskills_sandbox.inside import trials; trials.main()"
_BOTH = ("seccomp", "no_new_privs", "resource limits")
_NEEDED: dict[IsolationLevel, tuple[str, ...]] = {
    "a": (
        *("user name space", "pid name space", "mount name space", "network name space", "ipc name space"),
        *("uts name space", "tmpfs", "pivot_root", "fresh /proc", "nested name spaces", *_BOTH),
    ),
    "b": ("landlock", *_BOTH),
    "none": (),
}
# Settings that refuse name spaces to ordinary users: file, the value that does, what allows them.
_SETTINGS = (
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


@dataclass(frozen=True)
class Probe:
    """One thing that was tried. `detail`: what was found, or why it was refused."""

    name: str
    ok: bool
    detail: str


def run_probes(python: str = "") -> list[Probe]:
    """Try everything, in other processes; takes about 0.2 s.

    `python`: the interpreter that the sandbox will use; empty: this one. If it cannot be run, the probe "python" says
    so and those that need it are missing. Raises nothing.
    """
    command = [python or sys.executable, "-I", "-c", _START, str(Path(__file__).parents[1])]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_DEADLINE, check=False
        )
        probes = [Probe(*each) for each in json.loads(done.stdout)]
    except (OSError, subprocess.TimeoutExpired) as error:
        probes = [Probe("python", False, str(error))]
    except ValueError:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"{command[0]} ended with {done.returncode}"
        probes = [Probe("python", False, reason)]
    return [*probes, _control_groups()]


def _control_groups() -> Probe:
    groups = Cgroups.find()
    if groups is None:
        return Probe(
            "control groups", False, "this user cannot create any; memory is watched from outside instead"
        )
    return Probe("control groups", True, f"version {groups.version}")


def strongest_level(probes: Iterable[Probe]) -> IsolationLevel:
    done = {probe.name for probe in probes if probe.ok}
    for level in ("a", "b"):
        if done.issuperset(_NEEDED[level]):
            return level
    return "none"


def why_not(probes: Sequence[Probe], level: IsolationLevel) -> str:
    """Return what stands in the way of the isolation level `level`, with the setting to change if it is a known one;
    empty if nothing does."""
    by_name = {probe.name: probe for probe in probes}
    reasons: dict[str, list[str]] = {}
    for name in _NEEDED[level]:
        probe = by_name.get(name)
        if probe is None:
            python = by_name.get("python")
            reason = python.detail if python else "not tried"
            reasons.setdefault(reason, []).append(name)
        elif not probe.ok:
            reasons.setdefault(probe.detail, []).append(name)
    if not reasons:
        return ""
    text = "; ".join(f"{', '.join(names)}: {detail}" for detail, names in reasons.items())
    hint = _settings_hint() if level == "a" else ""
    return f"isolation level {level} is not possible here: {text}.{hint}"


def _settings_hint() -> str:
    for name, refusing, command in _SETTINGS:
        path = Path("/proc/sys", name)
        try:
            value = path.read_text().strip()
        except OSError:
            continue
        if value == refusing:
            return f" {path} is {value}: `{command}` (as root) allows it."
    return ""
