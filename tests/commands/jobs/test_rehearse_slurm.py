# SPDX-License-Identifier: Apache-2.0
"""`ns rehearse` asks a real Slurm cluster what it would say to the jobs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.commands.clusters import Place
from tests.launch.places import until
from tests.launch.slurm_cluster import require_cluster
from tests.launch.sshd import HOST, Sshd, sshd

__all__ = ["sshd"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    require_cluster()
    place = Place(tmp_path)
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00")
    return place


def findings(place: Place, line: str, *more: str, **options: object) -> tuple[int, list[str]]:
    """Exit code, and the lines of what is wrong."""
    until(lambda: queued(place) == [], "the end of earlier jobs")
    done = place.ns(line, *more, **options)
    assert "Traceback" not in done.stderr, done.stderr
    assert queued(place) == []
    return done.returncode, [row for row in done.stdout.splitlines() if row.startswith("[wrong]")]


def queued(place: Place) -> list[str]:
    shown = subprocess.run(["squeue", "-h", "-o", "%i %Z"], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if str(place.folder) in line]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--partition=nowhere", "partition 'nowhere' does not exist; there are batch, interactive, "),
        ("--num_gpus=99", "99 GPUs per node are too many: nodes of the default partition have 8"),
        ("--num_nodes=77 --num_gpus=8", "77 nodes are too many: the default partition has 4 with 8 GPUs"),
        (
            '--sbatch_kwargs=\'{"time":"2-00"}\'',
            "the time limit 2-00 is longer than the limit of the default partition, 4:00:00",
        ),
        ('--sbatch_kwargs=\'{"constraint":"blue"}\'', "Slurm says: Invalid feature specification"),
        ("--sbatch_kwargs='{\"no-such-option\":1}'", "unrecognized option"),
    ],
)
def test_what_slurm_would_refuse(place: Place, options: str, sentence: str) -> None:
    code, [wrong] = findings(place, f"ns rehearse run_cmd --cluster=real --expname=mine {options} true")
    assert (code, sentence in wrong, "mine" in wrong) == (1, True, True), wrong


def test_limits_of_the_config_are_those_of_the_partition(place: Place) -> None:
    place.config("long", "executor: slurm\npartition: interactive\ntimeouts: {interactive: '01:00:00'}")
    code, [wrong] = findings(place, "ns rehearse run_cmd --cluster=long --expname=mine true")
    assert "the time limit 01:00:00 is longer than the limit of partition 'interactive', 30:00" in wrong
    assert code == 1


def test_jobs_that_ask_for_the_same_are_told_once(place: Place) -> None:
    line = (
        "ns rehearse eval --cluster=real --benchmarks=./sums.py:3 --server_type=vllm --model=/m/x --server_gpus=9 "
        "--output_dir=out"
    )
    _, wrong = findings(place, line)
    [sentence] = [row for row in wrong if "GPUs" in row]
    assert "own-sums-rs0 and 2 more" in sentence
    code, wrong = findings(place, line.replace("gpus=9", "gpus=8"), "--partition=batch,shared")
    assert (code, wrong) == (0, [])


def test_what_jobs_run_after_must_be_there(place: Place) -> None:
    line = "ns rehearse run_cmd --cluster=real --run_after=frist"
    code, [wrong] = findings(place, line, "true")
    assert code == 1
    assert "run_after" in wrong
    assert "'frist'" in wrong
    assert findings(place, f"{line} --allow_missing_dependency", "true") == (0, [])
    assert place.ns("ns run_cmd --cluster=real --expname=first true").returncode == 0
    place.ended("first")
    code, [wrong] = findings(place, line, "true")
    assert "did you mean 'first'" in wrong
    assert findings(place, line.replace("frist", "first"), "true") == (0, [])


def test_a_scheduler_that_gives_no_answer(place: Place, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sbatch").write_text('#!/bin/sh\n[ "$1" != --version ] || { echo slurm 22; exit; }\nexit 9\n')
    (programs / "sbatch").chmod(0o755)
    place.env["PATH"] = f"{programs}:{os.environ['PATH']}"
    code, [wrong] = findings(place, "ns rehearse run_cmd --cluster=real true")
    assert (code, "no reason given" in wrong) == (1, True)


def test_a_cluster_behind_ssh_is_asked_there(place: Place, sshd: Sshd) -> None:
    place.env["NEWSKILLS_SSH_CONFIG"] = str(sshd.config)
    before = f"export SLURM_CONF='{os.environ['SLURM_CONF']}'" if os.environ.get("SLURM_CONF") else ""
    place.config("far", f'executor: slurm\nssh_tunnel:\n  host: {HOST}\n  pre_command: "{before}"')
    line = "ns rehearse run_cmd --cluster=far --num_gpus=9"
    env = {name: value for name, value in place.env.items() if name != "SLURM_CONF"}
    place.env = {**env, "SLURM_CONF": "/nonexistent"}
    code, [wrong] = findings(place, line, "true")
    assert (code, "9 GPUs per node are too many" in wrong) == (1, True), wrong
