# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, names, records, run, write_input
from tests.server import Answer, Fault, Script


def test_replies_are_remembered_until_the_file_is_finished(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, marker="is 3 +"),)))
    write_input(tmp_path, 5)
    unit = make_unit(tmp_path, server.base_url, enable_litellm_cache=True)
    run(unit)
    unit.paths.log.unlink()  # as if the replies had come, but no sample had been finished
    server.script = Script(answer=Answer(kind="echo"))
    assert run(unit).exit_code == 0
    assert len(server.records) == 6
    assert [r["generation"] for r in records(unit.merged)] == [r"The answer is \boxed{42}."] * 3 + [
        "What is 3 + 1?",
        r"The answer is \boxed{42}.",
    ]
    assert names(tmp_path / "out") == ["output.jsonl", "output.jsonl.done", "output.jsonl.run.json"]


def test_equal_requests_of_one_run_are_asked_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script())
    (tmp_path / "input.jsonl").write_text('{"problem": "x", "n": 1}\n{"problem": "x", "n": 2}\n')
    run(make_unit(tmp_path, server.base_url, enable_litellm_cache=True, max_concurrent_requests=1))
    assert len(server.records) == 1
