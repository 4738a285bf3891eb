# SPDX-License-Identifier: Apache-2.0
"""Likelihoods of continuations: what is asked of a server, what is made of its reply, and the scores that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import FakeServerFactory
from tests.graders.plain import plain_grader
from tests.server import Answer, FakeServer, FakeServerProcess, Script

from newskills.base.aio import run
from newskills.base.errors import BadRequestError, DataError
from newskills.base.protocols import Kit
from newskills.base.records import Inference, Row, Sample
from newskills.metrics import make_metric
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import load_prompt
from newskills.solve import make_solver
from newskills.solve.chat import MAIN, ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts
from newskills.solve.tasks.loglikelihood import tokens_at_end

CAT: Row = {
    "context": "The cat sat on the",
    "continuations": [" mat", " red mat", " moon"],
    "expected_answer": "B",
}
LIKELY = {" mat": -1.5, " red": -0.4, " moon": -3.0}


def solve(server: FakeServer | FakeServerProcess, row: Row, **inference: Any) -> Row:
    options = ChatSolverOptions(inference=Inference(**inference), timing=False)
    chat = ChatSolver(load_prompt("generic/continuation"), options)
    solver = make_solver("loglikelihood", SolverParts(chat=chat), {})
    sample = Sample(id="1", row=row)

    async def main() -> Row:
        config = ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=1, environ={})
        try:
            attempt = await solver.solve(sample, solver.request(sample), Kit(models={MAIN: model}))
        finally:
            await model.close()
        return {**row, **attempt.fields}

    return run(main)


def graded(record: Row) -> Row:
    score = plain_grader("loglikelihood", {}).grade(record)
    return {**record, **score.fields, "outcome": score.outcome}


def test_the_likeliest_of_several(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(likely=LIKELY, answer=Answer(text="whatever follows")))
    record = graded(solve(server, CAT))
    assert record["loglikelihoods"] == pytest.approx([-1.5, -1.9, -3.0])
    assert record["greedy"] == [False, False, False]
    assert record["continuation_tokens"] == [1, 2, 1]
    assert record["generation"] == "mat"
    assert (record["acc"], record["acc_norm"], record["predicted_answer"]) == (False, True, "A")
    assert record["loglikelihood"] == pytest.approx(-1.9)
    assert record["num_input_tokens"] == 6 + 7 + 6
    assert "finish_reason" not in record
    assert "logprobs" not in record


def test_what_is_asked(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(likely=LIKELY))
    solve(server, CAT, temperature=0.7, tokens_to_generate=500)
    bodies = [record.body for record in server.records]
    assert [body["prompt"] for body in bodies] == [CAT["context"] + text for text in CAT["continuations"]]
    for body in bodies:
        asked = {name: body[name] for name in ("echo", "logprobs", "max_tokens", "temperature")}
        assert asked == {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0.0}


def test_contexts_of_their_own(fake_server: FakeServerFactory) -> None:
    row = {
        "context": ["Ann thanked Bob as Ann", "Ann thanked Bob as Bob"],
        "continuations": [" had helped", " had helped"],
        "expected_answer": 1,
    }
    record = graded(solve(fake_server(Script(likely={" Bob": -0.1})), row))
    assert record["loglikelihoods"][0] == record["loglikelihoods"][1]
    assert record["outcome"] == "wrong", "the first of equals"
    with pytest.raises(DataError, match="2 texts in context for 1 continuations"):
        solve(fake_server(Script()), {**row, "continuations": [" had helped"]})
    with pytest.raises(DataError, match="'continuations' must be a list"):
        solve(fake_server(Script()), {"context": "x"})


def test_a_single_continuation(fake_server: FakeServerFactory) -> None:
    row = {"context": "He drank a cup of", "continuations": [" tea"], "expected_answer": "tea"}
    likely = graded(solve(fake_server(Script(likely={" tea": -0.5})), row))
    assert (likely["acc"], likely["outcome"], likely["predicted_answer"]) == (True, "correct", "tea")
    unlikely = graded(solve(fake_server(Script(likely={" tea": -2.5})), row))
    assert (unlikely["acc"], unlikely["outcome"]) == (False, "wrong")
    metric = make_metric("loglikelihood")
    for record in (likely, unlikely):
        metric.update([record])
    numbers = metric.numbers()["pass@1"]
    assert numbers["acc"].value == 50.0
    assert numbers["perplexity"].value == pytest.approx(math.exp(1.5))
    assert numbers["perplexity"].low < math.exp(1.5) < numbers["perplexity"].high
    assert metric.metrics()["pass@1"]["perplexity"] == pytest.approx(math.exp(1.5))
    assert "acc_norm" not in numbers


@pytest.mark.parametrize(("echo", "why"), [("ignored", "returns no log-prob"), ("refused", "Only no echo")])
def test_a_server_that_cannot(fake_server: FakeServerFactory, echo: Any, why: str) -> None:
    with pytest.raises(BadRequestError, match=why):
        solve(fake_server(Script(echo=echo)), CAT)


def test_prompt_logprobs_where_echo_is_refused(fake_server: FakeServerFactory) -> None:
    usual = solve(fake_server(Script(likely=LIKELY)), CAT)
    server = fake_server(Script(likely=LIKELY, echo="refused", prompt_logprobs=True))
    record = solve(server, CAT)
    assert record["loglikelihoods"] == pytest.approx([-1.5, -1.9, -3.0])
    for field in ("loglikelihoods", "greedy", "continuation_tokens"):
        assert record[field] == pytest.approx(usual[field])
    asked = [("echo" in r.body, r.body.get("prompt_logprobs")) for r in server.records]
    assert asked == [(True, None), (False, 1), (False, 1), (False, 1)]


def test_tokens_that_do_not_spell_the_text_are_counted(fake_server: FakeServerFactory) -> None:
    record = solve(fake_server(Script(likely=LIKELY, echo="mangled")), CAT)
    assert record["loglikelihoods"] == pytest.approx([-1.5, -1.9, -3.0])
    with pytest.raises(BadRequestError, match="do not spell"):
        solve(fake_server(Script(echo="mangled", usage="none")), CAT)


@given(st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=12), st.data())
def test_tokens_of_the_continuation(tokens: Sequence[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(tokens) - 1))
    prompt, text = "".join(tokens[:cut]), "".join(tokens[cut:])
    assert tokens_at_end(tokens[1:], prompt, text) == len(tokens) - cut
    assert tokens_at_end(["<s>", *tokens], prompt, text) == len(tokens) - cut
    assert tokens_at_end([*tokens, "unasked"], prompt, text) is None


def test_a_text_without_context() -> None:
    assert tokens_at_end([" b"], "", "a b") is None, "the first token has no probability"
    assert tokens_at_end(["a", " b"], "", "a b") == 2, "after a mark of the beginning"
    assert tokens_at_end(["x", "ya", " b"], "xy", "a b") == 2, "a token on both sides belongs to the continuation"


@pytest.mark.parametrize("echo", ["right", "mangled"])
def test_whole_texts_are_compared_from_their_first_token_on(fake_server: FakeServerFactory, echo: Any) -> None:
    row: Row = {"context": "", "continuations": ["Cats sleep.", "Stones sleep."], "expected_answer": 0}
    likely = {"Cats": -2.0, "Stones": -6.0, " sleep.": -1.0}
    server = fake_server(Script(likely=likely, echo=echo))
    record = graded(solve(server, row))
    assert record["outcome"] == "correct"
    assert record["loglikelihoods"] == pytest.approx([-3.0, -7.0])
    assert {"\nCats sleep.", "\nStones sleep."} < {record.body["prompt"] for record in server.records}


def test_records_that_cannot_be_graded() -> None:
    grader = plain_grader("loglikelihood", {})
    two = {"continuations": [" a", " b"], "loglikelihoods": [-1.0, -2.0]}
    assert grader.grade({"generation": "a", "expected_answer": "A"}).outcome == "unscored"
    assert grader.grade({**two, "expected_answer": "C"}).outcome == "unscored"
    assert grader.grade({**two, "expected_answer": 2}).outcome == "unscored"
    assert grader.grade({**two, "expected_answer": "b"}).outcome == "wrong"
    assert grader.grade({**two, "expected_answer": "A"}).outcome == "correct"
    one = {"continuations": [" a"], "loglikelihoods": [-1.0], "greedy": [None]}
    assert grader.grade(one).outcome == "unscored"
