# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share. Frozen structs; a command's own struct inherits the groups it needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError

if TYPE_CHECKING:
    from newskills.run.reporting.tracking import Tracking

JOB = {"group": "placement (on clusters)"}
NAME = {"name": True}
"""A name may be `none`, which elsewhere means that there is no value."""
SERVER = {"group": "model"}
SEEDS = {"group": "seeds and chunks"}
CODE = {"group": "sandbox"}
REPORT = {"group": "Weights & Biases"}
DEFAULT_PROJECT = "nemo-skills"
OLD_NAMES = {"model_path": "model", "num_gpus": "server_gpus"}
"""Options of the oldest documents → what they are called now."""


def doc(description: str, extra: dict[str, Any] | None = None) -> Meta:
    """Return the meaning of an option, and its group on the help page."""
    return Meta(description=description, extra=extra)


def split_names(text: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated option; none where it is not given."""
    if text:
        return tuple(text.split(","))
    return ()


def optional_path(text: str | None) -> Path | None:
    """Return the path that an option gives, None where it is not given."""
    if text:
        return Path(text)
    return None


AtLeastOne = Annotated[int, Meta(ge=1)]
SubmittedName = Annotated[
    str,
    doc(
        "experiment: its name (the latest one of that name), the beginning of a name, or NAME/STAMP; or "
        "an invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX",
        {"positional": True},
    ),
]
DryRun = Annotated[bool, doc("check everything and show what would be done; run nothing")]
WandbName = Annotated[str | None, doc("log the metrics under this run name (extra newskills[wandb])", REPORT)]
WandbGroup = Annotated[str | None, doc("group of the run", REPORT)]
WandbProject = Annotated[str, doc("project of the run", REPORT)]
PromptSourceOption = Annotated[
    Literal["official", "newskills"] | None,
    doc(
        "wording of prompts that are published: official, newskills (default: official where ns prepare_data has "
        "downloaded it)"
    ),
]
AcceptLost = Annotated[
    float,
    Meta(
        ge=0,
        le=100,
        description="largest percentage of samples that may be unscored (failed requests, "
        "judges or graders) before the command fails",
    ),
]


class ClusterOptions(Struct, frozen=True, kw_only=True):
    """Which cluster, and what it sees."""

    cluster: Annotated[str | None, doc("cluster config; none or local = this machine", {**JOB, **NAME})] = None
    config_dir: Annotated[str | None, doc("folder of cluster configs", JOB)] = None
    mount_paths: Annotated[str | None, doc("extra mounts src:dst, comma separated", JOB)] = None


class PlacementOptions(ClusterOptions, frozen=True, kw_only=True):
    """Where the work runs, and under which name."""

    expname: Annotated[
        str | None, doc("name of the experiment, for --run_after, ns status and ns logs (default: the command)")
    ] = None
    log_dir: Annotated[str | None, doc("folder for the logs (default: with the results, or the job's folder)")] = (
        None
    )
    dry_run: DryRun = False
    show_scripts: Annotated[bool, doc("with --dry_run: also show the scripts of the jobs", JOB)] = False
    partition: Annotated[str | None, doc("Slurm partition", JOB)] = None
    account: Annotated[str | None, doc("Slurm account", JOB)] = None
    qos: Annotated[str | None, doc("Slurm quality of service", JOB)] = None
    time_min: Annotated[str | None, doc("Slurm minimum time (D-HH:MM:SS)", JOB)] = None
    sbatch_kwargs: Annotated[str, doc("JSON of more sbatch settings", JOB)] = ""
    exclusive: Annotated[bool | None, doc("use whole nodes", JOB)] = None
    check_mounted_paths: Annotated[bool, doc("check that mount sources exist before submitting", JOB)] = False
    run_after: Annotated[list[str], doc("experiments that must finish first, comma separated", JOB)] = []
    allow_uncommitted: Annotated[bool, doc("submit the last commit even if files have changed since", JOB)] = False
    allow_missing_dependency: Annotated[bool, doc("accept unknown experiments in --run_after", JOB)] = False
    dependent_jobs: Annotated[int, doc("number of follow-up jobs that resume after the time limit", JOB)] = 0
    reuse_code: Annotated[bool, doc("copy the same code only once (always the case)", JOB)] = True
    reuse_code_exp: Annotated[str | None, doc("reuse the code package of that experiment", JOB)] = None
    main_container: Annotated[str | None, doc("container image of the client", JOB)] = None
    heterogeneous: Annotated[bool, doc("run the client on its own nodes, apart from the server's", JOB)] = False
    installation_command: Annotated[str | None, doc("command to run first, once per node", JOB)] = None
    skip_hf_home_check: Annotated[bool | None, doc("do not require HF_HOME", JOB)] = None
    keep_mounts_for_sandbox: Annotated[bool, doc("give the sandbox the mounts of the job", JOB)] = False
    sandbox_mounts: Annotated[
        list[str], doc("mounts for the sandbox only, src:dst[:rw]; read-only by default", JOB)
    ] = []
    sandbox_container: Annotated[str | None, doc("container image of the sandbox", JOB)] = None


class ModelOptions(PlacementOptions, frozen=True, kw_only=True):
    """Which model, and where it is served."""

    model: Annotated[
        list[str],
        doc("name or path of the model (ns generate with --generation_module: of several models)", SERVER),
    ] = []
    server_type: Annotated[
        list[str],
        doc("openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic, …", SERVER),
    ] = []
    server_address: Annotated[list[str], doc("address of a running server, with or without /v1", SERVER)] = []
    server_gpus: Annotated[list[int], doc("start a server for the model, on this many GPUs per node", SERVER)] = []
    server_nodes: Annotated[list[int], doc("nodes per model", SERVER)] = []
    server_args: Annotated[list[str], doc("more arguments for the engine, passed on unchanged", SERVER)] = []
    server_entrypoint: Annotated[list[str], doc("another start command for the engine", SERVER)] = []
    server_container: Annotated[list[str], doc("container image of the server (clusters)", SERVER)] = []
    server_timeout: Annotated[float, doc("seconds to wait for a started server", SERVER)] = 1800.0
    with_sandbox: Annotated[
        bool, doc("run a sandbox for the model's code beside the work (or use the one at ++sandbox.host)", CODE)
    ] = False
    sandbox_env_overrides: Annotated[
        list[str], doc("KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)", CODE)
    ] = []


class WorkOptions(ModelOptions, frozen=True, kw_only=True):
    """What `generate` and `eval` share: repetitions, pieces, tracking."""

    batch_api: Annotated[
        bool,
        doc(
            "ask in batches, for half the price and within a day: openai, azureopenai, anthropic, gemini; vllm: on "
            "this machine, without a server. The same command collects what a stopped one has submitted",
            SERVER,
        ),
    ] = False
    num_servers: Annotated[
        AtLeastOne, doc("servers of the model to start; prompts that begin alike go to the same one", SERVER)
    ] = 1
    num_jobs: Annotated[
        int | None, doc("jobs to spread seeds and chunks over; -1 = one job each (default: 1; on slurm -1)", SEEDS)
    ] = None
    work_queue: Annotated[
        bool, doc("jobs of --num_jobs take chunks from a queue instead of a fixed share each", SEEDS)
    ] = False
    single_node_mode: Annotated[
        Literal["parallel", "sequential"], doc("run the units of one process in parallel or one after the other")
    ] = "parallel"
    starting_seed: Annotated[int, doc("first seed", SEEDS)] = 0
    num_chunks: Annotated[AtLeastOne | None, doc("split the input into this many chunks", SEEDS)] = None
    chunk_ids: Annotated[str | list[int] | None, doc("only these chunks: 1,2,5 or 0..4", SEEDS)] = None
    rerun_done: Annotated[bool, doc("ignore .done markers and run again", SEEDS)] = False
    wandb_name: WandbName = None
    wandb_group: WandbGroup = None
    wandb_project: WandbProject = DEFAULT_PROJECT
    log_samples: Annotated[bool, doc("also log 200 records", REPORT)] = False


def check_log_samples(options: WorkOptions) -> None:
    """Raise ConfigError where records are to be logged, and nothing says where."""
    if options.log_samples and options.wandb_name is None:
        raise ConfigError(
            "--log_samples logs records to Weights & Biases, so it needs --wandb_name=NAME.",
            hint="Without it all records are in output*.jsonl.",
        )


def tracking_of(name: str | None, project: str, group: str | None, *, samples: bool = False) -> Tracking | None:
    """Return what to log, checked before any work; None: nothing. Raises ConfigError, AuthError."""
    from newskills.run.reporting.tracking import Tracking, check_tracking

    if name is None or not check_tracking(os.environ):
        return None
    return Tracking(name=name, project=project, group=group, samples=samples)
