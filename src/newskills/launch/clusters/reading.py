# SPDX-License-Identifier: Apache-2.0
"""The YAML of cluster configs: strict about keys and types, and every error names the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from newskills.base.errors import ConfigError, DataError, suggest
from newskills.base.type_errors import PLACE_PATTERN, TYPE_WORDS

_TYPE_ERROR = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
_WORDS = {**TYPE_WORDS, "object": "`key: value` lines"}


class _Loader(yaml.SafeLoader):
    """YAML without two surprises of version 1.1: `10:00:00` is no number of seconds, `2026-01-01` no date."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the class above
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?(0|[1-9][0-9]*)\Z"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?\Z"), list("-+0123456789")
)


class Numbers(_Loader):
    """The same with all ways to write a number that OmegaConf knows, for configurations made for it."""


Numbers.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+|\.[0-9]+|\.inf|\.nan)\Z", re.IGNORECASE),
    list("-+.0123456789"),
)


def read_cluster_file(path: Path) -> dict[str, Any]:
    """Read the keys of a cluster config. Raises DataError, ConfigError, as `read_text` and `parse_yaml` do."""
    return parse_yaml(read_text(path), path, "a cluster config", "executor: slurm")


def read_text(path: Path) -> str:
    """Read the text of a file. Raises DataError for a file that cannot be read, ConfigError for bytes that are not
    UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text.") from error


def parse_yaml(
    text: str, path: Path, what: str, example: str, loader_type: type[yaml.SafeLoader] = _Loader
) -> dict[str, Any]:
    """Parse the keys from the text of `path`; errors call it `what`. Raises ConfigError for invalid YAML, text without
    keys, or a key written twice."""
    try:
        loader = loader_type(text)
        try:
            node = loader.get_single_node()
            _check_duplicates(node, path)
            values = loader.construct_document(node) if node is not None else {}
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {_one_line(error)}.") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: {what} has `key: value` lines, for example `{example}`.")
    return values


def check_keys(values: Mapping[str, Any], kind: type[msgspec.Struct], where: str, inside: str = "") -> None:
    """Raise ConfigError for keys that `kind` does not have; `inside` is the key that holds `values`."""
    field_names = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in values:
        if key not in field_names:
            raise ConfigError(f"{where}: unknown key '{inside}{key}'{suggest(str(key), field_names)}")


def error_sentence(error: msgspec.ValidationError, where: str) -> str:
    """Describe `error` for people, without the value, which may be private."""
    text = str(error)
    place = PLACE_PATTERN.search(text)
    path = ""
    if place:
        path = re.sub(r"\[\.\.\.\]", ".…", place["path"])
    text = PLACE_PATTERN.sub("", text)
    if match := _TYPE_ERROR.search(text):
        wanted = " or ".join(_WORDS.get(kind, kind) for kind in match["wanted"].split(" | ") if kind != "null")
        got = _WORDS.get(match["got"], match["got"])
        if "text" in wanted and match["got"] in ("int", "float", "bool"):
            quote = "; put it in quotes"
        else:
            quote = ""
        text = f"must be {wanted}, not {got}{quote}"
    return f"{where}: {path or 'the config'} {text[:1].lower()}{text[1:].replace('`', chr(39))}."


def _check_duplicates(node: yaml.Node | None, path: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise ConfigError(f"{path}, line {key.start_mark.line + 1}: the key '{key.value}' appears twice.")
            seen.add(key.value)
            _check_duplicates(value, path)


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    if mark:
        return f"{what}, line {mark.line + 1}"
    return str(what)
