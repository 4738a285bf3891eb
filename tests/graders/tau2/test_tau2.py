# SPDX-License-Identifier: Apache-2.0
"""Simulated services and what conversations did to them, on the real tasks where they are here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.base.errors import DataError, UnknownNameError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.graders.tau2.grader import start_service
from newskills.graders.tau2.mock import TaskList
from newskills.graders.tau2.retail import Shop
from newskills.metrics import make_metric

HOME = {"address1": "1 A St", "address2": "", "city": "B", "state": "CA", "country": "USA", "zip": "12345"}


def shop() -> Shop:
    def variant(item: str, price: float, available: bool = True) -> Row:
        return {"item_id": item, "options": {"color": item}, "available": available, "price": price}

    def order(key: str, status: str, *items: str) -> Row:
        bought = [
            {"name": "Cup", "product_id": "p", "item_id": i, "price": 10.0, "options": {"color": i}} for i in items
        ]
        paid = {"transaction_type": "payment", "amount": 10.0 * len(items), "payment_method_id": "credit_card_1"}
        return {
            "order_id": key,
            "user_id": "zoë_1",
            "address": HOME,
            "items": bought,
            "status": status,
            "fulfillments": [],
            "payment_history": [paid],
        }

    methods = {
        "credit_card_1": {"source": "credit_card", "id": "credit_card_1"},
        "gift_card_1": {"source": "gift_card", "id": "gift_card_1", "balance": 15.0},
    }
    user = {
        "user_id": "zoë_1",
        "name": {"first_name": "Zoë", "last_name": "Li"},
        "email": "Zoe@Example.com",
        "address": dict(HOME),
        "payment_methods": methods,
        "orders": ["#1", "#2"],
    }
    product = {
        "name": "Cup",
        "product_id": "p",
        "variants": {
            v["item_id"]: v
            for v in (variant("a", 10.0), variant("b", 12.5), variant("c", 99.0, False), variant("d", 40.0))
        },
    }
    orders = [order("#1", "pending", "a", "a"), order("#2", "delivered", "a", "b")]
    return Shop(
        {"users": {"zoë_1": user}, "products": {"p": product}, "orders": {o["order_id"]: o for o in orders}}
    )


def call(service: Any, name: str, **arguments: Any) -> Any:
    told = service.call("assistant", name, arguments)
    return told if told.startswith("Error") else msgspec.json.decode(told)


def test_pending_orders_are_changed_once() -> None:
    service = shop()
    args: Row = {"order_id": "#1", "payment_method_id": "gift_card_1"}
    order = call(service, "modify_pending_order_items", **args, item_ids=["a", "a"], new_item_ids=["b", "b"])
    assert [(item["item_id"], item["price"]) for item in order["items"]] == [("b", 12.5), ("b", 12.5)]
    assert order["status"] == "pending (item modified)"
    assert order["payment_history"][-1] == {
        "transaction_type": "payment",
        "amount": 5.0,
        "payment_method_id": "gift_card_1",
    }
    assert service.data["users"]["zoë_1"]["payment_methods"]["gift_card_1"]["balance"] == 10.0
    again = call(service, "modify_pending_order_items", **args, item_ids=["b"], new_item_ids=["a"])
    assert again == "Error: the order is not pending: it cannot be changed"
    moved = call(service, "modify_pending_order_address", order_id="#1", **{**HOME, "zip": "99"})
    assert moved["address"]["zip"] == "99"


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("modify_pending_order_items", {"item_ids": ["a"] * 3, "new_item_ids": ["b"] * 3}, "not so many"),
        ("modify_pending_order_items", {"item_ids": ["a"], "new_item_ids": ["a"]}, "the same"),
        ("modify_pending_order_items", {"item_ids": ["a"], "new_item_ids": ["c"]}, "not to be had"),
        ("modify_pending_order_items", {"item_ids": ["a"], "new_item_ids": []}, "as many"),
        ("modify_pending_order_items", {"item_ids": ["a"], "new_item_ids": ["d"]}, "does not cover"),
        ("exchange_delivered_order_items", {"item_ids": ["a"], "new_item_ids": ["b"]}, "not delivered"),
        ("return_delivered_order_items", {"item_ids": ["a"]}, "not delivered"),
        ("modify_pending_order_items", {"item_ids": "a", "new_item_ids": ["b"]}, "no list of texts"),
        ("modify_pending_order_items", {"item_ids": ["a"]}, "missing a required argument"),
        ("modify_pending_order_payment", {}, "does not cover"),
        ("cancel_pending_order", {"reason": "why not"}, "unexpected keyword argument"),
        ("_pay", {}, "no function"),
        ("state", {}, "no function"),
    ],
)
def test_what_is_refused_changes_nothing(name: str, arguments: Row, why: str) -> None:
    service = shop()
    before = service.state()
    told = call(service, name, order_id="#1", payment_method_id="gift_card_1", **arguments)
    assert why in told
    assert service.state() == before


def test_the_other_functions_of_the_shop() -> None:
    service = shop()
    assert (
        service.call(
            "assistant", "find_user_id_by_name_zip", {"first_name": "zoe", "last_name": "LI", "zip": "12345"}
        )
        == "zoë_1"
    )
    assert service.call("assistant", "find_user_id_by_email", {"email": "zoe@example.com"}) == "zoë_1"
    assert (
        service.call("user", "find_user_id_by_email", {"email": "x"})
        == "Error: there is no function find_user_id_by_email"
    )
    assert call(service, "list_all_product_types") == {"Cup": "p"}
    assert call(service, "get_item_details", item_id="b")["price"] == 12.5
    back = call(
        service,
        "return_delivered_order_items",
        order_id="#2",
        item_ids=["b", "a"],
        payment_method_id="credit_card_1",
    )
    assert (back["status"], back["return_items"]) == ("return requested", ["a", "b"])
    gone = call(service, "cancel_pending_order", order_id="#1", reason="no longer needed")
    assert (gone["status"], gone["payment_history"][-1]["transaction_type"]) == ("cancelled", "refund")
    service = shop()
    paid = call(service, "modify_pending_order_payment", order_id="#1", payment_method_id="gift_card_1")
    assert paid == "Error: the gift card does not cover the order"
    swap = {"order_id": "#2", "item_ids": ["a"], "new_item_ids": ["d"], "payment_method_id": "credit_card_1"}
    swapped = call(service, "exchange_delivered_order_items", **swap)
    assert swapped["exchange_price_difference"] == 30.0
    assert {tool["function"]["name"] for tool in service.tools("assistant")} == set(Shop.agent_tools)
    described = next(
        t for t in service.tools("assistant") if t["function"]["name"] == "return_delivered_order_items"
    )
    assert described["function"]["parameters"]["properties"]["item_ids"]["type"] == "array"
    assert described["function"]["parameters"]["properties"]["item_ids"]["description"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [("2 + 2", "4.0"), ("(10 - 4) * 1.5 / -3", "-3.0"), ("0.1 + 0.2", "0.3")],
)
def test_sums(expression: str, value: str) -> None:
    assert shop().call("assistant", "calculate", {"expression": expression}) == value


@given(st.text(alphabet="0123456789+-*/(). x_", max_size=60))
def test_no_sum_breaks_the_shop(expression: str) -> None:
    told = SHOP.call("assistant", "calculate", {"expression": expression})
    assert told.startswith("Error: ") or float(told) == float(told)


SHOP = shop()


@pytest.mark.parametrize("expression", ["9**9**9**9", "__import__('os')", "(" * 200 + ")" * 200, "1/0", "1e9", ""])
def test_hostile_sums(expression: str) -> None:
    assert SHOP.call("assistant", "calculate", {"expression": expression}).startswith("Error: ")


def stored(folder: Path) -> str:
    data = {
        "data": {
            "tasks": {"task_1": {"task_id": "task_1", "title": "T", "description": None, "status": "pending"}},
            "users": {"user_1": {"user_id": "user_1", "name": "U", "tasks": ["task_1"]}},
        },
        "user_data": {"notifications": {}},
    }
    (folder / "mock.json").write_bytes(msgspec.json.encode(data))
    return str(folder)


def called(role: str, name: str, **arguments: Any) -> Row:
    return {"role": role, "content": None, "tool_calls": [{"id": "1", "name": name, "arguments": arguments}]}


DONE = called("assistant", "update_task_status", task_id="task_1", status="completed")
ACTION = {"name": "update_task_status", "arguments": {"task_id": "task_1", "status": "completed"}}
NOTHING = called("assistant", "update_task_status")
DISMISSED = called("user", "dismiss_notification", notification_id="n")
SAID = {"role": "assistant", "content": "That makes 1,250 dollars."}
READ = {
    "env_type": "user",
    "func_name": "assert_notification_status",
    "arguments": {"notification_id": "n", "expected_status": "read"},
}

UNKNOWN = {**READ, "func_name": "assert_nothing"}


@pytest.mark.parametrize(
    ("criteria", "talk", "more", "outcome"),
    [
        ({"actions": [ACTION]}, [DONE], {}, "correct"),
        ({"actions": [ACTION]}, [SAID], {}, "wrong"),
        ({"actions": []}, [DONE], {}, "wrong"),
        ({"actions": []}, [SAID], {}, "correct"),
        ({}, [DONE], {}, "correct"),
        ({"actions": [ACTION]}, [DONE], {"ended": "max_steps"}, "wrong"),
        ({"actions": [ACTION]}, [DONE, DONE], {}, "correct"),
        ({"actions": [], "communicate_info": ["1250"]}, [SAID], {}, "correct"),
        ({"actions": [], "communicate_info": ["1251"]}, [SAID], {}, "wrong"),
        ({"actions": [ACTION], "reward_basis": ["ACTION"]}, [DONE], {}, "correct"),
        ({"actions": [ACTION], "reward_basis": ["ACTION"]}, [SAID], {}, "wrong"),
        ({"actions": [{**ACTION, "compare_args": []}], "reward_basis": ["ACTION"]}, [NOTHING], {}, "correct"),
        ({"actions": [{**ACTION, "requestor": "user"}], "reward_basis": ["ACTION"]}, [DONE], {}, "wrong"),
        ({"env_assertions": [READ], "reward_basis": ["ENV_ASSERTION"]}, [DISMISSED], {}, "correct"),
        ({"env_assertions": [READ], "reward_basis": ["ENV_ASSERTION"]}, [SAID], {}, "wrong"),
        ({"env_assertions": [UNKNOWN], "reward_basis": ["ENV_ASSERTION"]}, [SAID], {}, "unscored"),
        ({"nl_assertions": ["x"], "reward_basis": ["NL_ASSERTION"]}, [SAID], {"nl_judgements": [True]}, "correct"),
        ({"nl_assertions": ["x"], "reward_basis": ["NL_ASSERTION"]}, [SAID], {"nl_judgements": [False]}, "wrong"),
        ({"nl_assertions": ["x"], "reward_basis": ["NL_ASSERTION"]}, [SAID], {"nl_judgements": [None]}, "unscored"),
        ({"nl_assertions": ["x"], "reward_basis": ["NL_ASSERTION"]}, [SAID], {}, "unscored"),
        ({"nl_assertions": [], "reward_basis": ["NL_ASSERTION"]}, [SAID], {}, "correct"),
        ({"actions": [ACTION], "nl_assertions": ["x"], "reward_basis": ["DB", "NL_ASSERTION"]}, [SAID], {}, "wrong"),
        ({"reward_basis": ["WISH"]}, [SAID], {}, "unscored"),
        ({}, None, {}, "unscored"),
    ],
)  # fmt: skip
def test_rewards(tmp_path: Path, criteria: Row, talk: list[Row] | None, more: Row, outcome: str) -> None:
    initial = {"initialization_actions": [{"env_type": "user", "func_name": "add_notification",
               "arguments": {"notification_id": "n", "message": "m", "task_id": "task_1"}}]}  # fmt: skip
    record = {
        "domain": "mock",
        "initial_state": initial,
        "evaluation_criteria": criteria,
        "conversation": talk,
        "ended": "user_stop",
        **more,
    }
    score = plain_grader("tau2", {"data": stored(tmp_path)}).grade(record)
    assert score.outcome == outcome, score
    assert score.fields["reward"] == {"correct": 1.0, "wrong": 0.0, "unscored": None}[outcome]


def test_how_tasks_begin(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    initial: Row = {
        "initialization_data": {"agent_data": {"users": {"user_1": {"tasks": ["task_1", "task_2"]}}}},
        "message_history": [called("assistant", "create_task", user_id="user_1", title="New")],
    }
    service = start_service({"domain": "mock", "initial_state": initial}, folder)
    assert isinstance(service, TaskList)
    assert service.data["users"]["user_1"] == {
        "user_id": "user_1",
        "name": "U",
        "tasks": ["task_1", "task_2", "task_2"],
    }
    assert service.data["tasks"]["task_2"]["title"] == "New"
    with pytest.raises(UnknownNameError, match="bakery"):
        start_service({"domain": "bakery"}, folder)
    with pytest.raises(DataError, match="no function fly"):
        start_service(
            {"domain": "mock", "initial_state": {"initialization_actions": [{"func_name": "fly"}]}}, folder
        )


def test_all_of_k_trials() -> None:
    metric = make_metric("tau2")
    for rewards in ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 0.0, 0.0)):
        metric.update([{"id": "t", "reward": r, "outcome": "correct" if r else "wrong"} for r in rewards])
    found = metric.metrics()
    assert [round(found[f"pass@{k}"]["all_of_k"], 2) for k in (1, 2, 4)] == [75.0, 58.33, 50.0]
    assert found["pass@1[avg-of-4]"]["reward"] == 75.0


@pytest.mark.mirror
def test_the_tasks_own_actions_are_right(mirror: Path, tmp_path: Path) -> None:
    """On every sixth task of the shop. Doing nothing earns the reward only where there is nothing to do."""
    options = FetchOptions(mirror=str(mirror), offline=True)
    (done,) = prepare(get_benchmark("tau2-bench.retail"), data_dir=tmp_path, options=options).splits
    rows = list(read_rows(done.path))
    assert len(rows) == 114
    grader: Any = plain_grader("tau2", {"data": str(done.path.parent / "assets" / "test")})
    outcomes: Counter[tuple[str, str]] = Counter()
    for row in rows[::6]:
        right: Any = grader.gold_reply(row)
        common = {**row, **right}
        outcomes["right", grader.grade(common).outcome] += 1
        outcomes["idle", grader.grade({**common, "conversation": [SAID]}).outcome] += 1
    assert outcomes["right", "correct"] == 19
    assert outcomes["idle", "wrong"] >= 15
