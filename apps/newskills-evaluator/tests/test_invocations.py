# SPDX-License-Identifier: Apache-2.0
"""The store of invocations that newskills shares with NeMo Evaluator's launcher."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.errors import ConfigError, UnknownNameError
from newskills_evaluator.invocations import (
    InvocationJob,
    Store,
    as_json,
    count_replies,
    folder_state,
    job_state,
    looks_like_id,
    new_invocation,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store({"NEMO_EVALUATOR_EXEC_DB_FILE": str(tmp_path / "db" / "exec.jsonl")})


def entry(invocation: str, index: int = 0, **data: object) -> InvocationJob:
    config = {"evaluation": {"tasks": [{"name": "a"}, {"name": "b"}]}}
    return InvocationJob(
        invocation_id=invocation,
        job_id=f"{invocation}.{index}",
        timestamp=1.0,
        executor="local",
        data=data,
        config=config,
    )


def test_it_lies_where_the_launcher_keeps_it() -> None:
    assert str(Store({"HOME": "/home/me"}).path) == "/home/me/.nemo-evaluator/exec-db/exec.v1.jsonl"


def test_the_last_line_of_a_job_counts_and_its_place_is_that_of_the_first(store: Store) -> None:
    store.add([entry("aa11"), entry("aa11", 1), entry("bb22")])
    store.add([entry("aa11", killed=True)])
    assert list(store.jobs()) == ["aa11.0", "aa11.1", "bb22.0"]
    assert store.jobs()["aa11.0"].data == {"killed": True}
    assert [one.task for one in store.find("aa11")] == ["a", "b"]
    line = json.loads(store.path.read_text().splitlines()[0])
    assert set(line) == {"invocation_id", "job_id", "timestamp", "executor", "data", "config"}


def test_unique_beginnings_are_enough(store: Store) -> None:
    store.add([entry("aa11"), entry("aa11", 1), entry("aa1122"), entry("bb22")])
    assert [one.job_id for one in store.find("B")] == ["bb22.0"]
    assert [one.job_id for one in store.find("aa11")] == ["aa11.0", "aa11.1"]
    assert [one.job_id for one in store.find("aa11.1")] == ["aa11.1"]
    assert [one.job_id for one in store.find("aa112.0")] == ["aa1122.0"]
    with pytest.raises(ConfigError, match="Several invocations begin with 'aa'"):
        store.find("aa")
    with pytest.raises(UnknownNameError, match=r"Unknown job 'bb22\.7'"):
        store.find("bb22.7")
    with pytest.raises(UnknownNameError, match="Unknown invocation 'cc'"):
        store.find("cc")


def test_lines_of_others_and_torn_ones_are_passed_over(store: Store) -> None:
    store.add([entry("aa11")])
    with store.path.open("ab") as file:
        file.write(b'{"other": 1}\n\xff\xfe\n[]\n{"invocation_id": "cc33", "job')
    assert list(store.jobs()) == ["aa11.0"]
    store.add([entry("bb22")])
    assert list(store.jobs()) == ["aa11.0", "bb22.0"]


def test_many_may_write_at_once(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.add([entry(f"{n:016x}"), entry(f"{n:016x}", 1)]), range(100)))
    assert len(store.jobs()) == 200
    assert store.path.stat().st_mode & 0o777 == 0o600


@settings(max_examples=50)
@given(st.text(max_size=20))
def test_what_looks_like_an_id(text: str) -> None:
    assert looks_like_id(text) == (
        0 < len(text.partition(".")[0]) <= 16
        and all(letter in "0123456789abcdef" for letter in text.partition(".")[0].lower())
        and ("." not in text or (text.partition(".")[2].isascii() and text.partition(".")[2].isdigit()))
    )
    assert looks_like_id(new_invocation())


@pytest.mark.parametrize(
    ("files", "state", "code"),
    [
        ({}, "pending", None),
        ({"stage.pre-start": "t"}, "pending", None),
        ({"stage.pre-start": "t", "stage.running": "t"}, "running", None),
        ({"stage.running": "t", "stage.exit": "2026-01-01T00:00:00Z 0"}, "success", 0),
        ({"stage.exit": "2026-01-01T00:00:00Z 3"}, "failed", 3),
        ({"stage.exit": "rubbish"}, "failed", None),
        ({"stage.exit": "t 143", "../artifacts/.nemo_evaluator_interrupted": ""}, "killed", 143),
    ],
)
def test_states_are_read_as_the_launcher_reads_them(
    tmp_path: Path, files: dict[str, str], state: str, code: int | None
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "artifacts").mkdir()
    for name, text in files.items():
        (tmp_path / "logs" / name).write_text(text)
    assert folder_state(entry("aa11", output_dir=str(tmp_path))) == (state, code)
    assert folder_state(entry("aa11", output_dir=str(tmp_path), killed=True))[0] == "killed"


def test_words_of_schedulers() -> None:
    assert [job_state(word) for word in ("completed", "running", "cancelled", "failed (x)", "unknown")] == [
        "success",
        "running",
        "killed",
        "failed",
        "failed",
    ]


def test_replies_on_disk_are_counted(tmp_path: Path) -> None:
    one = entry("aa11", output_dir=str(tmp_path))
    assert count_replies(one) is None
    results = tmp_path / "artifacts/eval-results/gsm8k"
    results.mkdir(parents=True)
    (results / "output-rs0.jsonl").write_text("{}\n{}\n")
    (results / "output-rs1.jsonl-async").write_text("{}\n")
    assert count_replies(one) == 3
    assert json.loads(as_json([(one, "running")]))[0]["progress"] == {"progress": 3}
    (tmp_path / "artifacts/progress").write_text("17\n")
    assert count_replies(one) == 17
