# SPDX-License-Identifier: Apache-2.0
"""Logs of Claude Code 2.1.332, Codex 0.171.0 and OpenCode 1.18.33, written by the programs, shortened."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of
from tests.exchange.imported import only

from newskills.base.errors import DataError
from newskills.base.records import Row

LOGS = Path(__file__).parent / "agent_logs"
TABLES = """
CREATE TABLE session (id text, version text, cost real, tokens_input integer, tokens_output integer,
    tokens_cache_read integer, tokens_cache_write integer, time_created integer);
CREATE TABLE message (id text, session_id text, time_created integer, data text);
CREATE TABLE part (id text, message_id text, session_id text, time_created integer, data text);
"""


def session(path: Path) -> Row:
    (rows,) = only(path).seeds.values()
    (row,) = rows
    return row


def commands(row: Row) -> list[Row]:
    calls = [call for message in row["conversation"] for call in message.get("tool_calls") or ()]
    return [json.loads(call["function"]["arguments"]) for call in calls]


def lines_of(name: str) -> list[Row]:
    return [json.loads(line) for line in (LOGS / name).read_text().splitlines()]


def written(path: Path, lines: list[Row]) -> Path:
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def database(path: Path) -> Path:
    """A database with the session of the exported one, as OpenCode keeps it."""
    whole = json.loads((LOGS / "opencode.json").read_text())
    info = whole["info"]
    with sqlite3.connect(path) as made:
        made.executescript(TABLES)
        made.execute("INSERT INTO session VALUES (?, ?, 0, 300, 30, 0, 0, 1)", [info["id"], info["version"]])
        for number, message in enumerate(whole["messages"]):
            identity = message["info"]["id"]
            made.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?)",
                [identity, info["id"], number, json.dumps(message["info"])],
            )
            for part in message["parts"]:
                made.execute(
                    "INSERT INTO part VALUES (?, ?, ?, 0, ?)", [part["id"], identity, info["id"], json.dumps(part)]
                )
    return path


@pytest.mark.parametrize(
    ("name", "program", "shell", "first"),
    [
        ("claude-code.jsonl", "claude-code", "command", "system"),
        ("codex.jsonl", "codex", "cmd", "system"),
        ("opencode.json", "opencode", "command", "user"),
        ("opencode.db", "opencode", "command", "user"),
    ],
)
def test_a_session_becomes_a_trajectory(name: str, program: str, shell: str, first: str, tmp_path: Path) -> None:
    file = database(tmp_path / name) if name.endswith(".db") else LOGS / name
    imported = only(file)
    assert (imported.benchmark, imported.origin["model"]) == (program, "fake")
    row = session(file)
    assert [command[shell] for command in commands(row)] == ["sh secret.sh", "echo 7919 > answer.txt"]
    conversation = row["conversation"]
    assert conversation[0]["role"] == first
    results = {
        message["tool_call_id"]: message["content"] for message in conversation if message["role"] == "tool"
    }
    calls = [call["id"] for message in conversation for call in message.get("tool_calls") or ()]
    assert list(results) == calls
    assert "secret.sh" in row["problem"]
    assert not row["problem"].startswith("<environment")
    assert (row["generation"], row["num_steps"]) == ("All is done.", 2)
    assert (row["num_input_tokens"], row["num_generated_tokens"]) == (300, 30)
    assert (row["outcome"], row["outcome_cause"]) == ("unscored", "harness")


def test_claude_s_calls_at_once_are_one_message_and_branches_are_left_out(tmp_path: Path) -> None:
    lines = lines_of("claude-code.jsonl")
    call = next(line for line in lines if line["type"] == "assistant")
    result = next(line for line in lines if line.get("sourceToolAssistantUUID") == call["uuid"])
    place = lines.index(call)
    second = json.loads(json.dumps(call)) | {"uuid": "second", "parentUuid": call["uuid"]}
    second["message"]["content"] = [
        {"type": "tool_use", "id": "beside", "name": "Bash", "input": {"command": "ls"}}
    ]
    shown = json.loads(json.dumps(result)) | {
        "uuid": "shown",
        "parentUuid": "second",
        "sourceToolAssistantUUID": "second",
    }
    shown["message"]["content"][0] |= {"tool_use_id": "beside", "content": "answer.txt"}
    left = call | {"uuid": "left", "message": {**call["message"], "id": "msg_left"}}
    aside = call | {"uuid": "aside", "isSidechain": True, "message": {**call["message"], "id": "msg_aside"}}
    row = session(
        written(tmp_path / "log.jsonl", [*lines[: place + 1], second, shown, left, aside, *lines[place + 1 :]])
    )
    assert [command["command"] for command in commands(row)] == ["sh secret.sh", "ls", "echo 7919 > answer.txt"]
    first = next(message for message in row["conversation"] if message.get("tool_calls"))
    assert [call["id"] for call in first["tool_calls"]] == ["call_1", "beside"]
    results = [message["tool_call_id"] for message in row["conversation"] if message["role"] == "tool"]
    assert sorted(results) == ["beside", "call_1", "call_2"]
    assert row["num_generated_tokens"] == 30, "blocks of one reply count once"


def test_a_folder_of_all_three_becomes_records_that_tables_read(tmp_path: Path) -> None:
    shutil.copytree(LOGS, tmp_path / "logs")
    (tmp_path / "logs" / "other.jsonl").write_text('{"a": 1}\n')
    done = ns("ns import logs --output_dir imported", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for program in ("claude-code", "codex", "opencode"):
        assert len(rows_of(tmp_path / "imported/eval-results" / program / "output.jsonl")) == 1
    exported = ns("ns export imported --format atif --output_dir atif", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    trajectories = [json.loads(file.read_text()) for file in (tmp_path / "atif").rglob("*.json")]
    assert len(trajectories) == 3
    assert all(len(trajectory["steps"]) >= 3 for trajectory in trajectories)


def test_logs_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    lines = lines_of("codex.jsonl")
    lines[-2] = lines[-2] | {
        "type": "response_item",
        "payload": {"type": "message", "role": "robot", "content": "x"},
    }
    with pytest.raises(DataError, match=r"bad\.jsonl: .*'robot' is not supported"):
        only(written(tmp_path / "bad.jsonl", lines))
    (tmp_path / "cut.jsonl").write_text((LOGS / "codex.jsonl").read_text()[:-400])
    assert any("the last line is incomplete" in note for note in only(tmp_path / "cut.jsonl").notes)
    broken = database(tmp_path / "broken.db")
    with sqlite3.connect(broken) as made:
        made.execute("UPDATE part SET data = 'no JSON'")
    with pytest.raises(DataError, match=r"broken\.db cannot be read as a database of OpenCode"):
        only(broken)
