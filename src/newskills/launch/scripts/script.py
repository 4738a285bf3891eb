# SPDX-License-Identifier: Apache-2.0
"""Typed scripts: what a server, a sandbox or a command of one's own is in a plan. The clients are in `clients`.

A script object is a description and is never changed by a submission, so it may stand in several jobs. Texts refer to
other scripts by shell variables (`server.hostname_ref()`, `server.port`), which the job fills in when it runs.
"""

from __future__ import annotations

import itertools
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

from msgspec import Struct

from newskills.base.errors import ConfigError, suggest
from newskills.base.http.hosts import is_loopback
from newskills.base.plan import Ready, Ref, Script, Word
from newskills.launch.clusters.config import ClusterConfig, python_of
from newskills.models.serving import ServeCommand, ServeSpec, serve_argv, server_properties
from newskills.models.serving.spec import ANY_INTERFACE
from newskills.sandbox.config import Limits
from newskills_sandbox.variables import BLOCK_NETWORK_VARIABLE, TOKEN_VARIABLE

LOOPBACK = "127.0.0.1"
FALSE_WORDS = ("", "0", "false", "no", "off")

Inline = str | Sequence[str] | Callable[[], Any]
_MARK = re.compile(r"\$\{NEWSKILLS_(HOST|PORT)_(\d+)\}")
_serials = itertools.count()


class Context(Struct, frozen=True, kw_only=True):
    """Where a script is being turned into data.

    own         name of its command
    image       of its container; None: it runs on the bare node
    components  serial of each script of the job → (name of its command, does it listen)
    results     of callable scripts, by serial: they are asked once per submission
    """

    cluster: ClusterConfig
    own: str
    image: str | None = None
    components: Mapping[int, tuple[str, bool]] = {}
    environ: Mapping[str, str] = {}
    results: dict[int, Any] = {}

    @property
    def python(self) -> str:
        return python_of(self.cluster, self.image)

    @property
    def interface(self) -> str:
        """Return what servers bind so that the other commands of the job reach them, and nobody else without need."""
        if self.cluster.properties.this_machine:
            return LOOPBACK
        return ANY_INTERFACE

    def ref(self, script: JobScript, attribute: Literal["address", "host", "port"] = "address") -> Ref:
        """Return a reference to the script's `attribute`. Raises ConfigError where `script` runs in no command of this
        job."""
        return self.ref_by_serial(script.serial, attribute)

    def ref_by_serial(self, serial: int, attribute: Literal["address", "host", "port"]) -> Ref:
        """Return a reference to the future address, host or port of a script.

        Raises ConfigError where no command of the job runs that script.
        """
        if serial not in self.components:
            raise ConfigError(
                f"Command '{self.own}' refers to a script that no command of its job runs.",
                hint="Put a Command with that script into one of the job's groups.",
            )
        name, listens = self.components[serial]
        return Ref(name, attribute if listens or attribute != "host" else "node")


@dataclass(eq=False)
class JobScript(ABC):
    """What all scripts have.

    het_group_index       checked against the group that the script runs in, which decides
    span_group_nodes      one process on each node of the group
    num_tasks_override    processes per node
    installation_command  shell text that runs once per node before
    """

    role: ClassVar[Literal["client", "server"]] = "client"

    _: KW_ONLY
    het_group_index: int | None = None
    span_group_nodes: bool = False
    num_tasks_override: int | None = None
    installation_command: str | None = None
    serial: int = field(init=False, repr=False, default_factory=lambda: next(_serials))

    def hostname_ref(self) -> str:
        """Return the host that this script runs on, for texts of other scripts: a shell variable. Not in single
        quotes."""
        return f"${{NEWSKILLS_HOST_{self.serial}}}"

    @property
    def listens(self) -> bool:
        """Return whether others can connect to it."""
        return getattr(self, "port", None) is not None

    @property
    def paths(self) -> tuple[str, ...]:
        """Absolute paths that it is known to read or write."""
        return ()

    @abstractmethod
    def build(self, context: Context) -> Script:
        """Return the script as data. Raises ConfigError."""

    def _script(self, argv: Sequence[Word], context: Context, **settings: Any) -> Script:
        """Add to `argv` what all scripts have; markers of other scripts become references."""
        env: dict[str, Word] = dict(settings.pop("env", {}))
        settings = {"setup": self.installation_command or "", "all_nodes": self.span_group_nodes, **settings}
        if self.num_tasks_override is not None:
            settings["tasks_per_node"] = self.num_tasks_override
        port = getattr(self, "port", None)
        if port is not None and "port" not in settings:
            settings["port"] = port if isinstance(port, int) else 0
        words = tuple(_resolved_word(word, context) for word in argv)
        return Script(
            argv=words, env={name: _resolved_word(word, context) for name, word in env.items()}, **settings
        )


@dataclass(eq=False)
class BaseJobScript(JobScript):
    """A command of one's own.

    inline  a text for bash, a list of words (no shell), or a function without arguments that returns one of them, or
            (text, {"environment": {name: value}}); it is called once per submission
    port    None: it listens nowhere; 0: a free port, chosen when the job starts; `self.port` in its texts
    ready   path that answers 200 once others may connect
    """

    inline: Inline = ""
    _: KW_ONLY
    port: int | str | None = None
    ready: str | None = None

    def __post_init__(self) -> None:
        if self.port == 0:
            self.port = _port_mark(self.serial)

    def build(self, context: Context) -> Script:
        inline, env = self._content(context)
        ready = None if self.ready is None else Ready(path=self.ready)
        if isinstance(inline, str):
            text, refs = _resolved_text(inline, context)
            return self._script(("bash", "-c", text), context, env={**env, **refs}, ready=ready)
        return self._script(tuple(inline), context, env=env, ready=ready)

    def _content(self, context: Context) -> tuple[str | Sequence[str], dict[str, str]]:
        if not callable(self.inline):
            return self.inline, {}
        if self.serial not in context.results:
            context.results[self.serial] = self.inline()
        result = context.results[self.serial]
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping):
            text, more = result
            for key in more:
                if key != "environment":
                    raise ConfigError(
                        f"Command '{context.own}': its function returned '{key}'{suggest(key, ['environment'])}"
                    )
            return text, dict(more.get("environment", {}))
        if not isinstance(result, str | list | tuple):
            raise ConfigError(
                f"Command '{context.own}': its function returned {type(result).__name__}, not a text."
            )
        return result, {}


@dataclass(eq=False)
class ServerScript(JobScript):
    """A model server.

    cluster_config  accepted as in NeMo-Skills; the pipeline's counts
    num_gpus        per node
    server_args     text, split as a shell does, or a list
    port            None: a free one, chosen on the node when the job starts
    patience        seconds that it may take until it answers
    """

    role: ClassVar[Literal["client", "server"]] = "server"

    server_type: str
    model_path: str
    cluster_config: Any = None
    num_gpus: int = 8
    num_nodes: int = 1
    server_args: str | Sequence[str] = ""
    server_entrypoint: str | None = None
    port: int | str | None = None
    allocate_port: bool = True
    _: KW_ONLY
    served_name: str | None = None
    patience: float = 1800.0

    def __post_init__(self) -> None:
        self.port = _port_of(self.port, self.allocate_port, self.serial, "ServerScript")

    @property
    def name(self) -> str:
        """Return what clients send as the model's name."""
        return self._spec().name

    @property
    def num_tasks(self) -> int:
        """Processes per node."""
        return self.num_tasks_override or serve_argv(self._spec(port=1)).tasks_per_node

    @property
    def key_variable(self) -> str:
        """Variable with the key that it asks its clients for; empty: it asks for none. Raises as `build`."""
        return serve_argv(self._spec(port=1)).key_variable

    @property
    def paths(self) -> tuple[str, ...]:
        if self.model_path.startswith("/"):
            return (self.model_path,)
        return ()

    def get_address(self) -> str:
        """Return host:port, for texts of other scripts."""
        return f"{self.hostname_ref()}:{self.port}"

    def build(self, context: Context) -> Script:
        """Build the script. Raises UnknownNameError, ConfigError."""
        properties = server_properties(self.server_type)
        spec = self._spec(python=context.python, host=context.interface if properties.loopback else None)
        argv, made = _serve_words(spec, context.own)
        several = self.num_nodes > 1
        if several and properties.joins_by_ray:
            argv = (*ray_words(self.num_nodes, context), *argv)
        return self._script(
            argv,
            context,
            env=made.env,
            ready=Ready(
                path=made.health_path,
                patience=self.patience,
                offset=made.ready_offset,
                any_answer=made.any_answer,
            ),
            all_nodes=several or self.span_group_nodes,
            tasks_per_node=made.tasks_per_node,
            secrets=tuple(name for name in (made.key_variable,) if name in context.environ),
        )

    def _spec(self, **settings: Any) -> ServeSpec:
        if isinstance(self.server_args, str):
            args = shlex.split(self.server_args)
        else:
            args = list(self.server_args)
        return ServeSpec(
            model=self.model_path,
            server_type=self.server_type,
            num_gpus=self.num_gpus,
            num_nodes=self.num_nodes,
            extra_args=args,
            entrypoint=self.server_entrypoint or None,
            served_name=self.served_name,
            **settings,
        )


@dataclass(eq=False)
class SandboxScript(JobScript):
    """A server that runs the model's code. It sees none of the job's mounts unless `keep_mounts`.

    env_overrides  `NAME=value` or a dictionary: variables of the sandbox (NEMO_SKILLS_SANDBOX_…)
    """

    role: ClassVar[Literal["client", "server"]] = "server"

    cluster_config: Any = None
    port: int | str | None = None
    keep_mounts: bool = False
    allocate_port: bool = True
    env_overrides: Sequence[str] | Mapping[str, str] = ()

    def __post_init__(self) -> None:
        self.port = _port_of(self.port, self.allocate_port, self.serial, "SandboxScript")

    def build(self, context: Context) -> Script:
        env = self._variables()
        serve: tuple[str, ...] = (context.python, "-m", "newskills", "sandbox", "serve")
        serve += ("--host", context.interface)
        if env.pop(BLOCK_NETWORK_VARIABLE, "1").lower() in FALSE_WORDS:
            serve += ("--network",)
        serve += ("--max_timeout", str(Limits().timeout))  # graders that run all tests of a problem at once
        if TOKEN_VARIABLE not in context.environ and not is_loopback(context.interface):
            serve += ("--open",)  # the job's own client comes from another node
        return self._script(
            (*serve, "--port", Ref(context.own, "port")),
            context,
            env=env,
            secrets=sandbox_secrets(self, context),
            ready=Ready(path="/health", patience=300.0),
        )

    def _variables(self) -> dict[str, str]:
        if isinstance(self.env_overrides, Mapping):
            return dict(self.env_overrides)
        variables = {}
        for entry in self.env_overrides:
            name, equals, value = entry.partition("=")
            if not equals:
                raise ConfigError(f"The sandbox variable '{entry}' must have the form NAME=value.")
            variables[name] = value
        return variables


def sandbox_secrets(sandbox: SandboxScript | None, context: Context) -> tuple[str, ...]:
    """Return the variable of the token that keeps other users of a node out of the sandbox, where the submission has
    one."""
    if sandbox is not None and TOKEN_VARIABLE in context.environ:
        return (TOKEN_VARIABLE,)
    return ()


def server_secrets(server: ServerScript | None, context: Context) -> tuple[str, ...]:
    """Return the variable of the key that keeps others out of `server`, where the submission has one, for those that
    may use it."""
    if server is not None and server.key_variable in context.environ:
        return (server.key_variable,)
    return ()


def _port_mark(serial: int) -> str:
    return f"${{NEWSKILLS_PORT_{serial}}}"


def _port_of(port: int | str | None, allocate: bool, serial: int, what: str) -> int | str:
    if port is None and not allocate:
        raise ConfigError(f"{what}: allocate_port=False needs a port.")
    return port or _port_mark(serial)


def _serve_words(spec: ServeSpec, own: str) -> tuple[tuple[Word, ...], ServeCommand]:
    """Return the engine's argv with references for what is known on the node only: ports, first node, rank."""
    texts = [spec.model, spec.entrypoint or "", spec.served_name or "", spec.python, *spec.extra_args]
    unused = (number for number in range(65432, 0, -1) if not any(str(number) in text for text in texts))
    port, meeting = next(unused), next(unused)
    rank = next(number for number in itertools.count(8_000_000) if not any(str(number) in text for text in texts))
    master = f"node-{rank}.invalid"
    made = serve_argv(_replace_marks(spec, port=port, node_rank=rank, master=master, master_port=meeting))
    marks = {
        f"{master}:{meeting}": Ref(own, "meeting"),
        str(meeting): Ref(own, "meeting_port"),
        master: Ref(own, "node"),
        str(rank): Ref(own, "rank"),
        str(port): Ref(own, "port"),
    }
    return tuple(_mark_word(word, marks) for word in made.argv), made


def _replace_marks(spec: ServeSpec, **changes: Any) -> ServeSpec:
    from msgspec.structs import replace

    return replace(spec, **changes)


def _mark_word(word: str, marks: Mapping[str, Ref]) -> Word:
    for mark, ref in marks.items():
        before, mark_part, after = word.partition(mark)
        if mark_part:
            return Ref(ref.component, ref.attribute, before, after)
    return word


def ray_words(nodes: int, context: Context, resources: str = "") -> tuple[Word, ...]:
    """Return the words in front of an argv that is to run on the first of `nodes`, with Ray on all of them.

    The script must have a port, at which the nodes meet before it starts. `resources`: JSON of what each node says
    that it has, besides its CPUs and GPUs.
    """
    own = context.own
    options: list[Word] = [f"--nodes={nodes}", Ref(own, "rank", "--rank="), Ref(own, "host", "--host=")]
    options.append(Ref(own, "port", "--port="))
    if resources:
        options.append(f"--resources={resources}")
    return (context.python, "-m", "newskills.launch.ray_node", *options, "--")


def _resolved_text(text: str, context: Context) -> tuple[str, dict[str, Word]]:
    """Return a text for bash in which markers are variables named after the commands, with the values that the job
    sets."""
    env: dict[str, Word] = {}

    def variable(match: re.Match[str]) -> str:
        ref = _ref_of_mark(match, context)
        base = f"NEWSKILLS_{match[1]}_{re.sub(r'[^A-Za-z0-9]', '_', ref.component).upper()}"
        name = next(
            n for n in itertools.chain([base], (f"{base}_{i}" for i in range(2, 99))) if env.get(n, ref) == ref
        )
        env[name] = ref
        return f"${{{name}}}"

    return _MARK.sub(variable, text), env


def _ref_of_mark(mark: re.Match[str], context: Context) -> Ref:
    return context.ref_by_serial(int(mark[2]), "host" if mark[1] == "HOST" else "port")


def _resolved_word(word: Word, context: Context) -> Word:
    """Return a word that no shell reads, with its marker turned into a reference. Raises ConfigError for markers of
    several things."""
    if isinstance(word, Ref) or not (marks := list(_MARK.finditer(word))):
        return word
    host, last = marks[0], marks[-1]
    refs = [_ref_of_mark(mark, context) for mark in marks]
    before, between, after = word[: host.start()], word[host.end() : last.start()], word[last.end() :]
    if len(marks) == 1:
        return Ref(refs[0].component, refs[0].attribute, before, after)
    kinds = [ref.attribute for ref in refs]
    same = len({ref.component for ref in refs}) == 1
    if kinds == ["host", "port"] and same and between == ":" and before.endswith("http://"):
        return Ref(refs[0].component, "address", before.removesuffix("http://"), after)
    raise ConfigError(
        f"Command '{context.own}': the word '{word}' refers to several things at once.",
        hint="Write the command as one text for bash, or split the word.",
    )
