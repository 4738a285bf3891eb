# SPDX-License-Identifier: Apache-2.0
"""Runs inside the container, by OpenHands' own Python: `inside.py SETTINGS MODEL`, a JSON file and fields of its LLM.

Its agent, prompts and tools are its own. Each event of the conversation becomes a line of `out`/events.jsonl as soon as
it happens, with the message that the model sees of it.
"""

import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

EVENTS = "events.jsonl"
FINISH = "finish"


def main(settings: dict[str, Any], model: dict[str, Any]) -> int:
    from openhands.sdk import LLM, Conversation

    out = Path(settings["out"])
    out.mkdir(parents=True, exist_ok=True)
    with out.joinpath(EVENTS).open("w", encoding="utf-8") as lines:
        write_record(lines, {"event": "begin", "version": version("openhands-sdk")})
        llm = LLM(**model)
        preset = importlib.import_module(f"openhands.tools.preset.{settings['preset']}")
        conversation = Conversation(
            agent=getattr(preset, f"get_{settings['preset']}_agent")(llm=llm, cli_mode=True),
            workspace=Path.cwd(),
            callbacks=[lambda event: write_record(lines, event_record(event, llm))],
            visualizer=None,
        )
        conversation.send_message(settings["message"])
        write_record(lines, {"event": "end", "status": run_conversation(conversation, settings)})
        conversation.close()
    return 0


def write_record(lines: TextIO, record: dict[str, Any]) -> None:
    lines.write(json.dumps(record) + "\n")
    lines.flush()


def event_record(event: Any, llm: Any) -> dict[str, Any]:
    """Return what is kept of an event: its message as the model sees it, and how its command ended."""
    record = {"event": type(event).__name__, "time": event.timestamp}
    if hasattr(event, "to_llm_message"):
        (record["message"],) = llm.format_messages_for_llm([event.to_llm_message()])
    for name in ("llm_response_id", "tool_call_id"):
        if value := getattr(event, name, None):
            record[name] = value
    for name in ("exit_code", "timeout"):
        if (value := getattr(getattr(event, "observation", None), name, None)) is not None:
            record[name] = value
    return record


def run_conversation(conversation: Any, settings: dict[str, Any]) -> str:
    """Run the conversation until the agent says that it is done. A reply that calls no tool is answered, as nobody
    else is there to do so."""
    for left in reversed(range(settings["max_empty"])):
        conversation.max_iteration_per_run = settings["max_turns"] - reply_count(conversation)
        try:
            conversation.run()
        except Exception:
            if reply_count(conversation) >= settings["max_turns"] and not has_called_finish(conversation):
                return "steps"
            raise
        if has_called_finish(conversation):
            break
        if reply_count(conversation) >= settings["max_turns"]:
            return "steps"
        if left and conversation.state.execution_status.value == "finished":
            conversation.send_message(settings["go_on"])
    status = str(conversation.state.execution_status.value)
    if status == "finished" and not has_called_finish(conversation):
        return "no_command"
    return status


def reply_count(conversation: Any) -> int:
    """Return the number of replies of the model, each of which may hold several calls."""
    replies = (getattr(event, "llm_response_id", None) for event in conversation.state.events)
    return len({reply for reply in replies if reply})


def has_called_finish(conversation: Any) -> bool:
    return any(getattr(event, "tool_name", "") == FINISH for event in conversation.state.events)


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text("utf-8")), json.loads(sys.argv[2])))
