# SPDX-License-Identifier: Apache-2.0
"""Programs of training rows in the real sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import DataError, SandboxError
from newskills.base.store import read_rows, write_rows
from newskills.sandbox.config import SandboxConfig
from newskills_aimo.recipe.programs import CodeBlock, ProgramCheck, find_code_blocks, keep_true, same_output

CHECK = ProgramCheck(timeout=3.0, sandbox=SandboxConfig(preload=()))
KEPT = """First:
```python
x = 2
print(x, 1 / 3)
```
```output
2 0.33333333
```
then
```python
print(x + 1)
```
```output
3
```
So \\boxed{3}."""


def program(code: str, shown: str | None) -> str:
    output = "" if shown is None else f"```output\n{shown}\n```\n"
    return f"```python\n{code}\n```\n{output}So \\boxed{{1}}."


CASES = {
    KEPT: "kept",
    program("x = 1", None): "kept",
    "in words only": "without code",
    program("print(1)", "2"): "with another output",
    program("1 / 0", "Traceback (most recent call last):"): "failing",
    program("while True: pass", "1"): "too slow",
    program("print(1)", "1") * 6: "with more than 5 code blocks",
    program("import os; os.kill(os.getpid(), 9)", "1"): "failing",
}


def row(solution: str) -> dict[str, list[dict[str, Any]]]:
    return {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": solution}]}


def test_rows_stay_whose_programs_do_what_they_show(tmp_path: Path) -> None:
    said: list[Any] = []
    target = tmp_path / "checked.jsonl"
    counts = keep_true([row(text) for text in CASES], target, CHECK, say=said.append)
    verdicts = [one["verdict"] for one in read_rows(tmp_path / "checked.verdicts.jsonl")]
    assert verdicts == list(CASES.values())
    assert counts["kept"] == 2
    assert [one["messages"][1]["content"] for one in read_rows(target)] == list(CASES)[:2]
    assert said == ["the code of 8 of 8 rows was run"]


def test_a_check_goes_on_behind_its_verdicts(tmp_path: Path) -> None:
    rows = [row(KEPT) for _ in range(4)]
    write_rows(tmp_path / "checked.verdicts.jsonl", [{"verdict": "kept"}, {"verdict": "failing"}])
    with (tmp_path / "checked.verdicts.jsonl").open("a") as file:
        file.write('{"verdict": "ke')
    counts = keep_true(rows, tmp_path / "checked.jsonl", CHECK, say=lambda _: None)
    assert counts == {"kept": 3, "failing": 1}


def test_a_broken_sandbox_drops_no_row(tmp_path: Path) -> None:
    nowhere = ProgramCheck(sandbox=SandboxConfig(host="127.0.0.1", port=9))
    with pytest.raises(SandboxError):
        keep_true([row(KEPT)], tmp_path / "checked.jsonl", nowhere, say=lambda _: None)
    assert not (tmp_path / "checked.jsonl").exists()
    assert keep_true([row(KEPT)], tmp_path / "checked.jsonl", CHECK, say=lambda _: None)["kept"] == 1


def test_no_row_left_is_told_with_the_reasons(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 without code"):
        keep_true([row("no"), row("none")], tmp_path / "checked.jsonl", CHECK, say=lambda _: None)


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ("0.3333333", "0.33333333333", True),
        ("(1, 2)", "(1,  2)\n", True),
        ("[0.5, 1.0]", "[0.5000000001, 1.0]", True),
        ("3", "4", False),
        ("x", "x y", False),
        ("nan", "1", False),
        ("1e309", "inf", True),
    ],
)
def test_outputs_are_the_same_but_for_the_last_digits(shown: str, real: str, same: bool) -> None:
    assert same_output(shown, real) is same


@given(
    st.lists(st.tuples(st.text("abc=1 \n", min_size=1), st.none() | st.text("xyz 123", min_size=1)), max_size=6)
)
def test_programs_are_found_as_they_were_written(parts: list[tuple[str, str | None]]) -> None:
    parts = [(code.strip("\n") or "a", shown) for code, shown in parts]
    text = "words\n".join(program(code, shown) for code, shown in parts)
    assert find_code_blocks(text) == [CodeBlock(code, shown) for code, shown in parts]
