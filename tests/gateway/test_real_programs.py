# SPDX-License-Identifier: Apache-2.0
"""Claude Code and Codex themselves, where NEWSKILLS_AGENT_PROGRAMS names the folder in which `ns agents install` put
them: they work on a task through the gateway, before a model that only chats."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.scripted import ScriptedModel, call, running

from newskills.agents.definition import fill_placeholders, library_files, placeholder_values, read_definition
from newskills.agents.installing import find_installed, place_of
from newskills.base.records import Reply, Request, Usage
from newskills.gateway.recording import LogRecorder, read_log
from newskills.gateway.segments import conversation_rows
from newskills.gateway.tasks import TaskLimits

PROGRAMS = os.environ.get("NEWSKILLS_AGENT_PROGRAMS", "")
COMMAND = "printf 'hello\\n' > made.txt && cat made.txt"
TASK = "Write hello into made.txt."


class ShellModel(ScriptedModel):
    """Calls the program's own shell once, then says that it is done."""

    def __init__(self, endless: bool = False) -> None:
        super().__init__(Reply(text=""))
        self.endless = endless

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        names = {tool["function"]["name"] for tool in request.tools or ()}
        used = Usage(input_tokens=100, output_tokens=10)
        said = any(message.role == "tool" for message in request.messages or ())
        if not names or (said and not self.endless):
            return Reply(text="Done.", finish_reason="stop", usage=used)
        arguments = f'{{"command": {_json(COMMAND)}, "description": "write"}}'
        name = "Bash"
        if "Bash" not in names:
            name, arguments = "exec_command", f'{{"cmd": {_json(COMMAND)}}}'
        identity = f"call_{len(self.requests)}"
        calls = [call(identity, name, arguments)]
        return Reply(
            text="I write it.", reasoning="Easy.", finish_reason="tool_calls", tool_calls=calls, usage=used
        )


def program_of(name: str) -> str:
    """The program in the folder; the test is skipped where it is not there."""
    definition = read_definition(library_files()[name])
    if not PROGRAMS or find_installed(definition, Path(PROGRAMS)) is None:
        pytest.skip(f"{name} is not here: set NEWSKILLS_AGENT_PROGRAMS to a folder and install it there")
    path: str = fill_placeholders(
        definition.command[0], {**placeholder_values(), "program": str(place_of(definition, Path(PROGRAMS)))}
    )
    return path


def _json(text: str) -> str:
    return '"' + text.replace("\\", "\\\\") + '"'


def claude(url: str, home: Path) -> tuple[Sequence[str], dict[str, str]]:
    variables = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    words = ["-p", TASK, "--model", "m", "--dangerously-skip-permissions", "--output-format", "stream-json"]
    return [program_of("claude-code"), *words, "--verbose"], variables


def codex(url: str, home: Path) -> tuple[Sequence[str], dict[str, str]]:
    provider = f'{{name="ns", base_url="{url}/v1", wire_api="responses", env_key="NS_KEY"}}'
    settings = {
        "model": '"m"',
        "model_provider": '"ns"',
        "model_providers.ns": provider,
        "web_search": '"disabled"',
        "analytics.enabled": "false",
        "check_for_update_on_startup": "false",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    words = [
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "--json",
        *options,
        TASK,
    ]
    (home / "codex").mkdir()
    return [program_of("codex"), *words], {"NS_KEY": "x", "CODEX_HOME": str(home / "codex")}


def work(argv: Sequence[str], variables: dict[str, str], home: Path) -> subprocess.CompletedProcess[str]:
    folder = home / "work"
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment = {**kept, "HOME": str(home), **variables}
    return subprocess.run(
        argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
    )


@pytest.mark.parametrize("program", [claude, codex], ids=["claude", "codex"])
def test_a_program_writes_a_file_and_is_recorded(program: Any, tmp_path: Path) -> None:
    model, recorder = ShellModel(), LogRecorder(tmp_path)
    with running(model, recorder=recorder) as served:
        argv, variables = program(f"{served.url}/t1", tmp_path)
        done = work(argv, variables, tmp_path)
    recorder.close()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / "work" / "made.txt").read_text() == "hello\n"
    log = read_log(tmp_path / "gateway.jsonl")
    assert not [exchange for exchange in log.exchanges if exchange.error]
    rows = [row for row in conversation_rows(log) if row.get("tools")]
    assert len(rows) == 1
    roles = [message["role"] for message in rows[0]["conversation"]]
    assert roles[-4:] == ["user", "assistant", "tool", "assistant"]
    result = rows[0]["conversation"][-2]
    assert "hello" in str(result["content"])
    assert len(rows[0]["conversation"][-3]["tool_calls"]) == 1


@pytest.mark.parametrize("program", [claude, codex], ids=["claude", "codex"])
def test_a_program_that_would_never_end_is_ended_by_the_limit(program: Any, tmp_path: Path) -> None:
    model = ShellModel(endless=True)
    with running(model, limits=TaskLimits(requests=4)) as served:
        argv, variables = program(f"{served.url}/t1", tmp_path)
        work(argv, variables, tmp_path)
    assert len(model.requests) == 4
