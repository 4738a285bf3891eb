# SPDX-License-Identifier: Apache-2.0
"""Objects that calls take in place of strings: a model with its server, and settings of a generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from newskills._api.signatures import Annotation, key_type
from newskills.base.errors import suggest
from newskills.config.fields import Leaf, branches, leaves
from newskills.config.values import Text, convert_value, written_value
from newskills.models.config import MASK
from newskills.run.planning.config import ALIASES, GenerationConfig

FIRST = "inference."
"""Prefix of the keys that come first in the signature: people set them most."""


class Model(Struct, frozen=True):
    """A model, and where it is served: a running server, or one that is started for the call.

    name        what the server calls it, or its path
    server      kind of server: vllm, sglang, openai, llamacpp, …
    address     of a running server, with or without /v1; several share the requests
    gpus        start a server on this many GPUs per node
    nodes       nodes of that server
    args        more arguments for its engine
    entrypoint  another start command for its engine
    container   its image, on clusters
    settings    further keys of `++server.`: `{"api_key_env_var": "MY_KEY", "max_retries": 5}`
    """

    name: str
    server: str | None = None
    address: str | Sequence[str] | None = None
    gpus: int | None = None
    nodes: int | None = None
    args: str | None = None
    entrypoint: str | None = None
    container: str | None = None
    settings: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        """Return the call that makes it, without an API key."""
        more = {name: value for name, value in asdict(self).items() if name != "name" and value not in (None, {})}
        return f"Model({', '.join([repr(self.name), *_format_keywords(more)])})"

    def server_options(self) -> dict[str, Any]:
        """Return the values of the `server_…` options that are set."""
        if self.address is None or isinstance(self.address, str):
            address = self.address
        else:
            address = ",".join(self.address)
        values = {
            "type": self.server,
            "address": address,
            "gpus": self.gpus,
            "nodes": self.nodes,
            "args": self.args,
            "entrypoint": self.entrypoint,
            "container": self.container,
        }
        return {f"server_{name}": value for name, value in values.items() if value is not None}


class Generation:
    """How answers are generated: the `++` keys as typed keywords; what is not set is left to the benchmark.

    Groups of keys are mappings: `Generation(temperature=0.7, sandbox={"host": "node1"})`.

    Raises:
        TypeError: there is no such key; the nearest one is named
        ConfigError: a value is not of the key's type
    """

    __slots__ = ("overrides", "values")

    def __init__(self, **values: Any) -> None:
        self.values = dict(values)
        self.overrides = dict(setting_texts(values, "Generation"))

    def __repr__(self) -> str:
        return f"Generation({', '.join(_format_keywords(self.values))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Generation) and self.overrides == other.overrides

    def __hash__(self) -> int:
        return hash(frozenset(self.overrides.items()))


def _format_keywords(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield `values` as keywords of a call, without API keys."""
    for name, value in values.items():
        if isinstance(value, Mapping) and "api_key" in value:
            value = {**value, "api_key": MASK}
        yield f"{name}={value!r}"


def key_leaves(prefix: str = "") -> dict[str, Leaf]:
    """Return the keywords of `Generation` that are keys with a value (`prefix`: the keys of a group), by name."""
    by_path = leaves(GenerationConfig)
    own = {path.removeprefix(prefix): leaf for path, leaf in by_path.items() if path.startswith(prefix)}
    named = {name: leaf for name, leaf in own.items() if "." not in name}
    if prefix:
        return named
    first = {name: by_path[path] for name, path in ALIASES.items() if path.startswith(FIRST)}
    return {**first, **named}


def key_groups(prefix: str = "") -> list[str]:
    """Return the keywords that are groups of keys, which take a mapping."""
    paths = (path.removeprefix(prefix) for path in branches(GenerationConfig) if path.startswith(prefix))
    return sorted(path for path in paths if path and "." not in path)


def generation_signature() -> Signature:
    """Return the signature of `Generation`, for checkers, editors and `help`."""
    types = {name: key_type(leaf) for name, leaf in key_leaves().items()}
    types |= dict.fromkeys(key_groups(), "Mapping[str, Any]")
    return Signature(
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=..., annotation=Annotation(kind))
            for name, kind in types.items()
        ]
    )


def setting_texts(values: Mapping[str, Any], owner: str, prefix: str = "") -> Iterator[tuple[str, Text]]:
    """Yield path and text of each of `values`, keywords of `owner` below `prefix`.

    Raises TypeError for an unknown key, ConfigError for a value that is not of the key's type.
    """
    named, groups = key_leaves(prefix), key_groups(prefix)
    for name, value in values.items():
        if name in groups and isinstance(value, Mapping):
            yield from setting_texts(value, owner, f"{prefix}{name}.")
            continue
        if name not in named:
            if name in groups:
                expected = "; it takes a mapping"
            else:
                expected = suggest(name, [*named, *groups])
            raise TypeError(f"{owner}() has no setting '{prefix}{name}'{expected}")
        leaf = named[name]
        text = written_value(value, leaf)
        convert_value(text, leaf, f"{owner}({prefix}{name}={value!r})")
        yield leaf.path, text
