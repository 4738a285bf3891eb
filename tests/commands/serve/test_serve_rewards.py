# SPDX-License-Identifier: Apache-2.0
"""`ns serve_rewards` as trainers use it: real processes, real sockets, the graders and the sandbox of an evaluation."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.commands.rewarding import MATH, Rewards, rewards
from tests.commands.running import ns, rows_of, write
from tests.commands.trainers import prepare
from tests.conftest import FakeServerFactory
from tests.graders.math.cases import pairs
from tests.run.math_rewards import MATH_RL
from tests.server import Answer, Script

from newskills.base.errors import AuthError, DataError, GraderError, NewskillsError
from newskills.commands.serve.serve_rewards import COMMAND
from newskills.graders.math.grader import VERSION
from newskills.rewards import ClientOptions, RewardClient, compute_score, trl_reward
from newskills.run.rewarding.graders import BatchGrader
from newskills.sandbox.config import SandboxConfig

FOUR = {"problem": "2 + 2?", "expected_answer": "4"}
TEXTS = (r"so \boxed{4}", r"so \boxed{5}", "The answer is 5.", "No idea.")
WORTH = [1.1, -0.4, -0.5, -0.5]
ITEMS = [{**FOUR, "generation": text} for text in TEXTS]
KEPT = ("outcome", "outcome_cause", "grader", "why")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rewards]:
    with rewards(tmp_path_factory.mktemp("rewards"), "--grader=math", *MATH) as server:
        yield server


def gone(pids: Iterable[int]) -> bool:
    """Whether none of them lives any more, within a minute."""
    deadline = time.monotonic() + 300
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_our_own_batches(served: Rewards) -> None:
    status, answer, _ = served.call("/v1/rewards", {"items": ITEMS})
    assert (status, answer["rewards"], answer["grader"]) == (200, WORTH, f"math@{VERSION}")
    first, *_, last = answer["items"]
    assert first == {
        "reward": 1.1,
        "correct": True,
        "answer": "4",
        "outcome": "correct",
        "components": {"verdict": 1.0, "box": 0.1},
        "why": "",
    }
    assert (last["outcome"], last["components"]) == ("no_answer", {"verdict": -0.5, "box": 0.0})
    nested = [{"row": FOUR, "generation": text} for text in TEXTS]
    assert served.call("/v1/rewards", {"items": nested})[1]["rewards"] == WORTH
    assert served.call("/v1/rewards", {"items": []})[1]["rewards"] == []


def test_batches_of_openrlhf(served: Rewards) -> None:
    prompt = "<|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\n"
    body = {
        "query": [f"<s> {prompt}{text}<|im_end|>\n" for text in TEXTS],
        "prompts": [prompt] * 4,
        "labels": ["4"] * 4,
    }
    status, answer, _ = served.call("/get_reward", body)
    assert status == 200
    assert answer == {
        "rewards": WORTH,
        "scores": [1.0, 0.0, 0.0, 0.0],
        "extra_logs": {"verdict": [1.0, -0.5, -0.5, -0.5], "box": [0.1, 0.1, 0.0, 0.0]},
    }


@pytest.mark.parametrize("prompt", ["2 + 2?", [{"role": "user", "content": "2 + 2?"}]])
def test_samples_of_slime(served: Rewards, prompt: str | list[dict[str, str]]) -> None:
    found = [
        served.call("/slime", {"prompt": prompt, "response": f"{text}<|im_end|>", "label": "4"}) for text in TEXTS
    ]
    assert [(status, reward) for status, reward, _ in found] == [(200, worth) for worth in WORTH]
    whole = {"expected_answer": "5", "problem": "2 + 3?"}
    assert served.call("/slime", {"prompt": prompt, "response": TEXTS[1], "label": whole})[1] == 1.1


def test_what_cannot_be_graded_is_null_or_503(served: Rewards) -> None:
    lost = {"problem": "?", "generation": r"\boxed{4}"}
    status, answer, _ = served.call("/v1/rewards", {"items": [ITEMS[0], lost]})
    assert (status, answer["rewards"]) == (200, [1.1, None])
    assert answer["items"][1]["outcome"] == "unscored"
    assert answer["items"][1]["why"].startswith("data: ")
    body = {"query": ["ab", "ac"], "prompts": ["a", "a"], "labels": ["b", None]}
    status, answer, headers = served.call("/get_reward", body)
    assert (status, headers["Retry-After"]) == (503, "1")
    assert answer["error"].startswith("1 of 2 samples could not be graded. data: ")
    assert served.call("/slime", {"prompt": "?", "response": "4", "label": None})[0] == 503
    assert served.call("/v1/stats")[1]["unscored"]["data"] >= 3


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/rewards", b"{", "not a JSON object"),
        ("/v1/rewards", b'{"items": [{"generation": "\xff"}]}', "not a JSON object"),
        ("/v1/rewards", b'{"items": [{"generation": ' + b"[" * 5000, "not a JSON object"),
        ("/v1/rewards", {"item": []}, "'item'"),
        ("/v1/rewards", {"items": [1]}, "items[0]: expected"),
        (
            "/v1/rewards",
            {"items": [{"expected_answer": "4"}]},
            "items[0] has no `generation`; its keys are expected",
        ),
        ("/v1/rewards", {"items": [{"generation": None}]}, "items[0] has no `generation`"),
        ("/v1/rewards", {"items": [{"row": 3, "generation": "4"}]}, "`row` is not an object"),
        ("/get_reward", {"query": ["a"], "prompts": ["a", "b"], "labels": ["c"]}, "1 queries, 2 prompts"),
        ("/get_reward", {"query": ["a"], "prompts": ["b"], "labels": ["c"]}, "does not contain its prompt"),
        ("/get_reward", {"query": ["a"]}, "prompts"),
        ("/slime", {"prompt": "a"}, "response"),
    ],
)
def test_bad_requests_get_one_sentence(
    served: Rewards, path: str, body: bytes | dict[str, Any], said: str
) -> None:
    status, answer, _ = served.call(path, body)
    assert status == 400
    assert said in answer["error"]
    assert "\n" not in answer["error"]


def test_other_ways_of_the_server(served: Rewards) -> None:
    assert served.call("/health")[:2] == (200, {"status": "ok", "grader": f"math@{VERSION}"})
    assert served.call("/v1/rewards")[0] == 405
    assert served.call("/nothing", {})[0] == 404
    assert served.call("/v1/rewards", {"items": []}, Origin="http://evil.example")[0] == 403


def test_clients_of_several_threads_and_trl(served: Rewards) -> None:
    with RewardClient(served.url, ClientOptions(batch=3, connections=2)) as client:
        assert [one.reward for one in client.rewards(ITEMS * 5)] == WORTH * 5
        assert [one.reward for one in client([(FOUR, text, "stop") for text in TEXTS])] == WORTH
        reward = trl_reward(client, "math")
        assert reward.__name__ == "math"
        completions = [[{"role": "assistant", "content": text}] for text in TEXTS]
        for form in (list(TEXTS), completions):
            found = reward(
                prompts=["2 + 2?"] * 4,
                completions=form,
                completion_ids=[[1, 2]] * 4,
                expected_answer=["4", "4", "4", None],
                trainer_state=object(),
                log_metric=print,
            )
            assert found == [1.1, -0.4, -0.5, None]
        with pytest.raises(DataError, match="has no `generation`"):
            client.rewards([ITEMS[0], FOUR])
        assert client.rewards([]) == []


def test_a_reward_function_of_verl(served: Rewards) -> None:
    import numpy as np

    extra = {"problem": "2 + 2?", "index": np.int64(3), "counts": np.array([1, 2]), "odd": object()}
    found = [compute_score("gsm8k", text, "4", extra, url=served.url) for text in TEXTS]
    assert [one["score"] for one in found] == WORTH
    assert [one["acc"] for one in found] == [1.0, 0.0, 0.0, 0.0]
    with pytest.raises(GraderError, match=r"verl cannot skip it\. data: "):
        compute_score("gsm8k", "4", None, url=served.url)
    assert compute_score("gsm8k", "4", None, url=served.url, unscored=-2.0) == {
        "score": -2.0,
        "acc": 0.0,
        "unscored": 1.0,
    }


def test_the_name_of_the_first_release_still_works() -> None:
    """verl imports what its configuration calls `pkg://newskills.run.reward_client`."""
    former, lasting = import_module("newskills.run.reward_client"), import_module("newskills.rewards")
    assert former.compute_score is compute_score
    assert former.__all__ == lasting.__all__


def test_a_client_without_a_server_says_so() -> None:
    with (
        RewardClient("http://127.0.0.1:9", ClientOptions(patience=0.1)) as client,
        pytest.raises(GraderError, match=r"No rewards from http://127\.0\.0\.1:9"),
    ):
        client.rewards(ITEMS)


def test_only_with_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("let me in\n")
    with rewards(tmp_path, "--grader=math", *MATH, "--token_file=token") as served:
        assert served.call("/health")[0] == 200
        for path in ("/v1/rewards", "/v1/stats"):
            assert served.call(path, {"items": ITEMS}, Authorization="Bearer let me out")[0] == 401
        with RewardClient(served.url) as client, pytest.raises(AuthError, match="needs a token"):
            client.rewards(ITEMS)
        monkeypatch.setenv("NEWSKILLS_REWARDS_TOKEN", "let me in")
        with RewardClient(served.url) as client:
            assert [one.reward for one in client.rewards(ITEMS)] == WORTH
        said = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in {served.process.pid, *served.below()}]
        assert not any(b"let me in" in words for words in said)
        assert served.stop() == 0
        assert "let me in" not in served.said
        assert "Clients need the token." in served.said


SLOW = "tests.run.sleeping::Sleeping"


def test_a_full_server_sends_clients_away_for_a_while(tmp_path: Path) -> None:
    root = {"PYTHONPATH": str(Path(__file__).parents[3])}
    with rewards(tmp_path, f"--grader={SLOW}", "--max_waiting=8", "--workers=1", env=root) as served:
        slow = [{"generation": "0.2"}] * 8
        done = []
        thread = threading.Thread(target=lambda: done.append(served.call("/v1/rewards", {"items": slow})))
        thread.start()
        while served.call("/v1/stats")[1]["waiting"] < 8:
            time.sleep(0.01)
        status, answer, headers = served.call("/v1/rewards", {"items": [{"generation": "0"}]})
        assert (status, answer["error"]) == (429, "8 samples are waiting; at most 8 are accepted.")
        assert 1 <= int(headers["Retry-After"]) <= 30
        assert served.call("/v1/rewards", {"items": [{"generation": "0"}] * 9})[0] == 413
        with RewardClient(served.url) as client:
            assert [one.reward for one in client.rewards([{"generation": "0"}])] == [1.0]
        thread.join()
        assert done[0][1]["rewards"] == [1.0] * 8
        assert served.call("/v1/stats")[1]["refused"] >= 2


def test_what_is_in_work_is_finished_before_the_end(tmp_path: Path) -> None:
    root = {"PYTHONPATH": str(Path(__file__).parents[3])}
    with rewards(tmp_path, f"--grader={SLOW}", env=root) as served:
        done = []
        body = {"items": [{"generation": "1.0"}]}
        thread = threading.Thread(target=lambda: done.append(served.call("/v1/rewards", body)))
        thread.start()
        while served.call("/v1/stats")[1]["waiting"] < 1:
            time.sleep(0.01)
        while not (below := served.below()):
            time.sleep(0.01)
        assert served.stop() == 0
        thread.join()
        assert done[0][:2][1]["rewards"] == [1.0]
        assert "Stopped after 1 samples (correct 1)." in served.said
        assert below
        assert gone(below)


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    root = {"PYTHONPATH": str(Path(__file__).parents[3])}
    with rewards(tmp_path, f"--grader={SLOW}", env=root) as served:
        with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2]))) as client:
            body = b'{"items": [{"generation": "25"}]}'
            client.sendall(b"POST /v1/rewards HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            while served.call("/v1/stats")[1]["waiting"] < 1:
                time.sleep(0.01)
            below = served.below()
            served.process.send_signal(signal.SIGTERM)
            while "again: stop now" not in served.said:
                time.sleep(0.01)
            began = time.monotonic()
            assert served.stop() == 0
            assert time.monotonic() - began < 20
        assert gone(below)


def test_a_killed_server_leaves_no_process(tmp_path: Path) -> None:
    with rewards(tmp_path, "--grader=math") as served:
        served.call("/v1/rewards", {"items": ITEMS})
        below = served.below()
        served.stop(signal.SIGKILL)
        assert below
        assert gone(below)


@pytest.mark.nightly
def test_killed_workers_cost_no_wrong_reward(tmp_path: Path) -> None:
    records = [{"expected_answer": gold, "generation": rf"\boxed{{{pred}}}"} for pred, gold in CASES]
    with rewards(tmp_path, "--grader=math", *MATH) as served, RewardClient(served.url) as client:
        usual = client.rewards(records)
        template = {  # type: ignore[assignment]
            int(p)
            for p in Path(f"/proc/{served.process.pid}/task").glob("*/children")
            for p in p.read_text().split()
        }
        workers = served.below() - template

        def kill() -> None:
            for pid in workers:
                os.kill(pid, signal.SIGKILL)

        threading.Timer(0.02, kill).start()
        again = client.rewards(records * 4)
    differing = [one for one, other in zip(again, usual * 4, strict=True) if one != other]
    assert all(one.reward is None for one in differing)
    assert len(differing) <= len(workers)


CASES = [*pairs("equal_cases.txt")[::8], *pairs("different_cases.txt")[::8]]


def worth(record: dict[str, Any]) -> float | None:
    """The reward of an evaluation's own verdict."""
    if record["outcome"] == "unscored":
        return None
    return {"correct": 1.0, "wrong": -0.5, "no_answer": -0.5}[record["outcome"]] + (
        0.1 if r"\boxed" in record["generation"] else 0.0
    )


def asked(record: dict[str, Any]) -> tuple[dict[str, Any], str, str]:
    """What a trainer knows of an attempt of an evaluation: the row, the text, why it ended."""
    own = {"generation", "finish_reason", "predicted_answer", "symbolic_correct", "completion", *KEPT}
    row = {key: value for key, value in record.items() if key not in own and not key.startswith("generation_")}
    return row, record["generation"], record["finish_reason"]


def test_an_evaluation_replayed_through_server_and_process_is_the_same(
    tmp_path: Path, fake_server: FakeServerFactory, served: Rewards
) -> None:
    prepare(tmp_path, ("gsm8k",))
    answers = {f"Add {n} and {n}.": rf"\boxed{{{2 * n + (n % 3 == 0)}}}" for n in range(9)}
    model = fake_server(
        Script(answer=Answer(kind="table", table=answers, template="It is %s.", text="I give up."))
    )
    line = "ns eval --benchmarks=gsm8k:2 --server_type=vllm --model=fake --output_dir=out --data_dir=data"
    done = ns(line, f"--server_address={model.url}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = [
        row for path in sorted(tmp_path.glob("out/eval-results/gsm8k/output-rs*.jsonl")) for row in rows_of(path)
    ]
    assert {row["outcome"] for row in records} == {"correct", "wrong", "no_answer"}
    assert len(records) == 20
    samples = [asked(record) for record in records]
    with BatchGrader("math", {}) as verdict, RewardClient(served.url, ClientOptions(batch=7)) as client:
        here, there = verdict.reward(MATH_RL)(samples), client(samples)
    assert here == there
    assert [one.reward for one in here] == [worth(record) for record in records]
    assert [one.outcome for one in here] == [record["outcome"] for record in records]
    assert [one.answer for one in here] == [record["predicted_answer"] for record in records]


@pytest.mark.nightly
def test_judged_pairs_are_worth_the_same_everywhere(tmp_path: Path, served: Rewards) -> None:
    records = [
        {"id": str(n), "expected_answer": gold, "generation": rf"So \boxed{{{pred}}}", "finish_reason": "stop"}
        for n, (pred, gold) in enumerate(CASES)
    ]
    write(tmp_path / "in.jsonl", records)
    done = ns("ns grade --grader=math --input_files in.jsonl --output_file out.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    graded = rows_of(tmp_path / "out.jsonl")
    samples = [asked(record) for record in records]
    with BatchGrader("math", {}) as verdict, RewardClient(served.url) as client:
        here, there = verdict.reward(MATH_RL)(samples), client(samples)
    assert here == there
    assert [one.outcome for one in here] == [row["outcome"] for row in graded]
    assert sum(one.correct for one in here) > 50


def human_eval(folder: Path) -> Answer:
    """Ten problems in the form of human-eval, and the answers to them: right, wrong, endless, none."""
    rows, table = [], {}
    for n in range(10):
        head = f'def times{n}(x):\n    """{n} times x"""\n'
        check = f"def check(candidate):\n    assert candidate(2) == {2 * n}\n    assert candidate(0) == 0\n"
        rows.append({"id": f"h{n}", "prompt": head, "entry_point": f"times{n}", "test": check, "question": head})
        body = {0: "    return x * 0", 1: "    while True: pass", 2: "    return 7"}.get(n, f"    return x * {n}")
        if n != 3:
            table[head] = f"```python\n{head}{body}\n```"
    write(folder / "data/human-eval/test.jsonl", rows)
    return Answer(kind="table", table=table, template="Here:\n%s", text="I would rather not.")


def test_code_is_rewarded_as_it_is_evaluated(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(Script(answer=human_eval(tmp_path)))
    limit = "++eval_config.timeout=1"
    line = "ns eval --benchmarks=human-eval --server_type=vllm --model=fake --output_dir=out --data_dir=data"
    done = ns(line, f"--server_address={model.url}", limit, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = rows_of(tmp_path / "out/eval-results/human-eval/output.jsonl")
    assert [row["outcome"] for row in records] == ["correct", "wrong", "wrong", "no_answer"] + ["correct"] * 6
    samples = [asked(record) for record in records]
    with BatchGrader("evalplus", {"timeout": 1}, SandboxConfig()) as verdict:
        here = verdict.reward(MATH_RL)(samples)
    with rewards(tmp_path, "--benchmark=human-eval", limit, *MATH, "--max_concurrent=4") as served:
        with RewardClient(served.url) as client:
            there = client(samples)
        below = served.below()
        assert served.stop() == 0
        assert gone(below)
    assert here == there
    assert [one.reward for one in here] == [worth(record) for record in records]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Give either --benchmark or --grader"),
        (["--grader=maths"], "did you mean 'math'"),
        (["--grader=math", "--benchmark=gsm8k"], "either --benchmark or --grader"),
        (["--benchmark=hle"], "judged by a model"),
        (["--grader=math", "++reward.overlong.max_tokens=64"], "longer than"),
        (["--grader=math", "++reward.formt.box=1"], "did you mean '..reward.format.box'"),
        (["--grader=math", "++eval_config.digit=3"], "no key 'digit'"),
        (["--grader=math", "--token_env=NOT_THERE"], "NOT_THERE"),
        (["--grader=math", "--tokenizer=/nowhere/at-all"], "nowhere"),
        (["--grader=math", "++reward.judge.server.model=j", "++reward.judge.prompt=no/such"], "no/such"),
    ],
)
def test_options_are_checked_before_anything_listens(words: list[str], said: str) -> None:
    with pytest.raises(NewskillsError, match=said):
        COMMAND.main(words)


def test_a_port_that_is_taken_is_told_and_leaves_no_process(tmp_path: Path, served: Rewards) -> None:
    done = ns(f"ns serve_rewards --grader=math --port={served.url.rpartition(':')[2]}", cwd=tmp_path)
    assert done.returncode == 1
    assert "another program listens there" in done.stderr
    assert "Traceback" not in done.stderr
