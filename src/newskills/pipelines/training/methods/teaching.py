# SPDX-License-Identifier: Apache-2.0
"""What a teacher says, for a student: graded answers as training examples, or scores of the student's tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import read_rows, write_rows
from newskills.base.terminal import counted
from newskills.models.config import ServerConfig
from newskills.models.tokenizer import HFTokenizer
from newskills.recipes.evaluating import RecipeServer, evaluate_endpoint_quietly, evaluate_quietly
from newskills.recipes.improve.examples import example_rows, read_replies, select_replies
from newskills.recipes.improve.records import RoundMixture
from newskills.run.planning.plan import BenchmarkRun
from newskills.run.training.examples import model_folder, served_file
from newskills.run.training.skill import Skill
from newskills.run.training.teachers import EndpointTeacher, FolderTeacher, check_same_tokenizer
from newskills.train.loops.distill import Teacher
from newskills.train.settings import TrainerSettings

COMMAND = "ns distill"


class TeacherSource(Struct, frozen=True, kw_only=True):
    """Which model teaches. `server` says where it is served; None: `model` is a folder, .gguf file or known name here.

    `made`: where a model that has to be converted goes.
    """

    model: str
    made: Path
    server: ServerConfig | None = None

    def folder(self, say: PrintLine) -> Path:
        """Return the folder of the model, converted into `made` if needed. Raises ConfigError, DataError."""
        return model_folder(self.model, self.made, say=say)


class TeacherAnswers(Struct, frozen=True, kw_only=True):
    """How the teacher answers: `samples` a problem at `temperature`, at most `max_tokens` long.

    `prompt`: settings of an evaluation that change the benchmark's prompt.
    """

    samples: int
    temperature: float
    max_tokens: int
    prompt: Row


@contextmanager
def teacher_of(
    source: TeacherSource, student: Path, settings: TrainerSettings, say: PrintLine
) -> Iterator[Teacher]:
    """Yield the teacher that scores the student's tokens. Raises DataError (another tokenizer), BadRequestError (no
    log-probabilities), ConfigError, AuthError."""
    if source.server is None:
        folder = source.folder(say)
        check_same_tokenizer(folder, student)
        yield FolderTeacher(folder, settings)
        return
    with EndpointTeacher(source.server) as teacher:
        teacher.check(HFTokenizer(str(student)))
        yield teacher


def write_answers(
    source: TeacherSource,
    benchmark: Benchmark,
    data: Path,
    how: TeacherAnswers,
    out: Path,
    say: PrintLine,
) -> list[Path]:
    """Ask the teacher for graded answers to the problems of `data`, going on where `out` was left; return their
    files.

    Raises StoppedError (a signal came), NewskillsError (it failed).
    """
    settings = {"inference.tokens_to_generate": how.max_tokens, "inference.temperature": how.temperature}
    prompted = msgspec.structs.replace(benchmark, defaults={**benchmark.defaults, **settings})
    run = BenchmarkRun(
        name=benchmark.name, benchmark=prompted, samples=how.samples, split="train", input_file=data
    )
    if source.server is None:
        weights = served_file(source.folder(say), out / "teacher.F16.gguf")
        files = evaluate_quietly("the teacher", weights, [run], out, RecipeServer(resume_with=COMMAND), how.prompt)
    else:
        server = {
            f"server.{name}": value
            for name, value in msgspec.to_builtins(source.server).items()
            if value != getattr(ServerConfig(), name)
        }
        files = evaluate_endpoint_quietly("the teacher", [run], out, {**server, **how.prompt}, COMMAND)
    return files[benchmark.name]


def write_examples(files: Sequence[Path], data: Path, skill: Skill, per_problem: int, target: Path) -> str:
    """Write different correct answers as rows that `ns sft` takes as they are; return what was left out, in a
    sentence.

    Raises DataError where no answer is correct.
    """
    selected, count = select_replies(list(read_replies(files)), RoundMixture(name="teacher"), per_problem)
    if not selected:
        raise DataError(
            f"None of the teacher's {counted(count.replies, 'answer')} to {counted(count.problems, 'problem')} was "
            f"graded correct ({count.wrong} wrong, {count.cut_off} truncated, {count.unscored} unscored).",
            hint="Raise ++max_tokens, draw more (++samples), or choose another teacher.",
        )
    rows: list[Row] = [{**row, "id": str(row["id"])} for row in read_rows(data)]
    write_rows(target, example_rows(selected, rows, skill))
    left_out = [
        f"{number} {what}"
        for number, what in (
            (count.wrong, "wrong"),
            (count.cut_off, "truncated"),
            (count.repeated, "repeated"),
            (count.too_many, "more than ++per_problem"),
            (count.unscored, "unscored"),
        )
        if number
    ]
    summary = f"{counted(len(selected), 'correct answer')} to {counted(count.problems, 'problem')}"
    if left_out:
        return f"{summary} (left out: {', '.join(left_out)})"
    return summary
