# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of docs/examples/commands.md, in a folder with results and small files.

`python -m tests.docs.command_examples` writes their outputs into the page again; those with a line `…` stay as they
are.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "examples" / "commands.md"
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"```bash\n((?:(?!```).)*)```\n(?:\n```text\n((?:(?!```).)*)```\n)?", re.DOTALL)
FILE = re.compile(r"`([\w./-]+\.\w+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILES = {
    "problems.jsonl": '{"problem": "What is 2+2?", "expected_answer": "4"}\n',
    "train.jsonl": '{"prompt": "Sort: 3 1 2", "completion": "1, 2, 3"}\n' * 3,
    "cluster_configs/slurm.yaml": "executor: slurm\njob_dir: {folder}\n",
}
"""What pages say in words, or in an earlier step."""

Run = Callable[[str, Path, dict[str, str]], tuple[int, str, str]]
"""(command, folder, variables) → exit code, both outputs."""


class CommandExample(NamedTuple):
    section: str
    commands: str
    output: str


def write_files(folder: Path, pages: tuple[str, ...]) -> None:
    """Write the small files, and those on `pages` of docs/."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content.replace("{folder}", str(folder)), encoding="utf-8")
    for page in pages:
        for name, content in FILE.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")


def variables(folder: Path, mirror: str) -> dict[str, str]:
    """Return variables that keep all that commands write in `folder`."""
    return {
        "NEWSKILLS_MIRROR": mirror,
        "NEWSKILLS_DATA_DIR": "data",
        "NEWSKILLS_AGENTS": "agents",
        "XDG_DATA_HOME": str(folder / "share"),
        "ANTHROPIC_API_KEY": "a key",
    }


def examples() -> Iterator[CommandExample]:
    for section, text in SECTION.findall(PAGE.read_text(encoding="utf-8")):
        yield from (CommandExample(section, commands, output) for commands, output in EXAMPLE.findall(text))


def printed_by(commands: str, folder: Path, mirror: str, run: Run) -> tuple[str, str]:
    """Run each line; return what they print, without the folders of Python and of the run: the standard output of each
    before its errors and notes, and behind them, since a terminal shows them as they come."""
    texts = ["", ""]
    for line in commands.splitlines():
        code, output, errors = run(line, folder, variables(folder, mirror))
        assert code == 0, (line, output, errors)
        texts = [texts[0] + output + errors, texts[1] + errors + output]
    first, second = (
        re.sub(r"\S*/python[\d.]*(?= -m)", "python", text).replace(f"{folder}/", "") for text in texts
    )
    return _stripped(first), _stripped(second)


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def missing_line(shown: str, printed: str) -> str:
    """Return the first line of an output on a page that is not printed, or not in this order; empty: none. A line `…`
    stands for any lines, and `…` at the end of a line for the rest of it."""
    if "…" not in shown:
        return "" if shown.strip("\n") == printed else shown
    rest = printed
    for line in (line.rstrip() for line in shown.splitlines()):
        if line in ("", "…"):
            continue
        before, same, rest = rest.partition(line.rstrip(" …"))
        if not same:
            return f"{line} (not behind {before[-200:]!r})"
    return ""


def _run(command: str, folder: Path, env: dict[str, str]) -> tuple[int, str, str]:
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, ""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [sys.executable, ROOT / "docs/notebooks/make_results.py", "results"], cwd=folder, check=True
        )
        write_files(folder, ("add-a-benchmark", "grading"))

        def written(match: re.Match[str]) -> str:
            printed, _ = printed_by(match[1], folder, os.environ.get("NEWSKILLS_MIRROR", ""), _run)
            if match[2] and "…" in match[2]:
                line = missing_line(match[2], printed)
                if line:
                    print(f"{match[1]}does not print {line!r}:\n{printed}")
                return match[0]
            return f"```bash\n{match[1]}```\n\n```text\n{printed}\n```\n"

        PAGE.write_text(EXAMPLE.sub(written, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
