# SPDX-License-Identifier: Apache-2.0
"""The first preparation from a live hub checks what came, and says what differs from the benchmark's page."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.web import Web, serving
from tests.commands.running import ns

pyarrow = pytest.importorskip("pyarrow")
PLACE = "/api/datasets/allenai/openbookqa/parquet/main/test"
ITEMS = 500


def question(number: int, **changes: Any) -> dict[str, Any]:
    texts = [f"{kind} {number}" for kind in ("moss", "sand", "rain", "salt")]
    row = {
        "id": f"7-{number}",
        "question_stem": f"What is found at place {number}?",
        "choices": {"text": texts, "label": ["A", "B", "C", "D"]},
        "answerKey": "ABCD"[number * 7 % 4],
    }
    return {**row, **changes}


def publish(hub: Web, rows: list[dict[str, Any]]) -> None:
    """As the hub would: a list of files, and a file of parquet."""
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    hub.files[PLACE] = json.dumps([hub.url(f"{PLACE}/0.parquet")]).encode()
    hub.files[f"{PLACE}/0.parquet"] = sink.getvalue()


@pytest.fixture
def hub() -> Iterator[Web]:
    with serving() as server:
        yield server


def environment(hub: Web, tmp_path: Path) -> dict[str, str]:
    plain = dict.fromkeys(("NEWSKILLS_MIRROR", "HF_TOKEN", "NEWSKILLS_OFFLINE", "HF_HUB_OFFLINE"), "")
    return {**plain, "HF_ENDPOINT": hub.url(""), "NEWSKILLS_DATA_DIR": str(tmp_path / "data")}


def prepare(hub: Web, tmp_path: Path, *more: str) -> str:
    done = ns("ns prepare_data openbookqa --split=test", *more, cwd=tmp_path, env=environment(hub, tmp_path))
    assert done.returncode == 0, done.stderr
    return done.stderr


def listed(hub: Web, tmp_path: Path) -> str:
    done = ns("ns list benchmarks", cwd=tmp_path, env=environment(hub, tmp_path))
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("openbookqa ")]
    return line


def record(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "data/openbookqa/test.jsonl.check.json").read_bytes())
    return found


def test_what_the_live_hub_gives_is_checked_once_and_listed(hub: Web, tmp_path: Path) -> None:
    assert "checked here" not in listed(hub, tmp_path)
    publish(hub, [question(number) for number in range(ITEMS)])
    told = prepare(hub, tmp_path)
    assert f"openbookqa test is checked here: {ITEMS} rows, 50 of 50 own answers correct" in told
    assert "not verified" not in told
    check = record(tmp_path)
    assert (check["rows"], check["expected"], check["tried"], check["differences"]) == (ITEMS, ITEMS, 50, [])
    assert check["sources"] == [hub.url(f"{PLACE}/0.parquet")]
    assert check["correct"]["gold"] == "50 of 50"
    assert check["correct"]["blank"] == "0 of 50"
    assert "(checked here)" in listed(hub, tmp_path)
    before = (tmp_path / "data/openbookqa/test.jsonl.check.json").stat().st_mtime_ns
    assert "checked here" not in prepare(hub, tmp_path)
    assert (tmp_path / "data/openbookqa/test.jsonl.check.json").stat().st_mtime_ns == before


@pytest.mark.nightly
def test_a_check_that_was_interrupted_is_made_by_the_next_preparation(hub: Web, tmp_path: Path) -> None:
    publish(hub, [question(number) for number in range(ITEMS)])
    prepare(hub, tmp_path)
    (tmp_path / "data/openbookqa/test.jsonl.check.json").unlink()
    hub.files.clear()
    assert "is checked here" in prepare(hub, tmp_path)


@pytest.mark.slow
def test_other_rows_than_documented_are_told_with_what_to_do(hub: Web, tmp_path: Path) -> None:
    publish(hub, [question(number) for number in range(ITEMS - 3)])
    told = prepare(hub, tmp_path)
    assert "difference: openbookqa test differs from its page: 497 rows, the page says 500." in told
    assert "compare scores only with runs on these rows" in told
    (difference,) = record(tmp_path)["differences"]
    assert difference["what"] == "497 rows, the page says 500"
    assert "(differs here)" in listed(hub, tmp_path)


@pytest.mark.slow
def test_answers_that_chance_explains_are_a_difference(hub: Web, tmp_path: Path) -> None:
    publish(hub, [question(number, answerKey="A") for number in range(ITEMS)])
    told = prepare(hub, tmp_path)
    assert "'Answer: A' is correct in 50 of 50 rows, chance is 25%" in told
    assert "Run: ns validate openbookqa --json report.json" in told
    assert "(differs here)" in listed(hub, tmp_path)


def test_a_field_of_another_name_says_which_there_are(hub: Web, tmp_path: Path) -> None:
    rows = [question(number) for number in range(3)]
    for row in rows:
        row["answer_key"] = row.pop("answerKey")
    publish(hub, rows)
    done = ns("ns prepare_data openbookqa --split=test", cwd=tmp_path, env=environment(hub, tmp_path))
    assert done.returncode == 1
    assert "the field 'answerKey' is missing" in done.stderr
    assert "the row has answer_key, choices, id, question_stem" in done.stderr
    assert "look for a newer newskills" in done.stderr


def test_rows_of_a_mirror_are_not_live(hub: Web, tmp_path: Path) -> None:
    publish(hub, [question(number) for number in range(ITEMS)])
    shard = tmp_path / "mirror" / hub.url("").removeprefix("http://") / PLACE[1:] / "0.parquet"
    shard.parent.mkdir(parents=True)
    shard.write_bytes(hub.files[f"{PLACE}/0.parquet"])
    hub.files.clear()
    told = prepare(hub, tmp_path, f"--mirror={tmp_path / 'mirror'}")
    assert "is checked here" not in told
    assert not (tmp_path / "data/openbookqa/test.jsonl.check.json").exists()
    shutil.rmtree(tmp_path / "mirror")
    assert "checked here" not in listed(hub, tmp_path)
