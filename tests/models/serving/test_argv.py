# SPDX-License-Identifier: Apache-2.0
"""The commands that start servers, word by word."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.models.serving import SERVERS, ServeSpec, serve_argv
from newskills.models.serving.sglang import START

VLLM = "vllm serve M --served-model-name M --trust-remote-code"
SGLANG = "PY -c START --model-path M --served-model-name M --trust-remote-code"
TRTLLM = "trtllm-serve M --host 0.0.0.0 --port 8000"
MPIRUN = "mpirun -n 1 --oversubscribe --allow-run-as-root"
TORCHRUN = "PY -m torch.distributed.run --nproc-per-node 8"
MEGATRON = "/opt/Megatron-LM/tools/run_text_generation_server.py --load M"
MEGATRON_REST = "--use-checkpoint-args --max-tokens-to-oom 12000000 --micro-batch-size 1 --port 8000"
AT = "--host 0.0.0.0 --port 8000"

GOLDEN: list[tuple[str, dict[str, Any], str]] = [
    (
        "llamacpp",
        {},
        "PY -m newskills.models.serving.llamacpp_server --model M --alias M --host 127.0.0.1 --port 8000 "
        "--slots 16",
    ),
    (
        "transformers",
        {"num_gpus": 2, "extra_args": ["--adapter", "A"]},
        "PY -m newskills.models.serving.hf.server --model M --alias M --host 127.0.0.1 --port 8000 --gpus 2 "
        "--adapter A",
    ),
    ("vllm", {"num_gpus": 8}, f"{VLLM} {AT} --tensor-parallel-size 8"),
    ("vllm", {}, f"{VLLM} {AT}"),
    ("vllm_multimodal", {"num_gpus": 2}, f"{VLLM} {AT} --tensor-parallel-size 2"),
    (
        "vllm",
        {"num_gpus": 8, "num_nodes": 2},
        f"{VLLM} {AT} --tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed-executor-backend ray",
    ),
    (
        "vllm",
        {"num_gpus": 8, "num_nodes": 2, "extra_args": ["--tensor_parallel_size=16"]},
        f"{VLLM} {AT} --distributed-executor-backend ray --tensor_parallel_size=16",
    ),
    (
        "vllm",
        {"num_gpus": 1, "extra_args": ["--no_verbose", "--max-model-len", "4096"]},
        f"{VLLM} {AT} --tensor-parallel-size 1 --disable-uvicorn-access-log --max-model-len 4096",
    ),
    (
        "vllm_dp_ray",
        {"num_gpus": 8, "num_nodes": 4},
        f"{VLLM} {AT} --tensor-parallel-size 8 --data-parallel-size 4 --data-parallel-size-local 1 "
        "--data-parallel-backend ray",
    ),
    (
        "vllm_dp_ray",
        {"num_gpus": 8, "num_nodes": 2, "extra_args": ["-tp", "2"]},
        f"{VLLM} {AT} --data-parallel-size 8 --data-parallel-size-local 4 --data-parallel-backend ray -tp 2",
    ),
    (
        "vllm_dp_ray",
        {"num_gpus": 8, "extra_args": ["--data-parallel-size", "8"]},
        f"{VLLM} {AT} --data-parallel-backend ray --data-parallel-size 8",
    ),
    ("sglang", {"num_gpus": 4}, f"{SGLANG} {AT} --tp-size 4"),
    (
        "sglang",
        {"num_gpus": 8, "num_nodes": 2, "node_rank": 1, "master": "n0", "master_port": 7000},
        f"{SGLANG} {AT} --tp-size 8 --pp-size 2 --nnodes 2 --node-rank 1 --dist-init-addr n0:7000",
    ),
    (
        "sglang",
        {"num_gpus": 8, "num_nodes": 2, "master_port": 7000, "extra_args": ["--tp", "16"]},
        f"{SGLANG} {AT} --nnodes 2 --node-rank 0 --dist-init-addr 127.0.0.1:7000 --tp 16",
    ),
    ("trtllm", {"num_gpus": 8}, f"{MPIRUN} {TRTLLM} --tp_size 8"),
    ("trtllm", {"num_gpus": 8, "num_nodes": 2}, f"trtllm-llmapi-launch {TRTLLM} --tp_size 8 --pp_size 2"),
    (
        "trtllm",
        {"num_gpus": 8, "num_nodes": 2, "extra_args": ["--tp_size", "16"]},
        f"trtllm-llmapi-launch {TRTLLM} --tp_size 16",
    ),
    (
        "megatron",
        {"num_gpus": 8},
        f"{TORCHRUN} {MEGATRON} --tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 {MEGATRON_REST}",
    ),
    (
        "megatron",
        {"num_gpus": 8, "num_nodes": 2, "node_rank": 1, "master": "n0", "master_port": 7000},
        f"{TORCHRUN} --nnodes 2 --node-rank 1 --master-addr n0 --master-port 7000 {MEGATRON} "
        f"--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 {MEGATRON_REST}",
    ),
    (
        "generic",
        {"num_gpus": 2, "entrypoint": "run 'my server'", "extra_args": ["--x", "a b"]},
        "run|my server|--model|M|--num_gpus|2|--num_nodes|1|--port|8000|--x|a b",
    ),
    ("asr_nim", {"num_gpus": 1}, "/opt/nim/start_server.sh"),
    ("tts_nim", {"entrypoint": "nim start"}, "nim start"),
    ("generic", {"entrypoint": "serve.py"}, "PY serve.py --model M --num_gpus 0 --num_nodes 1 --port 8000"),
    ("generic", {"entrypoint": "-m mine"}, "PY -m mine --model M --num_gpus 0 --num_nodes 1 --port 8000"),
]


@pytest.fixture(autouse=True)
def _no_megatron_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEGATRON_PATH", raising=False)


@pytest.mark.parametrize(("kind", "settings", "expected"), GOLDEN)
def test_argv_is_exactly(kind: str, settings: dict[str, Any], expected: str) -> None:
    command = serve_argv(ServeSpec(model="M", server_type=kind, port=8000, python="PY", **settings))
    argv = ["START" if word == START else word for word in command.argv]
    assert argv == expected.split("|" if "|" in expected else None)
    assert command.base_url == "http://127.0.0.1:8000/v1"


def test_every_registered_type_has_a_golden_command() -> None:
    assert {kind for kind, _, _ in GOLDEN} == set(SERVERS.names())


def test_a_model_with_blanks_and_quotes_stays_one_word() -> None:
    argv = serve_argv(ServeSpec(model="/m/a 'b'; rm -rf", server_type="vllm", port=1)).argv
    assert argv[2] == "/m/a 'b'; rm -rf"


def test_vllm_is_that_of_the_interpreters_environment(tmp_path: Path) -> None:
    def program(python: Path | str) -> str:
        return serve_argv(ServeSpec(model="M", server_type="vllm", port=1, python=str(python))).argv[0]

    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    assert program(python) == program("python3") == "vllm"
    (tmp_path / "bin" / "vllm").touch()
    assert program(python) == str(tmp_path / "bin" / "vllm")


def test_an_entry_point_of_vllm_is_told_the_model_as_before() -> None:
    spec = ServeSpec(model="M", server_type="vllm", port=1, python="PY", entrypoint="-m mine.server")
    assert serve_argv(spec).argv[:5] == ["PY", "-m", "mine.server", "--model", "M"]


@pytest.mark.parametrize(("has_program", "has_command"), [(True, True), (True, False), (False, True)])
def test_sglang_starts_as_its_version_does(tmp_path: Path, has_program: bool, has_command: bool) -> None:
    package = tmp_path / "sglang"
    (package / "cli").mkdir(parents=True)
    for file in ("__init__.py", "cli/__init__.py"):
        (package / file).write_text("raise SystemExit('loaded')" if file == "cli/__init__.py" else "")
    (package / "launch_server.py").write_text("import sys; print('module', *sys.argv[1:])")
    if has_command:
        (package / "cli/serve.py").touch()
    if has_program:
        (tmp_path / "sglang.sh").write_text('#!/bin/sh\necho program "$@"\n')
        (tmp_path / "bin").mkdir()
        (tmp_path / "sglang.sh").rename(tmp_path / "bin/sglang")
        (tmp_path / "bin/sglang").chmod(0o755)
    argv = serve_argv(ServeSpec(model="a b", server_type="sglang", port=7, num_gpus=2)).argv
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    how = "program serve" if has_program and has_command else "module"
    assert done.stdout == (
        f"{how} --model-path a b --served-model-name a b --trust-remote-code --host 0.0.0.0 --port 7 --tp-size 2\n"
    )


def test_the_served_name_is_what_clients_send() -> None:
    spec = ServeSpec(model="/m/x", server_type="vllm", port=1, served_name="x")
    argv = serve_argv(spec).argv
    assert argv[argv.index("--served-model-name") + 1] == spec.name == "x"
    told = ServeSpec(model="/m/x", server_type="vllm", extra_args=["--served-model-name", "y"])
    assert told.name == "y"


def test_tasks_and_environment_of_engines_that_need_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEGATRON_PATH", "/srv/megatron")
    command = serve_argv(
        ServeSpec(model="M", server_type="megatron", port=1, num_gpus=2, entrypoint="tools/other.py")
    )
    assert command.env["PYTHONPATH"] == "/srv/megatron"
    assert "/srv/megatron/tools/other.py" in command.argv
    assert command.any_answer
    trtllm = ServeSpec(model="M", server_type="trtllm", port=1, num_gpus=8, num_nodes=2)
    assert serve_argv(trtllm).tasks_per_node == 8


@pytest.mark.parametrize("kind", ["openai", "azureopenai", "gemini", "anthropic", "nim"])
def test_services_cannot_be_started(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"'{kind}' is a hosted service"):
        serve_argv(ServeSpec(model="M", server_type=kind, port=1))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("vllm", {"port": 0}, "not a port"),
        ("vllm", {"num_nodes": 0}, "at least 1"),
        ("llamacpp", {"num_nodes": 2}, "one node"),
        ("transformers", {"num_nodes": 2}, "one node"),
        ("llamacpp", {"num_gpus": 1}, "on the CPU"),
        ("generic", {}, "--server_entrypoint"),
        ("generic", {"entrypoint": "a 'b"}, "split into words"),
        ("generic", {"entrypoint": " "}, "is empty"),
        ("vllm_dp_ray", {"num_gpus": 8, "extra_args": ["-tp", "3"]}, "do not fill nodes of 8"),
        ("vllm_dp_ray", {"num_gpus": 8, "extra_args": ["-tp"]}, "expected a number of GPUs"),
    ],
)
def test_what_cannot_be_served_is_refused(kind: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        serve_argv(ServeSpec(**{"model": "M", "server_type": kind, "port": 1, **settings}))


def test_an_unknown_type_names_the_closest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sglang'"):
        serve_argv(ServeSpec(model="M", server_type="sglng", port=1))
