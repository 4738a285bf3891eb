# SPDX-License-Identifier: Apache-2.0
"""Files of a published prompt → the prompt, read strictly: what does not fit is refused, nothing is ever run.

Places in files: a constant in a Python file (`NAME`, `NAME/key/key` of a dictionary, `function[3]` for the fourth text
in a function, `CLASS/NAME` for one of a class), keys in a JSON or YAML file (`key/key`), and in JSON Lines a row by
one of its fields (`field=value/key`).
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import string
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError
from newskills.prompts.official.table import CASE, OTHERS, OfficialPrompt, entries_of
from newskills.prompts.schema import CaseTexts, ConfigSource, FewShotConfig, PromptConfig, read_source, read_yaml
from newskills.prompts.template import Template, TextPosition, escape_template, rename_fields

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
            if differing := [path for name, path in places.items() if _file_sha256(path) != entry.files[name]]:
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
    if entry.user or entry.cases:
        config = reader.compose_texts()
    else:
        config = reader.read_whole_file()
    return ConfigSource(name=entry.prompt, config=config, places={})


def needed_fields(config: PromptConfig) -> set[str]:
    """Return the fields that rows need for the texts of a prompt, the few-shot text not counted."""
    texts = list(config.user_texts.values())
    if config.system is not None:
        texts.append(config.system)
    place = TextPosition("an official prompt")
    fields = {name for text in texts for name in Template(text, place).fields} - {"examples"}
    if config.cases is not None:
        fields.add(config.cases.field)
    if config.few_shot_examples.examples_type is not None:
        fields.update(Template(config.few_shot_examples.examples_type, place).fields)
    return fields


class _OfficialReader:
    def __init__(self, entry: OfficialPrompt, folder: Path) -> None:
        self.entry = entry
        self._files = {PurePosixPath(name).name: path for name, path in entry.places(folder).items()}
        self._place = TextPosition(f"The official wording of {entry.prompt}")
        self._seen: set[str] = set()

    def read_whole_file(self) -> PromptConfig:
        """Read a file that is a prompt itself."""
        (path,) = self._files.values()
        config = read_source(self.entry.prompt, path).config
        few = config.few_shot_examples
        system = None
        if config.system is not None:
            system = self._with_renamed_fields(config.system)
        config = replace(
            config,
            user=self._with_renamed_fields(config.user),
            system=system,
            few_shot_examples=replace(few, template=self._with_renamed_fields(few.template)),
        )
        self._check_all_used()
        return config

    def compose_texts(self) -> PromptConfig:
        """Put a prompt together from texts in files."""
        entry = self.entry
        few = FewShotConfig(template=self._joined_text(entry.example), examples_type=entry.examples_type)
        system = self._joined_text(entry.system) if entry.system else None
        cases = None
        if entry.cases:
            users = {value: self._joined_text(self._parts_of(value)) for value in entry.cases}
            user = users.pop(OTHERS, "")
            cases = CaseTexts(field=entry.case, user=users)
        else:
            user = self._joined_text(entry.user)
        config = PromptConfig(
            user=user, system=system, few_shot_examples=few, cases=cases, image_field=entry.image_field
        )
        self._check_all_used()
        return config

    def _parts_of(self, value: str) -> Sequence[str]:
        """Return the parts of the user's text for rows with `value` in the field that decides."""
        case = self.entry.cases[value]
        if isinstance(case, str):
            return [part.replace(CASE, case) for part in self.entry.user]
        return case

    def _joined_text(self, parts: Sequence[str]) -> str:
        return "".join(self._template_of(part) if part.startswith(("@", "=@")) else part for part in parts)

    def _template_of(self, part: str) -> str:
        text = _read_part(self._files, part.removeprefix("="))
        if part.startswith("="):
            return escape_template(text)
        if self.entry.style == "marks":
            return self._marks_filled(text)
        if self.entry.style == "positions":
            return self._positions_filled(text)
        if unknown := [name for name in Template(text, self._place).fields if name not in self.entry.fields]:
            raise ConfigError(f"{self._place.what}: nothing says which field of the rows is {{{unknown[0]}}}.")
        return self._with_renamed_fields(text)

    def _with_renamed_fields(self, text: str) -> str:
        self._seen.update(Template(text, self._place).fields)
        return rename_fields(text, self._place, self.entry.fields)

    def _marks_filled(self, text: str) -> str:
        """Replace each mark by a field, and leave everything else as it is."""
        marks = self.entry.fields
        if not marks:
            return escape_template(text)
        pieces = re.split("(" + "|".join(map(re.escape, marks)) + ")", text)
        self._seen.update(piece for piece in pieces if piece in marks)
        filled = {mark: field if "{" in field else f"{{{field}}}" for mark, field in marks.items()}
        return "".join(filled[piece] if piece in marks else escape_template(piece) for piece in pieces)

    def _positions_filled(self, text: str) -> str:
        """Make the n-th `{}` the field that is called n. Raises ConfigError for a place of another form."""
        fields = self.entry.fields
        pieces = []
        number = 0
        for literal, name, form, conversion in string.Formatter().parse(text):
            pieces.append(escape_template(literal))
            if name is None:
                continue
            if name or form or conversion or str(number) not in fields:
                raise ConfigError(f"{self._place.what}: nothing says what its place {number} ({{{name}}}) is.")
            self._seen.add(str(number))
            pieces.append(f"{{{fields[str(number)]}}}")
            number += 1
        return "".join(pieces)

    def _check_all_used(self) -> None:
        if missing := [name for name in self.entry.fields if name not in self._seen]:
            raise ConfigError(f"{self._place.what}: its text has no place for {missing[0]}.")


def _read_part(files: dict[str, Path], part: str) -> str:
    """Return the text that a part names. Raises ConfigError."""
    name, _, place = part.removeprefix("@").partition(":")
    where, _, pattern = place.partition("~")
    text = _text_at(files[name], where, part)
    if not pattern:
        return text
    match = re.search(pattern, text)
    if match is None:
        raise ConfigError(f"{files[name]}: the text at {part} has nothing of that form.")
    return match.group()


def _text_at(path: Path, where: str, part: str) -> str:
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
        if not isinstance(value, dict):
            value = None
            break
        value = value.get(key)
    if not isinstance(value, str):
        raise ConfigError(f"{path}: there is no text at {part}.")
    return value


def _python_text(source: str, where: str, path: Path) -> str:
    """Return the value of a constant, worked out from what is written, or a numbered text of a function; the file is
    not run. Raises ConfigError."""
    tree = _python_tree(source, path)
    if (numbered := _NUMBERED.fullmatch(where)) is not None:
        functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == numbered[1])
        texts = list(_texts_in(next(functions, None)))
        number = int(numbered[2])
        if number < len(texts):
            return texts[number]
        raise ConfigError(f"{path}: the function {numbered[1]} has no text number {number}.")
    name, *keys = where.split("/")
    values = _assigned_values(tree.body)
    node: ast.AST | None = values.get(name)
    for key in keys:
        node = _value_of_key(node, key)
    text = _text_of(node, values)
    if text is None:
        raise ConfigError(f"{path}: {where} is not a text.")
    return text


@lru_cache(maxsize=4)
def _python_tree(source: str, path: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about backslashes in their texts
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path} cannot be read as Python: {error}.") from error


def _assigned_values(body: Sequence[ast.stmt]) -> dict[str, ast.AST]:
    """Return the names that a module or class assigns, with what is written for them (the last one counts), and its
    classes."""
    values: dict[str, ast.AST] = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    for node in body:
        if isinstance(node, ast.Assign):
            values |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
    return values


def _texts_in(node: ast.AST | None) -> Iterator[str]:
    """Yield the texts in a piece of a program, in the order in which they are written."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if node is not None:
        for child in ast.iter_child_nodes(node):
            yield from _texts_in(child)


def _value_of_key(node: ast.AST | None, key: str) -> ast.AST | None:
    if isinstance(node, ast.ClassDef):
        return _assigned_values(node.body).get(key)
    if not isinstance(node, ast.Dict):
        return None
    for written, value in zip(node.keys, node.values, strict=True):
        if isinstance(written, ast.Constant) and written.value == key:
            return value
    return None


def _text_of(node: ast.AST | None, values: dict[str, ast.AST], depth: int = 0) -> str | None:
    """Return the value of a text (also `f"…"` without places), texts joined with `+`, another name for one, or one with
    `.strip()`, `.lstrip()` or `.rstrip()`; None for anything else."""
    if depth > 8:
        return None
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return node.value
        return None
    if isinstance(node, ast.JoinedStr):
        pieces = [_text_of(piece, values, depth + 1) for piece in node.values]
        if None in pieces:
            return None
        return "".join(filter(None, pieces))
    if isinstance(node, ast.Name):
        return _text_of(values.get(node.id), values, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = (_text_of(side, values, depth + 1) for side in (node.left, node.right))
        if left is None or right is None:
            return None
        return left + right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        text = _text_of(node.func.value, values, depth + 1)
        if text is None or node.func.attr not in _STRIPS:
            return None
        stripped: str = getattr(text, node.func.attr)()
        return stripped
    return None


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
