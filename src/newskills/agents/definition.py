# SPDX-License-Identifier: Apache-2.0
"""The data file of an agent: how its program is installed, told its task and its model, and ended."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import yaml
from msgspec import Meta, Struct

from newskills.base.environment import McpServer
from newskills.base.errors import ConfigError, suggest
from newskills.base.registry import fold
from newskills.config.settings import read_config

LIBRARY = Path(__file__).parent / "library"
SUFFIXES = (".yaml", ".yml")
PROGRAM = "/newskills-program"
"""Where environments see what is installed."""
OUT = "/tmp/newskills-agent/out"  # noqa: S108 - of the environment
"""Folder of the environment for files of the program's."""
Protocol = Literal["chat", "responses", "messages", "gemini"]
End = Literal["submitted", "steps", "tokens", "time", "context", "failed", "broken"]
S = TypeVar("S")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_PINNED = re.compile(r"\d[\w.+-]*\Z")
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class AgentInstall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Packages of the program. One of `npm`, `pip` and `folder` says where they come from."""

    version: Annotated[str, Meta(description="version of the package, exactly")] = ""
    npm: Annotated[str, Meta(description="package of npm")] = ""
    pip: Annotated[str, Meta(description="package of PyPI")] = ""
    folder: Annotated[str, Meta(description="folder of this machine with a program that is there already")] = ""
    more: Annotated[tuple[str, ...], Meta(description="further packages: node-linux-{arch}@22.23.3")] = ()
    python: Annotated[str, Meta(description="version of Python for packages of PyPI")] = "3.12"


class AgentLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task may use where nobody says otherwise; 0: no limit."""

    seconds: Annotated[float, Meta(ge=0)] = 7200.0
    tokens: Annotated[int, Meta(ge=0)] = 0
    cost: Annotated[float, Meta(ge=0)] = 0.0


class AgentTools(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the program is told of a task's MCP servers: by an entry for each in a file, or by words of its command line.
    Placeholders of an entry: {name}, {command}, {args}, {words} (command and args), {url}."""

    file: Annotated[str, Meta(description="file of JSON for the entries, with a field `field`; empty: words")] = ""
    field: Annotated[str, Meta(description="field of that file: name of a server → its entry")] = "mcpServers"
    stdio: Annotated[Any, Meta(description="entry of a server that is a command")] = None
    sse: Annotated[Any, Meta(description="entry of a server at an address, by server-sent events")] = None
    http: Annotated[Any, Meta(description="entry of a server at an address, by streamable HTTP")] = None

    def entries(self, servers: Sequence[McpServer]) -> dict[str, Any]:
        """Return name → entry."""
        kinds = {"stdio": self.stdio, "sse": self.sse, "streamable-http": self.http}
        return {server.name: server.fill(kinds[server.transport]) for server in servers}

    def missing(self, servers: Sequence[McpServer]) -> list[str]:
        """Return the servers that the program cannot be told of."""
        return [name for name, entry in self.entries(servers).items() if entry is None]


class AgentDefinition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A data file. Its texts hold the placeholders of SETTINGS and PLACES: {task}, {model}, {url}."""

    protocol: Annotated[Protocol, Meta(description="how it asks its model: chat, responses, messages or gemini")]
    install: Annotated[AgentInstall, Meta(description="how its program is installed")]
    command: Annotated[tuple[str, ...], Meta(min_length=1, description="words of its command line")]
    title: Annotated[str, Meta(description="name for people")] = ""
    site: Annotated[str, Meta(description="its home page")] = ""
    variables: Annotated[dict[str, str], Meta(description="environment variables")] = {}
    files: Annotated[
        dict[str, Any],
        Meta(description="files that it reads: path → text, or settings that are written as JSON"),
    ] = {}
    log: Annotated[tuple[str, ...], Meta(description="patterns of the files that it logs to")] = ()
    leaves: Annotated[
        tuple[str, ...], Meta(description="patterns of its own files in the task's folder, which are removed")
    ] = ()
    exit_codes: Annotated[
        dict[str, End],
        Meta(description="exit code → why it ended; 0 is submitted, others failed; broken: unscored"),
    ] = {}
    limits: Annotated[AgentLimits, Meta(description="limits of a task: seconds, tokens, cost")] = AgentLimits()
    mcp: Annotated[
        AgentTools,
        Meta(description="how it is told of a task's MCP servers; without it, it is given no such tasks"),
    ] = AgentTools()
    prompt: Annotated[str, Meta(description="prompt that states the task; empty: the usual one")] = ""
    name: str = ""

    @property
    def display_name(self) -> str:
        """Return its name for people."""
        return self.title or self.name

    @property
    def package(self) -> str:
        return self.install.npm or self.install.pip

    @property
    def digest(self) -> str:
        """Return what tells whether an installation is that of this file."""
        return blake2b(msgspec.json.encode(self.install, order="sorted"), digest_size=8).hexdigest()


SETTINGS = {
    "task": "the text of the task",
    "task_file": "path of a file with it",
    "model": "name of the model",
    "url": "address of the gateway, without a version",
    "key": "key for the gateway",
    "workdir": "the task's folder",
}
"""Placeholders whose values are those of a task."""
PLACES = {
    "program": "folder with what is installed",
    "node": "the Node.js that is installed beside it",
    "python": "the Python that it is installed in",
    "arch": "x64 or arm64",
    "machine": "x86_64 or aarch64",
    "out": "folder for its own files, outside of the task's",
}
"""Placeholders whose values are the same for all tasks."""


def npm_architecture() -> str:
    """Return what npm calls this machine's processor."""
    machine = platform.machine().lower()
    return _ARCHITECTURES.get(machine, machine)


def placeholder_values() -> dict[str, str]:
    """Return the values of the placeholders that are the same for all tasks."""
    arch = npm_architecture()
    return {
        "program": PROGRAM,
        "node": f"{PROGRAM}/node_modules/node-linux-{arch}/bin/node",
        "python": f"{PROGRAM}/venv/bin/python",
        "arch": arch,
        "machine": platform.machine(),
        "out": OUT,
    }


def fill_placeholders(value: Any, values: Mapping[str, str]) -> Any:
    """Return texts, lists and settings with the placeholders that `values` has.

    >>> fill_placeholders({"a": ["{model}!", 1]}, {"model": "m"})
    {'a': ['m!', 1]}
    """
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), value)
    if isinstance(value, list | tuple):
        return [fill_placeholders(item, values) for item in value]
    if isinstance(value, dict):
        return {fill_placeholders(key, values): fill_placeholders(item, values) for key, item in value.items()}
    return value


@cache
def library_files() -> dict[str, Path]:
    """Return name → file of every agent that comes with newskills."""
    return {path.stem: path for path in sorted(LIBRARY.glob("*.yaml"))}


def library_file(name: str) -> Path | None:
    """Return the file of `name`, in whichever spelling; None where there is none."""
    return next((path for other, path in library_files().items() if fold(other) == fold(name)), None)


def is_file_name(name: str) -> bool:
    """Return whether `name` is that of a user's own file."""
    return name.endswith(SUFFIXES)


def find_definition(name: str) -> AgentDefinition | None:
    """Return the agent called `name`, or that of a user's own file; None where no data file has that name. Raises
    ConfigError."""
    path = Path(name).expanduser() if is_file_name(name) else library_file(name)
    if path is None:
        return None
    return read_definition(path)


AS_WRITTEN = ("install", "variables", "exit_codes", "command", "limits")
"""Keys whose values are texts as they are written, not what YAML makes of 1.20 or true."""


def read_definition(path: Path) -> AgentDefinition:
    """Read a data file. Raises ConfigError, with the key that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
        row, written = yaml.safe_load(text), yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - makes texts only
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise ConfigError(f"The agent {path} cannot be read: {reason}.") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{path} is not the file of an agent: expected keys, got {type(row).__name__}.")
    row = {str(key): value for key, value in row.items()}
    row |= {key: written[key] for key in AS_WRITTEN if key in row}
    for key, kind in (("install", AgentInstall), ("limits", AgentLimits), ("mcp", AgentTools)):
        if isinstance(row.get(key), dict):
            row[key] = read_config(kind, row[key], f"{path}: {key}")
    definition = read_config(AgentDefinition, {**row, "name": path.stem}, str(path))
    _check_definition(definition, str(path))
    return definition


def _check_definition(definition: AgentDefinition, where: str) -> None:
    """Raise ConfigError for a file that cannot work."""
    install = definition.install
    sources = [name for name in ("npm", "pip", "folder") if getattr(install, name)]
    if len(sources) != 1:
        raise ConfigError(
            f"{where}: install needs one of npm, pip and folder, and has {' and '.join(sources) or 'none'}."
        )
    if not install.folder and not _PINNED.match(install.version):
        raise ConfigError(
            f"{where}: install.version must be one version, such as 1.2.3, not '{install.version}'.",
            hint="Another version may ask in another way, so each is tested and named.",
        )
    for code in definition.exit_codes:
        if not code.isdigit() or int(code) > 255:
            raise ConfigError(f"{where}: exit_codes has '{code}', which is not an exit code (0 to 255).")
    allowed = {**SETTINGS, **PLACES}
    for place, text in _placeholder_texts(definition):
        for name in _PLACEHOLDER.findall(text):
            if name not in allowed:
                raise ConfigError(f"{where}: {place} has the placeholder {{{name}}}{suggest(name, allowed)}")
    words = " ".join(definition.command)
    if "{task}" not in words and "{task_file}" not in words:
        raise ConfigError(f"{where}: command has neither {{task}} nor {{task_file}}.")
    if not any("{url}" in text for _, text in _placeholder_texts(definition)):
        raise ConfigError(f"{where}: nothing has {{url}}, so the program cannot ask the run's model.")


def _placeholder_texts(definition: AgentDefinition) -> Iterator[tuple[str, str]]:
    """Yield (where it stands, text) of all that may hold placeholders."""
    for word in definition.command:
        yield "command", word
    for name, value in definition.variables.items():
        yield f"variables.{name}", value
    for path, content in definition.files.items():
        yield "files", path
        yield from ((f"files.{path}", text) for text in _inner_texts(content))
    for name in definition.install.more:
        yield "install.more", name


def _inner_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _inner_texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _inner_texts(item)


def agents_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder in which agents are installed: NEWSKILLS_AGENTS, or one in the cache folder."""
    from newskills.base.cache import cache_folder

    if chosen := environ.get("NEWSKILLS_AGENTS"):
        return Path(chosen).expanduser().resolve()
    return cache_folder(environ).resolve() / "agents"
