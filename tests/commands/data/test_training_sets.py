# SPDX-License-Identifier: Apache-2.0
"""Published training sets from a hub on loopback that lists and serves them as the real one does."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.web import Web, serving
from tests.commands.running import ns
from tests.train.data.test_published import ANSWERS, FIXTURES

from newskills.base.store import read_rows
from newskills.train.data.published import SCHEMAS

ON_THE_HUB = [name for name, schema in SCHEMAS.items() if schema.hf]


def hub_of(web: Web, name: str, split: str, rows: list[dict[str, Any]]) -> None:
    """Two shards, listed under the set's configuration and split."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    schema, shards = SCHEMAS[name], []
    for number in range(2):
        buffer = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(rows[number::2]), buffer)
        path = f"/files/{name}/{split}/{number}.parquet"
        web.files[path] = buffer.getvalue()
        shards.append(web.url(path))
    web.files[f"/api/datasets/{schema.hf}/parquet/{schema.splits[split]}"] = json.dumps(shards).encode()


@pytest.mark.parametrize("name", ON_THE_HUB)
def test_from_the_hub_to_problems_for_reinforcement_learning(tmp_path: Path, name: str) -> None:
    split = list(SCHEMAS[name].splits)[-1]
    with serving() as web:
        hub_of(web, name, split, [FIXTURES[name]] * 4)
        env = {"HF_ENDPOINT": web.url(""), "NEWSKILLS_DATA_DIR": str(tmp_path / "data"), "NEWSKILLS_MIRROR": ""}
        off = "++filters.remove_contaminated=false ++filters.remove_len_outlier_problems=false"
        line = f"ns prepare_training_data --config_name=math_rl --dataset={name} --split={split} {off}"
        done = ns(line, "++output_path=rl.jsonl", cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        if name == ON_THE_HUB[0]:
            asked = len(web.asked)
            again = ns(line, "++output_path=rl.jsonl", cwd=tmp_path, env=env)
            assert (again.returncode, len(web.asked)) == (0, asked)
    [row] = read_rows(tmp_path / "rl.jsonl")
    assert row["expected_answer"] == ANSWERS[name]
    laid = tmp_path / f"data/{name}/{split}.jsonl"
    assert len(list(read_rows(laid))) == 4
    meta = json.loads(laid.with_name(f"{split}.jsonl.meta.json").read_text())
    assert (meta["rows"], meta["licence"], len(meta["sources"])) == (4, SCHEMAS[name].licence, 2)
    card = json.loads((tmp_path / "rl.jsonl.card.json").read_text())
    assert {step["name"]: step["removed"] for step in card["steps"]}["duplicates"] == 3


def test_the_line_of_the_documents(tmp_path: Path) -> None:
    with serving() as web:
        hub_of(web, "openmathinstruct-2", "train", [FIXTURES["openmathinstruct-2"]] * 3)
        env = {"HF_ENDPOINT": web.url(""), "NEWSKILLS_DATA_DIR": str(tmp_path / "data"), "NEWSKILLS_MIRROR": ""}
        done = ns("ns prepare_data --dataset=openmathinstruct2", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert "openmathinstruct-2       train          3 rows in" in done.stdout
    assert len(list(read_rows(tmp_path / "data/openmathinstruct-2/train.jsonl"))) == 3


def test_a_set_that_has_changed_its_fields(tmp_path: Path) -> None:
    with serving() as web:
        hub_of(web, "math-hard", "train", [{"question": "P?", "answer": "1"}] * 2)
        env = {"HF_ENDPOINT": web.url(""), "NEWSKILLS_DATA_DIR": str(tmp_path / "data"), "NEWSKILLS_MIRROR": ""}
        done = ns("ns prepare_data --dataset=math-hard", cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert (
        "row 1: this is not a row of math-hard (KeyError: 'solution'); its fields are answer, question."
        in done.stderr
    )
    assert not (tmp_path / "data/math-hard/train.jsonl").exists()
