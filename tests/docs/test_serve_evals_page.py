# SPDX-License-Identifier: Apache-2.0
"""The page about evaluations for trainers: its containers are started as it says, its examples are read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml
from tests.commands.trainers import Served, prepare, serving
from tests.launch.containers import IMAGE, podman
from tests.launch.needs import lacking

from newskills.launch.clusters.config import load_cluster
from newskills.run.evaluation_server.wire import read_request

__all__ = ["podman"]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "slime"
PAGE = (ROOT / "docs" / "serve-evals.md").read_text(encoding="utf-8")
CONTAINERS = PAGE.partition("## Two containers")[2].partition("\n## ")[0]
LINES = [
    line for block in re.findall(r"^```bash\n(.*?)^```", CONTAINERS, re.M | re.S) for line in block.splitlines()
]
PREPARE = "docker run --rm"

DOCKER = """#!/bin/bash
case $1 in
    build) exec podman tag {image} newskills;;
    run) shift; exec podman run {more} "$@";;
    *) exec podman "$@";;
esac
"""
"""`build` wants a registry: the image is one of this machine's Python, and newskills is mounted into it."""


def test_the_delegate_of_the_example_posts_what_is_understood() -> None:
    delegate = yaml.safe_load((EXAMPLES / "eval.yaml").read_text())["eval"]["delegate"][0]
    assert delegate["url"] == "http://skills_server:9050/evaluate"
    assert set(delegate) <= {"name", "url", "timeout_secs", "max_retries", "headers", "defaults", "datasets"}
    benchmarks = [{**delegate["defaults"], **one} for one in delegate["datasets"]]
    body = {"rollout_id": 0, "router_url": "http://127.0.0.1:30000", "benchmarks": benchmarks}
    request = read_request(json.dumps(body).encode())
    assert [one.counted for one in request.benchmarks] == ["aime25:8", "arena-hard:1", "hle:1"]


def test_the_cluster_config_of_the_example_is_one() -> None:
    cluster = load_cluster(
        "local_cluster", str(EXAMPLES / "config"), {"OPENAI_API_KEY": "k"}, say=lambda text: None
    )
    assert (cluster.executor, cluster.env_vars) == ("none", ["OPENAI_API_KEY"])


def rehearse(served: Served, *names: str, **env: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(EXAMPLES / "rehearse.py"), f"{served.url}/evaluate", *names]
    return subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, **env}, timeout=100, check=False
    )


def test_the_rehearsal_prints_what_a_trainer_logs(tmp_path: Path) -> None:
    with serving(prepare(tmp_path), "--token-env=T", env={"T": "t"}) as served:
        done = rehearse(served, "aime25", "gsm8k", NEWSKILLS_EVALS_TOKEN="t")
        assert done.returncode == 0, done.stderr
        assert "eval/aime25/pass@1[avg-of-2]/symbolic_correct = 0\n" in done.stdout
        assert "eval/gsm8k/majority@2/num_entries = 10\n" in done.stdout
        assert rehearse(served, "aime25").returncode != 0


@pytest.fixture
def network(podman: None) -> None:
    """Skips where containers can have no network of their own."""
    name = f"newskills-test-{os.getpid()}"
    subprocess.run(["podman", "network", "create", name], capture_output=True, check=False)
    words = ["podman", "run", "--rm", f"--network={name}", IMAGE, "true"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    subprocess.run(["podman", "network", "rm", "-f", name], capture_output=True, check=False)
    if done.returncode:
        lacking("CONTAINERS", f"podman can make no network here (apt-get install iptables?): {done.stderr}")


@pytest.fixture
def place(tmp_path: Path, network: None) -> dict[str, str]:
    """The environment of a shell in which `docker` is podman, in a folder where the page's files are."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "docker").symlink_to(ROOT / "docker")
    command = tmp_path / "bin" / "ns"
    command.parent.mkdir()
    command.write_text('#!/bin/bash\nexec python3 -m newskills "$@"\n')
    mounts = {
        command: "/bin/ns",
        ROOT / "src": "/code",
        ROOT / "libs": "/libs",
        Path(sysconfig.get_path("purelib")): "/packages",
    }
    more = [f"-v '{source}:{target}:ro'" for source, target in mounts.items()]
    more += ["-e PYTHONPATH=/code:/packages"]
    if mirror := os.environ.get("NEWSKILLS_MIRROR"):
        more += [f"-v '{mirror}:/mirror:ro' -e NEWSKILLS_MIRROR=/mirror"]
    docker = command.with_name("docker")
    docker.write_text(DOCKER.format(image=IMAGE, more=" ".join(more)))
    for program in (command, docker):
        program.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}


@pytest.mark.nightly
def test_the_two_containers_can_be_typed_as_they_stand(tmp_path: Path, place: dict[str, str]) -> None:
    """Their names are those of the page: no two of this test may run at the same time."""
    said = {}
    subprocess.run(["podman", "tag", IMAGE, "localhost/slimerl/slime:latest"], check=True)
    try:
        for line in LINES:
            if line.startswith(PREPARE) and not os.environ.get("NEWSKILLS_MIRROR"):
                prepare(tmp_path, ("aime25",))
                (tmp_path / "data" / "aime25").rename(tmp_path / "skills-data" / "aime25")
                continue
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=tmp_path,
                env=place,
                capture_output=True,
                text=True,
                timeout=200,
                check=False,
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr, log(place))
            said[line] = done.stdout + done.stderr
    finally:
        for words in (["rm", "-f", "-t", "0", "trainer", "skills"], ["network", "rm", "-f", "skills-net"]):
            subprocess.run(["podman", *words], capture_output=True, check=False)
        subprocess.run(
            ["podman", "untag", IMAGE, "localhost/slimerl/slime:latest"], capture_output=True, check=False
        )
    rehearsed = next(text for line, text in said.items() if "rehearse.py" in line)
    assert "eval/aime25/pass@1[avg-of-2]/symbolic_correct = " in rehearsed
    logged = next(text for line, text in said.items() if "docker logs" in line)
    assert "aime25/pass@1[avg-of-2] num_entries=" in logged
    assert list(tmp_path.glob("skills-results/*-rollout-*/aime25/eval-results/aime25/metrics.json"))


def log(env: dict[str, str]) -> str:
    done = subprocess.run(["podman", "logs", "skills"], env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
