# SPDX-License-Identifier: Apache-2.0
"""Where a suite runs (`cluster`, `output`) and what serves its model, as sections of the launcher's configurations."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from newskills.base.records import Row

Fault = Callable[[Sequence[str | int], str], None]
ENGINES = ("vllm", "sglang")
EXPORTERS = ("wandb", "mlflow")
FOLDER = "./eval_results"


def section_of(value: Any) -> Row:
    """Return `value` where it is a section; an empty one where it is something else."""
    if isinstance(value, dict):
        return value
    return {}


def execution_of(tree: Row, service: Row, fault: Fault) -> tuple[Row, list[str]]:
    """Return the section `execution`, with its option under `group`, and notes."""
    cluster, output = section_of(tree.get("cluster")), section_of(tree.get("output"))
    listed = [str(destination) for destination in output.get("export") or []]
    notes = [f"output.export {name}: run ns export afterwards" for name in listed if name not in EXPORTERS]
    common: Row = {
        "output_dir": output.get("dir", FOLDER),
        "auto_export": {"destinations": [destination for destination in listed if destination in EXPORTERS]},
    }
    kind = cluster.get("type", "local")
    if kind in ("local", "docker"):
        return {"group": "local", **common}, notes
    if kind != "slurm":
        fault(("cluster", "type"), f"newskills runs on local and slurm, not on '{kind}'")
        return {"group": "local", **common}, notes
    if cluster.get("shards"):
        notes.append("cluster.shards: each benchmark is one job; rows are asked for all at once")
    return {"group": "slurm/default", **common, **_slurm_section(cluster, service, fault)}, notes


def _slurm_section(cluster: Row, service: Row, fault: Fault) -> Row:
    pools = section_of(cluster.get("node_pools"))
    chosen = service.get("node_pool") or next(iter(pools), "")
    if chosen not in pools:
        fault(
            ("cluster", "node_pools"),
            f"there is no pool '{chosen}'; a cluster has at least one, with its partition",
        )
    pool = section_of(pools.get(chosen))
    gpus = pool.get("gpus_per_node")
    mounts = dict(str(mount).split(":", 1) for mount in cluster.get("container_mounts") or [] if ":" in str(mount))
    slurm_settings = {
        "hostname": cluster.get("hostname") or "localhost",
        "username": cluster.get("username"),
        "account": cluster.get("account"),
        "partition": pool.get("partition"),
        "num_nodes": pool.get("nodes", 1),
        "ntasks_per_node": pool.get("ntasks_per_node", 1),
        "gres": pool.get("gres") or (f"gpu:{gpus}" if gpus else None),
        "walltime": cluster.get("walltime", "04:00:00"),
        "sbatch_extra_flags": {
            **section_of(cluster.get("sbatch_extra_flags")),
            **section_of(pool.get("sbatch_extra_flags")),
        },
        "mounts": {"deployment": mounts, "evaluation": mounts, "mount_home": cluster.get("mount_home", True)},
        "env_vars": {"evaluation": _literal_values(cluster.get("container_env"))},
    }
    if cluster.get("max_walltime"):
        slurm_settings["max_walltime"] = cluster["max_walltime"]
    return slurm_settings


def deployment_of(name: str, service: Row, key: str | None, fault: Fault) -> tuple[Row, Row]:
    """Return the sections `deployment`, with its option under `group`, and `target`."""
    kind, model = service.get("type"), service.get("model")
    if kind == "api":
        endpoint = {"url": service.get("url"), "model_id": model, "api_key_name": key}
        for what in ("url", "model"):
            if not service.get(what):
                fault(("services", name, what), f"a service needs a {what}")
        return {"group": "none"}, {"api_endpoint": endpoint}
    if kind not in ENGINES:
        fault(
            ("services", name, "type"),
            f"newskills cannot serve '{kind}': write api with the url of a server, or vllm",
        )
        return {"group": "none"}, {}
    if not model:
        fault(("services", name, "model"), "a service needs a model")
    settings = {
        "image": service.get("image"),
        "port": service.get("port"),
        "tensor_parallel_size": service.get("tensor_parallel_size") or 1,
        "pipeline_parallel_size": service.get("pipeline_parallel_size"),
        "data_parallel_size": service.get("data_parallel_size"),
    }
    deployment: Row = {
        "group": kind,
        **{key: value for key, value in settings.items() if value is not None},
        "served_model_name": service.get("served_model_name") or name,
        "checkpoint_path": None,
        "hf_model_handle": model,
        "extra_args": shlex.join(str(argument) for argument in service.get("extra_args") or []),
        "env_vars": _literal_values(service.get("extra_env")),
    }
    if str(model).startswith(("/", ".")):
        deployment |= {"checkpoint_path": model, "hf_model_handle": None}
    commands = [*(service.get("setup_commands") or [])]
    if service.get("pre_cmd"):
        commands.append(service["pre_cmd"])
    if commands:
        deployment["pre_cmd"] = "\n".join(map(str, commands))
    return deployment, {}


def _literal_values(values: Any) -> Row:
    return {key: f"lit:{value}" for key, value in section_of(values).items()}
