# SPDX-License-Identifier: Apache-2.0
"""tau2-bench, airline: the tasks' own actions and changed ones, each run and judged by the benchmark's own program.

Its database is cut down to the users, reservations and flights that the tasks name (`DATA`); both sides run on that.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from newskills.base.protocols import Grader
from newskills.base.records import Row
from newskills.graders.tau2.grader import calls, start
from tests.official.recording import RECORDED, Case, commit, write

SOURCE = "github.com/sierra-research/tau2-bench, evaluate_simulation"
DATA = RECORDED / "tau2_airline.json"
"""`data`, as a prepared service has it, and `tasks`: their ids and criteria."""
WRITING = ("book", "cancel", "send", "update")
_DAYS = 4
_RUN = """
import copy, json, os, sys, types
checkout, data = sys.argv[1:]
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
from tau2.domains.airline.data_model import FlightDB
from tau2.domains.airline.environment import get_environment
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
stored = json.load(open(data))
database = FlightDB.model_validate(stored["data"])
begin = lambda: get_environment(db=database.model_copy(deep=True))
before = database.model_dump()
for line in sys.stdin:
    case = json.loads(line)
    environment, messages, results = begin(), [], []
    for message in case["conversation"]:
        calls = [ToolCall(**call) for call in message.get("tool_calls") or ()]
        kind = AssistantMessage if message["role"] == "assistant" else UserMessage
        messages.append(kind(role=message["role"], content=message["content"], tool_calls=calls or None))
        for call in calls:
            answer = environment.get_response(call)
            messages.append(answer)
            results.append(answer.content)
    reason = TerminationReason(case["ended"])
    run = types.SimpleNamespace(termination_reason=reason, messages=messages)
    task = Task(user_scenario={"instructions": ""}, **case["task"])
    reward = evaluate_simulation(run, task, EvaluationType.ALL, False, "airline").reward
    after = environment.tools.db.model_dump(warnings=False)
    changed = {
        table: {key: row for key, row in rows.items() if json.dumps(row) != json.dumps(before[table].get(key))}
        for table, rows in after.items()
    }
    print(json.dumps([reward, results, changed]))
"""


def conversation(task: dict[str, Any], change: dict[str, Any]) -> list[dict[str, Any]]:
    """The task's own actions and words, but for the change."""
    criteria = task["evaluation_criteria"]
    calls = [{"name": action["name"], "arguments": action["arguments"]} for action in criteria["actions"]]
    at = change.get("at", 0)
    if "arguments" in change:
        calls[at] = {**calls[at], "arguments": change["arguments"]}
    if "name" in change:
        calls[at] = {**calls[at], "name": change["name"]}
    if "dropped" in change:
        del calls[change["dropped"]]
    if "again" in change:
        calls.append(calls[change["again"]])
    calls += change.get("more", [])
    words = change.get("words", "\n".join(criteria["communicate_info"]) or "Done.")
    talk: list[dict[str, Any]] = []
    for number, call in enumerate(calls[::-1] if change.get("reversed") else calls):
        message = {
            "role": "assistant",
            "content": change.get("beside"),
            "tool_calls": [{"id": str(number), **call}],
        }
        talk.append(message)
    talk.append({"role": "assistant", "content": words})
    return [*talk, {"role": "user", "content": "###STOP###"}]


def told(name: str, result: str) -> str:
    """What a result says, apart from wording."""
    if result.startswith("Error: "):
        return "error"
    if name == "send_certificate":
        return " ".join(sorted(set(re.findall(r"\w*\d\w*", result))))
    try:
        return digest(json.loads(result))
    except ValueError:
        return result


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def stored() -> dict[str, Any]:
    """`data`, and `tasks` by id."""
    whole = json.loads(DATA.read_text(encoding="utf-8"))
    return {"data": whole["data"], "tasks": {task["id"]: task for task in whole["tasks"]}}


def ours(case: Case, task: Row, folder: str, grader: Grader) -> list[object]:
    """The reward, and digests of what has changed and of what the calls were told, as they were recorded."""
    talk = conversation(task, case["change"])
    record = {**task, "domain": "airline", "conversation": talk, "ended": case["change"].get("ended", "user_stop")}
    service = start(record, folder)
    said = [told(name, service.call(caller, name, arguments)) for caller, name, arguments in calls(talk)]
    changed = json.loads(service.state())[0]
    for row in changed["reservations"].values():
        row.setdefault("status", None)
    return [grader.grade(record).fields["reward"], digest(changed), digest(said)]


def changes(tasks: list[dict[str, Any]], draw: random.Random) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(task, change)"""
    everything = [action for task in tasks for action in task["evaluation_criteria"]["actions"]]
    writing = [action for action in everything if action["name"].startswith(WRITING)]
    for task in tasks:
        criteria = task["evaluation_criteria"]
        actions = criteria["actions"]
        yield task, {}
        yield task, {"words": "Well."}
        yield task, {"reversed": True}
        yield task, {"ended": "max_steps"}
        for other in draw.sample(writing, 2):
            yield task, {"more": [{"name": other["name"], "arguments": other["arguments"]}]}
        yield task, {"more": [_certificate(draw)]}
        for info in criteria["communicate_info"]:
            yield task, {"words": f"It is ${float(info):,.0f}, as I said."}
            yield task, {"words": "Well.", "beside": f"That makes {info}."}
        for at, action in enumerate(actions):
            yield task, {"dropped": at}
            if action["name"].startswith(WRITING):
                yield task, {"again": at}
                yield task, {"at": at, "name": f"{action['name']}s"}
            for _ in range(4 if action["name"].startswith(WRITING) else 1):
                changed = json.loads(json.dumps(action["arguments"]))
                key = draw.choice(sorted(changed))
                pool = [other["arguments"][key] for other in everything if key in other["arguments"]]
                yield task, {"at": at, "arguments": _changed(changed, key, pool, draw)}
                if draw.random() < 0.3:
                    yield task, {"at": at, "arguments": _changed(changed, key, pool, draw), "again": at}


def _certificate(draw: random.Random) -> dict[str, Any]:
    amount = draw.choice([100, "50", 99.5, 0, True, "many", None, -20])
    return {"name": "send_certificate", "arguments": {"user_id": "sophia_silva_7557", "amount": amount}}


def _changed(arguments: dict[str, Any], key: str, pool: list[Any], draw: random.Random) -> dict[str, Any]:
    chance = draw.random()
    if chance < 0.06:
        return {name: value for name, value in arguments.items() if name != key}
    if chance < 0.1:
        return {**arguments, "more": 1}
    return {**arguments, key: draw.choice(pool) if chance < 0.3 else _other(arguments[key], draw)}


def _other(value: Any, draw: random.Random) -> Any:
    if isinstance(value, list):
        ways = [value[:-1], value + value[:1], value[::-1], [], None, {}, "", [json.dumps(item) for item in value]]
        if value and draw.random() < 0.6:
            inner = dict(draw.choice(value))
            key = draw.choice(sorted(inner))
            inner[key] = _other(inner[key], draw)
            if draw.random() < 0.2:
                del inner[key]
            return [inner, *value[1:]]
        return draw.choice([*ways, [{**item, "more": 1} for item in value]])
    if isinstance(value, int):
        return draw.choice(
            [value + 1, value - 1, str(value), float(value), 0, value + 0.5, bool(value), None, "x"]
        )
    return draw.choice([f"{value} ", str(value).lower(), "", 5, None, [value], str(value)[::-1]])


def cut(checkout: Path) -> dict[str, Any]:
    """Tasks, and what of the database they name."""
    folder = checkout / "data/tau2/domains/airline"
    whole = json.loads((folder / "db.json").read_text(encoding="utf-8"))
    tasks = [
        {"id": task["id"], "evaluation_criteria": task["evaluation_criteria"]}
        for task in json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    ]
    text = json.dumps([task["evaluation_criteria"]["actions"] for task in tasks])
    words = set(re.findall(r'"([^"]+)"', text))
    reservations = {key: row for key, row in whole["reservations"].items() if key in words}
    owners = {row["user_id"] for row in reservations.values()}
    users = {key: row for key, row in whole["users"].items() if key in words | owners}
    reservations |= {
        key: whole["reservations"][key] for user in users.values() for key in user["reservations"][:2]
    }
    days = {word for word in words if re.fullmatch(r"2024-05-\d\d", word)}
    flights = {}
    for key, flight in whole["flights"].items():
        if key in words:
            kept = {day: state for day, state in flight["dates"].items() if day in days}
            odd = [day for day, state in flight["dates"].items() if state["status"] != "available"]
            flights[key] = {**flight, "dates": {day: flight["dates"][day] for day in odd[-_DAYS:]} | kept}
    return {"tasks": tasks, "data": {"flights": flights, "users": users, "reservations": reservations}}


def record(checkout: Path) -> int:
    """TAU2_PYTHON names a Python with addict, deepdiff, docstring-parser, loguru, pandas, pydantic, PyYAML and toml."""
    made = cut(checkout)
    DATA.write_text(json.dumps(made, sort_keys=True) + "\n", encoding="utf-8")
    attempts = list(changes(made["tasks"], random.Random(16)))
    talks = [conversation(task, change) for task, change in attempts]
    lines = [
        json.dumps({"task": task, "conversation": talk, "ended": change.get("ended", "user_stop")})
        for (task, change), talk in zip(attempts, talks, strict=True)
    ]
    command = [os.environ.get("TAU2_PYTHON", sys.executable), "-W", "ignore", "-c", _RUN, str(checkout), str(DATA)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    cases: list[Case] = []
    for (task, change), talk, line in zip(attempts, talks, done.stdout.splitlines(), strict=True):
        reward, results, changed = json.loads(line)
        names = [call["name"] for message in talk for call in message.get("tool_calls", ())]
        said = [told(name, result) for name, result in zip(names, results, strict=True)]
        cases.append({"task": task["id"], "change": change, "official": [reward, digest(changed), digest(said)]})
    return write("tau2_airline", SOURCE, commit(checkout), cases)
