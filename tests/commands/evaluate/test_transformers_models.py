# SPDX-License-Identifier: Apache-2.0
"""`--server_type=transformers` as a person types it: a process that comes, answers and goes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write

torch = pytest.importorskip("torch", reason="no torch here: pip install 'newskills[transformers]'")
pytest.importorskip("transformers", reason="no transformers here: pip install 'newskills[transformers]'")

from tests.models.serving.hf.tiny_models import save_llama  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
LINE = "ns generate --server_type=transformers --server_gpus=0 --model=model --input_file=rows.jsonl"
SETTINGS = ["++prompt_config=generic/default", "++inference.temperature=0.8", "++add_generation_stats=true"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    save_llama(tmp_path / "model", max_position_embeddings=2048)
    write(tmp_path / "rows.jsonl", [{"question": f"What is {n} + {n}?"} for n in range(24)])
    return tmp_path


def servers() -> str:
    shown = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout
    return "\n".join(
        line for line in shown.splitlines() if "serving.hf.server" in line and "--model model" in line
    )


def test_records_are_those_of_a_server(place: Path) -> None:
    more = ["++inference.tokens_to_generate=8", "++inference.top_logprobs=1", "++max_samples=3"]
    done = ns(f"{LINE} --output_dir=out", *SETTINGS, *more, cwd=place)
    assert done.returncode == 0, done.stderr
    rows = rows_of(place / "out/output.jsonl")
    assert len(rows) == 3
    for row in rows:
        assert row["num_generated_tokens"] == len(row["tokens"]) == len(row["logprobs"]) <= 8
        assert row["num_input_tokens"] > 8
        assert row["finish_reason"] in ("length", "stop")
        assert row["generation"].strip()
    assert "on the CPU" in (place / "out/generation-logs/server.log").read_text()


def test_a_wrong_adapter_is_one_sentence(place: Path) -> None:
    (place / "rows").mkdir()
    done = ns(f"{LINE} --output_dir=out --server_args=--adapter=rows", *SETTINGS, cwd=place)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: rows is no adapter of PEFT: it has no adapter_config.json."


@pytest.mark.nightly
def test_a_killed_run_leaves_no_server_and_goes_on(place: Path) -> None:
    settings = [*SETTINGS, "++inference.tokens_to_generate=600"]
    words = [*f"{LINE} --output_dir=out --server_args=--batch=4".split()[1:], *settings]
    before: list[Any] = []
    with subprocess.Popen(
        [sys.executable, "-m", "newskills", *words], cwd=place, stderr=subprocess.PIPE
    ) as killed:
        while len(before) < 5:
            assert killed.poll() is None
            time.sleep(0.05)
            before = [row for log in (place / "out").glob("*-async") for row in rows_of(log)]
        assert servers()
        killed.kill()
    deadline = time.monotonic() + 30
    while servers():
        assert time.monotonic() < deadline, "the server outlives the run"
        time.sleep(0.1)
    again = ns(f"{LINE} --output_dir=out", *settings, cwd=place)
    assert again.returncode == 0, again.stderr
    texts = {row["question"]: row["generation"] for row in rows_of(place / "out/output.jsonl")}
    assert len(texts) == 24
    kept = {row["question"]: row["generation"] for row in before if "question" in row}
    assert kept
    assert kept.items() <= texts.items()
