# SPDX-License-Identifier: Apache-2.0
"""Jobs of trainings on clusters: the trainer with Ray and what serves it, and what is chosen where nobody has said."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError
from newskills.base.plan import Ref, Script, Word
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.node_size import node_size
from newskills.launch.clusters.times import seconds_of
from newskills.launch.declarative import Command, CommandGroup
from newskills.launch.machines.ssh import shell_of
from newskills.launch.registry import NodeSize
from newskills.launch.scripts.clients import wrap_command
from newskills.launch.scripts.script import (
    Context,
    JobScript,
    SandboxScript,
    ServerScript,
    ray_words,
    sandbox_secrets,
    server_secrets,
)
from newskills.models.serving.gpus import visible_gpus
from newskills.pipelines.arguments import read_json
from newskills.pipelines.notices import print_note
from newskills.pipelines.placement.cluster import ClusterPaths, hardware_of, paths_of
from newskills.pipelines.submission.groups import MAIN, SANDBOX, sandbox_env, sandbox_mounts
from newskills.pipelines.training.foreign.options import RayOptions, RewardServices, TrainingOptions
from newskills.prompts.official.table import official_folders
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.run.training.examples import context_of
from newskills.train.pipelines.common import LOGS, TrainerRun, Wandb
from newskills.train.pipelines.formats import DataFileFacts, FormatError, examine_file, examine_first_line
from newskills.train.shape import ModelShape, model_shape
from newskills_sandbox.variables import HOST_VARIABLE, PORT_VARIABLE

INSIDE, HARVEST = "newskills.train.pipelines.inside", "newskills.train.pipelines.harvest"
JUDGE_ADDRESS, JUDGE_MODEL = "NEMO_SKILLS_JUDGE_ADDRESS", "NEMO_SKILLS_JUDGE_MODEL"
"""Variables by which rewards find the judges: the address of the first, `…_1`, `…_2` those of others."""
USUAL_GPUS = 8
FIRST_BYTES = 1 << 20
"""What is looked at of a file on the other side of ssh."""
MANY_PARAMETERS = 20e9
"""From here on a model is split by Megatron where nobody has chosen."""
_BILLIONS = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)[bB](?![a-zA-Z])")


@dataclass(eq=False)
class InsideScript(JobScript):
    """`words` inside one of the modules that run in the images of trainers.

    options   of the module
    nodes     of the job
    ray       resources of the Ray cluster around it (JSON); None: no Ray
    template  program that starts Ray instead of our own
    before    shell text
    judges    servers of this job; `judge_address`: one that runs already
    """

    words: Sequence[Word]
    _: KW_ONLY
    module: str = INSIDE
    options: Sequence[Word] = ()
    nodes: int = 1
    ray: str | None = None
    template: str | None = None
    before: str | None = None
    env: Mapping[str, Word] = field(default_factory=dict)
    judges: Sequence[ServerScript] = ()
    judge_address: str | None = None
    judge_model: str | None = None
    sandbox: SandboxScript | None = None
    port: int | None = None

    def build(self, context: Context) -> Script:
        words: Sequence[Word] = (context.python, "-m", self.module, *self.options, "--", *self.words)
        words = wrap_command(words, self.before, None)
        if self.ray is not None:
            start = ray_words(self.nodes, context, self.ray)
            if self.template is not None:
                start = (self.template, *start[3:])
            words = (*start, *words)
        env: dict[str, Word] = {**self.env, **sandbox_env(self.sandbox, context), **self._judges(context)}
        keys = dict.fromkeys(name for server in self.judges for name in server_secrets(server, context))
        secrets = (*keys, *sandbox_secrets(self.sandbox, context))
        return self._script(
            words, context, env=env, secrets=secrets, all_nodes=self.nodes > 1 or self.span_group_nodes
        )

    def _judges(self, context: Context) -> dict[str, Word]:
        judges: dict[str, Word] = {}
        for number, server in enumerate(self.judges):
            judges[f"{JUDGE_ADDRESS}_{number}" if number else JUDGE_ADDRESS] = context.ref(server)
        if self.judge_address is not None:
            judges[JUDGE_ADDRESS] = self.judge_address
        if self.judge_model is not None:
            judges[JUDGE_MODEL] = self.judge_model
            if self.judges:
                judges[JUDGE_MODEL] = self.judges[0].name
        return judges


class TrainingPlacement(Struct, frozen=True, kw_only=True):
    """The cluster as a training finds it: what was not said is chosen here, and told."""

    options: TrainingOptions
    paths: ClusterPaths
    name: str

    @classmethod
    def for_cluster(
        cls, cluster: ClusterConfig, options: TrainingOptions, container: str, name: str
    ) -> TrainingPlacement:
        """Return the placement on `cluster`; `container` and `name` are used where the options name no others."""
        paths = paths_of(cluster, options.container or container, options)
        return cls(options=options, paths=paths, name=options.expname or name)

    @property
    def cluster(self) -> ClusterConfig:
        return self.paths.cluster

    def output_dir(self) -> str:
        """Return the output folder as the jobs see it. Raises ConfigError where there is no place for it."""
        if self.options.output_dir is not None:
            return self.paths.path_in_job(self.options.output_dir, "--output_dir").rstrip("/")
        job_dir = self.cluster.job_dir
        for place in (os.path.abspath("results"), job_dir and f"{job_dir}/results"):
            if self.cluster.ssh_tunnel is not None and not place.startswith(f"{self.cluster.job_dir}/"):
                continue
            try:
                chosen = f"{self.paths.client_path(place, '--output_dir')}/{self.name}"
            except ConfigError:
                continue
            print_note(f"no --output_dir: writing to {chosen}")
            return chosen
        raise ConfigError(
            f"No output folder is given, and no mount of cluster '{self.cluster.name}' contains the default "
            "folder or job_dir.",
            hint="Give --output_dir, as the containers see it.",
        )

    def trainer_run(self, model: str) -> TrainerRun:
        """Return what the trainer is told. Raises ConfigError."""
        gpus, limit = self._node_limits()
        return TrainerRun(
            name=self.name,
            model=model,
            output_dir=self.output_dir(),
            nodes=self.options.num_nodes,
            gpus=gpus,
            limit=limit,
            wandb=self._wandb_settings(),
        )

    def model(self, name: str) -> str:
        """Return a folder as the jobs see it, or a name on the hub. Raises ConfigError."""
        if os.path.isabs(name):
            return os.path.normpath(name)
        local = os.path.expanduser(name)
        if self.cluster.ssh_tunnel is None and os.path.isdir(local):
            return self.paths.client_path(local, "--model")
        if name.startswith((".", "~")):
            raise ConfigError(f"--model={name}: there is no such folder here.")
        return name

    def sequence_length(self, wanted: int | None, model: str, usual: int) -> int:
        """Return the tokens of a sequence: what is `wanted`, else `usual` or what `model` can see, with a note.

        Raises ConfigError for more than the model can see.
        """
        folder = _folder_here(model, self.paths)
        window = context_of(folder) if folder is not None else None
        if wanted is None:
            chosen = min(usual, window or usual)
            print_note(f"no --max_length: {chosen} tokens for prompt and answer")
            return chosen
        if window is not None and wanted > window:
            raise ConfigError(f"--max_length={wanted}: the context of {model} is {window} tokens.")
        return wanted

    def data(self, path: str | None, option: str) -> str | None:
        if path is None:
            return None
        return self.paths.path_in_job(path, option)

    def data_facts(self, data_path: str, forms: tuple[str, ...], data_format: str | None) -> DataFileFacts | None:
        """Return what is known here of a file of data; None: only the job can check it. Raises DataError,
        ConfigError."""
        if data_format is not None and data_format not in forms:
            raise ConfigError(f"--data_format={data_format}: expected {' or '.join(forms)}.")
        here = self.paths.local_path(data_path)
        try:
            if here is not None:
                return examine_file(here, forms)
            if self.cluster.ssh_tunnel is not None and (line := self._first_line(data_path)):
                return examine_first_line(line, data_path, forms)
        except FormatError as error:
            raise DataError(f"{error}") from error
        if not self.options.run_after and self.cluster.ssh_tunnel is None:
            raise DataError(
                f"There is no {self.paths.host_path(data_path)}.",
                hint="If another experiment writes it: --run_after=NAME.",
            )
        if data_format is None:
            print_note(
                f"{data_path} is not visible from here: assuming format {forms[-1]} (--data_format); the job "
                "checks it first"
            )
        return None

    def _first_line(self, data_path: str) -> bytes:
        """Read the first line of a file of the cluster's; empty where the file does not exist, or its first line
        is very long."""
        path = self.paths.host_path(data_path)
        ran = shell_of(self.cluster, os.environ).run(["head", "-c", str(FIRST_BYTES), "--", path])
        line, end, _ = ran.out.partition("\n")
        if ran.code == 0 and (end or len(ran.out) < FIRST_BYTES // 4):
            return line.encode()
        return b""

    def container(self, usual: str) -> str:
        return self.options.container or usual

    def logs(self, output_dir: str) -> str | None:
        """Return the folder of the logs as the scheduler knows it; None where the user has named one."""
        if self.options.log_dir:
            return None
        return self.paths.host_path(f"{output_dir}/{LOGS}")

    def group(self, command: Command, logs: str | None, **needs: Any) -> CommandGroup:
        if self.options.exclusive is not None:
            options = self.options
        else:
            options = replace(self.options, exclusive=True)
        return CommandGroup([command], hardware=hardware_of(options, **needs), name=MAIN, log_dir=logs)

    def _wandb_settings(self) -> Wandb | None:
        options = self.options
        if options.disable_wandb:
            return None
        names = {entry.partition("=")[0] for entry in self.cluster.env_vars}
        if "WANDB_API_KEY" not in os.environ and "WANDB_API_KEY" not in names:
            print_note("no WANDB_API_KEY: this run is not logged to Weights & Biases")
            return None
        wandb = Wandb(project=options.wandb_project, name=self.name, group=options.wandb_group)
        wandb.check()
        return wandb

    def _node_limits(self) -> tuple[int, int | None]:
        """Return (GPUs per node, the seconds that a job may take)."""
        partition = self.options.partition or self.cluster.partition
        if self.cluster.properties.this_machine:
            here = self.options.num_gpus or visible_gpus()
            if not here:
                raise ConfigError("No GPU is visible here: give --num_gpus, or a --cluster that has GPUs.")
            return here, None
        time_option = read_json(self.options.sbatch_kwargs, "--sbatch_kwargs").get("time")
        time_limit = self.cluster.timeouts.get(partition or "")
        if time_option:
            time_limit = str(time_option)
        gpus = self.options.num_gpus
        size = NodeSize()
        if not gpus or not time_limit:
            size = node_size(self.cluster, partition, os.environ)
        if gpus is None:
            gpus = size.gpus or USUAL_GPUS
            remark = "" if size.gpus else " (the cluster did not report it)"
            print_note(f"no --num_gpus: {gpus} per node{remark}")
        if time_limit:
            return gpus, seconds_of(time_limit)
        usual = seconds_of(self.cluster.default_timeout)
        return gpus, min(usual, size.limit or usual)


def shape_here(model: str, paths: ClusterPaths) -> ModelShape | None:
    """Return the sizes of a model whose folder is on this machine, too; None for others. Raises DataError for a
    config.json that cannot be read."""
    folder = _folder_here(model, paths)
    if folder is None:
        return None
    return model_shape(folder)


def form_of(data_file: DataFileFacts | None, forms: tuple[str, ...], data_format: str | None) -> str:
    """Return the form of rows: the one that was asked for, else that of the file, else the last of `forms`."""
    if data_format:
        return data_format
    if data_file is not None:
        return data_file.form
    return forms[-1]


def _folder_here(model: str, paths: ClusterPaths) -> Path | None:
    """Return the folder of a model, which has a config.json, where this machine sees it."""
    folder = paths.local_path(model) if model.startswith("/") else None
    if folder is not None and os.path.isfile(f"{folder}/config.json"):
        return Path(folder)
    return None


def key_as_number(overrides: Mapping[str, str], key: str, usual: int | None = None) -> int | None:
    """Return the number that a trainer's own key is set to, else `usual`. Raises ConfigError."""
    value = overrides.get(key)
    if value is None:
        return usual
    try:
        return int(float(value))
    except ValueError as error:
        raise ConfigError(f"++{key}={value}: expected a number.") from error


def check_lora(options: RayOptions, backend: str) -> None:
    """Raise ConfigError for LoRA pairs with Megatron, whose checkpoints have to be merged by its own program."""
    if options.lora_rank is not None and backend == "megatron":
        raise ConfigError(
            "--lora_rank needs --backend=fsdp: pairs that Megatron trains cannot be merged here.",
            hint="Give --backend=fsdp, or leave out --lora_rank.",
        )


def backend_of(options: RayOptions, model: str, paths: ClusterPaths) -> Literal["fsdp", "megatron"]:
    """Return the backend that was asked for, else one by the size of the model, which is reported."""
    if options.backend is not None:
        return options.backend
    size = _estimate_parameters(model, paths)
    chosen: Literal["fsdp", "megatron"] = "megatron" if size >= MANY_PARAMETERS else "fsdp"
    remark = ""
    if size:
        remark = f" (about {size / 1e9:.3g} billion parameters)"
    print_note(f"no --backend: {chosen}{remark}")
    return chosen


def _estimate_parameters(model: str, paths: ClusterPaths) -> float:
    """Estimate the number of parameters by the files of the folder (two bytes each), else by the name; 0 if
    unknown."""
    folder = paths.local_path(model)
    if folder is not None and os.path.isdir(folder):
        files = [entry for entry in os.scandir(folder) if entry.name.endswith(".safetensors")]
        if files:
            return sum(entry.stat().st_size for entry in files) / 2
    match = _BILLIONS.search(model.rsplit("/", 1)[-1])
    if match:
        return float(match[1]) * 1e9
    return 0.0


def judges_of(options: RewardServices) -> list[ServerScript]:
    """Return the judge servers to start. Raises ConfigError."""
    if options.server_address is not None or not options.server_gpus:
        if options.server_model is not None and options.server_address is None:
            raise ConfigError(
                "No judge server is given. Give --server_address, or --server_gpus and --server_type."
            )
        return []
    if not options.server_type or not options.server_model:
        raise ConfigError("To serve the judge here, give --server_type and --server_model.")
    return [
        ServerScript(
            options.server_type,
            options.server_model,
            num_gpus=options.server_gpus,
            num_nodes=options.server_nodes,
            server_args=options.server_args,
            server_entrypoint=options.server_entrypoint,
        )
        for _ in range(options.n_servers)
    ]


def sandbox_of(options: RewardServices, placement: TrainingOptions) -> SandboxScript | None:
    if not options.with_sandbox:
        return None
    overrides_given = options.sandbox_env_overrides
    overrides = [word for word in overrides_given if word.partition("=")[0] not in (HOST_VARIABLE, PORT_VARIABLE)]
    return SandboxScript(keep_mounts=placement.keep_mounts_for_sandbox, env_overrides=overrides)


def with_others(
    group: CommandGroup, script: InsideScript, options: RewardServices, placement: TrainingOptions
) -> list[CommandGroup]:
    """Add the sandbox to `group`, and each judge in a group of its own."""
    groups = [group]
    if script.sandbox is not None:
        mounts = sandbox_mounts(placement.sandbox_mounts)
        sandbox = Command(
            script.sandbox, container=placement.sandbox_container or "sandbox", name=SANDBOX, mounts=mounts
        )
        group.commands = [sandbox, *group.commands]
    for number, server in enumerate(script.judges):
        name = f"judge-{number}"
        container = options.server_container or server.server_type
        needed = hardware_of(placement, gpus=server.num_gpus, nodes=server.num_nodes)
        command = Command(server, container=container, name=name)
        groups.append(CommandGroup([command], hardware=needed, name=name, log_dir=group.log_dir))
    return groups


def one_blank(prompt_config: str) -> str:
    """Return the user's part of a prompt with `{}` for the problem, for `str.format`. Raises ConfigError."""
    mark = "\0"
    overrides = PromptOverrides(official_folders=official_folders(None))
    messages = load_prompt(prompt_config, overrides).messages({"problem": mark})
    texts = [message.content for message in messages]
    if len(texts) != 1 or not isinstance(texts[0], str) or texts[0].count(mark) != 1:
        raise ConfigError(
            f"--prompt_config={prompt_config}: trainers need a prompt of one user message that contains the "
            "problem once."
        )
    return texts[0].replace("{", "{{").replace("}", "}}").replace(mark, "{}")


def torchrun_words(own: str, nodes: int, gpus: int) -> list[Word]:
    """Return words of torchrun: one process for each GPU of each node; they meet at the first one."""
    return [
        "-m",
        "torch.distributed.run",
        f"--nnodes={nodes}",
        f"--nproc-per-node={gpus}",
        Ref(own, "rank", "--node-rank="),
        Ref(own, "node", "--master-addr="),
        Ref(own, "meeting_port", "--master-port="),
    ]
