# SPDX-License-Identifier: Apache-2.0
"""Everything that can be known to be wrong before anything is submitted, all of it at once, a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from newskills.base.errors import ConfigError, NewskillsError, suggest
from newskills.base.plan import Command, CommandGroup, Job, Pipeline, Ref
from newskills.launch.clusters.config import ClusterConfig, environment_setting, image_of
from newskills.launch.clusters.mounts import CODE, Mount, is_inside, is_reachable, parse_mounts
from newskills.launch.clusters.names import is_file_name, is_variable, looks_secret
from newskills.launch.clusters.times import seconds_of
from newskills.launch.clusters.variables import JobVariables, job_variables, missing_sentence, missing_variables

RESERVED_NAMES = ("job",)
"""Commands that would take the place of a job's own files."""

SHORTEST_SECRET = 8
"""Characters; shorter values of secrets would be found in many a text."""

Problems = Iterator[str]


class _ClusterFacts(Struct, frozen=True):
    """What is known of the place while a pipeline is looked through."""

    cluster: ClusterConfig
    environ: Mapping[str, str]
    variables: JobVariables
    check_paths: bool


def check_pipeline(
    pipeline: Pipeline,
    cluster: ClusterConfig,
    environ: Mapping[str, str],
    *,
    skip_hf_home_check: bool | None = None,
) -> None:
    """Check the pipeline; `environ` is that of the submitting process. Raises ConfigError with all problems."""
    problem_list = pipeline_problems(pipeline, cluster, environ, skip_hf_home_check=skip_hf_home_check)
    if len(problem_list) == 1:
        raise ConfigError(problem_list[0])
    if problem_list:
        lines = "".join(f"\n- {problem}" for problem in problem_list)
        raise ConfigError(f"{len(problem_list)} errors; nothing was submitted:{lines}\n")


def pipeline_problems(
    pipeline: Pipeline,
    cluster: ClusterConfig,
    environ: Mapping[str, str],
    *,
    skip_hf_home_check: bool | None = None,
) -> list[str]:
    """Return the problems as sentences; none: the pipeline can be submitted."""
    if skip_hf_home_check is None:
        skip = cluster.skip_hf_home_check
    else:
        skip = skip_hf_home_check
    problem_list: list[str] = []
    variables = JobVariables()
    if missing := missing_variables(cluster, environ):
        problem_list.append(missing_sentence(cluster, missing))
    else:
        try:
            variables = job_variables(cluster, environ)
        except ConfigError as error:
            problem_list.append(str(error))
    check_paths = environment_setting("DISABLE_MOUNT_CHECK", environ).lower() in ("", "0", "false", "no")
    where = _ClusterFacts(cluster, environ, variables, check_paths)
    problem_list += _name_problems(pipeline)
    problem_list += _dependency_problems(pipeline)
    for job in pipeline.jobs:
        problem_list += _job_problems(job, pipeline, where)
    if not skip:
        problem_list += _hf_home(pipeline, where)
    return list(dict.fromkeys(problem_list))


def _name_problems(pipeline: Pipeline) -> Problems:
    if not pipeline.jobs:
        yield f"Pipeline '{pipeline.name}' has no jobs."
    yield from _bad_name("The pipeline", pipeline.name)
    yield from _repeated_names("jobs", [job.name for job in pipeline.jobs])
    logs: list[tuple[str, str]] = []
    for job in pipeline.jobs:
        yield from _bad_name("A job", job.name)
        yield from _repeated_names(f"groups of job '{job.name}'", [group.name for group in job.groups])
        yield from _repeated_names(f"commands of job '{job.name}'", [command.name for command in job.commands()])
        for group in job.groups:
            yield from _bad_name(f"A group of job '{job.name}'", group.name)
        for command in job.commands():
            yield from _bad_name(f"A command of job '{job.name}'", command.name)
            if command.name in RESERVED_NAMES:
                yield (
                    f"A command of job '{job.name}' has the name '{command.name}', which is the name of the "
                    "job's own script."
                )
        if job.log_dir is not None:
            logs += [(job.log_dir, name) for name in {command.name for command in job.commands()}]
    for (folder, name), times in Counter(logs).items():
        if times > 1:
            yield f"{times} jobs would write the same log, {folder}/{name}.log."


def _bad_name(what: str, name: str) -> Problems:
    if not is_file_name(name):
        yield (
            f"{what} has the name '{name[:120]}'; expected a file name of letters, digits and _.+=@- (100 "
            "at most)."
        )


def _repeated_names(what: str, names: list[str]) -> Problems:
    for name, times in Counter(names).items():
        if times > 1:
            how_many = "Two" if times == 2 else times
            yield f"{how_many} {what} have the name '{name}'."


def _dependency_problems(pipeline: Pipeline) -> Problems:
    names = {job.name for job in pipeline.jobs}
    for job in pipeline.jobs:
        for need in job.depends_on:
            if need not in names:
                yield (
                    f"Job '{job.name}' depends on '{need}', which is not a job of the "
                    f"pipeline{suggest(need, names)}"
                )
        if "" in job.run_after:
            yield f"Job '{job.name}' runs after an experiment without a name."
    if circle := _circular_jobs(
        {job.name: {need for need in job.depends_on if need in names} for job in pipeline.jobs}
    ):
        yield f"These jobs wait for each other in a circle: {', '.join(circle)}."


def _circular_jobs(needs: Mapping[str, set[str]]) -> list[str]:
    """Return the jobs that can never start, as each of them waits for another one of them."""
    waiting = dict(needs)
    while ready := [name for name, need in waiting.items() if not need & waiting.keys()]:
        for name in ready:
            del waiting[name]
    needed = {need for name in waiting for need in waiting[name]}
    return [name for name in waiting if name in needed]


def _job_problems(job: Job, pipeline: Pipeline, where: _ClusterFacts) -> Problems:
    if not job.groups:
        yield f"Job '{job.name}' has no groups of commands."
        return
    if not any(command.role == "client" for command in job.commands()):
        yield f"Job '{job.name}' has no client, so it would never end."
    if job.copies < 0:
        yield f"Job '{job.name}' has {job.copies} follow-up jobs; expected 0 or more."
    for name in job.files:
        yield from _bad_name(f"A file of job '{job.name}'", name)
    for group in job.groups:
        what = f"Group '{group.name}' of job '{job.name}'"
        if not group.commands:
            yield f"{what} has no commands."
        yield from _hardware_problems(what, group, where.cluster)
    if where.cluster.properties.shares_first_node:
        yield from _nodes_beyond_first(job, where.cluster)
    yield from _port_problems(job, where.cluster)
    yield from _ref_problems(job, pipeline)
    for command in job.commands():
        what = f"Command '{command.name}' of job '{job.name}'"
        yield from _script_problems(what, command, where)
        yield from _place_problems(what, command, where)
    yield from _output_problems(job, where)


def _hardware_problems(what: str, group: CommandGroup, cluster: ClusterConfig) -> Problems:
    hardware = group.hardware
    for number, unit, least in (
        (hardware.num_nodes, "nodes", 1),
        (hardware.num_gpus, "GPUs", 0),
        (hardware.num_tasks, "tasks", 1),
    ):
        if number < least:
            yield f"{what} asks for {number} {unit}; the minimum is {least}."
    if hardware.num_nodes > 1 and cluster.properties.this_machine:
        yield f"{what} asks for {hardware.num_nodes} nodes, but executor {cluster.executor} has one machine."
    for name in ("partition", "account", "qos"):
        value = getattr(hardware, name)
        if value is not None and (not value or any(ch.isspace() or not ch.isprintable() for ch in value)):
            yield f"{what}: {name} '{value}' is not a name."
    yield from _time_problems(what, group, cluster)
    for key, value in hardware.sbatch_kwargs.items():
        if not is_variable(key.replace("-", "_")):
            yield f"{what}: sbatch_kwargs has '{key}', which is not an option of sbatch."
        elif value is not None and not isinstance(value, str | int | float | bool):
            yield f"{what}: sbatch_kwargs.{key} must be text, a number, true or false."
        elif any(not ch.isprintable() for ch in str(value)):
            yield f"{what}: sbatch_kwargs.{key} has a line break or control character in it."


def _nodes_beyond_first(job: Job, cluster: ClusterConfig) -> Problems:
    """Check groups that share the first node of their job: one of them may have further nodes."""
    if cluster.properties.this_machine:
        return
    several = [group for group in job.groups if group.hardware.num_nodes > 1]
    if len(several) > 1:
        names = " and ".join(f"'{group.name}'" for group in several)
        where = f"on executor {cluster.executor}"
        yield f"Job '{job.name}': {where}, one group may have several nodes; {names} ask for some."
    if cluster.properties.tasks_per_node:
        return
    for command in (command for group in several for command in group.commands):
        if command.script.tasks_per_node > 1:
            yield (
                f"Command '{command.name}' of job '{job.name}' wants {command.script.tasks_per_node} processes on "
                "each of several nodes, which need Slurm."
            )


def _time_problems(what: str, group: CommandGroup, cluster: ClusterConfig) -> Problems:
    hardware = group.hardware
    partition = hardware.partition or cluster.partition or ""
    limit = hardware.time_limit or cluster.timeouts.get(partition, cluster.default_timeout)
    seconds = {}
    for name, text in (("time_min", hardware.time_min), ("time_limit", limit)):
        if text is not None:
            try:
                seconds[name] = seconds_of(text)
            except ConfigError as error:
                yield f"{what}, {name}: {error}"
    if seconds.get("time_min", 0) > seconds.get("time_limit", float("inf")):
        yield f"{what}: time_min {hardware.time_min} is more than the time limit {limit}."


def _port_problems(job: Job, cluster: ClusterConfig) -> Problems:
    """Yield a problem for each fixed port that is taken twice on the same machine."""
    taken: dict[tuple[int, int], str] = {}
    for number, group in enumerate(job.groups):
        machine = 0 if cluster.properties.shares_first_node else number
        for command in group.commands:
            if port := command.script.port:
                other = taken.setdefault((machine, port), command.name)
                if other != command.name:
                    yield f"Commands '{other}' and '{command.name}' of job '{job.name}' both want port {port}."


def _ref_problems(job: Job, pipeline: Pipeline) -> Problems:
    commands = {command.name: command for command in job.commands()}
    waits: dict[str, set[str]] = {name: set() for name in commands}
    for command in commands.values():
        what = f"Command '{command.name}' of job '{job.name}'"
        for ref in _refs_of(command):
            other = commands.get(ref.component)
            if other is None:
                homes = {command.name: job.name for job in pipeline.jobs for command in job.commands()}
                home = homes.get(ref.component)
                if home:
                    elsewhere = f", which runs in job '{home}': references work only within one job."
                else:
                    elsewhere = None
                yield f"{what} refers to '{ref.component}'{elsewhere or suggest(ref.component, commands)}"
            elif ref.attribute == "rank":
                if other is not command:
                    yield f"{what} refers to the rank of '{ref.component}'; a command has only its own rank."
            elif ref.attribute not in ("node", "folder"):
                if other.script.port is None:
                    yield f"{what} refers to the {ref.attribute} of '{ref.component}', which has no port."
                if other is not command:
                    waits[command.name].add(other.name)
    if circle := _circular_jobs(waits):
        yield f"These commands of job '{job.name}' wait for each other to answer: {', '.join(circle)}."


def _refs_of(command: Command) -> list[Ref]:
    words = (*command.script.argv, *command.script.env.values())
    return [word for word in words if isinstance(word, Ref)]


def _script_problems(what: str, command: Command, where: _ClusterFacts) -> Problems:
    script = command.script
    if not script.argv or script.argv[0] == "":
        yield f"{what} has nothing to run."
    if script.port is not None and not 0 <= script.port <= 65535:
        yield f"{what}: {script.port} is not a port number."
    if script.tasks_per_node < 1:
        yield f"{what} has {script.tasks_per_node} tasks per node; the minimum is 1."
    if script.ready is not None and script.ready.patience <= 0:
        yield f"{what} has {script.ready.patience} s to start; it must be more than 0."
    for name, value in script.env.items():
        if not is_variable(name):
            yield f"{what}: '{name}' is not the name of a variable."
        if looks_secret(name) and isinstance(value, str) and value:
            yield f"{what} contains the value of {name}, which looks like a secret; give only its name."
    for name in script.secrets:
        if name not in where.environ and name not in where.variables.secrets:
            yield f"{what} needs {name}, which is not set in this shell."
        if name in script.env:
            yield f"{what}: {name} is both a secret and a plain variable."
    texts = [_word_text(word) for word in (*script.argv, *script.env.values(), script.setup)]
    if any("\0" in text for text in texts):
        yield f"{what} has a NUL character in its arguments."
    for name in _leaked_secrets(texts, script.secrets, where):
        yield f"{what} has the value of {name} in its arguments, where others can read it; give only its name."


def _word_text(word: str | Ref) -> str:
    if isinstance(word, str):
        return word
    return word.before + word.after


def _leaked_secrets(texts: list[str], secrets: Iterable[str], where: _ClusterFacts) -> list[str]:
    """Return the names of secrets whose values stand in `texts`."""
    values = {name: where.environ.get(name, "") for name in secrets}
    values |= {name: value for name, value in where.variables.secrets.items() if looks_secret(name)}
    long = {name: value for name, value in values.items() if len(value) >= SHORTEST_SECRET}
    return [name for name, value in long.items() if any(value in text for text in texts)]


def _place_problems(what: str, command: Command, where: _ClusterFacts) -> Problems:
    try:
        image, mounts = _command_container(command, where.cluster)
    except NewskillsError as error:
        yield f"{what}: {error}"
        return
    if image is None:
        return
    if where.cluster.properties.squashed_images and image.endswith(".sqsh") and not image.startswith("/"):
        yield (f"{what}: the image {image} must be an absolute path; otherwise Pyxis looks for it in a registry.")
    if not where.check_paths:
        return
    if command.workdir is not None and not command.workdir.startswith("/"):
        yield (
            f"{what}: the working folder '{command.workdir}' must be absolute, because it is used in a container."
        )
    for path in command.paths:
        yield from _path_problems(what, path, mounts)


def _command_container(command: Command, cluster: ClusterConfig) -> tuple[str | None, tuple[Mount, ...]]:
    """Return the image that a command runs in (None: no container), and its mounts. Raises NewskillsError."""
    if cluster.properties.containers == "job":
        return cluster.ray.image, (*parse_mounts(cluster.mounts), Mount(cluster.job_dir, cluster.job_dir))
    return image_of(cluster, command.container), parse_mounts(cluster.mounts_of(command))


def _path_problems(what: str, path: str, mounts: Sequence[Mount]) -> Problems:
    if not path.startswith("/"):
        yield f"{what}: the path '{path}' must be absolute, because it is used in a container."
    elif not is_inside(path, CODE) and not is_reachable(path, mounts):
        there = "there are no mounts"
        if mounts:
            there = f"the mounts are {', '.join(map(str, mounts))}"
        yield f"{what}: {path} is not below a mount, so the container cannot see it ({there})."


def _output_problems(job: Job, where: _ClusterFacts) -> Problems:
    """Yield a problem for each output path that none of the clients reaches."""
    clients = [command for command in job.commands() if command.role == "client"]
    try:
        containers = [_command_container(command, where.cluster) for command in clients]
    except NewskillsError:
        return
    if not all(image for image, _ in containers) or not clients or not where.check_paths:
        return
    for path in job.outputs:
        mount_problems = [list(_path_problems(f"Job '{job.name}'", path, mounts)) for _, mounts in containers]
        if all(mount_problems):
            yield from mount_problems[0]


def _hf_home(pipeline: Pipeline, where: _ClusterFacts) -> Problems:
    """Yield a problem where HF_HOME is not mounted: containers forget what they download elsewhere."""
    cluster = where.cluster
    try:
        images = [image_of(cluster, command.container) for job in pipeline.jobs for command in job.commands()]
        mounts = parse_mounts(cluster.mounts)
    except NewskillsError:
        return
    if not any(images):
        return
    remedy = "or give --skip_hf_home_check"
    variables = {**where.variables.secrets, **where.variables.plain}
    if "HF_HOME" not in variables:
        yield f"HF_HOME is not in env_vars of cluster '{cluster.name}': add HF_HOME=/a/mounted/folder, {remedy}."
    elif not is_reachable(variables["HF_HOME"], mounts):
        yield f"HF_HOME={variables['HF_HOME']} is not below a mount of cluster '{cluster.name}': mount it, {remedy}."
