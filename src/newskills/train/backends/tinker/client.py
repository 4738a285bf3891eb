# SPDX-License-Identifier: Apache-2.0
"""The verbs of `newskills.train.verbs` over the public client (PyPI: tinker): weights that learn at a service."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import msgspec
from msgspec import Struct

from newskills.base.errors import AuthError, ConfigError, DataError, NewskillsError, TrainingError, TransportError
from newskills.base.http.blocking import open_url
from newskills.train.verbs import (
    BETA,
    NOT_FINITE,
    AdamParams,
    Datum,
    LossConfig,
    LossName,
    LossOutput,
    Sampled,
    SamplingParams,
    Saved,
)

URL, KEY = "TINKER_BASE_URL", "TINKER_API_KEY"
LOSS = "loss:sum"
SEEDS = 1 << 31
DOWNLOAD_SECONDS = 300.0
CLOSE_SECONDS = 10.0
AT_ONE = "Set ++temperature=1: other services than ns serve_tinker do not divide logits by the temperature."
TELLING = 1e-4
"""A difference of log-probabilities that is more than rounding."""


class Service(Struct, frozen=True, kw_only=True):
    """Where the service is (None: the client's own default) and what to train there."""

    base_model: str
    rank: int = 32
    seed: int | None = None
    base_url: str | None = None


def service_from(environ: Mapping[str, str], base_model: str, rank: int, seed: int | None = None) -> Service:
    """Return the service that TINKER_BASE_URL names. Raises AuthError without TINKER_API_KEY, ConfigError without
    client."""
    _import_tinker()
    if not environ.get(KEY):
        raise AuthError(
            f"{KEY} is not set.",
            hint="Set it to your key; a service of ns serve_tinker without a key accepts tml-any.",
        )
    return Service(base_model=base_model, rank=rank, seed=seed, base_url=environ.get(URL) or None)


class TinkerClient:
    """LoRA at a service. The training run there begins with the first verb, or with the state that is loaded first."""

    def __init__(self, service: Service) -> None:
        """Connect to the service. Raises ConfigError without the client, AuthError where it finds no key, TrainingError
        without service."""
        self._types = _import_tinker().types
        self.service = service
        with _translate_errors(f"Cannot reach the Tinker service {service.base_url or ''}".rstrip()):
            self._client = _import_tinker().ServiceClient(base_url=service.base_url, api_key=os.environ.get(KEY))
        self._training: Any = None
        self._sampling: Any = None
        self._reference: Any = None
        self._divides = False

    def forward_backward(
        self, data: Sequence[Datum], loss: LossName, config: LossConfig | None = None
    ) -> LossOutput:
        """Add the gradient of the loss.

        Raises TrainingError for a loss that is not finite, and where the service refuses.
        """
        bounds = {name: getattr(config, name, None) for name in LossConfig.__struct_fields__}
        settings = {name: value for name, value in bounds.items() if value is not None}
        with _translate_errors("The service refused a training pass"):
            output = _promise_result(
                self._learner().forward_backward(
                    [self._datum(datum, loss) for datum in data], loss, settings or None
                )
            )
        logprobs = [[float(value) for value in losses["logprobs"].data] for losses in output.loss_fn_outputs]
        if LOSS in output.metrics:
            value = output.metrics[LOSS]
        else:
            value = sum(
                loss_of(loss, datum, token_logprobs, config or LossConfig())
                for datum, token_logprobs in zip(data, logprobs, strict=True)
            )
        if not math.isfinite(value):
            raise TrainingError(
                f"The loss is {value}; training stopped.",
                hint=NOT_FINITE,
            )
        return LossOutput(loss=value, logprobs=logprobs)

    def logprobs(self, data: Sequence[Datum], temperature: float = 1.0) -> list[list[float]]:
        """Return those of all targets, of logits divided by `temperature`. Raises TrainingError where the service
        refuses."""
        loss: LossName = "importance_sampling" if data[0].weights is None else "cross_entropy"
        settings = None if temperature == 1 else {"temperature": temperature}
        with _translate_errors("The service refused a forward pass"):
            output = _promise_result(
                self._learner().forward([self._datum(datum, loss) for datum in data], loss, settings)
            )
        return [[float(value) for value in entry["logprobs"].data] for entry in output.loss_fn_outputs]

    def reference_logprobs(self, data: Sequence[Datum], temperature: float = 1.0) -> list[list[float]]:
        """Return those of the base model, which the service serves without pairs. Raises ConfigError for another
        temperature than 1, TrainingError."""
        if temperature != 1:
            raise ConfigError(
                f"A Tinker service scores the initial model at temperature 1, and ++temperature is {temperature:g}.",
                hint="Set ++temperature=1, or leave out ++kl.",
            )
        with _translate_errors(f"The service could not score texts with {self.service.base_model}"):
            if self._reference is None:
                self._reference = _promise_result(
                    self._client.create_sampling_client(base_model=self.service.base_model)
                )
            futures = [
                self._reference.compute_logprobs(
                    self._types.ModelInput.from_ints([*datum.tokens, datum.targets[-1]])
                )
                for datum in data
            ]
            scores = [_promise_result(future) for future in futures]
        return [[0.0 if value is None else float(value) for value in each[1:]] for each in scores]

    def optim_step(self, adam: AdamParams) -> dict[str, float]:
        """Take an optimizer step; return what the service measures: ours the norm of the gradient, another perhaps
        nothing."""
        self._sampling = None
        params = self._types.AdamParams(**{name: getattr(adam, name) for name in AdamParams.__struct_fields__})
        with _translate_errors("The service refused an optimizer step"):
            metrics = _promise_result(self._learner().optim_step(params)).metrics or {}
        return {name.split(":", 1)[0]: float(value) for name, value in metrics.items()}

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        """Sample with the weights of this moment. Every prompt has a seed of its own, from the seed and its place."""
        with _translate_errors("The service refused to sample"):
            if self._sampling is None:
                self._sampling = _promise_result(
                    self._learner().save_weights_and_get_sampling_client(**self._nameless())
                )
            futures = [
                self._sampling.sample(
                    self._types.ModelInput.from_ints(list(prompt)),
                    num_samples,
                    self._sampling_params(params, place),
                )
                for place, prompt in enumerate(prompts)
            ]
            answers = [_promise_result(future) for future in futures]
        sampled = [[_read_sample(sequence) for sequence in answer.sequences] for answer in answers]
        if params.logprob_temperature == 1:
            return sampled
        return self._rescore(prompts, sampled, params.logprob_temperature)

    def _rescore(
        self, prompts: Sequence[Sequence[int]], sampled: list[list[Sampled]], temperature: float
    ) -> list[list[Sampled]]:
        """Return the samples with log-probabilities at `temperature`, which a service samples at and does not tell.

        Raises TrainingError where the service computes them at temperature 1: its gradient would be another one.
        """
        data = [
            _scored_datum(prompt, sample)
            for prompt, group in zip(prompts, sampled, strict=True)
            for sample in group
        ]
        try:
            divided = self.logprobs(data, temperature)
        except TrainingError as error:
            raise TrainingError(error.message, hint=AT_ONE) from error
        if not self._divides:
            self._check_divides(data, divided)
        scores = iter(divided)
        return [
            [msgspec.structs.replace(sample, logprobs=next(scores)[len(prompt) - 1 :]) for sample in group]
            for prompt, group in zip(prompts, sampled, strict=True)
        ]

    def _check_divides(self, data: Sequence[Datum], divided: Sequence[Sequence[float]]) -> None:
        """Raise TrainingError where log-probabilities at another temperature are those at 1."""
        gaps = [
            abs(score - own)
            for scores, owns in zip(divided, self.logprobs(data), strict=True)
            for score, own in zip(scores, owns, strict=True)
            if own < -TELLING
        ]
        if gaps and max(gaps) < TELLING:
            raise TrainingError(
                "The Tinker service computes log-probabilities at temperature 1 only.", hint=AT_ONE
            )
        self._divides = True

    def save_state(self, folder: Path) -> Saved:
        """Save the state at the service, under the folder's name; nothing is written here."""
        return Saved(state_path=self.save_weights(folder.name), sampler_path=self.save_sampler(folder.name))

    def save_weights(self, name: str) -> str:
        """Save weights and optimizer; return the tinker:// path."""
        with _translate_errors(f"The service could not save {name}"):
            return str(_promise_result(self._learner().save_state(name)).path)

    def save_sampler(self, name: str, seconds: int | None = None) -> str:
        """Save weights to sample from, for so many seconds (none: for good); return the tinker:// path."""
        with _translate_errors(f"The service could not save {name}"):
            return str(_promise_result(self._learner().save_weights_for_sampler(name, ttl_seconds=seconds)).path)

    def fetch(self, name: str, folder: Path) -> None:
        """Fetch the weights of this moment into `folder`, as the service gives them away: LoRA pairs in PEFT's form.

        Raises TrainingError where the client or the service does not give them.
        """
        with _translate_errors("The service does not allow downloading weights"):
            path = _promise_result(self._learner().save_weights_external(name)).path
            rest = _import_tinker().RestClient(base_url=self.service.base_url, api_key=os.environ.get(KEY))
            weights = _promise_result(rest.get_external_weights_urls(path))
            for file, url in weights.urls.items():
                _download_file(url, folder / Path(file).name)

    def sample_from(self, path: str) -> None:
        """Sample from saved weights until the next optimizer step."""
        with _translate_errors(f"The service has no {path}"):
            self._sampling = _promise_result(self._client.create_sampling_client(model_path=path))

    def load_state(self, state: str) -> None:
        """Begin another training run, with the weights and the optimizer of `state`."""
        with _translate_errors(f"The service could not load {state}", kind=DataError):
            self._training = _promise_result(self._client.create_training_client_from_state_with_optimizer(state))
        self._sampling = None

    def tokenizer_name(self) -> str:
        """Return where the tokenizer of the model lies: a folder, or a name on the hub."""
        data = self._learner().get_info().model_data
        return str(data.tokenizer_id or data.model_name)

    def __enter__(self) -> TinkerClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        with suppress(TrainingError):  # what came first is told
            self.close("errored" if issubclass(kind, Exception) else "interrupted")

    def close(self, status: Literal["success", "errored", "interrupted"] = "success") -> None:
        """End the session at the service, where the client can say so, and the threads of the client with it.

        A service that does not answer is left after `CLOSE_SECONDS`: it ends silent sessions itself.
        """
        if not hasattr(self._client, "close"):
            return
        with _translate_errors("The service could not end the session"):
            closing = self._client.close(status)
            try:
                closing.result(CLOSE_SECONDS)
            except TimeoutError:
                closing.future().cancel()  # the client itself would try for minutes
            except _import_tinker().NotFoundError:
                pass  # the service has ended it before

    def _learner(self) -> Any:
        if self._training is None:
            with _translate_errors(f"The service cannot train {self.service.base_model}"):
                self._training = _promise_result(
                    self._client.create_lora_training_client(
                        base_model=self.service.base_model, rank=self.service.rank, seed=self.service.seed
                    )
                )
        return self._training

    def _nameless(self) -> dict[str, str]:
        """Return a name for weights that are not kept, where the client is older and wants one."""
        import inspect

        method = inspect.signature(self._learner().save_weights_and_get_sampling_client)
        name = method.parameters.get("name")
        if name is not None and name.default is inspect.Parameter.empty:
            return {"name": "now"}
        return {}

    def _datum(self, datum: Datum, loss: LossName) -> Any:
        names = ("weights",) if loss == "cross_entropy" else ("logprobs", "advantages")
        values = {"target_tokens": datum.targets, **{name: getattr(datum, name) for name in names}}
        if loss == "gspo":
            if datum.in_ratio is None:
                values["sequence_ratio_mask"] = datum.sampled()
            else:
                values["sequence_ratio_mask"] = datum.in_ratio
        kinds = {name: "int64" if name == "target_tokens" else "float32" for name in values}
        inputs = {
            name: self._types.TensorData(data=list(values[name]), dtype=kind, shape=[len(values[name])])
            for name, kind in kinds.items()
        }
        return self._types.Datum(
            model_input=self._types.ModelInput.from_ints(list(datum.tokens)), loss_fn_inputs=inputs
        )

    def _sampling_params(self, params: SamplingParams, place: int) -> Any:
        return self._types.SamplingParams(
            max_tokens=params.max_tokens,
            seed=(params.seed * 1_000_003 + place) % SEEDS,
            stop=list(params.stop),
            temperature=params.temperature,
            top_k=params.top_k,
            top_p=params.top_p,
        )


def _scored_datum(prompt: Sequence[int], sample: Sampled) -> Datum:
    tokens = [*prompt, *sample.tokens]
    weights = [0.0] * (len(prompt) - 1) + [1.0] * len(sample.tokens)
    return Datum(tokens=tokens[:-1], targets=tokens[1:], weights=weights)


def loss_of(loss: LossName, datum: Datum, logprobs: Sequence[float], config: LossConfig) -> float:
    """Compute the loss of one datum from what the service computed, for services that do not give it."""
    if loss == "cross_entropy":
        return -sum(weight * logprob for weight, logprob in zip(datum.weights or (), logprobs, strict=True))
    total, of_sequence = 0.0, None
    if loss == "gspo":
        of_sequence = _sequence_gap(datum, logprobs)
    beta = BETA if config.beta is None else config.beta
    for before, advantage, logprob in zip(datum.logprobs or (), datum.advantages or (), logprobs, strict=True):
        if loss == "dro":
            counted = before != 0 or advantage != 0
            total -= logprob * advantage - 0.5 * beta * (logprob - before) ** 2 * counted
            continue
        gap = logprob - before if of_sequence is None else of_sequence
        ratio = math.exp(gap) if advantage else 0.0
        if loss == "importance_sampling":
            total -= ratio * advantage
            continue
        low, high = config.bounds(loss)
        clipped = min(max(ratio, low), high)
        if loss == "cispo":
            total -= clipped * logprob * advantage
        else:
            total -= min(ratio * advantage, clipped * advantage)
    return total


def _sequence_gap(datum: Datum, logprobs: Sequence[float]) -> float:
    """Return the mean of log p − log q over the targets that count in the ratio of a sequence."""
    counted = datum.sampled() if datum.in_ratio is None else datum.in_ratio
    gaps = [
        logprob - before
        for logprob, before, weight in zip(logprobs, datum.logprobs or (), counted, strict=True)
        if weight
    ]
    return sum(gaps) / max(1, len(gaps))


def _read_sample(sequence: Any) -> Sampled:
    if sequence.logprobs is None:
        raise TrainingError("The service sent no log-probabilities of its samples; training needs them.")
    return Sampled(
        tokens=[int(token) for token in sequence.tokens],
        logprobs=[float(value) for value in sequence.logprobs],
        stop_reason="stop" if sequence.stop_reason == "stop" else "length",
    )


def _promise_result(promise: Any) -> Any:
    """Return what a call promises; older clients give some things at once."""
    if hasattr(promise, "result"):
        return promise.result()
    return promise


def _import_tinker() -> Any:
    try:
        import tinker
    except ImportError as error:
        raise ConfigError(
            "Training over the Tinker API needs its client.", hint="Run: pip install 'newskills[tinker]'"
        ) from error
    return tinker


def _download_file(url: str, target: Path) -> None:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url[:40]} is not an address to download from")
    try:
        with open_url(url, timeout=DOWNLOAD_SECONDS) as answer, target.open("wb") as file:
            if answer.status >= 300:
                raise ValueError(f"the address of the download answers with status {answer.status}")
            shutil.copyfileobj(answer, file)
    except TransportError as error:
        raise ValueError(f"the download failed: {error}") from error


@contextmanager
def _translate_errors(what: str, kind: type[NewskillsError] = TrainingError) -> Iterator[None]:
    """Raise errors of the client as sentences of ours."""
    try:
        yield
    except (_import_tinker().TinkerError, AttributeError, ValueError, OSError, RuntimeError) as error:
        if isinstance(error, _import_tinker().AuthenticationError):
            raise AuthError(f"{what}: {KEY} was refused.") from error
        raise kind(f"{what}: {error}") from error
