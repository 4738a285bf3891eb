# SPDX-License-Identifier: Apache-2.0
"""The benches' own instruments: what they measure with must be right before any figure is believed."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from bench import __main__ as front
from bench import answers, endpoint, judges, lines, rows
from bench.endpoint import Endpoint, fallback
from bench.measure import BenchError, Line, run
from bench.reinforce import PAGE, PICTURE, RECORD, SUMMARY, alone
from bench.reinforce_plot import Cell, cell_of, drawn, judged, mean_lift, read_cells, tabled, write_record
from bench.reinforce_tasks import FIXED, TASKS, calculated, split
from bench.reinforce_turns import scorer_of
from bench.simulation import Campaign

from newskills.base.paired import mcnemar, paired_difference
from newskills.base.store import write_json
from newskills.train.loops.samples import Problem
from newskills.train.verbs import Sampled, SamplingParams

PATHS = ("/v1/chat/completions", "/completions", "/v1/responses")


def exchange(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> bytes:
    connection.request(method, path, body)
    return connection.getresponse().read()


@pytest.mark.parametrize("kind", ["compiled", "fallback"])
def test_endpoints_give_the_same_canned_replies(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "fallback":
        monkeypatch.setattr(endpoint, "program", lambda: [sys.executable, str(endpoint.FOLDER / "fallback.py")])
    elif "fallback.py" in endpoint.program()[-1]:
        pytest.skip("no C compiler here")
    with Endpoint() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        for path in PATHS:
            expected = json.loads(next(body for tail, body in fallback.ROUTES if path.endswith(tail)))
            replies = [json.loads(exchange(connection, "POST", path, b"{}")) for _ in range(3)]
            assert len({reply["id"] for reply in replies}) == 3
            assert all({**reply, "id": expected["id"]} == expected for reply in replies)
            assert "boxed{42}" in json.dumps(expected)
        assert json.loads(exchange(connection, "GET", "/v1/models"))["data"][0]["id"] == "fake"
        assert server.served == 3 * len(PATHS)
        connection.close()


def test_latency_and_bodies_larger_than_one_read() -> None:
    with Endpoint(latency_ms=100) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        start = time.perf_counter()
        assert json.loads(exchange(connection, "POST", PATHS[0], b" " * 1_000_000))
        assert time.perf_counter() - start >= 0.1
        connection.close()


def test_a_client_that_leaves_early_gets_no_one_elses_reply() -> None:
    with Endpoint(latency_ms=150) as server:
        for _ in range(20):
            leaver = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
            leaver.request("POST", PATHS[0], b"{}")
            leaver.close()
        stayer = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        assert b"text_completion" in exchange(stayer, "POST", PATHS[1], b"{}")
        stayer.close()
        assert server.served == 1


def test_cpu_and_memory_count_children() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    work = "x = bytearray(150_000_000); sum(range(10_000_000)); import time; time.sleep(0.2)"
    done = run([sys.executable, "-c", code, work])
    idle = run([sys.executable, "-c", ""])
    assert done.cpu > idle.cpu + 0.1
    assert done.peak_rss > 150_000_000


def test_a_failing_command_gives_no_figure() -> None:
    with pytest.raises(BenchError, match="no such thing"):
        run([sys.executable, "-c", "raise SystemExit('no such thing')"])


def test_table_shows_ratios_both_ways_and_unmet_targets() -> None:
    slow = Line(bench="b", what="slow", ours=2.0, unit="s", better="less", beside="peer", theirs=30.0)
    fast = Line(
        bench="b", what="fast", ours=50.0, unit="rows/s", beside="peer", theirs=100.0, target="≥ 60", met=False
    )
    assert (slow.ratio, fast.ratio) == (15.0, 0.5)
    shown = front.table([slow, fast])
    assert "15 ×" in shown
    assert "0.50 ×" in shown
    assert shown.splitlines()[-1].endswith("NO")
    assert front.markdown([slow]).count("|") == 3 * (len(front.HEADS) + 1)


def test_docs_change_between_the_markers_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{front.BEGIN}\nold\n{front.END}\nafter\n")
    monkeypatch.setattr(front, "PAGE", page)
    front.write_docs([Line(bench="b", what="new", ours=1.0, unit="s")])
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "new" in text
    assert "old" not in text


def test_made_up_rows_differ_and_have_the_right_answer() -> None:
    made = list(rows.problems(50))
    assert len({row["problem"] for row in made}) == 50
    graded = list(rows.records(50, seed=1))
    assert 0 < sum(row["symbolic_correct"] for row in graded) < 50
    assert all(row["expected_answer"] in row["generation"] for row in graded if row["symbolic_correct"])


def test_pairs_are_labelled_as_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEWSKILLS_MIRROR", raising=False)
    judge = judges.by_newskills()
    for pair in answers.integers(100):
        assert judge(pair) == pair["right"]
    made = answers.mix(200, tmp_path)
    assert {pair["right"] for pair in made} == {True, False}
    assert len({pair["expected_answer"] for pair in made}) > 25


@pytest.mark.nightly
def test_judges_wait_to_be_told(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(pair) + "\n" for pair in answers.integers(60)))
    argv = [sys.executable, judges.__file__, "newskills", str(file)]
    done = subprocess.run(argv, input="go\nend\n", capture_output=True, text=True, check=True)
    ready, said = done.stdout.splitlines()
    assert ready == "ready"
    assert json.loads(said)["agreed"] == 1.0


def test_tasks_to_reinforce_hold_no_question_twice() -> None:
    kinds = {TASKS[name].kind for name in FIXED}
    assert kinds == {"string", "arithmetic", "format", "choice", "tool", "two turns"}
    for name in TASKS:
        parts = split(name)
        sizes = len(parts.held_out), len(parts.checked), len(parts.tune), len(parts.reinforce)
        assert sizes == (400, 100, 2560, 800)
        items = [*parts.held_out, *parts.checked, *parts.tune, *parts.reinforce]
        assert len({item.question for item in items}) == len(items)
        assert split(name) == parts


def test_answers_of_tasks_are_right() -> None:
    for item in split("letters").tune:
        letters = item.question.partition(" of ")[2].rstrip(":\n").split()
        assert item.answer.split() == [letter for place, letter in enumerate(letters, 1) if place % 2 == 0]
    for item in split("sums").tune:
        assert item.answer == calculated(item.question.rstrip(" =\n"))
    for item in split("ends").tune:
        numbers = [int(word) for word in re.findall("[0-9]+", item.question)]
        assert (int(item.first), int(item.answer)) == (min(numbers), max(numbers))
    for item in split("largest").tune:
        numbers = [int(word) for word in re.findall("[0-9]+", item.question)]
        assert numbers["ABCD".index(item.answer)] == max(numbers)
    names = "January February March April May June July August September October November December"
    months = names.split()
    for item in split("dates").tune:
        year, month, day = map(int, item.answer.split("-"))
        assert str(year) in item.question
        assert months[month - 1] in item.question or str(month) in item.question
        assert str(day) in item.question
    for item in split("calculator").tune:
        assert item.answer == calculated(item.first) != "error"
    assert [calculated(text) for text in ("3*(4+5)-1", "2**9", "x", "1/2", "")] == ["26", *["error"] * 4]


class Scripted:
    """Replies that stand there, in order."""

    def __init__(self, *replies: str) -> None:
        self.replies, self.prompts = iter(replies), list[list[int]]()

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        groups = []
        for prompt in prompts:
            self.prompts.append(list(prompt))
            group = []
            for _ in range(num_samples):
                text = next(self.replies)
                tokens = [*map(ord, text.rstrip("…")), *([] if text.endswith("…") else [0])]
                reason: Literal["stop", "length"] = "length" if text.endswith("…") else "stop"
                group.append(Sampled(tokens=tokens, logprobs=[-0.5] * len(tokens), stop_reason=reason))
            groups.append(group)
        return groups


class CharacterTokenizer:
    def encode(self, text: str) -> list[int]:
        return [ord(char) for char in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(map(chr, tokens))


@pytest.mark.parametrize(
    ("task", "first", "answer", "read", "right"),
    [
        ("calculator", "2*(3+4)", "14", "\n= 14\nAnswer:\n", [True, True]),
        ("ends", "12", "98", "\nlargest:\n", [True, False]),
    ],
)
def test_tasks_of_two_turns_read_what_comes_between(
    task: str, first: str, answer: str, read: str, right: list[bool]
) -> None:
    """The second attempt's first reply is another one; the third is cut off."""
    tokenizer: Any = CharacterTokenizer()
    scorer = scorer_of(TASKS[task], tokenizer, 0)
    problem = Problem(tokenizer.encode("?"), {"expected_answer": answer, "first": first})
    client = Scripted(first, "99", "1…", answer, answer)
    params = SamplingParams(max_tokens=9)
    [group] = scorer.rollouts(client, [problem], 3, params)
    assert [len(rollout.turns) for rollout in group] == [2, 2, 1]
    assert tokenizer.decode(client.prompts[1]) == f"?{first}\0{read}"
    assert [judgement.correct for judgement in scorer.judge(group)] == [*right, False]


def cell(backend: str, seed: int, kept: int, last: int, *, task: str = "sums", done: int = 2) -> Cell:
    """A run from 40 right answers to so many."""
    before, after, end = ([float(place < count) for place in range(100)] for count in (40, kept, last))
    right = {0: before, 1: after, done: end}
    rows = [{"step": step, "reward": 0.2, "eval_correct": 0.5} for step in range(1, done + 1)]
    rows[0] |= {"returned": 0} if seed else {}
    return cell_of((task, "arithmetic", backend, seed), rows, right, 1, samples=1280, steps=2)


def test_what_runs_keep_becomes_a_table_and_a_picture() -> None:
    runs = [cell("cpu", 0, 60, 30), cell("cpu", 1, 70, 70), cell("trl", 0, 28, 28)]
    shown = tabled(runs).splitlines()
    assert shown[2].startswith("| sums | arithmetic | ns grpo | 2 | 40.0 % | 65.0 % | +25.0 [")
    each = f"+20.0 ({mcnemar(0, 20):.1g}), +30.0 ({mcnemar(0, 30):.1g}) | 1, 1↩ | -10.0 ({mcnemar(10, 0):.1g})"
    assert f"{each}, +30.0 ({mcnemar(0, 30):.1g}) | 1,280 |" in shown[2]
    assert "| TRL | 1 | 40.0 % | 28.0 % | -12.0 [" in shown[3]
    assert shown[-2:] == ["| sums | 0 | 40.0 | 60.0 | 28.0 | +32.0 |", "| mean | | | | | +32.0 |"]
    lift, low, high = mean_lift(runs[:2])
    alone = cell("cpu", 0, 65, 65).lift()
    assert lift == 25.0
    assert low < 100 * alone.low < 100 * alone.high < high  # seeds differ, which one run cannot show
    assert low < 0  # two seeds, 10 points apart, are too few to be sure
    sentence = judged(runs, ["sums", "dates"])
    assert "Of 2 tasks, 1 were run (2 runs); mean lift above 0 with 95 %: 0 (none)." in sentence
    assert "Significantly worse: none; last states: sums seed 0. Not run yet: dates." in sentence
    assert "Beside TRL: sums; TRL is significantly worse than the start in: sums seed 0." in sentence
    lifted = [*runs, cell("cpu", 0, 80, 80, task="dates")]
    assert "mean lift above 0 with 95 %: 0 (none)" in judged(lifted, ["sums", "dates"])  # of one seed
    harmed = [*runs, cell("cpu", 0, 28, 28, task="dates")]
    assert "Significantly worse: dates seed 0; last" in judged(harmed, ["sums", "dates"])
    assert drawn(harmed).count("<polyline") == 4
    assert drawn(harmed).count("<circle") == 3


def test_a_cell_counts_the_problems_that_changed() -> None:
    before, kept, last = [1.0, 1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]
    rows = [{"step": 1}, {"step": 2}]
    run = cell_of(("sums", "arithmetic", "cpu", 0), rows, {0: before, 1: kept, 2: last}, 1, samples=1, steps=2)
    assert (run.before, run.kept.won, run.kept.lost, run.right("kept")) == (2, 2, 1, 3)
    assert (run.last.won, run.last.lost, run.right("last")) == (1, 2, 1)
    paired = paired_difference([[score] for score in before], [[score] for score in kept])
    assert run.lift() == paired


def test_cells_of_a_folder_take_the_place_of_recorded_ones(tmp_path: Path) -> None:
    record = tmp_path / "cells.jsonl"
    write_record([cell("cpu", 0, 60, 60), cell("cpu", 1, 70, 70)], record)
    write_json(tmp_path / "sums-cpu-1.json", cell("cpu", 1, 80, 80))
    write_json(tmp_path / "dates-trl-0.json", cell("trl", 0, 50, 50, task="dates"))
    cells = read_cells(tmp_path, record)
    assert [(*one.key, one.right("kept")) for one in cells] == [
        ("dates", "trl", 0, 50),
        ("sums", "cpu", 0, 60),
        ("sums", "cpu", 1, 80),
    ]
    write_record(cells, record)
    assert read_cells(tmp_path / "none", record) == cells


def test_the_pages_show_the_recorded_cells(tmp_path: Path) -> None:
    cells = read_cells(tmp_path, RECORD)
    assert tabled(cells) in PAGE.read_text()
    assert " ".join(judged(cells, FIXED).split()) in " ".join(SUMMARY.read_text().split())
    assert drawn(cells) == PICTURE.read_text()


def test_seeds_that_were_added_are_judged_apart() -> None:
    """What three seeds say stays as it is, beside what all five say."""
    cells = [cell("cpu", seed, right, right, task="dates") for seed, right in enumerate((45, 65, 70, 66, 64))]
    first, between, added = tabled(cells).split("\n\n")
    assert "| ns grpo | 3 | 40.0 % | 60.0 % | +20.0 [" in first
    assert between == "With seeds 3 and 4, which were added later:"
    assert "| ns grpo | 5 | 40.0 % | 62.0 % | +22.0 [" in added
    sentence = judged(cells, ["dates"])
    assert "Of 1 tasks, 1 were run (3 runs); mean lift above 0 with 95 %: 0 (none)." in sentence
    assert "With the seeds added later (dates 3, dates 4): mean lift above 0 with 95 %: 1 (dates)." in sentence


def test_runs_that_harm_ended_are_marked() -> None:
    assert f"({mcnemar(20, 0):.1g})* |" in tabled([cell("cpu", 0, 40, 20, done=1)])


def test_cells_are_shared_by_processes(tmp_path: Path) -> None:
    with alone(tmp_path / "cell.lock", wait=False) as first, alone(tmp_path / "cell.lock", wait=False) as second:
        assert (first, second) == (True, False)
    with alone(tmp_path / "cell.lock", wait=False) as again:
        assert again


@pytest.mark.parametrize("seed", range(5))
def test_a_played_day_of_jobs_writes_each_row_once(seed: int) -> None:
    campaign = Campaign(40, seed)
    outcome = campaign.run()
    assert outcome.written == outcome.rows
    assert not any(campaign.left)
    assert outcome.failures > 0
    assert outcome.efficiency >= 90


def test_lines_are_counted_by_room_of_committed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "src/pack/room/a.py": "1\n2\n",
        "src/pack/top.py": "1\n",
        "tests/t.py": "",
        "new.py": "1",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "src/again").symlink_to("pack")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "src", "tests"], cwd=tmp_path, check=True)
    monkeypatch.setattr(lines, "ROOT", tmp_path)
    files, counted = lines.counts()
    assert files == {"src/pack/room": 1, "src/pack": 1, "tests": 1}
    assert counted == {"src/pack/room": 2, "src/pack": 1, "tests": 0}
    (tmp_path / ".git").rename(tmp_path / "gone")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(BenchError, match="git does not list"):
        lines.counts()
