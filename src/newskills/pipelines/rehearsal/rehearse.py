# SPDX-License-Identifier: Apache-2.0
"""A submission's plan, changed so that this machine can run it, run, and told as a list of checks."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import NewskillsError, RemoteError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Pipeline, Ready, Ref, Word
from newskills.base.tables import print_table
from newskills.base.terminal import counted, printable
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig, image_of
from newskills.launch.clusters.trial import try_cluster
from newskills.launch.clusters.variables import missing_variables
from newskills.launch.executors import make_executor
from newskills.launch.experiments import Experiment, job_root
from newskills.launch.machines.ssh import shell_of
from newskills.launch.package import PackageOptions
from newskills.launch.place import ObstacleFinder
from newskills.launch.submit import SubmitOptions, site_of, submit_pipeline, unmet_dependencies
from newskills.launch.validate import pipeline_problems
from newskills.pipelines.options import PlacementOptions, WorkOptions
from newskills.pipelines.placement.cluster import ClusterPaths, cluster_of, paths_of
from newskills.pipelines.placement.packaged_code import below_working_folder, code_paths, map_texts
from newskills.pipelines.placement.shipments import Shipment
from newskills.pipelines.submission.following import follow_experiment
from newskills.pipelines.submission.groups import MAIN, SANDBOX, main_container
from newskills.pipelines.submission.prepared import PreparedSubmission
from newskills.pipelines.submission.submitted import ask_about
from newskills.run.planning.spec import RUN_FILE, RunSpec

ROWS, JOBS = 2, 3
"""Of each input, and for the units of a run."""
NS_RUN, NS = "newskills.run", "newskills"

REACHED = ("ssh", "sbatch")
"""Without these checks of a cluster nobody can be asked anything."""
PARTITIONS = "partitions"
PYTHON = "python"

State = Literal["ok", "note", "wrong"]
P = TypeVar("P", bound=PlacementOptions)


class RehearsalCheck(Struct, frozen=True):
    """One line of the report."""

    what: str
    state: State
    text: str


def rehearse_submission(
    parsed: Parsed[P], prepare: Callable[[Parsed[P], ClusterConfig], PreparedSubmission | None]
) -> list[RehearsalCheck]:
    """Return the checks of what `prepare` makes of a command's options. Raises NewskillsError."""
    parsed = _reduce_work(parsed)
    cluster = cluster_of(parsed.options)
    place = _check_cluster(cluster)
    checks = [RehearsalCheck("config", "ok", f"cluster {cluster.name}, executor {cluster.executor}")]
    try:
        ready = prepare(parsed, cluster)
    except NewskillsError as error:
        return [*checks, *place, RehearsalCheck("plan", "wrong", str(error))]
    assert ready is not None  # with rerun_done there is always something to do
    submission = ready.submission
    if not _runs_newskills(submission.pipeline):
        place = [check for check in place if check.what != PYTHON]
    problem_list = pipeline_problems(
        submission.pipeline, cluster, submission.environ, skip_hf_home_check=submission.skip_hf_home_check
    )
    if not any(check.state == "wrong" and check.what in REACHED for check in place):
        foreseen = _check_scheduler(ready, cluster)
        # A partition that jobs ask for in vain is told with these jobs.
        checks += [check for check in place if not foreseen or check.what != PARTITIONS or check.state == "ok"]
        checks += [*foreseen, *_check_dependencies(ready, cluster)]
    else:
        checks += place
    checks += [RehearsalCheck("plan", "wrong", problem) for problem in problem_list]
    checks += _check_images(submission.pipeline, cluster)
    if not problem_list:
        checks.append(RehearsalCheck("plan", "ok", f"{len(submission.pipeline.jobs)} jobs fit together"))
        checks.append(_check_code(ready, cluster))
        checks += _run_locally(ready, paths_of(cluster, main_container(parsed.options), parsed.options))
    return checks


def _reduce_work(parsed: Parsed[P]) -> Parsed[P]:
    """Reduce the work to few jobs, as if nothing were done."""
    options = parsed.options
    if isinstance(options, WorkOptions):
        few = JOBS if options.num_jobs in (None, -1) else min(options.num_jobs, JOBS)
        options = replace(options, rerun_done=True, num_jobs=few)
    return Parsed(replace(options, dry_run=False), parsed.overrides, parsed.given)


def _check_cluster(cluster: ClusterConfig) -> list[RehearsalCheck]:
    return [RehearsalCheck(check.what, check.state, check.text) for check in try_cluster(cluster, os.environ)]


def _runs_newskills(pipeline: Pipeline) -> bool:
    words = [word for job in pipeline.jobs for command in job.commands() for word in command.script.argv]
    return any(isinstance(word, str) and word.partition(".")[0] == "newskills" for word in words)


def _check_scheduler(ready: PreparedSubmission, cluster: ClusterConfig) -> list[RehearsalCheck]:
    """Return the scheduler's answers about the jobs, where it can tell without having them."""
    jobs, environ = ready.submission.pipeline.jobs, ready.submission.environ
    if missing_variables(cluster, environ):  # a problem of the plan, which tells it
        return []
    name = ready.submission.pipeline.name
    folder = f"{job_root(cluster, environ)}/{name}"
    executor = make_executor(site_of(cluster, environ, name=name, folder=folder, code="", log_dir=None))
    if not isinstance(executor, ObstacleFinder):
        return []
    try:
        obstacles = executor.obstacles(jobs)
    except NewskillsError as error:
        return [RehearsalCheck("scheduler", "wrong", str(error))]
    if not obstacles:
        what = "the job" if len(jobs) == 1 else f"all {len(jobs)} jobs"
        return [RehearsalCheck("scheduler", "ok", f"it would take {what}")]
    return [
        RehearsalCheck(_job_names(obstacle.jobs), "wrong" if obstacle.final else "note", printable(obstacle.text))
        for obstacle in obstacles
    ]


def _job_names(jobs: Sequence[str]) -> str:
    if len(jobs) == 1:
        return jobs[0]
    return f"{jobs[0]} and {len(jobs) - 1} more"


def _check_dependencies(ready: PreparedSubmission, cluster: ClusterConfig) -> list[RehearsalCheck]:
    """Check that what jobs run after is known, and may still come to the end that they wait for."""
    submission = ready.submission
    names = dict.fromkeys(name for job in submission.pipeline.jobs for name in job.run_after)
    if not names:
        return []
    try:
        unmet_jobs = unmet_dependencies(submission.pipeline, cluster, submission.environ, _submit_options(ready))
    except RemoteError as error:
        unmet_jobs = [str(error)]
    if unmet_jobs:
        return [RehearsalCheck("run_after", "wrong", text) for text in unmet_jobs]
    return [RehearsalCheck("run_after", "ok", ", ".join(names))]


def _submit_options(ready: PreparedSubmission) -> SubmitOptions:
    return SubmitOptions(
        dry_run=True,
        skip_hf_home_check=ready.submission.skip_hf_home_check,
        allow_missing_dependency=ready.options.allow_missing_dependency,
        packaging=PackageOptions(allow_uncommitted=ready.options.allow_uncommitted),
    )


def _check_images(pipeline: Pipeline, cluster: ClusterConfig) -> list[RehearsalCheck]:
    """Check images: files are looked for; what an engine or Pyxis would fetch is only named."""
    images = {image_of(cluster, command.container) for job in pipeline.jobs for command in job.commands()}
    files = sorted(image for image in images if image and image.startswith("/"))
    named = sorted(image for image in images if image and not image.startswith("/"))
    try:
        there = shell_of(cluster, os.environ).exists(files)
    except RemoteError as error:
        return [RehearsalCheck("images", "wrong", str(error))]
    checks = []
    for file, exists in zip(files, there, strict=True):
        if exists:
            checks.append(RehearsalCheck("image", "ok", file))
        else:
            checks.append(RehearsalCheck("image", "wrong", f"there is no file {file}"))
    return [
        *checks,
        *(RehearsalCheck("image", "note", f"{image}: pulled when the first job needs it") for image in named),
    ]


def _check_code(ready: PreparedSubmission, cluster: ClusterConfig) -> RehearsalCheck:
    """Check what would be packaged."""
    pipeline = ready.submission.pipeline
    alone = replace(pipeline, jobs=tuple(replace(job, run_after=()) for job in pipeline.jobs))
    try:
        package = submit_pipeline(alone, cluster, ready.submission.environ, _submit_options(ready)).package
    except NewskillsError as error:
        return RehearsalCheck("code", "wrong", str(error))
    if package.commit:
        return RehearsalCheck("code", "ok", f"commit {package.commit[:12]} of {package.repository}")
    return RehearsalCheck("code", "ok", package.path)


def _run_locally(ready: PreparedSubmission, paths: ClusterPaths) -> list[RehearsalCheck]:
    with tempfile.TemporaryDirectory(prefix="newskills-rehearsal-") as folder:
        stage = _LocalPlan(paths, Path(folder), ready.shipments)
        pipeline = ready.submission.pipeline
        plan = Pipeline(name=pipeline.name, jobs=tuple(stage.local_job(job) for job in pipeline.jobs))
        environ = {**ready.submission.environ, "NEWSKILLS_EXPERIMENTS_DIR": f"{folder}/experiments"}
        here = ClusterConfig(
            name="rehearsal",
            job_dir=f"{folder}/jobs",
            env_vars=list(paths.cluster.env_vars),
            dependency_type=paths.cluster.dependency_type,
        )
        try:
            experiment = submit_pipeline(plan, here, environ)
            follow_experiment(experiment)
        except NewskillsError as error:
            return [*stage.notes, RehearsalCheck("run", "wrong", str(error))]
        return [*stage.notes, *_check_outcomes(experiment)]


class _LocalPlan:
    """Where a plan becomes one for this machine. `notes` says what is left out."""

    def __init__(self, paths: ClusterPaths, folder: Path, shipments: Mapping[str, Shipment]) -> None:
        self.paths, self.folder, self.shipments = paths, folder, shipments
        self.results: dict[str, str] = {}
        self.notes: list[RehearsalCheck] = []

    def local_job(self, job: Job) -> Job:
        files = dict(job.files)
        if RUN_FILE in files:
            files[RUN_FILE] = self.local_spec(files[RUN_FILE])
        groups = [
            replace(group, hardware=HardwareConfig(), commands=tuple(map(self.local_command, group.commands)))
            for group in job.groups
        ]
        return replace(
            job, groups=_one_group(groups), files=files, copies=0, outputs=(), makes=(), run_after=(), log_dir=None
        )

    def local_command(self, command: Command) -> Command:
        script = command.script
        if command.role == "server" and command.name != SANDBOX:
            words = (
                sys.executable,
                "-m",
                "newskills.pipelines.rehearsal.stub_model",
                "--port",
                Ref(command.name, "port"),
            )
            self.add_note(command.name, f"'{command.name}' is replaced by a stub with one fixed answer")
            script = replace(script, argv=words, env={}, ready=Ready(patience=60.0))
        else:
            script = replace(script, argv=self.local_argv(command))
        if script.setup:
            self.add_note("setup", "--installation_command is not run")
        port = None if script.port is None else 0
        script = replace(script, port=port, setup="", all_nodes=False, tasks_per_node=1)
        return replace(command, script=script, container=None, mounts=None, workdir=None, paths=())

    def local_argv(self, command: Command) -> tuple[Word, ...]:
        """Return the words to run: our own programs, with results elsewhere; what is the user's is left out."""
        words = command.script.argv
        at = next((at for at, word in enumerate(words) if word in (NS_RUN, NS)), 0)
        if at < 2 or words[at - 1] != "-m":
            self.add_note(command.name, f"'{command.name}' is your own command and is not run")
            return (sys.executable, "-c", "pass")
        if at > 2 and command.name == MAIN:
            self.add_note("preprocess", "--preprocess_cmd is not run")
        return (sys.executable, "-m", *(self.move_results(word) for word in words[at:]))

    def local_spec(self, text: str) -> str:
        """Return run.json with few rows, the input as it is called here, and the output in the temporary
        folder."""
        spec = msgspec.json.decode(text, type=RunSpec)
        units = []
        for unit in spec.units:
            config = unit.config
            output = self.local_result(str(Path(config.output_file).parent)) + "/" + Path(config.output_file).name
            small = config.max_samples if 0 <= config.max_samples < ROWS else ROWS
            if f"{config.input_file}.done" in spec.needs:  # a job of the plan makes it
                source = self.local_result(config.input_file)
            else:
                source = self.local_input(config.input_file)
            if code_paths(config):
                config = map_texts(config, below_working_folder)
            config = replace(config, input_file=source, output_file=output, max_samples=small)
            units.append(replace(unit, config=config))
        beside = {
            self.local_result(str(Path(path).parent)) + "/" + Path(path).name: v for path, v in spec.beside.items()
        }
        needs = tuple(map(self.local_result, spec.needs))
        spec = replace(spec, units=tuple(units), beside=beside, needs=needs, log_dir="", rerun_done=False)
        return msgspec.json.encode(spec).decode()

    def local_input(self, container_path: str) -> str:
        """Return the path of an input file of jobs on this machine."""
        folder, name = os.path.split(container_path)
        if (shipped := self.shipments.get(folder)) is not None:
            return f"{shipped.source}/{name}"
        return self.paths.local_path(container_path) or self.paths.host_path(container_path)

    def local_result(self, folder: str) -> str:
        """Return the stand-in of a results folder."""
        return f"{self.folder}/results{os.path.normpath(folder)}"

    def move_results(self, word: Word) -> Word:
        """Move absolute paths of results in words of our own commands."""
        if isinstance(word, Ref):
            return word
        option, equals, value = word.partition("=")
        if equals and value.startswith("/"):
            return f"{option}={self.local_result(value)}"
        if word.startswith("/"):
            return self.local_result(word)
        return word

    def add_note(self, what: str, text: str) -> None:
        if (check := RehearsalCheck(what, "note", text)) not in self.notes:
            self.notes.append(check)


def _one_group(groups: Sequence[CommandGroup]) -> tuple[CommandGroup, ...]:
    """Return all commands in one group, because this machine is one node."""
    return (replace(groups[0], commands=tuple(command for group in groups for command in group.commands)),)


def _check_outcomes(experiment: Experiment) -> list[RehearsalCheck]:
    about = ask_about(experiment)
    checks = []
    for state in about.states():
        if state.state == "completed":
            checks.append(RehearsalCheck(state.job.name, "ok", f"ran here in {state.seconds or 0:.1f} s"))
            continue
        logs = [Path(state.job.logs, f"{name}.log") for name in state.job.commands]
        last = [line for log in logs if log.exists() for line in log.read_text(errors="replace").splitlines()[-8:]]
        text = "\n".join(f"    | {printable(line)}" for line in last)
        checks.append(RehearsalCheck(state.job.name, "wrong", f"{state.state}: {printable(state.why)}\n{text}"))
    return checks


def report_checks(checks: Sequence[RehearsalCheck]) -> int:
    """Print the checks; return 1 where one is wrong."""
    print_table([(f"[{check.state}]", check.what, check.text) for check in checks])
    wrong = sum(check.state == "wrong" for check in checks)
    verdict = "nothing is wrong: it can be submitted"
    if wrong:
        verdict = f"{counted(wrong, 'check')} failed"
    sys.stdout.write(f"\n{verdict}\n")
    if wrong:
        return 1
    return 0
