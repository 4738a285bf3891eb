# SPDX-License-Identifier: Apache-2.0
"""The page on the sandbox library, and its README: their code runs as it stands, and their figures agree."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from bench.isolation import ATTEMPTS

import newskills_sandbox
from newskills_sandbox.__main__ import main
from newskills_sandbox.probes import run_probes, strongest_level

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sandbox-library.md").read_text(encoding="utf-8")
README = (ROOT / "libs" / "newskills-sandbox" / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE + README, re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_print_what_they_say(program: str) -> None:
    if strongest_level(run_probes()) == "none":
        pytest.skip("this machine cannot isolate code")
    (said,) = re.findall(r"# (.*)$", program, re.MULTILINE)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "a program of the page", "exec"), {})
    assert printed.getvalue().split() == said.split()


def test_both_have_the_same_figures() -> None:
    figures = PAGE.partition("| | a script |")[2].partition("\n\nbubblewrap leaves")[0]
    assert "bubblewrap" in figures
    assert figures.strip() in README
    assert f"attempts that got out, of {len(ATTEMPTS)} |" in PAGE
    assert PAGE.count(f"{len(ATTEMPTS)}\nattempts") + PAGE.count(f"{len(ATTEMPTS)} attempts") == 1


def test_names_on_the_page_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    names = set(re.findall(r"`(\w*(?:Sandbox|Error|Execution|Limits|Settings)\w*)`", PAGE))
    assert names >= {"SandboxError", "ExecutionRefusedError", "SandboxSettings"}
    assert names <= set(newskills_sandbox.__all__)
    for action in re.findall(r"^python -m newskills_sandbox (\w+)", PAGE, re.MULTILINE):
        with pytest.raises(SystemExit):
            main([action, "--help"])
        assert f"newskills_sandbox {action}" in capsys.readouterr().out
