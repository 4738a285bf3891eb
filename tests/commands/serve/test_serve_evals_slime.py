# SPDX-License-Identifier: Apache-2.0
"""The evaluation server against a client that does what slime's does: `requests`, its time-outs, its retries, its log.

What slime's client does (examples/eval in github.com/THUDM/slime): one session posts the payload with the configured
time-out and headers, as many times as `max_retries` says, with a pause of min(2^attempt, 30) s between tries; whatever
`requests` raises, 4xx and 5xx, and a body that is no JSON count as failed tries; then the training evaluation dies. Of
the answer it takes `raw_metrics`, and logs every number in it under `eval/` and the path of keys.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands.trainers import adding, order, prepare, serving
from tests.conftest import FakeServerFactory
from tests.server import FakeServer, FakeServerProcess, Fault

requests = pytest.importorskip("requests", reason="slime's client is made of requests: pip install requests")


class TrainingDied(Exception):
    pass


class Client:
    """Pauses are shortened to `pause` seconds."""

    def __init__(self, url: str, router: str, *, timeout: float = 60, retries: int = 1, **headers: str) -> None:
        self.url, self.router = url.rstrip("/"), router.rstrip("/")
        self.timeout, self.retries, self.headers = timeout, max(1, retries), headers
        self.session, self.pause, self.tries = requests.Session(), 0.2, 0

    def evaluate(self, rollout: int, *datasets: dict[str, Any]) -> dict[str, Any]:
        failure = None
        for attempt in range(1, self.retries + 1):
            self.tries = attempt
            payload = order(self.router, *datasets, rollout=rollout)
            try:
                reply = self.session.post(self.url, json=payload, timeout=self.timeout, headers=self.headers)
                reply.raise_for_status()
                return self.logged(reply.json()["raw_metrics"])
            except requests.RequestException as error:
                failure = error
                time.sleep(min(self.pause, 2.0**attempt))
        raise TrainingDied from failure

    def logged(self, metrics: dict[str, Any], prefix: str = "eval") -> dict[str, float]:
        """Keys joined by slashes; only numbers."""
        found: dict[str, float] = {}
        for key, value in metrics.items():
            if isinstance(value, dict):
                found |= self.logged(value, f"{prefix}/{key}")
            elif isinstance(value, int | float):
                found[f"{prefix}/{key}"] = value
        return found


AIME = {
    "name": "aime25",
    "n_samples_per_eval_prompt": 2,
    "temperature": 0.6,
    "top_p": 1.0,
    "top_k": -1,
    "max_response_len": 4096,
}


@pytest.fixture
def model(fake_server: FakeServerFactory) -> FakeServer | FakeServerProcess:
    return fake_server(adding())


def test_the_numbers_that_a_trainer_logs(tmp_path: Path, model: FakeServer | FakeServerProcess) -> None:
    with serving(prepare(tmp_path)) as served:
        client = Client(f"{served.url}/evaluate/", f"{model.url}/")
        logged = client.evaluate(0, AIME, {"name": "gsm8k"})
        later = client.evaluate(20, AIME, {"name": "gsm8k"})  # over the same connection
    assert logged == later
    assert logged["eval/aime25/pass@1[avg-of-2]/symbolic_correct"] == 100.0
    assert logged["eval/aime25/pass@1[avg-of-2]/num_entries"] == 10
    assert logged["eval/gsm8k/pass@1/symbolic_correct"] == 100.0


def test_its_time_outs_do_not_multiply_the_work(tmp_path: Path, model: FakeServer | FakeServerProcess) -> None:
    model.script = adding(latency=1.5)
    with serving(prepare(tmp_path)) as served:
        client = Client(f"{served.url}/evaluate", model.url, timeout=0.5, retries=200)
        logged = client.evaluate(3, {"name": "aime25"})
        assert len(served.jobs) == 1
    assert client.tries > 1
    assert logged["eval/aime25/pass@1/num_entries"] == 10
    assert len(model.records) == 10


@pytest.mark.nightly
def test_a_server_that_dies_and_comes_back_between_its_tries(
    tmp_path: Path, model: FakeServer | FakeServerProcess
) -> None:
    model.script = adding(Fault(kind="hang", marker="Add 7"))
    with serving(prepare(tmp_path)) as served:
        client = Client(f"{served.url}/evaluate", model.url, timeout=1.0, retries=1)
        with pytest.raises(TrainingDied):
            client.evaluate(3, {"name": "aime25"})
        deadline = time.monotonic() + 300
        while saved(tmp_path) < 9:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        served.process.kill()
    with pytest.raises(TrainingDied):  # nobody there
        client.evaluate(3, {"name": "aime25"})
    asked = len(model.records)
    model.script = adding()
    with serving(tmp_path) as served:
        client = Client(f"{served.url}/evaluate", model.url)
        assert client.evaluate(3, {"name": "aime25"})["eval/aime25/pass@1/symbolic_correct"] == 100.0
        assert len(served.jobs) == 1
    assert len(model.records) - asked == 1


def saved(folder: Path) -> int:
    """Replies on the disk of evaluations that have not ended."""
    return sum(len(file.read_bytes().splitlines()) for file in folder.rglob("output*.jsonl-async"))


def test_one_lost_benchmark_does_not_kill_the_training(
    tmp_path: Path, model: FakeServer | FakeServerProcess
) -> None:
    prepare(tmp_path, ("aime25",), extra="Shun: ")
    prepare(tmp_path, ("gsm8k",))
    model.script = adding(Fault(kind="status", status=400, message="no", marker="Shun"))
    with serving(tmp_path) as served:
        logged = Client(f"{served.url}/evaluate", model.url).evaluate(3, {"name": "aime25"}, {"name": "gsm8k"})
    assert {key.split("/")[1] for key in logged} == {"gsm8k"}


def test_one_benchmark_without_data_does_not_kill_the_training(
    tmp_path: Path, model: FakeServer | FakeServerProcess
) -> None:
    with serving(prepare(tmp_path, ("gsm8k",))) as served:
        client = Client(f"{served.url}/evaluate", model.url)
        logged = client.evaluate(3, {"name": "math-500"}, {"name": "gsm8k"})
        assert {key.split("/")[1] for key in logged} == {"gsm8k"}
        assert len(served.jobs) == 1


def test_without_datasets_nothing_is_logged(tmp_path: Path, model: FakeServer | FakeServerProcess) -> None:
    with serving(prepare(tmp_path)) as served:
        assert Client(f"{served.url}/evaluate", model.url).evaluate(3) == {}


def test_what_kills_a_training_is_told_at_the_first_evaluation(
    tmp_path: Path, model: FakeServer | FakeServerProcess
) -> None:
    with serving(prepare(tmp_path), "--token-env=TOKEN", env={"TOKEN": "open sesame"}) as served:
        bearer = {"Authorization": "Bearer open sesame"}
        for client, dataset in (
            (Client(f"{served.url}/evaluate", model.url), "aime25"),
            (Client(f"{served.url}/evaluate", model.url, **bearer), "aime52"),
            (Client(f"{served.url}/evaluate/", "no-address", **bearer), "aime25"),
        ):
            with pytest.raises(TrainingDied):
                client.evaluate(0, {"name": dataset})
        assert served.jobs == []
        assert Client(f"{served.url}/evaluate", model.url, **bearer).evaluate(0, {"name": "aime25"})
