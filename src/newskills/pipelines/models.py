# SPDX-License-Identifier: Apache-2.0
"""Which models a command uses: running endpoints, servers started for it, or APIs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.base.registry import fold, load_function
from newskills.config.layers import Layer
from newskills.config.values import Text
from newskills.models import MODELS, REMOVED
from newskills.models.config import DEFAULT_HOST, DEFAULT_PORT
from newskills.models.serving import SERVERS, ServeSpec
from newskills.models.serving.gpus import visible_gpus
from newskills.models.serving.spec import DEFAULT_SLOTS, argument_value
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import ModelOptions, WorkOptions
from newskills.pipelines.placement.cluster import cluster_of
from newskills.run.hosting.roles import HostedServers
from newskills.run.planning.config import REPLICA

LISTS = (
    "model",
    "server_type",
    "server_address",
    "server_gpus",
    "server_nodes",
    "server_entrypoint",
)
ARGUMENTS = "server_args"
"""Options with a value for each model; of the last one, a single model may have several."""
ROLE = "model"
"""Of the second model and those that follow, with their numbers from 1."""
O = TypeVar("O", bound=ModelOptions)  # noqa: E741 - O as in options


class ModelChoice(Struct, frozen=True, kw_only=True):
    """`layer` configures the client; `host` is the server to start first, if any; `more`: those of further roles."""

    layer: Layer
    host: ServeSpec | None = None
    more: dict[str, ServeSpec] = {}


def choose_model(options: ModelOptions, overrides: Mapping[str, Text], *, elsewhere: bool = False) -> ModelChoice:
    """Choose the model; `elsewhere`: on a cluster, whose GPUs are not this machine's.

    Raises ConfigError where model or server type are missing or several are given.
    """
    _check_single(options)
    model = _first_value(options.model) or _override_text(overrides, "server.model")
    custom = "custom" if "server.model_class" in overrides else None
    kind = _server_type(
        _first_value(options.server_type) or _override_text(overrides, "server.server_type") or custom
    )
    address = _first_value(options.server_address) or _override_text(overrides, "server.base_url")
    if model is None:
        raise ConfigError("No model is given. Give --model: a name that the server knows, or a path.")
    values: dict[str, Any] = {"server.server_type": kind, "server.model": model}
    if isinstance(options, WorkOptions) and options.batch_api:
        values["server.batch_api"] = True
        if not MODELS.properties(kind).hosted and kind in SERVERS:
            values["server.batch_command"] = _batch_command(options, kind, model, elsewhere=elsewhere)
            return ModelChoice(layer=Layer("--model, --server_*", values))
    if address is not None:
        if options.server_gpus:
            raise ConfigError(
                "--server_gpus starts a server, --server_address uses a running one: give only one of them."
            )
        values["server.base_url"], *more = (part.strip() for part in str(address).split(","))
        if more:
            values["server.more_base_urls"] = more
    if address is not None:
        return ModelChoice(
            layer=Layer("--model, --server_*", values), more=_replica_hosts(_num_servers(options), None)
        )
    host = (_host_there if elsewhere else _host_here)(options, overrides, kind, model)
    if elsewhere and host is not None:
        values["server.model"] = host.name
    if host is not None and _on_cpu(kind):
        # more at once would only wait in line, and none would ever be done
        values["max_concurrent_requests"] = host.slots * _num_servers(options)
    more_hosts = _replica_hosts(_num_servers(options), host)
    return ModelChoice(layer=Layer("--model, --server_*", values), host=host, more=more_hosts)


def choose_models(options: ModelOptions, overrides: Mapping[str, Text], *, elsewhere: bool = False) -> ModelChoice:
    """Choose several models: the first is the main one, the others have the roles model1, model2, … for the solver.

    A single value of an option counts for all. Raises ConfigError.
    """
    count = max(len(getattr(options, name)) for name in LISTS)
    if count < 2:
        return choose_model(options, overrides, elsewhere=elsewhere)
    for name in (*LISTS, ARGUMENTS):
        if len(getattr(options, name)) not in (0, 1, count):
            raise ConfigError(f"--{name} has {len(getattr(options, name))} values for {count} models.")
    first = choose_model(one_of(options, 0), overrides, elsewhere=elsewhere)
    values = dict(first.layer.values)
    more = dict(first.more)
    for number in range(1, count):
        role = f"{ROLE}{number}"
        choice = choose_model(one_of(options, number), {}, elsewhere=elsewhere)
        values |= {
            key.replace("server.", f"models.{role}.", 1): value
            for key, value in choice.layer.values.items()
            if key.startswith("server.")
        }
        if choice.more:
            raise ConfigError("--num_servers is for one model, but several are given.")
        if choice.host is not None:
            more[role] = choice.host
    return ModelChoice(layer=Layer(first.layer.source, values), host=first.host, more=more)


def one_of(options: O, number: int) -> O:
    """Return `options` with those of one model."""
    mine = {name: getattr(options, name) for name in (*LISTS, ARGUMENTS, "server_container")}
    return replace(options, **{name: v if len(v) < 2 else v[number : number + 1] for name, v in mine.items()})


def _batch_command(options: ModelOptions, kind: str, model: str, *, elsewhere: bool) -> str:
    """Return the command that answers batches without a server. Raises ConfigError."""
    import shlex

    maker = SERVERS.properties(kind).batches
    if not maker:
        raise ConfigError(f"--server_type={kind} has no batches.", hint="Leave out --batch_api.")
    if options.server_address:
        raise ConfigError(
            f"--batch_api of {kind} works on this machine, without a server.", hint="Leave out --server_address."
        )
    gpus = _first_value(options.server_gpus)
    if gpus is None:
        gpus = 0 if elsewhere else visible_gpus()
    words: list[str] = load_function(maker)(_make_serve_spec(options, kind, model, gpus))
    return shlex.join(words)


def _num_servers(options: ModelOptions) -> int:
    if isinstance(options, WorkOptions):
        return options.num_servers
    return 1


def _replica_hosts(count: int, host: ServeSpec | None) -> dict[str, ServeSpec]:
    """Return the servers of the model after the first, by role. Raises ConfigError where none is started."""
    if count == 1:
        return {}
    if host is None:
        raise ConfigError(
            f"--num_servers={count} starts servers, but the model is served elsewhere.",
            hint="Give all addresses: --server_address=http://one:8000,http://two:8000",
        )
    if argument_value(host, "--port") is not None:
        raise ConfigError("--num_servers needs a free port for each server.", hint="Leave out --port.")
    return {f"{REPLICA}{number}": host for number in range(1, count)}


def hosting_of(choice: ModelChoice, options: ModelOptions, logs: Path) -> HostedServers | None:
    """Return the servers to start for a run, with the log in `logs`; None where none is to be started."""
    if choice.host is None and not choice.more:
        return None
    return HostedServers(
        spec=choice.host, log=logs / "server.log", timeout=options.server_timeout, more=dict(choice.more)
    )


def serve_spec(options: ModelOptions, *, elsewhere: bool = False) -> ServeSpec:
    """Return the server that was asked for outright (`ns start_server`); `elsewhere`: on a cluster. Raises
    ConfigError."""
    _check_single(options)
    kind = _server_type(_first_value(options.server_type))
    if not options.model:
        raise ConfigError("No model is given. Give --model (a name or a path).")
    gpus = _first_value(options.server_gpus)
    if gpus is None and elsewhere and not _on_cpu(kind):
        raise ConfigError("Give --server_gpus: the number of GPUs per node (0 = none).")
    if gpus is None:
        gpus = _usual_gpus(kind, elsewhere=elsewhere) if _on_cpu(kind) else visible_gpus()
    return _make_serve_spec(options, kind, options.model[0], gpus)


def _check_single(options: ModelOptions) -> None:
    for name in LISTS:
        if len(getattr(options, name)) > 1:
            raise ConfigError(f"--{name} has several values, but this command uses one model.")


def _server_type(kind: str | None) -> str:
    if kind is None:
        raise ConfigError(
            "No server type is given. Give --server_type.",
            hint=f"Choose one of {', '.join(MODELS.names())}. On this machine's CPU: --server_type=llamacpp "
            "--model=smollm2",
        )
    if (instead := REMOVED.get(fold(kind))) is not None:
        raise ConfigError(f"The server type '{kind}' no longer exists.", hint=instead)
    return MODELS.resolve(kind)


def _on_cpu(kind: str) -> bool:
    return kind in SERVERS and SERVERS.properties(kind).on_cpu


def _usual_gpus(kind: str, *, elsewhere: bool = False) -> int:
    """Return how many GPUs a server that needs none uses, where nobody says it."""
    if SERVERS.properties(kind).takes_gpus and not elsewhere:
        return visible_gpus()
    return 0


def _host_here(options: ModelOptions, overrides: Mapping[str, Text], kind: str, model: str) -> ServeSpec | None:
    gpus = _first_value(options.server_gpus)
    if kind not in SERVERS or "server.host" in overrides or "server.port" in overrides:
        if gpus is not None:
            raise ConfigError(
                f"--server_gpus: a server of type {kind} runs at an address; it cannot be started here."
            )
        return None
    if _on_cpu(kind):
        return _make_serve_spec(options, kind, model, _usual_gpus(kind) if gpus is None else gpus)
    if gpus is None:
        gpus = visible_gpus()
        if not gpus:
            if options.cluster and not _is_listening(DEFAULT_HOST, DEFAULT_PORT):
                raise _no_server(kind, model, "This machine has no visible GPU, and no server answers")
            print_note(f"no --server_address: using http://{DEFAULT_HOST}:{DEFAULT_PORT}/v1")
            return None
        _say_all_gpus(model, gpus)
    return _make_serve_spec(options, kind, model, gpus)


def _host_there(options: ModelOptions, overrides: Mapping[str, Text], kind: str, model: str) -> ServeSpec | None:
    """Return the server of a job. The GPUs of a cluster's node are not known here; jobs of this machine get all of its
    GPUs."""
    named = "server.host" in overrides or "server.port" in overrides
    if kind in SERVERS and not named and _on_cpu(kind):
        return _make_serve_spec(options, kind, model, _first_value(options.server_gpus) or 0)
    if kind not in SERVERS or named or options.server_gpus:
        return _host_here(options, overrides, kind, model)
    gpus = 0
    if cluster_of(options).properties.this_machine:
        gpus = visible_gpus()
    if not gpus:
        raise _no_server(kind, model, "No address and no number of GPUs is given")
    _say_all_gpus(model, gpus)
    return _make_serve_spec(options, kind, model, gpus)


def _no_server(kind: str, model: str, why: str) -> ConfigError:
    return ConfigError(
        f"Where is {model} served? {why}: give --server_gpus=1 (or more) to start a server of type {kind}, or "
        "--server_address for a running one.",
        hint="--server_gpus=0 starts it without GPUs.",
    )


def _say_all_gpus(model: str, gpus: int) -> None:
    print_note(f"no --server_address and no --server_gpus: serving {model} on all {gpus} GPUs of this machine")


def _is_listening(host: str, port: int) -> bool:
    """Return whether anything listens at the address."""
    import socket

    with socket.socket() as probe:
        probe.settimeout(2.0)
        return probe.connect_ex((host, port)) == 0


def _make_serve_spec(options: ModelOptions, kind: str, model: str, gpus: int) -> ServeSpec:
    import shlex

    slots = DEFAULT_SLOTS
    if kind in SERVERS:
        slots = SERVERS.properties(kind).slots
    return ServeSpec(
        model=model,
        server_type=kind,
        num_gpus=gpus,
        num_nodes=_first_value(options.server_nodes) or 1,
        extra_args=[word for text in options.server_args for word in shlex.split(text)],
        entrypoint=_first_value(options.server_entrypoint),
        slots=slots,
    )


def _first_value(values: list[Any]) -> Any:
    if values:
        return values[0]
    return None


def _override_text(overrides: Mapping[str, Text], key: str) -> str | None:
    value = overrides.get(key)
    if value is not None:
        return str(value)
    return None
