# SPDX-License-Identifier: Apache-2.0
"""The airline: what conversations share, what is stored as it came, and what no call can break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graders.plain import plain_grader
from tests.official.tau2_bench import stored

from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.sources import in_mirror
from newskills.graders.tau2.airline import Airline
from newskills.graders.tau2.grader import ENDED, start_service

DATA = stored("tau2_airline")["data"]
USER = "sofia_kim_7287"


def call(service: Airline, name: str, **arguments: Any) -> Any:
    said = service.call("assistant", name, arguments)
    return said if said.startswith("Error") or not said.startswith(("{", "[")) else msgspec.json.decode(said)


def booking(service: Airline, **changes: Any) -> Any:
    """Of a free seat, paid with the first card of the user."""
    flight, date, day = next(
        (flight, date, day)
        for flight in DATA["flights"].values()
        for date, day in flight["dates"].items()
        if day["status"] == "available"
    )
    card = next(key for key in DATA["users"][USER]["payment_methods"] if key.startswith("credit_card"))
    return call(
        service,
        "book_reservation",
        **{
            "user_id": USER,
            "origin": flight["origin"],
            "destination": flight["destination"],
            "flight_type": "one_way",
            "cabin": "economy",
            "flights": [{"flight_number": flight["flight_number"], "date": date}],
            "passengers": [{"first_name": "Sofia", "last_name": "Kim", "dob": "1990-01-01"}],
            "payment_methods": [{"payment_id": card, "amount": day["prices"]["economy"]}],
            "total_baggages": 1,
            "nonfree_baggages": 0,
            "insurance": "no",
        }
        | changes,
    )


def test_conversations_share_the_tables_but_not_what_they_change(tmp_path: Path) -> None:
    (tmp_path / "airline.json").write_bytes(msgspec.json.encode({"data": DATA}))
    one, other = (start_service({"domain": "airline"}, str(tmp_path)) for _ in range(2))
    assert isinstance(one, Airline)
    untouched = one.state()
    before = call(one, "get_user_details", user_id=USER)
    assert one.state() == untouched == other.state()
    assert one.data["flights"] is not other.data["flights"]
    assert all(row is other.data["flights"][key] for key, row in one.data["flights"].items())
    made = booking(one)
    assert (made["reservation_id"], made["status"], made["created_at"]) == ("HATHAT", None, "2024-05-15T15:00:00")
    assert call(one, "get_user_details", user_id=USER)["reservations"] == [*before["reservations"], "HATHAT"]
    assert other.state() == untouched != one.state()
    assert other.call("assistant", "get_user_details", {"user_id": USER}) == msgspec.json.encode(before).decode()
    other.merge({"agent_data": {"users": {USER: {"membership": "gold"}}}})
    assert start_service({"domain": "airline"}, str(tmp_path)).state() == untouched != other.state()


def test_seats_are_taken_and_payments_add_up() -> None:
    service = Airline(DATA)
    assert booking(service, payment_methods=[]).startswith("Error: the payments do not add up: the price is ")
    assert booking(service, cabin="first").startswith("Error: 'first'")
    assert booking(service, flights="HAT001").startswith(
        "Error: 'HAT001' is no list of objects with flight_number"
    )
    assert booking(service, passengers=[{"first_name": "S"}]).startswith(
        "Error: {'first_name': 'S'}: Object missing"
    )
    assert service.state() == Airline(DATA).state()
    leg = booking(service)["flights"][0]
    day, before = (
        tables["flights"][leg["flight_number"]]["dates"][leg["date"]] for tables in (service.data, DATA)
    )
    assert before["available_seats"]["economy"] - day["available_seats"]["economy"] == 1
    assert [booking(service)["reservation_id"] for _ in range(2)] == ["HATHAU", "HATHAV"]
    assert booking(service) == "Error: there are too many reservations"


def test_a_certificate_that_is_given_twice_is_spent() -> None:
    service = Airline(DATA)
    said = [call(service, "send_certificate", user_id=USER, amount=1000) for _ in range(4)]
    assert said[0] == f"{USER} has the new certificate certificate_3221322 with amount 1000"
    assert said[3] == "Error: there are too many certificates"
    price = booking(service, payment_methods=[]).split("is ")[1].split(",")[0]
    halves = [{"payment_id": "certificate_3221322", "amount": amount} for amount in (1, int(price) - 1)]
    assert booking(service, payment_methods=halves) == "Error: the certificate certificate_3221322 is spent"
    assert "certificate_3221322" not in service.data["users"][USER]["payment_methods"]


def test_how_structured_arguments_are_described() -> None:
    described = {
        tool["function"]["name"]: tool["function"]["parameters"] for tool in Airline(DATA).tools("assistant")
    }
    assert set(described) == set(Airline.agent_tools)
    properties = described["update_reservation_flights"]["properties"]
    assert properties["cabin"]["enum"] == ["basic_economy", "business", "economy"]
    assert properties["flights"]["items"]["required"] == ["flight_number", "date"]
    assert properties["flights"]["items"]["properties"]["date"]["type"] == "string"
    assert properties["flights"]["description"].startswith("ALL flights")
    assert described["send_certificate"]["properties"]["amount"]["type"] == "integer"
    assert described["search_direct_flight"]["properties"]["origin"]["type"] == "string"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["date", "amount"]), inner),
    max_leaves=4,
)
REAL = st.sampled_from(
    [*list(DATA["flights"])[:3], *list(DATA["reservations"])[:3], USER, "economy", "2024-05-20"]
)


TOOLS = [tool["function"] for tool in Airline(DATA).tools("assistant")]
CALLS = st.one_of(
    st.tuples(
        st.just(tool["name"]), st.fixed_dictionaries(dict.fromkeys(tool["parameters"]["required"], REAL | JSON))
    )
    for tool in TOOLS
)
WRITING = {name for name in Airline.agent_tools if name.startswith(("book", "cancel", "send", "update"))}


@settings(max_examples=40)
@given(CALLS)
def test_no_call_breaks_the_airline(made: tuple[str, Row]) -> None:
    service = Airline(DATA)
    said = service.call("assistant", *made)
    assert said.startswith("Error: ") == (service.state() == Airline(DATA).state()) or made[0] not in WRITING


@pytest.mark.mirror
def test_the_tasks_own_actions_are_right_on_the_whole_database(mirror: Path, tmp_path: Path) -> None:
    """Doing nothing earns the reward where there is nothing to do, and nothing to tell."""
    benchmark, options = get_benchmark("tau2-bench.airline"), FetchOptions(mirror=str(mirror), offline=True)
    if not in_mirror(benchmark.sources[0], Fetcher(tmp_path, options)):
        pytest.skip("the mirror has no data of tau2-bench.airline")
    (done,) = prepare(benchmark, data_dir=tmp_path, options=options).splits
    rows = list(read_rows(done.path))
    assert len(rows) == 50
    grader: Any = plain_grader("tau2", {"data": str(done.path.parent / "assets" / "test")})
    assert {grader.grade({**row, **grader.gold_reply(row)}).outcome for row in rows} == {"correct"}
    idle: Row = {"conversation": [], "ended": ENDED}
    assert sum(grader.grade({**row, **idle}).outcome == "correct" for row in rows) == 23
