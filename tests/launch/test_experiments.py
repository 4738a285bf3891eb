# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from newskills.base.errors import ConfigError, DataError, StorageError, UnknownNameError
from newskills.base.plan import Pipeline
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import (
    Experiment,
    ExperimentRecords,
    JobRecord,
    experiments_folder,
    job_root,
    new_stamp,
)
from newskills.launch.package import Package


def experiment(name: str, stamp: str, handle: str = "1") -> Experiment:
    return Experiment(
        name=name,
        stamp=stamp,
        submitted_at="2026-11-21T16:00:00+00:00",
        cluster=ClusterConfig(name="mine"),
        folder=f"/jobs/{name}/{stamp}",
        package=Package(path="/code"),
        jobs=(JobRecord(name="j", folder="/f", logs="/l", handle=handle),),
    )


@pytest.fixture
def records(tmp_path: Path) -> ExperimentRecords:
    found = ExperimentRecords({"NEWSKILLS_EXPERIMENTS_DIR": str(tmp_path / "e")})
    for name, stamp in (
        ("eval", "20260101-a"),
        ("eval", "20260102-b"),
        ("eval-big", "20260103-c"),
        ("sft", "20250101-d"),
    ):
        found.create(experiment(name, stamp), Pipeline(name=name, jobs=()), ["a b.py", "c.py"])
    return found


def test_finds_the_latest_by_name_and_others_by_id(records: ExperimentRecords) -> None:
    assert records.find("eval").stamp == "20260102-b"
    assert records.find("eval/20260101-a").stamp == "20260101-a"
    assert records.find("eval/20260101").stamp == "20260101-a"
    assert records.find("sf").name == "sft"
    assert records.find("eval-").name == "eval-big"
    assert [one.stamp for one in records.all_of("eval")] == ["20260102-b", "20260101-a"]
    assert records.names() == ["eval-big", "eval", "sft"]
    assert [one.stamp[-1] for one in records.latest()] == ["c", "b", "a", "d"]


@pytest.mark.parametrize(
    ("what", "error", "sentence"),
    [
        ("evol", UnknownNameError, "did you mean 'eval'"),
        ("zzz", UnknownNameError, "the choices are eval, eval-big, sft. ns experiments lists them"),
        ("ev", ConfigError, "Several experiments begin with 'ev': eval, eval-big"),
        ("eval/2026", ConfigError, "Several experiments have the name eval/2026"),
        ("eval/1999", UnknownNameError, "eval/1999"),
        ("../../etc", ConfigError, "not the name of an experiment"),
        ("", ConfigError, "not the name of an experiment"),
    ],
)
def test_says_what_there_is_instead(
    records: ExperimentRecords, what: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        records.find(what)


def test_nothing_was_submitted(tmp_path: Path) -> None:
    records = ExperimentRecords({"NEWSKILLS_EXPERIMENTS_DIR": str(tmp_path / "none")})
    assert (records.names(), list(records.latest()), records.all_of("x"), records.all_of("../x")) == (
        [],
        [],
        [],
        [],
    )


def test_records_are_whole_private_and_readable(records: ExperimentRecords) -> None:
    folder = records.folder / "eval" / "20260101-a"
    assert sorted(os.listdir(folder)) == ["experiment.json", "files.txt", "plan.json"]
    assert (folder / "files.txt").read_text() == "a b.py\nc.py\n"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert json.loads((folder / "experiment.json").read_text())["cluster"]["name"] == "mine"
    records.update(experiment("eval", "20260101-a", handle="2"))
    assert records.find("eval/20260101-a").handles == ("2",)


def test_a_record_is_written_once(records: ExperimentRecords) -> None:
    with pytest.raises(StorageError):
        records.create(experiment("eval", "20260101-a"), Pipeline(name="eval", jobs=()), [])
    assert sorted(os.listdir(records.folder / "eval")) == ["20260101-a", "20260102-b"]


def test_a_broken_record_names_itself(records: ExperimentRecords) -> None:
    (records.folder / "sft" / "20250101-d" / "experiment.json").write_text("{")
    with pytest.raises(DataError, match=r"sft/20250101-d/experiment.json .*rm -r"):
        records.find("sft")


def test_where_things_are(tmp_path: Path) -> None:
    assert experiments_folder({"NEMO_SKILLS_EXPERIMENTS_DIR": "/x"}).as_posix() == "/x"
    assert experiments_folder({"HOME": "/home/me"}).as_posix() == "/home/me/.local/share/newskills/experiments"
    assert experiments_folder({"HOME": "/h", "XDG_DATA_HOME": "/d"}).as_posix() == "/d/newskills/experiments"
    assert job_root(ClusterConfig(job_dir="/lustre/jobs"), {}) == "/lustre/jobs"
    assert job_root(ClusterConfig(), {}).endswith("newskills/jobs")
    assert len({new_stamp() for _ in range(50)}) > 45
    assert msgspec.json.decode(msgspec.json.encode(experiment("a", "b")), type=Experiment) == experiment("a", "b")
