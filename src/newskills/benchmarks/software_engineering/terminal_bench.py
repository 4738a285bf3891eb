# SPDX-License-Identifier: Apache-2.0
"""Tasks to be done in a terminal (The Terminal-Bench Team 2025, https://www.tbench.ai)."""

from newskills.base.benchmark import Source
from newskills.benchmarks.terminal_tasks import terminal_benchmark

_CORE = "91e10457b5410f16c44364da1a34cb6de8c488a5"
_TRAPS = (
    "An agent works in a container per task, then the task's own test script decides in the same container: "
    "++agent=bash.",
    "Agents may use the network, as in the official harness: most test scripts install their tools. "
    "++environment.network=false closes it.",
    "A task's own time limit for the agent holds, if it is shorter than ++agent_config.time_limit.",
    "Tasks that need what containers of agents do not give here are left out, and counted with the reason.",
)

BENCHMARKS = (
    terminal_benchmark(
        "terminal-bench",
        title="Terminal-Bench 1 (core 0.1.1): tasks in a terminal",
        sources=(
            Source(
                github="laude-institute/terminal-bench",
                ref="dataset/terminal-bench-core/v0.1.x",
                revision=_CORE,
                members="tasks/*/*",
                format="asset",
                instead="--tasks=FOLDER",
            ),
        ),
        licence="Apache-2.0",
        homepage="https://www.tbench.ai",
        unverified=True,
        traps=(*_TRAPS, "Images are built of Dockerfiles on the machine that runs the tasks, once for each task."),
    ),
    terminal_benchmark(
        "terminal-bench-2",
        title="Terminal-Bench 2: tasks in a terminal, in Harbor's format",
        sources=(
            Source(
                github="laude-institute/terminal-bench-2",
                ref="main",
                members="[!.]*/*",
                format="asset",
                instead="--tasks=FOLDER",
            ),
        ),
        licence="Apache-2.0",
        homepage="https://www.tbench.ai",
        unverified=True,
        traps=(*_TRAPS, "Images come from a registry, as task.toml names them."),
    ),
)
