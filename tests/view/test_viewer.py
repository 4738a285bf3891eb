# SPDX-License-Identifier: Apache-2.0
"""The viewer over HTTP: what it shows of good and bad folders, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from tests.view.load_tests import write_load_test
from tests.view.results import PIXEL, benchmark, mixed, record, rich_records, shares, write_lines

from newskills.base.errors import DataError, ServerStartError
from newskills.view.assets import LIBRARIES, SCRIPTS, read_asset
from newskills.view.comparison.paired_runs import compare_run_folders
from newskills.view.samples import SampleFilter, iter_samples
from newskills.view.server import ViewOptions, serve_viewer

Reply = tuple[int, bytes, dict[str, str]]


class Client:
    """Asks as a browser does; `token` is part of every address."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.place, self.path = parts.netloc, parts.path

    def raw(self, path: str, **headers: str) -> Reply:
        connection = http.client.HTTPConnection(self.place, timeout=120)
        connection.putrequest("GET", path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        reply = connection.getresponse()
        found = reply.status, reply.read(), dict(reply.getheaders())
        connection.close()
        return found

    def get(self, name: str, **parameters: Any) -> Any:
        status, body, _ = self.raw(f"{self.path}api/{name}?{urlencode(parameters)}")
        assert status == 200, body
        return json.loads(body)

    def refused(self, name: str, **parameters: Any) -> str:
        status, body, _ = self.raw(f"{self.path}api/{name}?{urlencode(parameters)}")
        assert status in (400, 404), (status, body[:200])
        return str(json.loads(body)["error"])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    with ExitStack() as stack:
        yield lambda *folders: Client(stack.enter_context(serve_viewer(ViewOptions(folders=folders))))


def patiently(client: Client, name: str, **parameters: Any) -> Any:
    """The page once all records are indexed."""
    client.get(name, **parameters)
    while client.get("state")["indexing"]:
        pass
    return client.get(name, **parameters)


def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    benchmark(folder / "base", "sums", [mixed(40, 5, shift=s) for s in range(2)])
    benchmark(folder / "tuned", "sums", [mixed(40, 8, shift=s) for s in range(2)])
    benchmark(folder / "base", "rich", [rich_records()])
    return folder


def test_the_overview_tells_scores_shares_and_what_differs(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(results(tmp_path))
    page = client.get("overview")
    assert [run["id"] for run in page["runs"]] == ["base", "tuned"]
    cell = page["runs"][1]["benchmarks"]["sums"]
    assert cell["score"]["value"] == 80.0
    assert cell["score"]["low"] < 80 < cell["score"]["high"]
    assert (cell["counts"]["wrong"], cell["total"], cell["cost"], cell["seconds"]) == (16, 80, 0.025, 60.0)
    assert [one["setting"] for one in page["differences"]] == ["server.model"]


def test_a_benchmark_tells_by_seed_length_and_problem(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(results(tmp_path))
    page = patiently(client, "benchmark", run="base", benchmark="sums")
    assert [one["name"] for one in page["by_seed"]] == ["seed 0", "seed 1"]
    assert page["outcomes"] == {"correct": 40, "wrong": 40}
    assert sum(one["n"] for one in page["by_length"]) == 80
    agreement = page["agreement"]
    assert agreement["all"] + agreement["none"] + agreement["mixed"] == agreement["problems"] == 40
    assert sum(map(sum, page["tokens"]["counts"].values())) == 80
    rich = patiently(client, "benchmark", run="base", benchmark="rich")
    assert rich["damaged"] == 1
    assert {one["name"] for one in rich["by_subset"]} == {"(none)", "algebra", "geometry"}


def test_a_sample_tells_prompt_reply_and_why(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(results(tmp_path))
    at = {"run": "base", "benchmark": "rich", "file": 0}
    patiently(client, "benchmark", run="base", benchmark="rich")
    page = client.get("sample", number=0, **at)
    start, end = page["verdict"]["answer_span"]
    assert page["reply"][start:end] == "28"
    assert page["verdict"]["taken_from"] == "the last \\boxed{…} of the reply"
    tools = client.get("sample", number=2, **at)
    assert [one["role"] for one in tools["prompt"]["messages"]] == ["system", "user"]
    assert [one["role"] for one in tools["turns"]] == ["assistant", "tool", "assistant"]
    assert tools["prompt"]["exact"]
    assert client.get("sample", number=3, **at)["reasoning"].startswith("I think.")
    assert "invalid" in client.get("sample", number=8, **at)["damaged"]
    assert (
        client.refused("sample", number=99, **at) == "output.jsonl has 12 records; there is none with number 99."
    )


def test_a_sample_tells_the_settings_of_its_request_and_its_record(
    tmp_path: Path, shown: Callable[..., Client]
) -> None:
    client = shown(results(tmp_path))
    patiently(client, "benchmark", run="base", benchmark="rich")
    page = client.get("sample", run="base", benchmark="rich", file=0, number=4)
    assert page["settings"] == {"model": "base", "temperature": 0.7}
    assert list(page["record"]) == list(rich_records()[4])
    assert page["record"]["messages"][0]["content"][1] == {"type": "media", "text": "[image]"}


def test_records_are_handed_out_as_they_stand_in_their_files(
    tmp_path: Path, shown: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no record is left out, and an answer ends where it is large: the page asks again for the rest."""
    client = shown(results(tmp_path))
    at = {"run": "base", "benchmark": "rich"}
    patiently(client, "benchmark", **at)
    lines = (tmp_path / "results/base/eval-results/rich/output.jsonl").read_text().splitlines()
    rows = "0:4,0:8,0:1,0:0"
    assert client.get("records", rows=rows, **at) == [lines[4], None, lines[1], lines[0]]
    monkeypatch.setattr("newskills.view.records.MOST_RAW", len(f"{lines[4]}\n{lines[8]}\n"))
    assert client.get("records", rows=rows, **at) == [lines[4], None, lines[1]]
    assert "there is none with number 99" in client.refused("records", rows="0:99", **at)
    assert "there is none with number 7" in client.refused("records", rows="7:0", **at)


def test_records_of_a_run_at_work_have_their_verdicts(tmp_path: Path, shown: Callable[..., Client]) -> None:
    folder = tmp_path / "run/eval-results/sums"
    raw = {"id": "p0", "generation": "x", "_async_position": 0, "_async_key": "k"}
    write_lines(folder / "output.jsonl-async", [raw])
    verdict = {"outcome": "wrong", "fields": {"predicted_answer": "9"}, "grader": "math@6", "why": "exact (box)"}
    write_lines(folder / "output.jsonl-grades", [{"position": 0, "score": verdict}])
    client = shown(tmp_path)
    patiently(client, "benchmark", run="run", benchmark="sums")
    (text,) = client.get("records", run="run", benchmark="sums", rows="0:0")
    row = json.loads(text)
    assert (row["id"], row["outcome"], row["predicted_answer"]) == ("p0", "wrong", "9")
    assert "_async_key" not in row


def test_images_come_with_their_type_and_nothing_else_does(tmp_path: Path, shown: Callable[..., Client]) -> None:
    folder = results(tmp_path)
    (tmp_path / "outside.png").write_bytes(base64.b64decode(PIXEL))
    (folder / "inside.png").write_bytes(base64.b64decode(PIXEL))
    (folder / "page.png").write_text("<script>alert(1)</script>")
    rows = [
        record(n, image_path=str(path))
        for n, path in enumerate([tmp_path / "outside.png", "inside.png", "page.png"])
    ]
    benchmark(folder / "base", "pictures", [rows])
    client = shown(folder)
    patiently(client, "benchmark", run="base", benchmark="pictures")
    patiently(client, "benchmark", run="base", benchmark="rich")
    at = {"run": "base", "file": 0, "item": 0}

    def media(number: int, name: str = "pictures") -> Reply:
        return client.raw(f"{client.path}api/media?{urlencode({**at, 'benchmark': name, 'number': number})}")

    assert media(0)[0] == 404
    assert b"not in the folders" in media(0)[1]
    status, body, headers = media(1)
    assert (status, headers["content-type"], body[:4]) == (200, "image/png", b"\x89PNG")
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert media(2)[0] == 404
    assert media(4, "rich")[2]["content-type"] == "image/png"


def test_search_goes_on_until_the_end(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(results(tmp_path))
    patiently(client, "benchmark", run="base", benchmark="sums")
    at = {"run": "base", "benchmark": "sums", "file": 0, "offset": 0}
    found = client.get("search", q="WHAT IS 7 TIMES", **at)
    assert found["hits"] == [[0, 7], [1, 7]]
    assert found["next"] is None
    assert found["done"] == found["total"]
    assert client.get("search", q="no such text", **at)["hits"] == []
    assert "1 to 500 characters" in client.refused("search", q="", **at)


def test_a_comparison_tells_flips_stories_and_the_difference(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(results(tmp_path))
    for run in ("base", "tuned"):
        patiently(client, "benchmark", run=run, benchmark="sums")
    page = client.get("comparison", first="base", second="tuned", benchmark="sums")
    assert page["difference"]["value"] == pytest.approx(30.0)
    same = page["same"] + page["same_right"] + page["same_wrong"]
    assert page["gains"] + page["losses"] + same == page["common"] == 40
    assert sum(one["flips"] for one in page["stories"]) == page["gains"] + page["losses"] == len(page["flips"])
    assert [one["setting"] for one in page["settings"]] == ["server.model"]
    back = client.get("comparison", first="tuned", second="base", benchmark="sums")
    assert back["difference"]["value"] == pytest.approx(-30.0)


def test_stories_are_those_of_the_terminal_however_many_flips_there_are(
    tmp_path: Path, shown: Callable[..., Client]
) -> None:
    count = 3_300
    missed = [
        record(n, outcome="wrong", generation=f"It is {n}, or 7.", predicted_answer="7") for n in range(count)
    ]
    endings = [
        record(n, outcome=outcome, **fields)
        for n, (outcome, fields) in enumerate(
            [
                ("wrong", {"outcome_cause": "truncation"}),
                ("no_answer", {}),
                ("wrong", {"num_code_timeouts": 1}),
                ("wrong", {"outcome_cause": "sandbox"}),
                ("wrong", {}),
            ],
            start=count,
        )
    ]
    benchmark(tmp_path / "base", "sums", [[*missed, *endings]])
    benchmark(tmp_path / "tuned", "sums", [[record(n) for n in range(count + len(endings))]])
    client = shown(tmp_path)
    for run in ("base", "tuned"):
        patiently(client, "benchmark", run=run, benchmark="sums")
    page = client.get("comparison", first="base", second="tuned", benchmark="sums")
    compared = compare_run_folders([tmp_path / "base", tmp_path / "tuned"]).benchmarks[0]
    assert {f"gained: {one['name']}": one["flips"] for one in page["stories"]} == compared.stories
    assert compared.stories["gained: format or extraction"] == count
    assert compared.stories["gained: tool failed"] == 2
    again = client.get("comparison", first="base", second="tuned", benchmark="sums")
    assert again["stories"] == page["stories"]


def test_pages_and_terminal_count_the_same_problems_of_several_seeds(
    tmp_path: Path, shown: Callable[..., Client]
) -> None:
    draw = random.Random(8)
    chances = [draw.random() for _ in range(60)]
    for run, gain in (("base", 0.0), ("tuned", 0.1)):
        seeds = [
            [
                record(n, outcome="correct" if draw.random() < p + gain else "wrong", generation="It is 1.")
                for n, p in enumerate(chances)
            ]
            for _ in range(4)
        ]
        seeds[2][5] = record(5, outcome="unscored", error="timeout", generation="")
        benchmark(tmp_path / run, "sums", seeds)
    client = shown(tmp_path)
    for run in ("base", "tuned"):
        patiently(client, "benchmark", run=run, benchmark="sums")
    page = client.get("comparison", first="base", second="tuned", benchmark="sums")
    compared = compare_run_folders([tmp_path / "base", tmp_path / "tuned"]).benchmarks[0]
    assert (page["gains"], page["losses"]) == (compared.gained, compared.lost)
    assert page["change"] == compared.change == "share"
    assert page["words"] == {"gain": "right more often", "loss": "right less often"}
    assert page["gains"] + page["losses"] + page["same"] + page["same_right"] + page["same_wrong"] == 60
    assert page["same"] > 0
    assert sorted(flip["change"] for flip in page["flips"]) == sorted(flip.change for flip in compared.flips)
    assert all(re.fullmatch(r"\d/[34] → \d/[34]", flip["change"]) for flip in page["flips"])
    failing = sorted(flip["seeds"][flip["direction"] == "loss"] for flip in page["flips"])
    assert failing == sorted(flip.seed for flip in compared.flips if flip.seed is not None)
    assert {f"{one['direction']}: {one['name']}": one["flips"] for one in page["stories"]} == {
        name.replace("gained", "gain").replace("lost", "loss"): count for name, count in compared.stories.items()
    }


def test_scores_between_right_and_wrong_are_compared_as_the_terminal_does(
    tmp_path: Path, shown: Callable[..., Client]
) -> None:
    for run, gain in (("base", 0.0), ("tuned", 0.125)):
        benchmark(tmp_path / run, "graphwalks", [shares(40, gain), shares(40, gain / 2)])
    client = shown(tmp_path)
    for run in ("base", "tuned"):
        patiently(client, "benchmark", run=run, benchmark="graphwalks")
    page = client.get("comparison", first="base", second="tuned", benchmark="graphwalks")
    compared = compare_run_folders([tmp_path / "base", tmp_path / "tuned"]).benchmarks[0]
    assert page["score"] == compared.score == "f1"
    assert page["difference"]["value"] == pytest.approx(compared.difference) == pytest.approx(9.375 * 38 / 40)
    assert (page["gains"], page["losses"], page["same"]) == (38, 0, 2)
    assert page["flips"][0]["first"] < page["flips"][0]["second"]


def test_a_training_is_shown_with_its_samples(tmp_path: Path, shown: Callable[..., Client]) -> None:
    folder = tmp_path / "training/grpo"
    write_lines(
        folder / "metrics.jsonl", [{"step": n, "loss": 1 / n, "reward": n / 9, "kl": 0.1} for n in range(1, 10)]
    )
    responses = [{"text": "4", "reward": 1.0, "components": {"verdict": 1.0}}]
    write_lines(
        folder / "samples.jsonl", [{"step": 3, "problem": "2+2", "ground_truth": "4", "responses": responses}]
    )
    pieces = [{"text": "2+2=", "learnt": False}, {"text": "4<end>", "learnt": True}]
    write_lines(folder / "examples.jsonl", [{"tokens": 6, "pieces": pieces}])
    (folder / "settings.json").write_text('{"learning_rate": 0.1}')
    tokens = [["4", -1.5, -0.25], ["<end>", -0.1, -0.2]]
    write_lines(folder / "explained-000003.json", [{"step": 3, "groups": [{"responses": [{"tokens": tokens}]}]}])
    client = shown(tmp_path / "training")
    (training,) = client.get("training", ids="grpo")["trainings"]
    assert {one["name"]: one["group"] for one in training["series"]} == {
        "loss": "Loss",
        "reward": "Reward",
        "kl": "KL and entropy",
    }
    assert training["sample_steps"] == training["explained_steps"] == [3]
    assert training["examples"] == [{"tokens": 6, "pieces": pieces}]
    reply = client.get("rollouts", id="grpo", step=3)[0]["responses"][0]
    assert reply["reward"] == 1.0
    assert reply["tokens"] == [
        {"text": "4", "before": -1.5, "after": -0.25},
        {"text": "<end>", "before": -0.1, "after": -0.2},
    ]
    assert "Unknown training" in client.refused("training", ids="none")


def test_load_tests_are_shown_and_broken_ones_are_notes(tmp_path: Path, shown: Callable[..., Client]) -> None:
    written = write_load_test(tmp_path / "tests/vllm")
    (tmp_path / "tests/broken").mkdir()
    (tmp_path / "tests/broken/load_test.json").write_text('{"levels": 3}')
    client = shown(tmp_path / "tests")
    assert client.get("overview")["load_tests"] == client.get("matrix")["load_tests"] == ["broken", "vllm"]
    page = client.get("load_tests")
    (test,) = page["tests"]
    assert (test["id"], test["highest"]) == ("vllm", 2.0)
    assert test["levels"][2]["errors"] == {"rate limit": 5}
    assert test["levels"][0]["ttft_ms"]["p99"] == written.levels[0].ttft_ms.p99
    assert len(page["notes"]) == 1
    assert "broken/load_test.json cannot be read" in page["notes"][0]


def test_metrics_have_plain_names_units_and_an_order(tmp_path: Path, shown: Callable[..., Client]) -> None:
    """As the cpu, trl and tinker trainers write them; parts of rewards are taken from samples where no metric has
    them."""
    first = {
        "entropy": 1.0,
        "clip_ratio/region_mean": 0.1,
        "spread": 0.75,
        "cut_off": 0.5,
        "reward": 1.0,
        "odd": 1,
    }
    parts = [{"components": {"verdict": 1.0, "format": 0.5}}, {"components": {"verdict": 0.0, "format": 0.5}}]
    write_lines(
        tmp_path / "own/metrics.jsonl", [{"step": 1, **first, "reward/format": 0.25, "correct/level=5": 1.0}]
    )
    write_lines(tmp_path / "own/samples.jsonl", [{"step": 1, "problem": "2+2", "responses": parts}])
    write_lines(tmp_path / "other/metrics.jsonl", [{"step": 1, "reward": 0.5}])
    write_lines(
        tmp_path / "other/samples.jsonl", [{"step": 1, "problem": "2+2", "responses": [*parts, "damaged"]}]
    )
    client = shown(tmp_path)
    page = client.get("training", ids="own|other")
    own, other = page["trainings"]
    curves = [(one["group"], one["title"], one["unit"], one["points"][0][1]) for one in own["series"]]
    assert sorted(curves, key=lambda curve: page["groups"].index(curve[0])) == [
        ("Reward", "reward, mean", "", 1.0),
        ("Reward parts", "format", "", 0.25),
        ("By benchmark and difficulty", "correct samples: level 5", "share", 1.0),
        ("Spread of groups", "groups without spread", "share", 0.25),
        ("Length", "truncated replies", "share", 0.5),
        ("KL and entropy", "entropy", "nats per token", 1.0),
        ("KL and entropy", "clipped", "share", 0.1),
        ("Other", "odd", "", 1),
    ]
    assert {one["name"]: one["points"] for one in other["series"]} == {
        "reward": [[1, 0.5]],
        "reward/verdict": [[1, 0.5]],
        "reward/format": [[1, 0.5]],
    }


def test_problems_of_a_step_tell_the_spread_of_their_rewards(tmp_path: Path, shown: Callable[..., Client]) -> None:
    def group(*rewards: float | None) -> dict[str, Any]:
        return {
            "step": 1,
            "problem": "2+2",
            "responses": [{"text": "four", "reward": reward} for reward in rewards],
        }

    write_lines(tmp_path / "rl/metrics.jsonl", [{"step": 1, "reward": 0.5}])
    write_lines(tmp_path / "rl/samples.jsonl", [group(1.0, 0.0, None), group(1.0, 1.0), group(None)])
    problems = shown(tmp_path).get("rollouts", id="rl", step=1)
    assert [(one["mean"], one["deviation"], one["without_spread"]) for one in problems] == [
        (0.5, pytest.approx(0.5**0.5), False),
        (1.0, 0.0, True),
        (None, None, False),
    ]
    assert problems[0]["responses"][0]["characters"] == 4


# ---- Bad input ------------------------------------------------------------------------------------------------------


def test_an_empty_folder_is_shown_as_such_and_a_missing_one_refused(
    tmp_path: Path, shown: Callable[..., Client]
) -> None:
    page = shown(tmp_path).get("overview")
    assert (page["runs"], page["trainings"]) == ([], [])
    with (
        pytest.raises(DataError, match="There is no folder"),
        serve_viewer(ViewOptions(folders=(tmp_path / "none",))),
    ):
        pass


def test_a_run_that_is_being_written_grows_on_the_page(tmp_path: Path, shown: Callable[..., Client]) -> None:
    folder = tmp_path / "run/eval-results/sums"
    raw = [{"id": f"p{n}", "generation": "x", "_async_position": n, "_async_key": "k"} for n in range(6)]
    write_lines(folder / "output.jsonl-async", raw[:2])
    (folder / "output.jsonl.run.json").write_text('{"status": "running", "settings": {}, "rows": 6, "done": 2}')
    client = shown(tmp_path)
    before = client.get("state")["state"]
    assert patiently(client, "benchmark", run="run", benchmark="sums")["cell"]["status"] == "running"
    with write_lines(folder / "output.jsonl-async", raw[:5]).open("a") as file:
        file.write('{"id": "half')
    while client.get("state")["state"] == before:
        pass
    while sum(patiently(client, "benchmark", run="run", benchmark="sums")["outcomes"].values()) != 5:
        pass


def test_a_run_at_work_shows_the_rows_that_are_recorded_of_all_its_seeds(
    tmp_path: Path, shown: Callable[..., Client]
) -> None:
    folder = tmp_path / "run/eval-results/svamp"
    raw = [{"id": f"p{n}", "generation": "x", "_async_position": n, "_async_key": "k"} for n in range(48)]
    write_lines(folder / "output-rs0.jsonl-async", raw)
    state = {"status": "running", "settings": {}, "rows": 100, "done": 0}
    (folder / "output-rs0.jsonl.run.json").write_text(json.dumps(state))
    units: list[dict[str, Any]] = [{"name": "svamp", "seed": seed, "config": {}} for seed in (0, 1)]
    units.append({"name": "gsm8k", "seed": 2, "config": {}})
    (tmp_path / "run/run.json").write_text(json.dumps({"units": units}))
    client = shown(tmp_path)
    patiently(client, "benchmark", run="run", benchmark="svamp")
    (run,) = client.get("overview")["runs"]
    cell = run["benchmarks"]["svamp"]
    assert (cell["status"], cell["done"], cell["rows"]) == ("running", 48, 200)
    before = client.get("state")["state"]
    (folder / "output-rs0.jsonl-async").unlink()
    benchmark(tmp_path / "run", "svamp", [[record(n) for n in range(100)]])
    (folder / "output.jsonl").rename(folder / "output-rs0.jsonl")
    (folder / "output-rs0.jsonl.run.json").write_text(json.dumps(state | {"status": "done", "done": 100}))
    write_lines(folder / "output-rs1.jsonl-async", raw[:7])
    (folder / "output-rs1.jsonl.run.json").write_text(json.dumps(state))
    while client.get("state")["state"] == before:
        pass
    cell = patiently(client, "benchmark", run="run", benchmark="svamp")["cell"]
    assert (cell["status"], cell["done"], cell["rows"]) == ("running", 107, 200)


def test_runs_of_different_benchmarks_and_rows_say_what_is_missing(
    tmp_path: Path, shown: Callable[..., Client]
) -> None:
    benchmark(tmp_path / "a", "sums", [mixed(30, 5)])
    benchmark(tmp_path / "b", "sums", [mixed(50, 5)[20:]])
    benchmark(tmp_path / "b", "other", [mixed(5, 5)])
    client = shown(tmp_path)
    for run in "ab":
        patiently(client, "benchmark", run=run, benchmark="sums")
    page = client.get("comparison", first="a", second="b", benchmark="sums")
    assert (page["common"], page["only_first"], page["only_second"]) == (10, 20, 20)
    assert "Unknown benchmark in a 'other'" in client.refused(
        "comparison", first="a", second="b", benchmark="other"
    )


@pytest.mark.nightly
def test_five_hundred_runs_are_listed(tmp_path: Path, shown: Callable[..., Client]) -> None:
    for number in range(500):
        folder = tmp_path / f"run-{number:03}/eval-results/sums"
        write_lines(folder / "output.jsonl", [record(number)])
        (folder / "metrics.json").write_text(json.dumps({"sums": {"pass@1": {"symbolic_correct": 100.0}}}))
        ledger = {"sums": {"ledger": {"correct": 1, "wrong": 0, "no_answer": 0, "unscored": 0}}}
        (folder / "metrics_extended.json").write_text(json.dumps(ledger))
    page = shown(tmp_path).get("overview")
    assert len(page["runs"]) == 500
    assert {run["benchmarks"]["sums"]["score"]["value"] for run in page["runs"]} == {100.0}
    assert not list(tmp_path.rglob(".view"))


def test_a_newer_version_and_broken_files_are_told(tmp_path: Path, shown: Callable[..., Client]) -> None:
    folder = benchmark(tmp_path / "a", "sums", [mixed(5, 5)])
    extended = {"sums": {"numbers": [1], "ledger": None, "versions": {"newskills": "99.1.0"}}}
    (folder / "metrics_extended.json").write_text(json.dumps(extended))
    (folder / "metrics.json").write_text("[]")
    (folder / "output.jsonl.run.json").write_text('{"settings": "what"}')
    (folder / "benchmark.json").write_bytes(b"\xff\xfe")
    page = shown(tmp_path).get("overview")
    assert page["runs"][0]["benchmarks"]["sums"]["newer"] == "99.1.0"


def test_huge_texts_are_cut_with_a_notice(tmp_path: Path, shown: Callable[..., Client]) -> None:
    benchmark(tmp_path / "a", "sums", [[record(0, generation="long " * 200_000)]])
    client = shown(tmp_path)
    patiently(client, "benchmark", run="a", benchmark="sums")
    reply = client.get("sample", run="a", benchmark="sums", file=0, number=0)["reply"]
    assert reply.endswith("… 800,000 more characters are not shown.")


def fitting(client: Client, text: str, **at: Any) -> set[tuple[int, int]]:
    """All records that fit a filter, asked for in turns as the page does."""
    hits: set[tuple[int, int]] = set()
    place: list[int] | None = [0, 0]
    while place:
        answer = client.get("filter", q=text, file=place[0], offset=place[1], **at)
        hits.update((file, number) for file, number in answer["hits"])
        place = answer["next"]
    assert answer["done"] == answer["total"]
    return hits


@pytest.mark.parametrize(
    "text",
    [
        "outcome = wrong",
        "outcome = wrong and tokens > 30",
        "score = 1 and seed = 1",
        "cause = model or extracted = none",
        "subset ~ algebra",
        "finish_reason = length",
        "not (reply ~ boxed) and outcome != correct",
        "question ~ 'TIMES ONE' and id in (p3, p4)",
    ],
)
def test_a_filter_chooses_the_samples_that_the_terminal_shows(
    tmp_path: Path, shown: Callable[..., Client], text: str
) -> None:
    folder = results(tmp_path)
    client = shown(folder)
    chosen = 0
    for benchmark_name in ("sums", "rich"):
        at = {"run": "base", "benchmark": benchmark_name}
        patiently(client, "benchmark", **at)
        wanted = SampleFilter(benchmarks=(benchmark_name,), where=text)
        expected = {
            (sample.seed or 0, sample.record["id"]) for sample in iter_samples(folder / "base", wanted, [])
        }
        rows = fitting(client, text, **at)
        ids = {(file, client.get("sample", file=file, number=number, **at)["id"]) for file, number in sorted(rows)}
        assert ids == expected
        chosen += len(ids)
    assert chosen


def test_a_filter_knows_scores_between_right_and_wrong(tmp_path: Path, shown: Callable[..., Client]) -> None:
    benchmark(tmp_path / "run", "graphwalks", [shares(40, 0.0)])
    client = shown(tmp_path)
    at = {"run": "run", "benchmark": "graphwalks"}
    patiently(client, "benchmark", **at)
    assert len(fitting(client, "score = 0.5", **at)) == 10
    assert len(fitting(client, "score >= 0.5", **at)) == 20


def test_a_filter_that_cannot_be_read_is_told(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(results(tmp_path))
    at = {"run": "base", "benchmark": "sums", "file": 0, "offset": 0}
    assert "outcome" in client.refused("filter", q="outcom = wrong", **at)
    assert client.refused("filter", q="tokens >", **at)


# ---- Refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api/overview",
        "/static/app.js",
        "{token}static/../../server.py",
        "{token}static/..%2f..%2fserver.py",
        "{token}static/%2e%2e/server.py",
        "{token}static//etc/passwd",
        "{token}static/%2Fetc%2Fpasswd",
        "{token}static/katex.LICENSE",
        "{token}static/markdown-it.LICENSE",
        "{token}api/../../../../etc/passwd",
        "{token}etc/passwd",
    ],
)
def test_no_other_address_is_answered(tmp_path: Path, shown: Callable[..., Client], path: str) -> None:
    client = shown(results(tmp_path))
    status, body, headers = client.raw(path.replace("{token}", client.path))
    assert status == 404
    assert json.loads(body)["error"].startswith("There is nothing at this address.")
    assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize("name", ["../../etc", "/etc/passwd", "..%2f..", "base/../../x", "base\0", "."])
def test_names_of_runs_are_no_paths(tmp_path: Path, shown: Callable[..., Client], name: str) -> None:
    client = shown(results(tmp_path))
    assert "Unknown run" in client.refused("benchmark", run=name, benchmark="sums")
    assert "Unknown benchmark" in client.refused("benchmark", run="base", benchmark=name)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path, shown: Callable[..., Client]) -> None:
    secret = benchmark(tmp_path / "secret", "sums", [mixed(5, 5)])
    folder = results(tmp_path)
    (folder / "linked").symlink_to(tmp_path / "secret")
    other = folder / "base/eval-results/stolen"
    other.mkdir()
    (other / "output.jsonl").symlink_to(secret / "output.jsonl")
    (folder / "base/eval-results/rich/metrics.json").symlink_to(secret / "output.jsonl")
    client = shown(folder)
    page = client.get("overview")
    assert {run["id"] for run in page["runs"]} == {"base", "tuned"}
    assert "stolen" not in page["benchmarks"]
    assert any("leads out of the folder" in note for note in page["notes"])


def test_a_file_that_becomes_a_link_later_is_refused(tmp_path: Path, shown: Callable[..., Client]) -> None:
    folder = results(tmp_path)
    client = shown(folder)
    at = {"run": "base", "benchmark": "rich"}
    patiently(client, "benchmark", **at)
    output = folder / "base/eval-results/rich/output.jsonl"
    shutil.copy(output, tmp_path / "elsewhere.jsonl")
    output.unlink()
    os.symlink(tmp_path / "elsewhere.jsonl", output)
    assert client.raw(f"{client.path}api/sample?{urlencode({**at, 'file': 0, 'number': 0})}")[0] in (400, 404)


def test_only_this_machine_may_name_the_page(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(results(tmp_path))
    assert client.raw(client.path, Host="evil.invalid")[0] == 403
    assert client.raw(client.path, Host="localhost:1")[0] == 200


def test_nothing_is_changed_over_http(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(results(tmp_path))
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        connection = http.client.HTTPConnection(client.place, timeout=300)
        connection.request(method, f"{client.path}api/overview")
        assert connection.getresponse().status in (404, 405)
        connection.close()


def test_a_port_that_is_taken_is_told(tmp_path: Path, shown: Callable[..., Client]) -> None:
    client = shown(tmp_path)
    options = ViewOptions(folders=(tmp_path,), port=int(client.place.rpartition(":")[2]))
    with pytest.raises(ServerStartError, match="cannot listen"), serve_viewer(options):
        pass


def test_tokens_are_random(tmp_path: Path, shown: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    paths = set()
    for user in range(3):
        monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / f"cache-{user}"))
        paths.add(shown(tmp_path).path)
    assert len(paths) == 3
    assert all(len(path) > 30 for path in paths)


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_of_others_are_the_files_that_were_checked_in(name: str) -> None:
    page = Path(__file__).parents[2] / "decisions/0024-the-viewer-keeps-an-index.md"
    assert hashlib.sha256(read_asset(name) or b"").hexdigest() in page.read_text()


def test_scripts_of_the_page_put_in_no_markup() -> None:
    for name in SCRIPTS:
        text = (read_asset(name) or b"").decode()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|https?://(?!www\.w3)", text
        )
