# SPDX-License-Identifier: Apache-2.0
"""The YAML of a prompt: what keys there are, and how a file or a dictionary becomes a checked struct."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, suggest
from newskills.base.records import Row
from newskills.base.type_errors import type_fault
from newskills.prompts.names import COLLECTIONS
from newskills.prompts.template import TextPosition

NO_LIMIT = 1e8


class FewShotConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How `{examples}` is made: prefix + template of each example + suffix; without examples it is empty."""

    prefix: Annotated[str, Meta(description="text before the examples")] = ""
    template: Annotated[str, Meta(description="text of one example, with its fields in braces")] = ""
    suffix: Annotated[str, Meta(description="text after the examples")] = ""
    examples_type: Annotated[
        str | None, Meta(description="name of a few-shot set; may be a template with fields of the record")
    ] = None
    as_turns: Annotated[
        bool, Meta(description="show each example as turns of the chat: the user's message for it, then `answer`")
    ] = False
    answer: Annotated[str, Meta(description="text of the assistant's turn, with as_turns")] = "{solution}"
    num_few_shots: Annotated[int, Meta(ge=0, description="only the first n examples of the set")] | None = None
    retrieval_field: Annotated[str | None, Meta(description="field to search similar examples by")] = None
    retrieval_file: Annotated[str | None, Meta(description="JSONL file of examples to search")] = None
    retrieved_entries: Annotated[int, Meta(ge=1, description="number of most similar examples to consider")] = 10
    retrieved_few_shots: Annotated[int, Meta(ge=1, description="number of those to show")] = 5
    randomize_retrieved_entries: Annotated[bool, Meta(description="shuffle the examples shown")] = False
    max_retrieved_chars: Annotated[float, Meta(gt=0, description="leave out examples longer than this")] = NO_LIMIT
    max_retrieved_chars_field: Annotated[str, Meta(description="field whose length counts")] = "reference_solution"

    def __post_init__(self) -> None:
        if (self.retrieval_field is None) != (self.retrieval_file is None):
            raise ValueError("retrieval_field and retrieval_file belong together: give both or neither")
        if self.retrieval_field is not None and self.examples_type is not None:
            raise ValueError("examples_type and retrieval_field exclude each other")


class CaseTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Templates in place of `user`, by the value that a record has in one of its fields."""

    field: Annotated[str, Meta(description="field of the record that decides")]
    user: Annotated[dict[str, str], Meta(description="template of the user's message by value of the field")]


class PromptConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One prompt. `user` and `system` are templates over the record; `{examples}` is the few-shot text.

    empty   text for fields of the record that are null; without it, a record with one that is shown is refused
    cases   templates in place of `user` for records with certain values; `user` is for all others, and where it is
            empty these are refused
    """

    user: str
    system: str | None = None
    empty: str | None = None
    few_shot_examples: FewShotConfig = FewShotConfig()
    image_field: str | None = None
    image_position: Literal["before", "after"] = "before"
    audio_field: str | None = None
    cases: CaseTexts | None = None

    @property
    def user_texts(self) -> dict[str, str]:
        """Key in the file → template of the user's message, for all templates that it may have."""
        texts: dict[str, str] = {}
        if self.cases is not None:
            texts = {f"cases.user.{value}": text for value, text in self.cases.user.items()}
        if self.user or not texts:
            return {"user": self.user, **texts}
        return texts


class ConfigSource(Struct, frozen=True, kw_only=True):
    """A config, the name to show for it, and where in its file a text begins (for errors)."""

    name: str
    config: PromptConfig
    places: Mapping[str, TextPosition]

    def place(self, key: str) -> TextPosition:
        return self.places.get(key) or TextPosition(f"Prompt {self.name}, `{key}`")


def read_source(name: str, path: Path) -> ConfigSource:
    """Read a prompt of a file. Raises ConfigError naming file, line and key."""
    values, places = read_yaml(path)
    if path.parent == COLLECTIONS:
        key = name.rpartition("/")[2]
        values = values[key]
        places = {
            inner.removeprefix(f"{key}."): place for inner, place in places.items() if inner.startswith(f"{key}.")
        }
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected a mapping with the key `user`.")
    return ConfigSource(name=name, config=to_config(values, str(path)), places=places)


def to_config(values: Row, where: str) -> PromptConfig:
    """Return the prompt's settings that `values` give. Raises ConfigError for unknown keys and wrong types; `where`
    names the origin."""
    _check_keys(values, PromptConfig, where, "")
    if isinstance(few_shots := values.get("few_shot_examples"), dict):
        _check_keys(few_shots, FewShotConfig, where, "few_shot_examples.")
    if isinstance(cases := values.get("cases"), dict):
        _check_keys(cases, CaseTexts, where, "cases.")
    if "user" not in values:
        raise ConfigError(f"{where}: the key `user` is missing.", hint="For example, write user: '{problem}'.")
    try:
        return msgspec.convert(values, PromptConfig, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {type_fault(error, values)}.") from error


def replace_few_shots(config: FewShotConfig, overrides: Row, where: str) -> FewShotConfig:
    """Return `config` with `overrides` in place. Raises ConfigError."""
    _check_keys(overrides, FewShotConfig, where, "few_shot_examples.")
    values = msgspec.structs.asdict(config) | overrides
    # A set named on top of a prompt that retrieves takes the place of retrieval, and the other way round.
    if overrides.get("examples_type") is not None:
        values |= {key: overrides.get(key) for key in ("retrieval_field", "retrieval_file")}
    elif overrides.get("retrieval_field") is not None:
        values["examples_type"] = None
    try:
        return msgspec.convert(values, FewShotConfig, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {type_fault(error, values)}.") from error


def read_yaml(path: Path) -> tuple[Any, dict[str, TextPosition]]:
    """Return the values of a YAML file, and for each text in its mappings where it begins.

    Raises ConfigError for what is not YAML, and for a key given twice (of which YAML readers keep the last).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {path}: {error}.") from error
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}
        _check_duplicates(node, path)
        return loader.construct_document(node), _text_positions(node, path, text.splitlines())
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}.") from error
    finally:
        loader.dispose()


def _check_keys(values: Row, cls: type[Struct], where: str, prefix: str) -> None:
    field_names = cls.__struct_fields__
    for key in values:
        if key not in field_names:
            raise ConfigError(f"{where}: unknown key `{prefix}{key}`{suggest(str(key), field_names)}")


def _check_duplicates(node: yaml.Node, path: Path) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        if key.value in seen:
            raise ConfigError(f"{path}, line {key.start_mark.line + 1}: the key `{key.value}` appears twice.")
        seen.add(key.value)
        _check_duplicates(value, path)


def _text_positions(node: yaml.Node, path: Path, lines: list[str], prefix: str = "") -> dict[str, TextPosition]:
    """Return positions of texts; inside block texts (`|`) those of the file, elsewhere those of the text
    itself."""
    places: dict[str, TextPosition] = {}
    if not isinstance(node, yaml.MappingNode):
        return places
    for key, value in node.value:
        if isinstance(value, yaml.MappingNode):
            places |= _text_positions(value, path, lines, f"{prefix}{key.value}.")
        elif isinstance(value, yaml.ScalarNode) and value.style == "|":
            first = value.start_mark.line + 1
            indent = next((len(line) - len(line.lstrip(" ")) for line in lines[first:] if line.strip()), 0)
            places[f"{prefix}{key.value}"] = TextPosition(str(path), first + 1, indent)
        else:
            places[f"{prefix}{key.value}"] = TextPosition(f"{path}, `{prefix}{key.value}`")
    return places
