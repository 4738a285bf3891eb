# SPDX-License-Identifier: Apache-2.0
"""tau2-bench, telecom: the tasks' own actions, left out, repeated, in another order, with other calls among them."""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path

from newskills.base.records import Row
from newskills.graders.tau2.phone import Phone
from tests.official.recording import RECORDED
from tests.official.tau2_bench import run

_MODES = ["4g_5g_preferred", "4g_only", "3g_only", "2g_only", "6g"]
_APPS, _PERMISSIONS = ["messaging", "browser", "maps"], ["sms", "storage", "Phone", "network", "camera"]
_CUSTOMERS = ["C1001", "C1002", "C1003", "C1004", "C9"]
_LINES = [f"L100{number}" for number in range(10)]
_BILLS = [f"B100{number}" for number in range(8)]
_SETTINGS: list[Row] = [
    {},
    {"apn_name": "broken"},
    {"mmsc_url": None},
    {"apn_name": "x"},
    {"mms_port": "80"},
    {"a": 1},
]
_WITH_ARGUMENTS = (
    "set_network_mode_preference",
    "grant_app_permission",
    "check_app_status",
    "check_app_permissions",
)
_LINE: Row = {"customer_id": _CUSTOMERS, "line_id": _LINES}
CALLS: dict[str, dict[str, Row]] = {
    "assistant": {
        "get_customer_by_phone": {"phone_number": ["555-123-2002", "555-123-1003", "555-123-2005", "1"]},
        "get_customer_by_id": {"customer_id": _CUSTOMERS},
        "get_customer_by_name": {"full_name": ["john smith", "Jo"], "dob": ["1985-06-15", "1985-06-16"]},
        "get_details_by_id": {"id": [*_CUSTOMERS, *_LINES, *_BILLS, "P1002", "P2", "D1002", "D1003", "X1", ""]},
        "suspend_line": {**_LINE, "reason": ["lost"]},
        "resume_line": _LINE,
        "get_bills_for_customer": {"customer_id": _CUSTOMERS, "limit": [12, 1, 0, -1, None, "2", 1.5]},
        "send_payment_request": {"customer_id": _CUSTOMERS, "bill_id": _BILLS},
        "get_data_usage": _LINE,
        "enable_roaming": _LINE,
        "disable_roaming": _LINE,
        "transfer_to_human_agents": {"summary": ["It is hard."]},
        "refuel_data": {**_LINE, "gb_amount": [2.0, 1, 0.5, 0, -1, "2", None, 0.1]},
        "toggle_data": {},
        "set_data_usage": {**_LINE, "data_used_gb": [1.0]},
    },
    "user": {
        "set_network_mode_preference": {"mode": _MODES},
        "grant_app_permission": {"app_name": _APPS, "permission": _PERMISSIONS},
        "check_app_status": {"app_name": _APPS},
        "check_app_permissions": {"app_name": _APPS},
        **{name: {} for name in Phone.user_tools if name not in _WITH_ARGUMENTS},
        "set_apn_settings": {"apn_settings": _SETTINGS},
        "enable_roaming": {},
        "dance": {},
    },
}
"""Caller → function → what its arguments are drawn from; some are refused."""


def changes(tasks: list[Row], draw: random.Random) -> Iterator[tuple[Row, Row]]:
    """(task, change); the first of each task is none."""
    for task in tasks:
        actions = task["evaluation_criteria"]["actions"]
        yield task, {}
        if draw.random() < 0.3:
            yield task, {"reversed": True}
        for at in draw.sample(range(len(actions)), min(2, len(actions))):
            yield task, {"dropped": at}
        if actions:
            yield task, {"again": draw.randrange(len(actions))}
        yield task, {"before": draw.randint(0, len(actions)), "more": [_call(draw, None) for _ in range(4)]}
        yield (
            task,
            {"more": [_call(draw, "assistant") for _ in range(3)] + [_call(draw, "user") for _ in range(5)]},
        )


def _call(draw: random.Random, caller: str | None) -> Row:
    role = caller or draw.choice(["user", "assistant"])
    name = draw.choice(sorted(CALLS[role]))
    drawn = {argument: draw.choice(values) for argument, values in CALLS[role][name].items()}
    if "line_id" in drawn and draw.random() < 0.7:
        drawn |= {"customer_id": "C1001", "line_id": "L1002"}
    return {"role": role, "name": name, "arguments": drawn}


def record(checkout: Path) -> int:
    folder = checkout / "data/tau2/domains/telecom"
    base = set(json.loads((folder / "split_tasks.json").read_text(encoding="utf-8"))["base"])
    kept = ("id", "initial_state", "evaluation_criteria")
    tasks = [
        {name: task[name] for name in kept}
        for task in json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
        if task["id"] in base
    ]
    made = {
        "data": tomllib.loads((folder / "db.toml").read_text(encoding="utf-8")),
        "user_data": tomllib.loads((folder / "user_db.toml").read_text(encoding="utf-8")),
        "tasks": tasks,
    }
    (RECORDED / "tau2_telecom.json").write_text(json.dumps(made, sort_keys=True) + "\n", encoding="utf-8")
    changed = {task["id"] for task in tasks[::2]}
    attempts = [pair for pair in changes(tasks, random.Random(16)) if not pair[1] or pair[0]["id"] in changed]
    return run("tau2_telecom", checkout, attempts)
