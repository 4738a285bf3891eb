# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of docs/examples/commands/, in a folder with results and small files.

`python -m tests.docs.command_examples` writes their outputs into the pages again; those with a line `…` stay as they
are. With names of commands it runs `prepare_data` and these only. Examples below `<!-- nightly -->` need a model or
take long: they are run by name, and by the tests at night.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.commands.running import ns

from newskills.commands.table import GROUPS

ROOT = Path(__file__).parents[2]
_GROUPS = ["data", *(group for group in GROUPS if group != "data")]
"""The others use prepared data."""
PAGES = [ROOT / "docs" / "examples" / "commands" / f"{group}.md" for group in _GROUPS]
FILES = ROOT / "docs" / "examples" / "files"
"""What pages say in words, or in an earlier step."""
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(
    r"(<!-- nightly -->\n)?```bash\n((?:(?!```).)*)```\n(?:\n```text\n((?:(?!```).)*)```\n)?", re.DOTALL
)
FILE = re.compile(r"`([\w./-]+\.\w+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)

Run = Callable[[str, Path, dict[str, str]], tuple[int, str, str]]
"""(command, folder, variables) → exit code, both outputs."""


class CommandExample(NamedTuple):
    section: str
    is_nightly: bool
    commands: str
    output: str


def write_files(folder: Path, pages: tuple[str, ...]) -> None:
    """Write the small files, and those on `pages` of docs/."""
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    for config in (folder / "cluster_configs").iterdir():
        config.write_text(config.read_text(encoding="utf-8").replace("{folder}", str(folder)), encoding="utf-8")
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
    for page in PAGES:
        for section, text in SECTION.findall(page.read_text(encoding="utf-8")):
            for mark, commands, output in EXAMPLE.findall(text):
                yield CommandExample(section, bool(mark), commands, output)


def printed_by(commands: str, folder: Path, mirror: str, run: Run) -> tuple[str, str]:
    """Run each line; return what they print, without the folders of Python and of the run: the standard output of each
    before its errors and notes, and behind them, since a terminal shows them as they come."""
    texts = ["", ""]
    for line in commands.replace("\\\n", "").splitlines():
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


def run_line(line: str, folder: Path, variables: dict[str, str]) -> tuple[int, str, str]:
    """Run one line as a shell does; an `ns` by itself in a process that has its imports."""
    if line.startswith("ns ") and not {"|", ">"} & set(shlex.split(line)):
        done = ns(line, cwd=folder, env=variables)
    else:
        done = subprocess.run(
            line,
            shell=True,
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
    return done.returncode, done.stdout, done.stderr


def written(text: str, folder: Path, *, with_nightly: bool) -> str:
    """Run the examples of a section and return it with their outputs."""

    def replaced(match: re.Match[str]) -> str:
        mark, commands, output = match.groups("")
        if mark and not with_nightly:
            return match[0]
        try:
            printed = printed_by(commands, folder, os.environ.get("NEWSKILLS_MIRROR", ""), run_line)
        except AssertionError as failure:
            print(f"{commands}fails: {failure}")
            return match[0]
        if "…" not in output:
            return f"{mark}```bash\n{commands}```\n\n```text\n{printed[0]}\n```\n"
        if missing := missing_line(output, printed[0]) and missing_line(output, printed[1]):
            print(f"{commands}does not print {missing!r}:\n{printed[0]}")
        return match[0]

    return EXAMPLE.sub(replaced, text)


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [sys.executable, ROOT / "docs/notebooks/make_results.py", "results"], cwd=folder, check=True
        )
        write_files(folder, ("add-a-benchmark", "grading"))

        def section(match: re.Match[str]) -> str:
            if names and match[1] not in ("prepare_data", *names):
                return match[0]
            return f"## {match[1]}\n{written(match[2], folder, with_nightly=match[1] in names)}"

        for page in PAGES:
            page.write_text(SECTION.sub(section, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
