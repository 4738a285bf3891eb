# SPDX-License-Identifier: Apache-2.0
"""A benchmark as something to learn: its prompt makes the training prompts, its grader the filter and the reward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.base.chat_template import prompt_ids, prompt_text
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Message, Request, Row, Score
from newskills.models.tokenizer import HFTokenizer
from newskills.prompts.code_tags import CodeTags
from newskills.run.rewarding.graders import BatchGrader, Record
from newskills.run.rewarding.questions import QuestionFormat, asking_of
from newskills.run.rewarding.reward import RewardConfig, answered_record
from newskills.run.training.template_checks import check_shown
from newskills.train.backends.cpu.weights import end_tokens, vocabulary_size
from newskills.train.loops.samples import Problem, Reward, Scorer
from newskills.train.loops.sft import example
from newskills.train.verbs import Datum

_OPEN, _CLOSE = "<think>", "</think>"
_MARK = "a7c3e5"
"""A text that no chat template contains."""
Verdict = Callable[[Sequence[Row]], list[Score]]


class Skill:
    """How the model in `folder` (a Hugging Face folder) is asked and answers: prompts and rewards as token ids.

    `asking` is how an evaluation asks; without it only conversations and texts can be made examples.
    `template` holds further variables of the chat template, for conversations.
    """

    def __init__(self, folder: Path, asking: QuestionFormat | None = None, template: Row | None = None) -> None:
        """Load the tokenizer and the end tokens. Raises ConfigError for a model without tokenizer or end token."""
        self.tokenizer = HFTokenizer(str(folder))
        self.stops = end_tokens(folder)
        self._rows = vocabulary_size(folder)
        self._asking, self._template = asking, template or {}
        self._asks_texts: bool | None = None
        self.written_out = 0
        """Replies whose reasoning the chat template does not show, so that it was put before them as it is."""
        self.ended = 0
        """Texts to which the end token was added."""

    @cached_property
    def text_end(self) -> int:
        """The token that ends a text: the tokenizer's own end token where the model ends replies with it."""
        own = self.tokenizer.encode(self.tokenizer.end)
        if len(own) == 1 and own[0] in self.stops:
            return own[0]
        return self.stops[0]

    @cached_property
    def reply_end(self) -> int:
        """The token that ends a reply in a conversation: the one that the chat template writes after it."""
        turns = [Message(role="user", content="?"), Message(role="assistant", content=_MARK)]
        try:
            whole = self.tokenizer.render(turns, **{**self._template, "add_generation_prompt": False})
        except ConfigError:  # a base model's tokenizer, or a template with demands: texts end in the same way
            return self.text_end
        _, mark, rest = whole.rpartition(_MARK)
        ends = [token for token in self.tokenizer.encode(rest) if token in self.stops]
        if mark and ends:
            return ends[0]
        return self.text_end

    def _check_ids(self, tokens: list[int]) -> list[int]:
        """Return token ids that the model's embedding has. Raises DataError for others."""
        if self._rows is not None and tokens and (last := max(tokens)) >= self._rows:
            raise DataError(
                f"The token {last} ({self.tokenizer.decode([last])!r}) is none of the {self._rows} of the model's "
                "embedding: the tokenizer belongs to another model, or was given tokens that the model lacks.",
                hint="Copy the tokenizer of the same checkpoint into the folder, or resize the model's embedding.",
            )
        return tokens

    def is_ended(self, text: str) -> bool:
        """Return whether a text ends with a token that ends replies, blanks behind it aside."""
        return text.rstrip().endswith(self._ends)

    @cached_property
    def _ends(self) -> tuple[str, ...]:
        ends = (self.tokenizer.end, *(self.tokenizer.decode([stop]) for stop in self.stops))
        return tuple(end for end in ends if end.strip())

    def prompt_text(self, row: Row) -> str:
        """Return the text that the model reads before it answers, as in an evaluation. Raises ConfigError,
        DataError."""
        if self._asking is None:
            raise ConfigError("No prompt is given.", hint="For example, set ++prompt_config=generic/math.")
        request = self._asking.request(row)
        if _has_media(request):
            raise ConfigError(
                "The prompt has images or audio, which these trainers cannot train on.",
                hint="Use another benchmark, or data of texts.",
            )
        return prompt_text(request, self.tokenizer) or ""

    def prompt(self, row: Row) -> list[int]:
        """Return the token ids up to where the model answers."""
        return self._check_ids(self.tokenizer.encode(self.prompt_text(row)))

    def example(self, row: Row, answer: str) -> Datum:
        """Return the example that teaches `answer` as the reply."""
        return example(self.prompt(row), self._check_ids([*self.tokenizer.encode(answer), self._end(row)]))

    def pair(self, row: Row, answer: str) -> Row:
        """Return the example as texts {input, output}, which `ns sft` takes as they are."""
        return {"input": self.prompt_text(row), "output": answer + self.tokenizer.decode([self._end(row)])}

    def _end(self, row: Row) -> int:
        """Return the token that ends an answer to the prompt of `row`."""
        asking = self._asking
        if self._asks_texts is None and asking is not None:
            self._asks_texts = asking.request(row).messages is None
        if self._asks_texts:
            return self.text_end
        return self.reply_end

    def reply(
        self,
        messages: Sequence[Row],
        answer: str,
        tools: Sequence[Row] | None = None,
        template: Row | None = None,
    ) -> Datum:
        """Return the example that teaches `answer` as the reply to a conversation with the `tools` offered in it.

        `template`: further variables of the chat template. Raises ConfigError where it does not show the tools.
        """
        turns = [msgspec.convert(message, Message) for message in messages]
        variables = {**self._template, **(template or {})}
        check_shown(self.tokenizer, turns, tools, variables)
        request = Request(
            messages=turns, tools=list(tools or ()) or None, extra_body={"chat_template_kwargs": variables}
        )
        prompt = self._check_ids(prompt_ids(request, self.tokenizer))
        return example(prompt, self._check_ids([*self.tokenizer.encode(answer), self.reply_end]))

    def turn(
        self,
        messages: Sequence[Row],
        reply: Row,
        tools: Sequence[Row] | None = None,
        template: Row | None = None,
    ) -> Datum:
        """Return the example that teaches a message of the assistant, with its calls of tools and its reasoning.

        Raises ConfigError where the chat template does not show them.
        """
        if reply.get("tool_calls") or reply.get("reasoning_content"):
            before = [{name: value for name, value in turn.items() if name != "weight"} for turn in messages]
            return self.replies([*before, {**reply, "weight": 1}], tools, template)[0]
        return self.reply(messages, str(reply["content"]), tools, template)

    def replies(
        self, messages: Sequence[Row], tools: Sequence[Row] | None = None, template: Row | None = None
    ) -> list[Datum]:
        """Return the replies with `weight` 1 of a conversation, each with all that stands before it; the rest has no
        loss.

        One example, or several where the chat template shows earlier replies differently later on (without their
        reasoning, say). Raises ConfigError where it shows no reply, DataError where no reply counts.
        """
        turns = [msgspec.convert(message, Message) for message in messages]
        targets = [
            at
            for at, message in enumerate(messages)
            if message.get("role") == "assistant" and message.get("weight")
        ]
        if not targets:
            raise DataError("No message of the conversation has `weight` 1, so there is nothing to train on.")
        variables = {**self._template, **(template or {})}
        check_shown(self.tokenizer, turns[: targets[-1] + 1], tools, variables)
        if tools:
            variables["tools"] = list(tools)
        spans = [self._span(turns, at, variables) for at in targets]
        groups: list[list[tuple[str, str]]] = []
        for before, answer in spans:
            if groups and before.startswith("".join(groups[-1][-1])):
                groups[-1].append((before, answer))
            else:
                groups.append([(before, answer)])
        return [self._join_spans(group) for group in groups]

    def _span(self, turns: Sequence[Message], at: int, variables: Row) -> tuple[str, str]:
        """Return the text before reply `at`, and the reply with the token that ends it. Raises ConfigError."""
        before = self.tokenizer.render(turns[:at], **variables)
        whole = self.tokenizer.render(turns[: at + 1], **{**variables, "add_generation_prompt": False})
        end = self.tokenizer.decode([self.reply_end])
        fits = whole.startswith(before)
        reasoning = _turn_reasoning(turns[at])
        if reasoning and not (fits and reasoning in whole[len(before) :]):
            own_text = whole[len(before) :] if fits else ""
            return before, self._written_out(turns[at], before, own_text) + end
        if not fits:
            raise ConfigError(
                "The model's chat template does not show a reply where its generation prompt stands.",
                hint="Set other variables of the template: ++chat_template_kwargs.enable_thinking=false.",
            )
        return before, self._without_end(whole[len(before) :]) + end

    def _without_end(self, answer: str) -> str:
        head, stop, _ = answer.rpartition(self.tokenizer.decode([self.reply_end]))
        if stop:
            return head
        return answer.rstrip()

    def _written_out(self, turn: Message, before: str, shown: str) -> str:
        """Return a reply with its reasoning, of which the template has `shown` only the rest. Raises ConfigError where
        that has to hold calls of tools, which only the template knows how to write."""
        if turn.tool_calls and not shown:
            raise ConfigError(
                "The model's chat template shows neither the reasoning of a reply nor its calls of tools where its "
                "generation prompt stands.",
                hint="Remove `reasoning_content` from these replies, or use another template.",
            )
        self.written_out += 1
        if turn.tool_calls:
            rest = self._without_end(shown)
        else:
            rest = str(turn.content or "")
        text = f"{_OPEN}\n{_turn_reasoning(turn)}\n{_CLOSE}\n\n{rest.rpartition(_CLOSE)[2].lstrip()}"
        if before.rstrip().endswith(_OPEN):
            return text.removeprefix(f"{_OPEN}\n")
        return text

    def _join_spans(self, spans: Sequence[tuple[str, str]]) -> Datum:
        """Join (text before, answer) pairs to one sequence; each text before begins with all that came earlier."""
        tokens: list[int] = []
        weights: list[float] = []
        text = ""
        for before, answer in spans:
            for part, weight in ((before[len(text) :], 0.0), (answer, 1.0)):
                ids = self.tokenizer.encode(part)
                tokens += ids
                weights += [weight] * len(ids)
            text = before + answer
        self._check_ids(tokens)
        return Datum(tokens=tokens[:-1], targets=tokens[1:], weights=weights[1:])

    def continuation(
        self, before: str, text: str, tags: CodeTags | None = None, *, unfinished: bool = False
    ) -> Datum:
        """Return the example of `text` after `before`, both as they are, without a template.

        The sequence begins as the tokenizer begins texts (BOS, say), and the end token is added to a `text` without
        one, unless it is `unfinished`. With `tags`, what code printed in `text` has no loss: the model reads it, and
        does not learn to make it up.
        """
        if not unfinished and not self.is_ended(text):
            text += self.tokenizer.decode([self.text_end])
            self.ended += 1
        parts = [(before, 0.0), *(outputs_apart(text, tags) if tags is not None else [(text, 1.0)])]
        begin = self.tokenizer.begin
        if self.tokenizer.encode(before or text)[: len(begin)] != begin:
            tokens = [*begin]
        else:
            tokens = []
        weights = [0.0] * len(tokens)
        for part, weight in parts:
            ids = self.tokenizer.encode(part)
            tokens += ids
            weights += [weight] * len(ids)
        self._check_ids(tokens)
        return Datum(tokens=tokens[:-1], targets=tokens[1:], weights=weights[1:])

    def problem(self, row: Row) -> Problem:
        return Problem(self.prompt(row), row)

    def scorer(self, verdict: BatchGrader, config: RewardConfig) -> Scorer:
        """Return the scorer that turns sampled tokens into rewards. Raises as `reward`."""
        return Scorer(self.reward(verdict, config), self.tokenizer.decode, self.stops)

    def reward(self, verdict: BatchGrader, config: RewardConfig) -> Reward:
        """Return the reward of samples: the verdicts of the grader, and what else `config` lets count.

        Raises ConfigError, UnknownNameError, AuthError (a judge that cannot be asked).
        """
        record: Record | None = answered_record
        if self._asking is not None:
            record = self._asking.record if self._asking.one_reply else None
        return verdict.reward(config, lambda text: len(self.tokenizer.encode(text)), record)


def _turn_reasoning(turn: Message) -> str:
    """Return the reasoning of a reply, from a field of its own or from before `</think>`."""
    text = turn.content if isinstance(turn.content, str) else ""
    return (turn.reasoning_content or text.rpartition(_CLOSE)[0].replace(_OPEN, "")).strip()


def outputs_apart(text: str, tags: CodeTags) -> list[tuple[str, float]]:
    """Return the pieces of a text with their weights: 0 for each output that stands right behind a block of code, else
    1."""
    pieces: list[tuple[str, float]] = []
    rest = text
    while (at := rest.find(tags.end + tags.output_begin)) >= 0:
        begin = at + len(tags.end)
        end = rest.find(tags.output_end, begin + len(tags.output_begin))
        if end < 0:
            break
        end += len(tags.output_end)
        pieces += [(rest[:begin], 1.0), (rest[begin:end], 0.0)]
        rest = rest[end:]
    if rest:
        return [*pieces, (rest, 1.0)]
    return pieces


def asking_by(prompt: str, folder: Path) -> QuestionFormat:
    """Return how the prompt of that name asks the model in `folder`. Raises ConfigError, UnknownNameError."""
    benchmark = Benchmark(name="problems", category="", title="problems of the user's own", prompt=prompt)
    return asking_of(benchmark, Path(), str(folder))


def select_accepted(rows: Iterable[Row], answers: Iterable[str], verdict: Verdict) -> list[tuple[Row, str]]:
    """Return the pairs that the grader calls correct (rejection sampling). Raises DataError where none is."""
    pairs = list(zip(rows, answers, strict=True))
    scores = verdict([answered_record(row, answer, "stop") for row, answer in pairs])
    kept = [pair for pair, score in zip(pairs, scores, strict=True) if score.outcome == "correct"]
    if not kept:
        raise DataError("The grader accepts none of the answers, so there is nothing to train on.")
    return kept


def _has_media(request: Request) -> bool:
    parts = [part for turn in request.messages or () if isinstance(turn.content, list) for part in turn.content]
    return any(part.get("type") != "text" for part in parts)
