# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Script

from newskills.base.aio import run
from newskills.base.protocols import Kit
from newskills.base.records import Inference, Message, Row, Sample
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import load_prompt
from newskills.solve.chat import MAIN, ChatSolver, ChatSolverOptions
from newskills.solve.reasoning import split_reasoning, trim_at_stop

TEXT = Inference(endpoint_type="text", tokens_to_generate=50)


class Words:
    """A tokenizer whose tokens are words."""

    def encode(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join("x" * n for n in ids)

    def render(self, messages: Sequence[Message], **template_kwargs: Any) -> str:
        return "".join(f"<{m.role}> {m.content} " for m in messages) + "<assistant> "


def solve(server: FakeServer | FakeServerProcess, options: ChatSolverOptions, **tokenizers: Any) -> Row:
    solver = ChatSolver(load_prompt({"user": "{q}"}), options, **tokenizers)
    sample = Sample(id="1", row={"q": "Say it"})

    async def main() -> Row:
        config = ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=1, environ={})
        try:
            attempt = await solver.solve(sample, solver.request(sample), Kit(models={MAIN: model}))
        finally:
            await model.close()
        assert (attempt.sample_id, attempt.key) == ("1", solver.request(sample).key())
        return attempt.fields

    return run(main)


def test_the_fields_of_a_plain_reply(fake_server: FakeServerFactory) -> None:
    fields = solve(fake_server(Script(answer=Answer(text="so be it"))), ChatSolverOptions())
    start, end = fields.pop("generation_start_time"), fields.pop("generation_end_time")
    assert fields.pop("generation_time") == pytest.approx(end - start)
    assert 0 <= end - start < 30
    assert fields == {
        "generation": "so be it",
        "num_generated_tokens": 3,
        "num_input_tokens": 2,
        "finish_reason": "stop",
    }


def test_reasoning_that_the_server_sends_apart(fake_server: FakeServerFactory) -> None:
    script = Script(answer=Answer(text="four"), reasoning="two and two")
    fields = solve(fake_server(script), ChatSolverOptions(timing=False, parse_reasoning=True))
    assert fields["generation"] == "four"
    assert fields["reasoning_content"] == "two and two"
    assert fields["_generation_finished_thinking"] is True
    assert (fields["num_generated_tokens"], fields["num_reasoning_tokens"], fields["num_answer_tokens"]) == (
        4,
        3,
        1,
    )


def test_reasoning_in_the_text(fake_server: FakeServerFactory) -> None:
    script = Script(answer=Answer(text="<think>a</think> b </think>\n four \n"))
    fields = solve(fake_server(script), ChatSolverOptions(timing=False, parse_reasoning=True))
    assert fields["generation"] == "four"
    assert fields["_full_generation"] == "<think>a</think> b </think>\n four \n"


def test_log_probabilities(fake_server: FakeServerFactory) -> None:
    options = ChatSolverOptions(timing=False, inference=Inference(top_logprobs=2))
    fields = solve(fake_server(Script(answer=Answer(text="a b"))), options)
    assert fields["tokens"] == ["a", " b"]
    assert len(fields["logprobs"]) == len(fields["top_logprobs"]) == 2


@pytest.mark.parametrize("stop_key", ["stop_reason", "matched_stop"])
@pytest.mark.parametrize(("keep", "text"), [(False, "one "), (True, "one END")])
def test_stop_phrases_of_the_text_endpoint(
    fake_server: FakeServerFactory, stop_key: str, keep: bool, text: str
) -> None:
    server = fake_server(Script(answer=Answer(text="one END two"), stop_key=stop_key))
    options = ChatSolverOptions(timing=False, inference=TEXT, stop=("END",), keep_stop=keep)
    assert solve(server, options)["generation"] == text


def test_the_text_endpoint_gets_the_chat_template(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script())
    solve(server, ChatSolverOptions(inference=TEXT), template=Words())
    assert server.records[0].body["prompt"] == "<user> Say it <assistant> "
    solve(server, ChatSolverOptions(inference=TEXT))
    assert server.records[1].body["prompt"] == "Say it"


def test_prompt_tokens_are_counted_where_the_server_does_not(fake_server: FakeServerFactory) -> None:
    silent, honest = fake_server(Script(usage="none")), fake_server(Script())
    assert solve(silent, ChatSolverOptions(), counter=Words())["num_input_tokens"] == 4
    assert solve(silent, ChatSolverOptions(inference=TEXT), counter=Words())["num_input_tokens"] == 2
    assert solve(honest, ChatSolverOptions(), counter=Words())["num_input_tokens"] == 2
    assert "num_input_tokens" not in solve(silent, ChatSolverOptions())


def test_the_earliest_stop_phrase_wins() -> None:
    assert trim_at_stop("a STOP b END", ["END", "STOP"]) == "a "
    assert trim_at_stop("a STOP b END", ["END", "STOP"], keep_phrase=True) == "a STOP"
    assert trim_at_stop("abc", ["", "x"]) == "abc"


@given(st.text(), st.lists(st.text(min_size=1), max_size=4))
def test_no_stop_phrase_is_left(text: str, phrases: list[str]) -> None:
    kept = trim_at_stop(text, phrases)
    assert text.startswith(kept)
    assert not any(phrase in kept for phrase in phrases)


def test_thinking_without_an_end_has_no_answer() -> None:
    fields = split_reasoning("<think> it may be 4", "generation", "</think>")
    assert fields == {
        "generation": "",
        "_full_generation": "<think> it may be 4",
        "_generation_finished_thinking": False,
    }


def test_an_empty_answer_after_separate_reasoning_is_unfinished() -> None:
    assert split_reasoning(" ", "g", "</think>", separate=True)["_generation_finished_thinking"] is False
