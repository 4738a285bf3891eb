# SPDX-License-Identifier: Apache-2.0
"""Images and sound, from the real data to the table: each request carries the bytes of its own file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.server import FakeServer

pytest.importorskip("soundfile")

pytestmark = pytest.mark.mirror


def media_of(body: dict[str, Any]) -> list[str]:
    """sha256 of each image and sound in a request."""
    found = []
    for part in body["messages"][-1]["content"]:
        if part["type"] == "image_url":
            head, data = part["image_url"]["url"].split(";base64,")
            assert head in ("data:image/png", "data:image/jpeg")
            found.append(base64.b64decode(data, validate=True))
        elif part["type"] == "input_audio":
            assert part["input_audio"]["format"] == "wav"
            found.append(base64.b64decode(part["input_audio"]["data"], validate=True))
    return [hashlib.sha256(data).hexdigest() for data in found]


def evaluated(folder: Path, mirror: Path, name: str, answers: dict[str, str], by: str) -> dict[str, Any]:
    """Metrics of `name`, where `answers` (sha256 of a file, or that and a question → reply) decides on replies."""
    prepared = ns(f"ns prepare_data {name} --data_dir data --offline --mirror {mirror}", cwd=folder)
    assert prepared.returncode == 0, prepared.stderr
    (file,) = (folder / "data" / name).glob("*.jsonl")
    for row in rows_of(file):
        path = row["image_path"] if by == "image_path" else row["messages"][0]["audio"]["path"]
        data = (file.parent / path).read_bytes()
        answers[f"{hashlib.sha256(data).hexdigest()} {row.get('problem', row['question'])}"] = row[
            "expected_answer"
        ]

    def answer(body: dict[str, Any]) -> str:
        (seen,) = media_of(body)
        text = next(part["text"] for part in body["messages"][-1]["content"] if part["type"] == "text")
        (right,) = {reply for key, reply in answers.items() if key[:64] == seen and key[65:] in text}
        return f"\\boxed{{{right}}}\nAnswer: {right}" if by == "image_path" else right

    server = FakeServer(answer=answer)
    try:
        line = f"ns eval --server_type=vllm --model=fake --server_address={server.url} --benchmarks={name}"
        done = ns(f"{line} --data_dir=data --output_dir=out ++max_concurrent_requests=16", cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        seen = Counter(digest for record in server.records for digest in media_of(record.body))
    finally:
        server.stop()
    assert set(seen) == {key[:64] for key in answers}
    records = rows_of(folder / "out/eval-results" / name / "output.jsonl")
    assert len(records) == seen.total()
    assert not any("base64" in json.dumps(record) for record in records)
    return dict(json.loads((folder / "out/eval-results" / name / "metrics.json").read_text())[name]["pass@1"])


def test_math_vision(tmp_path: Path, mirror: Path) -> None:
    found = evaluated(tmp_path, mirror, "math-vision", {}, "image_path")
    assert (found["num_entries"], found["symbolic_correct"]) == (304, 100.0)


def test_puzzlevqa(tmp_path: Path, mirror: Path) -> None:
    found = evaluated(tmp_path, mirror, "puzzlevqa", {}, "image_path")
    assert (found["num_entries"], found["symbolic_correct"]) == (200, 100.0)


def test_fsdd(tmp_path: Path, mirror: Path) -> None:
    found = evaluated(tmp_path, mirror, "fsdd", {}, "sound")
    assert (found["num_entries"], found["success_rate"], found["wer"]) == (300, 100.0, 0.0)
    assert (found["ref_words"], found["substitutions"], found["deletions"]) == (300, 0, 0)


def test_a_broken_file_is_no_wrong_answer(tmp_path: Path, mirror: Path) -> None:
    assert ns(f"ns prepare_data fsdd --data_dir data --offline --mirror {mirror}", cwd=tmp_path).returncode == 0
    broken = tmp_path / "data/fsdd/assets/test/3_theo_1.wav"
    broken.write_bytes(broken.read_bytes()[:-100])
    server = FakeServer()
    try:
        line = f"ns eval --server_type=vllm --model=fake --server_address={server.url} --benchmarks=fsdd"
        line = f"{line} --data_dir=data --output_dir=out"
        stopped = ns(line, cwd=tmp_path)
        assert stopped.returncode != 0
        assert "Record fsdd-3_theo_1: " in stopped.stderr
        assert "3_theo_1.wav is broken audio" in stopped.stderr
        done = ns(f"{line} ++server.enable_soft_fail=true --accept_lost 5", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    finally:
        server.stop()
    (record,) = (r for r in rows_of(tmp_path / "out/eval-results/fsdd/output.jsonl") if r["id"] == "fsdd-3_theo_1")
    assert (record["outcome"], record["outcome_cause"]) == ("unscored", "data")
