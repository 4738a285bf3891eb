# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.conftest import FakeServerFactory
from tests.run.toy import NAME
from tests.server import Answer, Script

from newskills.base.benchmark import Benchmark
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.data import prepare, read_provenance
from newskills.config.layers import Layer
from newskills.run.evaluate import EvaluationSpec, evaluate, plan_evaluation
from newskills.run.planning.plan import BenchmarkRun


def rows(split: str) -> Iterator[Row]:
    for n in range(4):
        yield {"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}


SUMS = Benchmark(
    name="own-sums",
    category="math-natural",
    title="Sums",
    generate_rows=rows,
    prompt="generic/math",
    grader=NAME,
    metric="generic",
    version="7",
)


def specification(folder: Path, base_url: str, samples: int = 0) -> EvaluationSpec:
    prepare(SUMS, data_dir=folder / "data")
    run = BenchmarkRun(
        name="own-sums",
        benchmark=SUMS,
        samples=samples,
        split="test",
        input_file=folder / "data" / "own-sums" / "test.jsonl",
    )
    model = Layer("test", {"server.server_type": "vllm", "server.model": "fake", "server.base_url": base_url})
    return EvaluationSpec(runs=[run], output_dir=folder / "out", layers=[model], log_dir=str(folder / "logs"))


def test_what_was_measured_lies_beside_the_records(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="4")))
    spec = specification(tmp_path, server.base_url)
    assert evaluate(plan_evaluation(spec), say=lambda text: None).exit_code == 0
    path = tmp_path / "out" / "eval-results" / "own-sums" / "benchmark.json"
    found = json.loads(path.read_text())
    assert [found[name] for name in ("benchmark", "version", "split", "prompt", "metric")] == [
        "own-sums",
        "7",
        "test",
        "generic/math",
        "generic",
    ]
    assert found["grader"] == "toy@1 {}"
    assert len(found["prompt_hash"]) == 16
    assert found["prompt_text"].startswith("[user]\nSolve the following math problem.")
    assert "{problem}" in found["prompt_text"]
    assert found["data"] == msgspec.to_builtins(read_provenance(spec.runs[0].input_file))
    assert found["data"]["rows"] == 4
    assert "1 correct, 3 wrong" in (tmp_path / "logs" / "run.log").read_text()
    before = path.read_bytes()
    other = Layer("test", {"prompt_config": {"user": "{problem}"}})
    changed = plan_evaluation(msgspec.structs.replace(spec, layers=[*spec.layers, other]))
    with pytest.raises(DataError, match="the prompt"):
        evaluate(changed, say=lambda text: None)
    assert path.read_bytes() == before


@pytest.mark.parametrize("first", [0, 2])
def test_seeded_and_seedless_outputs_are_not_mixed(
    tmp_path: Path, fake_server: FakeServerFactory, first: int
) -> None:
    server = fake_server(Script(answer=Answer(text="4")))
    one, other = (plan_evaluation(specification(tmp_path, server.base_url, n)) for n in (first, 2 - first))
    assert evaluate(one, say=lambda text: None).exit_code == 0
    asked = len(server.records)
    with pytest.raises(DataError, match="another kind of run"):
        evaluate(other, say=lambda text: None)
    assert len(server.records) == asked
