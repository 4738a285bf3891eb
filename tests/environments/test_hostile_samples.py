# SPDX-License-Identifier: Apache-2.0
"""Samples whose agent does its worst: each says what happened, and none costs the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.environments.images import own_containers
from tests.environments.small_tasks import small_tasks
from tests.environments.tasks import texts_of, turns_of

HOSTILE = (
    ("sleep 600", "timeout", "correct"),
    ("f() { f | f & }; f; sleep 600", "timeout", "correct"),
    ("dd if=/dev/zero of=/big bs=1M count=100000; sleep 600", "disk_full", "correct"),
    ("kill -9 -1; sleep 600", "completed", "correct"),
    ("yes 0123456789 | dd bs=1M count=1000 iflag=fullblock 2>/dev/null", "completed", "correct"),
    ("rm -rf /bin", "completed", "no_answer"),
    ("true", "completed", "correct"),
)
"""What the agent does first, how that command ends, and what becomes of the sample."""
NUMBER = re.compile(r"new\.txt is missing \((\d+)\)")


@pytest.mark.slow
def test_each_sample_says_what_happened_and_the_others_go_on(
    agent_image: str, tmp_path: Path, fake_server: Any
) -> None:
    def answer(body: dict[str, Any]) -> str:
        match = NUMBER.search(texts_of(body))
        assert match is not None
        commands = (HOSTILE[int(match[1])][0], "echo x > new.txt; echo SUBMIT_CHANGES")
        return f"```bash\n{commands[min(turns_of(body), 1)]}\n```"

    small_tasks(tmp_path, len(HOSTILE), agent_image)
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    assert ns("ns prepare_data ./small.py", cwd=tmp_path, env=env).returncode == 0
    line = (
        "ns eval --benchmarks=./small.py ++agent=bash ++agent_max_turns=3 ++agent_config.command_timeout=60 "
        "++environment.engine=podman ++environment.disk_mb=256 ++environment.memory_mb=512 ++environment.processes=128 "
        f"--server_type=vllm --model=fake --output_dir=results --server_address={fake_server(answer=answer).base_url}"
    )
    done = ns(line, cwd=tmp_path, env=env, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    records = rows_of(tmp_path / "results/eval-results/small/output.jsonl")
    ends = [(record["steps"][0]["command"], record["steps"][0]["status"], record["outcome"]) for record in records]
    assert ends == list(HOSTILE)
    assert records[4]["steps"][0]["output_bytes"] > 1_000_000_000
    assert "git does not work any more" in records[5]["no_patch_because"]
