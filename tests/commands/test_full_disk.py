# SPDX-License-Identifier: Apache-2.0
"""A full disk is told in a sentence by each command that writes, the exit code is not 0, and nothing is lost."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.disks import enlarge, fill, small_disk
from tests.night import by_day

ROWS = 40
MODEL = "--server_type=openai --model=x --server_address=http://127.0.0.1:9/v1"
BUILD = "prepare_training_data ++input_files={here}/rows.jsonl ++output_path={disk}/train.jsonl"
FREE = "++filters.remove_contaminated=false ++filters.remove_len_outlier_problems=false"
COMMANDS = [
    "prepare_data gsm8k --data_dir={disk}/data",
    "mirror build gsm8k {disk}/mirror",
    "grade --grader=math --input_files={here}/rows.jsonl --output_file={disk}/graded.jsonl",
    "summarize_results {disk}/results",
    "compute_metrics --prediction_jsonl_files={here}/rows.jsonl --benchmark=gsm8k --save_metrics_path={disk}/m.json",
    "merge_chunks {disk}/output.jsonl {disk}/output_chunk_0.jsonl {disk}/output_chunk_1.jsonl",
    f"{BUILD} {FREE}",
    "import {here}/results --output_dir={disk}/imported",
    "export {disk}/results --format=inspect --output_dir={disk}/logs",
    "retrieve_similar --retrieve_from {here}/rows.jsonl --compare_to {here}/rows.jsonl --output_file={disk}/near.jsonl",
    f"generate {MODEL} --input_file={{here}}/rows.jsonl --output_dir={{disk}}/out ++prompt_config=generic/math",
    "run_cmd --log_dir={disk}/logs --allow_uncommitted -- echo hi",
    "validate gsm8k --json={disk}/validated.json",
]
"""Words of commands; `{disk}` is full, `{here}` is not."""


def write_rows(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {
        "expected_answer": "2",
        "generation": "so \\boxed{2}",
        "predicted_answer": "2",
        "symbolic_correct": True,
    }
    lines = (json.dumps({"id": i, "problem": f"What is {i} - {i - 2}?", **row}) for i in range(ROWS))
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    write_rows(tmp_path / "rows.jsonl")
    write_rows(tmp_path / "results/eval-results/gsm8k/output.jsonl")
    with small_disk(tmp_path / "disk", "512k") as disk:
        write_rows(disk / "results/eval-results/gsm8k/output.jsonl")
        for chunk in range(2):
            write_rows(disk / f"output_chunk_{chunk}.jsonl")
        (disk / "home").mkdir()
        fill(disk)
        yield disk


def ns(words: str, full: Path, *, into: Path | None = None) -> tuple[int, str]:
    """(exit code, what it said)."""
    argv = shlex.split(words.format(disk=full, here=full.parent))
    env = {**os.environ, "HOME": str(full / "home"), "NEWSKILLS_CACHE": str(full / "home/cache")}
    env["OPENAI_API_KEY"] = "none"
    with open(into or os.devnull, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "newskills", *argv], stdout=output, stderr=subprocess.PIPE, text=True, env=env
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", by_day(COMMANDS, COMMANDS[::3]), ids=lambda words: words.split()[0])
def test_a_full_disk_is_told_in_a_sentence(words: str, full: Path, request: pytest.FixtureRequest) -> None:
    if "gsm8k" in words.split()[:3]:
        request.getfixturevalue("mirror")
    before = {path: path.read_bytes() for path in full.rglob("*.jsonl")}
    code, said = ns(words, full)
    assert (code, "No space is left on the disk" in said, "Traceback" in said) == (1, True, False), said
    assert {path: path.read_bytes() for path in full.rglob("*.jsonl")} == before
    assert not list(full.rglob("*.tmp"))


@pytest.mark.parametrize("words", ["list", "--help", "eval --help"])
def test_so_it_is_where_the_output_goes_to_a_full_disk(words: str, full: Path) -> None:
    code, said = ns(words, full, into=full / "said")
    assert (code, said.count("\n"), "No space is left on the disk" in said) == (1, 1, True), said


def test_what_did_not_fit_is_made_once_there_is_space(full: Path) -> None:
    words = next(words for words in COMMANDS if words.startswith("merge_chunks"))
    assert ns(words, full)[0] == 1
    enlarge(full, "4m")
    assert ns(words, full)[0] == 0
    assert len((full / "output.jsonl").read_text().splitlines()) == 2 * ROWS
