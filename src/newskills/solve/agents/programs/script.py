# SPDX-License-Identifier: Apache-2.0
"""The shell scripts around a program: they write its files and variables, start it, and gather its own log.

All that comes from a task or a model is quoted, and nothing of it is a placeholder.
"""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Mapping, Sequence

from newskills.agents.definition import OUT, AgentDefinition, fill_placeholders
from newskills.base.environment import McpServer
from newskills.solve.agents.programs.program import WORK

TASK_FILE = f"{WORK}/task.md"
OWN_LOG = f"{OUT}/own-log"
MOST_LOG_FILES = 100
LARGEST_LOG_FILE = 32 << 20
LONGEST_WORD = 120_000
"""Bytes of one word of a command line; Linux allows 131,072."""


def run_script(
    definition: AgentDefinition,
    values: Mapping[str, str],
    variables: Mapping[str, str],
    words: Sequence[str],
    servers: Sequence[McpServer] = (),
) -> str:
    """Return the script that runs `words` where the program finds its files and variables, those for MCP servers
    among them.

    HOME is the environment's own, where that can be written to.
    """
    lines = [
        "umask 022",
        f'if [ -z "$HOME" ] || [ ! -w "$HOME" ]; then HOME={WORK}/home; export HOME; fi',
        f'mkdir -p {OUT} "$HOME"',
        *_write_commands(TASK_FILE, values["task"]),
    ]
    files = dict(definition.files)
    entries = definition.mcp.entries(servers)
    if entries and definition.mcp.file:
        place = definition.mcp.file
        files[place] = {**files.get(place, {}), definition.mcp.field: entries}
    elif entries:
        words = [*words, *(word for entry in entries.values() for word in entry)]
    for path, content in files.items():
        if isinstance(content, str):
            text = fill_placeholders(content, values)
        else:
            text = json.dumps(fill_placeholders(content, values), indent=2, ensure_ascii=False)
        lines += _write_commands(fill_placeholders(path, values), text)
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join([*lines, f"exec {shlex.join(words)}", ""])


def gather_script(definition: AgentDefinition) -> str:
    """Return the script that copies what the program has logged to OWN_LOG, and removes its files from the task's
    folder."""
    patterns = " ".join(
        _shell_path(pattern, is_pattern=True) for pattern in fill_placeholders(definition.log, {"out": OUT})
    )
    lines = [f"rm -rf {OWN_LOG}; mkdir -p {OWN_LOG}; n=0"]
    if patterns:
        lines += [
            f"for file in {patterns}; do",
            f'  if [ -f "$file" ] && [ ! -L "$file" ] && [ $n -lt {MOST_LOG_FILES} ]; then',
            f'    n=$((n+1)); head -c {LARGEST_LOG_FILE} "$file" > "{OWN_LOG}/$n-${{file##*/}}"',
            "  fi",
            "done",
        ]
    for pattern in definition.leaves:
        lines.append(f"rm -rf -- {_shell_path(pattern, is_pattern=True)}")
    return "\n".join([*lines, "true"])


def _write_commands(path: str, text: str) -> list[str]:
    """Return the lines that write `text` to `path`."""
    place = _shell_path(path)
    end = f"END-{secrets.token_hex(12)}"
    return [f'mkdir -p "$(dirname {place})"', f"cat > {place} <<'{end}'", text, end]


def _shell_path(path: str, *, is_pattern: bool = False) -> str:
    """Return a path as a word of the shell: a leading `~` is the home, and the signs of a pattern keep their
    meaning."""
    start, rest = "", path
    if path.startswith("~/"):
        start, rest = '"$HOME"/', path[2:]
    if not is_pattern:
        return start + shlex.quote(rest)
    return start + "".join(sign if sign in "*?" else shlex.quote(sign) for sign in rest)
