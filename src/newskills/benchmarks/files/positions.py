# SPDX-License-Identifier: Apache-2.0
"""YAML → plain values that know where they stand, so that every error names file, line and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from newskills.base.errors import ConfigError, suggest

LARGEST = 1 << 20
"""Bytes of a file that describes a benchmark: rows belong into files of their own."""
_MOST_NODES = 20_000
_PLAIN = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_MERGE = "tag:yaml.org,2002:merge"

KeyPath = tuple[str | int, ...]
"""Keys and places in lists on the way from the top of a document to a value."""


class MarkedPlace(NamedTuple):
    """A line and a column, both from 1."""

    line: int
    column: int


class MarkedDocument(NamedTuple):
    """`values`: what stands in the file; `keys`, `places`: where each key, and each value, begins."""

    path: Path
    values: Any
    keys: Mapping[KeyPath, MarkedPlace]
    places: Mapping[KeyPath, MarkedPlace]

    def fault(self, path: KeyPath, message: str, *, hint: str = "", at_key: bool = False) -> ConfigError:
        """Return the error to raise about the value (or the key) at `path`, or about the nearest one above it."""
        first, second = (self.keys, self.places) if at_key else (self.places, self.keys)
        while path and path not in first and path not in second:
            path = path[:-1]
        place = first.get(path) or second.get(path)
        where = f", line {place.line}, column {place.column}" if place else ""
        return ConfigError(f"{self.path}{where}: {message}", hint=hint)

    def check_keys(self, path: KeyPath, allowed: Sequence[str]) -> None:
        """Raise ConfigError for a key of the mapping at `path` that is not allowed."""
        value = self.at(path)
        for key in value if isinstance(value, dict) else ():
            if key not in allowed:
                raise self.fault((*path, key), f"there is no key '{key}'{suggest(key, allowed)}", at_key=True)

    def at(self, path: KeyPath) -> Any:
        """Return the value at `path`; None where there is none."""
        value = self.values
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value


def read_document(path: Path) -> MarkedDocument:
    """Read a YAML mapping. Raises ConfigError: no file, no YAML, a key twice or that is no text, a value that holds
    itself."""
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"{path} has more than {LARGEST >> 20} MB; keep the rows in a file of their own.")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{path} cannot be read: {why}.") from error
    return parse_document(text, path)


def parse_document(text: str, path: Path) -> MarkedDocument:
    """Parse the text of the file at `path`. Raises ConfigError as `read_document`."""
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = error.position - before.rfind("\n")
        raise ConfigError(
            f"{path}, line {before.count(chr(10)) + 1}, column {column}: this is not YAML: the character "
            f"{text[error.position]!r} is not allowed."
        ) from error
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            why = "the file is empty" if node is None else "not a list or a text"
            raise ConfigError(f"{path}, line 1, column 1: expected keys with values (data: questions.csv), {why}.")
        walker = _NodeWalker(path)
        values = walker.value(node, (), loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}{where}: this is not YAML: {error.problem}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())[:200]}.") from error
    finally:
        loader.dispose()
    return MarkedDocument(path, values, walker.keys, walker.places)


class _NodeWalker:
    """Makes values of nodes, and notes where they stand. Every node counts, so aliases cannot multiply without end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys: dict[KeyPath, MarkedPlace] = {}
        self.places: dict[KeyPath, MarkedPlace] = {}
        self._above: set[int] = set()
        self._count = 0

    def value(self, node: yaml.Node, path: KeyPath, loader: yaml.SafeLoader) -> Any:
        self._count += 1
        if self._count > _MOST_NODES:
            raise ConfigError(
                f"{self.path} has more than {_MOST_NODES} values; keep the rows in a file of their own."
            )
        if id(node) in self._above:
            raise self._fault(node, "a value cannot hold itself.")
        self.places.setdefault(path, _marked_place(node))
        if isinstance(node, yaml.ScalarNode):
            return loader.construct_object(node)
        if node.tag not in _PLAIN:
            raise self._fault(node, f"the tag {node.tag} means nothing here; leave it out.")
        self._above.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, number), loader) for number, item in enumerate(node.value)]
            assert isinstance(node, yaml.MappingNode), "YAML has no other nodes"
            return self._mapping(node, path, loader)
        finally:
            self._above.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, loader: yaml.SafeLoader) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, mapping, loader)
            self.keys[*path, key] = _marked_place(key_node)
            mapping[key] = self.value(value_node, (*path, key), loader)
        return mapping

    def _key(self, node: yaml.Node, earlier: Mapping[str, Any], loader: yaml.SafeLoader) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._fault(node, "a key must be a text.")
        if node.tag == _MERGE:
            raise self._fault(node, "'<<' merges mappings, which is not done here; write the keys out.")
        key = loader.construct_object(node)
        if not isinstance(key, str):
            raise self._fault(
                node, f"the key {node.value} is not a text in YAML; write it in quotes: '{node.value}'."
            )
        if key in earlier:
            raise self._fault(node, f"the key '{key}' occurs twice.")
        return key

    def _fault(self, node: yaml.Node, message: str) -> ConfigError:
        place = _marked_place(node)
        return ConfigError(f"{self.path}, line {place.line}, column {place.column}: {message}")


def _marked_place(node: yaml.Node) -> MarkedPlace:
    return MarkedPlace(node.start_mark.line + 1, node.start_mark.column + 1)
