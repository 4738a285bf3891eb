# SPDX-License-Identifier: Apache-2.0
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from newskills.base import stats
from newskills.base.errors import ConfigError, DataError, StorageError, UnknownNameError
from newskills.base.records import Ledger, Report, Row
from newskills.base.store import write_rows
from newskills.metrics import VERSION
from newskills.run.reporting.results import list_results
from newskills.run.reporting.summarize import SummaryOptions, lost_share, summarize, summarize_files
from newskills.run.reporting.tables import render_tables

GOLDEN = Path(__file__).parent / "golden"
OPTIONS = SummaryOptions()


def known(benchmark: str) -> tuple[str, dict[str, Any]]:
    """The catalog of these tests."""
    if benchmark.partition(".")[0] in ("unheard-of", "tmp"):
        raise UnknownNameError("benchmark", benchmark, ["sums"])
    return "math", {}


def row(i: int, correct: bool | None, answer: str = "1", **more: Any) -> dict[str, Any]:
    return {"id": f"p{i}", "symbolic_correct": correct, "predicted_answer": answer, "generation": "…", **more}


def write(folder: Path, *seeds: list[Row], names: Sequence[str] | None = None) -> None:
    for number, rows in enumerate(seeds):
        write_rows(folder / (names[number] if names else f"output-rs{number}.jsonl"), rows)


def by_hand() -> list[list[dict[str, Any]]]:
    """3 seeds × 4 problems: always right; right once of three; answered once, then right; never right."""
    answers = (("7", "7", "7"), ("2", "3", "2"), (None, None, "5"), ("a", "b", None))
    scores = ((True, True, True), (False, True, False), (False, False, True), (False, False, False))
    tokens = ((10, 20, 30), (10, 10, 10), (1, 2, 3), (5, 5, 5))
    return [
        [
            row(
                i,
                scores[i][seed],
                answers[i][seed],
                num_generated_tokens=tokens[i][seed],
                generation_start_time=100.0 + i,
                generation_end_time=160.7 - seed,
                grader="math/1",
            )
            for i in range(4)
        ]
        for seed in range(3)
    ]


def without_extras(modes: dict[str, Row]) -> dict[str, Row]:
    return {
        mode: {key: value for key, value in metrics.items() if not key.endswith("_interval")}
        for mode, metrics in modes.items()
    }


def expected(**metrics: Any) -> Row:
    return {"num_entries": 4, "avg_tokens": 9, "gen_seconds": 60} | metrics


def approx(value: Any) -> Any:
    return {k: approx(v) for k, v in value.items()} if isinstance(value, dict) else pytest.approx(value)


BY_HAND = {
    "pass@1": expected(symbolic_correct=100 * 5 / 12, no_answer=25.0),
    "pass@2": expected(symbolic_correct=100 * 7 / 12, no_answer=25.0),
    "pass@3": expected(symbolic_correct=75.0, no_answer=0.0),
    "pass@1[avg-of-2]": expected(
        symbolic_correct=37.5,
        no_answer=25.0,
        symbolic_correct_statistics={
            "avg": 0.375,
            "std_dev_across_runs": math.sqrt(2) / 8,
            "avg_sample_std_dev": math.sqrt(2) / 8,
            "std_err_across_runs": 0.125,
        },
    ),
    "pass@1[avg-of-3]": expected(
        symbolic_correct=100 * 5 / 12,
        no_answer=25.0,
        symbolic_correct_statistics={
            "avg": 5 / 12,
            "std_dev_across_runs": math.sqrt(3) / 12,
            "avg_sample_std_dev": math.sqrt(3) / 6,
            "std_err_across_runs": 1 / 12,
        },
    ),
    "majority@2": expected(symbolic_correct=37.5, no_answer=25.0),
    "majority@3": expected(symbolic_correct=50.0, no_answer=0.0),
}


def test_metrics_json_against_a_calculation_by_hand(tmp_path: Path) -> None:
    write(tmp_path / "eval-results" / "sums", *by_hand())
    summary = summarize(tmp_path, known, OPTIONS)
    assert summary.path == tmp_path / "metrics.json"
    written = json.loads(summary.path.read_text())
    assert list(written) == ["sums"]
    assert list(written["sums"]) == list(BY_HAND)
    assert without_extras(written["sums"]) == approx(BY_HAND)
    assert [list(metrics) for metrics in without_extras(written["sums"]).values()] == [
        list(m) for m in BY_HAND.values()
    ]
    assert written["sums"]["pass@3"]["symbolic_correct_interval"] == approx(
        [100 * b for b in stats.wilson_interval(0.75, 4)]
    )
    assert summary.path.read_text().startswith('{\n  "sums": {\n    "pass@1": {\n      "num_entries": 4')
    assert json.loads((tmp_path / "eval-results/sums/metrics.json").read_text()) == written


def test_the_extended_file_holds_numbers_ledger_and_versions(tmp_path: Path) -> None:
    write(tmp_path / "sums", *by_hand())
    summarize(tmp_path, known, OPTIONS)
    extended = json.loads((tmp_path / "metrics_extended.json").read_text())["sums"]
    number = extended["numbers"]["pass@1[avg-of-3]"]["symbolic_correct"]
    assert (number["n"], number["unscored"], number["method"]) == (4, 0, "cluster")
    assert number["low"] < number["value"] < number["high"]
    counts = {"correct": 5, "wrong": 4, "no_answer": 3, "unscored": 0}
    assert extended["ledger"] == {**counts, "causes": {"model": 7}, "finish_reasons": {}}
    assert extended["versions"].keys() == {"newskills", "metric", "grader"}
    assert extended["versions"]["grader"] == "math/1"
    assert extended["versions"]["metric"] == f"math@{VERSION}"


def test_the_printed_tables(tmp_path: Path) -> None:
    write(tmp_path / "sums", *by_hand())
    lost = [
        row(4, None, None, outcome="unscored", outcome_cause=cause)
        for cause in ("provider", "provider", "timeout")
    ]
    good = [row(i, i % 2 == 0, outcome="correct" if i % 2 == 0 else "wrong") for i in range(27)]
    write(
        tmp_path / "lossy", [*good, *({**r, "id": f"lost{i}"} for i, r in enumerate(lost))], names=["output.jsonl"]
    )
    twice = [row(i, True, outcome="correct") for i in range(200)]
    write(tmp_path / "slight", twice, [*twice[:-1], lost[0] | {"id": "p199"}])
    write(tmp_path / "gone", [lost[0]], names=["output.jsonl"])
    text = render_tables(summarize(tmp_path, known, OPTIONS).reports)
    assert text == (GOLDEN / "tables.txt").read_text()
    accepted = render_tables(
        summarize(tmp_path, known, SummaryOptions(benchmarks=("lossy",))).reports, accept_lost=0.2
    )
    assert "— (" not in accepted
    assert "51.85%" in accepted


@pytest.mark.parametrize(("accept_lost", "withheld"), [(0.01, True), (0.4, False)])
def test_the_file_has_no_headline_where_the_table_withholds_it(
    tmp_path: Path, accept_lost: float, withheld: bool
) -> None:
    lost = [row(i, None, None, outcome="unscored", outcome_cause="provider") for i in range(3)]
    good = [row(i, True, outcome="correct") for i in range(3, 10)]
    write(tmp_path / "lossy", [*lost, *good], names=["output.jsonl"])
    summarize(tmp_path, known, SummaryOptions(accept_lost=accept_lost))
    for folder in (tmp_path, tmp_path / "lossy"):
        modes = json.loads((folder / "metrics.json").read_text())["lossy"]
        extended = json.loads((folder / "metrics_extended.json").read_text())["lossy"]
        assert modes["pass@1"]["unscored"] == 30.0
        assert modes["pass@1"]["num_entries"] == 10
        assert ("symbolic_correct" not in modes["pass@1"]) is withheld
        assert extended["withheld"] is withheld
        assert extended["numbers"]["pass@1"]["symbolic_correct"]["value"] == 100.0


def test_a_table_without_wishes_shows_all_numbers(tmp_path: Path) -> None:
    report = Report(
        benchmark="b",
        modes={"pass@1": {"n": 3, "text": "x", "f": 1.5, "avg_steps": 1234.5, "avg_cost": 0.0123, "list": [1]}},
    )
    assert render_tables([report]).splitlines() == [
        "",
        "--------------------------- b ---------------------------",
        "evaluation_mode | n | text | f     | avg_steps | avg_cost",
        "pass@1          | 3 | x    | 1.50% | 1,234.50  | 0.0123  ",
        "",
    ]


def test_where_results_are_found(tmp_path: Path) -> None:
    one = [row(0, True)]
    for place in (
        "a",
        "b.x",
        "group/one",
        "group/group.two",
        "eval-logs",
        "tmp-eval-results/a",
        "notes/deep/down",
    ):
        write(tmp_path / place, one, names=["output.jsonl"])
    (tmp_path / ".cache").mkdir()
    assert [(f.benchmark, len(f.files)) for f in list_results(tmp_path)] == [
        ("a", 1), ("b.x", 1), ("group.two", 1), ("group.one", 1), ("notes", 0),
    ]  # fmt: skip
    summary = summarize(tmp_path, known, OPTIONS)
    assert summary.notes == [f"{tmp_path / 'notes'} has no output files; skipped."]
    write(tmp_path / "eval-results" / "c", one)
    write(tmp_path / "eval-results" / "group" / "m", one)
    write(tmp_path / "eval-results" / "ruler" / "4k" / "vt", one)
    assert [f.benchmark for f in list_results(tmp_path)] == ["c", "group.m", "ruler.4k.vt"]
    assert [f.benchmark for f in list_results(tmp_path / "eval-results" / "group" / "m")] == ["group.m"]
    assert [f.benchmark for f in list_results(tmp_path / "eval-results/ruler/4k/vt")] == ["ruler.4k.vt"]
    write(tmp_path, one)
    assert [f.benchmark for f in list_results(tmp_path)] == [tmp_path.name]


def test_seeds_are_sorted_by_number_and_chunks_do_not_count(tmp_path: Path) -> None:
    for seed in (10, 9, 0):
        write(tmp_path, [row(0, True)], names=[f"output-rs{seed}.jsonl"])
    write(tmp_path, [row(0, True)], [row(0, True)], names=["output-rs1_chunk_0.jsonl", "output-rs0.jsonl-async"])
    assert [f.name for f in list_results(tmp_path)[0].files] == [f"output-rs{seed}.jsonl" for seed in (0, 9, 10)]


@pytest.mark.parametrize("other", ["output-rs0.jsonl", "output-greedy.jsonl"])
def test_two_kinds_of_output_are_refused(tmp_path: Path, other: str) -> None:
    write(tmp_path / "a", [row(0, True)], [row(0, True)], names=["output.jsonl", other])
    with pytest.raises(DataError, match=f"a has both output.jsonl and {other}"):
        list_results(tmp_path)


def test_outputs_of_old_runs_are_read(tmp_path: Path) -> None:
    write(tmp_path / "a", [row(0, True)], names=["output-greedy.jsonl"])
    assert summarize(tmp_path, known, OPTIONS).reports[0].modes["pass@1"]["symbolic_correct"] == 100.0


def test_nothing_to_summarise(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no folder"):
        summarize(tmp_path / "no", known, OPTIONS)
    with pytest.raises(DataError, match="has no results"):
        summarize(tmp_path, known, OPTIONS)
    write(tmp_path / "a", [], names=["output.jsonl"])
    with pytest.raises(DataError, match="has no rows; skipped"):
        summarize(tmp_path, known, OPTIONS)
    write(tmp_path / "aime24", [row(0, True)])
    with pytest.raises(UnknownNameError, match="did you mean 'aime24'"):
        summarize(tmp_path, known, SummaryOptions(benchmarks=("aime25",)))


def test_benchmarks_can_be_chosen(tmp_path: Path) -> None:
    for name in ("a-b", "g/one", "g/two", "c"):
        write(tmp_path / name, [row(0, True)])
    reports = summarize(tmp_path, known, SummaryOptions(benchmarks=("A_B", "g"))).reports
    assert [r.benchmark for r in reports] == ["g", "a-b", "g.one", "g.two"]


def test_members_of_a_group_are_averaged(tmp_path: Path) -> None:
    for name, correct, seeds in (("one", True, 2), ("two", False, 3)):
        write(tmp_path / "eval-results" / "g" / name, *[[row(i, correct and i > 0) for i in range(10)]] * seeds)
    group = summarize(tmp_path, known, OPTIONS).reports[0]
    assert (group.benchmark, group.ledger.total) == ("g", 50)
    assert list(group.modes) == ["pass@1", "pass@2", "pass@1[avg-of-2]", "majority@2"]
    mean = group.modes["pass@1"]
    assert (mean["num_benchmarks_in_group"], mean["symbolic_correct"]) == (2, pytest.approx(45))
    assert "num_entries" not in mean
    assert mean["symbolic_correct_interval"][0] < 45 < mean["symbolic_correct_interval"][1]
    assert json.loads((tmp_path / "eval-results" / "g" / "metrics.json").read_text()) == {"g": group.modes}
    assert "num_benchmarks_in_group" in render_tables([group])


def test_subsets_have_tables_of_their_own(tmp_path: Path) -> None:
    rows = [row(i, i == 0, subset_for_metrics=s) for i, s in enumerate(["en", "de", ["en", "long"]])]
    write(tmp_path / "a", rows)
    reports = summarize(tmp_path, known, OPTIONS).reports
    found = {
        r.benchmark: (r.modes["pass@1"]["num_entries"], r.modes["pass@1"]["symbolic_correct"]) for r in reports
    }
    assert found == {"a": (3, pytest.approx(100 / 3)), "a-en": (2, 50.0), "a-de": (1, 0.0), "a-long": (1, 0.0)}
    assert list(json.loads((tmp_path / "a" / "metrics.json").read_text())) == ["a", "a-en", "a-de", "a-long"]


def test_a_partial_look_does_not_replace_the_metrics_of_the_run(tmp_path: Path) -> None:
    write(tmp_path / "a", [row(i, True, num_generated_tokens=i) for i in range(10)])
    summarize(tmp_path, known, OPTIONS)
    elsewhere = tmp_path / "look.json"
    look = summarize(tmp_path, known, SummaryOptions(max_samples=6, max_seq_len=2, save_metrics_path=elsewhere))
    metrics = look.reports[0].modes["pass@1"]
    assert (metrics["num_entries"], metrics["symbolic_correct"], metrics["no_answer"]) == (6, 50.0, 50.0)
    assert look.reports[0].ledger.causes == {"truncation": 3}
    assert json.loads((tmp_path / "a" / "metrics.json").read_text())["a"]["pass@1"]["num_entries"] == 10
    assert json.loads((tmp_path / "metrics.json").read_text())["a"]["pass@1"]["num_entries"] == 10
    assert json.loads(elsewhere.read_text())["a"]["pass@1"] == metrics
    assert (tmp_path / "look_extended.json").is_file()
    assert look.notes == []
    (note,) = summarize(tmp_path, known, SummaryOptions(max_samples=6)).notes
    assert note.startswith("metrics.json has the figures of this part now ")
    assert json.loads((tmp_path / "metrics.json").read_text())["a"]["pass@1"]["num_entries"] == 6


def test_unscored_samples_are_incorrect_on_request_and_metrics_say_so(tmp_path: Path) -> None:
    lost = {"outcome": "unscored", "outcome_cause": "provider", "error": "ServerError"}
    correct = {"outcome": "correct"}
    rows = [row(0, True, **correct), row(1, True, **correct), row(2, None, **lost), row(3, None, **lost)]
    write(tmp_path / "a", rows)
    usual = summarize(tmp_path, known, SummaryOptions(accept_lost=1.0)).reports[0]
    assert usual.modes["pass@1"]["symbolic_correct"] == 100.0
    summary = summarize(tmp_path, known, SummaryOptions(errors_are_incorrect=True))
    report = summary.reports[0]
    assert report.modes["pass@1"]["symbolic_correct"] == 50.0
    assert (report.ledger.lost, report.ledger.causes) == (0, {"provider": 2})
    assert "a: 2 unscored samples counted as incorrect." in summary.notes
    assert json.loads((tmp_path / "metrics.json").read_text())["a"]["pass@1"]["errors_as"] == "incorrect"


def test_records_that_no_grader_saw_are_incorrect_on_request(tmp_path: Path) -> None:
    """Lost records have no field for a verdict at all, be they the first, some or all."""
    lost = {"generation": "", "outcome": "unscored", "outcome_cause": "provider", "error": "ServerError"}
    for correct, score in ((1, 25.0), (0, 0.0)):
        rows = [{"id": str(n), "expected_answer": "4", **lost} for n in range(4 - correct)]
        write(tmp_path / "a", [*rows, *(row(9, True, outcome="correct") for _ in range(correct))])
        report = summarize(tmp_path, known, SummaryOptions(errors_are_incorrect=True)).reports[0]
        assert report.modes["pass@1"]["symbolic_correct"] == score
        assert report.ledger.lost == 0


def test_the_metric_of_an_unknown_benchmark_is_read_off_its_records(tmp_path: Path) -> None:
    write(tmp_path / "unheard-of", [row(0, True)])
    write(tmp_path / "unheard-of.too", [{"id": "x", "is_correct": True}])
    summary = summarize(tmp_path, known, OPTIONS)
    assert [r.modes["pass@1"].keys() & {"symbolic_correct", "accuracy"} for r in summary.reports] == [
        {"symbolic_correct"},
        {"accuracy"},
    ]
    assert "unheard-of is not a known benchmark; its records match the metric 'math'" in summary.notes[0]
    write(tmp_path / "tmp", [{"id": "x", "generation": "y"}])
    summary = summarize(tmp_path, known, OPTIONS)
    assert len(summary.reports) == 2
    assert list(summary.failed) == ["tmp"]
    assert "no field that says which answers are correct" in summary.failed["tmp"]


def test_another_metric_can_be_named(tmp_path: Path) -> None:
    write(tmp_path / "unheard-of", [row(0, True, None)])
    options = SummaryOptions(metric_type="generic", metrics_kwargs={"compute_no_answer": False})
    summary = summarize(tmp_path, known, options)
    assert summary.reports[0].modes["pass@1"].keys() == {"num_entries", "accuracy", "accuracy_interval"}
    assert summary.notes == []
    with pytest.raises(ConfigError, match="no option 'compute_no_answers'"):
        summarize(tmp_path, known, SummaryOptions(metric_type="math", metrics_kwargs={"compute_no_answers": True}))


def test_a_folder_that_cannot_be_written_is_only_noted(tmp_path: Path) -> None:
    write(tmp_path / "a", [row(0, True)])
    (tmp_path / "a" / "metrics.json" / "in the way").mkdir(parents=True)
    assert "cannot write" in summarize(tmp_path, known, OPTIONS).notes[0]
    with pytest.raises(StorageError):
        summarize(tmp_path, known, SummaryOptions(save_metrics_path=tmp_path / "a" / "metrics.json"))


def test_mixed_graders_are_told(tmp_path: Path) -> None:
    write(tmp_path, [row(0, True, grader="math/1"), row(1, True, grader="math/2")])
    reports, notes = summarize_files("a", [tmp_path / "output-rs0.jsonl"], known, OPTIONS)
    assert notes == ["a was graded by different versions: math/1, math/2."]
    assert reports[0].versions["grader"] == "math/1, math/2"


def test_the_worst_benchmark_decides_what_was_lost() -> None:
    fine = Report(benchmark="a", modes={}, ledger=Ledger(correct=1000))
    bad = Report(benchmark="b", modes={}, ledger=Ledger(correct=8, unscored=2, causes={"provider": 2}))
    assert lost_share([fine, bad, Report(benchmark="c", modes={})]) == 0.2
    assert lost_share([]) == 0.0


def test_a_folder_of_runs_is_told_by_their_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path / "team" / name / "eval-results" / "gsm8k", [row(0, True)], names=["output.jsonl"])
    with pytest.raises(DataError, match=r"has no results: Name a run in it: \S+/team/a, \S+/team/b\.$"):
        summarize(tmp_path, known, OPTIONS)
