# SPDX-License-Identifier: Apache-2.0
"""Judges beside labels of people: planted errors and biases come out again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, write
from tests.view.results import benchmark

import newskills
from newskills.base.errors import DataError

TRUE_SHARE, TRUE_YES, TRUE_NO = 0.6, 0.9, 0.75
"""What people would say of all answers, and how often the judge agrees with a yes and with a no."""


def judged(count: int, seed: int, **more: Any) -> tuple[list[dict[str, Any]], list[bool]]:
    """Records with the verdicts of a judge that errs, and what people say."""
    draw = random.Random(seed)
    rows, truths = [], []
    for number in range(count):
        is_correct = draw.random() < TRUE_SHARE
        is_long = draw.random() < 0.5
        accepted = draw.random() < (TRUE_YES if is_correct else 1 - TRUE_NO)
        if draw.random() < more.get("long_bias", 0.0) and is_long and not is_correct:
            accepted = True
        text = "word " * (40 if is_long else 10)
        fields = {
            "judge_correct": accepted,
            "judge_model": "judge",
            "judgement": "Judgement: Yes",
            "generation": text,
        }
        rows.append({"id": f"q{number}", "outcome": "correct" if accepted else "wrong", **fields})
        truths.append(is_correct)
    return rows, truths


def labels(path: Path, truths: list[bool], count: int) -> Path:
    return write(path, [{"id": f"q{n}", "label": truth} for n, truth in enumerate(truths[:count])])


def test_the_corrected_score_is_that_of_people(tmp_path: Path) -> None:
    rows, truths = judged(4000, 1)
    benchmark(tmp_path / "run", "sums", [rows])
    file = labels(tmp_path / "labels.jsonl", truths, 800)
    (agreement,) = newskills.judge_agreement(results_dirs=str(tmp_path / "run"), labels=str(file))
    assert agreement.labelled == 800
    assert agreement.raw.value == pytest.approx(100 * (0.6 * TRUE_YES + 0.4 * (1 - TRUE_NO)), abs=2)
    true_score = 100 * sum(truths) / len(truths)
    for corrected in (agreement.rogan_gladen, agreement.ppi):
        assert corrected.low < true_score < corrected.high
        assert corrected.high - corrected.low < 10
    assert not agreement.raw.low < true_score < agreement.raw.high
    assert agreement.sensitivity.value == pytest.approx(100 * TRUE_YES, abs=3)
    assert agreement.specificity.value == pytest.approx(100 * TRUE_NO, abs=4)
    assert agreement.kappa.low < 0.66 < agreement.kappa.high
    assert agreement.length_bias.low < 0 < agreement.length_bias.high


@pytest.mark.nightly
def test_intervals_hold_what_they_promise(tmp_path: Path) -> None:
    """In 95 % of repetitions the share that people would give lies within the interval of each correction."""
    inside = {"rogan_gladen": 0, "ppi": 0}
    for seed in range(60):
        rows, truths = judged(600, seed)
        benchmark(tmp_path / str(seed), "sums", [rows])
        file = labels(tmp_path / "labels.jsonl", truths, 150)
        (agreement,) = newskills.judge_agreement(results_dirs=str(tmp_path / str(seed)), labels=str(file))
        for name in inside:
            corrected = getattr(agreement, name)
            inside[name] += corrected.low <= 100 * TRUE_SHARE <= corrected.high
    assert all(count >= 51 for count in inside.values()), inside  # below 52 of 60 in 1 of 100 such tests


def test_a_bias_for_long_replies_is_seen(tmp_path: Path) -> None:
    rows, truths = judged(600, 2, long_bias=0.8)
    benchmark(tmp_path / "run", "sums", [rows])
    file = labels(tmp_path / "labels.jsonl", truths, 600)
    (agreement,) = newskills.judge_agreement(results_dirs=str(tmp_path / "run"), labels=str(file))
    assert agreement.length_bias.low > 10
    assert agreement.own_bias is None


def test_a_bias_for_own_answers_is_seen(tmp_path: Path) -> None:
    others, truths = judged(600, 2)
    own = [{**row, "judge_correct": True} for row in others]
    benchmark(tmp_path / "other", "sums", [others])
    benchmark(tmp_path / "judge", "sums", [own])  # the folder's name is the model under test
    file = labels(tmp_path / "labels.jsonl", truths, 600)
    folders = [str(tmp_path / "judge"), str(tmp_path / "other")]
    (agreement,) = newskills.judge_agreement(results_dirs=folders, labels=str(file))
    assert agreement.own_bias.low > 20


def test_each_judge_of_a_panel_is_compared(tmp_path: Path) -> None:
    rows, truths = judged(60, 3)
    for row, truth in zip(rows, truths, strict=True):
        said = {"good": truth, "contrary": not truth, "silent": None, "panel": not truth}
        words = {True: "Yes", False: "No", None: None}
        row["judge_panel"] = {name: {"judgement": {"verdict": words[value]}} for name, value in said.items()}
    benchmark(tmp_path / "run", "sums", [rows])
    file = labels(tmp_path / "labels.jsonl", truths, 60)
    done = ns(f"ns judge_agreement run --labels {file} --json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {one["judge"]: one for one in json.loads(done.stdout)}
    assert set(found) == {"panel", "good", "contrary", "the judge panel"}
    assert found["panel"]["kappa"]["value"] != found["the judge panel"]["kappa"]["value"]
    assert found["good"]["kappa"]["value"] == 1
    assert found["contrary"]["kappa"]["value"] < 0
    assert found["contrary"]["rogan_gladen"] is None
    assert "no labelled sample has a verdict of silent" in done.stderr
    table = ns(f"ns judge_agreement run --labels {file}", cwd=tmp_path)
    assert "sums, judged by good: 60 labelled samples" in table.stdout


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([{"id": "q1", "label": "perhaps"}], "The label of q1 is 'perhaps'"),
        ([{"id": "elsewhere", "label": "yes"}], "No label belongs to a sample"),
        ([{"label": "yes"}], "line 1: "),
    ],
)
def test_labels_that_say_nothing(tmp_path: Path, lines: list[Any], expected: str) -> None:
    rows, _ = judged(5, 1)
    benchmark(tmp_path / "run", "sums", [rows])
    file = write(tmp_path / "labels.jsonl", lines)
    with pytest.raises(DataError, match=expected):
        newskills.judge_agreement(results_dirs=str(tmp_path / "run"), labels=str(file))


def test_intervals_are_of_shares_and_never_empty(tmp_path: Path) -> None:
    """Of few labels, all alike: what they cannot rule out stays within 0 and 100."""
    rows, _ = judged(40, 4)
    for row in rows:
        row["judge_correct"] = True
    benchmark(tmp_path / "run", "sums", [rows])
    for count, of in ((1, 40), (3, 40), (3, 3)):
        benchmark(tmp_path / "run", "sums", [rows[:of]])
        file = labels(tmp_path / "labels.jsonl", [True] * count, count)
        (agreement,) = newskills.judge_agreement(results_dirs=str(tmp_path / "run"), labels=str(file))
        assert 0 <= agreement.ppi.low < 100 * (1 - 0.3 / count)
        assert agreement.ppi.value == agreement.ppi.high == 100


def test_labels_that_stand_for_several_replies(tmp_path: Path) -> None:
    first, _ = judged(4, 1)
    second = [{**row, "generation": f"{row['generation']} at last"} for row in first]
    benchmark(tmp_path / "a", "sums", [first])
    benchmark(tmp_path / "b", "sums", [second])
    plain = [{"id": "q0", "label": "yes"}]
    write(tmp_path / "labels.jsonl", plain)
    done = ns("ns judge_agreement a b --labels labels.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 label for different replies" in done.stderr
    write(
        tmp_path / "labels.jsonl",
        [{"id": "q0", "label": label, "model": name} for name, label in (("a", 1), ("b", 0))],
    )
    done = ns("ns judge_agreement a b --labels labels.jsonl --json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "different replies" not in done.stderr
    (agreement,) = json.loads(done.stdout)
    assert agreement["labelled"] == 2
    assert agreement["accuracy"]["value"] == 50
    write(tmp_path / "labels.jsonl", [*plain, {"id": "q0", "label": "no"}])
    done = ns("ns judge_agreement a --labels labels.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "q0 is labelled yes and no" in done.stderr
