# SPDX-License-Identifier: Apache-2.0
"""How jobs are compared with what sinfo says of partitions. No cluster needed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from newskills.launch.executors.slurm_trial import partition_problem, read_partitions, try_scripts
from newskills.launch.machines.shell import CommandResult, LocalMachine, ShellCall

SINFO = """\
gpu*|4:00:00|2|gpu:h100:8(S:0-1)
gpu*|4:00:00|3|gpu:a100:4(S:0),shard:16
cpu|infinite|10|(null)
old|n/a|1|gpu:2,gpu:k80:2
"""


class Told(LocalMachine):
    """This machine, with a `sinfo` that has `text` to say."""

    def __init__(self, text: str, code: int = 0) -> None:
        self.ran = CommandResult(code=code, out=text)

    def run_all(self, calls: Sequence[ShellCall]) -> list[CommandResult]:
        return [self.ran for _ in calls]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, ""),
        ({"gpus-per-node": "8", "nodes": "2", "time": "4:00:00"}, ""),
        ({"gpus-per-node": "a100:4", "nodes": "5", "time": "240"}, ""),
        ({"gpus-per-node": "8", "nodes": "3"}, "3 nodes are too many: the default partition has 2 with 8 GPUs"),
        ({"nodes": "6"}, "6 nodes are too many: the default partition has 5"),
        ({"nodes": "2-9"}, ""),
        (
            {"partition": "cpu", "gpus-per-node": "1"},
            "1 GPUs per node are too many: nodes of partition 'cpu' have none",
        ),
        ({"partition": "cpu", "time": "UNLIMITED"}, ""),
        (
            {"time": "unlimited"},
            "the time limit unlimited is longer than the limit of the default partition, 4:00:00",
        ),
        ({"partition": "gpu,cpu", "time": "3-00", "nodes": "10"}, ""),
        ({"partition": "gpu,cup"}, "partition 'cup' does not exist; there are cpu, gpu, old"),
        ({"partition": "old", "gpus-per-node": "4", "time": "9-00"}, ""),
        (
            {"partition": "gpu", "time": "4:00:01"},
            "the time limit 4:00:01 is longer than the limit of partition 'gpu'",
        ),
        ({"partition": "gpu", "time": "soon"}, ""),
    ],
)
def test_jobs_and_partitions(options: dict[str, str], sentence: str) -> None:
    said = partition_problem(options, read_partitions(Told(SINFO)))
    assert said.startswith(sentence) if sentence else said == ""


def test_nothing_is_claimed_of_partitions_that_nobody_knows() -> None:
    assert read_partitions(Told("", 1)) == {}
    assert partition_problem({"partition": "gpu", "nodes": "99"}, {}) == ""
    nameless = read_partitions(Told("gpu|1:00|1|(null)\n"))
    assert partition_problem({"nodes": "99"}, nameless) == ""


def test_only_what_cannot_change_is_final() -> None:
    said = """\
sbatch: Job 7 to start at 2026-01-01T00:00:00 using 1 processors on nodes n1 in partition batch

=0 0
sbatch: error: ask for an account
allocation failure: Unspecified error

=1 1
allocation failure: Requested nodes are busy

=2 1
"""
    assert try_scripts(Told(said), ["a", "b", "c"], "") == [
        ("", False),
        ("ask for an account; Unspecified error", True),
        ("Requested nodes are busy", False),
    ]
