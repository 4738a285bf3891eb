# SPDX-License-Identifier: Apache-2.0
"""Environment variables of jobs: plain ones stand in scripts, secret ones travel by name and stand nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.expand import expand_variables, variable_names
from newskills.launch.clusters.names import looks_secret
from newskills.models.kinds import service_keys

ALWAYS_PASSED = ("WANDB_API_KEY", "HF_TOKEN", "NGC_API_KEY")
"""Variables that go to every job where they are set, with the keys of hosted services: by name, their values never
stand in a file or a command."""


class JobVariables(Struct, frozen=True, repr_omit_defaults=True):
    """plain: name → value, readable in scripts. secrets: name → value, only ever put into an environment."""

    plain: dict[str, str] = {}
    secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Variables(plain={self.plain!r}, secrets={sorted(self.secrets)!r})"


def missing_variables(cluster: ClusterConfig, environ: Mapping[str, str]) -> list[str]:
    """Return the names in `required_env_vars` that are not set."""
    return [entry for entry in cluster.required_env_vars if "=" not in entry and entry not in environ]


def job_variables(
    cluster: ClusterConfig, environ: Mapping[str, str], *, say: Callable[[str], None] = lambda text: None
) -> JobVariables:
    """Return the environment variables of every job of `cluster`. `say` gets a message for each name in `env_vars` that
    is not set here.

    Raises ConfigError that lists all required variables which are missing.
    """
    if missing := missing_variables(cluster, environ):
        raise ConfigError(missing_sentence(cluster, missing))
    secrets = {name: environ[name] for name in (*service_keys(), *ALWAYS_PASSED) if environ.get(name)}
    plain: dict[str, str] = {}
    for entry in (*cluster.env_vars, *cluster.required_env_vars):
        name, equals, text = entry.partition("=")
        if not equals and name not in environ:
            say(f"{name} is in env_vars of cluster '{cluster.name}' but not set here: jobs run without it")
            continue
        plain.pop(name, None)
        secrets.pop(name, None)
        if equals:
            value = expand_variables(text, environ, f"env_vars of cluster '{cluster.name}', {name}")
        else:
            value = environ[name]
        hidden = not equals or looks_secret(name) or any(looks_secret(other) for other in variable_names(text))
        if hidden:
            secrets[name] = value
        else:
            plain[name] = value
    return JobVariables(plain, secrets)


def missing_sentence(cluster: ClusterConfig, missing: list[str]) -> str:
    """Describe the variables that `cluster` requires and the shell lacks."""
    are = "are" if len(missing) > 1 else "is"
    return f"Cluster '{cluster.name}' requires {', '.join(missing)}, which {are} not set in this shell."
