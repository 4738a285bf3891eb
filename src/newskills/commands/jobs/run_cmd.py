# SPDX-License-Identifier: Apache-2.0
"""`ns run_cmd`: any command of one's own, in a container, with a model server and a sandbox beside it."""

from __future__ import annotations

from collections.abc import Sequence

from newskills.commands.command import Command
from newskills.config.command_line import Parsed
from newskills.config.fields import leaves
from newskills.pipelines.own_command.options import RunCmdOptions

ALIASES = {"cmd": "command"}


class RunCommand(Command[RunCmdOptions], frozen=True, kw_only=True):
    """All that follows the options belongs to the user's command, whatever it looks like."""

    def parse_words(self, argv: Sequence[str]) -> Parsed[RunCmdOptions]:
        return super().parse_words(with_marker(argv))


def with_marker(argv: Sequence[str]) -> list[str]:
    """Return `argv` with `--` in front of the first word that is no option and no option's value."""
    option_leaves = leaves(RunCmdOptions)
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "--":
        name, equals, _ = argv[at].lstrip("-").replace("-", "_").partition("=")
        name = ALIASES.get(name, name)
        leaf = option_leaves.get(name)
        at += 1 if equals or leaf is None or leaf.is_bool else 2
    if at < len(argv) and argv[at] != "--":
        return [*argv[:at], "--", *argv[at:]]
    return list(argv)


COMMAND = RunCommand(
    name="run_cmd",
    summary="Run your own command as a job: here in the foreground, on a cluster in the queue. If you ask "
    "for them, a model server (--model, --server_type, --server_gpus) and a sandbox (--with_sandbox) "
    "run beside it; the command finds them in NEMO_SKILLS_SERVER_ADDRESS, "
    "NEMO_SKILLS_OPENAI_BASE_URL, NEMO_SKILLS_OPENAI_MODEL, NEMO_SKILLS_SANDBOX_HOST and "
    "NEMO_SKILLS_SANDBOX_PORT.",
    options=RunCmdOptions,
    run="newskills.pipelines.own_command.work:run",
    result="newskills.pipelines.own_command.work:run_own_command",
    prepare="newskills.pipelines.own_command.work:prepare",
    aliases=ALIASES,
    examples=(
        "ns run_cmd --cluster=slurm --num_gpus=1 nvidia-smi",
        'ns run_cmd --cluster=slurm "hostname && df -h /data"',
        'ns run_cmd --cluster=slurm --expname=count --command="wc -l /data/*.jsonl > /data/counts.txt"',
        "ns run_cmd --cluster=slurm --model=/models/small --server_type=vllm --server_gpus=1 python ask.py",
    ),
)
