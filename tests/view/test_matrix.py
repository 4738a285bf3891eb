# SPDX-License-Identifier: Apache-2.0
"""Many runs as one matrix: what it tells, what is kept of it, and that it agrees with `ns compare`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.view.results import benchmark, mixed, record, write_lines
from tests.view.test_viewer import Client

from newskills.base.paired import paired_difference, paired_test
from newskills.view.comparison.paired_runs import CompareOptions, compare_run_folders
from newskills.view.discovery import BenchmarkFiles, Run, discover_all
from newskills.view.folders import Folders
from newskills.view.library import Library
from newskills.view.pages.matrix import differences_to, score_matrix
from newskills.view.pages.overview import overview_page
from newskills.view.server import ViewOptions, serve_viewer
from newskills.view.summaries import CellSummary, Read, Summaries


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    with ExitStack() as stack:
        yield lambda *folders: Client(stack.enter_context(serve_viewer(ViewOptions(folders=folders))))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[Path], Library]]:
    """Opens a folder, whose pages are made when everything is read."""
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    opened: list[Library] = []

    def open_library(folder: Path) -> Library:
        opened.append(Library([folder], wait=True))
        return opened[-1]

    yield open_library
    for each in opened:
        each.close()


def checkpoints(root: Path) -> Path:
    """Three checkpoints of a model with two benchmarks, and one run that has neither a step nor the second."""
    for step, right in ((100, 3), (200, 5), (1000, 8)):
        run = root / f"qwen3-0.6b/step-{step}"
        benchmark(run, "sums", [mixed(200, right)])
        benchmark(run, "words", [mixed(80, right, shift=3)])
    benchmark(root / "other", "sums", [[record(n, outcome="unscored" if n < 10 else "wrong") for n in range(40)]])
    return root


def by_id(page: Any) -> dict[str, Any]:
    return {run["id"]: run for run in page["runs"]}


def test_the_matrix_tells_scores_losses_and_where_a_run_stands(
    tmp_path: Path, library: Callable[[Path], Library]
) -> None:
    page = score_matrix(library(checkpoints(tmp_path / "results")))
    assert [one["name"] for one in page["benchmarks"]] == ["sums", "words"]
    assert page["pending"] == 0
    runs = by_id(page)
    place, value, low, high, total, unscored, truncated, status = runs["qwen3-0.6b/step-1000"]["cells"][0]
    assert (place, value, total, unscored, truncated, status) == (0, 80.0, 200, 0, 0, "done")
    assert low < 80 < high
    assert [(run, each["step"], each["size"]) for run, each in sorted(runs.items())] == [
        ("other", None, None),
        ("qwen3-0.6b/step-100", 100, 0.6),
        ("qwen3-0.6b/step-1000", 1000, 0.6),
        ("qwen3-0.6b/step-200", 200, 0.6),
    ]
    assert len(runs["other"]["cells"]) == 1
    assert runs["other"]["cells"][0][5] == 10


def test_imported_runs_tell_their_tool_and_their_model(tmp_path: Path, library: Callable[[Path], Library]) -> None:
    root = checkpoints(tmp_path / "results")
    origin = {"format": "lm-eval", "path": "/somewhere", "model": "mine-8b"}
    about = {"benchmark": "sums", "newskills": "1.0.0", "imported": origin}
    (root / "other/eval-results/sums/benchmark.json").write_text(json.dumps(about))
    (root / "other/eval-results/sums/output.jsonl.run.json").unlink()
    opened = library(root)
    page = score_matrix(opened)
    other = by_id(page)["other"]
    assert (other["model"], other["size"]) == ("mine-8b", 8.0)
    assert other["settings"][page["settings"].index("system")] == "lm-eval"
    (run,) = overview_page(opened, run="other")["runs"]
    assert run["benchmarks"]["sums"]["imported"] == "lm-eval"


def test_differences_are_those_of_compare(tmp_path: Path, library: Callable[[Path], Library]) -> None:
    root = checkpoints(tmp_path / "results")
    baseline, other = "qwen3-0.6b/step-100", "qwen3-0.6b/step-1000"
    page = differences_to(library(root), baseline, [other, "other", baseline])
    assert not page["pending"]
    assert page["runs"][baseline] == {}
    expected = compare_run_folders([root / baseline, root / other], CompareOptions())
    found = page["runs"][other]
    assert {item.benchmark for item in expected.benchmarks} == set(found)
    for item in expected.benchmarks:
        points, p_value, problems, verdict = found[item.benchmark]
        assert points == pytest.approx(item.difference)
        assert p_value == pytest.approx(item.p_adjusted)
        assert problems == item.problems
        assert verdict == item.verdict == "better"
    assert page["runs"]["other"]["sums"][3] in ("worse", "not significant")


def test_a_test_without_an_interval_has_the_same_p_value() -> None:
    for before, after in (
        ([[1.0]] * 9 + [[0.0]] * 9, [[1.0]] * 4 + [[0.0]] * 14),
        ([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]),
        ([[0.25], [0.5], [0.75]], [[0.5], [0.5], [1.0]]),
    ):
        quick, whole = paired_test(before, after), paired_difference(before, after)
        assert (quick.difference, quick.p_value, quick.n) == (whole.difference, whole.p_value, whole.n)


def test_a_change_of_files_is_noticed_and_nothing_else_is_read_again(tmp_path: Path) -> None:
    root = checkpoints(tmp_path / "results")
    read: list[str] = []

    def reader(run: Run, results: BenchmarkFiles) -> Read:
        read.append(f"{run.id}:{results.name}")
        summary = CellSummary(results.fingerprint, "correct", 50.0, 40.0, 60.0, 1, 0, 0, None, "done", ())
        return Read(summary=summary, settings={"temperature": "0.7", "who": run.id})

    def look() -> Summaries:
        summaries = Summaries(tmp_path / "cache", (root,), "1.0", reader)
        catalog = discover_all(Folders([root]))
        summaries.ask(catalog, 60)
        assert summaries.pending == 0
        run = catalog.runs["qwen3-0.6b/step-100"]
        two = [summary for each in run.benchmarks.values() if (summary := summaries.of(each))]
        assert summaries.common_settings(two) == {"temperature": "0.7", "who": "qwen3-0.6b/step-100"}
        summaries.close()
        return summaries

    look()
    assert len(read) == 7
    look()
    assert len(read) == 7
    state = root / "other/eval-results/sums/output.jsonl.run.json"
    state.write_text(state.read_text().replace("1060.0", "2060.0 "))
    look()
    assert read[7:] == ["other:sums"]
    (kept,) = (tmp_path / "cache").glob("summaries-*.json")
    kept.write_bytes(kept.read_bytes()[:-20])
    look()
    assert len(read) == 15


def test_a_summary_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    root = checkpoints(tmp_path / "results")

    def reader(run: Run, results: BenchmarkFiles) -> Read:
        raise PermissionError("no")

    summaries = Summaries(tmp_path / "cache", (root,), "1.0", reader)
    catalog = discover_all(Folders([root]))
    summaries.ask(catalog, 60)
    found = summaries.latest(catalog.runs["other"].benchmarks["sums"])
    assert found is not None
    assert (found.value, found.status) == (None, "unreadable")
    summaries.close()


def test_pages_about_one_run_and_one_benchmark(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(checkpoints(tmp_path / "results"))
    one = client.get("overview", run="other")
    assert ([run["id"] for run in one["runs"]], one["benchmarks"]) == (["other"], ["sums"])
    words = client.get("overview", benchmark="words")
    assert (len(words["runs"]), words["benchmarks"]) == (3, ["words"])
    assert {row["benchmark"] for row in words["differences"]} == {"words"}
    assert "did you mean 'words'" in client.refused("overview", benchmark="word")
    assert "did you mean" in client.refused("overview", run="othr")
    assert "did you mean" in client.refused("differences", baseline="othr", runs="other")


def test_a_run_at_work_is_followed(tmp_path: Path, shown: Callable[..., Client]) -> None:
    root = checkpoints(tmp_path / "results")
    client = shown(root)
    folder = benchmark(root / "new", "sums", [mixed(40, 5)])
    while "new" not in by_id(client.get("matrix")) or client.get("matrix")["pending"]:
        pass
    assert by_id(client.get("matrix"))["new"]["cells"][0][1] == 50.0
    metrics = {"sums": {"pass@1": {"num_entries": 40, "symbolic_correct": 75.0}}}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    while by_id(client.get("matrix"))["new"]["cells"][0][1] != 75.0:
        pass


def test_a_bookmark_survives_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    folder = benchmark(tmp_path / "results", "sums", [mixed(4, 5)])

    def token(*, new: bool = False) -> str:
        with serve_viewer(ViewOptions(folders=(folder,), new_token=new)) as address:
            return address.split("/")[3]

    first = token()
    assert token() == first
    kept = tmp_path / "cache/view/token"
    assert kept.stat().st_mode & 0o077 == 0
    second = token(new=True)
    assert second != first
    assert token() == second
    kept.chmod(0o644)
    assert token() != second, "a token that others could read is no secret"
    kept.write_text("short")
    assert len(token()) > 30


def test_results_without_metrics_are_counted_from_their_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    rows = [record(number, outcome="wrong" if number % 4 == 0 else "correct") for number in range(40)]
    for name in ("a", "b", "c"):
        write_lines(tmp_path / name / "eval-results" / "benchmark-10" / "output.jsonl", rows)
    write_lines(tmp_path / "c" / "eval-results" / "benchmark-2" / "output.jsonl", rows)
    library = Library([tmp_path])
    try:
        page = score_matrix(library)
        while page["pending"]:
            time.sleep(0.01)
            page = score_matrix(library)
    finally:
        library.close()
    assert [one["name"] for one in page["benchmarks"]] == ["benchmark-2", "benchmark-10"]
    assert [run["cells"][-1][1] for run in page["runs"]] == [75.0, 75.0, 75.0]
