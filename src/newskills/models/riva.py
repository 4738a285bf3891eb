# SPDX-License-Identifier: Apache-2.0
"""Speech services over gRPC, as NVIDIA's Riva and its speech NIMs offer them: sound → text, and text → sound.

Their protocol comes with the optional library nvidia-riva-client (`newskills[speech]`). Nothing is sampled.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import io
import time
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import (
    BadRequestError,
    ConfigError,
    HttpError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from newskills.base.http.proxy import proxy_for
from newskills.base.records import Inference, Message, Reply, Request, Row
from newskills.base.type_errors import type_fault
from newskills.models.config import DEFAULT_PORT, ServerConfig, key_of
from newskills.models.errors import EndpointIdentity, Refusal, error_for
from newskills.models.kinds import MODELS
from newskills.models.tunnel import PortForward

S = TypeVar("S", bound=Struct)

PORT = 50051
_PROTO = "riva.client.proto"
_SECURE = ("https://", "grpcs://")
_CHANNEL = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5000),
)
"""Messages of any size; retries are the run's; a service that is back is found within seconds."""
_STATUS = {
    "INVALID_ARGUMENT": 400,
    "OUT_OF_RANGE": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "UNIMPLEMENTED": 404,
    "RESOURCE_EXHAUSTED": 429,
}
"""Status of gRPC → that of HTTP with the same meaning; any other is 500."""


class Speech(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++inference.extra_body.*` of both services; `metadata` goes with each call (`function-id` of a hosted one)."""

    language_code: str = "en-US"
    metadata: dict[str, str] = {}


class Recognition(Speech, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of `asr_nim`, by the names of Riva's own client. Times of words in the record are in seconds."""

    max_alternatives: int = 1
    profanity_filter: bool = False
    automatic_punctuation: bool = True
    no_verbatim_transcripts: bool = False
    word_time_offsets: bool = False
    boosted_lm_words: list[str] | None = None
    boosted_lm_score: float = 15.0
    speaker_diarization: bool = False
    diarization_max_speakers: int = 2
    start_history: int = 0
    start_threshold: float = 0.0
    stop_history: int = 0
    stop_history_eou: int = 0
    stop_threshold: float = 0.0
    stop_threshold_eou: float = 0.0
    custom_configuration: str = ""

    def __post_init__(self) -> None:
        if any(pair.count(":") != 1 for pair in self.pairs()):
            raise ValueError("custom_configuration: expected key:value,key:value")

    def pairs(self) -> list[str]:
        """Split the custom configuration into its `key:value` pairs."""
        return [pair.strip() for pair in self.custom_configuration.split(",") if pair.strip()]


class Synthesis(Speech, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of `tts_nim`. Without `voice` the service chooses one of the language; the prompt file is a voice to
    imitate; `output_filename` names the file of one row, below the folder of sounds."""

    voice: str | None = None
    sample_rate_hz: int = 22050
    zero_shot_audio_prompt_file: str | None = None
    zero_shot_quality: int = 20
    zero_shot_transcript: str | None = None
    custom_dictionary: dict[str, str] = {}
    output_filename: str | None = None


class RivaModel:
    """One service. The channel is opened by the first request, in the loop that sends it."""

    options: type[Speech] = Speech
    stub = ("", "")

    def __init__(self, endpoint: EndpointIdentity, *, kind: str, secure: bool, proxied: bool) -> None:
        self.name = endpoint.model
        self._endpoint, self._kind, self._secure, self._proxied = endpoint, kind, secure, proxied
        self._tunnel: PortForward | None = None
        self._channel: Any = None
        self._service: Any = None

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Raise ConfigError for settings that the service does not have, and for a wrong option."""
        neutral = Inference()
        names = (
            "temperature",
            "top_k",
            "min_p",
            "repetition_penalty",
            "top_logprobs",
            "reasoning_effort",
            "thinking_budget",
            "stream",
        )
        if tools or inference.endpoint_type != "chat":
            raise ConfigError(f"{self._kind} accepts neither tools nor texts: use ++inference.endpoint_type=chat.")
        if wrong := [name for name in names if getattr(inference, name) != getattr(neutral, name)]:
            raise ConfigError(
                f"{self._kind} does not sample, so ++inference.{wrong[0]} cannot be used.",
                hint="Leave it out; set options of the service with ++inference.extra_body.",
            )
        try:
            read_options(inference.extra_body, self.options)
        except ValueError as error:
            raise ConfigError(f"++inference.extra_body for {self._kind}: {error}.") from error

    async def complete(self, request: Request) -> Reply:
        """Return the service's reply to a request. Raises the HttpError family."""
        started = time.time()
        try:
            options: Any = read_options({**request.inference.extra_body, **request.extra_body}, self.options)
        except ValueError as error:
            raise BadRequestError(f"An option for {self._kind} is not valid: {error}.") from error
        reply = await self._ask(request.messages or [], options, request.inference.timeout)
        reply.model, reply.finish_reason = self.name, "stop"
        reply.started, reply.ended = started, time.time()
        return reply

    async def _ask(self, messages: Sequence[Message], options: Any, timeout: float) -> Reply:
        raise NotImplementedError

    def route_through(self, server: str, key_path: str | None) -> None:
        """Reach the service through an SSH host. Raises ConfigError, TransportError."""
        host, _, port = self._endpoint.address.rpartition(":")
        self._tunnel = PortForward(server, key_path, host.strip("[]"), int(port))

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
        if self._tunnel is not None:
            self._tunnel.close()

    async def _call(self, method: str, message: Any, options: Speech, timeout: float) -> Any:
        """Return the service's answer. `timeout` in seconds. Raises the HttpError family."""
        grpc: Any = importlib.import_module("grpc")
        key = self._endpoint.key
        sent = {**({"authorization": f"Bearer {key}"} if key else {}), **options.metadata}
        try:
            if self._channel is None:
                self._open()
            return await getattr(self._service, method)(message, timeout=timeout, metadata=tuple(sent.items()))
        except grpc.RpcError as error:
            raise self._error(error.code().name, error.details() or "") from error

    def _open(self) -> None:
        auth: Any = importlib.import_module("riva.client.auth")
        options: list[tuple[str, int | str]] = [
            *_CHANNEL,
            ("grpc.enable_http_proxy", int(self._proxied and self._tunnel is None)),
        ]
        address = self._endpoint.address
        if self._tunnel is not None:
            host = address.rpartition(":")[0].strip("[]")
            options += [("grpc.ssl_target_name_override", host), ("grpc.default_authority", address)]
            address = f"127.0.0.1:{self._tunnel.port}"
        self._channel = auth.create_channel(use_ssl=self._secure, uri=address, options=options, use_aio=True)
        module, name = self.stub
        self._service = getattr(importlib.import_module(f"{_PROTO}.{module}"), name)(self._channel)

    def _error(self, code: str, details: str) -> HttpError:
        where = self._endpoint.address
        if code == "UNAVAILABLE":
            return TransportError(f"{where} cannot be reached: {self._endpoint.scrub(details)[:500]}")
        if code == "DEADLINE_EXCEEDED":
            return RequestTimeoutError(f"{where} gave no answer within inference.timeout.")
        return error_for(_STATUS.get(code, 500), Refusal(f"{code}: {details}"), self._endpoint)


class AsrModel(RivaModel):
    """The sound of a request's last message with one → its transcript."""

    options = Recognition
    stub = ("riva_asr_pb2_grpc", "RivaSpeechRecognitionStub")

    async def _ask(self, messages: Sequence[Message], options: Any, timeout: float) -> Reply:
        asr: Any = importlib.import_module("riva.client.asr")
        proto: Any = importlib.import_module(f"{_PROTO}.riva_asr_pb2")
        sound = _sound_of(messages)
        if sound is None:
            await self._call(
                "GetRivaSpeechRecognitionConfig", proto.RivaSpeechRecognitionConfigRequest(), options, timeout
            )
            raise BadRequestError(
                f"The request has no audio for {self._kind}: name its field as the prompt's audio_field."
            )
        config = proto.RecognitionConfig(
            language_code=options.language_code,
            max_alternatives=options.max_alternatives,
            profanity_filter=options.profanity_filter,
            enable_automatic_punctuation=options.automatic_punctuation,
            verbatim_transcripts=not options.no_verbatim_transcripts,
            enable_word_time_offsets=options.word_time_offsets,
            custom_configuration=dict(pair.split(":") for pair in options.pairs()),
        )
        asr.add_word_boosting_to_config(config, options.boosted_lm_words, options.boosted_lm_score)
        asr.add_speaker_diarization_to_config(
            config, options.speaker_diarization, options.diarization_max_speakers
        )
        asr.add_endpoint_parameters_to_config(
            config,
            options.start_history,
            options.start_threshold,
            options.stop_history,
            options.stop_history_eou,
            options.stop_threshold,
            options.stop_threshold_eou,
        )
        message = proto.RecognizeRequest(config=config, audio=sound)
        answer = await self._call("Recognize", message, options, timeout)
        heard = [result.alternatives[0] for result in answer.results if result.alternatives]
        words = [_word_row(word) for result in heard for word in result.words]
        text = " ".join(filter(None, (result.transcript.strip() for result in heard)))
        return Reply(text=text, raw_message={"words": words} if words else None)


class TtsModel(RivaModel):
    """The text of the last message → sound, as WAV in base64: `raw_message.audio`, of the shape of OpenAI's."""

    options = Synthesis
    stub = ("riva_tts_pb2_grpc", "RivaSpeechSynthesisStub")

    async def _ask(self, messages: Sequence[Message], options: Any, timeout: float) -> Reply:
        tts: Any = importlib.import_module("riva.client.tts")
        proto: Any = importlib.import_module(f"{_PROTO}.riva_tts_pb2")
        audio: Any = importlib.import_module(f"{_PROTO}.riva_audio_pb2")
        content = messages[-1].content if messages else None
        if not isinstance(content, str) or not content.strip():
            raise BadRequestError(f"The request has no text for {self._kind}.")
        message = proto.SynthesizeSpeechRequest(
            text=content,
            language_code=options.language_code,
            encoding=audio.AudioEncoding.LINEAR_PCM,
            sample_rate_hz=options.sample_rate_hz,
            voice_name=options.voice or "",
        )
        if options.zero_shot_audio_prompt_file is not None:
            message.zero_shot_data.audio_prompt = _read_file(options.zero_shot_audio_prompt_file)
            message.zero_shot_data.quality = options.zero_shot_quality
            message.zero_shot_data.transcript = options.zero_shot_transcript or ""
        tts.add_custom_dictionary_to_config(message, options.custom_dictionary)
        answer = await self._call("Synthesize", message, options, timeout)
        if not answer.audio:
            raise ServerError(f"{self._endpoint.address} sent no audio.")
        try:
            data, seconds = _as_wav(answer.audio, options.sample_rate_hz)
        except (wave.Error, EOFError, ZeroDivisionError) as error:
            raise ServerError(f"{self._endpoint.address} sent a broken WAV file: {error}") from error
        audio_fields = {"data": base64.b64encode(data).decode("ascii"), "format": "wav", "seconds": seconds}
        return Reply(text="", raw_message={"audio": audio_fields})


def make_asr(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> AsrModel:
    """Return the model for speech recognition. Raises ConfigError where the library is not installed."""
    return _make_model(AsrModel, config, environ)


def make_tts(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> TtsModel:
    """Return the model for speech synthesis. Raises ConfigError where the library is not installed."""
    return _make_model(TtsModel, config, environ)


R = TypeVar("R", bound=RivaModel)


def _make_model(kind: type[R], config: ServerConfig, environ: Mapping[str, str]) -> R:
    try:
        importlib.import_module("riva.client")
    except ImportError as error:
        raise ConfigError(
            f"server_type={config.server_type} needs the library nvidia-riva-client.",
            hint="Run: pip install 'newskills[speech]'",
        ) from error
    address, secure = _address_of(config)
    if secure:
        key, source = key_of(config, environ, *MODELS.properties(config.server_type).keys)
        proxy = proxy_for(f"https://{address}", environ)
    else:
        key, source = key_of(config, environ)
        proxy = proxy_for(f"http://{address}", environ)
    endpoint = EndpointIdentity(address, config.model or config.server_type, key, source)
    return kind(endpoint, kind=config.server_type, secure=secure, proxied=proxy is not None)


def _address_of(config: ServerConfig) -> tuple[str, bool]:
    """Return host and port of the service, and whether it speaks TLS."""
    port = PORT if config.port == DEFAULT_PORT else config.port
    url = config.base_url or f"{config.host}:{port}"
    secure = url.startswith(_SECURE)
    address = url.partition("://")[2] if "://" in url else url
    address = address.partition("/")[0]
    if ":" in address.rpartition("]")[2]:
        return address, secure
    return f"{address}:{443 if secure else PORT}", secure


def read_options(values: Row, kind: type[S]) -> S:
    """Read the options as `kind`. Raises ValueError that says which option is wrong, or which there are."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        if "unknown field" in str(error):
            fields_hint = f" (the choices are {', '.join(kind.__struct_fields__)})"
        else:
            fields_hint = ""
        raise ValueError(f"{type_fault(error, values)}{fields_hint}") from error


def _sound_of(messages: Sequence[Message]) -> bytes | None:
    """Return the sound of the last message that has one; None: there is none. Raises BadRequestError for data that is
    not base64."""
    for message in reversed(messages):
        if not isinstance(message.content, list):
            continue
        for part in message.content:
            if part.get("type") == "input_audio":
                try:
                    return base64.b64decode(part["input_audio"]["data"], validate=True)
                except (KeyError, TypeError, binascii.Error) as error:
                    raise BadRequestError("The audio of a request is not base64.") from error
    return None


def _word_row(word: Any) -> Row:
    row: Row = {
        "word": word.word,
        "start_time": word.start_time / 1000,
        "end_time": word.end_time / 1000,
        "confidence": word.confidence,
    }
    if word.speaker_tag:
        row["speaker"] = word.speaker_tag
    return row


def _read_file(path: str) -> bytes:
    """Read the bytes of a file. Raises BadRequestError."""
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise BadRequestError(f"Cannot read {path} (zero_shot_audio_prompt_file): {error.strerror}.") from error


def _as_wav(sound: bytes, rate: int) -> tuple[bytes, float]:
    """Return (a WAV file, its seconds) of 16 bit samples in one channel, or of a file that already is one."""
    if sound[:4] == b"RIFF":
        with wave.open(io.BytesIO(sound)) as wave_file:
            return sound, wave_file.getnframes() / wave_file.getframerate()
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(rate)
        made.writeframes(sound)
    return file.getvalue(), len(sound) / 2 / rate
