# SPDX-License-Identifier: Apache-2.0
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.view.comparison.runs import answers, record, write_run

from newskills.base.errors import ConfigError, DataError
from newskills.base.paired import mcnemar
from newskills.base.records import Row
from newskills.exchange.importers import ImportSource, read, write_import
from newskills.view.comparison import CompareOptions, compare_run_folders, shown
from newskills.view.comparison.paired_runs import BenchmarkComparison, Comparison

BEFORE = "+" * 30 + "-" * 30
AFTER = "-" * 2 + "+" * 28 + "+" * 12 + "-" * 18


def only(comparison: Comparison) -> BenchmarkComparison:
    (item,) = comparison.benchmarks
    return item


def test_the_figures_of_two_runs(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "base", {None: answers(BEFORE)}),
        write_run(tmp_path / "tuned", {None: answers(AFTER)}),
    ]
    item = only(compare_run_folders(runs))
    assert (item.before.run, item.after.run, item.score) == ("base", "tuned", "symbolic_correct")
    assert (item.problems, item.pairs, item.unscored, item.gained, item.lost) == (60, 60, 0, 12, 2)
    assert item.difference == pytest.approx(100 * 10 / 60)
    assert item.p_value == item.p_adjusted == mcnemar(2, 12)
    assert item.low < item.difference < item.high
    assert (item.verdict, item.not_worse, item.method) == ("better", True, "mcnemar")
    assert item.sentence == (
        f"tuned is better by 16.7 points [{item.low:.1f}, {item.high:.1f}], p = 0.013, on 60 paired problems; "
        f"0 unscored; minimum significant difference: {item.smallest_significant:.1f} points."
    )
    assert [(flip.id, flip.gained) for flip in item.flips[:3]] == [("q0", False), ("q1", False), ("q30", True)]


def test_a_loss_says_how_many_points_are_lost(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", {None: answers(AFTER)}),
        write_run(tmp_path / "b", {None: answers(BEFORE)}),
    ]
    item = only(compare_run_folders(runs))
    assert item.verdict == "worse"
    assert item.sentence.startswith(f"b is worse by 16.7 points [{-item.high:.1f}, {-item.low:.1f}], p = 0.013")


def test_what_is_undecided_is_called_so(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, {None: answers(BEFORE)}) for name in ("a", "b")]
    item = only(compare_run_folders(runs))
    assert item.verdict == "undecided"
    assert item.sentence.startswith("No significant difference between a and b: +0.0 points [")
    assert item.smallest_significant == pytest.approx(10)


def test_unscored_samples_are_left_out_and_counted(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", {None: answers("++--?+")}),
        write_run(tmp_path / "b", {None: answers("++++++"[:5] + "?")}),
    ]
    item = only(compare_run_folders(runs))
    assert (item.problems, item.unscored, item.gained, item.lost) == (4, 2, 2, 0)
    assert item.before.value == 50
    assert "2 unscored" in item.sentence


def test_seeds_are_clustered_by_problem(tmp_path: Path) -> None:
    draw = random.Random(1)
    chances = [draw.random() for _ in range(40)]

    def seeds(gain: float) -> dict[int | None, list[dict[str, Any]]]:
        return {s: [record(i, draw.random() < p + gain) for i, p in enumerate(chances)] for s in range(4)}

    item = only(compare_run_folders([write_run(tmp_path / "a", seeds(0)), write_run(tmp_path / "b", seeds(0.2))]))
    assert (item.method, item.problems, item.pairs) == ("paired t", 40, 160)
    assert item.gained + item.lost == len(item.flips) <= 40


def test_with_several_seeds_a_problem_changes_with_the_share_of_its_right_samples(tmp_path: Path) -> None:
    """q0: 1/2 → 2/2; q1: 1/2 → 1/2 by other samples; q2: 2/2 → 0/2; q3: 0/2 → 1/2."""
    a = write_run(tmp_path / "a", {4: answers("+-+-"), 7: answers("-++-")})
    b = write_run(tmp_path / "b", {4: answers("++--"), 7: answers("+--+")})
    item = only(compare_run_folders([a, b]))
    assert (item.change, item.gained, item.lost) == ("share", 2, 1)
    assert [(flip.id, flip.change, flip.seed) for flip in item.flips] == [
        ("q0", "1/2 → 2/2", 7),
        ("q2", "2/2 → 0/2", 4),
        ("q3", "0/2 → 1/2", 4),
    ]
    assert sum(item.stories.values()) == 3
    text = shown.as_text(compare_run_folders([a, b]), 5)
    assert "2 right more often, 1 right less often" in text
    assert "wrong → right" not in text
    assert "1/2 → 2/2" in text


def test_scores_between_right_and_wrong_become_higher_or_lower(tmp_path: Path) -> None:
    rows = {
        name: [record(n, False, f1=value) for n, value in enumerate(values)]
        for name, values in (("a", (0.25, 0.5, 1.0)), ("b", (0.5, 0.5, 0.75)))
    }
    runs = [
        write_run(tmp_path / name, {None: own}, benchmark="graphwalks", facts={"metric": "graphwalks"})
        for name, own in rows.items()
    ]
    item = only(compare_run_folders(runs))
    assert (item.score, item.change, item.gained, item.lost) == ("f1", "score", 1, 1)
    assert [flip.change for flip in item.flips] == ["0.25 → 0.5", "1 → 0.75"]


def test_different_numbers_of_seeds_use_all_samples(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {0: answers("+-+-"), 1: answers("+-+-")})
    b = write_run(tmp_path / "b", {None: answers("++--")})
    item = only(compare_run_folders([a, b]))
    assert (item.problems, item.pairs, item.difference) == (4, 4, 0)


def test_holm_over_benchmarks_decides(tmp_path: Path) -> None:
    for name, verdicts in (("a", BEFORE), ("b", AFTER)):
        for benchmark in ("gsm8k", "math-500", "aime24", "aime25"):
            write_run(tmp_path / name, {None: answers(verdicts)}, benchmark=benchmark)
    items = compare_run_folders([tmp_path / "a", tmp_path / "b"]).benchmarks
    assert len(items) == 4
    assert all(item.p_adjusted == pytest.approx(4 * item.p_value) for item in items)
    assert {item.verdict for item in items} == {"undecided"}
    assert "adjusted for 4 comparisons" in items[0].sentence


def test_several_runs_are_compared_with_the_first(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, {None: answers(BEFORE)}) for name in ("a", "b", "c")]
    pairs = [(item.before.run, item.after.run) for item in compare_run_folders(runs).benchmarks]
    assert pairs == [("a", "b"), ("a", "c")]


def test_flips_have_stories(tmp_path: Path) -> None:
    cut = record(0, False, outcome_cause="truncation", finish_reason="length")
    mute = record(1, False, outcome="no_answer", predicted_answer=None)
    tool = record(2, False, num_code_timeouts=2)
    other = record(3, False)
    missed = record(4, False, generation="It is 5, I think, or 7.", predicted_answer="7")
    runs = [
        write_run(tmp_path / "a", {None: [cut, mute, tool, other, missed]}),
        write_run(tmp_path / "b", {None: answers("+++++")}),
    ]
    item = only(compare_run_folders(runs))
    assert [flip.story for flip in item.flips] == ["truncation", "no_answer", "tool", "content", "format"]
    assert item.stories["gained: truncated"] == 1
    assert (item.before.truncated, item.before.no_answer) == (20, 20)


@pytest.mark.parametrize(
    ("kind", "facts", "more"),
    [
        ("prompt", {"prompt_hash": "bbbb"}, {}),
        ("data", {"data": {"sha256": "e" * 64}}, {}),
        ("grader", {"grader": "math@8 {}"}, {"grader": "math@8"}),
        ("grader", {"grader": 'math@7 {"relaxed_extraction":true}'}, {}),
        ("data", {}, {"expected_answer": "other"}),
    ],
)
def test_what_must_agree_and_does_not_is_named_and_refused(
    tmp_path: Path, kind: str, facts: dict[str, Any], more: dict[str, str]
) -> None:
    runs = [
        write_run(tmp_path / "a", {None: answers(BEFORE)}),
        write_run(tmp_path / "b", {None: answers(AFTER, **more)}, facts=facts),
    ]
    with pytest.raises(DataError, match=f"differ in {kind}") as refusal:
        compare_run_folders(runs)
    assert f"--allow {kind}" in str(refusal.value)
    item = only(compare_run_folders(runs, CompareOptions(allow=(kind,))))
    assert [difference.kind for difference in item.differs if difference.kind in ("data", "prompt", "grader")]


def test_different_rows_are_compared_where_both_have_them(tmp_path: Path) -> None:
    rows = answers(BEFORE)
    runs = [write_run(tmp_path / "a", {None: rows[:50]}), write_run(tmp_path / "b", {None: rows[10:]})]
    item = only(compare_run_folders(runs))
    assert item.problems == 40
    assert item.only_before == tuple(f"q{i}" for i in range(10))
    assert item.only_after == tuple(f"q{i}" for i in range(50, 60))


def test_no_row_in_common(tmp_path: Path) -> None:
    rows = answers(BEFORE)
    runs = [write_run(tmp_path / "a", {None: rows[:5]}), write_run(tmp_path / "b", {None: rows[5:]})]
    with pytest.raises(DataError, match="fewer than two problems in common"):
        compare_run_folders(runs)


def test_different_benchmarks(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {None: answers(BEFORE)})
    b = write_run(tmp_path / "b", {None: answers(BEFORE)}, benchmark="math-500")
    with pytest.raises(DataError, match=r"nothing to compare.*gsm8k: b has no results of it.*math-500: a has no"):
        compare_run_folders([a, b])
    write_run(b, {None: answers(AFTER)})
    comparison = compare_run_folders([a, b])
    assert only(comparison).benchmark == "gsm8k"
    assert comparison.left_out == {"math-500": "a has no results of it."}


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    run = write_run(tmp_path / "a", {None: answers(BEFORE)})
    with pytest.raises(DataError, match="empty has no results"):
        compare_run_folders([run, tmp_path / "empty"])
    with pytest.raises(DataError, match="There is no folder"):
        compare_run_folders([run, tmp_path / "absent"])
    with pytest.raises(ConfigError, match="two folders"):
        compare_run_folders([run])


def test_a_run_that_is_half_written_or_being_written(tmp_path: Path) -> None:
    """Its finished benchmarks are compared; the rest is named with the rows that are there."""
    runs = [write_run(tmp_path / name, {None: answers(BEFORE)}) for name in ("a", "b")]
    write_run(runs[0], {None: answers(BEFORE)}, benchmark="math-500")
    place = runs[1] / "eval-results/math-500"
    place.mkdir()
    lines = [json.dumps(row) for row in answers("+++")]
    (place / "output.jsonl-async").write_text("\n".join(lines) + '\n{"id": "q3", "gene')
    comparison = compare_run_folders(runs)
    assert only(comparison).benchmark == "gsm8k"
    assert "math-500 is not finished: 3 rows so far" in comparison.left_out["math-500"]


def test_a_corrupted_line_is_counted_and_never_fatal(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, {None: answers(BEFORE)}) for name in ("a", "b")]
    path = runs[1] / "eval-results/gsm8k/output.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[7] = "{broken\n"
    lines[9] = "[1, 2]\n"
    lines[-1] = lines[-1][:20]
    path.write_text("".join(lines))
    comparison = compare_run_folders(runs)
    item = only(comparison)
    assert (item.problems, item.only_before) == (57, ("q7", "q9", "q59"))
    assert comparison.notes == ("b: gsm8k: 3 lines cannot be read and are left out.",)


def test_lines_without_an_id_keep_their_places_behind_a_corrupted_one(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "id"} for row in answers("+-+-+-")]
    runs = [write_run(tmp_path / name, {None: rows}) for name in ("a", "b")]
    path = runs[1] / "eval-results/gsm8k/output.jsonl"
    path.write_text(path.read_text().replace(json.dumps(rows[1]), "{}{"))
    item = only(compare_run_folders(runs))
    assert (item.problems, item.gained, item.lost, item.only_before) == (5, 0, 0, ("line 2",))


def test_a_file_that_has_lost_rows_since(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, {None: answers(BEFORE)}) for name in ("a", "b")]
    path = runs[1] / "eval-results/gsm8k/output.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:50]))
    comparison = compare_run_folders(runs)
    assert only(comparison).problems == 50
    assert comparison.notes == ("b: gsm8k: 10 rows of finished files are missing.",)


def test_a_folder_from_a_newer_version(tmp_path: Path) -> None:
    newer = {"newskills": "99.1.0", "unheard_of": {"x": 1}}
    rows = answers(AFTER, outcome="half_right", more={"new": [1]})
    runs = [
        write_run(tmp_path / "a", {None: answers(BEFORE)}),
        write_run(tmp_path / "b", {None: rows}, facts=newer),
    ]
    comparison = compare_run_folders(runs)
    assert only(comparison).gained == 12
    assert comparison.notes[0].startswith("b: gsm8k was written by newskills 99.1.0, which is newer")


def lm_eval_samples(folder: Path, verdicts: str) -> Path:
    folder.mkdir(parents=True)
    rows: list[Row] = [
        {
            "doc_id": i,
            "doc": {"question": f"{i}?"},
            "target": str(i),
            "arguments": [[f"{i}?"]],
            "resps": [[str(i)]],
            "filtered_resps": [str(i)],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": float(sign == "+"),
        }
        for i, sign in enumerate(verdicts)
    ]
    path = folder / "samples_gsm8k_2026-01-02T03-04-05.678.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_results_of_another_tool_compare_with_the_same_figures(tmp_path: Path) -> None:
    own, imported = [], []
    for name, verdicts in (("a", BEFORE), ("b", AFTER)):
        own.append(write_run(tmp_path / "own" / name, {None: answers(verdicts)}))
        for item in read(ImportSource(path=lm_eval_samples(tmp_path / "lm-eval" / name, verdicts))):
            write_import(item, tmp_path / "imported" / name)
        imported.append(tmp_path / "imported" / name)
    ours, theirs = only(compare_run_folders(own)), only(compare_run_folders(imported))
    figures = ("difference", "low", "high", "p_value", "problems", "gained", "lost", "verdict")
    assert [getattr(ours, name) for name in figures] == [getattr(theirs, name) for name in figures]
    with pytest.raises(DataError, match="fewer than two problems in common"):
        compare_run_folders([own[0], imported[1]])
