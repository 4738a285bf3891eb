# SPDX-License-Identifier: Apache-2.0
"""tau2-bench, airline: the tasks' own actions, left out, repeated, in another order, and with other arguments.

The database is cut down to the users, reservations and flights that the tasks name; both sides run on that.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.official.recording import RECORDED
from tests.official.tau2_bench import run

WRITING = ("book", "cancel", "send", "update")
_DAYS = 4


def changes(tasks: list[Row], draw: random.Random) -> Iterator[tuple[Row, Row]]:
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


def _certificate(draw: random.Random) -> Row:
    amount = draw.choice([100, "50", 99.5, 0, True, "many", None, -20])
    return {"name": "send_certificate", "arguments": {"user_id": "sophia_silva_7557", "amount": amount}}


def _changed(arguments: Row, key: str, pool: list[Any], draw: random.Random) -> Row:
    chance = draw.random()
    if chance < 0.06:
        return {name: value for name, value in arguments.items() if name != key}
    if chance < 0.1:
        return {**arguments, "more": 1}
    return {**arguments, key: draw.choice(pool) if chance < 0.3 else _other(arguments[key], draw)}


def _other(value: Any, draw: random.Random) -> Any:
    if isinstance(value, list):
        ways: list[Any] = [
            value[:-1],
            value + value[:1],
            value[::-1],
            [],
            None,
            {},
            "",
            [json.dumps(item) for item in value],
        ]
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


def cut(checkout: Path) -> Row:
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
    made = cut(checkout)
    (RECORDED / "tau2_airline.json").write_text(json.dumps(made, sort_keys=True) + "\n", encoding="utf-8")
    more = {task["id"] for task in made["tasks"][::2]}
    pairs = changes(made["tasks"], random.Random(16))
    attempts = [(task, change) for task, change in pairs if set(change) <= {"dropped"} or task["id"] in more]
    return run("tau2_airline", checkout, attempts)
