# SPDX-License-Identifier: Apache-2.0
"""`ns` from a laptop: a real Slurm cluster behind a real ssh server."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.commands.clusters import SERVED, SUMS, Place, answers, reachable_server
from tests.commands.running import chatted, rows_of
from tests.launch.slurm_cluster import require_cluster
from tests.launch.sshd import HOST, Sshd, sshd

__all__ = ["sshd"]


@pytest.fixture
def place(tmp_path: Path, sshd: Sshd) -> Place:
    require_cluster()
    place = Place(tmp_path)
    place.env["NEWSKILLS_SSH_CONFIG"] = str(sshd.config)
    before = f"export PATH='{Path(sys.executable).parent}':$PATH"
    if config := os.environ.get("SLURM_CONF"):
        before += f" SLURM_CONF='{config}'"
    place.config(
        "far",
        f'executor: slurm\ndefault_timeout: 00:10:00\nssh_tunnel:\n  host: {HOST}\n  pre_command: "{before}"',
    )
    return place


def test_an_evaluation_from_a_laptop(place: Place) -> None:
    with reachable_server(answers()) as server:
        line = (
            f"ns eval --cluster=far --benchmarks=./sums.py:2 --server_type=vllm --model=fake --expname=far "
            f"--server_address={server.url} --data_dir={place.folder}/data"
        )
        relative = place.ns(line, "--output_dir=out")
        assert relative.returncode != 0
        assert "absolute path" in relative.stderr
        words = (f"--output_dir={place.folder}/out",)
        done = place.ns(line, *words)
        assert done.returncode == 0, done.stderr
        followed = place.ns("ns logs -f far")
        assert followed.returncode == 0, followed.stdout + followed.stderr
        rows = rows_of(place.folder / "out/eval-results/own-sums/output-rs1.jsonl")
        assert [row["id"] for row in rows] == [row["id"] for row in SUMS]
        assert (place.folder / "out/metrics.json").is_file()
        assert "nothing to do" in place.ns(line, *words).stderr
        assert len(server.records) == 20
        summarised_here(place)


def test_the_python_of_jobs_without_containers_is_looked_at(place: Place, tmp_path: Path) -> None:
    fine = place.ns("ns doctor --cluster=far")
    assert f"[ok] python python3 on {HOST}, 3." in " ".join(fine.stdout.split())
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    config = place.folder / "cluster_configs/far.yaml"
    config.write_text(config.read_text().replace(str(Path(sys.executable).parent), str(tmp_path / "bare/bin")))
    bare = place.ns("ns doctor --cluster=far")
    assert bare.returncode == 1
    wrong = next(line for line in bare.stdout.splitlines() if line.startswith("[wrong]"))
    assert re.search(r"python .*, lacks .*msgspec.*: run python3 -m pip install .*msgspec.* there", wrong)
    refused = place.ns(
        f"ns eval --cluster=far --benchmarks=./sums.py --server_type=vllm --model=fake --output_dir={tmp_path}/out "
        f"--server_address=http://n1:1 --data_dir={place.folder}/data --expname=bare"
    )
    assert refused.returncode == 2
    assert re.search(r"Jobs would fail: .*, lacks .*msgspec.*pip install", refused.stderr.replace("\n", " "))
    assert not place.experiments("bare")


def summarised_here(place: Place) -> None:
    """Only the records come over, and the metrics go back."""
    results = place.folder / "out"
    metrics = [results / "metrics.json", results / "eval-results/own-sums/metrics.json"]
    for file in metrics:
        file.unlink()
    line = f"ns summarize_results --cluster=far {results}"
    shown = place.ns(f"{line} --dry_run")
    assert shown.returncode == 0, shown.stderr
    fetched = [words[1] for text in shown.stdout.splitlines() if (words := text.split())[0] == "fetches"]
    assert fetched == [f"{HOST}:{results}/eval-results/own-sums/output-rs{seed}.jsonl" for seed in range(2)]
    assert not any(file.exists() for file in metrics)
    done = place.ns(line)
    assert done.returncode == 0, done.stderr
    assert "pass@1[avg-of-2]" in done.stdout
    assert f"metrics: {HOST}:{results}/metrics.json" in done.stdout
    assert all(json.loads(file.read_text())["own-sums"]["pass@2"]["num_entries"] == 10 for file in metrics)
    metrics[0].unlink()
    mine = place.ns(f"{line}/eval-results/own-sums --save_metrics_path=mine.json --remote_tar_dir=/tmp --debug")
    assert mine.returncode == 0, mine.stderr
    assert "own-sums" in json.loads((place.folder / "mine.json").read_text())
    assert not metrics[0].exists()
    absent = place.ns(f"{line}/none")
    assert absent.returncode != 0
    assert f"There is no folder {results}/none on {HOST}" in absent.stderr


def test_a_tunnel_leads_to_the_server_and_a_page_to_chat_with_it(place: Place) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = (
        "ns start_server --cluster=far --server_type=generic --model=fake --server_gpus=0 --expname=serve "
        f"--server_entrypoint={SERVED} --launch_chat_interface --extra_chat_args=++port=0 --server_tunnel_port={port}"
    ).split()[1:]
    with subprocess.Popen(
        [sys.executable, "-m", "newskills", *words],
        cwd=place.folder,
        env={**os.environ, **place.env},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        seen = ""
        wanted = (f"here at http://127.0.0.1:{port}", "serves on n", "in the browser: http")
        while not all(text in seen for text in wanted):
            line = process.stdout.readline()
            assert line, seen
            seen += line
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=300) as reply:
                assert b"fake" in reply.read()
            assert "boxed{42}" in chatted(seen)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
