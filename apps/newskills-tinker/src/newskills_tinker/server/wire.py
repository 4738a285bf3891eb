# SPDX-License-Identifier: Apache-2.0
"""Bodies of the Tinker API: passes and samples as protocol buffers, everything else as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.type_errors import type_fault
from newskills.train.verbs import Datum, LossOutput, Sampled
from newskills_tinker.server.messages import ForwardBackwardOutput, SampleResponse, parse_request

T = TypeVar("T", bound=Struct)
PROTOBUF = "application/x-protobuf"
DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 2: np.dtype("<i8"), 3: np.dtype("<i4")}
FLOAT32 = 1
MAX_PLACES = 1 << 24
"""Elements of a sparse tensor that is written out."""
STOPPED, TOO_LONG = 0, 1
Positive = Annotated[int, Meta(ge=1)]
Natural = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, lt=1)]


class Adam(Struct, frozen=True, kw_only=True):
    """https://arxiv.org/abs/1711.05101, with the API's defaults."""

    learning_rate: Natural = 1e-4
    beta1: Share = 0.9
    beta2: Share = 0.95
    eps: Natural = 1e-12
    weight_decay: Natural = 0.0
    grad_clip_norm: Natural = 0.0


class Lora(Struct, frozen=True, kw_only=True):
    rank: Annotated[int, Meta(ge=1, le=1024)] = 32
    seed: int | None = None
    train_unembed: bool = True
    train_mlp: bool = True
    train_attn: bool = True


class OptimizerKind(Struct, frozen=True, kw_only=True):
    type: str = "adamw"


class SessionRequest(Struct, frozen=True, kw_only=True):
    user_metadata: Row | None = None
    display_name: str | None = None


class OfSessionRequest(Struct, frozen=True, kw_only=True):
    session_id: str


class OfModelRequest(Struct, frozen=True, kw_only=True):
    model_id: str


class ModelRequest(OfSessionRequest, frozen=True, kw_only=True):
    model_seq_id: int
    base_model: str
    user_metadata: Row | None = None
    lora_config: Lora | None = None
    optimizer_config: OptimizerKind = OptimizerKind()


class OrderedRequest(OfModelRequest, frozen=True, kw_only=True):
    """A request that a model works on after those with smaller numbers."""

    seq_id: int | None = None


class StepRequest(OrderedRequest, frozen=True, kw_only=True):
    adam_params: Adam | None = None
    optimizer_params: Row | None = None


class SaveRequest(OrderedRequest, frozen=True, kw_only=True):
    path: str | None = None
    ttl_seconds: Positive | None = None
    overwrite: bool = False
    user_metadata: dict[str, str] | None = None
    sampling_session_seq_id: int | None = None
    age_encryption_recipients: list[str] | None = None


class LoadRequest(Struct, frozen=True, kw_only=True):
    """Into a model (`model_id`, `seq_id`), or as the beginning of one (`session_id`, `model_seq_id`)."""

    path: str
    optimizer: bool
    model_id: str | None = None
    seq_id: int | None = None
    session_id: str | None = None
    model_seq_id: int | None = None
    base_model: str | None = None
    user_metadata: Row | None = None
    optimizer_config: OptimizerKind | None = None


class SamplerRequest(OfSessionRequest, frozen=True, kw_only=True):
    sampling_session_seq_id: int
    base_model: str | None = None
    model_path: str | None = None


class EncodedTextChunk(Struct, frozen=True, kw_only=True):
    """A part of a prompt; only text is known here."""

    type: str = "encoded_text"
    tokens: list[int] = field(default_factory=list)


class ModelInput(Struct, frozen=True, kw_only=True):
    chunks: list[EncodedTextChunk]

    def ids(self) -> list[int]:
        """Return the token ids. Raises ConfigError for other parts than text."""
        for part in self.chunks:
            if part.type != "encoded_text":
                raise ConfigError(
                    f"A prompt has a part of the type {part.type[:40]}; only encoded_text is supported."
                )
        return [token for part in self.chunks for token in part.tokens]


class WireSampling(Struct, frozen=True, kw_only=True):
    """`stop` None: the model's own end tokens. Given as ids, exactly those; as texts, those and the end tokens."""

    max_tokens: Positive | None = None
    seed: int | None = None
    stop: str | list[str | int] | None = None
    temperature: Annotated[float, Meta(ge=0)] = 1.0
    top_k: int = -1
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0


class SampleRequest(Struct, frozen=True, kw_only=True):
    prompt: ModelInput
    sampling_params: WireSampling
    num_samples: Annotated[int, Meta(ge=1, le=4096)] = 1
    sampling_session_id: str
    seq_id: int
    prompt_logprobs: bool | None = None
    prompt_logprobs_last_n: Positive | None = None
    topk_prompt_logprobs: int = 0
    topk_sample_logprobs: int = 0
    prompt_alt_tokens_k: int = 0
    target_prompt_logprobs: Any = None
    record_stability_info: bool | None = None


class JoinRequest(Struct, frozen=True, kw_only=True):
    sampling_session_id: str


class FutureRequest(Struct, frozen=True, kw_only=True):
    request_id: str


class PathRequest(Struct, frozen=True, kw_only=True):
    tinker_path: str


class PassRequest(Struct, frozen=True, kw_only=True):
    """Forward, and backward unless `forward_only`."""

    model_id: str
    seq_id: int
    loss_fn: str
    data: tuple[Datum, ...]
    config: dict[str, float]
    forward_only: bool


def read_json(body: bytes, kind: type[T]) -> T:
    """Decode a body; unknown keys are left out, as the API has it. Raises DataError with a sentence for clients."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise DataError(f"The request is not valid: {type_fault(error)}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"The body of the request is not a JSON object: {error}.") from error


def read_pass(body: bytes) -> PassRequest:
    """Read the request of a pass. Raises DataError with the sentence for the client."""
    message = parse_request(body)
    settings = {
        key: _read_setting(key, message.loss_fn_config_v2[key]) for key in sorted(message.loss_fn_config_v2)
    }
    return PassRequest(
        model_id=message.model_id,
        seq_id=message.seq_id,
        loss_fn=message.loss_fn,
        data=tuple(_read_datum(datum, index) for index, datum in enumerate(message.data)),
        config=settings or dict(message.loss_fn_config),
        forward_only=message.forward_only,
    )


def pass_answer(output: LossOutput) -> bytes:
    """Encode the log-probabilities of the targets of each datum, with the loss as the metric `loss:sum`."""
    ends = np.cumsum([0, *map(len, output.logprobs)], dtype="<i8") * 4
    values = np.array([value for part in output.logprobs for value in part], dtype="<f4")
    answer = ForwardBackwardOutput(loss_fn_output_type="ArrayRecord", metrics={"loss:sum": output.loss})
    record = answer.loss_fn_outputs.add(type_tag="ArrayRecord", num_datums=len(output.logprobs))
    logprobs = record.fields["logprobs"]
    logprobs.data, logprobs.offsets, logprobs.dtype = values.tobytes(), ends.tobytes(), FLOAT32
    return _encode_message(answer)


def sample_answer(samples: Sequence[Sampled], prompt_logprobs: Sequence[float | None] | None) -> bytes:
    """Encode samples. `prompt_logprobs` None: not asked for; an element None: not computed."""
    answer = SampleResponse()
    for sample in samples:
        answer.sequences.add(
            stop_reason=STOPPED if sample.stop_reason == "stop" else TOO_LONG,
            tokens=np.array(sample.tokens, dtype="<i4").tobytes(),
            logprobs=np.array(sample.logprobs, dtype="<f4").tobytes(),
        )
    if prompt_logprobs is not None:
        numbers = [math.nan if value is None else value for value in prompt_logprobs]
        answer.prompt_logprobs = np.array(numbers, dtype="<f4").tobytes()
    return _encode_message(answer)


def _encode_message(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded


def _read_setting(key: str, value: Any) -> float:
    if value.HasField("text"):
        raise DataError(f"The loss has no setting {key[:60]} that is text.")
    number: float = value.number
    return number


def _read_datum(message: Any, index: int) -> Datum:
    tokens = [token for chunk in message.model_input for token in _read_chunk(chunk)]
    tensors = message.loss_fn_inputs
    inputs = {name: _read_tensor(tensors[name], f"{name[:60]} of datum {index}") for name in sorted(tensors)}
    if "target_tokens" not in inputs:
        raise DataError(f"Datum {index} has no target_tokens; it has {', '.join(inputs) or 'nothing'}.")
    return Datum(
        tokens=tokens,
        targets=[int(value) for value in inputs["target_tokens"]],
        weights=inputs.get("weights"),
        logprobs=inputs.get("logprobs"),
        advantages=inputs.get("advantages"),
        in_ratio=inputs.get("sequence_ratio_mask"),
    )


def _read_chunk(message: Any) -> list[int]:
    if message.HasField("encoded_text"):
        tokens: list[int] = _read_array(
            message.encoded_text.tokens, np.dtype("<i4"), "the tokens of an input"
        ).tolist()
        return tokens
    if message.ByteSize():  # a field that is not in our description
        raise DataError("An input has a part that is not text; this service supports only text.")
    return []


def _read_tensor(message: Any, what: str) -> list[Any]:
    """Read a dense or sparse (CSR) tensor as a flat list."""
    shape = list(message.shape)
    if message.dtype not in DTYPES:
        raise DataError(
            f"{what} has the unknown number type {message.dtype}; supported: float32, int64 and int32."
        )
    if sum(size != 1 for size in shape) > 1:
        raise DataError(f"{what} has the shape {shape[:4]}; expected one number per token.")
    dtype = DTYPES[message.dtype]
    if message.HasField("sparse_csr"):
        values = _read_sparse(message.sparse_csr, dtype, shape, what)
    else:
        values = _read_array(message.dense, dtype, what)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError(f"{what} contains a value that is not a number.")
    numbers: list[Any] = values.tolist()
    return numbers


def _read_sparse(message: Any, dtype: np.dtype[Any], shape: list[int], what: str) -> np.ndarray[Any, Any]:
    values = _read_array(message.values, dtype, what)
    rows = _read_array(message.crow_indices, np.dtype("<i8"), what)
    columns = _read_array(message.col_indices, np.dtype("<i8"), what)
    size = math.prod(shape)
    width = shape[1] if len(shape) == 2 else 1
    fits = len(shape) == 2 and len(rows) == shape[0] + 1 and rows[0] == 0 and rows[-1] == len(values)
    fits = fits and bool((rows[:-1] <= rows[1:]).all()) and len(columns) == len(values) and size <= MAX_PLACES
    if not fits or (len(columns) and not (columns.min() >= 0 and columns.max() < width)):
        raise DataError(f"{what} is not a sparse tensor in CSR format.")
    places = np.repeat(np.arange(shape[0]), np.diff(rows)) * width + columns
    full = np.zeros(size, dtype)
    full[places] = values
    return full


def _read_array(data: bytes, dtype: np.dtype[Any], what: str) -> np.ndarray[Any, Any]:
    if len(data) % dtype.itemsize:
        raise DataError(f"{what}: {len(data)} bytes are not a multiple of the size of {dtype.name}.")
    return np.frombuffer(data, dtype)
