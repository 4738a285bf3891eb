# SPDX-License-Identifier: Apache-2.0
"""The embedded model, converted: served by llama.cpp and computed here, it must say the same."""

import json
import urllib.request
from pathlib import Path

import pytest

from newskills.models.serving import ServeSpec
from newskills.models.tokenizer import HFTokenizer
from newskills.run.hosting.servers import running_server
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.convert.from_gguf import gguf_to_hf
from newskills.train.verbs import SamplingParams

QUESTIONS = [
    "What is the capital of France?",
    "Name three colours.",
    "Write one sentence about the sea.",
    "How many days has a week?",
    "What is 2 + 2?",
    "Who wrote Hamlet?",
    "Say hello in Spanish.",
    "What do bees make?",
]


@pytest.mark.slow
@pytest.mark.local_model
@pytest.mark.nightly
def test_greedy_replies_agree_with_the_served_file(local_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hf"
    gguf_to_hf(local_model, folder)
    tokenizer = HFTokenizer(str(folder))
    prompts = [
        tokenizer.encode(tokenizer.render([{"role": "user", "content": question}])) for question in QUESTIONS
    ]
    trainer = CpuTrainer(folder, CpuTrainerConfig(dtype="float32"))
    ours = trainer.sample(
        prompts, 1, SamplingParams(max_tokens=12, temperature=0, stop=tokenizer.encode("<|im_end|>"))
    )
    spec = ServeSpec(model=str(local_model), server_type="llamacpp", extra_args=["--ctx-per-slot", "256"])
    same = 0
    with running_server(spec, tmp_path / "log", 120) as server:
        for question, (sampled,) in zip(QUESTIONS, ours, strict=True):
            body = {
                "model": "x",
                "messages": [{"role": "user", "content": question}],
                "max_tokens": 12,
                "temperature": 0,
            }
            request = urllib.request.Request(
                f"{server.base_url}/chat/completions",
                json.dumps(body).encode(),
                {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"},
            )
            with urllib.request.urlopen(request) as reply:
                text = json.load(reply)["choices"][0]["message"]["content"]
            same += tokenizer.decode(sampled.tokens).removesuffix("<|im_end|>").startswith(text.rstrip())
    # llama.cpp computes in F16 with sums of its own; a near tie may fall the other way.
    assert same >= len(QUESTIONS) - 2
