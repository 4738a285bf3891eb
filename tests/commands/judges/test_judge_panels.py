# SPDX-License-Identifier: Apache-2.0
"""Several judges of the same answers: real servers, real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.commands import judged
from tests.commands.judged import answering
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.server import Answer, Fault, Script

from newskills.solve.judges.panel import FORMS

# 29 ratings, 5 of them No. Two units differ, each with 4 unequal ordered pairs of 3 ratings; by chance 2 * 5 * 24 / 28.
ALPHA = 1 - 2 * (4 / 2) / (2 * 5 * 24 / 28)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return judged.prepare(tmp_path)


def judge(*refused: str, faults: tuple[Fault, ...] = ()) -> Script:
    """A judge that says No to the answers on these problems."""
    table = dict.fromkeys(refused, "No")
    answer = Answer(
        kind="table", table=table, template="He says 'Judgement: Yes'. So\nJudgement: %s", text="Judgement: Yes"
    )
    return Script(answer=answer, faults=faults)


def panel_line(model: str, judges: dict[str, str], *options: str) -> str:
    return (
        f"ns eval --server_type=vllm --model=fake --server_address={model} --output_dir=out --data_dir=data "
        f"--benchmarks=./sums.py --judge_server_type=vllm --judge_model={','.join(judges)} "
        f"--judge_server_address={','.join(judges.values())} {' '.join(options)}"
    )


def test_most_judges_decide_and_their_agreement_is_told(here: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(answering())
    servers = [
        fake_server(judge("Add 1 and", "Add 2 and")),
        fake_server(judge("Add 1 and", "Add 3 and")),
        fake_server(judge("Add 1 and", faults=(Fault(kind="status", status=400, marker="Add 5 and"),))),
    ]
    words = panel_line(model.url, {name: server.url for name, server in zip("abc", servers, strict=True)})
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert [row["outcome"] for row in records] == ["correct", "wrong", *["correct"] * 8]
    assert [row["judge_split"] for row in records] == [n in (2, 3) for n in range(10)]
    assert records[1]["judgement"] == "Judgement: No"
    assert records[1]["judge_model"] == "a, b, c"
    panel = records[2]["judge_panel"]
    assert {name: own["judgement"]["verdict"] for name, own in panel.items()} == {
        "a": "No",
        "b": "Yes",
        "c": "Yes",
    }
    assert panel["a"]["judgement"]["text"].endswith("Judgement: No")
    assert records[5]["judge_panel"]["c"] == {"error": "BadRequestError"}
    numbers = json.loads((here / "out/metrics.json").read_text())["judged-sums"]["pass@1"]
    assert numbers["judge_correct"] == 90.0
    assert numbers["judge_split"] == 20.0
    assert numbers["judge_alpha"] == pytest.approx(ALPHA)
    assert "judges a, b, c agree with Krippendorff's alpha 0.5" in done.stdout + done.stderr
    assert "they differ on 20.0 % of the samples" in done.stdout + done.stderr
    again = ns(words, cwd=here)
    assert again.returncode == 0, again.stderr
    assert [len(server.records) for server in (model, *servers)] == [10, 10, 10, 10]


def test_an_answer_that_silences_most_judges_has_no_verdict(here: Path, fake_server: FakeServerFactory) -> None:
    silent = judge(faults=(Fault(kind="status", status=400, marker="Add 5 and"),))
    model, servers = fake_server(answering()), [fake_server(judge()), fake_server(silent), fake_server(silent)]
    words = panel_line(model.url, {name: server.url for name, server in zip("abc", servers, strict=True)})
    done = ns(f"{words} --accept_lost=10", cwd=here)
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert [row["outcome"] for row in records] == ["unscored" if n == 5 else "correct" for n in range(10)]
    assert records[5]["outcome_cause"] == "judge"


def test_a_tie_is_no_verdict(here: Path, fake_server: FakeServerFactory) -> None:
    model, first, second = fake_server(answering()), fake_server(judge("Add 1 and")), fake_server(judge())
    done = ns(panel_line(model.url, {"a": first.url, "b": second.url}, "--accept_lost=10"), cwd=here)
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert [(row["outcome"], row.get("outcome_cause")) for row in records[:2]] == [
        ("correct", None),
        ("unscored", "judge"),
    ]


@pytest.mark.parametrize(
    ("judges", "expected"),
    [
        ("a,a", "--judge_model names a twice"),
        ("fake,a", "would judge its own answers"),
        ("a,b,c --judge_server_address=http://127.0.0.1:1,http://127.0.0.1:2", "has 2 values for 3 models"),
    ],
)
def test_panels_that_cannot_be(here: Path, judges: str, expected: str) -> None:
    done = ns(
        "ns eval --server_type=vllm --model=fake --server_address=http://127.0.0.1:1 --output_dir=out "
        f"--data_dir=data --benchmarks=./sums.py --judge_server_type=vllm --judge_model={judges}",
        cwd=here,
    )
    assert done.returncode == 2
    assert expected in done.stderr


def test_a_model_leaves_the_panel_that_would_judge_it(here: Path, fake_server: FakeServerFactory) -> None:
    model, other = fake_server(answering()), fake_server(judge())
    words = panel_line(model.url, {"fake": model.url, "a": other.url, "b": other.url}).replace(
        f"{model.url},{other.url},{other.url}", other.url
    )
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert "fake does not judge its own answers: the panel is a, b" in done.stderr
    assert len(other.records) == 20


def test_the_first_answer_needs_no_judge(here: Path, fake_server: FakeServerFactory) -> None:
    """Records that no judge was asked about say nothing about whether there is a panel."""
    rows = (here / "sums.py").read_text().replace("judge=Judge()", 'judge=Judge(kind="math_judge")')
    (here / "sums.py").write_text(rows)
    words = {**judged.WORDS, "Add 0 and 0.": "0"}
    model = fake_server(Script(answer=Answer(kind="table", table=words)))
    first, second = fake_server(judge("Add 1 and")), fake_server(judge("Add 1 and", "Add 2 and"))
    done = ns(panel_line(model.url, {"a": first.url, "b": second.url}, "--accept_lost=10"), cwd=here)
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert records[0]["judge_prefilled"]
    assert "judge_split" in json.loads((here / "out/metrics.json").read_text())["judged-sums"]["pass@1"]


def test_official_scorers_read_the_panel_as_a_judge(here: Path, fake_server: FakeServerFactory) -> None:
    """A verdict as an object stays one, with the confidence that judges read; tokens of all judges count."""
    texts = ('{"correct": "yes", "confidence": 80}', '{"correct": "yes", "confidence": 91}', "correct: no")
    model = fake_server(answering())
    servers = [fake_server(Script(answer=Answer(text=text))) for text in texts]
    servers[0].script = replace(servers[0].script, usage="none")
    words = panel_line(model.url, {name: server.url for name, server in zip("abc", servers, strict=True)})
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert {row["judgement"] for row in records} == {'{"correct": "yes", "confidence": 86}'}
    assert {row["outcome"] for row in records} == {"correct"}
    assert all(row["judge_num_generated_tokens"] > 0 for row in records)


@pytest.mark.parametrize("letters", [{"a": "right", "b": "wrong"}, {"C": "right", "I": "wrong"}])
def test_the_letter_of_a_panel_is_read_as_its_verdict(letters: dict[str, str]) -> None:
    form = FORMS["letter"]
    for name in letters.values():
        assert form.read(form.write(name, letters, []), letters) == name
