# SPDX-License-Identifier: Apache-2.0
"""Environment variables of a configuration: `host:` and `lit:` secrets travel by name, plain texts stand in scripts."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.launch.clusters.names import is_variable, looks_secret
from newskills_evaluator.config import EnvMap

OPTIONAL = ("WANDB_API_KEY", "WANDB_PROJECT", "WANDB_ENTITY")
"""Variables of the host without which jobs run just as well."""


class CommandEnvironment(Struct, frozen=True, repr_omit_defaults=True):
    """Of one command. plain: name → text. secrets: names. runtime: name → variable of the node that it is set from."""

    plain: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    runtime: dict[str, str] = {}

    def exports(self) -> str:
        """Return bash commands that set the variables whose values only the node knows."""
        return "".join(f'export {name}="${{{other}-}}"\n' for name, other in self.runtime.items() if name != other)


class DeploymentVariables:
    """What all commands of an invocation get; `environ` is that of the submitting process, with their secrets."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = dict(environ)
        self._host = environ
        self._origin: dict[str, str] = {}

    def of(self, env: EnvMap, where: str) -> CommandEnvironment:
        """Return the environment of a command with the variables `env`. Raises ConfigError for a variable that is not
        set here, or that two commands want from different places."""
        plain: dict[str, str] = {}
        secrets: list[str] = []
        runtime: dict[str, str] = {}
        for name, value in env.items():
            if not is_variable(name) or (value.kind != "lit" and not is_variable(value.value)):
                raise ConfigError(f"{where}: '{name}: {value.kind}:…' is not the name of a variable.")
            if value.kind == "runtime":
                runtime[name] = value.value
            elif value.kind == "lit" and not looks_secret(name):
                plain[name] = value.value
            else:
                if value.kind == "host" and name in OPTIONAL and value.value not in self._host:
                    continue
                self._add(name, value.value, literal=value.kind == "lit", where=where)
                secrets.append(name)
        return CommandEnvironment(plain, tuple(secrets), runtime)

    def _add(self, name: str, source: str, *, literal: bool, where: str) -> None:
        if not literal and source not in self._host:
            raise ConfigError(
                f"{where} needs {name} from {source} of this machine, which is not set.",
                hint=f"Set it: export {source}=…",
            )
        value = source if literal else self._host[source]
        if self._origin.setdefault(name, value) != value:
            raise ConfigError(
                f"{where}: {name} has one value here and another value elsewhere in the configuration.",
                hint="Secrets are passed by name, so a name can have only one value in an invocation.",
            )
        self.environ[name] = value
