# SPDX-License-Identifier: Apache-2.0
"""The verbs at a Tinker service of somebody else, such as skyrl's (which speaks to clients up to 0.22)."""

import os
from pathlib import Path

import pytest
from tests.apps.tinker.services import connected, quiet

from newskills.train.loops.sft import example
from newskills.train.verbs import AdamParams, Datum, SamplingParams

MODEL = os.environ.get("NEWSKILLS_TEST_TINKER_MODEL")
pytestmark = [
    pytest.mark.skipif(
        not (MODEL and os.environ.get("TINKER_BASE_URL") and os.environ.get("TINKER_API_KEY")),
        reason="needs a service: TINKER_BASE_URL, TINKER_API_KEY, NEWSKILLS_TEST_TINKER_MODEL (one of its models)",
    ),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(1200),
]


def test_it_learns_saves_and_samples(tmp_path: Path) -> None:
    examples = [example([1, 2, token], [token + 1, token + 2, 5]) for token in range(3, 7)]
    adam = AdamParams(learning_rate=1e-3)
    with quiet(), connected(os.environ["TINKER_BASE_URL"], MODEL) as client:
        losses = []
        for _ in range(4):
            losses.append(client.forward_backward(examples, "cross_entropy").loss)
            client.optim_step(adam)
        assert losses[-1] < losses[0]
        prompt = [1, 2, 3]
        (group,) = client.sample([prompt], 4, SamplingParams(max_tokens=4, seed=1))
        data = [
            Datum(
                tokens=[*prompt, *one.tokens][:-1],
                targets=[*prompt, *one.tokens][1:],
                logprobs=[0.0, 0.0, *one.logprobs],
                advantages=[0.0, 0.0, *[sign] * len(one.tokens)],
            )
            for one, sign in zip(group, (1.0, -1.0, 1.0, -1.0), strict=True)
        ]
        for loss in ("importance_sampling", "ppo"):
            output = client.forward_backward(data, loss)
            assert output.logprobs[0][2:] == pytest.approx(group[0].logprobs, abs=0.05)
        client.optim_step(adam)
        saved = client.save_state(tmp_path / "checkpoint-000005")
        expected = client.forward_backward(examples, "cross_entropy").loss
        client.load_state(saved.state_path)
        assert client.forward_backward(examples, "cross_entropy").loss == pytest.approx(expected, rel=1e-3)
