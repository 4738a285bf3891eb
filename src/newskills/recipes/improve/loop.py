# SPDX-License-Identifier: Apache-2.0
"""The rounds: sample, grade, select, train, evaluate, keep or go back. A stage that is done is never done again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError
from newskills.base.paired import spent_level
from newskills.base.records import Row
from newskills.base.store import AppendLog, file_digest, hold_lock, read_rows, write_json, write_rows
from newskills.base.terminal import counted
from newskills.models.serving import SERVERS
from newskills.recipes.evaluating import RecipeServer, evaluate_quietly
from newskills.recipes.improve.examples import (
    example_rows,
    grade_solutions,
    mixed_problems,
    read_replies,
    select_replies,
)
from newskills.recipes.improve.gate import (
    GateTest,
    GuardCheck,
    Scores,
    check_gate,
    check_guard,
    gate_test,
    guard_check,
    why_closed,
)
from newskills.recipes.improve.problems import ImproveProblems, draw_problems, load_problems
from newskills.recipes.improve.records import (
    BASE,
    EVALUATIONS_FOLDER,
    MIXTURES,
    ROUNDS,
    STAGES,
    ExampleCount,
    ImproveSpec,
    RoundMixture,
    RoundRecord,
    read_rounds,
)
from newskills.recipes.improve.training import check_solver, train_round, trained_tokens
from newskills.run.planning.plan import BenchmarkRun
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.questions import asking_of
from newskills.run.training.examples import model_folder, served_file
from newskills.run.training.skill import Skill
from newskills.train.loops.folder import claim_settings


class Improvement(Struct, frozen=True, kw_only=True):
    """What came of it: `model` is the last kept one, or the initial one; `why` it ended."""

    rounds: list[RoundRecord]
    model: Path
    why: str

    @property
    def kept(self) -> list[RoundRecord]:
        return [record for record in self.rounds if record.kept]


def run_improvement(spec: ImproveSpec, *, say: PrintLine) -> Improvement:
    """Run rounds until all are done, or until nothing is gained any more; the same call continues where it was stopped.

    Raises ConfigError (settings, a gate or a guard that nothing can pass), DataError (data, overlap), StoppedError,
    StorageError, TrainingError, NewskillsError (an evaluation failed).
    """
    with hold_lock(spec.output_dir / "lock", str(spec.output_dir)):
        problems = load_problems(spec, say)
        files = [
            path
            for number, stage in enumerate(spec.stages, 1)
            for path in (problems.pool(number).source, *stage.examples)
        ]
        digests = ", ".join(map(file_digest, files or [problems.pool(1).source]))
        claim_settings(spec.output_dir, {**spec.identity(), "training problems": digests})
        return _Improving(spec, problems, say).run()


class _Improving:
    def __init__(self, spec: ImproveSpec, problems: ImproveProblems, say: PrintLine) -> None:
        self._spec, self._problems, self._say = spec, problems, say
        self._base = model_folder(spec.model, spec.model_folder(BASE), say=say)
        for number, pool in enumerate(problems.pools, 1):
            check_solver(spec.stage(number), problems.benchmark, pool.source, self._base)
        self._rounds = read_rounds(spec.output_dir)
        self._server = RecipeServer(
            resume_with=spec.resume_with,
            server_type=spec.server_type,
            num_gpus=spec.server_gpus,
            timeout=spec.timeout,
        )

    def run(self) -> Improvement:
        spec = self._spec
        self._delete_refused()
        self._say(f"base: evaluating {spec.model}; Ctrl-C stops, the same command resumes")
        initial = self._scores(BASE, self._base, 0)
        for run in self._problems.evaluated[1:]:
            check_guard(run.name, initial[run.name], spec.margin)
        self._say(f"  base: {_format_percent(initial[self._held_out.name])}")
        while not (why := self._why_ended(initial)):
            record = self._run_round(len(self._rounds) + 1, initial)
            append_row(spec.output_dir / ROUNDS, msgspec.to_builtins(record))
            self._rounds.append(record)
            verdict = "kept" if record.kept else "not kept"
            self._say(f"  {record.name}: {verdict}: {record.why}")
            self._delete_refused()
        return Improvement(rounds=self._rounds, model=self._folder(self._kept_model), why=why)

    @property
    def _held_out(self) -> BenchmarkRun:
        return self._problems.evaluated[0]

    @property
    def _kept_model(self) -> str:
        """Return the name of the model that the next round begins from."""
        return next((record.name for record in reversed(self._rounds) if record.kept), BASE)

    @property
    def _test_level(self) -> float:
        """Return the level of the next test: a round without a test has spent nothing."""
        return spent_level(1 + sum(record.test is not None for record in self._rounds), self._spec.keys.alpha)

    @property
    def _mixture(self) -> RoundMixture:
        """Return the mixture of the next round. A stage says itself where its examples come from."""
        if len(self._rounds) < len(self._spec.stages):
            return RoundMixture(name=f"stage {self._spec.stage(len(self._rounds) + 1).name}")
        return MIXTURES[sum(not record.kept for record in self._rounds if not record.stage) % len(MIXTURES)]

    def _folder(self, name: str) -> Path:
        if name == BASE:
            return self._base
        return self._spec.model_folder(name)

    def _why_ended(self, initial: Mapping[str, Scores]) -> str:
        """Explain why there is no further round; empty where there is one. Raises ConfigError for a gate that
        none can pass."""
        spec = self._spec
        without = next((n for n, record in enumerate(reversed(self._rounds)) if record.kept), len(self._rounds))
        if without >= spec.patience:
            return f"nothing was gained in {counted(without, 'round')} (--patience={spec.patience})"
        if len(self._rounds) >= spec.rounds:
            return f"all rounds are done (--rounds={spec.rounds})"
        if not self._rounds:
            check_gate(initial[self._held_out.name], self._test_level)
        if self._kept_model == BASE:
            scores = initial
        else:
            scores = self._scores(self._kept_model, self._folder(self._kept_model), 0)
        return why_closed(scores[self._held_out.name], self._test_level)

    def _run_round(self, number: int, initial: Mapping[str, Scores]) -> RoundRecord:
        spec, mixture, begun_from = self._spec, self._mixture, self._kept_model
        stage, pool = spec.stage(number), self._problems.pool(number)
        base, folder = self._folder(begun_from), spec.folder(number)
        self._say(f"round {number} of {spec.rounds}, from {begun_from}, {mixture.name}")
        rows = draw_problems(pool.rows, number, stage.keys.problems, stage.keys.seed)
        files: list[Path] = []
        if stage.keys.samples:
            self._say(f"  sampling replies to {counted(len(rows), 'problem')}")
            with self._record_time(number, "samples"):
                files = self._samples(number, rows, base, mixture)
        stage_name = stage.name if number <= len(spec.stages) else ""
        record = RoundRecord(
            round=number,
            mixture=mixture.name,
            begun_from=begun_from,
            kept=False,
            why="nothing to train on: no reply was correct, new and short enough",
            examples=self._examples(number, rows, files, mixture, base),
            stage=stage_name,
            tokens_sampled=sum(row.get("num_generated_tokens") or 0 for path in files for row in read_rows(path)),
        )
        if not record.examples.examples:
            return record
        what = "problem" if stage.method == "grpo" else "example"
        self._say(f"  training on {counted(record.examples.examples, what)} ({stage.method.upper()})")
        with self._record_time(number, "training"):
            model = train_round(spec, self._problems, number, base, self._say)
        self._say("  evaluating")
        scores = self._scores(record.name, model, number)
        if begun_from == BASE:
            before = initial
        else:
            before = self._scores(begun_from, base, number)
        held_out = self._held_out.name
        test = gate_test(before[held_out], scores[held_out], self._test_level)
        guards = tuple(
            guard_check(run.name, initial[run.name], scores[run.name], spec.margin)
            for run in self._problems.evaluated[1:]
        )
        kept = test.better and all(guard.passed for guard in guards)
        return replace(
            record,
            kept=kept,
            why=_decision_text(test, guards, spec.margin),
            test=test,
            guards=guards,
            tokens_trained=trained_tokens(folder),
        )

    def _samples(self, number: int, rows: Sequence[Row], base: Path, mixture: RoundMixture) -> list[Path]:
        """Sample and grade replies of the model to the round's problems, and return their files, one for each seed."""
        stage, folder = self._spec.stage(number), self._spec.folder(number) / "data"
        keys = stage.keys
        problems = folder / "problems.jsonl"
        if not problems.is_file():
            write_rows(problems, rows)
        run = BenchmarkRun(
            name=self._problems.benchmark.name,
            benchmark=stage.apply_to(self._problems.benchmark),
            samples=keys.samples * mixture.factor,
            split=self._spec.split,
            input_file=problems,
        )
        settings = {
            "inference.tokens_to_generate": keys.max_tokens,
            "inference.temperature": keys.temperature + mixture.warmer,
        }
        weights = self._weights(base)
        replies = evaluate_quietly("the samples", weights, [run], folder / "samples", self._server, settings)
        return replies[run.name]

    def _examples(
        self, number: int, rows: Sequence[Row], files: Sequence[Path], mixture: RoundMixture, base: Path
    ) -> ExampleCount:
        """Write the round's examples and a card of how they were chosen, and return the card; where it exists, only
        read it."""
        folder = self._spec.folder(number)
        card, data = folder / "data/card.json", folder / "data/train.jsonl"
        if card.is_file():
            return msgspec.json.decode(card.read_bytes(), type=ExampleCount)
        stage, pool = self._spec.stage(number), self._problems.pool(number)
        benchmark = stage.apply_to(self._problems.benchmark)
        replies = list(read_replies(files))
        with BatchGrader(benchmark.grader, benchmark.grader_config) as verdict:
            replies += grade_solutions(rows, pool.solutions, verdict)
        selected, count = select_replies(replies, mixture, stage.keys.per_problem)
        if stage.method == "grpo":
            if stage.keys.samples:
                chosen = mixed_problems(replies, rows, hard=mixture.hard)
            else:
                chosen = list(rows)
        else:
            skill = Skill(base, asking_of(benchmark, pool.source, str(base)))
            chosen = [*example_rows(selected, rows, skill), *pool.examples]
        count = replace(count, examples=len(chosen))
        if mixture.earlier:
            before = [
                row
                for record in self._rounds
                if record.kept and self._spec.stage(record.round).method == stage.method
                for row in read_rows(self._spec.folder(record.round) / "data/train.jsonl")
            ]
            count = replace(count, earlier=len(before), examples=len(chosen) + len(before))
            chosen += before
        write_rows(data, chosen)
        write_json(card, msgspec.to_builtins(count))
        return count

    def _scores(self, name: str, folder: Path, number: int) -> dict[str, Scores]:
        """Map each benchmark to held-out scores of a model, evaluated once."""
        out = self._spec.output_dir / EVALUATIONS_FOLDER / name
        held_out, *guards = self._problems.evaluated
        with self._record_time(number, "evaluation"):
            files = evaluate_quietly(
                name, self._weights(folder), [self._held_out_as_asked(name, held_out), *guards], out, self._server
            )
        scores: dict[str, Scores] = {
            benchmark: {
                str(row["id"]): float(row["outcome"] == "correct")
                for path in paths
                for row in read_rows(path)
                if row["outcome"] != "unscored"
            }
            for benchmark, paths in files.items()
        }
        if empty := [benchmark for benchmark, own in scores.items() if not own]:
            raise DataError(f"{name} has no score on {empty[0]}: all replies are unscored.")
        return scores

    def _held_out_as_asked(self, name: str, held_out: BenchmarkRun) -> BenchmarkRun:
        """Return the held-out problems, asked as the stage that made the model asks, with one token limit for all
        models."""
        stage = next((stage for stage in self._spec.stages if stage.name == name), None)
        if stage is None:
            return held_out
        return replace(held_out, benchmark=stage.apply_to(held_out.benchmark, self._spec.tested_tokens))

    def _weights(self, folder: Path) -> Path:
        """Return the path that is served: a file for llama.cpp, a folder for other servers."""
        if not SERVERS.properties(self._spec.server_type).serves_file:
            return folder
        if folder.parent == self._spec.output_dir / "models":
            return served_file(folder)
        return served_file(folder, self._spec.model_folder(BASE).with_name(f"{BASE}.F16.gguf"))

    def _delete_refused(self) -> None:
        """Delete the models of rounds that were not kept, which take disk space and serve nobody; their data
        and records stay."""
        for record in self._rounds:
            if not record.kept:
                model = self._spec.model_folder(record.name)
                shutil.rmtree(model, ignore_errors=True)
                model.with_name(f"{model.name}.F16.gguf").unlink(missing_ok=True)
                for checkpoint in (self._spec.folder(record.round) / "training").glob("checkpoint-*"):
                    shutil.rmtree(checkpoint, ignore_errors=True)

    @contextmanager
    def _record_time(self, number: int, stage: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        if (seconds := round(time.monotonic() - begun, 1)) >= 0.5:  # less: it was done before
            append_row(self._spec.output_dir / STAGES, {"round": number, "stage": stage, "seconds": seconds})


def append_row(path: Path, row: Row) -> None:
    """Append a line that survives a power cut. Raises StorageError."""
    log = AppendLog(path)
    log.append(row)
    log.close()


def _format_percent(scores: Scores) -> str:
    return (
        f"{100 * sum(scores.values()) / len(scores):.1f} % of {counted(len(scores), 'held-out problem')} correct"
    )


def _decision_text(test: GateTest, guards: Sequence[GuardCheck], margin: float) -> str:
    text = (
        f"{test.before:.1f} % → {test.after:.1f} % "
        f"({test.difference:+.1f} points, {test.low:+.1f} to {test.high:+.1f}), "
        f"p = {test.p_value:.2g}, the level of this test is {test.level:.2g}"
    )
    for guard in guards:
        if not guard.passed:
            text += (
                f"; the guard {guard.benchmark} may have lost more than {margin:g} points against the initial model "
                f"({guard.difference:+.1f}, {guard.low:+.1f} to {guard.high:+.1f})"
            )
    return text
