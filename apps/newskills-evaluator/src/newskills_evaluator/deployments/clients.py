# SPDX-License-Identifier: Apache-2.0
"""The client that evaluates one task, and what it leaves in the task's run directory.

`<folder>/artifacts` holds what `ns eval` writes and results.yml; `<folder>/logs` has stage.pre-start, stage.running and
stage.exit (time, exit code) beside the logs, under the names that NVIDIA's launcher gives them.
"""

from __future__ import annotations

import shlex

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, Ref, Script, Word
from newskills.launch.clusters.config import ClusterConfig, image_of, python_of
from newskills.launch.clusters.mounts import CODE
from newskills_evaluator.artifacts import FACTS, RunFacts
from newskills_evaluator.config import CompiledConfig, EvaluationTask
from newskills_evaluator.deployments.environment import CommandEnvironment
from newskills_evaluator.deployments.place import client_image, mounts_of
from newskills_evaluator.deployments.programs import ARTIFACTS
from newskills_evaluator.deployments.servers import PROXY, SERVER
from newskills_evaluator.tasks import eval_call

CLIENT = "client"
DATASETS = "/datasets"
ROUTES = ("/chat/completions", "/completions", "/responses")

_BEGIN = """\
logs=@LOGS@
mkdir -p -- "$logs" && rm -f -- "$logs"/stage.*
date -u +%FT%TZ >"$logs/stage.pre-start"
own=job.log
if [[ -n ${SLURM_JOB_ID:-} ]]; then own=@JOB@_${SLURM_JOB_ID}_sbatch.log; fi
ln -sfn -- client.log "$logs/client_stdout.log"
ln -sfn -- @SERVER@.log "$logs/server_stdout.log"
ln -sfn -- "$own" "$logs/stdout.log"
ln -sfn -- job.sh "${logs%/*}/run.sh"
"""
"""Runs before the client waits for its server."""
_WORK = """\
logs=$1 prepare=("${@:3:$2}")
shift $(($2 + 2))
finish=("${@:2:$1}")
shift $(($1 + 1))
trap : TERM INT # the work gets them, too; this shell still has to say how it ended
trap 'code=$?; printf "%s %s\\n" "$(date -u +%FT%TZ)" "$code" >"$logs/stage.exit"' EXIT
date -u +%FT%TZ >"$logs/stage.running"
begin() {
    set -e
    @BEFORE@
    set +e
}
begin
if ! "${prepare[0]}" -c "import msgspec, yaml, newskills"; then
    echo "There is no newskills where this task runs ($(hostname), ${prepare[0]}): install it in the image, or name" \
        "another one as the task's container or the profile's container_image; without images, startup_commands" \
        "may activate an environment that has it." >&2
    exit 1
fi
"${prepare[@]}" && "$@" && "${finish[@]}"
code=$?
@AFTER@
exit "$code"
"""


def client_command(
    compiled: CompiledConfig,
    task: EvaluationTask,
    cluster: ClusterConfig,
    folder: str,
    *,
    server: str | None,
    env: CommandEnvironment,
) -> Command:
    """Make the command that runs a task. `server`: the command whose address it asks; None:
    `target.api_endpoint`. Raises ConfigError."""
    image = client_image(compiled, task)
    contained = image_of(cluster, image) is not None
    key = compiled.target.api_key_name if server is None else None
    call = eval_call(task, model=_model_name(compiled, server), key_name=key, output_dir=f"{folder}/artifacts")
    secrets = [*env.secrets]
    if key:
        secrets.append(key)
    log_owner = f"{SERVER}-0" if server == PROXY else SERVER
    python = python_of(cluster, image if contained else None)
    evaluate = (call.evaluate[0], "--cluster=none", *call.evaluate[1:])
    prepare = (python, "-m", "newskills", call.prepare[0], "--cluster=none", *call.prepare[1:])
    finish: tuple[Word, ...] = (
        *(python, "-m", ARTIFACTS, f"{folder}/artifacts"),
        Ref(CLIENT, "folder", after=f"/{FACTS}"),
        *("ns", *call.evaluate),
    )
    counted: tuple[Word, ...] = (f"{folder}/logs", str(len(prepare)), *prepare, str(len(finish)), *finish)
    work: tuple[Word, ...] = (python, "-m", "newskills", *evaluate, _address_option(compiled, task, server))
    return Command(
        name=CLIENT,
        script=Script(
            argv=("bash", "-c", _work_text(compiled, task, env), "bash", *counted, *work),
            env={**env.plain, **_dataset_env(task, contained=contained)},
            secrets=tuple(dict.fromkeys(secrets)),
            setup=_setup_text(f"{folder}/logs", task.folder, log_owner),
        ),
        container=image,
        mounts=tuple(_task_mounts(compiled, task)) if contained else None,
        workdir=CODE if contained else None,
    )


def _setup_text(logs: str, job: str, server: str) -> str:
    names = {"@LOGS@": shlex.quote(logs), "@JOB@": shlex.quote(job), "@SERVER@": server}
    text = _BEGIN
    for mark, name in names.items():
        text = text.replace(mark, name)
    return text


def facts_of(compiled: CompiledConfig, task: EvaluationTask) -> str:
    """Return the text of the file `FACTS` in the job's folder."""
    url: str | None = compiled.target.url
    server = None
    if compiled.deployment.is_served:
        url, server = None, CLIENT
    endpoint = {
        "url": url,
        "model_id": _model_name(compiled, server),
        "type": task.endpoint_type or "chat",
        "api_key_name": compiled.target.api_key_name,
    }
    config = {"type": task.name, "output_dir": "artifacts", **(task.settings.get("config") or {})}
    facts = RunFacts(config=config, target={"api_endpoint": endpoint})
    return msgspec.json.format(msgspec.json.encode(facts), indent=2).decode() + "\n"


def _work_text(compiled: CompiledConfig, task: EvaluationTask, env: CommandEnvironment) -> str:
    startup = compiled.place.startup_commands
    before = "\n".join(text for text in (*startup, env.exports(), task.pre_cmd) if text.strip())
    return _WORK.replace("    @BEFORE@\n", f"{before or ':'}\n").replace("@AFTER@", task.post_cmd or ":")


def _model_name(compiled: CompiledConfig, server: str | None) -> str:
    deployment = compiled.deployment
    if server is None:
        return compiled.target.model_id
    name = deployment.served_model_name or deployment.hf_model_handle or deployment.checkpoint_path
    if not name:
        raise ConfigError(
            "deployment: the name under which the model is served is missing.", hint="Add served_model_name: NAME."
        )
    return name


def _address_option(compiled: CompiledConfig, task: EvaluationTask, server: str | None) -> Word:
    """Return the option with the address to which clients append `/chat/completions`: the launcher's configurations
    name the whole route."""
    if server is None:
        return f"--server_address={base_of(compiled.target.url)}"
    if task.endpoint_type == "completions":
        route = compiled.deployment.completions
    else:
        route = compiled.deployment.chat
    return Ref(server, "address", "--server_address=", base_of(route))


def base_of(url: str) -> str:
    """Return the address to which routes are appended: `url` without the route that it ends with."""
    url = url.rstrip("/")
    return next((url.removesuffix(route) for route in ROUTES if url.endswith(route)), url)


def _dataset_env(task: EvaluationTask, *, contained: bool) -> dict[str, Word]:
    if not task.dataset_dir:
        return {}
    folder = task.dataset_dir
    if contained:
        folder = task.dataset_mount_path or DATASETS
    return {"NEMO_EVALUATOR_DATASET_DIR": folder}


def _task_mounts(compiled: CompiledConfig, task: EvaluationTask) -> list[str]:
    mounts = mounts_of(compiled.execution.evaluation_mounts, compiled)
    if task.dataset_dir:
        mounts.append(f"{task.dataset_dir}:{task.dataset_mount_path or DATASETS}:ro")
    return mounts
