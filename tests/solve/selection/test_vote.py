# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
import time

import pytest
from tests.server import Fault, Script
from tests.server.answers import logprob, tokens_of
from tests.solve.choosing import Model, parts, solve, solver

from newskills.base.errors import ConfigError, DataError
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Inference, Request, Sample
from newskills.solve.chat import ChatSolverOptions


def test_the_longest_of_the_winning_class_is_returned() -> None:
    texts = [
        r"\boxed{7}",
        r"\boxed{\frac{1}{2}}",
        r"Half of it, so \boxed{0.5}",
        "no idea, and many words about it",
    ]
    fields, bodies = solve(solver("majority", samples=4), Model(texts))
    assert fields["generation"] == texts[2]
    assert fields["predicted_answer"] == "0.5"
    assert fields["votes"] == {r"\frac{1}{2}": 2, "7": 1}
    assert (fields["num_votes"], fields["num_lost_solutions"], fields["stopped_early"]) == (3, 0, False)
    assert fields["num_generated_tokens"] == sum(len(tokens_of(text)) for text in texts)
    assert [body["seed"] for body in bodies] == [0, 1, 2, 3]


def test_equal_votes_go_to_the_first_that_was_given() -> None:
    fields, _ = solve(
        solver("majority", samples=4), Model([r"\boxed{3}", r"\boxed{5}", r"\boxed{5}", r"\boxed{3}"])
    )
    assert fields["predicted_answer"] == "3"


def test_nobody_with_an_answer() -> None:
    fields, _ = solve(solver("majority", samples=2), Model(["No.", "I do not know."]))
    assert (fields["predicted_answer"], fields["votes"], fields["generation"]) == (None, {}, "I do not know.")


def test_lost_answers_have_no_vote() -> None:
    lost = Script(faults=(Fault(kind="status", status=400, first=3),))
    fields, _ = solve(solver("majority", samples=4), Model([r"\boxed{3}"]), lost)
    assert (fields["votes"], fields["num_lost_solutions"]) == ({"3": 1}, 3)


def test_stragglers_are_given_up_once_enough_agree() -> None:
    slow = Script(faults=(Fault(kind="delay", after=4, seconds=60),))
    began = time.monotonic()
    fields, bodies = solve(solver("majority", samples=8, early_stop_votes=3), Model([r"\boxed{3}"]), slow)
    assert fields["votes"]["3"] >= 3
    assert fields["num_votes"] < 8
    assert fields["stopped_early"]
    assert len(bodies) <= 8
    assert time.monotonic() - began < 50


def test_votes_are_weighed_by_likelihood() -> None:
    texts = [r"\boxed{3}", r"\boxed{3} maybe", r"\boxed{5}"]

    def weight(text: str) -> float:
        tokens = tokens_of(text)
        return math.exp(sum(map(logprob, tokens)) / len(tokens))

    fields, bodies = solve(solver("weighted_vote", samples=3), Model(texts))
    assert fields["votes"] == pytest.approx({"3": weight(texts[0]) + weight(texts[1]), "5": weight(texts[2])})
    assert fields["predicted_answer"] == max(fields["votes"], key=fields["votes"].__getitem__)
    assert "logprobs" not in fields
    assert all(body["logprobs"] and body["top_logprobs"] == 1 for body in bodies)


def test_log_probabilities_that_were_asked_for_are_kept() -> None:
    options = ChatSolverOptions(inference=Inference(temperature=0.7, top_logprobs=2))
    fields, bodies = solve(solver("weighted_vote", parts(options), samples=2), Model([r"\boxed{3}"]))
    assert len(fields["logprobs"]) == len(fields["tokens"])
    assert bodies[0]["top_logprobs"] == 2


def test_without_log_probabilities_nothing_is_weighed() -> None:
    class Silent:
        """Leaves them out of its record."""

        chat = parts().chat

        def request(self, sample: Sample) -> Request:
            return self.chat.request(sample)

        async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
            attempt = await self.chat.solve(sample, request, kit)
            del attempt.fields["logprobs"]
            return attempt

    with pytest.raises(DataError, match="no log-probabilities"):
        solve(solver("weighted_vote", parts(base=Silent()), samples=2), Model([r"\boxed{3}"]))


def test_more_votes_than_answers_are_refused() -> None:
    with pytest.raises(ConfigError, match="early_stop_votes 9 must not be larger than samples 8"):
        solver("majority", samples=8, early_stop_votes=9)
