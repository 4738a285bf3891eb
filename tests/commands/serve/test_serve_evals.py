# SPDX-License-Identifier: Apache-2.0
"""`ns serve_evals` as a process: the protocol of trainers, its refusals, and what it does better."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of
from tests.commands.trainers import Served, adding, order, prepare, serving
from tests.conftest import FakeServerFactory
from tests.night import NIGHTLY
from tests.server import Answer, FakeServer, Fault, Script

ROUTER = "http://127.0.0.1:9"
SAMPLED = {
    "name": "aime25",
    "n_samples_per_eval_prompt": 4,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": -1,
    "max_response_len": 8192,
}


@pytest.fixture(scope="module")
def model() -> Iterator[FakeServer]:
    with FakeServer(adding()) as server:
        yield server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(prepare(tmp_path_factory.mktemp("evals"))) as server:
        yield server


@pytest.fixture
def calm(served: Served, model: FakeServer) -> Served:
    """The server and a model that is as it was."""
    model.script = adding()
    return served


def test_the_answer_has_everything_that_the_reference_has(calm: Served, model: FakeServer) -> None:
    before = len(model.records)
    status, answer = calm.evaluate(SAMPLED, "gsm8k", router=f"{model.url}/")
    assert status == 200, answer
    assert set(answer) == {"job_id", "command", "output_dir", "log_path", "raw_metrics", "runs"}
    assert len(answer["job_id"]) == 32
    folder = Path(answer["output_dir"])
    assert folder.name.endswith("-rollout-3")
    metrics = answer["raw_metrics"]["aime25"]
    assert metrics["pass@1[avg-of-4]"]["symbolic_correct"] == 100.0
    assert metrics["pass@1[avg-of-4]"]["num_entries"] == 10
    assert {"pass@4", "majority@4"} <= set(metrics)
    own = json.loads((folder / "aime25/eval-results/aime25/metrics.json").read_text())["aime25"]
    assert own == metrics
    sampled, greedy = answer["runs"]
    assert answer["command"] == f"{sampled['command']}\n{greedy['command']}"
    assert sampled["output_dir"] == str(folder / "aime25")
    assert answer["log_path"] == greedy["log_path"] == str(folder / "gsm8k/skills_eval.log")
    assert "symbolic_correct" in Path(sampled["log_path"]).read_text()
    assert f"++server.base_url={model.url}/v1 ++server.model=slime-openai-model" in sampled["command"]
    bodies = [record.body for record in model.records[before:]]
    assert {body["model"] for body in bodies} == {"slime-openai-model"}
    assert sum(body.get("temperature") == 1.0 and body["max_tokens"] == 8192 for body in bodies) == 40
    assert "aime25/pass@1[avg-of-4] num_entries=10" in calm.said
    assert calm.call("/health") == (200, {"status": "ok"})


def test_defaults_fill_what_benchmarks_leave_open(calm: Served, model: FakeServer) -> None:
    body = order(model.url, {"name": "aime25", "temperature": 0.5}, rollout=4)
    status, answer = calm.call("/evaluate", {**body, "defaults": {"temperature": 0.9, "max_response_len": 77}})
    assert status == 200
    assert "++inference.temperature=0.5 ++inference.tokens_to_generate=77" in answer["command"]


def test_nothing_to_do_is_no_error(calm: Served) -> None:
    status, answer = calm.call("/evaluate", order(ROUTER))
    assert (status, answer["raw_metrics"]) == (200, {})
    assert len(answer["job_id"]) == 32
    assert answer["warning"]
    assert [answer[key] for key in ("command", "output_dir", "log_path")] == [None, None, None]


GOOD = order(ROUTER, "aime25")
REFUSED = {
    "an empty body": (b"", "not a JSON object"),
    "malformed JSON": (b'{"rollout_id": 3', "not a JSON object"),
    "text that is no UTF-8": (b'{"rollout_id": 3, "router_url": "\xff"}', "not a JSON object"),
    "a number where an object belongs": (b"3", "is not valid"),
    "a list where an object belongs": ([GOOD], "is not valid"),
    "no rollout_id": ({k: v for k, v in GOOD.items() if k != "rollout_id"}, "rollout_id"),
    "a rollout_id in words": ({**GOOD, "rollout_id": "three"}, "rollout_id"),
    "a rollout_id with a fraction": ({**GOOD, "rollout_id": 3.5}, "rollout_id"),
    "no router_url": ({k: v for k, v in GOOD.items() if k != "router_url"}, "router_url"),
    "a router_url that is none": ({**GOOD, "router_url": "file:///etc/passwd"}, "router_url"),
    "an unknown key": ({**GOOD, "model": "x"}, "model"),
    "an unknown key of a benchmark": (order(ROUTER, {"name": "aime25", "runtime": 1}), "runtime"),
    "an unknown key of the defaults": ({**GOOD, "defaults": {"seed": 1}}, "seed"),
    "a benchmark without a name": (order(ROUTER, {}), "name"),
    "a name with a colon": (order(ROUTER, "aime25:8"), "n_samples_per_eval_prompt"),
    "a name that is a path": (order(ROUTER, "../../etc"), "not the name of a benchmark"),
    "a name that is a file of code": (order(ROUTER, "setup.py"), "not the name of a benchmark"),
    "a name with a comma": (order(ROUTER, "aime25,gsm8k"), "not the name of a benchmark"),
    "a benchmark twice": (order(ROUTER, "aime25", "aime25"), "twice"),
    "fewer than no samples": (order(ROUTER, {"name": "aime25", "n_samples_per_eval_prompt": -1}), "n_samples"),
    "a temperature in words": (order(ROUTER, {"name": "aime25", "temperature": "hot"}), "temperature"),
    "an unknown benchmark": (order(ROUTER, "aime52"), "did you mean"),
    "a benchmark without data": (order(ROUTER, "math-500"), "ns prepare_data math-500"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_before_anything_begins(calm: Served, case: str) -> None:
    body, word = REFUSED[case]
    before = calm.jobs
    status, answer = calm.call("/evaluate", body)
    assert (status, set(answer)) == (400, {"error"})
    assert word in answer["error"]
    assert calm.jobs == before
    assert not [path for path in (calm.folder / "root").iterdir() if path.is_dir() and not list(path.iterdir())]


def test_other_methods_and_places_are_answered_in_json(calm: Served) -> None:
    for path, method, expected in (
        ("/evaluate", "GET", 405),
        ("/health", "POST", 405),
        ("/jobs", "DELETE", 405),
        ("/nowhere", "GET", 404),
        ("/jobs/0123", "GET", 404),
        ("/status/0123", "GET", 404),
        ("/jobs/0123", "DELETE", 404),
    ):
        status, answer = calm.call(path, method=method)
        assert (status, set(answer)) == (expected, {"error"}), path
    assert calm.call("/evaluate", b"[" + b"1," * 6_000_000 + b"1]")[0] == 413
    assert calm.call("/evaluate", GOOD, Origin="http://evil.example")[0] == 403


def test_a_benchmark_that_fails_takes_no_other_with_it(calm: Served, model: FakeServer, tmp_path: Path) -> None:
    model.script = adding(Fault(kind="status", status=400, message="no such thing", marker="Shun"))
    spoiled = calm.folder / "data/aime24/test.jsonl"
    usual = spoiled.read_text()
    spoiled.write_text(usual.replace("Add 5", "Shun 5"))
    try:
        status, answer = calm.evaluate("aime24", "gsm8k", router=model.url, rollout=5)
        assert status == 200
        assert set(answer["raw_metrics"]) == {"gsm8k"}
        assert set(answer["errors"]) == {"aime24"}
        assert "1 of 10 rows" in answer["errors"]["aime24"]
        assert "1 of 10 rows" in (Path(answer["output_dir"]) / "aime24/skills_eval.log").read_text()
    finally:
        spoiled.write_text(usual)


def test_where_all_fail_the_answer_is_an_error_and_a_repetition_does_the_rest(
    calm: Served, model: FakeServer
) -> None:
    model.script = adding(Fault(kind="status", status=400, message="no such thing", marker="Add 5"))
    status, answer = calm.evaluate("aime24", router=model.url, rollout=6)
    assert status == 500
    assert answer["raw_metrics"] == {}
    assert "aime24: " in answer["error"]
    assert "skills_eval.log" in answer["error"]
    model.script = adding()
    before = len(model.records)
    status, again = calm.evaluate("aime24", router=model.url, rollout=6)
    assert (status, again["job_id"]) == (200, answer["job_id"])
    assert again["raw_metrics"]["aime24"]["pass@1"]["symbolic_correct"] == 100.0
    assert len(model.records) - before == 1


def test_many_requests_at_once(calm: Served, model: FakeServer) -> None:
    many = 50 if NIGHTLY else 12
    before = {path.name for path in calm.jobs}
    with ThreadPoolExecutor(many) as pool:
        answers = list(pool.map(lambda n: calm.evaluate("aime25", router=model.url, rollout=100 + n), range(many)))
    assert [status for status, _ in answers] == [200] * many
    assert len({answer["output_dir"] for _, answer in answers}) == many
    assert len({path.name for path in calm.jobs} - before) == many
    for number, (_, answer) in enumerate(answers):
        assert answer["output_dir"].endswith(f"-rollout-{100 + number}")
        assert answer["raw_metrics"]["aime25"]["pass@1"]["symbolic_correct"] == 100.0


def test_the_same_request_fifty_times_at_once_runs_once(calm: Served, model: FakeServer) -> None:
    before = len(model.records)
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: calm.evaluate("aime25", router=model.url, rollout=7), range(50)))
    assert {answer["job_id"] for _, answer in answers} == {answers[0][1]["job_id"]}
    assert len(model.records) - before == 10


def test_without_waiting(calm: Served, model: FakeServer) -> None:
    model.script = adding(latency=0.2)
    status, begun = calm.call("/jobs", order(model.url, "aime25", rollout=8))
    assert (status, begun["status"]) == (202, "queued")
    assert begun["status_url"] == f"/status/{begun['job_id']}"
    assert calm.call(begun["status_url"])[1]["status"] in ("queued", "running")
    found = calm.until(begun["job_id"], "completed")
    assert found["runs"][0]["status"] == "completed"
    assert "log" in found["runs"][0]
    done = calm.call(begun["status_url"])[1]
    assert done["status"] == "completed"
    assert done["raw_metrics"]["aime25"]["pass@1"]["symbolic_correct"] == 100.0
    listed = calm.call("/jobs")[1]["jobs"]
    assert listed[0]["job_id"] == begun["job_id"]


def test_a_job_is_cancelled_and_then_forgotten(calm: Served, model: FakeServer) -> None:
    model.script = adding(Fault(kind="hang"))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(calm.evaluate, "aime25", router=model.url, rollout=9)
        while not (found := [job for job in calm.call("/jobs")[1]["jobs"] if job["rollout_id"] == 9]):
            time.sleep(0.05)
        job_id = found[0]["job_id"]
        calm.until(job_id, "running")
        status, stopped = calm.call(f"/jobs/{job_id}", method="DELETE")
        assert (status, stopped["status"]) == (200, "cancelled")
        status, answer = waiting.result(300)
    assert status == 500
    assert "cancelled" in answer["error"]
    assert calm.call(f"/status/{job_id}")[1]["status"] == "cancelled"
    assert calm.call(f"/jobs/{job_id}", method="DELETE")[0] == 200
    assert calm.call(f"/jobs/{job_id}")[0] == 404
    model.script = adding()
    status, answer = calm.evaluate("aime25", router=model.url, rollout=9)
    assert status == 200
    assert answer["job_id"] != job_id


def test_a_client_whose_patience_ends_five_times_gets_the_one_run(calm: Served, model: FakeServer) -> None:
    model.script = adding(latency=1.6)
    before = len(model.records)
    ids = set()
    for attempt in range(5):
        try:
            status, answer = calm.evaluate(
                "aime25", router=model.url, rollout=10, timeout=0.4 if attempt < 4 else 60
            )
        except TimeoutError:
            ids |= {job["job_id"] for job in calm.call("/jobs")[1]["jobs"] if job["rollout_id"] == 10}
            continue
        break
    assert attempt == 4
    assert (status, ids) == (200, {answer["job_id"]})
    assert len(model.records) - before == 10


def test_a_result_that_nobody_took_waits_for_the_repetition(calm: Served, model: FakeServer) -> None:
    model.script = adding(latency=0.5)
    before = len(model.records)
    with pytest.raises(TimeoutError):
        calm.evaluate("aime25", router=model.url, rollout=11, timeout=0.2)
    job_id = next(job["job_id"] for job in calm.call("/jobs")[1]["jobs"] if job["rollout_id"] == 11)
    calm.until(job_id, "completed")
    assert calm.evaluate("aime25", router=model.url, rollout=11)[1]["job_id"] == job_id
    assert len(model.records) - before == 10


def test_other_samplings_and_rollouts_are_other_jobs(calm: Served, model: FakeServer) -> None:
    answers = [
        calm.evaluate({"name": "aime25", "temperature": 0.25}, router=model.url, rollout=12),
        calm.evaluate({"name": "aime25", "temperature": 0.75}, router=model.url, rollout=12),
        calm.evaluate({"name": "aime25", "temperature": 0.25}, router=model.url, rollout=13),
    ]
    assert len({answer["output_dir"] for _, answer in answers}) == 3


# Servers with settings of their own


def test_one_limit_for_all_requests(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(adding(latency=0.05))
    sampled = [{"name": name, "n_samples_per_eval_prompt": 2} for name in ("aime24", "aime25", "gsm8k")]
    with (
        serving(prepare(tmp_path), "--max-concurrent-requests", "7") as served,
        ThreadPoolExecutor(3) as pool,
    ):
        answers = list(pool.map(lambda n: served.evaluate(*sampled, router=model.url, rollout=n), range(3)))
    assert [status for status, _ in answers] == [200] * 3
    assert len(model.records) == 180
    assert model.max_in_flight == 7


def test_killed_while_it_runs_it_goes_on_where_it_was(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    prepare(tmp_path, ("gsm8k",))
    prepare(tmp_path, ("aime25",), extra="Slowly: ")
    model = fake_server(adding(Fault(kind="hang", marker="Slowly: Add 7")))
    with serving(tmp_path) as served, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.evaluate, "gsm8k", "aime25", router=model.url)
        while len(model.records) < 20 or not list(tmp_path.glob("root/*/gsm8k/eval-results/gsm8k/metrics.json")):
            time.sleep(0.05)
        job = served.call("/jobs")[1]["jobs"][0]
        while served.call(f"/jobs/{job['job_id']}")[1]["benchmarks"]["gsm8k"] != "completed":
            time.sleep(0.05)
        served.process.kill()
        with pytest.raises(OSError):  # noqa: PT011 - the connection is gone, in one way or another
            waiting.result(300)
    before = len(model.records)
    model.script = adding()
    with serving(tmp_path) as served:
        assert served.call("/jobs")[1]["jobs"][0]["status"] == "interrupted"
        status, answer = served.evaluate("gsm8k", "aime25", router=model.url)
        assert (status, answer["job_id"]) == (200, job["job_id"])
        assert len(model.records) - before == 1
        assert [answer["raw_metrics"][name]["pass@1"]["num_entries"] for name in ("gsm8k", "aime25")] == [10, 10]
        assert len(served.jobs) == 1


def test_a_server_that_is_stopped_saves_what_runs_and_says_so(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    model = fake_server(adding(latency=0.6))
    with serving(prepare(tmp_path), "--max-concurrent-requests=5") as served, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.evaluate, "aime25", router=model.url)
        while not model.records:
            time.sleep(0.02)
        assert served.stop() == 0
        status, answer = waiting.result(300)
    assert status == 503
    assert "resumes from there" in answer["error"]
    done = len(model.records)
    assert 0 < done < 10
    with serving(tmp_path) as served:
        status, again = served.evaluate("aime25", router=model.url)
    assert (status, again["job_id"]) == (200, answer["job_id"])
    assert len(model.records) == 10


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    with serving(prepare(tmp_path)):
        done = ns("ns serve_evals --port=0 --host=127.0.0.1 --output-root=root", cwd=tmp_path)
    assert done.returncode == 2
    assert "is in use by process" in done.stderr


def test_late_is_not_a_repetition(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """The same request of a trainer that was started anew means other weights."""
    model = fake_server(adding())
    with serving(prepare(tmp_path), "--attach-seconds=0") as served:
        first = served.evaluate("aime25", router=model.url)[1]
        second = served.evaluate("aime25", router=model.url)[1]
        assert first["output_dir"] != second["output_dir"]
    assert len(model.records) == 20


def test_only_with_the_token(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(adding())
    (prepare(tmp_path) / "token").write_text("let me in\n")
    for option, env in (("--token-file=token", {}), ("--token-env=MINE", {"MINE": "let me in"})):
        with serving(tmp_path, option, env=env) as served:
            assert served.call("/health")[0] == 200
            for header in ({}, {"Authorization": "Bearer let me out"}, {"Authorization": "let me in"}):
                assert served.evaluate("aime25", router=model.url, **header)[0] == 401
                assert served.call("/jobs", **header)[0] == 401
            assert served.evaluate("aime25", router=model.url, Authorization="Bearer let me in")[0] == 200
            assert "let me in" not in served.said
            served.stop()
    assert "let me in" not in "".join(path.read_text() for path in tmp_path.rglob("root/**/*.log"))
    done = ns("ns serve_evals --token-env=NOT_THERE", cwd=tmp_path)
    assert (done.returncode, "NOT_THERE" in done.stderr) == (1, True)


def test_the_judge_is_any_server(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    prepare(tmp_path, ("hle",))
    model, judge = fake_server(adding()), fake_server(Script(answer=Answer(kind="text", text="Judgement: Yes")))
    options = ["--judge-model=umpire", f"--judge-server-address={judge.url}", "--judge-api-key-env-var=JUDGE"]
    prompt = "--extra-judge-args=++prompt_config=judge/math"
    with serving(tmp_path, *options, prompt, env={"JUDGE": "k"}) as served:
        status, answer = served.evaluate({"name": "hle"}, router=model.url)
        assert status == 200, answer
        assert answer["raw_metrics"]["hle"]["pass@1"]["judge_correct"] == 100.0
        assert "--judge_model=umpire" in answer["command"]
    assert {record.body["model"] for record in judge.records} == {"umpire"}
    assert {record.headers["authorization"] for record in judge.records} == {"Bearer k"}
    assert len(judge.records) == 10


def test_a_judge_without_a_key_is_missed_before_the_first_question(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    prepare(tmp_path, ("hle", "aime25"))
    model = fake_server(adding())
    with serving(tmp_path, "--judge-model=umpire", "--judge-api-key-env-var=NOT_THERE") as served:
        status, answer = served.evaluate("aime25", "hle", router=model.url)
        assert status == 400
        assert "NOT_THERE" in answer["error"]
        assert served.evaluate("aime25", router=model.url)[0] == 200
    assert len(model.records) == 10


def test_a_cluster_config_gives_its_variables(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """The cluster of the reference: executor none, empty containers; one with a limit of its own is not."""
    model = fake_server(adding())
    configs = prepare(tmp_path) / "config"
    configs.mkdir()
    (configs / "local_cluster.yaml").write_text("executor: none\ncontainers: {}\nmounts: []\nenv_vars: []\n")
    with serving(tmp_path, "--cluster", "local_cluster", "--config-dir", "config") as served:
        status, answer = served.evaluate("aime25", router=model.url)
    assert status == 200
    assert "--cluster local_cluster --config_dir config" in answer["command"]
    done = ns("ns serve_evals --cluster=nowhere --config_dir=config", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr


@pytest.mark.parametrize("dash", ["-", "_"])
def test_both_spellings_of_every_option(tmp_path: Path, dash: str) -> None:
    words = (
        "--host 127.0.0.1 --port 0 --output-root root --config-dir . --cluster none --max-concurrent-requests 9 "
        "--openai-model-name own --attach-seconds 5 --token-env T --data-dir data --eval-args=++max_samples=2 "
        "--judge-model j --judge-server-type vllm --judge-server-address http://j --judge-api-key-env-var K "
        "--extra-judge-args=++inference.temperature=0.2 --dry-run"
    )
    spelled = " ".join(
        w.replace("-", dash).replace(dash * 2, "--", 1) if w[:2] == "--" else w for w in words.split()
    )
    for name in ("serve_evals", "serve-evals", "skills_server"):
        done = ns(f"ns {name} {spelled}", cwd=tmp_path, env={"T": "secret"})
        assert done.returncode == 0, done.stderr
        assert "++server.model=own" in done.stdout
        assert "++max_concurrent_requests=9 ++max_samples=2" in done.stdout
        assert "secret" not in done.stdout
        assert " " * 30 not in done.stdout
    assert not (tmp_path / "root").exists()


def test_the_command_line_of_the_reference_server_is_understood(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    """Word by word, as slime's own server types it; metrics.json is there when the command ends."""
    model = fake_server(adding())
    configs = prepare(tmp_path) / "examples/eval/nemo_skills/config"
    configs.mkdir(parents=True)
    containers = "".join(f"  {name}: ''\n" for name in ("nemo-skills", "vllm", "sglang", "sandbox"))
    (configs / "local_cluster.yaml").write_text(
        f"executor: none\ncontainers:\n{containers}mounts: []\nenv_vars: []\n"
    )
    url = f"{model.url}/v1"
    done = ns(
        f"ns eval --output_dir RUN/aime25 --benchmarks aime25:8 --server_type openai --server_address {url} "
        "--expname rollout-3-aime25 --cluster local_cluster --config_dir examples/eval/nemo_skills/config "
        "++inference.temperature=1.0 ++inference.top_p=1.0 ++inference.top_k=-1 ++inference.tokens_to_generate=8192 "
        f"++server.server_type=openai ++server.base_url={url} ++server.model=slime-openai-model "
        "++server.api_key=EMPTY ++max_concurrent_requests=512",
        cwd=tmp_path,
        env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")},
    )
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "RUN/aime25/eval-results/aime25/metrics.json").read_text())["aime25"]
    assert metrics["pass@1[avg-of-8]"]["symbolic_correct"] == 100.0
    assert len(model.records) == 80


def test_its_own_command_lines_can_be_typed(calm: Served, model: FakeServer) -> None:
    """What the answer names as command goes on in the same folder, and has nothing left to do."""
    _, answer = calm.evaluate("aime25", router=model.url, rollout=14)
    before = len(model.records)
    done = ns(shlex.join(shlex.split(answer["command"])), cwd=calm.folder)
    assert done.returncode == 0, done.stderr
    assert len(model.records) == before
    assert len(rows_of(Path(answer["output_dir"]) / "aime25/eval-results/aime25/output.jsonl")) == 10
