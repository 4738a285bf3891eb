# SPDX-License-Identifier: Apache-2.0
"""Samples of a vLLM server in token ids, as the loops ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, TrainingError, TransportError
from newskills.base.http.blocking import open_url
from newskills.train.backends.trl.settings import SERVE
from newskills.train.verbs import Sampled, SamplingParams

SAMPLE_SECONDS = 1800.0
"""Longest wait for the samples of a step."""
PROBE_SECONDS = 30.0


class _Logprobs(Struct):
    token_logprobs: list[float | None]


class _Choice(Struct):
    index: int
    token_ids: list[int]
    logprobs: _Logprobs


class _Completion(Struct):
    choices: list[_Choice]


class VllmServer:
    """A vLLM server. `model` is the name that the next samples are asked of. Threads may share it."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self.model = ""

    def connect(self, temperature: float) -> None:
        """Take the name of the model that is served.

        Raises ConfigError where no server answers that a training can change, or where it tells log-probabilities at
        another temperature than it samples.
        """
        models = self._get("/v1/models")
        self.model = models["data"][0]["id"]
        model_config = self._get("/server_info?config_format=json")["vllm_config"]["model_config"]
        if temperature != 1 and model_config.get("logprobs_mode") != "processed_logprobs":
            raise ConfigError(
                f"The vLLM server at {self._url} tells log-probabilities at temperature 1, but ++temperature is "
                f"{temperature:g}.",
                hint="Start it with --logprobs-mode processed_logprobs, or set ++temperature=1.",
            )

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        """Sample `num_samples` for each prompt. Raises TrainingError where the server does not answer."""
        different = num_samples if params.temperature > 0 else 1
        body = {
            "model": self.model,
            "prompt": [list(prompt) for prompt in prompts],
            "n": different,
            "max_tokens": params.max_tokens,
            "temperature": params.temperature,
            "top_p": params.top_p,
            "top_k": max(params.top_k, 0),
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "stop_token_ids": list(params.stop),
            "seed": params.seed,
            "logprobs": 0,
            "return_token_ids": True,
        }
        choices = sorted(self._completion(body).choices, key=lambda choice: choice.index)
        if len(choices) != len(prompts) * different:
            raise TrainingError(
                f"The vLLM server at {self._url} gave {len(choices)} samples, not {len(prompts) * different}."
            )
        stops = set(params.stop)
        rows = [_read_sample(choice, stops) for choice in choices]
        groups = [rows[at : at + different] for at in range(0, len(rows), different)]
        return [group * (num_samples // different) for group in groups]

    def _completion(self, body: dict[str, Any]) -> _Completion:
        headers = {"Content-Type": "application/json"}
        try:
            with open_url(
                f"{self._url}/v1/completions",
                method="POST",
                headers=headers,
                body=msgspec.json.encode(body),
                timeout=SAMPLE_SECONDS,
            ) as answer:
                text = answer.read()
                if answer.status != 200:
                    raise TransportError(f"status {answer.status}: {text[:300].decode(errors='replace')}")
                return msgspec.json.decode(text, type=_Completion)
        except (TransportError, msgspec.DecodeError) as error:
            raise TrainingError(
                f"The vLLM server at {self._url} did not sample: {error}.",
                hint="Checkpoints are kept: start the server again, then run the same command to resume.",
            ) from error

    def _get(self, path: str) -> Any:
        try:
            with open_url(f"{self._url}{path}", timeout=PROBE_SECONDS) as answer:
                text = answer.read()
                if answer.status != 200:
                    raise TransportError(f"status {answer.status}")
                return msgspec.json.decode(text)
        except (TransportError, msgspec.DecodeError) as error:
            raise ConfigError(
                f"++trainer.trl.staleness needs a vLLM server, but {self._url}{path.partition('?')[0]} cannot be "
                f"read: {error}.",
                hint=f"Start it on a GPU of its own ({SERVE}) and set ++trainer.trl.vllm_url.",
            ) from error


def _read_sample(choice: _Choice, stops: set[int]) -> Sampled:
    """Return a sample. Log-probabilities of what had none (greedy, or of a cut-off number) are 0."""
    logprobs = [value or 0.0 for value in choice.logprobs.token_logprobs]
    ended = bool(choice.token_ids) and choice.token_ids[-1] in stops
    return Sampled(tokens=choice.token_ids, logprobs=logprobs, stop_reason="stop" if ended else "length")
