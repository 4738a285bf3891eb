# SPDX-License-Identifier: Apache-2.0
"""The page for users of lm_eval: its files are written, its command is run, and its output is what came."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.harness.endpoint import ScriptedEndpoint, ScriptedModel, make_tokenizer

pytest.importorskip("lm_eval", reason="no lm_eval here: pip install -e '.[lm-eval]'")

PAGE = Path(__file__).parents[2] / "docs" / "from-lm-eval.md"
FILE = re.compile(r"`(\w+\.\w+)`(?:, [^:\n]*)?:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN = re.compile(r"^```bash\n(ns eval.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


def table(text: str) -> list[str]:
    """The lines of the tables, without those of the display."""
    lines = [line.rstrip() for line in text.splitlines()]
    first = next(at for at, line in enumerate(lines) if line.startswith("----"))
    last = next(at for at, line in enumerate(lines) if line.startswith("To see the samples"))
    return [line for line in lines[first:last] if line]


def test_the_command_gives_what_the_page_shows(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    (command, shown), *_ = RUN.findall(text)
    model = ScriptedModel(make_tokenizer(tmp_path / "tokenizer"), ["Paris"])
    with ScriptedEndpoint(model) as endpoint:
        typed = shlex.join(shlex.split(command)).replace("http://localhost:8000/v1", endpoint.url)
        env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data"), "HF_HOME": str(tmp_path / "hub")}
        done = ns(typed, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    seconds = re.compile(r"(\| 4 +\| \d+ +\|) \d+ ")
    ours, theirs = ("\n".join(table(each)) for each in (done.stdout, f"{shown}\nTo see the samples"))
    assert seconds.sub(r"\1 0 ", ours) == seconds.sub(r"\1 0 ", theirs)
