# SPDX-License-Identifier: Apache-2.0
"""Callers that close the standard streams, and names that are no text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.server import Script

NS = f"{sys.executable} -m newskills"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, timeout=600)


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-", "2>&-"])
def test_help_and_errors_with_closed_streams_end_as_ever(tmp_path: Path, closed: str) -> None:
    helped = shell(f"{NS} --help {closed}", tmp_path)
    assert (helped.returncode, b"Traceback" in helped.stderr) == (0, False)
    refused = shell(f"{NS} generate {closed}", tmp_path)
    assert (refused.returncode, b"Traceback" in refused.stderr) == (2, False)


def test_a_run_with_closed_streams_writes_its_records_alone(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    """Of the files that it opens, none takes the place of a stream and gets what is printed."""
    server = fake_server(Script())
    (tmp_path / "in.jsonl").write_text('{"problem": "1+1"}\n')
    line = (
        f"{NS} generate --server_type=vllm --model=fake --server_address={server.base_url} --input_file=in.jsonl"
        " --output_dir=out ++prompt_config=generic/math <&- >&- 2>&-"
    )
    assert shell(line, tmp_path).returncode == 0
    assert (tmp_path / "out" / "output.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize("place", ["argument", "folder"])
def test_a_name_that_is_no_text_is_refused_in_a_sentence(tmp_path: Path, place: str) -> None:
    folder = tmp_path
    if place == "folder":
        folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
        folder.mkdir()
    path = "$'in\\xff.jsonl'" if place == "argument" else "in.jsonl"
    refused = shell(f"{NS} generate --input_file={path} --output_dir=out", folder)
    assert refused.returncode == 2
    assert b"\\xff" in refused.stderr
    assert b"is not UTF-8" in refused.stderr
    assert refused.stderr.count(b"\n") == 1
