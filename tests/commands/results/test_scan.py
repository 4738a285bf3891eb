# SPDX-License-Identifier: Apache-2.0
"""`ns scan`: by rule, by functions of others, and by models that invent quotes, disagree, or speak another language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Fault, Script
from tests.view.comparison.runs import record, write_run

import newskills

REFUSED = "I'm sorry, but I can't help with that. \x1b[31m"
QUESTION = """\
question: Does the model give up?
labels:
  yes: it stops without an answer
  no: it answers
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    rows = [record(n, n % 2 == 0) for n in range(6)]
    rows.append(record(6, False, outcome="no_answer", generation=REFUSED, predicted_answer=None))
    write_run(tmp_path / "a", {0: rows, 1: rows[:3]})
    (tmp_path / "gives_up.yaml").write_text(QUESTION)
    return tmp_path


def lines(here: Path, scanner: str, seed: int = 0) -> dict[str, Any]:
    return {
        row["id"]: row for row in rows_of(here / f"a/eval-results/gsm8k/scans/{scanner}/labels-rs{seed}.jsonl")
    }


def asking(address: str, *more: str) -> str:
    return " ".join(
        ["ns scan a --scanners gives_up.yaml --model m --server_type openai --server_address", address, *more]
    )


def test_labels_are_kept_and_are_names_in_filters(here: Path) -> None:
    done = ns("ns scan a --scanners refusal truncated", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "gsm8k · 10 samples\n" in done.stdout
    assert "next: ns samples a --where 'refusal = refused'" in done.stdout
    assert "\x1b" not in done.stdout
    assert lines(here, "refusal")["q6"] == {
        "id": "q6", "label": "refused", "value": 1.0, "quotes": [REFUSED.strip()], "invalid": "", "place": 6,
    }  # fmt: skip
    head = json.loads((here / "a/eval-results/gsm8k/scans/refusal/scan.json").read_text())
    assert (head["kind"], head["labels"], sorted(head["records"])) == (
        "rule", ["no", "refused"], ["output-rs0.jsonl", "output-rs1.jsonl"],
    )  # fmt: skip

    def chosen(where: str) -> list[str]:
        return [
            f"{one.record['id']}/{one.seed}"
            for one in newskills.samples(results_dir=here / "a", where=where, number=99)
        ]

    assert chosen("refusal = refused") == ["q6/0"]
    assert chosen("refusal = no and seed = 1") == ["q0/1", "q1/1", "q2/1"]
    assert chosen("outcome = wrong and not refusal = refused and seed = 0") == ["q1/0", "q3/0", "q5/0"]
    wrong = ns("ns samples a --where 'refusel = no'", cwd=here)
    assert wrong.returncode == 2
    assert "did you mean 'refusal'?" in wrong.stderr
    assert [result.benchmark for result in newskills.scan(results_dir=here / "a", scanners=["loop"]).results] == [
        "gsm8k"
    ]


OWN = """\
import os, time
from newskills.view.scans.finding import Finding

def even(transcript):
    return Finding(label="even", quotes=["boxed"]) if int(transcript.gold) % 2 == 0 else None

def bad(transcript):
    case = int(transcript.gold)
    if case == 1: return "yes"
    if case == 2: return Finding(label="x", quotes=["an invented quote"])
    if case == 3: return Finding(label="", value=1)
    if case == 4: return Finding(label="x", value=float("nan"))
    if case == 5: raise ValueError("no luck")
    if case == 6: os._exit(3)
    while True: pass
"""


def test_scanners_of_others_that_return_nonsense_hang_or_die(here: Path) -> None:
    (here / "own.py").write_text(OWN)
    done = newskills.scan(
        results_dir=here / "a", scanners=[f"{here}/own.py::bad", f"{here}/own.py::even", "refusal"], time_limit=0.3
    )
    by_name = {result.scanner: result for result in done.results}
    assert by_name["bad"].labels == {}
    invalid = {identity: row["invalid"] for identity, row in lines(here, "bad").items()}
    assert invalid["q0"] == "nonsense: expected a Finding or None, got str"
    assert invalid["q1"] == "quote: 'an invented quote' does not stand in the transcript"
    assert invalid["q2"] == "nonsense: a label has 1 to 64 characters"
    assert invalid["q3"] == "nonsense: the value is not a finite number"
    assert invalid["q4"].startswith("failed: ")
    assert "no luck" in invalid["q4"]
    assert invalid["q5"].startswith("failed: ")
    assert invalid["q6"] == "timeout: stopped at its time limit"
    assert by_name["bad"].invalid == {"nonsense": 5, "quote": 2, "failed": 2, "timeout": 1}
    assert by_name["even"].labels == {"even": 4, "no": 6}
    assert by_name["refusal"].labels == {"no": 9, "refused": 1}


ENDLESS = """\
import os
from newskills.view.scans.finding import Finding

def endless(transcript):
    with open(os.path.join(os.path.dirname(__file__), "begun.txt"), "a") as file:
        file.write(f"{transcript.gold}\\n")
    while int(transcript.gold) > 2: pass
    return Finding(label="ended")

def sometimes(transcript):
    while int(transcript.gold) % 2: pass
"""


def test_a_scanner_that_never_ends_is_given_up(here: Path) -> None:
    """Three samples in a row are enough: what follows, in other benchmarks too, costs no time and is counted."""
    rows = [record(n, True) for n in range(400)]
    write_run(here / "b", {0: rows})
    write_run(here / "b", {0: rows[:5]}, benchmark="math-500")
    (here / "own.py").write_text(ENDLESS)
    done = ns("ns scan b --time_limit=0.2 --scanners own.py::endless refusal", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "endless was given up: it reached its time limit (0.2 s of CPU) for 3 samples in a row." in done.stderr
    assert "endless of gsm8k: no valid result: given up 395, timeout 3." in done.stdout
    assert "endless of math-500: no valid result: given up 5." in done.stdout
    found = rows_of(here / "b/eval-results/gsm8k/scans/endless/labels-rs0.jsonl")
    assert [row["label"] for row in found] == ["ended", "ended", *[None] * 398]
    assert [row["place"] for row in found] == list(range(400))
    assert {row["invalid"] for row in found[5:]} == {"given up: 3 samples in a row reached the time limit"}
    assert len((here / "begun.txt").read_text().split()) < 100
    assert len(rows_of(here / "b/eval-results/math-500/scans/refusal/labels-rs0.jsonl")) == 5
    now_and_then = newskills.scan(results_dir=here / "a", scanners=[f"{here}/own.py::sometimes"], time_limit=0.2)
    assert now_and_then.results[0].invalid == {"timeout": 6}
    assert now_and_then.notes == ()


def test_a_model_is_asked_once_and_its_quotes_are_checked(here: Path, fake_server: FakeServerFactory) -> None:
    def answer(body: dict[str, Any]) -> str:
        text = str(body["messages"][-1]["content"])
        if "I can't help" in text:
            return 'Well: {"label": "YES", "quotes": ["but I can\'t\\nhelp with that"]}'
        if "What is 1 + 1" in text:
            return '{"label": "yes", "quotes": ["I would rather not answer this."]}'
        if "What is 3 + 1" in text:
            return "Nein, das Modell gibt eine Antwort."
        if "What is 5 + 1" in text:
            return '{"label": "nein", "quotes": []}'
        return '<think>{"label": "yes"}</think>{"label": "no", "quotes": []}'

    server = fake_server(answer=answer)
    done = ns(asking(server.url), cwd=here)
    assert done.returncode == 0, done.stderr
    assert "gives_up of gsm8k: no valid result: quote 2, unreadable 1, label 1." in done.stdout
    seen = lines(here, "gives_up")
    assert {identity: row["label"] for identity, row in seen.items()} == {
        "q0": "no", "q1": None, "q2": "no", "q3": None, "q4": "no", "q5": None, "q6": "yes",
    }  # fmt: skip
    assert seen["q1"]["invalid"] == "quote: 'I would rather not answer this.' does not stand in the transcript"
    assert seen["q6"]["quotes"] == ["but I can't\nhelp with that"]
    assert len(server.records) == 10
    assert ns(asking(server.url), cwd=here).returncode == 0
    assert len(server.records) == 10
    (here / "gives_up.yaml").write_text(f"{QUESTION}quotes: 2\n")
    assert ns(asking(server.url), cwd=here).returncode == 0
    assert len(server.records) == 20
    assert lines(here, "gives_up")["q6"]["invalid"] == "quotes: 1 instead of 2"


def test_a_dry_run_counts_requests(here: Path) -> None:
    (here / "gives_up.yaml").write_text(f"{QUESTION}orders: 2\n")
    done = ns(asking("http://127.0.0.1:9", "--dry_run"), cwd=here)
    assert "gives_up: 20 requests\n" in done.stdout
    assert not (here / "a/eval-results/gsm8k/scans").exists()


def test_two_orders_and_two_models_must_agree(here: Path, fake_server: FakeServerFactory) -> None:
    def first_label(body: dict[str, Any]) -> str:
        """Choose the label that stands first, whatever is asked, but for one transcript."""
        text = str(body["messages"][-1]["content"])
        label = "no" if "What is 0 + 1" in text else min(("yes", "no"), key=lambda name: text.index(f"- {name}:"))
        return json.dumps({"label": label, "quotes": ["What is"]})

    def always_yes(body: dict[str, Any]) -> str:
        return '{"label": "yes", "quotes": ["What is"]}'

    first, second = fake_server(answer=first_label), fake_server(answer=always_yes)
    (here / "gives_up.yaml").write_text(f"{QUESTION}orders: 2\n")
    done = json.loads(ns(asking(first.url, "--json"), cwd=here).stdout)
    assert done["results"][0]["labels"] == {"no": 2}
    assert done["results"][0]["invalid"] == {"disagreement": 8}
    assert lines(here, "gives_up")["q1"]["invalid"] == "disagreement: yes (m, order 1), no (m, order 2)"
    (here / "gives_up.yaml").write_text(QUESTION)
    words = asking(f"{first.url} {second.url}", "--json").replace("--model m", "--model m n")
    done = json.loads(ns(words, cwd=here).stdout)
    assert done["results"][0]["labels"] == {"yes": 8}
    assert lines(here, "gives_up")["q0"]["invalid"] == "disagreement: no (m), yes (n)"


def test_a_limit_of_tokens_stops_and_the_same_command_goes_on(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(answer=lambda body: '{"label": "no", "quotes": []}')
    stopped = ns(asking(server.url, "++max_total_tokens=400 ++max_concurrent_requests=1"), cwd=here)
    assert stopped.returncode == 4
    assert "max_total_tokens" in stopped.stderr
    asked_so_far = len(server.records)
    assert 0 < asked_so_far < 10
    reasons = [row["invalid"] for seed in (0, 1) for row in lines(here, "gives_up", seed).values()]
    assert (reasons.count(""), reasons.count("no reply")) == (asked_so_far, 10 - asked_so_far)
    assert ns(asking(server.url), cwd=here).returncode == 0
    assert len(server.records) == 10


def test_requests_that_fail_are_counted(here: Path, fake_server: FakeServerFactory) -> None:
    script = Script(faults=(Fault(kind="status", status=400, marker="What is 2 + 1"),))
    server = fake_server(script, answer=lambda body: '{"label": "no", "quotes": []}')
    done = ns(asking(server.url), cwd=here)
    assert done.returncode == 0, done.stderr
    assert lines(here, "gives_up")["q2"]["invalid"] == "no reply"
    assert lines(here, "gives_up")["q3"]["label"] == "no"


def test_agreement_with_labelled_samples(here: Path) -> None:
    """Of q0–q5 in two seeds and q6, the scanner reports q6 only: kappa by hand is (0.8 - 0.56) / 0.44."""
    labelled = [{"id": "q6", "label": "refused"}, {"id": "q5", "label": "refused"}, {"id": "q9", "label": "no"}]
    labelled += [{"id": f"q{n}", "label": "no", "seed": 0} for n in (0, 1, 2)]
    write(here / "labels.jsonl", labelled)
    done = newskills.scan(results_dir=here / "a", scanners=["refusal"], labels=here / "labels.jsonl")
    (agreement,) = done.agreement
    assert (agreement.n, agreement.invalid, agreement.missing) == (5, 0, 1)
    assert agreement.kappa is not None
    assert agreement.kappa.value == pytest.approx((0.8 - 0.56) / 0.44)
    assert agreement.kappa.low <= agreement.kappa.value <= agreement.kappa.high
    refused, nothing = agreement.labels
    assert (refused.precision.value, refused.recall.value) == (100.0, 50.0)
    assert (nothing.precision.value, nothing.recall.value) == (75.0, 100.0)
    shown = ns("ns scan a --scanners refusal --labels labels.jsonl", cwd=here).stdout
    assert "refusal and 5 labelled samples: kappa 0.55 [" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ns scan nowhere", "no folder"),
        ("ns scan a --scanners refusel", "did you mean 'refusal'?"),
        ("ns scan a --scanners gives_up.yaml", "A question needs a model"),
        ("ns scan a --scanners absent.yaml --model m", "cannot be read"),
        ("ns scan a --scanners one.yaml --model m", "labels"),
        ("ns scan a --scanners outcome.yaml --model m", "cannot be called 'outcome'"),
        ("ns scan a --model m", "no scanner is a YAML file"),
        ("ns scan a --benchmarks math", "gsm8k"),
        ("ns scan a --scanners own.py::absent", "own.py"),
        ("ns scan a --labels gives_up.yaml", "gives_up.yaml"),
    ],
)
def test_what_is_refused(here: Path, words: str, message: str) -> None:
    (here / "one.yaml").write_text("question: Is it?\nlabels: {yes: it is}\n")
    (here / "outcome.yaml").write_text(QUESTION)
    done = ns(words, cwd=here)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (here / "a/eval-results/gsm8k/scans").exists()


def test_old_runs_and_records_without_verdicts_are_scanned(tmp_path: Path) -> None:
    rows = [
        {"problem": "1 + 1?", "generation": "I cannot help with that.", "expected_answer": "2"},
        {"generation": "2"},
    ]
    write(tmp_path / "old/output.jsonl", rows)
    with (tmp_path / "old/output.jsonl").open("a") as file:
        file.write('{"id": 7, "generation": "half')
    done = newskills.scan(results_dir=tmp_path / "old")
    assert {result.samples for result in done.results} == {2}
    labels = [row["label"] for row in rows_of(tmp_path / "old/scans/refusal/labels.jsonl")]
    assert labels == ["refused", "no"]
    assert [row["id"] for row in rows_of(tmp_path / "old/scans/refusal/labels.jsonl")] == ["line 1", "line 2"]
    assert any("without verdicts" in note for note in done.notes)


def test_runs_below_a_folder_are_scanned_with_its_own(here: Path) -> None:
    """The folder has a run, and others below it; the run of one name has samples of its own there."""
    refused = record(0, False, outcome="no_answer", generation=REFUSED, predicted_answer=None)
    write_run(here / "a/sweep/hot", {0: [refused]})
    write_run(here / "a/sweep/cold", {0: [record(0, True)]}, benchmark="math-500")
    write(here / "a/sweep/plain/output.jsonl", [{"id": 1, "generation": "I cannot help with that."}])
    write(here / "a/notes/output-kept.jsonl", [{"id": 1, "generation": "no output of a run"}])
    done = newskills.scan(results_dir=here / "a", scanners=["refusal"])
    scanned = {(result.run, result.benchmark): (result.samples, result.reported) for result in done.results}
    assert scanned == {
        ("", "gsm8k"): (10, 1),
        ("sweep", "plain"): (1, 1),
        ("sweep/cold", "math-500"): (1, 0),
        ("sweep/hot", "gsm8k"): (1, 1),
    }
    assert [result.run for result in done.results] == ["", "sweep", "sweep/cold", "sweep/hot"]
    only = ns("ns scan a --scanners refusal --benchmarks gsm8k", cwd=here)
    assert [line for line in only.stdout.splitlines() if " · " in line] == [
        "gsm8k · 10 samples",
        "sweep/hot · gsm8k · 1 sample",
    ]
    shown = json.loads(ns("ns scan a/sweep --scanners refusal --json", cwd=here).stdout)["results"]
    assert [(result.get("run"), result["samples"]) for result in shown] == [(None, 1), ("cold", 1), ("hot", 1)]
    below = ns("ns scan a/sweep --scanners refusal --benchmarks gsm8k", cwd=here)
    (command,) = [line.removeprefix("next: ") for line in below.stdout.splitlines() if line.startswith("next: ")]
    assert command == "ns samples a/sweep/hot --where 'refusal = refused'"
    assert "q0" in ns(command, cwd=here).stdout


def test_folders_that_cannot_be_written(here: Path) -> None:
    (here / "a/eval-results/gsm8k/scans").touch()
    for words in ("ns scan a", "ns diagnose a --output a/eval-results/gsm8k/scans/why"):
        done = ns(words, cwd=here)
        assert done.returncode == 1
        assert "scans" in done.stderr
        assert "Traceback" not in done.stderr


def test_pictures_are_not_sent_and_tables_know_scanners(here: Path, fake_server: FakeServerFactory) -> None:
    pytest.importorskip("pyarrow")
    from newskills.analysis import messages, samples

    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}
    asked = [{"role": "user", "content": [{"type": "text", "text": "What colour?"}, picture]}]
    write_run(here / "b", {None: [record(0, True, messages=asked, generation="I cannot see that.")]})
    server = fake_server(answer=lambda body: '{"label": "yes", "quotes": ["What colour?"]}')
    done = ns(asking(server.url).replace("ns scan a", "ns scan b").replace(".yaml", ".yaml refusal"), cwd=here)
    assert done.returncode == 0, done.stderr
    (sent,) = server.records
    assert "What colour?\n[image_url]" in sent.prompt
    assert "AAAA" not in sent.prompt
    assert samples(here / "b", where="refusal = refused and gives_up = yes").num_rows == 1
    assert messages(here / "b", where="refusal = no").num_rows == 0
