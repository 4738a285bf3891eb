# SPDX-License-Identifier: Apache-2.0
"""What `ns nemo_evaluator` does: a job for each task; model and judge are served in groups of nodes of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.base.plan import HardwareConfig, Ready, Ref, Script, Word
from newskills.base.records import Row
from newskills.config.command_line import Parsed
from newskills.config.values import Text
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command, CommandGroup
from newskills.launch.scripts.script import Context, JobScript, ServerScript, server_secrets
from newskills.pipelines.placement.cluster import ClusterPaths, hardware_of, paths_of
from newskills.pipelines.submission.groups import MAIN, OWN_CONTAINER
from newskills.pipelines.submission.job_command import job_functions, planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills_evaluator.compile.compiler import CompileRequest, compile_config
from newskills_evaluator.config import CompiledConfig, EvaluationTask
from newskills_evaluator.running.options import HEALTH, NemoEvaluatorOptions

RUN_CONFIG = "run_config.yml"
JUDGE = "judge"
_SETTINGS = "NEMO_EVALUATOR_"
"""Beginning of the names of variables that change how it works: its log, its telemetry."""
_ELSEWHERE = "http://served-by-this-job"
"""Address in the configuration of a task whose server the job starts; the command line has the right one."""
_PROGRAM = 'exec "$(command -v nemo-evaluator || command -v eval-factory || echo nemo-evaluator)" "$@"'
"""Old containers have the program under its old name."""


class ModelEndpointOptions(Struct, frozen=True, kw_only=True):
    """The options of one of the two models."""

    type: str | None
    model: str | None
    gpus: int
    nodes: int
    port: int | None
    args: str
    entrypoint: str | None
    container: str | None
    base_url: str | None
    api_path: str
    health_path: str


@dataclass(eq=False)
class EvaluatedServer(ServerScript):
    """A server with a health route of the user's."""

    _: KW_ONLY
    health: str = HEALTH

    def build(self, context: Context) -> Script:
        script = super().build(context)
        if self.health == HEALTH:
            return script
        return replace(script, ready=Ready(path=self.health, patience=self.patience))


@dataclass(eq=False)
class EvaluatorScript(JobScript):
    """`nemo-evaluator run_eval` over the configuration in the job's folder; servers of the job are named to it."""

    _: KW_ONLY
    server: ServerScript | None = None
    server_path: str = ""
    judge: ServerScript | None = None
    judge_path: str = ""
    secrets: tuple[str, ...] = ()

    def build(self, context: Context) -> Script:
        program: tuple[Word, ...] = ("bash", "-c", _PROGRAM, "bash")
        env: dict[str, Word] = {name: value for name, value in os.environ.items() if name.startswith(_SETTINGS)}
        if context.image is None:
            program = (context.python, "-m", "nemo_evaluator.core.entrypoint")
            env["PATH"] = f"{os.path.dirname(context.python)}:{os.environ.get('PATH', '')}"
        words: list[Word] = [*program, "run_eval", "--run_config"]
        words.append(Ref(context.own, "folder", after=f"/{RUN_CONFIG}"))
        if self.server is not None:
            words.append(replace(context.ref(self.server), before="--model_url=", after=self.server_path))
        if self.judge is not None:
            before = "--overrides=config.params.extra.judge.url="
            words.append(replace(context.ref(self.judge), before=before, after=self.judge_path))
        keys = [name for server in (self.server, self.judge) for name in server_secrets(server, context)]
        return self._script(words, context, env=env, secrets=(*self.secrets, *keys))


def prepare(parsed: Parsed[NemoEvaluatorOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare one job for each task. Raises ConfigError, DataError."""
    options = planned_options(parsed)
    main, judge = _endpoint_options(options, ""), _endpoint_options(options, "judge_")
    compiled = _compile_tasks(options, main, parsed.overrides)
    paths = paths_of(cluster, options.main_container or OWN_CONTAINER, options)
    folder = paths.path_in_job(options.output_dir, "--output_dir")
    plan = Plan()
    for task in compiled.tasks:
        _add_task_job(plan, task, options, (main, judge), f"{folder}/{task.folder}", paths)
    shown = {"tasks": " ".join(task.name for task in compiled.tasks), "writes": folder}
    return prepare_submission(options.expname or "nemo-evaluator", plan, cluster, options, shown)


run, result = job_functions(prepare)


def _compile_tasks(
    options: NemoEvaluatorOptions, main: ModelEndpointOptions, overrides: Mapping[str, str]
) -> CompiledConfig:
    """Return the configuration with what the options say about the model. Raises ConfigError, DataError."""
    if not main.model:
        raise ConfigError("No model is given. Give --server_model, the name that its server uses.")
    if main.base_url is None and not main.gpus:
        raise ConfigError(
            "No server is given. Give --server_base_url=http://…, or --server_gpus and --server_type to start one."
        )
    url = f"{(main.base_url or _ELSEWHERE).rstrip('/')}{main.api_path}"
    own = {
        "execution.type": "local",
        "execution.output_dir": _quote_yaml(options.output_dir),
        "deployment.type": _quote_yaml("none"),
        "target.api_endpoint.url": _quote_yaml(url),
        "target.api_endpoint.model_id": _quote_yaml(main.model),
    }
    command_line = CompileRequest(
        mode="local",
        config=str(Path(options.nemo_evaluator_config).absolute()),
        profile=None,
        tasks=(),
        overrides={name: Text(value) for name, value in {**own, **overrides}.items()},
        force_squash=False,
        argv=("ns", "nemo_evaluator"),
    )
    compiled = compile_config(command_line, os.environ, Path.cwd()).config
    if commanding := [task.name for task in compiled.tasks if task.pre_cmd or task.post_cmd]:
        raise ConfigError(
            f"These tasks have pre_cmd or post_cmd, which are not run here: {', '.join(commanding)}.",
            hint="ns evaluate runs them, if you trust them.",
        )
    return compiled


def _quote_yaml(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _add_task_job(
    plan: Plan,
    task: EvaluationTask,
    options: NemoEvaluatorOptions,
    endpoints: tuple[ModelEndpointOptions, ModelEndpointOptions],
    folder: str,
    paths: ClusterPaths,
) -> None:
    main, judge = (_make_server(endpoint, options) for endpoint in endpoints)
    config = _run_config(task, endpoints, folder)
    script = EvaluatorScript(
        server=main,
        server_path=endpoints[0].api_path,
        judge=judge,
        judge_path=endpoints[1].api_path,
        secrets=_key_variables(config),
        installation_command=options.installation_command,
    )
    container = task.container or options.main_container or OWN_CONTAINER
    needed = hardware_of(options, gpus=options.job_gpus, nodes=options.job_nodes)
    groups = [
        CommandGroup([Command(script, container=container, name=MAIN)], hardware=needed, name=MAIN),
        *_server_groups(main, endpoints[0], "server", options),
        *_server_groups(judge, endpoints[1], JUDGE, options),
    ]
    text = msgspec.json.format(msgspec.json.encode(config), indent=1).decode() + "\n"
    plan.add(task.folder, groups, files={RUN_CONFIG: text}, outputs=(folder,), copies=options.dependent_jobs)


def _make_server(endpoint: ModelEndpointOptions, options: NemoEvaluatorOptions) -> EvaluatedServer | None:
    """Return the server to start; None where none is to be started. Raises ConfigError where it is to be served and
    something is missing."""
    if endpoint.base_url is not None or not endpoint.gpus:
        return None
    if not endpoint.type or not endpoint.model:
        raise ConfigError(
            "To serve the model here, give its server type and name (--server_type, --server_model)."
        )
    return EvaluatedServer(
        endpoint.type,
        endpoint.model,
        num_gpus=endpoint.gpus,
        num_nodes=endpoint.nodes,
        server_args=endpoint.args,
        server_entrypoint=endpoint.entrypoint,
        port=endpoint.port,
        health=endpoint.health_path,
    )


def _server_groups(
    server: EvaluatedServer | None, endpoint: ModelEndpointOptions, name: str, options: NemoEvaluatorOptions
) -> list[CommandGroup]:
    if server is None:
        return []
    needed: HardwareConfig = hardware_of(options, gpus=server.num_gpus, nodes=server.num_nodes)
    command = Command(server, container=endpoint.container or server.server_type, name=name)
    return [CommandGroup([command], hardware=needed, name=name)]


def _run_config(
    task: EvaluationTask, endpoints: tuple[ModelEndpointOptions, ModelEndpointOptions], folder: str
) -> Row:
    """Return the configuration that `nemo-evaluator run_eval --run_config` reads: JSON is YAML, too."""
    main, judge = endpoints
    config: Row = msgspec.json.decode(msgspec.json.encode(task.settings.get("config") or {}))
    target: Row = msgspec.json.decode(msgspec.json.encode(task.settings.get("target") or {}))
    config |= {"type": task.name, "output_dir": folder}
    endpoint = target.setdefault("api_endpoint", {})
    endpoint |= {
        "url": f"{(main.base_url or _ELSEWHERE).rstrip('/')}{main.api_path}",
        "model_id": main.model,
        "type": task.endpoint_type or endpoint.get("type") or "chat",
    }
    if judge.model:
        model_id: Row = {"model_id": judge.model}
        if judge.base_url:
            model_id["url"] = f"{judge.base_url.rstrip('/')}{judge.api_path}"
        extra = config.setdefault("params", {}).setdefault("extra", {})
        extra["judge"] = {**extra.get("judge", {}), **model_id}
    return {"config": config, "target": target}


def _key_variables(config: Row) -> tuple[str, ...]:
    """Return the names of the variables that hold keys, as far as they are set here: their values travel by the
    environment."""
    judge = ((config["config"].get("params") or {}).get("extra") or {}).get("judge") or {}
    named = (config["target"]["api_endpoint"].get("api_key_name"), judge.get("api_key"))
    return tuple(name for name in dict.fromkeys(named) if isinstance(name, str) and name in os.environ)


def _endpoint_options(options: NemoEvaluatorOptions, prefix: str) -> ModelEndpointOptions:
    values: dict[str, Any] = {
        field: getattr(options, f"{prefix}server_{field}") for field in ModelEndpointOptions.__struct_fields__
    }
    return ModelEndpointOptions(**values)
