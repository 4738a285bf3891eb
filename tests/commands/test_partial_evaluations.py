# SPDX-License-Identifier: Apache-2.0
"""Of several benchmarks some fail, or cannot run here: told before any request, or beside the tables of the rest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.commands.clusters import BENCHMARK, Place, answers
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, run
from tests.server import Fault, Script

from newskills.base.errors import ConfigError


def test_a_table_is_shown_for_those_that_ran(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    place = Place(tmp_path)
    (tmp_path / "more.py").write_text(
        BENCHMARK.replace("own-sums", "more-sums").replace("Add {n} and", "Shun {n} and")
    )
    assert place.ns("ns prepare_data ./more.py").returncode == 0
    usual = answers()
    fault = Fault(kind="status", status=400, message="not this one", marker="Shun 3")
    server = fake_server(Script(answer=usual.answer, faults=(fault,)), process=True)
    line = "ns eval --benchmarks=./sums.py,./more.py:2 --server_type=vllm --model=fake --output_dir=out"
    done = place.ns(f"{line} --server_address={server.url}")
    assert done.returncode == 1
    assert "own-sums" in done.stdout
    assert "100.00%" in done.stdout
    assert "not in the table, because it is not finished: more-sums" in done.stdout
    assert set(json.loads((tmp_path / "out/metrics.json").read_text())) == {"own-sums"}
    assert "more-sums-rs0: 1 of 10 rows got no answer" in done.stderr


@pytest.mark.parametrize(
    ("solver", "lacking", "install"),
    [
        ("conversation_calls", "bfcl_eval", "pip install --no-deps bfcl-eval"),
        ("memory_calls", "sentence_transformers", "pip install"),
    ],
)
def test_what_a_solver_lacks_is_told_before_the_first_request(
    tmp_path: Path,
    fake_server: FakeServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    solver: str,
    lacking: str,
    install: str,
) -> None:
    monkeypatch.setitem(sys.modules, lacking, None)
    server = fake_server(answers())
    rows = [{"problem": f"Add {n}.", "tools": [], "setting": "", "sessions": []} for n in range(3)]
    (tmp_path / "input.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = {"memory": "vector"} if solver == "memory_calls" else {}
    usual = make_unit(tmp_path, server.base_url)
    other = make_unit(
        tmp_path,
        server.base_url,
        solver=solver,
        solver_config=config,
        output_file=str(tmp_path / "other" / "output.jsonl"),
    )
    with pytest.raises(ConfigError, match=install):
        run(usual, other)
    assert server.records == []
    assert not usual.merged.exists()
