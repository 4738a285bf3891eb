# SPDX-License-Identifier: Apache-2.0
"""What a Slurm cluster would make of jobs, asked before anything is submitted.

Slurm takes jobs that can never start (a time limit above the partition's, where EnforcePartLimits is off), and says
"Requested node configuration is not available" to all that is too large. So partitions are compared here, in words;
`sbatch --test-only` knows the rest: accounts, qualities of service, reservations, options, plugins of the site.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.launch.clusters.times import seconds_of
from newskills.launch.executors.slurm_status import number_or_0
from newskills.launch.job_script import quote_for_bash
from newskills.launch.machines.shell import CommandResult, Shell

Options = Mapping[str, str]
"""Of one group: option of sbatch without its dashes → value."""

_BUSY = re.compile(r"busy|down, drained|DOWN, DRAINED|not available at this time", re.ASCII)
_UNLIMITED_WORDS = ("infinite", "unlimited", "-1")
_NOISE = re.compile(r"^sbatch: (?:error: |fatal: )?|^allocation failure: ", re.ASCII)


class Partition(Struct, frozen=True):
    """limit: in Slurm's words; nodes: GPUs per node → number of such nodes."""

    limit: str
    nodes: dict[int, int]

    def with_gpus(self, gpus: int) -> int:
        """Return the number of nodes that have at least so many GPUs."""
        return sum(count for there, count in self.nodes.items() if there >= gpus)


def read_partitions(shell: Shell) -> dict[str, Partition]:
    """Return name → partition; "" is the default one. Empty where Slurm does not answer. Raises RemoteError."""
    ran = shell.run(["sinfo", "--all", "--noheader", "--format=%P|%l|%D|%G"])
    partitions_by_name: dict[str, Partition] = {}
    if ran.code != 0:
        return partitions_by_name
    for line in ran.out.splitlines():
        name, limit, count, gres = (*line.split("|", 3), "", "", "")[:4]
        default_key = "" if name.endswith("*") else name.removesuffix("*")
        for key in {name.removesuffix("*"), default_key}:
            partition = partitions_by_name.setdefault(key, Partition(limit, {}))
            gpus = _gpu_count(gres)
            partition.nodes[gpus] = partition.nodes.get(gpus, 0) + number_or_0(count)
    return partitions_by_name


def partition_problem(options: Options, cluster_partitions: Mapping[str, Partition]) -> str:
    """Return why no partition that a group asks for can ever run it; empty where one can, or nothing is known of
    them."""
    named = options.get("partition", "")
    names = [name.strip() for name in named.split(",")]
    there = ", ".join(sorted(name for name in cluster_partitions if name))
    for name in names:
        if name not in cluster_partitions:
            if cluster_partitions and name:
                return f"partition '{name}' does not exist; there are {there}"
            return ""
    wanted = [cluster_partitions[name] for name in names]
    what = f"partition '{named}'" if named else "the default partition"
    gpus, nodes = _least_number(options.get("gpus-per-node", "0")), _least_number(options.get("nodes", "1"))
    most = max(max(partition.nodes, default=0) for partition in wanted)
    if gpus > most:
        return f"{gpus} GPUs per node are too many: nodes of {what} have {most or 'none'}"
    if nodes > (count := max(partition.with_gpus(gpus) for partition in wanted)):
        problem = f"{nodes} nodes are too many: {what} has {count}"
        if gpus:
            problem += f" with {gpus} GPUs"
        return problem
    longest = max(wanted, key=lambda partition: _limit_seconds(partition.limit, math.inf)).limit
    if _limit_seconds(limit := options.get("time", ""), 0) > _limit_seconds(longest, math.inf):
        return f"the time limit {limit} is longer than the limit of {what}, {longest}: the job would never start"
    return ""


def try_scripts(shell: Shell, texts: Sequence[str], prologue: str) -> list[tuple[str, bool]]:
    """Return for each job script what `sbatch --test-only` says against it, empty where nothing, and whether the
    objection is permanent.

    One trip. `prologue` is bash that runs before. Raises RemoteError, ConfigError where sbatch does not run.
    """
    if not texts:
        return []
    lines = [prologue, *(f"try {number} {quote_for_bash(text)}" for number, text in enumerate(texts))]
    ran = shell.run(["bash", "-s"], stdin="\n".join([_TRY, *lines, ""]))
    marks = list(re.finditer(r"^=(\d+) (\d+)\n", ran.out, re.MULTILINE))
    if len(marks) != len(texts):
        raise ConfigError(f"sbatch --test-only does not run on {shell.name}: {_last_reason(ran)}")
    starts = [0, *(mark.end() for mark in marks)]
    sections = [ran.out[start : mark.start()] for start, mark in zip(starts, marks, strict=False)]
    refusals = []
    for text, mark in zip(sections, marks, strict=True):
        if mark[2] == "0":
            refusals.append(("", False))
        else:
            refusals.append((_sbatch_reason(text), not _BUSY.search(text)))
    return refusals


def _gpu_count(gres: str) -> int:
    """Return the number of GPUs in `gres`: `gpu:h100:8(S:0-1),shard:4` → 8."""
    counts = [re.match(r"gpu(?::[^:(,]+)?:(\d+)", part) for part in re.sub(r"\([^)]*\)", "", gres).split(",")]
    return sum(int(match[1]) for match in counts if match)


def _least_number(text: str) -> int:
    """Return the least number of `4`, `h100:8` or `2-4`; 0 for text that only sbatch understands."""
    match = re.fullmatch(r"(?:[\w.-]+:)?(\d{1,9})(?:-\d+)?", text.strip(), re.ASCII)
    if match:
        return int(match[1])
    return 0


def _limit_seconds(limit: str, unclear: float) -> float:
    if limit.strip().lower() in _UNLIMITED_WORDS:
        return math.inf
    try:
        return seconds_of(limit.strip())
    except ConfigError:
        return unclear


def _sbatch_reason(text: str) -> str:
    """Join the complaints of sbatch in one line; a plugin of the site says more than the last of them."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if _NOISE.match(line)] or lines[-1:] or ["no reason given"]
    return re.sub(r"[^\x20-\x7e]", " ", "; ".join(dict.fromkeys(_NOISE.sub("", line) for line in reasons)))[:300]


def _last_reason(ran: CommandResult) -> str:
    return _sbatch_reason(ran.err or ran.out)


_TRY = """\
try() { printf '%s' "$2" | sbatch --test-only 2>&1; printf '\\n=%s %s\\n' "$1" "${PIPESTATUS[1]}"; }
"""
