# SPDX-License-Identifier: Apache-2.0
"""What agents that are programs write of themselves: Claude Code (`~/.claude/projects/*/*.jsonl`), Codex
(`$CODEX_HOME/sessions/*/*/*/rollout-*.jsonl`) and OpenCode (`opencode.db`, `opencode export SESSION`).

A session is a record without a verdict, hence unscored. The gateway's own readers of Anthropic's and OpenAI's messages
make its conversation.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.errors import DataError
from newskills.base.reading.json_values import object_or_empty, text_or_empty
from newskills.base.records import Row
from newskills.exchange.importers import (
    ImportedBenchmark,
    ImportSource,
    by_seed,
    origin_of,
    read_lines,
    unscored_fields,
)
from newskills.exchange.importers.atif import first_text
from newskills.exchange.json_of_others import finite_json, load_json
from newskills.gateway.form import GatewayProblem, ProgramProtocol
from newskills.gateway.protocols.messages import MessagesProtocol
from newskills.gateway.protocols.responses import ResponsesProtocol

FORMAT = "agent-logs"
CLAUDE, CODEX, OPENCODE = "claude-code", "codex", "opencode"
SUFFIXES = (".jsonl", ".json", ".db")
_PROBED_BYTES = 1 << 16
_TABLES = {"session", "message", "part"}
_CODEX_ITEMS = ("message", "reasoning", "function_call", "custom_tool_call")
_CODEX_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""How messages of the user begin that Codex has written itself."""
_CODEX_RESULTS = ("function_call_output", "custom_tool_call_output")


def fits(path: Path) -> bool:
    return any(_log_program(file) for file in _log_files(path))


def read(source: ImportSource) -> list[ImportedBenchmark]:
    """Read the sessions of each program as records of a benchmark of its name. Raises DataError: no logs, broken
    ones."""
    notes: list[str] = []
    rows: dict[str, list[Row]] = {}
    models: dict[str, set[str]] = {}
    for file in _log_files(source.path):
        if program := _log_program(file):
            for row, model in _READERS[program](file, notes):
                rows.setdefault(program, []).append(row)
                models.setdefault(program, set()).update({model} - {""})
    if not rows:
        raise DataError(f"{source.path} has no log of Claude Code, Codex or OpenCode.")
    imported = []
    for program, sessions in rows.items():
        only_model: str | None = None
        if len(models[program]) == 1:
            (only_model,) = models[program]
        origin = origin_of(FORMAT, source.path, {"model": only_model})
        seeds = by_seed(program, ((None, row) for row in sessions), notes)
        imported.append(ImportedBenchmark(benchmark=program, seeds=seeds, origin=origin, notes=notes))
    return imported


def _log_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    else:
        yield from sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())


def _log_program(file: Path) -> str:
    """Return which program wrote a file; empty: none of them."""
    if file.suffix not in SUFFIXES:
        return ""
    with file.open("rb") as opened:
        head = opened.read(_PROBED_BYTES)
    if file.suffix == ".db":
        if head.startswith(b"SQLite format 3") and _table_names(file) >= _TABLES:
            return OPENCODE
        return ""
    if file.suffix == ".json":
        if b'"info"' in head[:200] and b'"projectID"' in head:
            return OPENCODE
        return ""
    if b'"type":"session_meta"' in head.replace(b" ", b""):
        return CODEX
    if b'"sessionId"' in head and b'"parentUuid"' in head and b'"provenance"' not in head:
        return CLAUDE
    return ""


def _table_names(file: Path) -> set[str]:
    """Return the names of a database's tables; none where it cannot be read."""
    with suppress(sqlite3.Error), closing(_open_database(file)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return set()


def _open_database(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)


def _session_record(identity: str, conversation: list[Row], program: str, **more: Any) -> Row:
    """Return the record of a session."""
    replies = [message for message in conversation if message["role"] == "assistant"]
    generation = ""
    if replies:
        generation = text_or_empty(replies[-1].get("content"))
    return {
        "id": identity,
        "problem": first_text(conversation),
        "generation": generation,
        "conversation": conversation,
        "num_steps": sum(len(message.get("tool_calls") or ()) for message in replies),
        "agent": program,
        **{name: value for name, value in more.items() if value},
        **unscored_fields("harness", "the session has no verdict"),
    }


def _translate_request(
    protocol: ProgramProtocol, body: Row, file: Path, notes: list[str]
) -> tuple[list[Row], list[Row]]:
    """Return (messages, tools) of the body of a request. Raises DataError."""
    try:
        request = protocol.read(body, "", False)
    except GatewayProblem as problem:
        raise DataError(f"{file}: {problem.message}") from problem
    notes.extend(f"{file}: {note}." for note in dict.fromkeys(request.notes))
    rows: list[Row] = msgspec.to_builtins(request.messages)
    return [{name: value for name, value in row.items() if value is not None} for row in rows], request.tools


def _claude_sessions(file: Path, notes: list[str]) -> Iterator[tuple[Row, str]]:
    """Yield the session of a file; what sub-agents said in it is left out."""
    lines = list(read_lines(file, load_json, notes))
    nodes = {str(line["uuid"]): line for line in lines if isinstance(line.get("uuid"), str)}
    own = [line for line in nodes.values() if not line.get("isSidechain")] or list(nodes.values())
    turns = [line for line in own if line.get("type") in ("user", "assistant")]
    if not turns:
        return
    chain = _chain_ids(nodes, turns[-1])
    replies = {_reply_id(nodes[identity]) for identity in chain} - {""}
    kept = chain | {line["uuid"] for line in turns if _reply_id(line) in replies}
    messages: list[Row] = []
    by_reply: dict[str, Row] = {}
    for line in turns:
        if line["uuid"] not in kept and line.get("sourceToolAssistantUUID") not in kept:
            continue  # of a branch that the person has left
        message, reply = object_or_empty(line.get("message")), _reply_id(line)
        if reply in by_reply:  # each block of a reply has a line of its own
            by_reply[reply]["content"] += _content_blocks(message)
        else:
            messages.append({"role": message.get("role"), "content": _content_blocks(message)})
        if reply:
            by_reply.setdefault(reply, messages[-1])["usage"] = object_or_empty(message.get("usage"))
    usage = [message.get("usage", {}) for message in messages]
    shape: Row = next((line["shape"] for line in lines if isinstance(line.get("shape"), dict)), {})
    body = {"messages": messages, "system": shape.get("system"), "tools": shape.get("tools")}
    conversation, tools = _translate_request(MessagesProtocol(), body, file, notes)
    models = [str(object_or_empty(line.get("message")).get("model") or "") for line in turns]
    cost = next((line.get("totalCostUSD") for line in reversed(lines) if line.get("type") == "cost-state"), None)
    row = _session_record(
        str(turns[0].get("sessionId") or file.stem),
        conversation,
        CLAUDE,
        tools=tools,
        agent_version=turns[-1].get("version"),
        num_input_tokens=_total_tokens(
            usage, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
        ),
        num_generated_tokens=_total_tokens(usage, "output_tokens"),
        cost=cost,
    )
    yield row, next(filter(None, models), "")


def _chain_ids(nodes: dict[str, Row], last: Row) -> set[str]:
    """Return the identities of the lines that lead to `last`, which has them before it."""
    chain: set[str] = set()
    line: Row | None = last
    while line is not None and line["uuid"] not in chain:
        chain.add(line["uuid"])
        before = line.get("parentUuid") or line.get("logicalParentUuid")  # where it was compacted
        line = nodes.get(str(before))
    return chain


def _reply_id(line: Row) -> str:
    if line.get("type") != "assistant":
        return ""
    return str(object_or_empty(line.get("message")).get("id") or line["uuid"])


def _content_blocks(message: Row) -> list[Row]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    return []


def _total_tokens(usage: list[Row], *names: str) -> int:
    return sum(value for counts in usage for name in names if isinstance(value := counts.get(name), int))


def _codex_sessions(file: Path, notes: list[str]) -> Iterator[tuple[Row, str]]:
    """Yield the session of a rollout. What was compacted stays in it."""
    meta: Row = {}
    items: list[Row] = []
    total: Row = {}
    model, dropped = "", set[str]()
    for line in read_lines(file, load_json, notes):
        payload, kind = object_or_empty(line.get("payload")), line.get("type")
        if kind == "session_meta" and not meta:
            meta = payload
        elif kind == "turn_context":
            model = str(payload.get("model") or model)
        elif kind == "event_msg" and payload.get("type") == "token_count":
            total = object_or_empty(object_or_empty(payload.get("info")).get("total_token_usage")) or total
        elif kind == "response_item" and payload.get("type") in (*_CODEX_ITEMS, *_CODEX_RESULTS):
            items.append(payload)
        elif kind == "response_item":
            dropped.add(str(payload.get("type")))
    notes.extend(f"{file}: dropped items of type {kind}." for kind in sorted(dropped))
    if not items:
        return
    body = {"input": items, "instructions": object_or_empty(meta.get("base_instructions")).get("text") or ""}
    conversation, _ = _translate_request(ResponsesProtocol(), body, file, notes)
    spoken = [message for message in conversation if not str(message.get("content")).startswith(_CODEX_CONTEXT)]
    row = _session_record(
        str(meta.get("id") or file.stem),
        conversation,
        CODEX,
        problem=first_text(spoken),
        agent_version=meta.get("cli_version"),
        num_input_tokens=total.get("input_tokens"),
        num_generated_tokens=total.get("output_tokens"),
    )
    yield row, model


def _opencode_sessions(file: Path, notes: list[str]) -> Iterator[tuple[Row, str]]:
    """Yield the sessions of a database or of an exported one; those of sub-agents stand for themselves."""
    sessions: Iterable[tuple[Row, list[Row]]]
    if file.suffix == ".json":
        sessions = _exported_sessions(file)
    else:
        sessions = _stored_sessions(file)
    for info, messages in sessions:
        models = {str(object_or_empty(message.get("info")).get("modelID") or "") for message in messages} - {""}
        tokens = object_or_empty(info.get("tokens"))
        cache = object_or_empty(tokens.get("cache"))
        sent = (tokens.get("input"), cache.get("read"), cache.get("write"))
        row = _session_record(
            str(info.get("id") or file.stem),
            [spoken for message in messages for spoken in _message_turns(message)],
            OPENCODE,
            agent_version=info.get("version"),
            num_input_tokens=sum(count for count in sent if isinstance(count, int)),
            num_generated_tokens=tokens.get("output"),
            cost=info.get("cost"),
        )
        if row["conversation"]:
            yield row, models.pop() if len(models) == 1 else ""


def _exported_sessions(file: Path) -> list[tuple[Row, list[Row]]]:
    try:
        whole = finite_json(load_json(file.read_bytes()))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: invalid JSON ({error}).") from error
    messages = [message for message in whole.get("messages") or () if isinstance(message, dict)]
    return [(object_or_empty(whole.get("info")), messages)]


def _stored_sessions(file: Path) -> Iterator[tuple[Row, list[Row]]]:
    """Yield (session, messages) of a database, which is only read. Raises DataError."""
    try:
        with closing(_open_database(file)) as database:
            database.row_factory = sqlite3.Row
            for session in database.execute("SELECT * FROM session ORDER BY time_created, id").fetchall():
                parts: dict[str, list[Row]] = {}
                for part in database.execute(
                    "SELECT * FROM part WHERE session_id = ? ORDER BY id", [session["id"]]
                ):
                    parts.setdefault(part["message_id"], []).append(json.loads(part["data"]))
                messages = [
                    {"info": json.loads(message["data"]), "parts": parts.get(message["id"], [])}
                    for message in database.execute(
                        "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id", [session["id"]]
                    )
                ]
                tokens = {"input": session["tokens_input"], "output": session["tokens_output"]}
                tokens["cache"] = {"read": session["tokens_cache_read"], "write": session["tokens_cache_write"]}
                info = {name: session[name] for name in ("id", "version", "cost")}
                yield {**info, "tokens": tokens}, messages
    except (sqlite3.Error, ValueError, IndexError, RecursionError) as error:
        raise DataError(f"{file} cannot be read as a database of OpenCode: {error}.") from error


def _message_turns(message: Row) -> Iterator[Row]:
    """Yield a message of OpenCode, and the results of its tool calls."""
    role = object_or_empty(message.get("info")).get("role")
    parts = [part for part in message.get("parts") or () if isinstance(part, dict)]
    texts = {
        kind: "".join(str(part.get("text") or "") for part in parts if part.get("type") == kind)
        for kind in ("text", "reasoning")
    }
    calls = [part for part in parts if part.get("type") == "tool" and part.get("callID")]
    if role not in ("user", "assistant") or not (any(texts.values()) or calls):
        return
    spoken: Row = {"role": role, "content": texts["text"]}
    if texts["reasoning"]:
        spoken["reasoning_content"] = texts["reasoning"]
    if calls:
        spoken["tool_calls"] = [_tool_call(part) for part in calls]
    yield spoken
    for part in calls:
        state = object_or_empty(part.get("state"))
        if state.get("status") != "error":
            result = state.get("output")
        else:
            result = state.get("error")
        yield {"role": "tool", "tool_call_id": str(part["callID"]), "content": str(result or "")}


def _tool_call(part: Row) -> Row:
    arguments = json.dumps(object_or_empty(part.get("state")).get("input") or {}, ensure_ascii=False)
    return {
        "id": str(part["callID"]),
        "type": "function",
        "function": {"name": str(part.get("tool")), "arguments": arguments},
    }


_READERS: dict[str, Callable[[Path, list[str]], Iterator[tuple[Row, str]]]] = {
    CLAUDE: _claude_sessions,
    CODEX: _codex_sessions,
    OPENCODE: _opencode_sessions,
}
