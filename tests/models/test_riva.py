# SPDX-License-Identifier: Apache-2.0
"""Speech services over their real protocol, against a double on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import wave
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write

from newskills.base.records import Reply

pytest.importorskip("riva.client", reason="no nvidia-riva-client here: pip install 'newskills[speech]'")
pytest.importorskip("soundfile", reason="no soundfile here: pip install 'newskills[speech]'")

from grpc import StatusCode
from tests.server.riva import RivaServer

from newskills.base.errors import (
    AuthError,
    BadRequestError,
    ConfigError,
    HttpError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from newskills.base.records import Inference, Message, Request
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.models.errors import ModelNotFoundError
from newskills.models.serving import ServeSpec, serve_argv


def sound(path: Path, samples: int) -> bytes:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(b"\1\0" * samples)
    return path.read_bytes()


def generate(
    folder: Path, kind: str, address: str, *more: str, env: dict[str, str] | None = None
) -> CompletedProcess[str]:
    line = f"ns generate --server_type={kind} --model=m --server_address={address} --input_file=in.jsonl"
    return ns(" ".join([line, "--output_dir=out", *more]), cwd=folder, env=env)


@pytest.fixture
def sounds(tmp_path: Path) -> tuple[Path, dict[bytes, str]]:
    """in.jsonl names two files beside it; the second goes by the other field's name."""
    data = {sound(tmp_path / f"{n}.wav", 1000 * n): f"sound {n}" for n in (1, 2)}
    write(tmp_path / "in.jsonl", [{"audio_path": "1.wav"}, {"audio_file": "2.wav", "language_code": "de-DE"}])
    return tmp_path, data


def test_transcripts_are_generations(sounds: tuple[Path, dict[bytes, str]]) -> None:
    folder, data = sounds
    with RivaServer(lambda request: f"{data[request.audio]}|and more") as server:
        options = "++inference.extra_body.word_time_offsets=true ++inference.extra_body.boosted_lm_words=[Riva]"
        nowhere = {"http_proxy": "http://127.0.0.1:9"}
        done = generate(folder, "asr_nim", f"grpc://{server.address}", options, env=nowhere)
    assert done.returncode == 0, done.stderr
    first, second = rows_of(folder / "out/output.jsonl")
    assert [row["generation"] for row in (first, second)] == ["sound 1 and more", "sound 2 and more"]
    assert [row["audio_file"] for row in (first, second)] == ["1.wav", "2.wav"]
    assert first["words"][1] == {"word": "1", "start_time": 0.25, "end_time": 0.45, "confidence": 0.0}
    configs = {data[request.audio]: request.config for request in server.requests}
    assert [configs[f"sound {n}"].language_code for n in (1, 2)] == ["en-US", "de-DE"]
    assert configs["sound 1"].speech_contexts[0].phrases == ["Riva"]
    assert configs["sound 1"].enable_automatic_punctuation


def test_a_speech_nim_is_started_here(sounds: tuple[Path, dict[bytes, str]]) -> None:
    folder, _ = sounds
    line = (
        "ns generate --server_type=asr_nim --model=parakeet --server_gpus=0 --input_file=in.jsonl --output_dir=out"
    )
    root = Path(__file__).parents[2]
    words = f"--server_entrypoint '{sys.executable} -m tests.server.speech_nim'"
    done = ns(
        f"{line} {words} --server_args '--nim-tags-selector name=parakeet,mode=ofl'",
        cwd=folder,
        env={"PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 0, done.stderr
    assert [row["generation"] for row in rows_of(folder / "out/output.jsonl")] == ["name=parakeet,mode=ofl"] * 2


def test_an_argument_that_no_speech_nim_has_is_named() -> None:
    spec = ServeSpec(model="m", server_type="tts_nim", port=9000, extra_args=["--voice=x"])
    with pytest.raises(ConfigError, match="has no argument --voice=x; it has --nim-tags-selector"):
        serve_argv(spec)


def test_sounds_lie_beside_the_output(tmp_path: Path) -> None:
    rows = [
        {"text": "Hello.", "voice": "Sofia", "sample_rate_hz": 8000},
        {"prompt": "Bye", "output_filename": "second.wav"},
    ]
    write(tmp_path / "in.jsonl", rows)
    with RivaServer() as server:
        done = generate(tmp_path, "tts_nim", server.address, "++inference.extra_body.language_code=en-GB")
    assert done.returncode == 0, done.stderr
    first, second = rows_of(tmp_path / "out/output.jsonl")
    assert second["generation"] == second["audio_file"] == "audio/second.wav"
    assert first["generation"].startswith("audio/")
    assert first["duration"] == pytest.approx(600 / 8000)
    with wave.open(str(tmp_path / "out" / first["generation"])) as file:
        assert (file.getframerate(), file.getnframes(), file.getsampwidth()) == (8000, 600, 2)
    asked = {request.text: request for request in server.requests}
    assert (asked["Hello."].voice_name, asked["Hello."].language_code) == ("Sofia", "en-GB")
    with RivaServer(lambda request: str(len(request.audio))) as server:
        line = "ns generate --server_type=asr_nim --model=m --input_file=out/output.jsonl --output_dir=back"
        back = ns(f"{line} --server_address={server.address}", cwd=tmp_path)
    assert back.returncode == 0, back.stderr
    size = (tmp_path / "out" / first["generation"]).stat().st_size
    assert rows_of(tmp_path / "back/output.jsonl")[0]["generation"] == str(size)


def test_what_the_service_fails_at_is_unscored(sounds: tuple[Path, dict[bytes, str]]) -> None:
    folder, data = sounds
    rows = [{"audio_path": f"{n}.wav", "expected_answer": f"sound {n}", "task_type": "ASR"} for n in (1, 2)]
    write(folder / "in.jsonl", rows)

    def refuse(request: Any, before: int) -> tuple[StatusCode, str] | None:
        return (StatusCode.INVALID_ARGUMENT, "too loud") if data[request.audio] == "sound 2" else None

    with RivaServer(lambda request: data[request.audio], refuse) as server:
        done = generate(folder, "asr_nim", server.address, "++eval_type=audio ++server.enable_soft_fail=true")
    first, second = rows_of(folder / "out/output.jsonl")
    assert first["generation"] == "sound 1"
    assert "1 unscored" in done.stdout, done.stdout + done.stderr
    assert "provider" in done.stdout
    assert "too loud" in str(second)


def test_failures_in_passing_are_tried_again(sounds: tuple[Path, dict[bytes, str]]) -> None:
    folder, data = sounds

    def refuse(_: object, before: int) -> tuple[StatusCode, str] | None:
        return (StatusCode.UNAVAILABLE, "starting") if before < 2 else None

    with RivaServer(lambda request: data[request.audio], refuse) as server:
        done = generate(folder, "asr_nim", server.address)
    assert done.returncode == 0, done.stderr
    assert [row["generation"] for row in rows_of(folder / "out/output.jsonl")] == ["sound 1", "sound 2"]


STATUSES = [
    (StatusCode.UNAVAILABLE, TransportError),
    (StatusCode.DEADLINE_EXCEEDED, RequestTimeoutError),
    (StatusCode.RESOURCE_EXHAUSTED, RateLimitError),
    (StatusCode.INTERNAL, ServerError),
    (StatusCode.INVALID_ARGUMENT, BadRequestError),
    (StatusCode.UNAUTHENTICATED, AuthError),
    (StatusCode.NOT_FOUND, ModelNotFoundError),
]


def asked(kind: str, address: str, request: Request, **server: str) -> Reply:
    async def once() -> Reply:
        config = ServerConfig(server_type=kind, model="m", base_url=address, **server)
        model = make_model(config, concurrency=1, environ={"MY_KEY": "s3cret-key"})
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(once())


SPOKEN = Request(messages=[Message(role="user", content="Hello")])


@pytest.mark.parametrize(("status", "error"), STATUSES)
def test_a_status_is_an_error_of_the_family(status: StatusCode, error: type[HttpError]) -> None:
    with RivaServer(refuse=lambda *_: (status, "because")) as server, pytest.raises(error) as raised:
        asked("tts_nim", server.address, SPOKEN)
    assert raised.value.cause in ("provider", "timeout")


def test_keys_and_metadata_go_with_the_call_and_into_no_message() -> None:
    def refuse(*_: object) -> tuple[StatusCode, str] | None:
        return StatusCode.INTERNAL, "I saw s3cret-key"

    request = Request(messages=SPOKEN.messages, inference=Inference(extra_body={"metadata": {"function-id": "f"}}))
    with RivaServer(refuse=refuse) as server, pytest.raises(ServerError) as raised:
        asked("tts_nim", server.address, request, api_key_env_var="MY_KEY")
    assert server.metadata[0]["authorization"] == "Bearer s3cret-key"
    assert server.metadata[0]["function-id"] == "f"
    assert "s3cret" not in str(raised.value)


def test_a_request_without_sound_shows_whether_the_service_lives() -> None:
    with RivaServer() as server:
        with pytest.raises(BadRequestError, match="audio_field"):
            asked("asr_nim", server.address, SPOKEN)
        address = server.address
    with pytest.raises(TransportError):
        asked("asr_nim", address, SPOKEN)


def test_silence_is_an_empty_transcript(tmp_path: Path) -> None:
    part = {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"x").decode(), "format": "wav"}}
    with RivaServer(lambda _: "") as server:
        reply = asked("asr_nim", server.address, Request(messages=[Message(role="user", content=[part])]))
    assert reply.text == ""


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("tts_nim", "++inference.temperature=0.7", "does not sample"),
        ("tts_nim", "++inference.extra_body.pitch=2", "the choices are language_code"),
        ("tts_nim", "++solver=chat", "does not keep"),
        ("asr_nim", "++inference.extra_body.custom_configuration=loud", "key:value"),
        ("asr_nim", "--server_gpus=1", "--server_gpus"),
    ],
)
def test_what_cannot_be_honoured_is_refused(tmp_path: Path, kind: str, words: str, said: str) -> None:
    write(tmp_path / "in.jsonl", [{"text": "Hello"}])
    done = generate(tmp_path, kind, "127.0.0.1:9", words)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr


@pytest.mark.parametrize(
    "row", [{"voice": 3}, {"output_filename": "../elsewhere.wav"}, {"output_filename": "/x.wav"}]
)
def test_a_row_with_a_wrong_option_is_named(tmp_path: Path, row: dict[str, Any]) -> None:
    write(tmp_path / "in.jsonl", [{"text": "Hello", **row}])
    done = generate(tmp_path, "tts_nim", "127.0.0.1:9")
    assert done.returncode == 2, done.stdout
    assert next(iter(row)) in done.stderr
    assert not (tmp_path / "out/audio").exists()


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "riva.client", None)
    with pytest.raises(ConfigError, match=r"newskills\[speech\]"):
        make_model(ServerConfig(server_type="asr_nim", model="m"), concurrency=1, environ={})


@pytest.mark.mirror
def test_benchmarks_of_speech_are_heard_by_the_service(tmp_path: Path, mirror: Path) -> None:
    done = ns(f"ns prepare_data fsdd --data_dir data --offline --mirror {mirror}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [file] = (tmp_path / "data/fsdd").glob("*.jsonl")
    said = {
        (file.parent / row["messages"][0]["audio"]["path"]).read_bytes(): row["expected_answer"]
        for row in rows_of(file)
    }
    with RivaServer(lambda request: said[request.audio]) as server:
        line = f"ns eval --server_type=asr_nim --model=m --server_address={server.address} --benchmarks=fsdd"
        done = ns(f"{line} --data_dir=data --output_dir=out", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "out/eval-results/fsdd/metrics.json").read_text())["fsdd"]["pass@1"]
    assert (found["num_entries"], found["success_rate"], found["wer"]) == (300, 100.0, 0.0)
