# SPDX-License-Identifier: Apache-2.0
"""Long sound in pieces: real WAV and FLAC, a real server."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

from newskills.base.aio import run
from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Message, Request, Row, Sample
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.solve.chat import MAIN, ChatSolver, ChatSolverOptions
from newskills.solve.tasks.sound import in_pieces

soundfile = pytest.importorskip("soundfile")
numpy = pytest.importorskip("numpy")
RATE = 8000


def sound(seconds: float, kind: str = "WAV", channels: int = 1) -> bytes:
    """A ramp, so that each piece can be told from the others."""
    frames = int(seconds * RATE)
    ramp = numpy.linspace(-0.9, 0.9, frames, dtype="float32").reshape(-1, 1).repeat(channels, axis=1)
    file = io.BytesIO()
    soundfile.write(file, ramp, RATE, format=kind, subtype="PCM_16")
    return file.getvalue()


def part(data: bytes, kind: str = "wav") -> Row:
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode(), "format": kind}}


def request(*parts: Row) -> Request:
    return Request(messages=[Message(role="user", content=[*parts, {"type": "text", "text": "Write it down."}])])


def samples_of(one: Request) -> Any:
    content: Any = (one.messages or [])[0].content
    assert content[-1]["text"] == "Write it down."
    return soundfile.read(io.BytesIO(base64.b64decode(content[0]["input_audio"]["data"])), dtype="int16")[0]


@pytest.mark.parametrize(
    ("seconds", "lengths"),
    [(29.9, [29.9]), (30.0, [30.0]), (30.2, [30.2]), (31.0, [30.0, 1.0]), (75.0, [30.0, 30.0, 15.0])],
)
@pytest.mark.parametrize(("kind", "channels"), [("WAV", 1), ("FLAC", 2)])
def test_pieces_are_the_whole(seconds: float, lengths: list[float], kind: str, channels: int) -> None:
    data = sound(seconds, kind, channels)
    pieces = in_pieces(request(part(data, kind.lower())), 30.0)
    found = [samples_of(piece) for piece in pieces]
    assert [len(one) / RATE for one in found] == pytest.approx(lengths)
    whole = soundfile.read(io.BytesIO(data), dtype="int16")[0]
    assert numpy.array_equal(numpy.concatenate(found), whole)


def test_what_is_not_cut() -> None:
    for asked in (request(), request(part(sound(40)), part(sound(40))), Request(prompt="x")):
        assert in_pieces(asked, 30.0) == [asked]
    with pytest.raises(DataError, match="cannot be read"):
        in_pieces(request(part(b"RIFF nonsense")), 30.0)


@pytest.mark.parametrize(("types", "requests"), [(("ASR",), 3), (("AST",), 1), ((), 1)])
def test_texts_are_joined(fake_server: FakeServerFactory, types: tuple[str, ...], requests: int) -> None:
    server = fake_server(Script(answer=Answer(kind="sequence", texts=("one", "two ", "three"))))
    options = ChatSolverOptions(pieces_of=types, piece_seconds=30.0)
    solver = ChatSolver(load_prompt(None, PromptOverrides(prompt_format="openai")), options)
    row = {
        "task_type": "ASR",
        "messages": [{"role": "user", "content": request(part(sound(75))).messages[0].content}],
    }

    async def main() -> Row:
        model = make_model(
            ServerConfig(server_type="vllm", model="fake", base_url=server.base_url), concurrency=1, environ={}
        )
        sample = Sample(id="1", row=row)
        asked = Request(messages=[Message(role="user", content=row["messages"][0]["content"])])
        try:
            return (await solver.solve(sample, asked, Kit(models={MAIN: model}))).fields
        finally:
            await model.close()

    fields = run(main)
    assert len(server.records) == requests
    assert len(fields["generation"].split()) == requests
    assert fields.get("num_audio_pieces", 1) == requests
