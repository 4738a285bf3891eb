# SPDX-License-Identifier: Apache-2.0
"""A thinking budget at the command line: shown before the run, sent, and shared by resumed work."""

from __future__ import annotations

from pathlib import Path

from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Script

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
