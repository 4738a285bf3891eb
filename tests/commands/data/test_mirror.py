# SPDX-License-Identifier: Apache-2.0
"""`ns mirror`: a folder of data is made from another, checked, and used where there is no network."""

import hashlib
import json
from pathlib import Path

import pytest
from tests.commands.running import ns

import newskills

ROWS = b"".join(b'{"question": "%d?", "answer": "so #### %d"}\n' % (n, n) for n in range(5))
PLACE = "example.invalid/sums.jsonl"
BENCHMARK = """
from newskills.base.benchmark import Benchmark, Source

def row(raw, index):
    return {"problem": raw["question"], "expected_answer": raw["answer"].rpartition(" ")[2]}

def generated(split):
    return [{"problem": "?"}]

SUMS = Benchmark(
    name="sums", category="own", title="Sums", sources=(Source(url="https://example.invalid/sums.jsonl"),), row=row
)
MADE = Benchmark(name="made", category="own", title="Made", generate_rows=generated)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    file = tmp_path / "first" / PLACE
    file.parent.mkdir(parents=True)
    file.write_bytes(ROWS)
    entry = {"path": PLACE, "sha256": hashlib.sha256(ROWS).hexdigest(), "bytes": len(ROWS)}
    (tmp_path / "first/MANIFEST.json").write_text(json.dumps({"files": [entry]}))
    return tmp_path


def test_build_check_use(here: Path) -> None:
    offline = {"NEWSKILLS_OFFLINE": "1", "NEWSKILLS_MIRROR": "first"}
    built = ns("ns mirror build sums.py::SUMS sums.py::MADE second", cwd=here, env=offline)
    assert built.returncode == 0, built.stderr
    assert "sums" in built.stdout
    assert "1 of 1 are in second" in built.stdout
    assert "made is generated" in built.stderr
    again = ns("ns mirror build sums.py::SUMS second", cwd=here, env=offline)
    assert "(1 already there)" in again.stdout
    checked = ns("ns mirror check second", cwd=here)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout == "1 files, 0.0 MB in second: all are intact\n"
    used = ns("ns prepare_data sums.py::SUMS --mirror second --offline --data_dir data", cwd=here)
    assert used.returncode == 0, used.stderr
    assert len((here / "data/sums/test.jsonl").read_text().splitlines()) == 5
    (here / "second" / PLACE).write_bytes(ROWS[:-1])
    broken = ns("ns mirror check", cwd=here, env={"NEWSKILLS_MIRROR": "second"})
    assert broken.returncode == 1
    assert "damaged or only partly copied" in broken.stderr
    refused = ns("ns prepare_data sums.py::SUMS --mirror second --offline --data_dir data2", cwd=here)
    assert refused.returncode == 1
    assert "is damaged" in refused.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ns mirror build", "Which benchmarks, and into which folder?"),
        ("ns mirror build gsm8k", "Which benchmarks, and into which folder?"),
        ("ns mirror build gsmk8 there", "did you mean 'gsm8k'"),
        ("ns mirror check", "Which folder?"),
        ("ns mirror check none", "is not a folder"),
        ("ns mirror check a b", "takes one folder"),
    ],
)
def test_bad_lines(here: Path, line: str, says: str) -> None:
    done = ns(line, cwd=here, env={"NEWSKILLS_MIRROR": ""})
    assert done.returncode != 0
    assert says in done.stderr
    assert not (here / "there").exists()


def test_everything_that_the_mirror_has(here: Path) -> None:
    done = ns("ns prepare_data all --mirror first --offline --data_dir data", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "0 of 0 prepared" in done.stdout
    skipped = "agentdojo, answer-judge, ccc, icpc, reasoning-gym, ruler"
    assert f"skipped, because they download nothing: {skipped}" in done.stderr
    assert "the mirror has no data for them" in done.stderr


def test_a_call_returns_the_mirror(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    monkeypatch.setenv("NEWSKILLS_OFFLINE", "1")
    monkeypatch.setenv("NEWSKILLS_MIRROR", "first")
    made = newskills.mirror(action="build", words=["sums.py::SUMS", "second"])
    assert (made.folder, made.files, made.size, made.problems) == (Path("second"), 1, len(ROWS), [])
    (here / "second" / PLACE).write_bytes(ROWS[:-1])
    broken = newskills.mirror(action="check", words=["second"])
    assert [PLACE in problem for problem in broken.problems] == [True]
    assert newskills.mirror(action="build", words=["sums.py::SUMS", "third"], dry_run=True) is None
    (here / "first" / PLACE).unlink()
    lost = newskills.mirror(action="build", words=["sums.py::SUMS", "third"])
    assert (lost.files, len(lost.problems)) == (0, 1)
