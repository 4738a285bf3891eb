# SPDX-License-Identifier: Apache-2.0
"""A row that went through the chain → the line that training reads: SFT, conversation, or RL."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from newskills.base.errors import DataError
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message, Row
from newskills.base.registry import fold
from newskills.base.store import encode_line
from newskills.prompts.official.table import official_folders
from newskills.prompts.renderer import Prompt, PromptOverrides, load_prompt
from newskills.train.data.job import BuildJob
from newskills.train.data.settings import TrainingDataConfig

TASK = "math"
_MARK = "The last word of an answer."
_OPEN, _CLOSE = "<think>", "</think>"


class WrittenLine(NamedTuple):
    """One line with its newline; lengths in characters."""

    line: bytes
    input_chars: int
    output_chars: int


class Formatter:
    """`line(row, before)` → Written; `before`: the solution before the filters.

    Raises DataError where the prompt lacks a field, ConfigError for a misfit template.
    """

    def __init__(self, job: BuildJob, tokens: Callable[[], Tokenizer]) -> None:
        config, recipe = job.config, job.recipe
        self._config = config
        self._metadata = config.metadata or {}
        self.prompt = _make_prompt(config, job.examples)
        self._tokenizer = tokens() if self.prompt is not None and recipe.output != "conversation" else None
        self._trajectories = recipe.name == "agent_sft"
        self._end = ""
        if self._tokenizer is not None and recipe.output == "sft":
            if config.assistant_end is None:
                self._end = self._end_of_turn(self._tokenizer)
            else:
                self._end = config.assistant_end
        self.line: Callable[[Row, str], WrittenLine] = {
            "sft": self._sft,
            "conversation": self._conversation,
            "rl": self._rl,
        }[recipe.output]

    def _sft(self, row: Row, before: str) -> WrittenLine:
        config = self._config
        assert config.output_key is not None, "recipes for SFT have solutions"
        question, answer = row[config.input_key], row[config.output_key]
        if self.prompt is not None:
            question = self.prompt.text(row, self._tokenizer)
            answer = self._answer(row, question)
        head = {"input": question, "output": answer}
        if self.prompt is None and row.get("reasoning_content"):
            head["reasoning_content"] = row["reasoning_content"]
        return self._make_line(head, row, len(question), len(answer))

    def _conversation(self, row: Row, before: str) -> WrittenLine:
        config = self._config
        assert config.output_key is not None, "recipes for SFT have solutions"
        if self._trajectories:
            return self._trajectory(row)
        output_messages = row.get("serialized_output")
        if not isinstance(output_messages, list) or not output_messages:
            turn = Message(role="assistant", content=row[config.output_key])
            turn.reasoning_content = row.get("reasoning_content")
            output_messages = [msgspec.to_builtins(turn)]
        elif output_messages[-1].get("content") == before:
            output_messages = [*output_messages[:-1], {**output_messages[-1], "content": row[config.output_key]}]
        begun = self._prompt_messages(row)
        head = {"messages": [*begun, *output_messages], **_tools_field(row)}
        return self._make_line(head, row, len(row[config.input_key]), len(row[config.output_key]))

    def _trajectory(self, row: Row) -> WrittenLine:
        """Write what an agent did, up to its last reply, as a line. Its own replies count in the loss (`weight` as in
        OpenAI's fine-tuning data), what it was told does not.

        Raises DataError for a record without a conversation.
        """
        conversation = row.get("conversation")
        messages = conversation if isinstance(conversation, list) else []
        replies = [number for number, message in enumerate(messages) if message.get("role") == "assistant"]
        if not replies:
            raise DataError(
                "A row has no `conversation` with replies of a model, which records of agents have.",
                hint="Generate them: ns generate ++agent=bash, or ns eval of an environment.",
            )
        turns = [
            {**message, "weight": 1} if message.get("role") == "assistant" else message
            for message in messages[: replies[-1] + 1]
        ]
        length = sum(len(str(turn.get("content") or "")) for turn in turns)
        return self._make_line(
            {"messages": turns, **_tools_field(row)}, row, len(row[self._config.input_key]), length
        )

    def _rl(self, row: Row, before: str) -> WrittenLine:
        problem = row[self._config.input_key]
        question = problem if self.prompt is None else self.prompt.text(row, self._tokenizer)
        head = {"input": question, "problem": problem, "expected_answer": "", "task_name": TASK}
        return self._make_line(head, row, len(question), 0)

    def _make_line(self, head: Row, row: Row, question_length: int, answer_length: int) -> WrittenLine:
        if (answer := row.get("expected_answer")) is not None:
            head["expected_answer"] = answer if type(answer) is str else str(answer)
        if not self._config.exclude_optional_keys:
            shown = (
                self._config.output_key,
                "conversation",
                "serialized_output",
                "prompt_messages",
                "reasoning_content",
            )
            head |= {key: value for key, value in row.items() if key not in head and key not in shown}
        return WrittenLine(encode_line(head | self._metadata), question_length, answer_length)

    def _prompt_messages(self, row: Row) -> list[Row]:
        if self.prompt is not None:
            return [msgspec.to_builtins(message) for message in self.prompt.messages(row)]
        if isinstance(row.get("prompt_messages"), list):
            return list(row["prompt_messages"])
        return [{"role": "user", "content": row[self._config.input_key]}]

    def _answer(self, row: Row, question: str) -> str:
        """Return what follows `question` when the model answers as in `row`; without an end mark where it was cut
        off."""
        config = self._config
        content, reasoning = str(row[str(config.output_key)]), str(row.get("reasoning_content") or "")
        finished = row.get("finish_reason") in (None, "stop")
        if (
            config.assistant_end is None
            and (rendered := self._render_answer(row, question, content, reasoning)) is not None
        ):
            if finished:
                return rendered
            return rendered[: rendered.rfind(content.strip()) + len(content.strip())]
        thought = f"{_OPEN}\n{reasoning}\n{_CLOSE}\n\n" if reasoning else ""
        if thought and question.rstrip().endswith(_OPEN):
            thought = thought.removeprefix(f"{_OPEN}\n")
        return thought + content + (self._end if finished else "")

    def _render_answer(self, row: Row, question: str, content: str, reasoning: str) -> str | None:
        """Return the answer as the chat template writes it; None where the template would change it."""
        assert self.prompt is not None
        assert self._tokenizer is not None
        turn = Message(role="assistant", content=content, reasoning_content=reasoning or None)
        kwargs = {**(self._config.chat_template_kwargs or {}), "add_generation_prompt": False}
        whole = self._tokenizer.render([*self.prompt.messages(row), turn], **kwargs)
        answer = whole[len(question) :]
        if whole.startswith(question) and content.strip() in answer and reasoning.strip() in answer:
            return answer
        return None

    def _end_of_turn(self, tokenizer: Tokenizer) -> str:
        """Return what the chat template has after an answer. Raises DataError where it shows no answer."""
        turns = [Message(role="user", content="?"), Message(role="assistant", content=_MARK)]
        kwargs = {**(self._config.chat_template_kwargs or {}), "add_generation_prompt": False}
        _, mark, end = tokenizer.render(turns, **kwargs).rpartition(_MARK)
        if not mark:
            raise DataError(
                f"The chat template of {self._config.tokenizer} does not show what the assistant says.",
                hint="Set how an answer ends: ++assistant_end=TEXT.",
            )
        return end


def _tools_field(row: Row) -> Row:
    if row.get("tools"):
        return {"tools": row["tools"]}
    return {}


def _make_prompt(config: TrainingDataConfig, examples: dict[str, list[Row]]) -> Prompt | None:
    if not config.asks:
        return None
    overrides = PromptOverrides(
        prompt_format=config.prompt_format,
        system_message=config.system_message,
        user_message=config.user_message,
        examples_type=config.examples_type,
        few_shot_examples=config.few_shot_examples,
        prompt_suffix=config.prompt_suffix or "",
        code_tags=config.code_tags,
        start_assistant_response_key=config.start_assistant_response_key,
        chat_template_kwargs=config.chat_template_kwargs or {},
        official_folders=official_folders(config.prompt_source, config.official_prompts),
        official_required=config.prompt_source == "official",
    )
    return load_prompt(config.prompt_config, overrides, lambda name: examples.get(fold(name)))
