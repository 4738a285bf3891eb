# SPDX-License-Identifier: Apache-2.0
"""Who is to blame for what an endpoint refuses: one row, the set-up, or the moment."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, run, run_and_listen, write_input
from tests.server import Answer, Fault, Latency, Script

from newskills.base.records import Ledger, Report, Score
from newskills.run.engine.grader_pool import verdict_fields
from newskills.run.reporting.tables import render_tables

FILTER_BODY = json.dumps(
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "content_filter"}]}
)
FILTER_REFUSAL = json.dumps(
    {"error": {"message": "The response was filtered by the content management policy.", "code": "content_filter"}}
)
PAGE = "<!DOCTYPE html><html><body>Please log in</body></html>"


def refusing(status: int, marker: str) -> Script:
    fault = Fault(kind="status", status=status, marker=marker, message="flagged by a moderation")
    return Script(answer=Answer(kind="echo"), faults=(fault,))


@pytest.mark.parametrize("soft_fail", [False, True])
@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_one_refused_row_is_that_row_alone(
    tmp_path: Path, fake_server: FakeServerFactory, status: int, soft_fail: bool
) -> None:
    server = fake_server(refusing(status, "What is 7 "))
    write_input(tmp_path, 20)
    settings = {"enable_soft_fail": soft_fail}
    unit = make_unit(tmp_path, server.base_url, server=settings, max_concurrent_requests=2)
    result = run(unit)
    assert result.units[0].generated == (20 if soft_fail else 19)
    assert result.exit_code == (0 if soft_fail else 1)
    path = tmp_path / "out" / "output.jsonl" if soft_fail else unit.paths.failed
    (lost,) = [row for row in records(path) if row.get("outcome") == "unscored"]
    assert (lost["outcome_cause"], lost["error"]) == ("provider", "BadRequestError")
    assert "Other requests get answers" in lost["detailed_error"]
    assert "key" not in lost["detailed_error"]
    if not soft_fail:
        assert "(provider 1)" in result.message


@pytest.mark.parametrize("status", [402, 403, 404])
def test_also_where_it_is_the_first_row(tmp_path: Path, fake_server: FakeServerFactory, status: int) -> None:
    server = fake_server(refusing(status, "What is 0 "))
    write_input(tmp_path, 5)
    result = run(make_unit(tmp_path, server.base_url, max_concurrent_requests=1))
    assert (result.units[0].generated, result.units[0].failures) == (4, 1)


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_key_that_expires_ends_the_run_and_loses_no_row(
    tmp_path: Path, fake_server: FakeServerFactory, status: int
) -> None:
    server = fake_server(
        Script(answer=Answer(kind="echo"), faults=(Fault(kind="status", status=status, after=10),))
    )
    write_input(tmp_path, 40)
    settings = {"enable_soft_fail": True}
    result = run(make_unit(tmp_path, server.base_url, server=settings, max_concurrent_requests=4))
    assert (result.exit_code, result.units[0].status) == (1, "stopped")
    assert 0 < result.units[0].generated <= 10
    assert ("payment" if status == 402 else "key") in result.message
    server.script = Script(answer=Answer(kind="echo"))
    again = run(make_unit(tmp_path, server.base_url, server=settings))
    assert (again.exit_code, again.units[0].ledger.unscored) == (0, 0)


def test_a_short_window_of_404_is_waited_for(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """As while a router is set up anew."""
    gone = Script(faults=(Fault(kind="status", status=404),))
    fine = Script(answer=Answer(kind="echo"), latency=Latency(fixed=0.02))
    server = fake_server(fine)
    write_input(tmp_path, 100)
    timers = [
        threading.Timer(0.3, setattr, [server, "script", gone]),
        threading.Timer(2, setattr, [server, "script", fine]),
    ]
    for timer in timers:
        timer.start()
    result = run(make_unit(tmp_path, server.base_url, max_concurrent_requests=2))
    for timer in timers:
        timer.join()
    assert (result.exit_code, result.units[0].generated) == (0, 100)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="status", status=200, body=FILTER_BODY, marker="What is 1"),
        Fault(kind="status", status=400, body=FILTER_REFUSAL, marker="What is 1"),
    ],
    ids=["as a finish reason", "as a refusal"],
)
def test_a_content_filter_has_a_cause_of_its_own(
    tmp_path: Path, fake_server: FakeServerFactory, fault: Fault
) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(fault,)))
    write_input(tmp_path, 20)
    unit = make_unit(tmp_path, server.base_url, eval_type="math")
    result = run(unit)
    rows = records(tmp_path / "out" / "output.jsonl")
    filtered = [row for row in rows if row["outcome_cause"] == "content_filter"]
    assert [row["id"] for row in filtered] == [row["id"] for row in rows if row["problem"].startswith("What is 1")]
    assert {(row["outcome"], row["finish_reason"], row["generation"]) for row in filtered} == {
        ("unscored", "content_filter", "")
    }
    ledger = result.units[0].ledger
    assert (len(filtered), ledger.unscored, ledger.causes["content_filter"]) == (11, 11, 11)
    assert ledger.finish_reasons == {"stop": 9, "content_filter": 11}
    asked = len(server.records)
    assert run(unit).exit_code == 0
    assert len(server.records) == asked


def test_the_table_shows_what_a_filter_took() -> None:
    causes, finishes = {"model": 60, "content_filter": 23}, {"stop": 70, "length": 7, "content_filter": 23}
    ledger = Ledger(correct=17, wrong=60, unscored=23, causes=causes, finish_reasons=finishes)
    shown = render_tables([Report(benchmark="sums", modes={"pass@1": {"num_entries": 100}}, ledger=ledger)])
    assert "(23.0% lost: content_filter 23)" in shown
    assert "unscored: 23 of 100 samples (23.00%): content_filter 23" in shown
    assert "finish reasons: stop 70, content_filter 23, length 7" in shown


def test_stored_answers_that_a_filter_cut_off_are_no_verdict() -> None:
    score = Score(outcome="no_answer", fields={}, grader="math@1")
    found = verdict_fields({"finish_reason": "content_filter"}, score)
    assert (found["outcome"], found["outcome_cause"]) == ("unscored", "content_filter")


@pytest.mark.parametrize("stream", [False, True])
def test_a_page_with_status_200_is_called_a_page(
    tmp_path: Path, fake_server: FakeServerFactory, stream: bool
) -> None:
    page = Fault(kind="status", status=200, body=PAGE, content_type="text/html")
    server = fake_server(Script(faults=(page,)))
    write_input(tmp_path, 3)
    unit = make_unit(tmp_path, server.base_url, endpoint_patience=0.5, inference={"stream": stream})
    result = run(unit)
    assert result.exit_code == 1
    assert "an HTML page instead of an API answer" in result.message
    assert "base_url" in result.message


def test_debug_shows_requests_replies_and_retries_but_no_key(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-very-secret-0123456789"
    faults = (
        Fault(kind="status", status=500, first_per_prompt=1, message=f"your key {key} is fine"),
        Fault(kind="status", status=400, marker="What is 2 ", message=f"not with {key}"),
    )
    server = fake_server(Script(answer=Answer(kind="echo"), api_key=key, faults=faults))
    write_input(tmp_path, 3)
    unit = make_unit(tmp_path, server.base_url, log_level="debug", server={"api_key": key})
    _, said = run_and_listen(unit)
    assert "asks fake: {" in said
    assert '"content":"What is 0 + 1?"' in said
    assert "(try 2)" in said
    assert "answered after 0." in said
    assert "ServerError" in said
    assert "given up: BadRequestError" in said
    assert key not in said
    _, quiet = run_and_listen(
        make_unit(tmp_path, server.base_url, server={"api_key": key}, output_file=str(tmp_path / "b.jsonl"))
    )
    assert "What is 0" not in quiet
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert key.encode() not in everything
