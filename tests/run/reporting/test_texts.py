# SPDX-License-Identifier: Apache-2.0
"""Records of NeMo-Skills whose verdicts stand in texts only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from newskills.base.records import Row
from newskills.base.store import write_rows
from newskills.exchange.importers import ImportSource, read, write_import
from newskills.pipelines.results.summarize_results import metric_for
from newskills.run.reporting.summarize import SummaryOptions, summarize

YES, NO = "Judgement: Yes", "Judgement: No\n\nOne root is missing."


def judged(said: str, expected: str) -> Row:
    return {"judgement": said, "expected_judgement": expected, "num_generated_tokens": 7}


RUNS = (
    [judged(YES, YES), judged(NO, YES), judged(YES, NO), judged("No idea", YES)],
    [judged(NO, YES), judged(NO, YES), judged(NO, NO), judged(YES, YES)],
)
GAMES = [
    {"judgement-gen-base": "Mine is better: [[A>B]]", "judgement-base-gen": "[[B>>A]]", "num_generated_tokens": 3},
    {"judgement-gen-base": "[[B>A]]", "judgement-base-gen": "[[A=B]]", "num_generated_tokens": 3},
    {"judgement-gen-base": "neither", "judgement-base-gen": "[[A>>B]]", "num_generated_tokens": 3},
]


def summarized(folder: Path, **options: Any) -> dict[str, dict[str, Row]]:
    summary = summarize(folder, metric_for, SummaryOptions(**options))
    assert {report.benchmark: report.ledger.lost for report in summary.reports} == dict.fromkeys(
        (report.benchmark for report in summary.reports), 0
    )
    return {report.benchmark: report.modes for report in summary.reports}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    for seed, rows in enumerate(RUNS):
        write_rows(tmp_path / "theirs" / "eval-results" / "answer-judge" / f"output-rs{seed}.jsonl", rows)
    write_rows(tmp_path / "theirs" / "eval-results" / "arena-hard" / "output.jsonl", GAMES)
    return tmp_path / "theirs"


def check(found: dict[str, dict[str, Row]]) -> None:
    judge = found["answer-judge"]
    average = judge["pass@1[avg-of-2]"]
    assert (average["num_entries"], average["avg_tokens"]) == (4, 7)
    assert average["correct_judgements"] == pytest.approx(100 * 3 / 8)
    assert average["false_positives"] == pytest.approx(100 / 8)
    assert average["false_negatives"] == pytest.approx(100 * 3 / 8)
    assert average["invalid_judgements"] == pytest.approx(100 / 8)
    assert average["precision"] == pytest.approx(100 * (1 / 2 + 1) / 2)
    assert average["recall"] == pytest.approx(100 / 3), "of three answers that are right, one in each run"
    assert average["f1"] == pytest.approx(100 * (2 / 5 + 1 / 2) / 2)
    best = judge["pass@2"]
    assert [best[name] for name in ("correct_judgements", "false_positives", "false_negatives")] == [75, 0, 25]
    vote = judge["majority@2"]
    assert vote["correct_judgements"] == pytest.approx(100 * (0.5 + 0 + 0.5 + 1) / 4)
    assert [vote[name] for name in ("false_positives", "false_negatives", "invalid_judgements")] == [0, 50, 0]
    arena = found["arena-hard"]["pass@1"]
    assert arena["score"] == pytest.approx(100 * (1 + 3 + 0 + 0.5 + 0) / (1 + 3 + 1 + 1 + 3))
    assert arena["invalid_scores"] == 1


def test_texts_are_graded_as_they_are_read(theirs: Path) -> None:
    check(summarized(theirs))


def test_nothing_is_lost_on_import(theirs: Path, tmp_path: Path) -> None:
    for item in read(ImportSource(path=theirs)):
        write_import(item, tmp_path / "ours")
    check(summarized(tmp_path / "ours"))


def test_unknown_names_are_told_by_their_fields(theirs: Path) -> None:
    results = theirs / "eval-results"
    (results / "answer-judge").rename(results / "my-judge")
    (results / "arena-hard").rename(results / "my-arena")
    found = summarized(theirs)
    check({"answer-judge": found["my-judge"], "arena-hard": found["my-arena"]})


def test_failed_generations_stay_lost(tmp_path: Path) -> None:
    failed = {**judged("", YES), "error": "timed out", "generation": "", "num_generated_tokens": 0}
    write_rows(tmp_path / "answer-judge" / "output.jsonl", [*RUNS[0], failed])
    (report,) = summarize(tmp_path, metric_for, SummaryOptions()).reports
    assert (report.ledger.unscored, report.ledger.total) == (1, 5)


def test_a_grade_is_never_read_anew(tmp_path: Path) -> None:
    graded = {**judged(YES, YES), "judgement_kind": "false_negative", "outcome": "wrong", "grader": "other@1"}
    write_rows(tmp_path / "answer-judge" / "output.jsonl", [graded])
    assert summarized(tmp_path)["answer-judge"]["pass@1"]["correct_judgements"] == 0


@pytest.mark.parametrize(
    ("benchmark", "row", "scores"),
    [
        ("imo-gradingbench", {"generation": "The proof is **almost**", "expected_answer": "Correct"}, (0, 100)),
        (
            "hotpotqa_closedbook",
            {"generation": '{"answer": "the Nile"}', "expected_answer": "Nile"},
            (100, 100),
        ),
        (
            "mmau-pro.open_ended",
            {
                "judgement": "CORRECTNESS: 5 - x\nRELEVANCE: 5\nCOMPLETENESS: 4\nCLARITY: 5\nOVERALL: 5",
                "generation": "a dog",
            },
            (100, 100),
        ),
    ],
)
def test_siblings(tmp_path: Path, benchmark: str, row: Row, scores: tuple[float, float]) -> None:
    names = {
        "imo-gradingbench": ("exact_accuracy", "binarized_accuracy"),
        "hotpotqa_closedbook": ("answer_em", "is_correct"),
        "mmau-pro.open_ended": ("success_rate", "avg_overall"),
    }[benchmark]
    write_rows(tmp_path.joinpath("eval-results", *benchmark.split("."), "output.jsonl"), [row])
    found = summarized(tmp_path)[benchmark]["pass@1"]
    assert tuple(found[name] for name in names) == pytest.approx(scores)
