# SPDX-License-Identifier: Apache-2.0
"""Agents and environments of nel's suites (`harbor`, `gym_delegation`, `tool_calling`) as words of `ns eval`.

Source: nemo-evaluator 0.4.0 (`examples/configs`, `config/solvers.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from newskills.base.errors import suggest
from newskills.base.records import Row
from newskills_evaluator.suites.places import section_of

SOLVERS = ("harbor", "gym_delegation", "tool_calling")
AGENTS = {
    **{name: name for name in ("aider", "claude-code", "codex", "gemini-cli", "mini-swe-agent", "opencode")},
    **{name: name for name in ("openhands", "pi", "qwen-code", "swe-agent")},
    "openhands-sdk": "openhands",
    "qwen-coder": "qwen-code",
    "terminus": "bash",
    "terminus-1": "bash",
    "terminus-2": "bash",
}
"""Agents of Harbor and Gym → those of newskills; `bash` is the nearest to Terminus, which types into a terminal."""
BENCHMARKS = {
    "swebench-verified": "swe-bench",
    "swebench": "swe-bench",
    "swebench-multilingual": "swe-bench-multilingual",
    "swebench-pro": "swe-bench-pro",
    "swebenchpro": "swe-bench-pro",
    "terminal-bench@1": "terminal-bench",
    "terminal-bench-v1": "terminal-bench",
    "terminal-bench@2": "terminal-bench-2",
    "terminal-bench-v2": "terminal-bench-2",
}
"""Names of nel and of Harbor's registry (`NAME@VERSION`) → benchmarks of newskills."""
READ = {
    "harbor": ("agent", "agent_kwargs", "run_timeout", "timeout_strategy"),
    "gym_delegation": ("gym_agent", "gym_service", "trust_reward"),
    "tool_calling": ("resource_service", "sandbox_tools", "max_turns", "response_mode"),
}
"""Keys of each solver that are read here, or that change nothing."""
COMMON = ("type", "service", "system_prompt", "generation")
KWARGS = ("max_iterations", "max_turns", "temperature")
ENGINES = {name: name for name in ("docker", "podman", "apptainer", "enroot")}
"""Kinds of sandboxes → engines for containers."""
CPU_UNITS = 1024
"""Of Amazon's ECS, for one core."""


class MappedAgent(Struct, frozen=True, kw_only=True):
    """`words` of `ns eval`; `fault`: what newskills has nothing for, with its key; `notes`: what is done otherwise."""

    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fault: tuple[str, str] | None = None


def agent_benchmark(name: str) -> str:
    """Return newskills' name of a benchmark for agents; empty where it has none.

    >>> agent_benchmark("swebench-verified@1.0"), agent_benchmark("terminal-bench@2.0"), agent_benchmark("gsm8k")
    ('swe-bench', 'terminal-bench-2', '')
    """
    bare, _, version = name.partition("@")
    return BENCHMARKS.get(f"{bare}@{version.partition('.')[0]}") or BENCHMARKS.get(bare, "")


def map_agent(name: str, solver: Row, sandbox: Row, services: Mapping[str, Row]) -> MappedAgent:
    """Return how newskills works on the benchmark `name` by such a solver."""
    kind, notes = str(solver.get("type")), list[str]()
    unread = [key for key in solver if key not in (*COMMON, *READ[kind])]
    unread += [f"agent_kwargs.{key}" for key in section_of(solver.get("agent_kwargs")) if key not in KWARGS]
    if unread:
        return MappedAgent(fault=(unread[0], "newskills does not know what this changes"))
    if kind == "tool_calling":
        if solver.get("resource_service"):
            what = "newskills has no tools of a Gym server for this benchmark"
            return MappedAgent(fault=("resource_service", what))
        if not solver.get("sandbox_tools"):
            return MappedAgent(fault=("sandbox_tools", "without tools in a sandbox there is nothing to work with"))
        agent = "bash"
        notes.append(f"{name}: the agent bash works with one tool, not with nel's four")
    else:
        key = "gym_agent" if kind == "gym_delegation" else "agent"
        theirs = str(solver.get(key) or "")
        if theirs not in AGENTS:
            return MappedAgent(fault=(key, f"newskills has no agent '{theirs}'{suggest(theirs, AGENTS)}"))
        agent = AGENTS[theirs]
        if agent != theirs:
            notes.append(
                f"{name}: newskills' agent {agent} works in the place of {theirs}; do not compare the two"
            )
        if kind == "gym_delegation":
            url = section_of(services.get(str(solver.get("gym_service")))).get("url", "")
            notes.append(
                f"{name}: {agent} and the tests run in containers of newskills, not by the Gym server {url}"
            )
    words = [f"++agent={agent}", *_limit_words(solver)]
    environment, more = _environment_words(name, sandbox)
    return MappedAgent(words=(*words, *environment), notes=(*notes, *more))


def _limit_words(solver: Row) -> list[str]:
    kwargs = section_of(solver.get("agent_kwargs"))
    limits = {
        "agent_max_turns": kwargs.get("max_iterations") or kwargs.get("max_turns") or solver.get("max_turns"),
        "agent_config.time_limit": _to_int(solver.get("run_timeout")),
        "inference.temperature": kwargs.get("temperature"),
    }
    return [f"++{key}={value}" for key, value in limits.items() if value is not None]


def _environment_words(name: str, sandbox: Row) -> tuple[list[str], list[str]]:
    """Return the words for `++environment.*`, and notes."""
    kind = str(sandbox.get("type") or "none")
    cpus, disk = _to_int(sandbox.get("cpu")), _to_int(sandbox.get("ephemeral_storage_gib"))
    values = {
        "engine": ENGINES.get(kind),
        "at_once": sandbox.get("concurrency"),
        "memory_mb": _to_int(sandbox.get("memory")),
        "disk_mb": None if disk is None else disk * 1024,
        "cpus": None if cpus is None else f"{cpus / CPU_UNITS:g}",
    }
    notes = []
    if kind != "none" and ENGINES.get(kind) is None:
        notes.append(f"{name}: containers run where newskills runs, not in {kind}")
    if sandbox.get("sif_cache_dir"):
        notes.append(
            f"{name}: bring the images as files: ++environment.container_formatter={sandbox['sif_cache_dir']}/…"
        )
    words = [f"++environment.{key}={value}" for key, value in values.items() if value is not None]
    return words, notes


def _to_int(value: object) -> int | None:
    """Return the whole number that a config writes as a number or a text; None where it is neither."""
    try:
        return int(float(str(value)))
    except ValueError:
        return None
