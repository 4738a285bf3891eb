# SPDX-License-Identifier: Apache-2.0
"""CritPt's two turns on the real problems, and what is handed to the service, played by a server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

import newskills

CODE = "def answer():\n    return 4"
VERDICT = {"accuracy": 0.1, "timeout_rate": 0.0, "server_timeout_count": 1, "judge_error_count": 2}


def graded(**more: Any) -> list[dict[str, Any]]:
    rows = [{"problem_id": f"Challenge_{n}_main", "generated_code": CODE} for n in range(70)]
    return [{**row, **more} for row in rows]


class Service(ThreadingHTTPServer):
    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = status
        self.asked: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/v2/critpt/evaluate"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append((self.path, self.headers["x-api-key"], json.loads(body)))  # type: ignore[attr-defined]
        told = json.dumps(VERDICT if self.server.status == 200 else {"error": "rate limit"}).encode()  # type: ignore[attr-defined]
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[Callable[..., Service]]:
    made = []

    def start(status: int = 200) -> Service:
        server = Service(status)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.append(server)
        return server

    yield start
    for server in made:
        server.shutdown()
        server.server_close()


def test_a_batch_is_sent_once(
    tmp_path: Path, service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTIFICIAL_ANALYSIS_API_KEY", "secret")
    write(tmp_path / "output.jsonl", graded())
    server = service()
    words = f"ns critpt submit output.jsonl --output_file=answer.json --model_name=mine --api_url={server.url}"
    done = ns(words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "accuracy 10.0 % (" in done.stdout
    assert "3 unscored by the service" in done.stdout
    ((path, key, body),) = server.asked
    assert (path, key, set(body)) == ("/api/v2/critpt/evaluate", "secret", {"submissions", "batch_metadata"})
    assert body["submissions"][0] == {
        "problem_id": "Challenge_0_main",
        "generated_code": f"```python\n{CODE}\n```",
        "model": "mine",
        "generation_config": {},
    }
    assert json.loads((tmp_path / "answer.json").read_text()) == VERDICT
    again = ns(words, cwd=tmp_path)
    assert again.returncode == 2
    assert "ten batches a day" in again.stderr
    assert len(server.asked) == 1
    sent = newskills.critpt(
        action="submit", input_file=tmp_path / "output.jsonl", output_file=tmp_path / "2.json", api_url=server.url
    )
    assert sent.accuracy is not None
    assert (round(sent.accuracy.value), sent.accuracy.unscored, sent.output.is_file()) == (10, 3, True)
    exported = ns("ns critpt export output.jsonl --output_file=batch.json --model_name=mine", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert json.loads((tmp_path / "batch.json").read_text()) == body


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (graded()[:69], "There are 69 problems; the service accepts only all 70 at once"),
        (graded()[:69] + graded()[:1], "or appears twice"),
        (graded(error="500"), "a lost answer must not be sent as a wrong one"),
        ([{"problem_id": "x"}], "the field generated_code is missing"),
        (graded(), "ARTIFICIAL_ANALYSIS_API_KEY is not set"),
    ],
)
def test_what_is_not_sent(
    tmp_path: Path,
    service: Callable[..., Service],
    monkeypatch: pytest.MonkeyPatch,
    rows: list[dict[str, Any]],
    said: str,
) -> None:
    monkeypatch.delenv("ARTIFICIAL_ANALYSIS_API_KEY", raising=False)
    write(tmp_path / "output.jsonl", rows)
    server = service()
    done = ns(f"ns critpt submit output.jsonl --output_file=a.json --api_url={server.url}", cwd=tmp_path)
    assert done.returncode != 0
    assert said in done.stderr
    assert not server.asked


def test_a_refusal(tmp_path: Path, service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTIFICIAL_ANALYSIS_API_KEY", "secret")
    write(tmp_path / "output.jsonl", graded())
    done = ns(f"ns critpt submit output.jsonl --output_file=a.json --api_url={service(429).url}", cwd=tmp_path)
    assert done.returncode == 1
    assert 'refused the request (429): {"error": "rate limit"}' in done.stderr
    assert not (tmp_path / "a.json").exists()


@pytest.mark.mirror
def test_two_turns_over_the_real_problems(tmp_path: Path, fake_server: FakeServerFactory, mirror: Path) -> None:
    prepared = ns(f"ns prepare_data critpt --data_dir data --mirror {mirror} --offline", cwd=tmp_path)
    assert prepared.returncode == 0, prepared.stderr
    table = {"Write your result into this function": f"```python\n{CODE}\n```"}
    server = fake_server(Script(answer=Answer(kind="table", table=table, text="The result is 4.", template="%s")))
    done = ns(
        f"ns eval --benchmarks=critpt --server_type=vllm --model=fake --server_address={server.url} --data_dir=data "
        "--output_dir=out --accept_lost=100 ++inference.repetition_penalty=1.0",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert len(server.records) == 140
    output = tmp_path / "out/eval-results/critpt/output.jsonl"
    row = rows_of(output)[0]
    assert row["turn_answers"] == ["The result is 4.", f"```python\n{CODE}\n```"]
    second = server.records[-1].body["messages"]
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    exported = ns(f"ns critpt export {output} --output_file=batch.json", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert len(json.loads((tmp_path / "batch.json").read_text())["submissions"]) == 70
