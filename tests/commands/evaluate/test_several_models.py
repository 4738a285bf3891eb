# SPDX-License-Identifier: Apache-2.0
"""A task of one's own that asks two models: running ones, and ones that are started for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.clusters import SERVED, Place, answers
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

from newskills import Command, CommandGroup, GenerationClientScript, Pipeline, ServerScript

TASK = """
from newskills.solve.chat import ask

class Both:
    def __init__(self, parts): self.chat = parts.chat
    def request(self, sample): return self.chat.request(sample)
    async def solve(self, sample, request, kit):
        first = await ask(kit.models["main"], request)
        second = await ask(kit.models["model1"], request)
        text = f"{self.chat.text(first)} and {self.chat.text(second)}"
        return await self.chat.attempt(sample, request, second, text)

SOLVER = Both
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "task.py").write_text(TASK)
    write(tmp_path / "in.jsonl", [{"problem": f"Add {n} and {n}."} for n in range(3)])
    return tmp_path


def line(*more: str) -> str:
    words = "ns generate --input_file=in.jsonl --output_dir=out ++prompt_config=generic/math"
    return " ".join([words, *more])


def test_two_running_models_share_what_is_said_once(here: Path, fake_server: FakeServerFactory) -> None:
    first = fake_server(Script(models=("a",), answer=Answer(text="from a")))
    second = fake_server(Script(models=("b",), answer=Answer(text="from b")))
    done = ns(
        line(
            f"--model a b --server_type=vllm --server_address={first.url} --server_address={second.url}",
            "--generation_module=task.py",
        ),
        cwd=here,
    )
    assert done.returncode == 0, done.stderr
    rows = rows_of(here / "out/output.jsonl")
    assert [row["generation"] for row in rows] == ["from a and from b"] * 3
    assert {record.body["model"] for record in first.records if record.body} == {"a"}
    assert {record.body["model"] for record in second.records if record.body} == {"b"}


def served(text: str) -> str:
    return f"'--script {json.dumps(json.dumps({'answer': {'text': text}}))}'"


HOSTED = (
    f"--model a b --server_type=generic --server_gpus=0 --server_entrypoint={SERVED} "
    f"--server_args={served('one')} --server_args={served('two')} --generation_module=task.py::Both"
)


def test_two_models_are_started_for_the_run(here: Path) -> None:
    done = ns(line(HOSTED), cwd=here)
    assert done.returncode == 0, done.stderr
    rows = rows_of(here / "out/output.jsonl")
    assert [row["generation"] for row in rows] == ["one and two"] * 3
    assert (here / "out/generation-logs/server-model1.log").is_file()


def test_in_a_job_each_has_nodes_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.config("mine", "executor: none")
    place.config("slurm", "executor: slurm")
    (tmp_path / "task.py").write_text(TASK)
    write(tmp_path / "in.jsonl", [{"problem": "Add 1 and 1."}])
    shown = place.ns(f"{line(HOSTED)} --cluster=slurm --dry_run --show_scripts")
    assert shown.returncode == 0, shown.stderr
    assert "#SBATCH hetjob" in shown.stdout
    done = place.ns(f"{line(HOSTED)} --cluster=mine --num_jobs=-1 --expname=both")
    assert done.returncode == 0, done.stderr + place.logs("both")
    [row] = rows_of(tmp_path / "out/output.jsonl")
    assert row["generation"] == "one and two"


def test_pipelines_of_ones_own_hand_several_servers_to_a_client(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(here / "experiments"))
    monkeypatch.chdir(here)
    servers = [
        ServerScript(
            "generic",
            name,
            num_gpus=0,
            server_entrypoint=str(SERVED),
            server_args=["--script", json.dumps({"answer": {"text": text}})],
        )
        for name, text in (("a", "one"), ("b", "two"))
    ]
    client = GenerationClientScript(
        output_dir=str(here / "out"),
        input_file=str(here / "in.jsonl"),
        servers=servers,
        script=f"{here}/task.py",
        extra_arguments="++prompt_config=generic/math",
    )
    commands = [Command(server, name=f"server{n}") for n, server in enumerate(servers)]
    group = CommandGroup([*commands, Command(client, name="main")])
    cluster = {"executor": "none", "job_dir": str(here / "jobs")}
    Pipeline("both", cluster, [{"name": "generate", "group": group}]).run()
    assert [row["generation"] for row in rows_of(here / "out/output.jsonl")] == ["one and two"] * 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--model a b --server_type=vllm --server_address=http://h:1", "need a generation module"),
        ("--model a b c --server_type vllm vllm --server_address=http://h:1", "--server_type has 2 values for 3"),
        ("--model a --server_type=vllm --server_address=http://h:1 --generation_module=none.py", "none.py"),
    ],
)
def test_what_does_not_fit_is_said(here: Path, words: str, said: str) -> None:
    done = ns(line(words), cwd=here)
    assert done.returncode == 2
    assert said in done.stderr


def test_keys_of_all_models_stand_in_no_file(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(answers())
    done = ns(
        line(
            f"--model a b --server_type=vllm --server_address={server.url} --generation_module=task.py",
            "++models.model1.api_key=s3cret-of-b",
        ),
        cwd=here,
    )
    assert done.returncode == 0, done.stderr
    assert any(record.headers.get("authorization") == "Bearer s3cret-of-b" for record in server.records)
    assert not [file for file in (here / "out").rglob("*") if file.is_file() and b"s3cret" in file.read_bytes()]


def test_an_embedded_server_is_asked_as_many_requests_as_it_serves_at_once(here: Path) -> None:
    one = ns(line("--server_type=llamacpp --model=smollm2 --explain"), cwd=here)
    assert one.returncode == 0, one.stderr
    shown = dict(words.split()[:2] for words in one.stdout.splitlines() if words.startswith("++max_concurrent"))
    assert shown["++max_concurrent_requests"] == "16"
    both = ns(
        line("--server_type llamacpp llamacpp --model smollm2 smollm2 --generation_module=task.py --explain"),
        cwd=here,
    )
    assert both.returncode == 0, both.stderr
    told = ns(line("--server_type=llamacpp --model=smollm2 --explain ++max_concurrent_requests=3"), cwd=here)
    assert any(words.split()[:2] == ["++max_concurrent_requests", "3"] for words in told.stdout.splitlines())
