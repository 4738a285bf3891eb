# SPDX-License-Identifier: Apache-2.0
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, write
from tests.view.comparison.runs import answers, record, write_run

import newskills
from newskills.base.errors import DataError


@pytest.fixture
def results(tmp_path: Path) -> Path:
    draw = random.Random(3)
    for name, chance in (("base", 0.4), ("tuned", 0.7)):
        rows = {
            s: [record(i, draw.random() < chance, num_generated_tokens=draw.randrange(90)) for i in range(40)]
            for s in (0, 1)
        }
        write_run(tmp_path / "eval" / name, rows, facts={"prompt_text": "[user]\nAdd: {problem}"})
        (tmp_path / "eval" / name / "run.json").write_text(
            json.dumps({"units": [], "output_dir": "x", "resume_with": f"ns eval --model {name}"})
        )
        ns(f"ns summarize_results eval/{name}", cwd=tmp_path)
    steps = [{"step": i, "loss": 1 / (i + 1), "reward": i / 20, "learning_rate": 1e-3} for i in range(20)]
    write(tmp_path / "training/grpo/metrics.jsonl", steps)
    return tmp_path


def test_everything_that_a_reader_needs_is_in_it(results: Path) -> None:
    made = ns("ns report . --title 'Adding numbers' --output report.html", cwd=results)
    assert made.returncode == 0, made.stderr
    assert made.stdout.split() == ["report.html", "report.md"]
    text, page = ((results / name).read_text() for name in ("report.md", "report.html"))
    for part in (
        "# Adding numbers",
        "| run | benchmark | score | 95 % interval |",
        "## Comparison",
        "### Grader sensitivity",
        "| base | gsm8k |",
        "gsm8k, at the largest k: ",
        "tuned is better by",
        "## Training: training/grpo",
        "loss: at the last step loss 0.05.",
        "[user]\nAdd: {problem}",
        "ns eval --model tuned",
        "| inference.temperature | 0.0 |",
        "math@7",
        "generic/math aaaa",
        "dddddddddddddddd",
        "MIT",
    ):
        assert part.replace("'", "'") in text, part
    assert page.count("<svg") >= 6
    assert (
        text.index("## Comparison")
        < text.index("## Scores")
        < text.index("## Training")
        < text.index("## Settings")
    )
    for outside in ("http://", "https://", "<script", "<link", "src="):
        assert outside not in page


def test_the_score_without_contaminated_problems(results: Path) -> None:
    rows: list[Any] = [
        {"problem": f"What is {i} + 1?", "contaminated": None if i == 39 else i >= 30, "similar_items": []}
        for i in range(40)
    ]
    write(results / "contamination.jsonl", rows)
    ns("ns report eval/base --contamination_file contamination.jsonl --no_spread --output clean", cwd=results)
    text = (results / "clean.md").read_text()
    assert "Without contaminated problems" in text
    assert "| 30 | 10 |" in text
    assert "Grader sensitivity" not in text
    write(results / "other.jsonl", [{"problem": "something else", "contaminated": True}])
    ns("ns report eval/base --contamination_file other.jsonl --no_spread --output other", cwd=results)
    assert "is about none of these problems" in (results / "other.md").read_text()
    write(results / "broken.jsonl", [{"question": "no verdict"}])
    broken = ns("ns report eval/base --contamination_file broken.jsonl", cwd=results)
    assert (broken.returncode, "without `problem` or `contaminated`" in broken.stderr) == (2, True)


@pytest.mark.nightly
def test_several_folders_are_compared_whatever_differs_in_them(results: Path) -> None:
    write_run(results / "other", {0: answers("+-+-")}, facts={"prompt_hash": "bbbb"})
    files = newskills.report(
        results_dirs=[str(results / "eval/base"), str(results / "other")], output=str(results / "both")
    )
    text = files[1].read_text()
    assert "prompt differs: generic/math aaaa → generic/math bbbb" in text
    assert "36 problems only in base, left out" in text


def test_bad_folders(results: Path) -> None:
    (results / "empty").mkdir()
    with pytest.raises(DataError, match="There are no results in"):
        newskills.report(results_dirs=[str(results / "empty")])
    with pytest.raises(DataError, match="There is no folder"):
        newskills.report(results_dirs=[str(results / "absent")])
    place = results / "begun/eval-results/gsm8k"
    place.mkdir(parents=True)
    (place / "output.jsonl-async").write_text('{"id": 1}\n')
    with pytest.raises(DataError, match=r"Nothing is finished yet.*1 row so far"):
        newskills.report(results_dirs=[str(results / "begun")])
    path = results / "eval/base/eval-results/gsm8k/output-rs0.jsonl"
    path.write_text(path.read_text() + "{broken\n")
    curve = results / "training/grpo/metrics.jsonl"
    curve.write_text(curve.read_text() + '{"step": 20, "lo')
    assert ns("ns report . --no_spread", cwd=results).returncode == 0
    assert "gsm8k: 1 line cannot be read" in (results / "report.md").read_text()
