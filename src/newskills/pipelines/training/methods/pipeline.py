# SPDX-License-Identifier: Apache-2.0
"""The one shape of all trainings: check, show or start, prepare the data, train; here, or the same command as a job."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.config.command_line import Parsed
from newskills.config.values import Text
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import Experiment
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.keys import keys_of
from newskills.pipelines.placement.cluster import target_cluster
from newskills.pipelines.submission.groups import MAIN
from newskills.pipelines.submission.prepared import PreparedSubmission
from newskills.pipelines.submission.submit import run_prepared, submit_and_wait
from newskills.pipelines.training.methods.options import LocalOptions, StepKeys
from newskills.pipelines.training.methods.placing import prepare_training, typed_words
from newskills.pipelines.training.methods.running import (
    BASE,
    FINAL,
    ReadyTraining,
    TrainingOutcome,
    run_task,
    training_outcome,
)
from newskills.run.training.examples import model_folder
from newskills.train.backends.trl.launching import launch_processes, wants_launch
from newskills.train.loops.method import METHODS
from newskills.train.loops.stopping import StoppedError
from newskills.train.tensors import check_trainable
from newskills.train.trainers import TRAINERS, Trainer, check_foreign, check_runs, make_trainer

O = TypeVar("O", bound=LocalOptions)  # noqa: E741 - O as in options
K = TypeVar("K", bound=StepKeys)


class TrainingRequest(Struct, Generic[O, K], frozen=True, kw_only=True):
    """What the user wants: `options`, `keys`, the keys as they were typed, and the trainer for it."""

    options: O
    keys: K
    overrides: Mapping[str, Text]
    trainer: Trainer

    @property
    def output_dir(self) -> Path:
        return Path(self.options.output_dir)


class PlannedTraining(Struct, frozen=True, kw_only=True):
    """What is known of a training before a model is loaded.

    steps  what a dry run shows between the model and the trained model
    task   makes the training of the model in a folder; what it needs until the end is entered on the stack
    end    called after a training that has ended well
    shown  called by a dry run before its table
    instead  called with the training, instead of doing it, where something else is wanted; returns the exit code
    """

    steps: Sequence[Step]
    task: Callable[[Path, ExitStack], ReadyTraining]
    end: Callable[[], None] = lambda: None
    shown: Callable[[], None] = lambda: None
    instead: Callable[[ReadyTraining], int] | None = None


class TrainingPipeline(Struct, Generic[O, K], frozen=True, kw_only=True):
    """A command that trains.

    command   `ns COMMAND`
    keys      struct of its `++` keys
    plan      checks what can be checked and makes the plan. Raises ConfigError, DataError
    method    name of the method, which may depend on the options
    able      backends that have it, for those that lack it
    launches  whether the trl trainer may start several processes for it
    reads, writes  what a dry run calls the model and what is made of it
    """

    command: str
    keys: type[K]
    plan: Callable[[TrainingRequest[O, K]], PlannedTraining]
    method: Callable[[O], str]
    able: str = "cpu, trl or tinker"
    launches: bool = True
    reads: str = "the model"
    writes: str = "the trained model"

    def run(self, parsed: Parsed[O]) -> int:
        """Train here or submit the training; return the exit code. Raises ConfigError (options, keys, packages),
        DataError (data, overlap), TrainingError."""
        cluster = None if parsed.explain else target_cluster(parsed.options, parsed.given)
        if cluster is not None:
            return run_prepared(self.prepare(parsed, cluster), show=(MAIN,))
        return self._train(parsed)

    def result(self, parsed: Parsed[O]) -> TrainingOutcome | Experiment | None:
        """Train from Python; return the model, or the experiment that was submitted. Raises as `run`, and
        NewskillsError for a training that was stopped."""
        cluster = target_cluster(parsed.options, parsed.given)
        if cluster is not None:
            return submit_and_wait(self.prepare(parsed, cluster))
        if code := self._train(parsed):
            raise NewskillsError(f"{self.command} ended with exit code {code}.")
        if parsed.options.dry_run:
            return None
        return training_outcome(Path(parsed.options.output_dir))

    def prepare(self, parsed: Parsed[O], cluster: ClusterConfig) -> PreparedSubmission:
        """Prepare the same command as one job, which resumes in the ones after it. Raises ConfigError, DataError,
        UnknownNameError."""
        keys_of(self.keys, Parsed(parsed.options, parsed.overrides, parsed.given))
        check_foreign(parsed.options.backend, METHODS.get(self.method(parsed.options)), self.able)
        return prepare_training(self.command, parsed, cluster, launches=self.launches)

    def _train(self, parsed: Parsed[O]) -> int:
        options = parsed.options
        keys = keys_of(self.keys, parsed)
        if keys is None:
            return 0
        method = METHODS.get(self.method(options))
        check_foreign(options.backend, method, self.able)
        trainer = make_trainer(options.backend, Path(options.model), keys.trainer)
        check_runs(options.backend, trainer, method, self.able)
        request = TrainingRequest(options=options, keys=keys, overrides=parsed.overrides, trainer=trainer)
        plan = self.plan(request)
        if options.dry_run:
            plan.shown()
            final = request.output_dir / FINAL
            show_dry_run([("reads", options.model, self.reads), *plan.steps, ("writes", final, self.writes)])
            return 0
        require_train("torch", "safetensors", "tokenizers")
        together = self.launches and TRAINERS.properties(options.backend).several_processes
        if together and wants_launch(keys.trainer.trl, os.environ):
            words = [self.command, "--cluster=none", *typed_words(parsed)]
            return launch_processes(keys.trainer.trl, words, request.output_dir)
        base = model_folder(options.model, request.output_dir / BASE, say=print)
        check_trainable(base)
        try:
            with ExitStack() as stack:
                ready = plan.task(base, stack)
                if plan.instead is not None:
                    return plan.instead(ready)
                code = run_task(options, keys, ready)
        except StoppedError as stopped:
            sys.stdout.write(f"{stopped}\n")
            return StoppedError.exit_code
        if code == 0:
            plan.end()
        return code
