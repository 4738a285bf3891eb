# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.server import FakeServer, Script
from tests.server.answers import tokens_of
from tests.solve.choosing import SAMPLE, Model, parts, solver
from tests.solve.tir import with_kit

from newskills.base import aio
from newskills.base.errors import ConfigError, ServerError
from newskills.base.protocols import Kit
from newskills.base.records import Message, Request, Row
from newskills.models import make_model
from newskills.models.config import ServerConfig

POOR, GOOD = r"Hm, \boxed{41}.", r"So \boxed{42}."
SCORES = Script(rewards={"42": 0.9, "41": -2.0})


def reward(server: FakeServer, server_type: str) -> Any:
    config = ServerConfig(server_type=server_type, model="fake", base_url=server.base_url)
    return make_model(config, concurrency=8, environ={})


def solved(server_type: str | None, script: Script, texts: list[str], **config: Any) -> tuple[Row, list[Any]]:
    """Fields, and all requests that arrived."""
    chosen = solver("best_of_n", samples=len(texts), **config)

    async def work(kit: Kit, server: FakeServer) -> Row:
        scorer = reward(server, server_type) if server_type else None
        try:
            models = {**kit.models, **({"reward": scorer} if scorer else {})}
            return (await chosen.solve(SAMPLE, chosen.request(SAMPLE), Kit(models=models))).fields
        finally:
            if scorer is not None:
                await scorer.close()

    with FakeServer(script, answer=judge(texts)) as server:
        return with_kit(server, lambda kit: work(kit, server)), server.log.records


def judge(texts: list[str]) -> Any:
    model = Model(texts)

    def answer(body: Row) -> str:
        asked = body["messages"][-1]["content"]
        if "Rate a solution" not in asked:
            return model(body)
        return "It is. Score: 3\nNo. Score: 9.5" if "42" in asked.partition("Solution:")[2] else "I cannot say."

    return answer


@pytest.mark.parametrize("server_type", ["vllm_classify", "vllm_score", "vllm_pooling"])
def test_the_answer_with_the_highest_reward_is_returned(server_type: str) -> None:
    fields, asked = solved(server_type, SCORES, [POOR, GOOD, ""], scorer="reward")
    assert fields["generation"] == GOOD
    assert (fields["reward_model_score"], fields["scores"]) == (0.9, [-2.0, 0.9, None])
    assert fields["num_generated_tokens"] == sum(len(tokens_of(text)) for text in (POOR, GOOD))
    paths = {record.path for record in asked if not record.index}
    assert paths == {"/" + server_type.removeprefix("vllm_")}


def test_what_the_reward_model_is_shown() -> None:
    _, asked = solved("vllm_classify", SCORES, [f"<think>41</think> {GOOD}"], scorer="reward")
    assert [record.body for record in asked if not record.index] == [
        {
            "model": "fake",
            "messages": [
                {"role": "user", "content": SAMPLE.row["problem"]},
                {"role": "assistant", "content": GOOD},
            ],
        }
    ]
    _, asked = solved("vllm_score", SCORES, [GOOD], scorer="reward")
    (body,) = (record.body for record in asked if not record.index)
    assert body == {"model": "fake", "text_1": SAMPLE.row["problem"], "text_2": GOOD}


def test_a_judge_scores_with_the_last_number() -> None:
    fields, _ = solved(None, Script(), [POOR, GOOD])
    assert fields["generation"] == GOOD
    assert fields["scores"] == [None, 9.5]
    assert fields["score_num_generated_tokens"] > 0


def test_nobody_with_a_score_leaves_the_first() -> None:
    fields, _ = solved(None, Script(), [POOR, "no", ""])
    assert (fields["generation"], fields["reward_model_score"]) == (POOR, None)


def test_a_reward_needs_its_model() -> None:
    with pytest.raises(ConfigError, match="No model is given that scores"):
        solved(None, Script(), [POOR], scorer="reward")
    with pytest.raises(ConfigError, match="needs a group"):
        solver("best_of_n", parts(), regex=r"Score: \d")


@pytest.mark.parametrize(
    "said", ['{"data": []}', '{"data": [{"probs": [NaN]}]}', '{"data": [{"probs": ["1"]}]}', "{}"]
)
def test_a_reply_without_a_score_is_no_score(said: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = ServerConfig(
        server_type="vllm_classify", model="m", base_url=f"http://127.0.0.1:{server.server_port}"
    )

    async def work() -> None:
        model = make_model(config, concurrency=1, environ={})
        try:
            await model.complete(Request(messages=[Message(role="user", content="x")]))
        finally:
            await model.close()

    try:
        with pytest.raises(ServerError, match="no score"):
            aio.run(work)
    finally:
        server.shutdown()
        server.server_close()
