# SPDX-License-Identifier: Apache-2.0
"""What `ns nemo_gym_rollouts` does: a job for each seed, with the policy, a sandbox and NeMo Gym beside each other."""

from __future__ import annotations

import os
from collections.abc import Sequence

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.config.ids import parse_ids
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command, CommandGroup
from newskills.launch.machines.ssh import shell_of
from newskills.launch.scripts.gym_clients import GYM_PATH, NemoGymRolloutsScript
from newskills.models.config import ServerConfig
from newskills.models.wire import base_url_of
from newskills.pipelines.gym_rollouts.options import GymRolloutsOptions
from newskills.pipelines.models import serve_spec
from newskills.pipelines.notices import print_note
from newskills.pipelines.placement.cluster import ClusterPaths, paths_of
from newskills.pipelines.submission.groups import MAIN, groups_of, sandbox_script, server_script
from newskills.pipelines.submission.job_command import job_functions, planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission

CONTAINERS = ("nemo-gym", "nemo-rl")
"""Names of images that have NeMo Gym, the better one first."""


def prepare(parsed: Parsed[GymRolloutsOptions], cluster: ClusterConfig) -> PreparedSubmission | None:
    """Prepare a job for each seed whose rollouts are not there; None: nothing is left to do. Raises ConfigError."""
    options = planned_options(parsed)
    _check_policy(options)
    container = options.gym_container or next((n for n in CONTAINERS if n in cluster.containers), CONTAINERS[-1])
    paths = paths_of(cluster, container, options)
    folder = paths.path_in_job(options.output_dir, "--output_dir")
    files = _rollout_files(options, folder)
    left = files
    if not options.rerun_done:
        left = _unfinished_files(files, paths, cluster)
    if not left:
        print_note(f"nothing to do: all rollouts are already in {folder}")
        return None
    name = options.expname or "nemo_gym_rollouts"
    extra = [f"+{key}={value}" for key, value in parsed.overrides.items()]
    plan = Plan()
    for file in left:
        groups = _command_groups(options, cluster, paths, file, container, extra)
        plan.add(f"{name}{_seed_suffix(file)}", groups, outputs=(file,), copies=options.dependent_jobs)
    shown = {"configs": " ".join(_config_paths(options)), "writes": " ".join(left)}
    return prepare_submission(name, plan, cluster, options, shown)


run, generate_rollouts = job_functions(prepare)


def _check_policy(options: GymRolloutsOptions) -> None:
    """Raise ConfigError for a policy that is neither served nor at an address, or has no name, and for other options
    that do not fit."""
    if not _config_paths(options):
        raise ConfigError("--config_paths: no config of NeMo Gym is given.")
    if not options.server_address and not options.model:
        raise ConfigError(
            "No policy is given. Give --model with --server_type and --server_gpus to serve it, or --server_address."
        )
    if not options.server_address:
        return
    if not options.model and options.policy_model_name is None:
        raise ConfigError("--server_address needs the name of the model there: --policy_model_name or --model.")
    served = ("server_type", "server_gpus", "server_nodes", "server_args", "server_container", "server_entrypoint")
    if idle := [f"--{option}" for option in served if getattr(options, option)]:
        raise ConfigError(f"{', '.join(idle)}: only for a server that is started, so not with --server_address.")


def _config_paths(options: GymRolloutsOptions) -> list[str]:
    return [path.strip() for text in options.config_paths for path in text.split(",") if path.strip()]


def _rollout_files(options: GymRolloutsOptions, folder: str) -> list[str]:
    """Return the files to write. Raises ConfigError."""
    if options.random_seeds is not None:
        if options.num_random_seeds is not None:
            raise ConfigError("Give --random_seeds or --num_random_seeds, not both.")
        seeds = parse_ids(options.random_seeds, "--random_seeds")
    elif options.num_random_seeds is not None:
        seeds = list(range(options.starting_seed, options.starting_seed + options.num_random_seeds))
    else:
        return [f"{folder}/rollouts.jsonl"]
    return [f"{folder}/rollouts-rs{seed}.jsonl" for seed in seeds]


def _seed_suffix(file: str) -> str:
    """Return the part of a job's name that says which seed it has."""
    _, dash, seed = os.path.basename(file).removesuffix(".jsonl").partition("-")
    return f"{dash}{seed}"


def _unfinished_files(files: Sequence[str], paths: ClusterPaths, cluster: ClusterConfig) -> list[str]:
    exists = shell_of(cluster, os.environ).exists([paths.host_path(file) for file in files])
    return [file for file, is_done in zip(files, exists, strict=True) if not is_done]


def _command_groups(
    options: GymRolloutsOptions,
    cluster: ClusterConfig,
    paths: ClusterPaths,
    file: str,
    container: str,
    extra: Sequence[str],
) -> list[CommandGroup]:
    server = address = None
    name = options.policy_model_name or (options.model[0] if options.model else None)
    if options.server_address:
        address = base_url_of(ServerConfig(base_url=options.server_address[0]))
    else:
        server = server_script(serve_spec(options, elsewhere=not cluster.properties.this_machine), options)
        name = options.policy_model_name
    sandbox = sandbox_script(options)
    script = NemoGymRolloutsScript(
        config_paths=_config_paths(options),
        input_file=paths.path_in_job(options.input_file, "--input_file"),
        output_file=file,
        extra_arguments=extra,
        server=server,
        server_address=address,
        sandbox=sandbox,
        gym_path=options.gym_path or GYM_PATH,
        policy_api_key=options.policy_api_key,
        policy_model_name=name,
        installation_command=options.installation_command,
    )
    client = Command(
        script, container=container, name=MAIN, avoid_nemo_run_code=not options.use_mounted_nemo_skills
    )
    return groups_of(client, options, server=server, sandbox=sandbox)
