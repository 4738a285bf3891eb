# SPDX-License-Identifier: Apache-2.0
"""The job that exports the results of an invocation when all of its tasks have ended (`execution.auto_export`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Ref, Script
from newskills.base.records import Row
from newskills.launch.clusters.config import ClusterConfig, image_of, python_of
from newskills.launch.clusters.names import looks_secret
from newskills_evaluator.config import CompiledConfig
from newskills_evaluator.deployments.environment import DeploymentVariables
from newskills_evaluator.deployments.place import client_image
from newskills_evaluator.deployments.programs import AUTO_EXPORT
from newskills_evaluator.export_results import DESTINATIONS, ExportPlan, FinishedJob
from newskills_evaluator.tasks import benchmark_name

EXPORT, FILE = "export", "export.json"
PASSED = (
    *("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL", "WANDB_PROJECT", "WANDB_ENTITY"),
    *("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"),
)
"""Variables of the submitting shell that tell where results go. They travel by name, as addresses may hold keys."""


def export_plan(compiled: CompiledConfig, invocation: str, folder: str) -> ExportPlan:
    """Return the plan of what is to be exported, and how; it holds nothing secret. Raises ConfigError."""
    for place in compiled.execution.auto_export:
        DESTINATIONS.resolve(place)
    settings = {name: dict(section) for name, section in compiled.export.items()}
    _check_secrets(settings)
    if "wandb" in settings or "wandb" in compiled.execution.auto_export:
        wandb_settings = settings.setdefault("wandb", {})
        for key, value in (("project", compiled.wandb.project), ("entity", compiled.wandb.entity)):
            if value and not wandb_settings.get(key):
                wandb_settings[key] = value
    model = compiled.target.model_id or compiled.deployment.served_model_name or ""
    return ExportPlan(
        invocation=invocation,
        executor=compiled.execution.type,
        destinations=tuple(compiled.execution.auto_export),
        settings=settings,
        jobs=tuple(
            FinishedJob(
                id=f"{invocation}.{task.index}",
                task=task.name,
                benchmark=benchmark_name(task.benchmark or task.name),
                container=task.container or "",
                model=model,
                folder=f"{folder}/{task.folder}",
            )
            for task in compiled.tasks
        ),
    )


def export_job(
    compiled: CompiledConfig,
    invocation: str,
    cluster: ClusterConfig,
    folder: str,
    jobs: Sequence[Job],
    variables: DeploymentVariables,
) -> Job:
    """Make the job that exports after all tasks, however they ended. Raises ConfigError."""
    plan = export_plan(compiled, invocation, folder)
    image = client_image(compiled)
    contained = image_of(cluster, image) is not None
    env = variables.of(compiled.export_env, "export")
    startup = compiled.place.startup_commands
    before = "\n".join(text for text in ("set -e", *startup, env.exports()) if text.strip())
    words = (python_of(cluster, image if contained else None), "-m", AUTO_EXPORT)
    passed = [name for name in PASSED if name in variables.environ and name not in env.plain]
    command = Command(
        name=EXPORT,
        script=Script(
            argv=("bash", "-c", f'{before}\nexec "$@"', "bash", *words, Ref(EXPORT, "folder", after=f"/{FILE}")),
            env={"WANDB_DIR": Ref(EXPORT, "folder"), **env.plain},
            secrets=tuple(dict.fromkeys([*env.secrets, *passed])),
        ),
        container=image,
        mounts=(f"{folder}:{folder}",) if contained else None,
    )
    execution = compiled.execution
    own = (compiled.config.get("execution") or {}).get("auto_export") or {}
    hardware = HardwareConfig(
        partition=own.get("partition") or execution.cpu_partition or execution.partition,
        account=execution.account,
        time_limit="00:30:00" if cluster.properties.has_time_limits else None,
    )
    return Job(
        name=EXPORT,
        groups=(CommandGroup(name=EXPORT, commands=(command,), hardware=hardware),),
        depends_on=tuple(job.name for job in jobs),
        files={FILE: msgspec.json.format(msgspec.json.encode(plan), indent=2).decode() + "\n"},
    )


def _check_secrets(settings: dict[str, Row]) -> None:
    """Raise ConfigError where the settings hold a secret: they are written into a file."""

    def check_section(section: Any, path: str) -> None:
        if not isinstance(section, dict):
            return
        for key, value in section.items():
            if looks_secret(str(key)) and value:
                raise ConfigError(
                    f"{path}.{key} contains what looks like a secret; it would be written into a file.",
                    hint="Leave it out, and set the variable that its library reads (WANDB_API_KEY, …).",
                )
            check_section(value, f"{path}.{key}")

    check_section(settings, "export")
