# SPDX-License-Identifier: Apache-2.0
"""What isolates code on this machine, and what it will find there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from newskills_sandbox.packages import examine_interpreter
from newskills_sandbox.probes import IsolationLevel, Probe, run_probes, strongest_level, why_not
from newskills_sandbox.settings import SandboxSettings

MEANING: dict[IsolationLevel, str] = {
    "a": "Isolation level a: code runs in namespaces of its own, behind a system call filter.",
    "b": "Isolation level b: code runs behind Landlock and a system call filter, without namespaces of its own.",
    "none": "Code cannot be isolated on this machine.",
}


@dataclass(frozen=True)
class Diagnosis:
    """What was tried, and what came of it.

    missing    modules to preload that are not installed
    obstacles  what stands in the way of each stronger level, as sentences
    """

    probes: Sequence[Probe]
    missing: Sequence[str]
    level: IsolationLevel
    obstacles: Sequence[str]


async def diagnose(settings: SandboxSettings) -> Diagnosis:
    """Try what isolates code, and look which modules there are. Raises SandboxError, SettingsError."""
    probes = run_probes(settings.python)
    missing = (await examine_interpreter(settings)).missing
    level = strongest_level(probes)
    stronger: tuple[IsolationLevel, ...] = ("a", "b")
    reasons = [reason for each in stronger if each < level and (reason := why_not(probes, each))]
    return Diagnosis(probes, missing, level, [reason[:1].upper() + reason[1:] for reason in reasons])
