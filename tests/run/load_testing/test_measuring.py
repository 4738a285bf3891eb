# SPDX-License-Identifier: Apache-2.0
"""One level against the wires of hosted services, with keys, and against servers that break off or disappear."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.base.http._loopback import Play, always, events, loopback, response, run

from newskills.base.errors import ConfigError, ConnectError, StorageError
from newskills.base.records import Inference, Message, Request, Row
from newskills.base.store import AppendLog
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.run.load_testing.measuring import GIVE_UP, LoadGenerator
from newskills.run.load_testing.records import LOG, LoadLevel, MeasuredLevel, read_levels

# A measurement collects garbage before it begins, also what earlier tests left open.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
KEYS = {"ANTHROPIC_API_KEY": "secret-key", "GEMINI_API_KEY": "other-key"}
ANTHROPIC = (
    {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)
USAGE = {"promptTokenCount": 3, "candidatesTokenCount": 2}
GEMINI = (
    {"candidates": [{"content": {"parts": [{"text": "hel"}]}}]},
    {"candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}], "usageMetadata": USAGE},
)


async def measure(
    play: Play, server_type: str, folder: Path, load: LoadLevel, *, path: str = "", **inference: Any
) -> MeasuredLevel:
    async with loopback(play) as place:
        config = ServerConfig(server_type=server_type, model="m", base_url=place.url + path)
        model = make_model(config, concurrency=4, environ=KEYS)
        settings = Inference(**{"stream": True, "tokens_to_generate": 9, **inference})
        request = Request(messages=[Message(role="user", content="hi")], inference=settings)
        log = AppendLog(folder / LOG)
        try:
            return await LoadGenerator(model, log, load).run(itertools.repeat(request), {"model": "m"})
        finally:
            log.close()
            await model.close()


@pytest.mark.parametrize(("server_type", "stream"), [("anthropic", ANTHROPIC), ("gemini", GEMINI)])
def test_hosted_services_are_timed(server_type: str, stream: tuple[Row, ...], tmp_path: Path) -> None:
    load = LoadLevel(kind="concurrency", value=2, requests=6)
    level = run(measure(always(events(*stream, done=False)), server_type, tmp_path, load))
    assert len(level.requests) == 6
    for each in level.requests:
        assert (each.error, each.input_tokens, each.output_tokens, len(each.tokens)) == ("", 3, 2, 2)
        assert each.finish_reason == "stop"
    (read,) = read_levels(tmp_path / LOG).values()
    assert read.requests == level.requests
    assert read.end == level.end


def test_a_key_that_is_refused_is_no_part_of_the_records(tmp_path: Path) -> None:
    refusal = response(b'{"error": {"message": "Incorrect API key provided: secret-key."}}', "401 Unauthorized")
    load = LoadLevel(kind="rate", value=0, requests=3)
    level = run(measure(always(refusal), "anthropic", tmp_path, load))
    assert {(each.error, each.status) for each in level.requests} == {("key refused", 401)}
    assert all("Incorrect API key" in each.message for each in level.requests)
    assert b"secret-key" not in (tmp_path / LOG).read_bytes()


def test_a_stream_that_breaks_off_keeps_what_came(tmp_path: Path) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
    load = LoadLevel(kind="concurrency", value=1, requests=2)
    level = run(measure(always(events(chunk, chunk, done=False)), "vllm", tmp_path, load, path="/v1"))
    assert {(each.error, len(each.tokens)) for each in level.requests} == {("connection lost", 2)}


def test_a_server_that_is_gone_ends_the_level(tmp_path: Path) -> None:
    async def work(load: LoadLevel) -> None:
        config = ServerConfig(server_type="vllm", model="m", base_url="http://127.0.0.1:9/v1")
        model = make_model(config, concurrency=4, environ={})
        log = AppendLog(tmp_path / f"{load.kind}.jsonl")
        request = Request(messages=[Message(role="user", content="hi")])
        with pytest.raises(ConnectError):
            await LoadGenerator(model, log, load).run(itertools.repeat(request), {})
        log.close()
        await model.close()

    for load in (
        LoadLevel(kind="concurrency", value=4, requests=10_000),
        LoadLevel(kind="rate", value=0, requests=10_000, most=4),
    ):
        run(work(load))
        (level,) = read_levels(tmp_path / f"{load.kind}.jsonl").values()
        assert GIVE_UP <= len(level.requests) < GIVE_UP + 8
        assert level.end is None


def test_a_full_disk_ends_the_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, writes = AppendLog.write, itertools.count()

    def write(log: AppendLog) -> None:
        if next(writes) == 4:
            raise StorageError("No space left on the device.")
        whole(log)

    monkeypatch.setattr(AppendLog, "write", write)
    play = always(events(*ANTHROPIC, done=False))
    with pytest.raises(StorageError, match="No space left"):
        run(measure(play, "anthropic", tmp_path, LoadLevel(kind="concurrency", value=2, requests=1000)))
    assert next(writes) < 12


def test_a_setting_that_the_backend_refuses_ends_the_level(tmp_path: Path) -> None:
    load = LoadLevel(kind="concurrency", value=2, requests=4)
    with pytest.raises(ConfigError, match=r"inference\.stream"):
        run(measure(always(b""), "megatron", tmp_path, load))
