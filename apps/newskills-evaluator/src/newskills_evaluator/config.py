# SPDX-License-Identifier: Apache-2.0
"""A compiled configuration of `ns evaluate`: everything resolved, typed where newskills acts on it.

The schema is that of NeMo Evaluator's launcher (0.2.6) and of the older dialect of its environment variables
(interop.md §2.6, §3.2). `CompiledConfig.config` keeps the whole of it, with what newskills does not read itself.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from newskills.base.records import Row

Mode = Literal["local", "run", "batch"]
"""local: here and now; run: submitted and waited for; batch: submitted."""
DeploymentType = Literal["none", "vllm", "vllm_ray", "sglang", "nim", "trtllm", "generic"]
Dialect = Literal["0.1", "0.2"]
"""Of environment variables: names per section (0.1), or `host:`/`lit:`/`runtime:` values (0.2)."""


class EnvValue(Struct, frozen=True):
    """Where the value of an environment variable comes from; only `lit` carries the value itself.

    host     variable `value` of the machine that submits: it travels by name, never as text in a file
    lit      the text `value`
    runtime  variable `value` of the machine on which the task runs
    """

    kind: Literal["host", "lit", "runtime"]
    value: str


EnvMap = dict[str, EnvValue]


class Profile(Struct, frozen=True, kw_only=True):
    """One profile of env.toml after `extends`. `settings` holds all its keys, also those of no meaning here.

    time, build_time  [D-]HH:MM:SS
    tunnel            `ssh`: jobs are submitted on `host`; else on this machine
    mounts            `source:target[:ro]`
    env_vars          name → text, of the jobs
    """

    name: str
    executor: Literal["local", "docker", "slurm"] = "local"
    account: str | None = None
    partition: str | None = None
    run_partition: str | None = None
    batch_partition: str | None = None
    build_partition: str | None = None
    build_time: str | None = None
    build_gpus_per_node: int | None = None
    time: str = "04:00:00"
    nodes: int = 1
    ntasks_per_node: int = 1
    nproc_per_node: int = 1
    gpus_per_node: int | None = None
    cpus_per_task: int | None = None
    mem: str | None = None
    exclusive: bool | None = None
    tunnel: str | None = None
    host: str | None = None
    user: str | None = None
    identity: str | None = None
    remote_job_dir: str | None = None
    container_image: str | None = None
    mounts: tuple[str, ...] = ()
    env_vars: dict[str, str] = {}
    startup_commands: tuple[str, ...] = ()
    workdir: str | None = None
    settings: Row = {}

    @property
    def is_local(self) -> bool:
        return self.executor == "local"

    @property
    def is_slurm(self) -> bool:
        return self.executor == "slurm"

    @property
    def needs_images(self) -> bool:
        """Whether its jobs run in containers of this machine."""
        return self.executor == "docker"


class WandbSection(Struct, frozen=True, kw_only=True):
    """Section `[wandb]` of env.toml."""

    project: str | None = None
    entity: str | None = None


class ExecutionSection(Struct, frozen=True, kw_only=True):
    """Section `execution`. `output_dir` lies where the tasks run; `walltime` is HH:MM:SS.

    mounts  source → target; `:ro` may follow the target
    gres    as sbatch takes it; None: no GPUs are asked for
    sbatch  further settings of sbatch; true is a flag without a value, None leaves one out
    """

    type: str
    output_dir: str
    mode: Literal["sequential", "parallel"] = "sequential"
    hostname: str | None = None
    username: str | None = None
    account: str | None = None
    partition: str | None = None
    cpu_partition: str | None = None
    num_nodes: int = 1
    num_instances: int = 1
    ntasks_per_node: int = 1
    gres: str | None = None
    walltime: str | None = None
    max_walltime: str | None = None
    endpoint_readiness_timeout: float | None = None
    sbatch: Row = {}
    deployment_mounts: dict[str, str] = {}
    evaluation_mounts: dict[str, str] = {}
    mount_home: bool = False
    proxy_image: str | None = None
    auto_export: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        return self.type == "local"

    @property
    def is_slurm(self) -> bool:
        return self.type == "slurm"


class Deployment(Struct, frozen=True, kw_only=True):
    """Section `deployment`. `command` is shell text of the config's author; None: the type's own command.

    health, chat, completions  paths of the server
    """

    type: DeploymentType = "none"
    image: str | None = None
    command: str | None = None
    pre_cmd: str = ""
    checkpoint_path: str | None = None
    hf_model_handle: str | None = None
    served_model_name: str | None = None
    port: int = 8000
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    gpu_memory_utilization: float | None = None
    extra_args: str = ""
    health: str = "/health"
    chat: str = "/v1/chat/completions"
    completions: str = "/v1/completions"
    n_tasks: int = 1
    env: EnvMap = {}

    @property
    def num_gpus(self) -> int:
        """The GPUs of one instance: the product of its parallel sizes."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size

    @property
    def is_served(self) -> bool:
        """Whether a server is started; else the section `target` names a running one."""
        return self.type != "none"


class Target(Struct, frozen=True, kw_only=True):
    """Section `target.api_endpoint`, of `deployment: none`. `api_key_name` names a variable."""

    url: str = ""
    model_id: str = ""
    api_key_name: str | None = None


class Params(Struct, frozen=True, kw_only=True):
    """`nemo_evaluator_config.config.params` of a task over those of all tasks. None: the benchmark's own.

    parallelism  requests at once; request_timeout in seconds
    """

    limit_samples: float | None = None
    max_new_tokens: int | None = None
    max_retries: int | None = None
    parallelism: int | None = None
    task: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    request_timeout: float | None = None
    extra: Row = {}


class EvaluationTask(Struct, frozen=True, kw_only=True):
    """One item of `evaluation.tasks`.

    index      place in the invocation, from 0: the job is `<invocation>.<index>`
    name       as in the config; `folder` is `<harness.task>.<index>`, its run directory's name
    benchmark  newskills' own, `name[:samples]`; None: the task belongs to NeMo Evaluator only
    few_shot   shots that the task's name asks for; None: the benchmark's own
    env        all variables of the task, those of its section under its own
    unread     keys of its section that neither the launcher nor newskills reads
    """

    index: int
    name: str
    folder: str
    benchmark: str | None = None
    few_shot: int | None = None
    container: str | None = None
    endpoint_type: str | None = None
    params: Params = Params()
    env: EnvMap = {}
    pre_cmd: str = ""
    post_cmd: str = ""
    dataset_dir: str | None = None
    dataset_mount_path: str | None = None
    settings: Row = {}
    unread: tuple[str, ...] = ()


class Image(Struct, frozen=True):
    """A container image that the configuration names at `path` (`deployment.image`, `execution.proxy.image`)."""

    path: str
    reference: str


class CompiledConfig(Struct, frozen=True, kw_only=True):
    """What `ns evaluate` has made of a config file, a profile and a command line; nothing is left to resolve.

    config        all sections but `run`, in `dialect`, as the launcher gets them; tasks are those chosen
    run           section `run`: env, wandb and where they come from; it holds no secrets
    source        path of the config file
    export        section → settings (`wandb`, `mlflow`, …)
    force_squash  the cached images are made anew
    """

    mode: Mode
    source: str
    config: Row
    run: Row
    execution: ExecutionSection
    deployment: Deployment
    target: Target
    tasks: tuple[EvaluationTask, ...]
    profile: Profile | None = None
    wandb: WandbSection = WandbSection()
    export: dict[str, Row] = {}
    export_env: EnvMap = {}
    dialect: Dialect = "0.2"
    force_squash: bool = False

    @property
    def place(self) -> Profile:
        """The profile; where none is given, one that sets nothing and has no name."""
        return self.profile or Profile(name="")

    @property
    def is_local(self) -> bool:
        """Whether neither --run nor --batch submits it."""
        return self.mode == "local"

    @property
    def runs_here(self) -> bool:
        """Whether the tasks run on this machine."""
        return self.is_local or self.execution.is_local

    def images(self) -> tuple[Image, ...]:
        """List every image that the run needs, once for each place that names it."""
        named = [
            ("deployment.image", self.deployment.image),
            ("execution.proxy.image", self.execution.proxy_image),
        ]
        named += [(f"evaluation.tasks.{task.index}.container", task.container) for task in self.tasks]
        return tuple(Image(path, reference) for path, reference in named if reference)
