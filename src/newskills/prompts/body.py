# SPDX-License-Identifier: Apache-2.0
"""What a prompt is made of: templates, few-shots and media → the messages of one record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Message, Row
from newskills.prompts.code_tags import CodeTags
from newskills.prompts.conversation import read_messages
from newskills.prompts.examples import ExampleProvider, ExampleSets, fill_examples
from newskills.prompts.media import audio_part, image_part
from newskills.prompts.retrieval import Retriever
from newskills.prompts.schema import ConfigSource, FewShotConfig
from newskills.prompts.template import Template, value_of

EXAMPLES = "examples"


class FewShotText:
    """The few-shot text of a record: `fixed` where it is the same for all, else `of(row)`.

    `wanted` tells whether any were asked for; `fingerprint` is what of them belongs into the prompt's hash.
    """

    def __init__(self, source: ConfigSource, tags: CodeTags, provider: ExampleProvider | None) -> None:
        """Load the examples that the prompt's settings ask for. Raises ConfigError for examples that no template shows,
        or that no set gives; UnknownNameError (set)."""
        config = source.config.few_shot_examples
        self._sets = ExampleSets(config, source.place("few_shot_examples.template"), tags, provider)
        self.answer: Template | None = None
        if config.as_turns:
            self.answer = Template(config.answer, source.place("few_shot_examples.answer"))
        self._choice: Template | None = None
        self._retriever: Retriever | None = None
        self._query = config.retrieval_field or ""
        self.fixed: str | None = None
        self.fields: tuple[str, ...] = ()
        self.fingerprint: list[Any] = ["fixed", ""]
        self.wanted = config.examples_type is not None or config.retrieval_field is not None
        if config.as_turns and not self.wanted:
            raise ConfigError(
                f"Prompt {source.name}: few_shot_examples.as_turns, but no few-shot set is given.",
                hint="Give one, for example ++examples_type=gsm8k_text_detailed.",
            )
        if self.wanted and not config.template and not config.as_turns:
            raise ConfigError(
                f"Prompt {source.name} does not define how an example is shown.",
                hint="Set ++few_shot_examples.template, or leave out the examples.",
            )
        if config.retrieval_field is not None:
            self._use_retrieval(config)
        elif config.examples_type is not None:
            self._use_examples(
                config, Template(config.examples_type, source.place("few_shot_examples.examples_type")), tags
            )
        elif config.num_few_shots:
            raise ConfigError(
                f"Prompt {source.name}: num_few_shots={config.num_few_shots}, but no few-shot set is given.",
                hint="Give one, for example ++examples_type=gsm8k_text_detailed.",
            )
        else:
            self.fixed = ""

    def of(self, row: Row) -> str:
        """Return the few-shot text for `row`; empty where examples are turns. Raises MissingField."""
        if self.answer is not None:
            return ""
        if self._retriever is not None:
            return self._sets.render(
                self._retriever.examples(str(value_of(row, self._query))), "the retrieval file"
            )
        assert self._choice is not None
        return self._sets.text(self._choice.fill(row))

    def examples(self, row: Row) -> Sequence[Row]:
        """Return the examples for `row`. Raises MissingField, UnknownNameError, ConfigError."""
        if self._retriever is not None:
            return self._retriever.examples(str(value_of(row, self._query)))
        assert self._choice is not None
        return self._sets.rows(self._choice.fill(row))

    def _use_retrieval(self, config: FewShotConfig) -> None:
        self._retriever = Retriever(config)
        self.fields = (self._query,)
        placeless = msgspec.structs.replace(config, retrieval_file="")
        self.fingerprint = ["retrieved", _hashed_settings(placeless), self._retriever.digest]

    def _use_examples(self, config: FewShotConfig, choice: Template, tags: CodeTags) -> None:
        if choice.fields or config.as_turns:
            self._choice = choice
            self.fields = choice.fields
            self.fingerprint = ["chosen", _hashed_settings(config), tags.name]
            if not choice.fields:
                self.fingerprint.append(list(self._sets.rows(choice.fill({}))))
        else:
            self.fixed = self._sets.text(choice.fill({}))
            self.fingerprint = ["fixed", self.fixed]


def _hashed_settings(config: FewShotConfig) -> Row:
    """Return what of the settings belongs into the prompt's hash, which is as it was before examples could be turns."""
    values = msgspec.structs.asdict(config)
    if not config.as_turns:
        del values["as_turns"], values["answer"]
    return values


class Rendered:
    """System and user text of one config, with few-shots and media. Raises ConfigError on loading."""

    def __init__(self, source: ConfigSource, shots: FewShotText, suffix: str, folder: Path) -> None:
        config = source.config
        self._system: Template | None = None
        if config.system is not None:
            self._system = Template(config.system, source.place("system"), config.empty)
        self._name = source.name
        self._users = {
            key: Template(text, source.place(key), config.empty) for key, text in config.user_texts.items()
        }
        self._case_field = None if config.cases is None else config.cases.field
        self._shots: FewShotText | None = None
        self._suffix = suffix
        self._folder = folder
        self._image, self._image_first = config.image_field, config.image_position == "before"
        self._audio = config.audio_field
        shown = {name for template in self._templates() for name in template.fields}
        if shots.answer is not None:
            self._shots = shots
        elif EXAMPLES not in shown:
            if shots.wanted:
                raise ConfigError(
                    f"Prompt {source.name} has no place for few-shot examples.",
                    hint="Add {examples} to its user text, or leave out the examples.",
                )
        elif shots.fixed is None:
            self._shots = shots
        else:
            self._users = {key: template.bind(EXAMPLES, shots.fixed) for key, template in self._users.items()}
            if self._system is not None:
                self._system = self._system.bind(EXAMPLES, shots.fixed)
        self.fields = self._needed_fields()

    def messages(self, row: Row) -> list[Message]:
        """Fill the messages `[system?, user]`, with turns for examples before the last. Raises MissingField, DataError
        for media."""
        turns: list[Message] = []
        if self._shots is not None:
            row = {**row, EXAMPLES: self._shots.of(row)}
            turns = self._example_turns(self._shots, row)
        text = self._user_of(row).fill(row) + self._suffix
        user = Message(role="user", content=self._content(text, row))
        if self._system is None:
            return [*turns, user]
        return [Message(role="system", content=self._system.fill(row)), *turns, user]

    def _example_turns(self, shots: FewShotText, row: Row) -> list[Message]:
        """Return the user's and the assistant's turn of each example, where examples are turns."""
        if shots.answer is None:
            return []
        examples = [{**example, EXAMPLES: ""} for example in shots.examples(row)]
        answers = fill_examples(shots.answer, examples, f"Prompt {self._name}, `answer`", "the few-shot set")
        turns = []
        for example, answer in zip(examples, answers, strict=True):
            (question,) = fill_examples(
                self._user_of({**row, **example}), [example], f"Prompt {self._name}, `user`", "the few-shot set"
            )
            turns += [
                Message(role="user", content=question + self._suffix),
                Message(role="assistant", content=answer),
            ]
        return turns

    def _templates(self) -> list[Template]:
        templates = list(self._users.values())
        if self._system is not None:
            templates.insert(0, self._system)
        return templates

    def _user_of(self, row: Row) -> Template:
        """Return the template of the user's message for `row`. Raises MissingField, DataError for a value without."""
        if self._case_field is None:
            return self._users["user"]
        value = str(value_of(row, self._case_field))
        template = self._users.get(f"cases.user.{value}", self._users.get("user"))
        if template is None:
            values = ", ".join(key.removeprefix("cases.user.") for key in self._users)
            raise DataError(
                f"A record has {value!r} as '{self._case_field}', for which prompt {self._name} has no text; "
                f"it has texts for {values}."
            )
        return template

    def _content(self, text: str, row: Row) -> str | list[Row]:
        """Return the text with the row's images and sound; the plain text where the row has neither."""
        parts: list[Row] = [{"type": "text", "text": text}]
        if self._image is not None:
            images = [image_part(source, self._folder) for source in _media_paths(row.get(self._image))]
            if self._image_first:
                parts = images + parts
            else:
                parts += images
        if self._audio is not None:
            parts.insert(0, audio_part(str(value_of(row, self._audio)), self._folder))
        if len(parts) == 1:
            return text
        return parts

    def _needed_fields(self) -> tuple[str, ...]:
        users = list(self._users.values())
        names: list[str] = []
        if self._system is not None:
            names += self._system.fields
        if self._case_field:
            names.append(self._case_field)
        names += [name for name in users[0].fields if all(name in template.fields for template in users)]
        if self._shots is not None:
            names += self._shots.fields
        if self._audio is not None:
            names.append(self._audio)
        return tuple(dict.fromkeys(name for name in names if name != EXAMPLES))


class MergedTemplate:
    """A template over records with a conversation: its texts, the images and sound of the conversation."""

    def __init__(self, rendered: Rendered, folder: Path) -> None:
        self._rendered = rendered
        self._folder = folder
        self.fields = tuple(dict.fromkeys([*rendered.fields, "messages"]))

    def messages(self, row: Row) -> list[Message]:
        """Return the filled template, with the images and sound of the record's conversation put before its text.
        Raises MissingField, DataError."""
        messages = self._rendered.messages(row)
        media = _media_parts(read_messages(row, self._folder))
        if media:
            content = messages[-1].content
            if not isinstance(content, list):
                content = [{"type": "text", "text": content}]
            messages[-1].content = media + content
        return messages


def _media_paths(value: object) -> list[str]:
    """Return the paths of a row's media: one, several, or none."""
    sources = value if isinstance(value, list) else [value]
    return [str(source) for source in sources if source is not None and source != ""]


def _media_parts(messages: list[Message]) -> list[Row]:
    """Return the parts of the last user message that are no text."""
    for message in reversed(messages):
        if message.role == "user":
            if not isinstance(message.content, list):
                return []
            return [part for part in message.content if part.get("type") != "text"]
    return []
