# SPDX-License-Identifier: Apache-2.0
"""The telephone company and the phone: what reaches the other side, and what no call can break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.official.tau2_bench import stored

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.graders.tau2.grader import start_service
from newskills.graders.tau2.telecom import Telecom

STORED = stored("tau2_telecom")
LINE = {"customer_id": "C1001", "line_id": "L1002"}


@pytest.fixture
def service(tmp_path: Path) -> Telecom:
    """The user has the line L1002."""
    return begun(tmp_path)


def begun(folder: Path, *actions: Row) -> Telecom:
    (folder / "telecom.json").write_bytes(
        msgspec.json.encode({"data": STORED["data"], "user_data": STORED["user_data"]})
    )
    who = {"func_name": "set_user_info", "arguments": {"name": "John Smith", "phone_number": "555-123-2002"}}
    made = start_service(
        {"domain": "telecom", "initial_state": {"initialization_actions": [who, *actions]}}, str(folder)
    )
    assert isinstance(made, Telecom)
    return made


def test_what_the_company_does_reaches_the_phone(service: Telecom) -> None:
    assert service.surroundings["roaming_allowed"]
    assert service.call("assistant", "disable_roaming", LINE) == "Roaming is disabled."
    assert not service.surroundings["roaming_allowed"]
    suspended = msgspec.json.decode(service.call("assistant", "suspend_line", {**LINE, "reason": "lost"}))
    assert (suspended["line"]["status"], suspended["line"]["suspension_start_date"]) == ("Suspended", "2025-02-25")
    shown = service.call("user", "check_status_bar", {})
    assert shown == "status bar: signal good, 5G, mobile data enabled, battery 80%"
    restarted = service.call("user", "reboot_device", {})
    assert restarted.endswith("\nstatus bar: signal none, mobile data disabled, battery 80%")
    service.call("assistant", "resume_line", LINE)
    service.act({"func_name": "set_data_usage", "arguments": {**LINE, "data_used_gb": 15.0}})
    assert service.surroundings["mobile_data_usage_exceeded"]
    more = msgspec.json.decode(service.call("assistant", "refuel_data", {**LINE, "gb_amount": 2.0}))
    assert (more["new_data_refueling_gb"], more["charge"]) == ("2.0", "4.0")
    assert not service.surroundings["mobile_data_usage_exceeded"]


def test_what_the_user_pays_reaches_the_company(service: Telecom) -> None:
    assert service.call("user", "make_payment", {}) == "There is nothing to pay."
    asked = {"customer_id": "C1001", "bill_id": "B1002"}
    assert (
        service.call("assistant", "send_payment_request", asked) == "The customer is asked to pay the bill B1002."
    )
    again = service.call("assistant", "send_payment_request", asked)
    assert again == "Error: another bill of the customer waits for payment"
    assert "150.0 USD for the bill B1002" in service.call("user", "check_payment_request", {})
    assert "150.0 USD for the bill B1002" in service.call("user", "make_payment", {})
    assert service.surroundings["payment_request"] is None
    assert msgspec.json.decode(service.call("assistant", "get_details_by_id", {"id": "B1002"}))["status"] == "Paid"


def test_a_slow_vpn_stays_slow_in_its_conversation_only(tmp_path: Path) -> None:
    slow, fast = begun(tmp_path, {"func_name": "break_vpn"}), begun(tmp_path)
    for service in (slow, fast):
        service.call("user", "disconnect_vpn", {})
        assert service.act({"func_name": "assert_internet_speed", "arguments": {"expected_speed": 200}})
        service.call("user", "connect_vpn", {})
    assert slow.call("user", "run_speed_test", {}) == "22.00 Mbps: Fair"
    assert fast.call("user", "run_speed_test", {}) == "220.00 Mbps: Excellent"
    assert "server_performance: poor" in slow.call("user", "check_vpn_status", {})


def test_a_phone_of_no_line_is_no_task(tmp_path: Path) -> None:
    wrong = {"func_name": "set_user_info", "arguments": {"name": "Jo", "phone_number": "1"}}
    with pytest.raises(DataError, match="no line has the phone number 1"):
        begun(tmp_path, wrong)


def test_only_the_user_has_the_phone(service: Telecom) -> None:
    assert service.call("assistant", "toggle_data", {}) == "Error: there is no function toggle_data"
    assert service.call("user", "enable_roaming", LINE) == "Error: there is no function enable_roaming"
    described = {tool["function"]["name"]: tool["function"]["parameters"] for tool in service.tools("user")}
    assert set(described) == set(Telecom.user_tools)
    assert described["set_network_mode_preference"]["properties"]["mode"]["enum"][0] == "2g_only"
    settings_of = described["set_apn_settings"]["properties"]["apn_settings"]
    assert settings_of["properties"]["mms_port"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert settings_of["required"] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["apn_name", "mms_port"]), inner),
    max_leaves=4,
)
REAL = st.sampled_from(["C1001", "L1002", "B1003", "messaging", "SMS", "2g_only", 2.0, {"apn_name": "broken"}])
TOOLS = [(caller, tool["function"]) for caller in ("assistant", "user") for tool in Telecom({}).tools(caller)]
CALLS = st.one_of(
    st.tuples(
        st.just(caller),
        st.just(tool["name"]),
        st.fixed_dictionaries(dict.fromkeys(tool["parameters"]["properties"], REAL | JSON)),
    )
    for caller, tool in TOOLS
)


@settings(max_examples=25)
@given(st.lists(CALLS, min_size=1, max_size=2))
def test_no_call_breaks_the_company(made: list[tuple[str, str, Any]]) -> None:
    service = Telecom(*msgspec.json.decode(msgspec.json.encode([STORED["data"], STORED["user_data"]])))
    for call in made:
        before = service.state()
        said = service.call(*call)
        assert not said.startswith("Error: ") or service.state() == before
    service.call("user", "check_network_status", {})
    service.state()
