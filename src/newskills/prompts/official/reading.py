# SPDX-License-Identifier: Apache-2.0
"""Files of a published prompt → the prompt, read strictly: what does not fit is refused, nothing is ever run.

Places in files: a constant in a Python file (`NAME`, `NAME/key/key` of a dictionary, `function[3]` for the fourth text
in a function), keys in a JSON or YAML file (`key/key`), and in JSON Lines a row by one of its fields
(`field=value/key`).
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError
from newskills.prompts.official.table import OfficialPrompt, entries_of
from newskills.prompts.schema import ConfigSource, FewShotConfig, PromptConfig, read_source, read_yaml
from newskills.prompts.template import Template, TextPosition, escaped, renamed

_NUMBERED = re.compile(r"(\w+)\[(\d+)\]")
_STRIPS = ("strip", "lstrip", "rstrip")


def find_official(prompt: str, folders: Sequence[str]) -> tuple[OfficialPrompt, Path] | None:
    """Return what is published for `prompt` and the first of `folders` that has its files; None where none has.

    Raises DataError for files that are not those that were published.
    """
    entries = entries_of(prompt)
    for folder in map(Path, folders):
        changed: list[Path] = []
        for entry in entries:
            places = entry.places(folder)
            if not all(path.is_file() for path in places.values()):
                continue
            if differing := [path for name, path in places.items() if _sha256(path) != entry.files[name]]:
                changed += differing
                continue
            return entry, folder
        if changed:
            raise DataError(
                f"{changed[0]} is not the published file: its sha256 is not the one that newskills knows.",
                hint="ns prepare_data downloads it again; --prompt_source=newskills uses this project's own wording.",
            )
    return None


def official_source(entry: OfficialPrompt, folder: Path) -> ConfigSource:
    """Return the prompt of `entry`, whose files lie below `folder`. Raises ConfigError for what does not fit."""
    reader = _OfficialReader(entry, folder)
    if entry.user:
        config = reader.composed()
    else:
        config = reader.whole()
    return ConfigSource(name=entry.prompt, config=config, places={})


def needed_fields(config: PromptConfig) -> set[str]:
    """Return the fields that rows need for the texts of a prompt, the few-shot text not counted."""
    texts = [config.user, *([config.system] if config.system is not None else [])]
    place = TextPosition("an official prompt")
    fields = {name for text in texts for name in Template(text, place).fields} - {"examples"}
    if config.few_shot_examples.examples_type is not None:
        fields.update(Template(config.few_shot_examples.examples_type, place).fields)
    return fields


class _OfficialReader:
    def __init__(self, entry: OfficialPrompt, folder: Path) -> None:
        self.entry = entry
        self._files = {PurePosixPath(name).name: path for name, path in entry.places(folder).items()}
        self._place = TextPosition(f"The official wording of {entry.prompt}")
        self._seen: set[str] = set()

    def whole(self) -> PromptConfig:
        """Read a file that is a prompt itself."""
        (path,) = self._files.values()
        config = read_source(self.entry.prompt, path).config
        few = config.few_shot_examples
        config = replace(
            config,
            user=self._renamed(config.user),
            system=None if config.system is None else self._renamed(config.system),
            few_shot_examples=replace(few, template=self._renamed(few.template)),
        )
        self._check_all_used()
        return config

    def composed(self) -> PromptConfig:
        """Put a prompt together from texts in files."""
        entry = self.entry
        few = FewShotConfig(template=self._text(entry.example), examples_type=entry.examples_type)
        system = self._text(entry.system) if entry.system else None
        config = PromptConfig(user=self._text(entry.user), system=system, few_shot_examples=few)
        self._check_all_used()
        return config

    def _text(self, parts: Sequence[str]) -> str:
        return "".join(self._converted(part) if part.startswith(("@", "=@")) else part for part in parts)

    def _converted(self, part: str) -> str:
        text = _read(self._files, part.removeprefix("="))
        if part.startswith("="):
            return escaped(text)
        if self.entry.style == "marks":
            return self._marks_filled(text)
        if unknown := [name for name in Template(text, self._place).fields if name not in self.entry.fields]:
            raise ConfigError(f"{self._place.what}: nothing says which field of the rows is {{{unknown[0]}}}.")
        return self._renamed(text)

    def _renamed(self, text: str) -> str:
        self._seen.update(Template(text, self._place).fields)
        return renamed(text, self._place, self.entry.fields)

    def _marks_filled(self, text: str) -> str:
        """Each mark becomes a field, everything else stays as it is."""
        marks = self.entry.fields
        if not marks:
            return escaped(text)
        pieces = re.split("(" + "|".join(map(re.escape, marks)) + ")", text)
        self._seen.update(piece for piece in pieces if piece in marks)
        filled = {mark: field if "{" in field else f"{{{field}}}" for mark, field in marks.items()}
        return "".join(filled[piece] if piece in marks else escaped(piece) for piece in pieces)

    def _check_all_used(self) -> None:
        if missing := [name for name in self.entry.fields if name not in self._seen]:
            raise ConfigError(f"{self._place.what}: its text has no place for {missing[0]}.")


def _read(files: dict[str, Path], part: str) -> str:
    name, _, where = part.removeprefix("@").partition(":")
    path = files[name]
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return _python_text(text, where, path)
    if not where:
        return text
    if path.suffix in (".yaml", ".yml"):
        value: Any = read_yaml(path)[0]
    elif path.suffix == ".jsonl":
        chosen, _, where = where.partition("/")
        field, _, wanted = chosen.partition("=")
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        value = next((row for row in rows if str(row.get(field)) == wanted), None)
    else:
        value = json.loads(text)
    for key in where.split("/"):
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, str):
        raise ConfigError(f"{path}: there is no text at {part}.")
    return value


def _python_text(source: str, where: str, path: Path) -> str:
    """Return the value of a constant, worked out from what is written, or a numbered text of a function; the file is
    not run. Raises ConfigError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about backslashes in their texts
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path} cannot be read as Python: {error}.") from error
    if (numbered := _NUMBERED.fullmatch(where)) is not None:
        functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == numbered[1])
        texts = list(_texts_in(next(functions, None)))
        number = int(numbered[2])
        if number < len(texts):
            return texts[number]
        raise ConfigError(f"{path}: the function {numbered[1]} has no text number {number}.")
    name, *keys = where.split("/")
    values = _constants(tree)
    node = values.get(name)
    for key in keys:
        node = _item(node, key)
    text = _text_of(node, values)
    if text is None:
        raise ConfigError(f"{path}: {where} is not a text.")
    return text


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the names that the top of a module assigns, with what is written for them (the last one counts)."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _texts_in(node: ast.AST | None) -> Iterator[str]:
    """Yield the texts in a piece of a program, in the order in which they are written."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node) if node is not None else ():
        yield from _texts_in(child)


def _item(node: ast.expr | None, key: str) -> ast.expr | None:
    if not isinstance(node, ast.Dict):
        return None
    for written, value in zip(node.keys, node.values, strict=True):
        if isinstance(written, ast.Constant) and written.value == key:
            return value
    return None


def _text_of(node: ast.expr | None, values: dict[str, ast.expr], depth: int = 0) -> str | None:
    """Return the value of a text, texts joined with `+`, another name for one, or one with `.strip()`, `.lstrip()` or
    `.rstrip()`; None for anything else."""
    if depth > 8:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return _text_of(values.get(node.id), values, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = (_text_of(side, values, depth + 1) for side in (node.left, node.right))
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        text = _text_of(node.func.value, values, depth + 1)
        return getattr(text, node.func.attr)() if text is not None and node.func.attr in _STRIPS else None
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
