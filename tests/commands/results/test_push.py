# SPDX-License-Identifier: Apache-2.0
"""`ns push` with the hub's own client, against a double of the hub's HTTP API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import huggingface_hub
import pyarrow
import pytest
import yaml
from huggingface_hub import DatasetCard, ModelCard
from pyarrow import parquet
from tests.exchange.hub_double import READER, WRITER, HubDouble, hub_double
from tests.view.comparison.runs import answers, record, write_run

from newskills import analysis
from newskills.pipelines.results.pushed import FINAL
from newskills.pipelines.training.methods import running

pytestmark = pytest.mark.slow
TOKEN = "hf_" + "Ab1" * 12


@pytest.fixture
def hub() -> Iterator[HubDouble]:
    assert duckdb.__version__
    with hub_double() as double:
        yield double


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_run(tmp_path / "results/base", {0: answers("++-+" * 5), 1: answers("+--+" * 5)})
    return tmp_path


def push(
    line: str, hub: HubDouble, cwd: Path, token: str = WRITER, **env: str
) -> subprocess.CompletedProcess[str]:
    """`ns push` in a process of its own, since the client reads its variables when it is imported."""
    return sent(["-m", "newskills", "push", *line.split()], hub, cwd, token, **env)


def sent(
    words: list[str], hub: HubDouble, cwd: Path, token: str = WRITER, **env: str
) -> subprocess.CompletedProcess[str]:
    """What Python prints with these words, where `hub` is the hub."""
    variables = {
        name: value for name, value in os.environ.items() if not name.upper().endswith(("_PROXY", "TOKEN"))
    }
    variables |= {
        "HF_ENDPOINT": hub.address,
        "HF_TOKEN": token,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(cwd / "hf"),
    }
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=variables | env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_without_send_nothing_leaves(results: Path, hub: HubDouble) -> None:
    done = push("results --to hf://datasets/me/samples", hub, results)
    assert done.returncode == 0, done.stderr
    assert "data/samples.parquet" in done.stdout
    assert f"to {hub.address}/datasets/me/samples (private)" in done.stdout
    assert "Nothing was sent: this is a dry run. To send it, add --send." in done.stdout
    assert hub.requests == []


def test_samples_become_a_private_data_set_with_a_card(results: Path, hub: HubDouble) -> None:
    done = push("results --to hf://datasets/me/samples --send", hub, results)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"{hub.address}/datasets/me/samples/commit/")
    repo = hub.repos["datasets/me/samples"]
    assert repo["private"] is True
    names = [f"data/{table}.parquet" for table in ("messages", "runs", "samples", "scores")]
    assert sorted(repo["files"]) == ["README.md", *names]
    table = parquet.read_table(pyarrow.BufferReader(repo["files"]["data/samples.parquet"]))
    assert table.to_pylist() == analysis.samples(results / "results", table.column_names).to_pylist()
    card = DatasetCard(repo["files"]["README.md"].decode())
    assert card.data.to_dict()["configs"][0]["config_name"] == "samples"
    assert "| base | gsm8k | pass@1[avg-of-2] symbolic_correct | 62.5 |" in card.text
    tables = [parquet.read_table(pyarrow.BufferReader(repo["files"][name])) for name in names]
    assert str(results) not in card.content + "".join(str(table.to_pylist()) for table in tables)


def test_a_call_returns_what_was_sent(results: Path, hub: HubDouble) -> None:
    for send in (False, True):
        call = f"newskills.push(folder='results', to='hf://datasets/me/samples', send={send})"
        done = sent(
            ["-c", f"import newskills\npush = {call}\nprint(push.address, push.commit, push.files)"], hub, results
        )
        assert done.returncode == 0, done.stderr
        address, commit, files = done.stdout.splitlines()[-1].split(" ", 2)
        assert address == f"{hub.address}/datasets/me/samples"
        assert commit.startswith(f"{address}/commit/") if send else commit == ""
        assert "data/samples.parquet" in files


def test_pushing_again_updates_and_public_is_only_what_is_said(results: Path, hub: HubDouble) -> None:
    assert push("results --to hf://datasets/me/open --send --public", hub, results).returncode == 0
    assert hub.repos["datasets/me/open"]["private"] is False
    before = len(hub.messages)
    done = push("results --to hf://datasets/me/open --send", hub, results)
    assert done.returncode == 2
    assert "is public: everybody would see these files. If that is meant: --public" in done.stderr
    assert len(hub.messages) == before
    assert push("results --to hf://datasets/me/open --send --public --message Again", hub, results).returncode == 0
    assert hub.messages[-1] == "Again"


def test_scores_take_the_form_of_the_hub(results: Path, hub: HubDouble) -> None:
    done = push("results/base --to hf://me/model --hub_dataset gsm8k=openai/gsm8k:main --send", hub, results)
    assert done.returncode == 0, done.stderr
    files = hub.repos["models/me/model"]["files"]
    assert list(files) == [".eval_results/gsm8k.yaml"]
    (entry,) = huggingface_hub.parse_eval_result_entries(yaml.safe_load(files[".eval_results/gsm8k.yaml"]))
    assert (entry.dataset_id, entry.task_id, entry.value) == ("openai/gsm8k", "main", 62.5)
    assert "pass@1[avg-of-2] symbolic_correct, 20 problems, 95 % interval" in (entry.notes or "")
    done = push("results/base --to hf://me/model", hub, results)
    assert done.returncode == 2
    assert "--hub_dataset gsm8k=OWNER/NAME" in done.stderr
    write_run(results / "results/other", {0: answers("+-")})
    done = push("results --to hf://me/model", hub, results)
    assert "These are results of 2 runs, and a model has scores of one." in done.stderr


def test_the_data_set_of_a_benchmark_on_the_hub_is_known(results: Path, hub: HubDouble) -> None:
    write_run(results / "mmlu", {None: answers("++-+")}, benchmark="mmlu-pro")
    assert push("mmlu --to hf://me/model --send", hub, results).returncode == 0
    entry = yaml.safe_load(hub.repos["models/me/model"]["files"][".eval_results/mmlu-pro.yaml"])[0]
    assert entry["dataset"] == {"id": "TIGER-Lab/MMLU-Pro", "task_id": "default"}


def test_a_training_becomes_a_model_with_a_card_and_scores(results: Path, hub: HubDouble) -> None:
    assert FINAL == running.FINAL
    model = results / "trained" / FINAL
    model.mkdir(parents=True)
    (model / "adapter_model.safetensors").write_bytes(b"weights")
    (model / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "org/base"}))
    (model / "optimizer.pt").write_bytes(b"pickle")
    (model / "outside.json").symlink_to("/etc/hostname")
    done = push(
        "trained --to hf://me/tuned --results results/base --hub_dataset gsm8k=openai/gsm8k --send", hub, results
    )
    assert done.returncode == 0, done.stderr
    assert "outside.json is left out: the link leads out" in done.stderr
    assert "left out: optimizer.pt" in done.stderr
    files = hub.repos["models/me/tuned"]["files"]
    names = [".eval_results/gsm8k.yaml", "README.md", "adapter_config.json", "adapter_model.safetensors"]
    assert sorted(files) == names
    assert files["adapter_model.safetensors"] == b"weights"
    card = ModelCard(files["README.md"].decode())
    head = card.data.to_dict()
    assert (head["base_model"], head["library_name"]) == ("org/base", "peft")
    assert "62.5" in card.text
    (model / "README.md").write_text("my own card")
    assert push("trained --to hf://me/tuned --send", hub, results).returncode == 0
    assert hub.repos["models/me/tuned"]["files"]["README.md"] == b"my own card"


@pytest.mark.parametrize("place", ["sample", "variable", "config"])
def test_secrets_are_refused_and_not_shown(place: str, results: Path, hub: HubDouble) -> None:
    env = {}
    if place == "sample":
        rows = [*answers("+-"), record(2, False, generation=f"The token is {TOKEN}.")]
        write_run(results / "results/leak", {0: rows})
        line = "results --to hf://datasets/me/samples --send"
    elif place == "variable":
        env = {"MY_SERVICE_KEY": "correct-horse-battery"}
        write_run(
            results / "results/leak", {0: [record(0, True, generation="I saw correct-horse-battery there.")]}
        )
        line = "results --to hf://datasets/me/samples --send"
    else:
        model = results / "model"
        model.mkdir()
        (model / "model.safetensors").write_bytes(b"weights")
        (model / "config.json").write_text("x" * 5_000_000 + json.dumps({"note": TOKEN}))
        line = "model --to hf://me/tuned --send"
    done = push(line, hub, results, **env)
    assert done.returncode == 2
    assert "look like secrets, so nothing is sent" in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert "battery" not in done.stdout + done.stderr
    assert hub.requests == []
    assert push(f"{line} --allow_secrets", hub, results, **env).returncode == 0


@pytest.mark.parametrize(
    ("token", "failing", "code", "said"),
    [
        ("hf_nobody", 0, 1, "The hub does not know who you are"),
        (READER, 0, 1, "The hub refuses to write to me/samples"),
        (WRITER, 400, 1, "The hub answers with 400: "),
    ],
)
def test_a_hub_that_refuses_is_one_sentence(
    token: str, failing: int, code: int, said: str, results: Path, hub: HubDouble
) -> None:
    hub.failing = failing
    done = push("results --to hf://datasets/me/samples --send", hub, results, token)
    assert done.returncode == code
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"error: {said}")
    assert "Traceback" not in done.stderr


def test_a_hub_that_is_slow_or_absent_is_given_up(results: Path, hub: HubDouble) -> None:
    hub.seconds = 30
    done = push("results --to hf://datasets/me/samples --send", hub, results, NEWSKILLS_HUB_TIMEOUT="1")
    assert "error: The hub sent nothing for 1 seconds." in done.stderr
    done = push("results --to hf://datasets/me/samples --send", hub, results, HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "error: Sending to http://127.0.0.1:9/datasets/me/samples failed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "place", ["s3://x/y", "hf://me", "hf://datasets/me/x/y", "hf://me/../x", "me/x", "hf://spaces/me/x"]
)
def test_places_that_are_none_are_refused(place: str, results: Path, hub: HubDouble) -> None:
    done = push(f"results --to {place}", hub, results)
    assert done.returncode == 2
    assert "is not a place on the hub" in done.stderr
