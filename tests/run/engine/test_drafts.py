# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding as the server reports it, over all turns of a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, run
from tests.server import Answer, Script

from newskills.base.store import read_rows
from newskills.benchmarks.speed.speed_bench import row
from newskills.metrics import make_metric


@pytest.mark.parametrize("stream", [False, True])
def test_counts_of_all_turns_are_summed(tmp_path: Path, fake_server: FakeServerFactory, stream: bool) -> None:
    server = fake_server(Script(answer=Answer(text="Yes."), drafts=(4, 12, 6)))
    turns = [["Write a loop.", "Now a faster one.", "Explain it."], ["Tell a story."]]
    rows = [
        row({"turns": texts, "category": "coding", "question_id": f"q{n}"}, n) for n, texts in enumerate(turns)
    ]
    (tmp_path / "input.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    unit = make_unit(
        tmp_path,
        server.base_url,
        prompt_config=None,
        prompt_format="openai",
        solver="turns",
        eval_type="specdec",
        inference={"stream": stream},
    )
    assert run(unit).exit_code == 0
    assert len(server.records) == 4, "every turn is asked"
    records = list(read_rows(unit.merged))
    assert [record["spec_num_drafts"] for record in records] == [12, 4]
    assert records[0]["outcome"] == "correct"
    metric = make_metric("specdec")
    for record in records:
        metric.update([record])
    assert metric.numbers()["pass@1"]["spec_acceptance_length"].value == pytest.approx(1 + 24 / 16)
