# SPDX-License-Identifier: Apache-2.0
"""A thinking budget at the command line: shown before the run, sent, and shared by resumed work."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Script
from tests.server.answers import Body

SENT = 'sent about thinking: {"chat_template_kwargs":{"enable_thinking":true,"thinking":true},"thinking_token_budget":'


def test_a_budget_is_shown_sent_and_shared(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script())
    (tmp_path / "in.jsonl").write_text('{"problem": "2+2?"}\n{"problem": "3+3?"}\n')
    line = (
        f"ns generate --server_type=vllm --server_address={server.url}/v1 --model=m --input_file=in.jsonl "
        "--output_dir=out ++prompt_config=generic/math ++inference.thinking_budget="
    )
    for word in ("--explain", "--dry_run"):
        shown = ns(f"{line}512 {word}", cwd=tmp_path)
        assert f"{SENT}512}}" in shown.stdout.splitlines(), shown.stdout + shown.stderr
    assert not [record for record in server.records if record.method == "POST"]
    refused = ns(f"{line.replace('vllm', 'generic')}512", cwd=tmp_path)
    assert refused.returncode == 2
    assert "generic has no limit on tokens of thinking (inference.thinking_budget)." in refused.stderr
    assert "++inference.reasoning_effort=LEVEL" in refused.stderr
    assert not [record for record in server.records if record.method == "POST"]
    stopped = ns(f"{line}512 ++max_concurrent_requests=1 ++max_total_tokens=1", cwd=tmp_path)
    assert stopped.returncode == 4, stopped.stderr
    bodies = [record.body for record in server.records if record.method == "POST"]
    assert bodies
    assert {body["thinking_token_budget"] for body in bodies} == {512}
    other = ns(f"{line}none", cwd=tmp_path)
    assert other.returncode == 2
    assert "changed: inference.thinking_budget (512 → none)" in other.stderr


def test_a_budget_is_forced_on_the_text_endpoint(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    def answer(body: Body) -> str:
        return " so 4" if "</think>" in body["prompt"] else " hm hm hm hm"

    server = fake_server(Script(), answer=answer)
    rows = "".join(f'{{"problem": "2+{n}?"}}\n' for n in range(6))
    (tmp_path / "in.jsonl").write_text(rows)
    line = (
        f"ns generate --server_type=generic --server_address={server.url}/v1 --model=m --input_file=in.jsonl "
        "++prompt_config=generic/math ++inference.endpoint_type=text ++inference.tokens_to_generate=9 "
        "++inference.thinking_budget=3 ++budget_forcing.begin=<think> "
    )
    shown = ns(f"{line} --explain --output_dir=out", cwd=tmp_path).stdout
    forced = '{"budget":3,"ends_at":"</think>","end":"\\n</think>\\n\\n","begin":"<think>"}'
    assert f"forced on thinking: {forced}" in shown.splitlines()
    for wrong, words in {
        "++inference.tokens_to_generate=3": "(3) must be below inference.tokens_to_generate (3)",
        "++inference.endpoint_type=chat": "budget_forcing needs inference.endpoint_type=text",
        "++code_execution=true ++code_tags=qwen": "asked once (solver=chat",
        "++solver=genselect": "not by solver=genselect",
        "++budget_forcing.minimum=4": "is above the tokens that the model may think",
        "++inference.thinking_budget=null": "budget_forcing needs inference.thinking_budget=N",
    }.items():
        refused = ns(f"{line} {wrong} --output_dir=out", cwd=tmp_path)
        assert refused.returncode == 2, refused.stderr
        assert words in refused.stderr
    stopped = ns(f"{line} --output_dir=out ++max_concurrent_requests=1 ++max_total_tokens=20", cwd=tmp_path)
    assert stopped.returncode == 4, stopped.stderr
    for folder in ("out", "whole"):
        done = ns(f"{line} --output_dir={folder} ++add_generation_stats=false", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    resumed, whole = ((tmp_path / f / "output.jsonl").read_text().splitlines() for f in ("out", "whole"))
    kept = [json.loads(row) for row in resumed]
    for row in kept:
        for key in ("generation_start_time", "generation_end_time", "generation_time"):
            row.pop(key, None)
    assert kept == [json.loads(row) for row in whole]
    assert {row["reasoning_content"] for row in kept} == {" hm hm hm"}
    assert {(row["generation"], row["num_forced_ends"]) for row in kept} == {(" so 4", 1)}
