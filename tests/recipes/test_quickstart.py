# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest
from tests.commands.running import ns

import newskills
from newskills.base.benchmark import Benchmark, Source
from newskills.recipes import quickstart as recipe
from newskills.recipes.quickstart import QuickstartBenchmark, QuickstartSpec, run_quickstart_evaluation

pytestmark = [pytest.mark.local_model, pytest.mark.slow]


def test_the_first_command_of_a_newcomer(
    tmp_path: Path, local_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network for gsm8k: the generated benchmark is evaluated for real, and the page says what to do."""
    line = "ns quickstart --no_train --share 0.04 --data_dir data"
    done = ns(line, cwd=tmp_path, env={"NEWSKILLS_OFFLINE": "1", "NEWSKILLS_MIRROR": ""}, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "note: gsm8k is left out" in done.stdout
    assert "pass@1[avg-of-4]" in done.stdout
    assert "95%" in done.stdout
    assert "ns prepare_data reasoning-gym.easy-product" in done.stdout
    folder = tmp_path / "results/quickstart/eval-results/reasoning-gym/easy-sum"
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["reasoning-gym.easy-sum"]["pass@4"]["num_entries"] == 2
    served = (tmp_path / "results/quickstart/eval-logs/server.log").stat().st_mtime_ns
    again = ns(line, cwd=tmp_path, env={"NEWSKILLS_OFFLINE": "1", "NEWSKILLS_MIRROR": ""}, timeout=280)
    assert again.returncode == 0
    assert (tmp_path / "results/quickstart/eval-logs/server.log").stat().st_mtime_ns == served
    assert done.stdout.splitlines()[-15:] == again.stdout.splitlines()[-15:]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEWSKILLS_OFFLINE", "1")
    monkeypatch.setenv("NEWSKILLS_MIRROR", "")
    made = newskills.quickstart(train=False, share=0.04, data_dir="data")
    assert made.improvement is None
    assert made.evaluation is not None
    assert [report.benchmark for report in made.evaluation.reports] == ["reasoning-gym.easy-sum"]
    assert made.page.read_text().startswith("<!doctype html>")


def test_parts_exist_and_a_part_without_data_is_left_out_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    nowhere = Benchmark(
        name="nowhere", category="math-natural", title="none", sources=(Source(url="http://127.0.0.1:9/x.jsonl"),)
    )
    monkeypatch.setattr(recipe, "get_benchmark", lambda name: nowhere)
    monkeypatch.setattr(recipe, "QUICKSTART_BENCHMARKS", (QuickstartBenchmark("nowhere", 2, 1, 8, "not there"),))
    with pytest.raises(recipe.DataError, match="No benchmark could be prepared"):  # type: ignore[attr-defined]
        run_quickstart_evaluation(
            QuickstartSpec(output_dir=tmp_path / "out", data_dir=tmp_path / "data"), say=said.append
        )
    assert any(text.startswith("note: nowhere is left out: ") for text in said)
    assert not (tmp_path / "out").exists()
