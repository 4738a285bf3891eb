# SPDX-License-Identifier: Apache-2.0
"""`++inference.cache_prompt`, against a double of Anthropic's API that caches as the real one does: what is marked is
kept by its exact content (tools, system, messages, in this order), and the longest kept beginning is read."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import TypeAdapter
from tests.base.http._loopback import replies, run
from tests.commands.running import ns, rows_of
from tests.models._openai_wire import CHAT
from tests.models.test_thinking_budget import ask as sent_to

from newskills.base.environment import ExecutedCommand
from newskills.base.records import Inference, Message, Request, Row, TokenPrices, Usage
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.run.engine.build import chat_options
from newskills.run.planning.config import GenerationConfig
from newskills.solve.agents.bash import BashAgent, BashAgentConfig
from newskills.solve.agents.options import AgentOptions, Trajectory

MARK = {"type": "ephemeral"}
MODEL = "claude-haiku-4-5"


class CachingServer(ThreadingHTTPServer):
    """Answers with a command, or with a number where no tools are offered; a character is a token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), CachingHandler)
        self.bodies: list[Row] = []
        self._kept: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def used(self, body: Row) -> Row:
        """Return the usage of a request, and keep what it marks."""
        prefix, marked, hit = "", [], 0
        for block in blocks_of(body):
            plain = {name: value for name, value in block.items() if name != "cache_control"}
            prefix += json.dumps(plain)
            hit = len(prefix) if prefix in self._kept else hit
            marked += [prefix] if "cache_control" in block else []
        assert len(marked) <= 4  # as the API demands
        written = max((len(text) for text in marked if len(text) > hit), default=hit) - hit
        self._kept.update(marked)
        rest = len(prefix) - hit - written
        counts = {"cache_read_input_tokens": hit, "cache_creation_input_tokens": written}
        return {"input_tokens": rest, "output_tokens": 10, **counts}


class CachingHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = cast("CachingServer", self.server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.bodies.append(body)
        content: Row = {"type": "text", "text": "The answer is \\boxed{4}."}
        if body.get("tools"):
            turn = sum(message["role"] == "assistant" for message in body["messages"])
            command = f"echo {turn}" if turn < 4 else "echo SUBMIT_CHANGES"
            content = {"type": "tool_use", "id": f"t{turn}", "name": "bash", "input": {"command": command}}
        answer = {"content": [content], "stop_reason": "end_turn", "usage": server.used(body)}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[CachingServer]:
    with CachingServer() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def blocks_of(body: Row) -> list[Row]:
    """Return the blocks in the order in which the API reads them."""
    turns = [{"role": turn["role"], **block} for turn in body["messages"] for block in turn["content"]]
    return [*body.get("tools", ()), *body.get("system", ()), *turns]


class Shell:
    """Runs nothing; says what it was told."""

    async def execute(
        self, command: str, *, timeout: float, stdin: bytes = b"", max_output: int = 0
    ) -> ExecutedCommand:
        return ExecutedCommand(status="completed", output=command[5:].encode() + b"\n", exit_code=0)

    async def copy_in(self, source: Path, target: str) -> None: ...

    async def copy_out(self, source: str, target: Path, *, max_bytes: int) -> None: ...

    async def stop(self) -> None: ...


def agent_at(server: CachingServer, cache_prompt: str) -> Trajectory:
    inference = Inference(tokens_to_generate=99, cache_prompt=cast("Any", cache_prompt))
    config = ServerConfig(server_type="anthropic", model=MODEL, base_url=server.url)

    async def work() -> Trajectory:
        model = make_model(config, concurrency=1, environ={"ANTHROPIC_API_KEY": "k"})
        agent = BashAgent(AgentOptions(agent="bash"), BashAgentConfig())
        messages = [Message(role="system", content="You work."), Message(role="user", content="Do it.")]
        request = agent.prepared(Request(messages=messages, inference=inference))
        try:
            return await agent.work(request, model, Shell(), {})
        finally:
            await model.close()

    return asyncio.run(work())


def test_the_history_of_an_agent_is_read_from_the_cache(server: CachingServer) -> None:
    """Each request begins with the bytes of the one before, whose marked beginning it reads."""
    used = agent_at(server, "auto")
    assert (used.ended, len(server.bodies)) == ("submitted", 5)
    whole = [len("".join(map(json.dumps, unmarked(body)))) for body in server.bodies]
    usages = [reply.usage for reply in used.replies]
    assert [usage.input_tokens for usage in usages] == whole
    read = [usage.cached_tokens or 0 for usage in usages]
    assert read == sorted(set(read))
    assert read[-1] > 0.6 * whole[-1]
    assert used.usage.cached_tokens == sum(read)
    for body, after in zip(server.bodies, server.bodies[1:], strict=False):
        assert json.dumps(unmarked(after)).startswith(json.dumps(unmarked(body))[:-1])
        assert body["system"][-1]["cache_control"] == MARK
        assert after["messages"][-2]["content"][-1]["cache_control"] == MARK
        assert sum("cache_control" in block for block in blocks_of(after)) == 2
        read_by_client(after)
    plain = agent_at(server, "none")
    assert [unmarked(body) for body in server.bodies[:5]] == [blocks_of(body) for body in server.bodies[5:]]
    assert plain.conversation == used.conversation


def unmarked(body: Row) -> list[Row]:
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks_of(body)]


def read_by_client(body: Row) -> None:
    """Check by the official client's types that the marks lie where the API takes them."""
    types = pytest.importorskip("anthropic.types")
    for block, kind in (
        (body["system"][-1], types.TextBlockParam),
        (body["messages"][-2]["content"][-1], types.ToolUseBlockParam),
    ):
        assert TypeAdapter(kind).validate_python(block) == block  # a key that it does not have would be left out


def test_agents_use_it_where_nothing_is_set() -> None:
    server = ServerConfig(server_type="anthropic", model=MODEL)
    for settings, expected in (
        ({"agent": "bash"}, "auto"),
        ({"agent": "bash", "inference": Inference(cache_prompt="none")}, "none"),
        ({}, None),
    ):
        config = GenerationConfig(**cast("Any", {"server": server, "prompt_config": "generic/math", **settings}))
        assert chat_options(config).inference.cache_prompt == expected


def test_few_shot_turns_are_marked_and_the_question_is_not(server: CachingServer) -> None:
    messages = [Message(role=role, content=text) for role, text in (("user", "1+1?"), ("assistant", "2"))]
    request = Request(
        messages=[*messages, Message(role="user", content="2+2?")],
        inference=Inference(tokens_to_generate=9, cache_prompt="auto"),
    )

    async def work() -> Usage:
        config = ServerConfig(server_type="anthropic", model=MODEL, base_url=server.url)
        model = make_model(config, concurrency=1, environ={"ANTHROPIC_API_KEY": "k"})
        usages = [(await model.complete(request)).usage for _ in range(2)]
        await model.close()
        assert (usages[0].cached_tokens, usages[1].cache_written_tokens) == (0, 0)
        assert usages[1].cached_tokens == usages[0].cache_written_tokens
        return usages[1]

    assert (asyncio.run(work()).cached_tokens or 0) > 0
    marked = ["cache_control" in block for block in blocks_of(server.bodies[0])]
    assert marked == [False, True, False]
    assert request.messages is not None
    assert request.messages[1].content == "2"


def test_other_servers_are_sent_the_same_bytes() -> None:
    bodies = [run(sent_to("vllm", "m", replies(CHAT), cache_prompt=value)).json for value in (None, "auto")]
    assert bodies[0] == bodies[1]


def test_what_the_cache_costs() -> None:
    used = Usage(input_tokens=1000, output_tokens=100, cached_tokens=600, cache_written_tokens=300)
    prices = TokenPrices(read=1.0, written=5.0, cached=0.1, cache_written=1.25)
    assert prices.cost(used) == pytest.approx((100 * 1 + 600 * 0.1 + 300 * 1.25 + 100 * 5) / 1e6)
    assert TokenPrices(read=1.0, written=5.0).cost(used) == pytest.approx(1500 / 1e6)


def test_a_run_counts_and_prices_what_the_cache_gave(tmp_path: Path, server: CachingServer) -> None:
    rows = [{"problem": f"{n}+{n}?"} for n in range(6)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prices = {"input": 1, "output": 5, "cached": 0.1, "cache_written": 1.25}
    line = (
        f"ns generate --server_type=anthropic --server_address={server.url} --model={MODEL} --input_file=in.jsonl "
        "++prompt_config=generic/math ++inference.tokens_to_generate=99 ++max_concurrent_requests=1 "
        + " ".join(f"++server.price_per_million_{name}_tokens={price}" for name, price in prices.items())
    )
    words = ("++system_message=You are a careful mathematician.",)
    env = {"ANTHROPIC_API_KEY": "k"}
    done = ns(f"{line} --output_dir=out ++inference.cache_prompt=auto", *words, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    records = rows_of(tmp_path / "out/output.jsonl")
    names = ("num_input_tokens", "num_cached_tokens", "num_cache_written_tokens", "num_generated_tokens")
    read, hits, stores, written = (sum(record[name] for record in records) for name in names)
    assert hits == 5 * stores > 0
    shown = f"prompt cache: {hits:,} of {read:,} tokens read from it ({hits / read:.1%}), {stores:,} written to it"
    assert shown in done.stdout.splitlines(), done.stdout
    state = json.loads((tmp_path / "out/output.jsonl.run.json").read_text())
    cost = ((read - hits - stores) * 1 + hits * 0.1 + stores * 1.25 + written * 5) / 1e6
    assert state["cost"] == pytest.approx(cost)
    plain = ns(f"{line} --output_dir=plain", *words, cwd=tmp_path, env=env)
    assert (plain.returncode, "prompt cache" in plain.stdout) == (0, False)
    assert not any("cache" in name for record in rows_of(tmp_path / "plain/output.jsonl") for name in record)
    assert not any("cache_control" in block for body in server.bodies[6:] for block in blocks_of(body))
