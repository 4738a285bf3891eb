# SPDX-License-Identifier: Apache-2.0
"""Planted causes come out with their shares; figures follow from the records; invented claims are dropped."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.view.comparison.runs import answers, record, write_run
from tests.view.diagnosis.planted import SEEDS, planted_run
from tests.view.results import HOSTILE

import newskills
from newskills.view.diagnosis.groups import GROUPS, group_failure, same_but_for_notation, wrong_calculation
from newskills.view.scans.transcript import Transcript

PROBLEMS = 100


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counter[str]]:
    folder = tmp_path_factory.mktemp("planted") / "run"
    return folder, planted_run(folder, PROBLEMS)


def test_planted_causes_come_out_with_their_shares(planted: tuple[Path, Counter[str]]) -> None:
    folder, causes = planted
    (benchmark,) = newskills.diagnose(results_dirs=[folder]).run.benchmarks
    total = PROBLEMS * SEEDS
    assert benchmark.samples == total
    shares = {share.group: share for share in benchmark.groups}
    assert set(shares) == set(GROUPS)
    for group in GROUPS:
        assert shares[group].share.value == pytest.approx(100 * causes[group] / total, abs=2.0), group
        assert shares[group].share.low <= 100 * causes[group] / total <= shares[group].share.high
        assert len(shares[group].examples) == 3
        assert len({sample.id for sample in shares[group].examples}) == 3
    assert benchmark.loss == pytest.approx(sum(share.points for share in benchmark.groups))
    ns("ns summarize_results . --accept_lost 100", cwd=folder)
    metrics = json.loads((folder / "metrics.json").read_text())["gsm8k"][f"pass@1[avg-of-{SEEDS}]"]
    assert benchmark.score == pytest.approx(metrics["symbolic_correct"], abs=0.01)
    assert shares["environment"].points == 0
    assert shares["environment"].unscored == benchmark.unscored == causes["environment"]


def test_samples_are_linked_by_commands_and_addresses_that_work(planted: tuple[Path, Counter[str]]) -> None:
    folder, _ = planted
    (benchmark,) = newskills.diagnose(results_dirs=[folder]).run.benchmarks
    share = next(share for share in benchmark.groups if share.group == "gold")
    for sample in share.examples:
        shown = ns(sample.command, cwd=folder)
        assert f"gsm8k · {sample.id} · seed {sample.seed} · wrong" in shown.stdout
        assert sample.viewer.startswith("#/sample?run=run&benchmark=gsm8k&file=")
        assert sample.reason == "4 of 4 samples agree on another answer"


def test_two_runs_are_compared_by_group(tmp_path: Path, planted: tuple[Path, Counter[str]]) -> None:
    folder, causes = planted
    fixed = tmp_path / "fixed"
    seeds: dict[int | None, list[dict[str, Any]]] = {}
    for seed in range(SEEDS):
        rows = rows_of(folder / f"eval-results/gsm8k/output-rs{seed}.jsonl")
        right = {"outcome": "correct", "symbolic_correct": True, "finish_reason": "stop", "outcome_cause": None}
        seeds[seed] = [row | right if row["finish_reason"] == "length" else row for row in rows]
    write_run(fixed, seeds)
    made = newskills.diagnose(results_dirs=[folder, fixed], output=str(tmp_path / "why"))
    change = made.changes[0]
    assert (change.group, change.samples) == ("truncation", (causes["truncation"], 0))
    assert made.other is not None
    assert made.run.benchmarks[0].loss is not None
    assert made.other.benchmarks[0].loss is not None
    gained = made.other.benchmarks[0].loss - made.run.benchmarks[0].loss
    assert sum(one.points[1] - one.points[0] for one in made.changes) == pytest.approx(gained)
    page = (tmp_path / "why.html").read_text()
    assert "run → fixed" in page
    assert json.loads((tmp_path / "why.json").read_text())["changes"][0]["group"] == "truncation"
    shown = ns(f"ns diagnose {folder} {fixed} --output {tmp_path}/again", cwd=tmp_path)
    assert max(map(len, shown.stdout.splitlines()[:-3])) <= 80


INVENTED = [
    {"text": "No ids.", "ids": [], "quotes": ["A shop has"]},
    {"text": "Ids that do not exist.", "ids": ["p1000"], "quotes": ["A shop has"]},
    {"text": "One id exists.", "ids": ["ID", "p1000"], "quotes": ["A shop has"]},
    {"text": "An invented quote.", "ids": ["ID"], "quotes": ["The model was very tired."]},
    {"text": "One quote stands there.", "ids": ["ID"], "quotes": ["A shop has", "The model was very tired."]},
    {"text": "No quote.", "ids": ["ID"], "quotes": []},
    {"text": "A blank.", "ids": ["ID"], "quotes": [" "]},
    {"text": "", "ids": ["ID"], "quotes": ["A shop has"]},
    "Die Modelle scheitern an der Länge.",
]


def test_claims_that_a_model_invents_are_dropped_and_counted(
    tmp_path: Path, planted: tuple[Path, Counter[str]], fake_server: FakeServerFactory
) -> None:
    def answer(body: dict[str, Any]) -> str:
        text = str(body["messages"][-1]["content"])
        identity = text.partition("### id: ")[2].partition("\n")[0]
        claims = [
            {"text": "They are asked about shops. <b>", "ids": [identity], "quotes": ["A shop\n has"]},
            *INVENTED,
        ]
        return f"Here: {json.dumps({'claims': claims}).replace('ID', identity)}"

    server = fake_server(answer=answer)
    words = f"ns diagnose {planted[0]} --output why --model m --server_type openai --server_address {server.url}"
    done = ns(words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(server.records) == len(GROUPS)
    made = json.loads((tmp_path / "why.json").read_text())
    for share in made["run"]["benchmarks"][0]["groups"]:
        (claim,) = share["claims"]
        assert claim["text"] == "They are asked about shops. <b>"
        assert share["dropped"] == {
            "no id": 1,
            "id does not exist": 2,
            "quote does not stand in its samples": 3,
            "no quote": 1,
            "unreadable claim": 2,
        }
    assert f"{len(INVENTED) * len(GROUPS)} claims of the model failed the check and are left out.\n" in done.stdout
    page = (tmp_path / "why.html").read_text()
    assert "shops. &lt;b&gt;" in page
    assert "very tired" not in page
    assert ns(words, cwd=tmp_path).returncode == 0
    assert len(server.records) == len(GROUPS)


@pytest.mark.parametrize(
    "reply", ["", "Ich sehe kein Muster.", '{"claims": "none"}', "[" * 100_000, '{"claims": {']
)
def test_replies_without_claims(tmp_path: Path, fake_server: FakeServerFactory, reply: str) -> None:
    write_run(tmp_path / "a", {None: answers("+--")})
    server = fake_server(answer=lambda body: reply)
    made = newskills.diagnose(
        results_dirs=[tmp_path / "a"], model=["m"], server_type=["openai"], server_address=[server.url]
    )
    assert [share.claims for share in made.run.benchmarks[0].groups] == [()]
    assert made.run.benchmarks[0].groups[0].dropped in ({"no reply": 1}, {"unreadable reply": 1})


def test_hostile_texts_are_escaped(tmp_path: Path) -> None:
    row = record(1, False, id=HOSTILE, problem=HOSTILE, generation=HOSTILE, expected_answer=HOSTILE)
    write_run(tmp_path / "a", {None: [row]})
    shown = ns("ns diagnose a", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert all(character == "\n" or character.isprintable() for character in shown.stdout)
    page = (tmp_path / "a/diagnosis.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page


def test_what_is_refused_and_old_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {None: answers("++")})
    shown = ns("ns diagnose a", cwd=tmp_path)
    assert "gsm8k: score 100.00, loss 0.00 points; 0 of 2 samples failed\nNo sample failed.\n" in shown.stdout
    for words, message in (
        ("ns diagnose nowhere", "no folder"),
        ("ns diagnose a a a", "one folder or two"),
        ("ns diagnose a --benchmarks math", "gsm8k"),
        ("ns diagnose a ++max_cost=1", "give --model"),
    ):
        done = ns(words, cwd=tmp_path)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    write(tmp_path / "old/output.jsonl", [{"problem": "1 + 1?", "generation": "3"}])
    old = newskills.diagnose(results_dirs=[tmp_path / "old"]).run
    assert (old.benchmarks[0].score, old.benchmarks[0].failures) == (None, 0)
    assert "without verdicts" in old.notes[0]


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        ("$1,000$", "1000", True),
        ("\\text{Paris}", "paris", True),
        ("0.5", "1/2", True),
        ("1/0", "0", False),
        ("41", "42", False),
        ("{}", "()", False),
    ],
)
def test_answers_that_are_equal_but_for_notation(answer: str, gold: str, same: bool) -> None:
    assert same_but_for_notation(answer, gold) is same


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("We get 3 * 4 = 13.", "We get 3 * 4 = 13."),
        ("We get 3 \\times 4 = 13 pens", "We get 3 \\times 4 = 13 pens"),
        ("10 / 3 = 3.33 and 3 × 4 = 12", ""),
        ("In 2020-21 = x, f(3) = 9", ""),
        ("assert 3 * 4 == 13", ""),
    ],
)
def test_wrong_calculations(reply: str, line: str) -> None:
    assert wrong_calculation(reply) == line


@pytest.mark.parametrize(
    "row", [{}, {"generation": None, "expected_answer": None}, {"conversation": [1], "steps": {}}]
)
def test_records_of_any_form_have_a_group(row: dict[str, Any]) -> None:
    assert group_failure(Transcript(row, outcome="wrong", score=0.0)).group in GROUPS
