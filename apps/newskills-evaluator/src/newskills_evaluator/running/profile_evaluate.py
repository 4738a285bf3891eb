# SPDX-License-Identifier: Apache-2.0
"""What `ns evaluate` does: compile, show, submit; or hand over to NeMo Evaluator's launcher."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from newskills.base.errors import ConfigError, NewskillsError, RemoteError
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.launch.submit import site_of
from newskills.launch.validate import check_pipeline
from newskills.pipelines.invocations import Invocation
from newskills.pipelines.notices import print_note
from newskills.pipelines.submission.plan_view import print_scripts, print_tree
from newskills_evaluator.compile.compiler import CompileRequest, CompilerResult
from newskills_evaluator.config import CompiledConfig, Dialect, Mode
from newskills_evaluator.deployments import DeploymentPlan, plan_invocation
from newskills_evaluator.invocations import Store, new_invocation
from newskills_evaluator.job_folder import forget_secrets, write_config, write_job_folder
from newskills_evaluator.launcher import (
    ask_dry_run,
    check_tasks,
    find_launcher,
    for_launcher,
    hand_over,
    launcher_dialect,
    needs_launcher,
)
from newskills_evaluator.masking import mask_secrets
from newskills_evaluator.oversight import job_statuses, record_jobs
from newskills_evaluator.remote import squash_images, squash_plan, submit_invocation, why_not_squash
from newskills_evaluator.running.compiled_view import show_compiled, show_tasks
from newskills_evaluator.running.invocation import ended_invocation, submitted_invocation
from newskills_evaluator.running.invocations import follow_foreign, follow_jobs, print_jobs
from newskills_evaluator.running.profile_options import ProfileEvaluateOptions
from newskills_evaluator.suites.compiling import compile_all
from newskills_evaluator.tasks import EvalCall, eval_call
from newskills_evaluator.wandb_login import detect_login


def run(parsed: Parsed[ProfileEvaluateOptions]) -> int:
    """Run the command and return the exit code: the first of the compiled evaluations that is not 0.

    Raises ConfigError, DataError.
    """
    return next((invocation.exit_code for invocation in _submit_evaluations(parsed) if invocation.exit_code), 0)


def evaluate_profile(parsed: Parsed[ProfileEvaluateOptions]) -> list[Invocation] | None:
    """Evaluate for Python, and return what was submitted; None for a dry run.

    Raises NewskillsError where a task failed.
    """
    invocations = _submit_evaluations(parsed)
    for invocation in invocations:
        if invocation.exit_code:
            names = ", ".join(task.name for task in invocation.tasks if task.state != "success")
            raise NewskillsError(
                f"Evaluation {invocation.id} ended with exit code {invocation.exit_code}: {names}.",
                hint=f"See: ns logs {invocation.id}. To run the failed tasks again: ns resume {invocation.id}",
            )
    return invocations or None


def _submit_evaluations(parsed: Parsed[ProfileEvaluateOptions]) -> list[Invocation]:
    """Submit the compiled evaluations, and return those that a dry run does not only show. Raises ConfigError,
    DataError."""
    options = parsed.options
    if options.run is not None and options.batch is not None:
        raise ConfigError(
            "--run and --batch exclude each other: --run waits for the jobs, --batch does not.",
            hint=f"For example: ns evaluate -c {options.config or 'CONFIG'} --batch {options.batch}",
        )
    request = _compile_request(parsed)
    environ = dict(os.environ)
    cwd = Path.cwd()
    every = compile_all(request, environ, cwd)
    submitted = (_submit_compiled(parsed, made, environ, cwd) for made in every)
    return [invocation for invocation in submitted if invocation is not None]


def _submit_compiled(
    parsed: Parsed[ProfileEvaluateOptions], made: CompilerResult, environ: Mapping[str, str], cwd: Path
) -> Invocation | None:
    """Submit one compiled evaluation, or show it and return None."""
    program = find_launcher(environ)
    foreign = needs_launcher(made.config)
    if parsed.explain:
        show_compiled(made.config, made.hidden)
        return None
    dialect = launcher_dialect(program) if foreign and program is not None else None
    if made.dry_run:
        _dry_run(made, environ, foreign=foreign)
        check_tasks(made.config, program)
        if dialect is not None and program is not None and not made.open:
            _ask_launcher(program, dialect, made, environ, cwd)
        return None
    check_tasks(made.config, program)
    _check_place(made.config)
    show_compiled(made.config, made.hidden)
    _show_notes(made)
    if dialect is not None and program is not None:
        return _hand_over(program, dialect, made.config, environ, cwd)
    return _submit_config(made.config, environ, cwd)


def _compile_request(parsed: Parsed[ProfileEvaluateOptions]) -> CompileRequest:
    options = parsed.options
    mode: Mode = "local"
    if options.run:
        mode = "run"
    elif options.batch:
        mode = "batch"
    return CompileRequest(
        mode=mode,
        config=options.config,
        profile=options.run or options.batch,
        tasks=tuple(options.task),
        overrides=dict(parsed.overrides),
        force_squash=options.force_squash,
        dry_run=options.dry_run,
        argv=tuple(_command_words(options)),
    )


def _command_words(options: ProfileEvaluateOptions) -> list[str]:
    """Return the options as a command line; `key=value` words are kept beside it."""
    named = {"--config": options.config, "--run": options.run, "--batch": options.batch}
    words = ["ns", "evaluate", *(word for name, value in named.items() if value for word in (name, value))]
    words += [word for task in options.task for word in ("--task", task)]
    if options.force_squash:
        words.append("--force-squash")
    return words


def _check_place(compiled: CompiledConfig) -> None:
    if compiled.is_local and not compiled.execution.is_local:
        raise ConfigError(
            f"execution.type is '{compiled.execution.type}', but no profile is given for it.",
            hint="Give a profile: --run PROFILE or --batch PROFILE. To run here: execution=local, or "
            "execution.type=local with an execution.output_dir of this machine.",
        )


def _eval_calls(compiled: CompiledConfig) -> list[EvalCall | None]:
    model = compiled.target.model_id or compiled.deployment.served_model_name or ""
    key = compiled.target.api_key_name if not compiled.deployment.is_served else None
    folder = compiled.execution.output_dir.rstrip("/")
    calls: list[EvalCall | None] = []
    for task in compiled.tasks:
        call = None
        if task.benchmark is not None:
            call = eval_call(task, model=model, key_name=key, output_dir=f"{folder}/…/{task.folder}/artifacts")
        calls.append(call)
    return calls


def _dry_run(made: CompilerResult, environ: Mapping[str, str], *, foreign: bool) -> None:
    """Print everything that a run would do: panels, tasks, images, the text of each job's script."""
    show_compiled(made.config, made.hidden)
    _show_notes(made)
    for key in made.open:
        sys.stdout.write(mask_secrets(f"open: {printable(key)}\n", made.hidden))
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        calls: list[EvalCall | None] = [None] * len(made.config.tasks)
        if not foreign:
            calls = _eval_calls(made.config)
        show_tasks(made.config, calls)
        if foreign:
            also = ""
            if own := [task.name for task in made.config.tasks if task.benchmark is not None]:
                also = f", also {', '.join(own)}, since one invocation has one runner"
            print(f"nemo-evaluator-launcher would run all tasks{printable(also)}.")
        elif made.open:
            print("The jobs are not shown: first give the values listed as open.")
        elif made.config.is_local and not made.config.execution.is_local:
            print(
                f"execution.type is '{made.config.execution.type}': --run PROFILE or --batch PROFILE submits it."
            )
        else:
            _show_jobs(made.config, environ)
    sys.stdout.write(mask_secrets(shown.getvalue(), made.hidden))


def _ask_launcher(
    program: str, dialect: Dialect, made: CompilerResult, environ: Mapping[str, str], cwd: Path
) -> None:
    """Show what the launcher's own dry run says of the configuration. Raises NewskillsError where it refuses it."""
    environ = _with_wandb(made.config, environ)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "eval.yaml")
        write_config(config, for_launcher(made.config, dialect, environ), cwd)

        def say(line: str) -> None:
            print(mask_secrets(printable(line), made.hidden), flush=True)

        ask_dry_run(program, config, environ, say)


def _show_notes(made: CompilerResult) -> None:
    for note in made.notes:
        sys.stdout.write(mask_secrets(f"note: {printable(note)}\n", made.hidden))


def _show_jobs(compiled: CompiledConfig, environ: Mapping[str, str]) -> None:
    _show_squash(compiled, environ)
    planned = _plan_checked(compiled, environ)
    print_tree(planned.pipeline, planned.cluster)
    name, folder = planned.pipeline.name, planned.folder
    print_scripts(
        planned.pipeline,
        site_of(planned.cluster, planned.environ, name=name, folder=folder, code="", log_dir=None),
    )


def _plan_checked(compiled: CompiledConfig, environ: Mapping[str, str]) -> DeploymentPlan:
    """Plan an invocation, checked as a submission is. Raises ConfigError."""
    planned = plan_invocation(compiled, new_invocation(), environ)
    check_pipeline(planned.pipeline, planned.cluster, planned.environ, skip_hf_home_check=True)
    return planned


def _show_squash(compiled: CompiledConfig, environ: Mapping[str, str]) -> None:
    """Show what becomes of the images. The cluster is asked which of them it has; a dry run works without it, too."""
    if why := why_not_squash(compiled):
        sys.stdout.write(f"images: {printable(why)}\n")
    try:
        plans = squash_plan(compiled, environ)
    except RemoteError as error:
        sys.stdout.write(f"images: cannot tell which of them are already imported: {printable(str(error))}\n")
        return
    for plan in plans:
        sys.stdout.write(f"image {printable(plan.image)}: {printable(plan.why)}: {printable(plan.path)}\n")


def _submit_config(compiled: CompiledConfig, environ: Mapping[str, str], cwd: Path) -> Invocation:
    environ = _with_wandb(compiled, environ)
    _plan_checked(compiled, environ)  # what is wrong is told before images are imported
    compiled = squash_images(compiled, environ, print_note)
    planned = plan_invocation(compiled, new_invocation(), environ)
    write_job_folder(compiled, cwd)
    experiment = submit_invocation(planned, print_note)
    entries = record_jobs(experiment, planned.invocation, compiled, environ)
    sys.stdout.write(
        f"✓ Evaluation submitted: {planned.invocation}\n"
        f"  ns status {planned.invocation}      ns logs {planned.invocation} -f      ns cancel {planned.invocation}\n"
    )
    sys.stdout.flush()
    if compiled.mode == "batch":
        return submitted_invocation(entries)
    code = follow_jobs(experiment, stop=True)
    looked = job_statuses(entries, environ)
    print_jobs(looked)
    return ended_invocation(looked, code)


def _with_wandb(compiled: CompiledConfig, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Add the key, project and entity of W&B to the variables, where results go there and a login is found."""
    if "wandb" not in compiled.execution.auto_export and "wandb" not in compiled.export:
        return environ
    detected = detect_login(environ, compiled.wandb)
    for line in detected.lines:
        sys.stdout.write(f"{line}\n")
    return {**environ, **detected.variables}


def _hand_over(
    program: str, dialect: Dialect, compiled: CompiledConfig, environ: Mapping[str, str], cwd: Path
) -> Invocation:
    environ = _with_wandb(compiled, environ)
    config_for_launcher = for_launcher(compiled, dialect, environ)
    config = write_job_folder(config_for_launcher, cwd, secrets=True)
    try:
        invocation = hand_over(program, config, environ, lambda line: print(printable(line), flush=True))
    finally:
        forget_secrets(config, config_for_launcher, cwd)
    sys.stdout.write(f"✓ Evaluation submitted: {invocation}\n  ns status {invocation}\n")
    entries = Store(environ).find(invocation)
    here = all(entry.is_local for entry in entries)
    if not here or compiled.mode == "batch":
        return submitted_invocation(entries)
    code = follow_foreign(entries)
    return ended_invocation(job_statuses(entries, environ), code)
