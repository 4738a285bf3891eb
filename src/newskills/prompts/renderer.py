# SPDX-License-Identifier: Apache-2.0
"""A prompt: record → messages, or record → text. Compiled once, filled for each record."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from newskills.base.chat_template import merge_system
from newskills.base.errors import ConfigError, DataError, UnknownNameError, suggest
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message, Row
from newskills.prompts.body import FewShotText, MergedTemplate, Rendered
from newskills.prompts.code_tags import DEFAULT_CODE_TAGS, code_tags
from newskills.prompts.conversation import Passthrough
from newskills.prompts.examples import ExampleProvider
from newskills.prompts.media import MediaError
from newskills.prompts.names import find_prompt, is_library_file
from newskills.prompts.official.reading import find_official, official_source
from newskills.prompts.official.table import NEWSKILLS, entries_of, worded_otherwise
from newskills.prompts.schema import (
    ConfigSource,
    FewShotConfig,
    PromptConfig,
    read_source,
    replace_few_shots,
    to_config,
)
from newskills.prompts.template import MissingField, NullField, TextPosition, value_of

USER_SOURCE = "of the user"
"""Source of a prompt that neither newskills nor a publisher has written: a file, a text, messages of the rows."""
_WORDING = ("system_message", "user_message", "prompt_suffix", "few_shot_examples", "examples_type")
"""Overrides after which a wording is not the published one."""


class PromptOverrides(Struct, frozen=True, kw_only=True):
    """What the command line changes (`++system_message=…` and so on); None and empty change nothing.

    system_message, user_message   templates like those of the file (system is verbatim with prompt_format=openai)
    few_shot_examples              replaces single keys of that section, `num_few_shots` among them
    prompt_suffix                  goes verbatim to the end of the last user text
    start_assistant_response_key   field of the record that begins the assistant's answer
    data_dir                       folder against which paths of images and sound are resolved
    merge_system                   the system text goes in front of the user's
    official_folders               folders with official wordings of the library's prompts, which go before its own
    official_required              refuse a prompt whose official wording is published, but in none of these folders
    """

    prompt_format: Literal["ns", "openai"] = "ns"
    system_message: str | None = None
    user_message: str | None = None
    examples_type: str | None = None
    few_shot_examples: Row = {}
    code_tags: str | None = None
    prompt_suffix: str = ""
    start_assistant_response_key: str | None = None
    chat_template_kwargs: Row = {}
    data_dir: str = ""
    merge_system: bool = False
    official_folders: tuple[str, ...] = ()
    official_required: bool = False


class _Body(Protocol):
    @property
    def fields(self) -> tuple[str, ...]: ...

    def messages(self, row: Row) -> list[Message]: ...


class Prompt:
    """`name`, `hash` and `template` belong into the record of a run; `fields` are those that every record must have.

    The hash (16 hex digits) changes with anything that changes what the model is shown, except the contents of
    few-shot sets that a record itself chooses. `source` says whose wording it is: `official (…)`, `newskills`, or that
    of the user.
    """

    def __init__(
        self,
        name: str,
        digest: str,
        body: _Body,
        overrides: PromptOverrides,
        template: str = "",
        source: str = USER_SOURCE,
    ) -> None:
        self.name = name
        self.hash = digest
        self.template = template
        self._body_messages = body.messages
        self._merges_system = overrides.merge_system
        self.source = source
        self._start = overrides.start_assistant_response_key
        self._template_kwargs = overrides.chat_template_kwargs
        names = list(body.fields)
        if self._start:
            names.append(self._start)
        self.fields = tuple(dict.fromkeys(names))

    def messages(self, row: Row) -> list[Message]:
        """Render messages for the chat and responses endpoints; a begun answer is the last one.

        Raises DataError naming a missing field, the prompt and the record; MediaError naming a file and the record.
        """
        try:
            messages = self._unfinished_messages(row)
            if self._start is not None:
                messages.append(Message(role="assistant", content=str(value_of(row, self._start))))
        except MissingField as error:
            raise self._missing_field_error(row, error) from error
        except MediaError as error:
            if "id" not in row:
                raise
            raise MediaError(f"Record {row['id']}: {error.message}") from error
        return messages

    def text(self, row: Row, tokenizer: Tokenizer | None) -> str:
        """Render one string for the text endpoint: the tokenizer's chat template, then the begun answer.

        Without a tokenizer (a base model, or one without a template) the prompt is a plain text to go on with.
        Raises DataError, ConfigError for what a plain text cannot hold.
        """
        try:
            messages = self._unfinished_messages(row)
            start = ""
            if self._start is not None:
                start = str(value_of(row, self._start))
        except MissingField as error:
            raise self._missing_field_error(row, error) from error
        if any(type(message.content) is list for message in messages) and _has_media(messages):
            raise ConfigError(
                f"Prompt {self.name} has images or audio, which a text endpoint cannot accept.",
                hint="Use ++inference.endpoint_type=chat.",
            )
        if tokenizer is not None:
            return tokenizer.render(messages, **self._template_kwargs) + start
        return self._plain_text(messages) + start

    def _unfinished_messages(self, row: Row) -> list[Message]:
        messages = self._body_messages(row)
        if self._merges_system:
            return merge_system(messages)
        return messages

    def _plain_text(self, messages: list[Message]) -> str:
        *before, last = messages
        if last.role != "user" or any(message.role != "system" for message in before):
            raise ConfigError(
                f"Prompt {self.name} is a conversation; a text endpoint needs a chat template for it.",
                hint="Set ++tokenizer=NAME, or use ++inference.endpoint_type=chat.",
            )
        return "\n\n".join(_text_of(message) for message in messages if message.content)

    def _missing_field_error(self, row: Row, error: MissingField) -> DataError:
        name = error.name
        record = f"Record {row['id']}" if "id" in row else "The record"
        if isinstance(error, NullField):
            return DataError(
                f"{record} has null as '{name}', which prompt {self.name} shows.",
                hint="Give a text, leave the record out, or say in the prompt what is shown for null: `empty: TEXT`.",
            )
        return DataError(
            f"{record} has no field '{name}', which prompt {self.name} needs{suggest(name, row)}",
            hint="Literal braces in a prompt are doubled: {{ }}.",
        )


def load_prompt(
    spec: str | Row | None, overrides: PromptOverrides | None = None, examples: ExampleProvider | None = None
) -> Prompt:
    """Return the prompt called `spec` (name, end of a name, path ending in `.yaml`, or its keys), with `overrides`.

    `examples` builds few-shot sets that newskills does not carry. Without `spec`, `prompt_format=openai` passes
    the record's messages through, and `user_message` alone is a prompt. Raises ConfigError, UnknownNameError.
    """
    overrides = overrides or PromptOverrides()
    folder = Path(overrides.data_dir)
    if spec is None and overrides.user_message is not None:
        spec = {"user": overrides.user_message}
    if spec is None:
        if overrides.prompt_format == "ns":
            raise ConfigError("No prompt is given.", hint="For example, set ++prompt_config=generic/math.")
        _refuse_few_shots(overrides)
        through = Passthrough(system=overrides.system_message, suffix=overrides.prompt_suffix, folder=folder)
        return Prompt(
            "openai", _prompt_digest(overrides, ["openai", overrides.system_message]), through, overrides
        )
    source, whose = _find_source(spec, overrides)
    source = _with_overrides(source, overrides)
    shots = FewShotText(source, code_tags(overrides.code_tags or DEFAULT_CODE_TAGS), examples)
    rendered = Rendered(source, shots, overrides.prompt_suffix, folder)
    body: _Body = rendered
    if overrides.prompt_format == "openai":
        body = MergedTemplate(rendered, folder)
    config = msgspec.structs.asdict(source.config) | {"few_shot_examples": shots.fingerprint}
    for key in ("empty", "cases"):  # the hash of prompts as they were before there were these
        if config[key] is None:
            del config[key]
    digest = _prompt_digest(overrides, [overrides.prompt_format, config])
    return Prompt(source.name, digest, body, overrides, _template_text(source.config, overrides), whose)


def _find_source(spec: str | Row, overrides: PromptOverrides) -> tuple[ConfigSource, str]:
    """Return the texts of a prompt, and whose wording they are. Raises ConfigError, UnknownNameError, DataError."""
    if not isinstance(spec, str):
        config = to_config(spec, "prompt_config")
        return ConfigSource(name="from the command line", config=config, places={}), USER_SOURCE
    try:
        name, path = find_prompt(spec)
    except UnknownNameError:
        if not entries_of(spec):
            raise
        name, path = spec, None
    if path is not None and not is_library_file(name, path):
        return read_source(name, path), USER_SOURCE
    if (official := find_official(name, overrides.official_folders)) is not None:
        entry, folder = official
        label = entry.label
        if changed := [key for key in _WORDING if getattr(overrides, key)]:
            label += f", changed by {', '.join(changed)}"
        return official_source(entry, folder), label
    if path is None or (overrides.official_required and worded_otherwise(name)):
        raise ConfigError(
            f"The official wording of the prompt {name} is not here.",
            hint="Run ns prepare_data prompts (or with the benchmark's name); it needs a network, or a mirror.",
        )
    return read_source(name, path), NEWSKILLS


def _with_overrides(source: ConfigSource, overrides: PromptOverrides) -> ConfigSource:
    config = source.config
    places = dict(source.places)
    for key in ("system", "user"):
        value = getattr(overrides, f"{key}_message")
        if value is not None:
            config = msgspec.structs.replace(config, **{key: value})
            if key == "user":
                config = msgspec.structs.replace(config, cases=None)
            places[key] = TextPosition(f"++{key}_message")
    few_shots = dict(overrides.few_shot_examples)
    if overrides.examples_type is not None:
        few_shots["examples_type"] = overrides.examples_type
    if few_shots:
        replaced = replace_few_shots(config.few_shot_examples, few_shots, f"Prompt {source.name}")
        config = msgspec.structs.replace(config, few_shot_examples=replaced)
        places |= {f"few_shot_examples.{key}": TextPosition(f"++few_shot_examples.{key}") for key in few_shots}
    return ConfigSource(name=source.name, config=config, places=places)


def _template_text(config: PromptConfig, overrides: PromptOverrides) -> str:
    """Return the texts of a prompt before a record is filled in, for people who look for what differs."""
    usual = msgspec.to_builtins(FewShotConfig())
    shots = msgspec.to_builtins(config.few_shot_examples)
    chosen = []
    if config.few_shot_examples.examples_type or config.few_shot_examples.retrieval_field:
        chosen = [f"{key}: {value}" for key, value in shots.items() if value != usual[key]]
    parts = {
        "system": config.system,
        "few-shot examples": "\n".join(chosen),
        **{key.removeprefix("cases."): text for key, text in config.user_texts.items()},
        "suffix": overrides.prompt_suffix,
    }
    return "\n".join(f"[{name}]\n{text}" for name, text in parts.items() if text)


def _refuse_few_shots(overrides: PromptOverrides) -> None:
    if overrides.examples_type is not None or overrides.few_shot_examples:
        raise ConfigError(
            "Few-shot examples need a prompt that contains them; with prompt_format=openai there is none.",
            hint="Give one with ++prompt_config=…, or leave out examples_type and few_shot_examples.",
        )


def _prompt_digest(overrides: PromptOverrides, content: list[Any]) -> str:
    parts = [
        content,
        overrides.prompt_suffix,
        overrides.start_assistant_response_key,
        overrides.chat_template_kwargs,
    ]
    if overrides.merge_system:
        parts.append("merge_system")
    return hashlib.blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=8).hexdigest()


def _has_media(messages: list[Message]) -> bool:
    parts = [part for message in messages if isinstance(message.content, list) for part in message.content]
    return any(part.get("type") != "text" for part in parts)


def _text_of(message: Message) -> str:
    if isinstance(message.content, list):
        return "".join(part["text"] for part in message.content)
    return message.content or ""
