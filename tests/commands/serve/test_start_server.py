# SPDX-License-Identifier: Apache-2.0
"""`ns start_server` on this machine."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands.clusters import SERVED
from tests.commands.running import chatted, ns

LINE = f"ns start_server --server_type=generic --model=fake --server_gpus=0 --server_entrypoint={SERVED}"


def test_a_page_to_chat_with_the_model_stands_beside_its_log(tmp_path: Path) -> None:
    words = [*shlex.split(LINE)[1:], "--launch_chat_interface", "--extra_chat_args=++port=0 --temperature 0.5"]
    with subprocess.Popen(
        [sys.executable, "-m", "newskills", *words],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        seen = ""
        while "in the browser" not in seen or "serves on" not in seen:
            line = process.stdout.readline()
            assert line, seen
            seen += line
        try:
            assert "boxed{42}" in chatted(seen)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("++prot=1", "did you mean 'port'"),
        ("--prot 1", "did you mean '--port'"),
        ("'", "cannot be split"),
        ("++port=x", "--extra_chat_args"),
    ],
)
def test_settings_of_the_page_are_checked_before_a_server_starts(tmp_path: Path, words: str, said: str) -> None:
    done = ns(LINE, "--launch_chat_interface", f"--extra_chat_args={words}", "--dry_run", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
