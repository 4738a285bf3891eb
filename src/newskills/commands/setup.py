# SPDX-License-Identifier: Apache-2.0
"""`ns setup`: asks about a cluster, writes its config, tries it."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.commands._command import Command
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.options import NAME, doc

FILE = {"group": "the file"}
SLURM = {"group": "slurm"}
JOBS = {"group": "what jobs get"}


class Options(Struct, frozen=True, kw_only=True):
    non_interactive: Annotated[bool, doc("ask nothing: options and defaults are the answers")] = False
    test: Annotated[bool, doc("try the cluster after writing: ssh, sbatch or container engine, folders")] = True
    dry_run: Annotated[bool, doc("ask, check and show the file; write and try nothing")] = False
    pull_images: Annotated[bool, doc("fetch the images now (executor local)")] = False
    executor: Annotated[
        Literal["none", "local", "slurm"] | None,
        doc("none: processes of this machine; local: containers of it; slurm", FILE),
    ] = None
    name: Annotated[
        str | None, doc("name of the cluster, for --cluster (default: the executor)", {**FILE, **NAME})
    ] = None
    config_dir: Annotated[
        str | None, doc("folder of the file (default: NEMO_SKILLS_CONFIG_DIR, or ./cluster_configs)", FILE)
    ] = None
    overwrite: Annotated[bool, doc("replace a file of that name", FILE)] = False
    ssh_host: Annotated[
        str | None, doc("machine to submit from, or a Host of ~/.ssh/config (default: this one)", SLURM)
    ] = None
    ssh_user: Annotated[str | None, doc("user there (default: as the ssh config says)", SLURM)] = None
    ssh_identity: Annotated[str | None, doc("key file (default: as the ssh config says)", SLURM)] = None
    ssh_port: Annotated[int | None, doc("port there (default: as the ssh config says)", SLURM)] = None
    account: Annotated[str | None, doc("account to charge", SLURM)] = None
    partition: Annotated[str | None, doc("partition (default: the cluster's own)", SLURM)] = None
    cpu_partition: Annotated[str | None, doc("partition for jobs without GPUs", SLURM)] = None
    qos: Annotated[str | None, doc("quality of service", SLURM)] = None
    time_limit: Annotated[str | None, doc("time limit in that partition, HH:MM:SS or D-HH:MM:SS", SLURM)] = None
    job_dir: Annotated[str | None, doc("folder of jobs that all nodes see", JOBS)] = None
    engine: Annotated[
        Literal["podman", "docker"] | None, doc("container engine (default: what is there)", JOBS)
    ] = None
    containers: Annotated[list[str], doc("NAME=IMAGE: nemo-skills, vllm, sglang, sandbox, …", JOBS)] = []
    mounts: Annotated[list[str], doc("src:dst[:ro|rw]", JOBS)] = []
    hf_home: Annotated[str | None, doc("folder of the Hugging Face cache, as jobs see it", JOBS)] = None
    env_vars: Annotated[list[str], doc("NAME (copied from your shell) or NAME=value", JOBS)] = []


def run(parsed: Parsed[Options]) -> int:
    from newskills.commands._setup import Interview, composed, try_and_tell, write

    interview = Interview(parsed.options, parsed.given, os.environ, ask=_ask, say=_say)
    answers = interview.answers()
    if parsed.options.dry_run:
        path, _, text = composed(answers, interview.folder, os.environ)
        _say(f"==> {path} <==\n{text}")
        show_dry_run([("writes", path, "")])
        return 0
    path, cluster = write(answers, interview.folder, os.environ)
    _say(f"Wrote {path}.")
    ok = not parsed.options.test or try_and_tell(cluster, os.environ, say=_say, pull=parsed.options.pull_images)
    _say(f"Use it: ns COMMAND --cluster={cluster.name}" + interview.where_to_look)
    return 0 if ok else 1


def result(parsed: Parsed[Options]) -> None:
    if run(parsed):
        raise NewskillsError("The config was written, but not all that it promises is there.")


def _ask(question: str) -> str:
    sys.stdout.write(question)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stdout.write("\n")
        raise EOFError
    return line.strip()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


COMMAND = Command(
    name="setup",
    summary="Describe a cluster: asks what it has to know, writes <config_dir>/<name>.yaml, and tries it. Each "
    "answer can be given as an option.",
    options=Options,
    run=run,
    result=result,
    examples=(
        "ns setup",
        "ns setup --non_interactive --executor=slurm --name=big --ssh_host=login --job_dir=/lustre/me/jobs "
        "--partition=batch --time_limit=04:00:00",
        "ns setup --non_interactive --executor=local --containers vllm=vllm/vllm-openai:v0.11.0 --mounts /data:/data "
        "--hf_home=/data/hf",
    ),
)
