# SPDX-License-Identifier: Apache-2.0
"""`${…}` in configurations, with the meaning of OmegaConf (omegaconf.readthedocs.io, "Variable interpolation").

    ${a.b}  ${a.list[0]}  ${.sibling}  ${..aunt}     another value, in its own type where it is the whole text
    ${oc.env:NAME}  ${oc.env:NAME,default}           an environment variable
    ${oc.select:key,default}  ${select_not_null:key,default}
    ${art:model,path}                                a field of the artifact that `run.model` names
    \\${…}                                            the text `${…}`

Every fault is collected with its place; nothing is raised, so that all of them can be told at once.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from newskills.base.errors import ConfigError, suggest
from newskills.base.records import Row
from newskills.launch.clusters.names import looks_secret
from newskills_evaluator.compile.manifests import Manifests
from newskills_evaluator.compile.problems import ConfigProblem
from newskills_evaluator.compile.tree import Path, format_path, get_at_path, split_path

MISSING = "???"
RESOLVERS = ("oc.env", "oc.select", "select_not_null", "art")
MAX_REFERENCE_DEPTH = 100
"""Limit of references that lead to each other."""
MAX_VALUES, MAX_TEXT_LENGTH = 200_000, 1_000_000
"""Limits: values of a configuration, and characters of one of them."""
_CALL = re.compile(r"\s*([A-Za-z_][\w.]*):", re.ASCII)
_FAILED = object()


class Resolver:
    """Resolves the tree `root`.

    Afterwards: `problems`; `secrets`, texts that came from variables of keys; `unset`, where the default of a variable
    stands because it is not set.
    """

    def __init__(self, root: Row, environ: Mapping[str, str], manifests: Manifests | None = None) -> None:
        self.root, self.environ, self.manifests = root, environ, manifests or Manifests()
        self.problems: list[ConfigProblem] = []
        self.secrets: set[str] = set()
        self.unset: dict[Path, str] = {}
        self._open: list[Path] = []
        self._known: dict[Path, Any] = {}
        self._seen = 0

    def resolve_tree(self) -> Row:
        """Resolve all of `root`. Raises ConfigError where references into each other make it grow without
        measure."""
        done: Row = self._resolve_node(self.root, ())
        return done

    def resolve_path(self, path: Path) -> Any:
        """Return the value at `path`, resolved. Raises KeyError where there is none."""
        return self._resolve_node(get_at_path(self.root, path), path)

    def _resolve_node(self, node: Any, path: Path) -> Any:
        self._seen += 1
        if self._seen > MAX_VALUES:
            raise ConfigError("The references in the configuration make it grow without limit.")
        if isinstance(node, dict):
            return {key: self._resolve_node(value, (*path, key)) for key, value in node.items()}
        if isinstance(node, list):
            return [self._resolve_node(value, (*path, str(at))) for at, value in enumerate(node)]
        if not isinstance(node, str):
            return node
        if node == MISSING:
            self._report(path, "it has no value yet (???)", example="VALUE", open=True)
            return _failed_to_none(_FAILED)
        if "${" not in node:
            return node
        if path in self._open or len(self._open) > MAX_REFERENCE_DEPTH:
            circle = " → ".join(format_path(item) for item in [*self._open[-3:], path])
            self._report(path, f"the references form a circle: {circle}")
            return None
        if path not in self._known:
            self._open.append(path)
            self._known[path] = _failed_to_none(self._resolve_text(node, path))
            self._open.pop()
        return self._known[path]

    def _report(self, path: Path, what: str, example: object = None, *, open: bool = False) -> object:
        problem = ConfigProblem(path, what, example, open=open)
        if problem not in self.problems:
            self.problems.append(problem)
        return _FAILED

    def _resolve_text(self, text: str, path: Path) -> Any:
        """Resolve a text that holds `${`: one whole reference keeps its type; null in the middle of others is empty."""
        try:
            pieces = split_references(text)
        except ConfigError as error:
            return self._report(path, str(error))
        if len(pieces) == 1 and pieces[0][0]:
            return self._resolve_reference(pieces[0][1], path)
        done = ""
        for inside, piece in pieces:
            value: Any = piece
            if inside:
                value = self._resolve_reference(piece, path)
            if isinstance(value, dict | list):
                return self._report(path, f"${{{piece}}} is a section, so it cannot be part of a text")
            if value is not None and value is not _FAILED:
                done += str(value)
            if len(done) > MAX_TEXT_LENGTH:
                raise ConfigError(f"The references in {format_path(path)} make it grow without limit.")
        return done

    def _resolve_reference(self, inner: str, path: Path) -> Any:
        if "${" in inner:
            inner = str(_failed_to_none(self._resolve_text(inner, path)))
        called = _CALL.match(inner)
        if called:
            return self._call_resolver(called[1], _split_arguments(inner[called.end() :]), path)
        return self._resolve_key(inner.strip(), path)

    def _call_resolver(self, name: str, arguments: Sequence[str], path: Path) -> Any:
        if name == "oc.env":
            return self._resolve_variable(arguments, path)
        if name in ("oc.select", "select_not_null") and 1 <= len(arguments) <= 2:
            return self._select_value(name, arguments)
        if name == "art" and 1 <= len(arguments) <= 2:
            return self._resolve_artifact(arguments, path)
        suggestion = suggest(name, RESOLVERS)
        return self._report(path, f"there is no resolver '{name}' with {len(arguments)} arguments{suggestion}")

    def _resolve_variable(self, arguments: Sequence[str], path: Path) -> Any:
        name = arguments[0]
        if name in self.environ:
            value = self.environ[name]
            if looks_secret(name) and len(value) > 3:
                self.secrets.add(value)
            return value
        if len(arguments) == 2:
            self.unset[path] = name
            if arguments[1].lower() in ("null", "none"):
                return None
            return arguments[1]
        return self._report(path, f"the variable {name} is not set; export it, or write ${{oc.env:{name},VALUE}}")

    def _resolve_artifact(self, arguments: Sequence[str], path: Path) -> Any:
        """Return a field of an artifact; for one that is not found, return the reference itself, which a dry run
        shows."""
        key, field = [*arguments, "path"][:2]
        try:
            named = self.resolve_path(("run", key))
        except KeyError:
            named = None
        try:
            return self.manifests.field(key, named, field)
        except ConfigError as error:
            self.problems.append(ConfigProblem(path, str(error), open=True))
            return f"${{art:{','.join(arguments)}}}"

    def _select_value(self, name: str, arguments: Sequence[str]) -> Any:
        try:
            path = split_path(arguments[0])
        except ConfigError:
            path = ("",)
        try:
            selected = self.resolve_path(path)
        except KeyError:
            selected = None
        if selected is None and len(arguments) == 2:
            if arguments[1].lower() in ("null", "none"):
                return None
            return arguments[1]
        return selected

    def _resolve_key(self, key: str, path: Path) -> Any:
        """Find `a.b`, or a path with leading dots, which is relative: one dot is the section that the value
        stands in."""
        dots = len(key) - len(key.lstrip("."))
        try:
            base = path[: len(path) - dots] if dots else ()
            target = (*base, *split_path(key[dots:]))
        except ConfigError as error:
            return self._report(path, str(error))
        if dots > len(path):
            return self._report(path, f"${{{key}}} points outside the configuration")
        try:
            target_node = get_at_path(self.root, target)
        except KeyError:
            return self._report_dangling(target, path)
        if target_node == MISSING:
            self._report(target, "it has no value yet (???)", example="VALUE", open=True)
            return _FAILED
        return copy.deepcopy(self._resolve_node(target_node, target))

    def _report_dangling(self, target: Path, path: Path) -> object:
        shown = format_path(target)
        if target[:2] == ("run", "env"):
            key = format_path(target[2:])
            where = f"write {key} into the profile of env.toml, or give {shown}=… on the command line"
            what = f"it refers to {shown}, which neither the profile nor the file has: {where}"
            return self._report(path, what, open=True)
        if target[:2] == ("run", "wandb"):
            what = f"it refers to {shown}: write {target[-1]} into the section [wandb] of env.toml"
            return self._report(path, what, open=True)
        return self._report(path, f"it refers to {shown}, which does not exist")


def split_references(text: str) -> list[tuple[bool, str]]:
    """Split `text` into (False, plain text) and (True, what stands between `${` and its `}`), in order.

    Raises ConfigError where one does not close.
    """
    pieces: list[tuple[bool, str]] = []
    plain: list[str] = []
    at = 0
    while at < len(text):
        if text.startswith("\\${", at):
            plain.append("${")
            at += 3
        elif text.startswith("${", at):
            end = _find_closing_brace(text, at + 2)
            if plain:
                pieces.append((False, "".join(plain)))
                plain = []
            pieces.append((True, text[at + 2 : end]))
            at = end + 1
        else:
            plain.append(text[at])
            at += 1
    if plain:
        pieces.append((False, "".join(plain)))
    return pieces


def _find_closing_brace(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    raise ConfigError(f"a ${{ is not closed in '{text[:80]}'; write \\${{ for the plain characters")


def _split_arguments(text: str) -> list[str]:
    """Split `X, "a, b"` into `X` and `a, b`."""
    argument_list: list[str] = []
    quote, current = "", ""
    for character in text:
        if quote and character == quote:
            quote = ""
        elif quote:
            current += character
        elif character in "'\"" and not current.strip():
            quote, current = character, ""
        elif character == ",":
            argument_list.append(current.strip())
            current = ""
        else:
            current += character
    return [*argument_list, current.strip()]


def _failed_to_none(value: Any) -> Any:
    if value is _FAILED:
        return None
    return value
