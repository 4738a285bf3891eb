# SPDX-License-Identifier: Apache-2.0
"""Budget forcing against a server that goes on with a text as a model does: what arrives, and what records keep."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.server import FakeServer, Script
from tests.server.answers import Body, tokens_of

from newskills.base.aio import run
from newskills.base.protocols import Kit
from newskills.base.records import Inference, Row, Sample
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import load_prompt
from newskills.solve.budget_forcing import BudgetForcing
from newskills.solve.chat import MAIN, ChatSolver, ChatSolverOptions
from newskills.solve.thinking import ThinkingLimits

THOUGHTS = "<think> one two three four five six seven eight </think> the answer is 8"


def going_on(thoughts: str, otherwise: str = " so 9 </think> the answer is 9") -> Any:
    """Return a model that writes `thoughts` after the prompt `Q`, and `otherwise` after anything inserted."""

    def answer(body: Body) -> str:
        text = body["prompt"].partition("Q")[2]
        if thoughts.startswith(text):
            return thoughts[len(text) :]
        if text.endswith(("</think>", "</think>\n\n")):
            return " the answer is forced"
        return otherwise

    return answer


def solved(server: FakeServer, budget: Any, forcing: BudgetForcing | None = None, **options: Any) -> Row:
    """Return the fields of the record of one sample whose thinking is forced."""
    inference = Inference(endpoint_type="text", tokens_to_generate=30, thinking_budget=budget)
    limits = ThinkingLimits(forcing=forcing or BudgetForcing(), budget=budget, mark="</think>")
    made = ChatSolverOptions(inference=inference, timing=False, thinking=limits, **options)
    solver = ChatSolver(load_prompt({"user": "Q"}), made)
    sample = Sample(id="1", row={})

    async def main() -> Row:
        config = ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=1, environ={})
        try:
            attempt = await solver.solve(sample, solver.request(sample), Kit(models={MAIN: model}))
        finally:
            await model.close()
        return attempt.fields

    return run(main)


def bodies(server: FakeServer) -> list[tuple[str, int, list[str]]]:
    """Return prompt, limit and stop phrases of each request."""
    for record in server.records:
        assert "thinking_token_budget" not in record.body
        assert "chat_template_kwargs" not in record.body
    return [(r.body["prompt"], r.body["max_tokens"], r.body.get("stop", [])) for r in server.records]


def test_thinking_ends_at_the_budget(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=going_on(THOUGHTS))
    fields = solved(server, 5)
    thought = "<think> one two three four"
    assert fields["reasoning_content"] == thought
    assert fields["generation"] == " the answer is forced"
    assert (fields["num_forced_ends"], fields["num_forced_continuations"]) == (1, 0)
    assert (fields["num_reasoning_tokens"], fields["num_answer_tokens"]) == (5, 4)
    assert fields["num_generated_tokens"] == 9
    assert bodies(server) == [("Q", 5, ["</think>"]), (f"Q{thought}\n</think>\n\n", 25, [])]


def test_thinking_that_ends_in_time_is_left_alone(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=going_on(THOUGHTS))
    fields = solved(server, 20)
    assert fields["reasoning_content"] + "</think>" + fields["generation"] == THOUGHTS
    assert (fields["num_forced_ends"], fields["num_forced_continuations"]) == (0, 0)
    assert fields["num_reasoning_tokens"] == 10


def test_below_the_minimum_thinking_continues(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=going_on(THOUGHTS))
    fields = solved(server, 20, BudgetForcing(minimum=11, wait=" Wait"))
    assert fields["reasoning_content"] == f"{THOUGHTS.partition('</think>')[0]} Wait so 9 "
    assert (fields["num_forced_ends"], fields["num_forced_continuations"]) == (0, 1)
    assert (fields["num_reasoning_tokens"], fields["num_generated_tokens"]) == (13, 17)
    assert [limit for _, limit, _ in bodies(server)] == [20, 10, 17]


@pytest.mark.parametrize("most", [0, 2])
def test_continuations_have_a_limit(fake_server: FakeServerFactory, most: int) -> None:
    server = fake_server(Script(), answer=going_on("<think></think> 8", "</think> 9"))
    fields = solved(server, 20, BudgetForcing(minimum=15, max_continuations=most))
    assert fields["num_forced_continuations"] == most
    assert fields["reasoning_content"] == "<think>" + "\nWait" * most
    assert len(server.records) == most + 2


def test_no_thinking_at_all(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=going_on(THOUGHTS))
    fields = solved(server, "none", parse_reasoning=True)
    assert bodies(server) == [("Q<think>\n\n</think>\n\n", 30, [])]
    assert fields["generation"] == "the answer is forced"
    assert (fields["num_forced_ends"], fields["num_reasoning_tokens"]) == (1, 0)


def test_a_model_that_does_not_think_is_not_interrupted(fake_server: FakeServerFactory) -> None:
    text = "nine words that are no thinking but an answer"
    server = fake_server(Script(), answer=going_on(text))
    fields = solved(server, 4)
    assert fields["generation"] == text
    assert (fields["num_forced_ends"], fields["num_reasoning_tokens"]) == (0, 0)
    assert fields["num_generated_tokens"] == len(tokens_of(text))
    assert [limit for _, limit, _ in bodies(server)] == [4, 26]


def test_thinking_that_we_begin(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=going_on("<think> " + "a b c d e f"))
    fields = solved(server, 3, BudgetForcing(begin="<think>", end=" Enough.</think>"), parse_reasoning=True)
    assert fields["_full_generation"] == " a b c Enough.</think> the answer is forced"
    assert fields["generation"] == "the answer is forced"
    assert fields["_generation_finished_thinking"] is True
    assert bodies(server)[0][0] == "Q<think>"


def test_a_text_that_ends_within_thinking_gets_the_end_of_thinking(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=going_on("<think> a b"))
    fields = solved(server, 9, BudgetForcing(begin="<think>", end=" So:</think>"))
    assert fields["reasoning_content"] == " a b"
    assert bodies(server)[1][0] == "Q<think> a b So:</think>"
    assert fields["generation"] == " the answer is forced"


@pytest.mark.parametrize("budget", [3, "none"])
@pytest.mark.parametrize(
    ("end", "lead"), [("\nSo: {", "So: {"), ("\n</think>\n\nSo: {", "So: {"), ("</think>\n", "")]
)
def test_what_is_inserted_after_the_mark_begins_the_answer(
    fake_server: FakeServerFactory, budget: Any, end: str, lead: str
) -> None:
    server = fake_server(Script(), answer=lambda body: "8}" if body["prompt"].endswith(end) else " a b c d")
    fields = solved(server, budget, BudgetForcing(begin="Hm:", end=end), parse_reasoning=True)
    assert fields["generation"] == f"{lead}8}}"
    assert fields["reasoning_content"] == ("" if budget == "none" else " a b c")


def test_the_beginning_of_a_mark_that_the_limit_cut_is_removed(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=going_on("<think> a b </thi nk"))
    fields = solved(server, 4)
    assert fields["reasoning_content"] == "<think> a b "
    assert bodies(server)[1][0] == "Q<think> a b \n</think>\n\n"


def test_a_full_context_ends_the_answer(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(context_tokens=28), answer=going_on(THOUGHTS))
    fields = solved(server, 8)
    assert fields["finish_reason"] == "length"
    assert fields["generation"] == ""
    assert fields["reasoning_content"].startswith("<think> one")


def test_other_settings_are_another_request() -> None:
    def key(budget: Any, **forcing: Any) -> str:
        inference = Inference(endpoint_type="text", tokens_to_generate=30)
        limits = ThinkingLimits(forcing=BudgetForcing(**forcing), budget=budget, mark="</think>")
        solver = ChatSolver(load_prompt({"user": "Q"}), ChatSolverOptions(inference=inference, thinking=limits))
        return solver.request(Sample(id="1", row={})).key()

    keys = {key(5), key(6), key("none"), key(5, minimum=2), key(5, minimum=2, wait=" Hm"), key(5, begin="<think>")}
    assert len(keys | {key(5, end="x"), key(5, minimum=2, max_continuations=1)}) == 8
