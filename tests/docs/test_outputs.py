# SPDX-License-Identifier: Apache-2.0
"""Pages show what commands print: those that need no model and no cluster are run, with the files of their page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.commands.running import ns

DOCS = Path(__file__).parents[2] / "docs"
FILE = re.compile(r"`([\w./-]+\.\w+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```(?:bash)?\n([^`]*)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN = {
    "add-a-benchmark": "ns validate ./sums.py",
    "agents": "ns agents",
    "grading": "ns grade",
    "models": "ns generate --dry_run",
    "slurm": "ns prepare_data gsm8k",
}
"""Page → beginning of the block of commands that is run."""
FILES = {
    "problems.jsonl": '{"problem": "What is 2+2?", "expected_answer": "4"}\n',
    "cluster_configs/slurm.yaml": "executor: slurm\njob_dir: jobs\n",
}
"""What pages say in words, or in an earlier step."""


def normalised(text: str) -> str:
    """Return a text without what differs between machines: blanks at the end, the folder of Python."""
    return re.sub(r"\S*/python[\d.]*(?= -m)", "python", re.sub(r" +$", "", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", RUN)
def test_the_page_shows_what_its_commands_print(page: str, tmp_path: Path, mirror: Path) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for name, content in (FILES | dict(FILE.findall(text))).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content.replace("job_dir: jobs", f"job_dir: {tmp_path}"), encoding="utf-8")
    commands, expected = next(found for found in SHOWN.findall(text) if found[0].startswith(RUN[page]))
    env = {
        "NEWSKILLS_MIRROR": str(mirror),
        "NEWSKILLS_DATA_DIR": str(tmp_path / "data"),
        "NEWSKILLS_AGENTS": str(tmp_path / "agents"),
        "ANTHROPIC_API_KEY": "a key",
    }
    printed = ""
    for line in commands.replace("\\\n", "").splitlines():
        done = ns(line, cwd=tmp_path, env=env)
        assert done.returncode == 0, (line, done.stderr)
        printed += done.stdout + done.stderr
    rest = normalised(printed)
    for line in filter(None, expected.splitlines()):
        if line == "…":
            continue
        before, shown, rest = rest.partition(line.rstrip(" …"))
        assert shown, f"{line!r} is not in what is printed, or not in this order:\n{before}"
