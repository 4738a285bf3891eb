# SPDX-License-Identifier: Apache-2.0
"""What `ns serve_evals` does: each benchmark of a request becomes the `ns eval` that a person would type."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base import aio
from newskills.base.errors import ConfigError, NewskillsError, UnknownNameError
from newskills.base.store import atomic_write
from newskills.base.terminal import printable
from newskills.benchmarks import BenchmarkPlaces, expand_benchmarks
from newskills.benchmarks.folders import data_dir as root
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.launch.states import JobWatch
from newskills.pipelines.arguments import user_layer
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.evaluation import work
from newskills.pipelines.evaluation.jobs import prepare
from newskills.pipelines.evaluation.options import EvalOptions, parse_words
from newskills.pipelines.evaluation.specification import SPLIT, evaluation_spec
from newskills.pipelines.options import optional_path
from newskills.pipelines.placement.cluster import target_cluster
from newskills.pipelines.serving.ended import EndedService
from newskills.pipelines.serving.serve_evals_options import ServeEvalsOptions
from newskills.pipelines.serving.token import check_reach, describe_access, token_of
from newskills.pipelines.submission.submit import submit_prepared
from newskills.pipelines.submission.submitted import ask_about
from newskills.pipelines.units.sandbox import check_sandbox
from newskills.run.engine.supervision import Supervision
from newskills.run.evaluate import EvaluationPlan, plan_evaluation
from newskills.run.evaluation_server.jobs import BenchmarkWork, JobLimits
from newskills.run.evaluation_server.serving import EvaluationServerSettings, serve_until_stopped
from newskills.run.evaluation_server.wire import BenchmarkOrder, EvaluationRequest
from newskills.run.judging.generation import check_judges
from newskills.run.planning.plan import resolve_config
from newskills.run.planning.spec import mask_addresses
from newskills.run.records.journal import Journal

LOOK_EVERY = 0.5
"""Seconds between two looks at the jobs of a cluster."""
SUBMISSION = "experiment"
"""File of a benchmark's folder: the id of what was submitted for it last."""
OPENAI = "openai"
DEFAULT_TOKEN_ENV = "NEWSKILLS_EVALS_TOKEN"  # noqa: S105 - the name of a variable
EXAMPLE = EvaluationRequest(rollout_id=0, router_url="http://ROUTER")


class LocalEvaluation(Struct, frozen=True, kw_only=True):
    """An evaluation in this process."""

    command: str
    parsed: Parsed[EvalOptions]
    plan: EvaluationPlan

    def run(self, supervision: Supervision) -> None:
        """Evaluate; the messages go to the console of `supervision`.

        Raises NewskillsError where work is left.
        """
        console = supervision.console
        assert console is not None
        evaluation = work.evaluate_and_track(
            self.parsed, self.plan, say=lambda text: print(text, file=console.file)
        )
        if evaluation.exit_code:
            raise NewskillsError(evaluation.message)


class ClusterEvaluation(Struct, frozen=True, kw_only=True):
    """An evaluation in jobs of a cluster, which must see the trainer's router and the folder of results.

    Jobs outlive a server that was killed: the next one waits for them before it submits what is missing.
    """

    command: str
    parsed: Parsed[EvalOptions]
    cluster: ClusterConfig
    folder: Path

    def run(self, supervision: Supervision) -> None:
        submission = self.folder / SUBMISSION
        if submission.exists():
            with contextlib.suppress(UnknownNameError):  # its records are gone
                _wait_for_jobs(
                    ExperimentRecords(os.environ).find(submission.read_text(encoding="utf-8")), supervision
                )
        ready = prepare(self.parsed, self.cluster)
        experiment = None
        if ready is not None and not supervision.stopping:
            experiment = submit_prepared(ready)
        if experiment is not None:
            with atomic_write(submission) as file:
                file.write(experiment.id.encode())
            _wait_for_jobs(experiment, supervision)
            _require_success(experiment)


def _wait_for_jobs(experiment: Experiment, supervision: Supervision) -> None:
    """Wait until all its jobs have ended; a stop cancels them."""
    about = ask_about(experiment)
    watch = JobWatch(experiment.jobs, about.executor, about.shell)
    while not watch.all_ended():
        if supervision.stopping:
            about.executor.cancel(experiment.handles)
        time.sleep(LOOK_EVERY)


def _require_success(experiment: Experiment) -> None:
    failed = [f"{job.job.name} {printable(job.state)}" for job in ask_about(experiment).states() if job.code]
    if failed:
        raise NewskillsError(
            f"Experiment {experiment.id}: {', '.join(failed)}.", hint=f"See: ns logs {experiment.id}"
        )


class EvalPlanner:
    """ServeEvalsOptions of the server → `ns eval` of one benchmark."""

    def __init__(self, options: ServeEvalsOptions) -> None:
        """Split the words of the options. Raises ConfigError for `--eval_args` that the shell could not split."""
        self._options = options
        self._judge = _judge_words(options)
        try:
            self._more = shlex.split(options.eval_args)
        except ValueError as error:
            raise ConfigError(f"--eval_args: {error}.") from error

    def check(self) -> None:
        """Refuse options with which no evaluation could begin. Raises NewskillsError."""
        parsed = parse_words(self.argv(EXAMPLE, BenchmarkOrder(name="BENCHMARK"), Path()))
        resolve_config([user_layer(parsed.overrides, consumed=(SPLIT,))])
        target_cluster(parsed.options, parsed.given, parsed.options.num_jobs)

    @property
    def settings(self) -> str:
        """Return what may change an answer or a verdict, as one line."""
        words = [self._options.openai_model_name, *self._judge, *self._more]
        return shlex.join([*words, self._options.data_dir or "", self._options.cluster or ""])

    def argv(self, request: EvaluationRequest, order: BenchmarkOrder, folder: Path) -> list[str]:
        """Return the words after `ns eval`. No key is among them: a router of a trainer wants none."""
        options = self._options
        words = ["--output_dir", str(folder), "--benchmarks", order.counted, "--server_type", OPENAI]
        words += ["--server_address", request.api_base, "--expname", f"rollout-{request.rollout_id}-{order.name}"]
        for name in ("cluster", "config_dir", "data_dir"):
            if value := getattr(options, name):
                words += [f"--{name}", value]
        words += [*order.overrides(), "++server.server_type=openai", f"++server.base_url={request.api_base}"]
        words += [f"++server.model={options.openai_model_name}", "++server.api_key=EMPTY"]
        return [*words, f"++max_concurrent_requests={options.max_concurrent_requests}", *self._more]

    def plan(self, request: EvaluationRequest, order: BenchmarkOrder, folder: Path) -> BenchmarkWork:
        words = self.argv(request, order, folder)
        if self._is_judged(order.name):
            words += self._judge
        command = mask_addresses(shlex.join(["ns", "eval", *words]))
        parsed = parse_words(words)
        cluster = target_cluster(parsed.options, parsed.given, parsed.options.num_jobs)
        if cluster is not None:
            return ClusterEvaluation(command=command, parsed=parsed, cluster=cluster, folder=folder)
        spec = msgspec.structs.replace(evaluation_spec(parsed), resume_with=command)
        plan = plan_evaluation(spec)
        check_sandbox(parsed.options, plan.answers)
        check_judges(plan.judgements, rerun_done=False)
        return LocalEvaluation(command=command, parsed=parsed, plan=plan)

    def _is_judged(self, name: str) -> bool:
        """Return whether a benchmark of that name has a judge. Raises UnknownNameError."""
        places = BenchmarkPlaces(None, root(optional_path(self._options.data_dir)))
        return any(benchmark.judge is not None for benchmark in expand_benchmarks(name, places))


def run_evaluation_server(parsed: Parsed[ServeEvalsOptions]) -> EndedService | None:
    """Serve until it is stopped; return the service that has ended, None for a dry run. Raises ConfigError,
    UnknownNameError, AuthError, ServerStartError."""
    options = parsed.options
    planner = EvalPlanner(options)
    planner.check()
    folder = Path(options.output_root).expanduser().absolute()
    token = token_of(options.token_env, options.token_file, os.environ, usual=DEFAULT_TOKEN_ENV)
    check_reach(options.host, token, open_to_all=options.open)
    place = EvaluationServerSettings(host=options.host, port=options.port, root=folder, token=token)
    if options.dry_run or parsed.explain:
        example = planner.argv(EXAMPLE, BenchmarkOrder(name="BENCHMARK"), folder / "FOLDER")
        steps = [("listens", f"{options.host}:{options.port or 'a free port'}", describe_access(place.token))]
        show_dry_run([*steps, ("for each benchmark", "", shlex.join(["ns", "eval", *example]))])
        return None
    journal = Journal(str(folder))
    limits = JobLimits(requests=options.max_concurrent_requests, attach_seconds=options.attach_seconds)

    def say(text: str) -> None:
        text = printable(mask_addresses(text))
        journal.write(text)
        with contextlib.suppress(OSError):  # nobody reads any more; the evaluations go on
            sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
            sys.stdout.flush()

    say(describe_access(place.token))
    return EndedService(aio.run(lambda: serve_until_stopped(planner, place, limits, say=say)))


def _judge_words(options: ServeEvalsOptions) -> list[str]:
    """Return the judge's part of the command line."""
    kind = options.judge_server_type or (OPENAI if options.judge_server_address or options.judge_model else None)
    more = options.extra_judge_args
    if options.judge_api_key_env_var:
        more = f"++server.api_key_env_var={options.judge_api_key_env_var} {more}".rstrip()
    words_by_option = {
        "judge_model": options.judge_model,
        "judge_server_type": kind,
        "judge_server_address": options.judge_server_address,
        "extra_judge_args": more,
    }
    return [f"--{name}={value}" for name, value in words_by_option.items() if value]
