# SPDX-License-Identifier: Apache-2.0
"""What `ns agents [install NAME…]` does: the agents that there are, and their programs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Struct
from msgspec.structs import replace

from newskills.agents.definition import (
    AgentDefinition,
    agents_folder,
    find_definition,
    library_files,
    read_definition,
)
from newskills.agents.installing import find_installed, install_agent, place_of
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.tables import print_table
from newskills.base.terminal import print_now
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.options import DryRun, doc

ALL = "all"
HEAD = ("agent", "protocol", "version", "installed")


class ListedAgent(Struct, frozen=True, kw_only=True):
    """An agent that `++agent=NAME` takes. `folder` and `size_mb`: of a program that is installed; `comes`: with what an
    agent in Python comes, which needs no installation."""

    name: str
    protocol: str
    version: str = ""
    folder: Path | None = None
    size_mb: int = 0
    comes: str = ""


class AgentsOptions(Struct, frozen=True, kw_only=True):
    action: Annotated[
        Literal["list", "install"],
        doc("list: what there is (default); install NAME…: install programs, once", {"positional": True}),
    ] = "list"
    names: Annotated[
        list[str], doc("install: names of agents, data files (./agent.yaml), or `all`", {"positional": True})
    ] = []
    folder: Annotated[
        str | None, doc("folder in which agents are installed (default: NEWSKILLS_AGENTS, or one in the cache)")
    ] = None
    mirror: Annotated[str | None, doc("install: folder that keeps the packages, and is searched first")] = None
    offline: Annotated[bool, doc("install: use the mirror alone, never the network")] = False
    dry_run: DryRun = False


def run(parsed: Parsed[AgentsOptions]) -> int:
    """List or install agents. Raises as `list_or_install_agents`."""
    agents = list_or_install_agents(parsed)
    if agents is not None and parsed.options.action == "list":
        print_table([(agent.name, agent.protocol, agent.version, _agent_state(agent)) for agent in agents], HEAD)
    return 0


def list_or_install_agents(parsed: Parsed[AgentsOptions]) -> list[ListedAgent] | None:
    """Return the agents that there are, or those that were installed; None for a dry run. Raises ConfigError,
    DataError, UnknownNameError, LockedError."""
    options = parsed.options
    folder = Path(options.folder).expanduser().resolve() if options.folder else agents_folder()
    if options.action == "list":
        agents = [_listed_agent(definition, folder) for definition in _read_definitions(options.names or [ALL])]
        if not options.names:
            agents += _python_agents()
        return agents
    if not options.names:
        raise ConfigError("Which agents?", hint=f"ns agents install {next(iter(library_files()))}, or `all`")
    definitions = _read_definitions(options.names)
    if options.dry_run:
        rows = []
        for definition in definitions:
            program = f"{definition.display_name} {definition.install.version}"
            rows.append(("installs", program, str(place_of(definition, folder))))
        show_dry_run(rows)
        return None
    mirror = Path(options.mirror).expanduser().resolve() if options.mirror else None
    _install_all(definitions, folder, mirror, options.offline)
    return [_listed_agent(definition, folder) for definition in definitions]


def _install_all(definitions: list[AgentDefinition], folder: Path, mirror: Path | None, offline: bool) -> None:
    """Install those that can be. Raises what stood in the way of the others at the end, and LockedError."""
    failures: list[ConfigError | DataError] = []
    for definition in definitions:
        try:
            installed = install_agent(definition, folder, mirror=mirror, offline=offline, say=print_now)
        except (ConfigError, DataError) as error:
            failures.append(error)
            continue
        print_now(
            f"{definition.name} {installed.version} is in {place_of(definition, folder)} ({installed.mb:,} MB)."
        )
    if len(failures) > 1:
        raise ConfigError(" ".join(str(failure) for failure in failures))
    if failures:
        raise failures[0]


def _agent_state(agent: ListedAgent) -> str:
    if agent.folder is not None:
        return f"{agent.size_mb:,} MB"
    return agent.comes or f"no: ns agents install {agent.name}"


def _listed_agent(definition: AgentDefinition, folder: Path) -> ListedAgent:
    """Return an agent that is a data file, with what is installed of it."""
    agent = ListedAgent(name=definition.name, protocol=definition.protocol, version=definition.install.version)
    if installed := find_installed(definition, folder):
        return replace(agent, folder=place_of(definition, folder), size_mb=installed.mb)
    return agent


def _python_agents() -> list[ListedAgent]:
    """Return the agents that are written in Python: ours, and those of installed distributions."""
    from newskills.solve.agents.rollout import AGENTS

    return [
        ListedAgent(name=name, protocol="chat", comes=AGENTS.properties(name).comes or "another distribution")
        for name in AGENTS.names()
    ]


def _read_definitions(names: list[str]) -> list[AgentDefinition]:
    """Return the data files that are named. Raises ConfigError, UnknownNameError."""
    if names == [ALL]:
        return [read_definition(path) for path in library_files().values()]
    definitions = []
    for name in names:
        definition = find_definition(name)
        if definition is None:
            raise UnknownNameError("agent", name, list(library_files()))
        definitions.append(definition)
    return definitions


def agent_table() -> str:
    """Return the table of agents for the docs: each with its protocol and the version that is tested."""
    lines = ["| agent | protocol | tested version | package |", "|---|---|---|---|"]
    for path in library_files().values():
        definition = read_definition(path)
        source = "npm" if definition.install.npm else "PyPI"
        link = f"[{definition.display_name}]({definition.site})"
        lines.append(
            f"| `{definition.name}` ({link}) | {definition.protocol} | {definition.install.version} | "
            f"{source}: `{definition.package}` |"
        )
    return "\n".join(lines) + "\n"
