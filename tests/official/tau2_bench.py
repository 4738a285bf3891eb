# SPDX-License-Identifier: Apache-2.0
"""tau2-bench: conversations made of tasks' own actions and changed ones, run and judged by the benchmark's own program.

What is recorded of each: the reward, and digests of the state that is left and of what the calls were told.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from newskills.base.records import Row
from newskills.graders.tau2.grader import conversation_calls, start_service
from tests.graders.plain import plain_grader
from tests.official.recording import RECORDED, Case, commit, write

SOURCE = "github.com/sierra-research/tau2-bench, evaluate_simulation"
_LEVELS = (
    "poor|fair|good|excellent|data saver|vpn|enabled|disabled|pin|puk|internet|broken"
    "|landed|cancelled|delayed|flying|on time"
)
_FACTS = re.compile(rf"\b(?:ON|OFF)\b|: (?:Yes|No)\n|cannot|http\S+|\b[\w.]*\d[\w.%]*|\b(?i:{_LEVELS})\b")
_RUN = """
import json, os, sys, types
checkout, domain, data = sys.argv[1:]
source = checkout + "/src"
sys.path.insert(0, source)
os.environ["TAU2_DATA_DIR"] = checkout + "/data"
def module(name, **names):
    made = types.ModuleType(name)
    vars(made).update(names)
    sys.modules[name] = made
module("tau2", __path__=[source + "/tau2"])
module("tau2.evaluator.evaluator_nl_assertions", NLAssertionsEvaluator=0, FullDuplexNLAssertionsEvaluator=0)
class Registry:
    def get_env_constructor(self, domain):
        return lambda solo_mode=False: begin()
module("tau2.registry", registry=Registry())
from loguru import logger
logger.remove()
from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage
from tau2.data_model.simulation import TerminationReason
from tau2.data_model.tasks import Task
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
stored = json.load(open(data))
if domain == "airline":
    from tau2.domains.airline.data_model import FlightDB
    from tau2.domains.airline.environment import get_environment
    database = FlightDB.model_validate(stored["data"])
    def begin():
        return get_environment(db=database.model_copy(deep=True))
else:
    from tau2.domains.telecom.data_model import TelecomDB
    from tau2.domains.telecom.environment import get_environment
    from tau2.domains.telecom.user_data_model import TelecomUserDB
    from tau2.domains.telecom.user_tools import TelecomUserTools
    vpn = TelecomUserTools.default_vpn_details
    def begin():
        # One task's fault would last for all tasks of the process.
        TelecomUserTools.default_vpn_details = vpn.model_copy()
        data, user_data = json.loads(json.dumps([stored["data"], stored["user_data"]]))
        return get_environment(db=TelecomDB.model_validate(data), user_db=TelecomUserDB.model_validate(user_data))
def dumped(kit):
    return None if kit is None else json.loads(json.dumps(kit.db.model_dump(warnings=False), default=str))
before = dumped(begin().tools)
for line in sys.stdin:
    case = json.loads(line)
    task = Task(user_scenario={"instructions": ""}, **case["task"])
    environment, messages, results = begin(), [], []
    if task.initial_state is not None:
        environment.set_state(None, task.initial_state.initialization_actions, [])
    for message in case["conversation"]:
        calls = [ToolCall(requestor=message["role"], **call) for call in message.get("tool_calls") or ()]
        kind = AssistantMessage if message["role"] == "assistant" else UserMessage
        messages.append(kind(role=message["role"], content=message["content"], tool_calls=calls or None))
        for call in calls:
            answer = environment.get_response(call)
            messages.append(answer)
            results.append(answer.content)
    reason = TerminationReason(case["ended"])
    run = types.SimpleNamespace(termination_reason=reason, messages=messages)
    reward = evaluate_simulation(run, task, EvaluationType.ALL, False, domain).reward
    state = dumped(environment.tools)
    if domain == "airline":
        state = {
            table: {key: row for key, row in rows.items() if json.dumps(row) != json.dumps(before[table].get(key))}
            for table, rows in state.items()
        }
    print(json.dumps([reward, results, [state, dumped(environment.user_tools)]]))
"""


def stored(name: str) -> dict[str, Any]:
    """Of a recording: `data` and `user_data`, as a prepared service has them, and `tasks` by id."""
    whole = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    tasks = {task["id"]: task for task in whole["tasks"]}
    return {"data": whole["data"], "user_data": whole.get("user_data", {}), "tasks": tasks}


def conversation(task: Row, change: Row) -> list[Row]:
    """The task's own actions and words, but for the change."""
    criteria = task["evaluation_criteria"]
    made = [
        {"role": action.get("requestor") or "assistant", "name": action["name"], "arguments": action["arguments"]}
        for action in criteria["actions"]
    ]
    at = change.get("at", 0)
    if "arguments" in change:
        made[at] = {**made[at], "arguments": change["arguments"]}
    if "name" in change:
        made[at] = {**made[at], "name": change["name"]}
    if "dropped" in change:
        del made[change["dropped"]]
    if "again" in change:
        made.append(made[change["again"]])
    place = change.get("before", len(made))
    made[place:place] = [{"role": "assistant", **call} for call in change.get("more", ())]
    words = change.get("words", "\n".join(criteria["communicate_info"] or ()) or "Done.")
    talk: list[Row] = []
    for number, call in enumerate(made[::-1] if change.get("reversed") else made):
        called = {"id": str(number), "name": call["name"], "arguments": call["arguments"]}
        talk.append({"role": call["role"], "content": change.get("beside"), "tool_calls": [called]})
    talk.append({"role": "assistant", "content": words})
    return [*talk, {"role": "user", "content": "###STOP###"}]


def told(result: str) -> object:
    """What a result says, apart from wording."""
    if result.startswith("Error: "):
        return "error"
    if not result.startswith(("{", "[")):
        return sorted({fact.lower().strip(".") for fact in _FACTS.findall(result)})
    return _without_words(json.loads(result))


def digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def ours(name: str, cases: Sequence[Case]) -> list[object]:
    """[reward, digest of the state, digest of what the calls were told] of each case of a recording."""
    domain, data = name.removeprefix("tau2_"), stored(name)
    with TemporaryDirectory() as folder:
        service_data = {"data": data["data"], "user_data": data["user_data"]}
        (Path(folder) / f"{domain}.json").write_text(json.dumps(service_data), encoding="utf-8")
        grader = plain_grader("tau2", {"data": folder})
        verdicts: list[object] = []
        for case in cases:
            record = _record(domain, data["tasks"][case["task"]], case["change"])
            service = start_service(record, folder)
            said = [told(service.call(*call)) for call in conversation_calls(record["conversation"])]
            state = json.loads(service.state())
            verdicts.append([grader.grade(record).fields["reward"], digest(_plain(domain, state)), digest(said)])
    return verdicts


def run(name: str, checkout: Path, attempts: Sequence[tuple[Row, Row]]) -> int:
    """Records what the original says. TAU2_PYTHON names a Python with addict, deepdiff, docstring-parser, loguru,
    pandas, pydantic, PyYAML and toml."""
    domain = name.removeprefix("tau2_")
    records = [_record(domain, task, change) for task, change in attempts]
    lines = [
        json.dumps({"task": task, "conversation": record["conversation"], "ended": record["ended"]})
        for (task, _), record in zip(attempts, records, strict=True)
    ]
    python = os.environ.get("TAU2_PYTHON", sys.executable)
    command = [python, "-W", "ignore", "-c", _RUN, str(checkout), domain, str(RECORDED / f"{name}.json")]
    done = subprocess.run(command, input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    cases: list[Case] = []
    for (task, change), line in zip(attempts, done.stdout.splitlines(), strict=True):
        reward, results, state = json.loads(line)
        said = digest([told(result) for result in results])
        cases.append(
            {"task": task["id"], "change": change, "official": [reward, digest(_plain(domain, state)), said]}
        )
    return write(name, SOURCE, commit(checkout), cases)


def _record(domain: str, task: Row, change: Row) -> Row:
    ended = change.get("ended", "user_stop")
    return {**task, "domain": domain, "conversation": conversation(task, change), "ended": ended}


def _plain(domain: str, state: list[Any]) -> object:
    if domain == "airline":
        for row in state[0]["reservations"].values():
            row.setdefault("status", None)
        return state[0]
    return _without_words(state)


def _without_words(value: object) -> Any:
    """Without texts of one's own and ids that are drawn by chance."""
    text = re.sub(r'"B[0-9a-f]{8}"', '"B…"', json.dumps(value))
    return json.loads(text, object_hook=_facts)


def _facts(row: Row) -> Row:
    return {key: value for key, value in row.items() if key not in ("description", "message")}
