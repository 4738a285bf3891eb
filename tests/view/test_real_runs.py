# SPDX-License-Identifier: Apache-2.0
"""The viewer on what `ns eval` itself has written: prompts as they were sent, verdicts, jobs and their logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.clusters import SUMS, Place, answers
from tests.conftest import FakeServerFactory
from tests.view.results import benchmark, mixed

from newskills.cli import main
from newskills.view.library import Library
from newskills.view.pages.comparison import comparison_page
from newskills.view.pages.jobs import experiment_page, jobs_page, log_page
from newskills.view.pages.overview import overview_page
from newskills.view.pages.sample import sample_page


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.config("mine", "executor: none")
    return place


@pytest.mark.nightly
@pytest.mark.slow
def test_an_evaluation_by_jobs_is_shown_with_its_prompts_and_its_jobs(
    place: Place, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake_server(answers(), process=True)
    done = place.ns(
        "ns eval --cluster=mine --benchmarks=./sums.py:2 --server_type=vllm --model=fake --output_dir=out"
        f" --server_address={server.url} --expname=seen --num_jobs=2"
    )
    assert done.returncode == 0, done.stderr
    assert "samples: ns view out\n" in place.ns("ns summarize_results out").stdout
    library = Library([place.folder / "out"], wait=True)
    (run,) = overview_page(library)["runs"]
    cell = run["benchmarks"]["own-sums"]
    assert cell["score"]["n"] == len(SUMS)
    assert cell["status"] == "done"
    page = sample_page(library, run["id"], "own-sums", 1, 3)
    assert page["prompt"]["exact"], page["prompt"]["note"]
    content = page["prompt"]["messages"][-1]["content"]
    assert any(content in str(record.prompt) for record in server.records)
    assert page["verdict"]["gold"] == str(SUMS[3]["expected_answer"])
    library.close()
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    assert [one["name"] for one in jobs_page()["experiments"]] == ["seen"]
    experiment = experiment_page("seen")
    assert {job["state"] for job in experiment["jobs"]} == {"completed"}
    job = experiment["jobs"][0]
    assert log_page("seen", job["name"], job["commands"][0])["lines"]


def test_imported_results_compare_with_the_same_figures(tmp_path: Path) -> None:
    """Two runs of NeMo-Skills, raw and imported."""
    figures = []
    for name, right in (("before", 4), ("after", 7)):
        rows = mixed(60, right)
        for row in rows:
            for key in ("outcome", "outcome_cause", "grader", "why"):
                row.pop(key, None)
        benchmark(tmp_path / "theirs" / name, "gsm8k", [rows])
        for path in (tmp_path / "theirs" / name).rglob("*.run.json"):
            path.unlink()
        assert (
            main(["import", str(tmp_path / "theirs" / name), "--output_dir", str(tmp_path / "ours" / name)]) == 0
        )
    for folder in ("theirs", "ours"):
        library = Library([tmp_path / folder], wait=True)
        page = comparison_page(library, "before", "after", "gsm8k")
        figures.append((page["difference"], page["gains"], page["losses"], page["common"]))
        library.close()
    assert figures[0] == figures[1]
    assert figures[0][0]["value"] == pytest.approx(30.0)
