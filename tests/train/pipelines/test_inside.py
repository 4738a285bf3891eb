# SPDX-License-Identifier: Apache-2.0
"""Around a trainer inside a job: data that it could not learn from, the time limit, signals, interpreters."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.records import Row
from newskills.train.pipelines.formats import GRPO, PPO, SFT, FormatError, examine_file, rows_of
from newskills.train.pipelines.inside import AGAIN, main, python_words

SOURCE = str(Path(__file__).parents[3] / "src")


def lines(path: Path, *rows: Row | str) -> str:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


PAIR, TALK = {"input": "a", "output": "b"}, {"messages": [{"role": "user", "content": "a"}]}


@pytest.mark.parametrize(
    ("rows", "forms", "form", "both", "tools"),
    [
        ([PAIR, PAIR], SFT, "input_output", False, False),
        ([TALK], SFT, "messages", False, False),
        ([TALK, TALK | {"tools": []}], SFT, "messages", False, True),
        ([PAIR | TALK], SFT, "messages", True, False),
        ([{"problem": "p", "expected_answer": "1"}], GRPO, "plain", False, False),
        ([{"responses_create_params": {}, "problem": "p", "expected_answer": "1"}], GRPO, "gym", False, False),
        ([{"data_source": "x", "prompt": [], "reward_model": {}}], PPO, "verl", False, False),
    ],
)
def test_the_first_row_tells_the_form(
    tmp_path: Path, rows: list[Row], forms: tuple[str, ...], form: str, both: bool, tools: bool
) -> None:
    found = examine_file(lines(tmp_path / "a.jsonl", "", *rows), forms)
    assert found == (form, len(rows), both, tools)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "is empty"),
        ([""], "is empty"),
        (
            [{"question": 1, "answer": 2}],
            "line 1, is not {messages} or {input, output}; its keys are question, answer",
        ),
        (
            [PAIR, TALK],
            "line 2, has no 'input' and no 'output', unlike the lines before it; its keys are messages",
        ),
        ([PAIR, "{"], "line 2, is not JSON"),
        ([PAIR, "[1]"], "line 2, is not a JSON object"),
        (["[" * 100_000], "line 1, is not JSON"),
        ([{}], "its keys are none"),
    ],
)
def test_what_cannot_be_learned_from_is_told_with_its_line(tmp_path: Path, rows: list[Any], said: str) -> None:
    with pytest.raises(FormatError) as error:
        examine_file(lines(tmp_path / "a.jsonl", *rows), SFT)
    assert said in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="No such file"):
        examine_file(tmp_path / "none.jsonl", PPO)


def test_parquet_is_left_to_verl(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1rest")
    assert examine_file(tmp_path / "a.parquet", PPO).form == "verl"
    with pytest.raises(FormatError):
        examine_file(tmp_path / "a.parquet", SFT)


@given(st.lists(st.dictionaries(st.text(max_size=4), st.integers(), max_size=3), max_size=4))
def test_rows_come_back_with_their_line_numbers(rows: list[dict[str, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(b"\n".join(json.dumps(row).encode() for row in rows))
        assert list(rows_of(path)) == list(enumerate(rows, 1))


def test_a_trainer_never_starts_on_bad_data(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "made"
    code = main(
        [f"--check=messages:{lines(tmp_path / 'a', PAIR)}", "--", "python", "-c", f"open({str(made)!r}, 'w')"]
    )
    assert code == 1
    assert "its keys are input, output" in capfd.readouterr().err
    assert not made.exists()


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("print('out of time: saved')", AGAIN),
        ("print('done')", 0),
        ("print('out of time'); raise SystemExit(3)", 3),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
    ],
)
def test_how_a_trainer_ended(program: str, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--stopped=out of time", "--", "python", "-c", program]) == code


def test_a_trainer_that_does_not_start(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--", "/no/such/trainer"]) == 127
    assert "does not start" in capfd.readouterr().err


def test_term_reaches_the_trainer_which_saves() -> None:
    program = (
        "import os, signal, sys, time\n"  # os.write: a print that is interrupted by another one fails
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'saved\\n'), sys.exit(7)))\n"
        "os.write(1, b'ready\\n')\n"
        "time.sleep(60)"
    )
    module = [sys.executable, "-m", "newskills.train.pipelines.inside", "--", "python", "-c", program]
    process = subprocess.Popen(module, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as out:
        assert out.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert out.readline() == "saved\n"
    assert process.wait(50) == 7


def test_the_interpreter_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert python_words("") == python_words(str(tmp_path)) == [sys.executable]
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "uv").write_text("#!/bin/sh\n")
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert python_words(str(tmp_path)) == ["uv", "run", "--project", str(tmp_path), "python"]


def test_it_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    """It runs in the images of trainers, which have none of our dependencies."""
    for module in ("inside", "harvest"):
        line = [sys.executable, "-I", "-S", "-c", _ALONE.format(module=module, source=SOURCE)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


_ALONE = """
import sys
sys.path.insert(0, {source!r})
import newskills.train.pipelines.{module}
"""


def test_a_python_that_cannot_grade_is_told_before_the_trainer_starts(capfd: pytest.CaptureFixture[str]) -> None:
    """By its own words, and with what to type."""
    assert main(["--needs=no_such_module", "--", "python", "-c", "print('trains')"]) == 1
    said = capfd.readouterr()
    assert (
        "the trainer's Python cannot grade answers: ModuleNotFoundError: No module named 'no_such_module'"
        in said.err
    )
    assert "--installation_command='pip install msgspec" in said.err
    assert "trains" not in said.out
    assert main(["--needs=newskills.graders.worker", "--", "python", "-c", "print('trains')"]) == 0
    assert capfd.readouterr().out == "trains\n"
