# SPDX-License-Identifier: Apache-2.0
"""A folder of results → groups of failures, each with its count, its points of the loss, and samples.

The score of a benchmark is the mean over problems of the mean over a problem's scored samples, as `pass@1` has it; what
is missing from 100 is the loss. Each sample that is not fully correct bears its part of it, so that the points of all
groups add up to the loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.records import Number, Row
from newskills.base.stats import wilson_interval
from newskills.run.records.paths import OutputPaths
from newskills.run.records.state import load_state
from newskills.run.reporting.results import BenchmarkResults
from newskills.view.comparison.records import BenchmarkRecords, read_whole_rows
from newskills.view.diagnosis.groups import GROUPS, FailureGroup, GroupedFailure, group_failure
from newskills.view.records import question_of
from newskills.view.scans.reading import SampleRow, chosen_benchmarks, sample_rows
from newskills.view.scans.transcript import Transcript

SAMPLES_PER_GROUP = 3
MAX_CANDIDATES = 8
"""Samples of a group that a model is shown at most."""
_LEAST_VOTES, _LEAST_SHARE = 3, 0.75
_SHORT_CHARS = 300
_RECONSIDERED = ("knowledge", "arithmetic", "instruction")


class FailureSample(Struct, frozen=True, kw_only=True):
    """A failure. `reason`: the rule that holds; `viewer`: its address in `ns view`; `command`: shows it here."""

    benchmark: str
    id: str
    seed: int | None
    reason: str
    quote: str
    question: str
    expected: str
    extracted: str
    command: str
    viewer: str


class Claim(Struct, frozen=True, kw_only=True):
    """A sentence of a model about a group, with ids that exist and quotes that stand in these samples."""

    text: str
    ids: tuple[str, ...]
    quotes: tuple[str, ...]


class FailureShare(Struct, frozen=True, kw_only=True):
    """A group of failures in one benchmark.

    samples  of this group
    share    of all samples, in percent, with its interval
    points   of the loss; samples without a score bear none
    reasons  which rules put how many samples there
    change   what would change it
    claims   of a model; `dropped`: reason → claims that failed the check
    """

    group: FailureGroup
    title: str
    samples: int
    share: Number
    points: float
    unscored: int
    reasons: dict[str, int]
    change: str
    examples: tuple[FailureSample, ...]
    claims: tuple[Claim, ...] = ()
    dropped: dict[str, int] = {}


class BenchmarkDiagnosis(Struct, frozen=True, kw_only=True):
    """One benchmark. `score` and `loss` in points, over problems; None: no sample has a score."""

    benchmark: str
    problems: int
    samples: int
    failures: int
    unscored: int
    score: float | None
    loss: float | None
    groups: tuple[FailureShare, ...]


class RunDiagnosis(Struct, frozen=True, kw_only=True):
    run: str
    benchmarks: tuple[BenchmarkDiagnosis, ...]
    notes: tuple[str, ...] = ()


class GroupChange(Struct, frozen=True, kw_only=True):
    """A group in two runs: samples and points before and after."""

    benchmark: str
    group: FailureGroup
    title: str
    samples: tuple[int, int]
    points: tuple[float, float]

    @property
    def change(self) -> float:
        return self.points[1] - self.points[0]


class FailureFacts(NamedTuple):
    """What is kept of a failure: enough to count it, and to read its record again."""

    id: str
    answer: str
    failure: GroupedFailure
    row: SampleRow


class _Problem:
    """The samples of one problem."""

    def __init__(self) -> None:
        self.scored = 0
        self.correct = 0
        self.total = 0.0
        self.answers: Counter[str] = Counter()

    def consensus(self) -> str:
        """Return the answer that most samples agree on, where that casts doubt on the expected one."""
        if self.correct or self.scored < _LEAST_VOTES or not self.answers:
            return ""
        answer, votes = self.answers.most_common(1)[0]
        if votes >= max(_LEAST_VOTES, _LEAST_SHARE * self.scored):
            return answer
        return ""


def diagnose_run(
    folder: Path, wanted: tuple[str, ...] = (), keep: dict[tuple[str, FailureGroup], list[SampleRow]] | None = None
) -> RunDiagnosis:
    """Group the failures of a run by rules. `keep` gets some samples of each (benchmark, group), for a model to read.

    Raises DataError where nothing is there, UnknownNameError for a benchmark.
    """
    notes: list[str] = []
    items = chosen_benchmarks(folder, wanted)
    run = folder.resolve().name
    made = [_diagnose_benchmark(folder, run, item, notes, keep) for item in items]
    return RunDiagnosis(run=run, benchmarks=tuple(made), notes=tuple(dict.fromkeys(notes)))


def _diagnose_benchmark(
    folder: Path,
    run: str,
    item: BenchmarkResults,
    notes: list[str],
    keep: dict[tuple[str, FailureGroup], list[SampleRow]] | None,
) -> BenchmarkDiagnosis:
    problems: dict[str, _Problem] = {}
    failures: list[FailureFacts] = []
    samples = unscored = 0
    for row in sample_rows(item, notes):
        samples += 1
        unscored += row.score is None
        facts = _read_failure(row, problems)
        if facts is not None:
            failures.append(facts)
    by_group: dict[FailureGroup, list[FailureFacts]] = {group: [] for group in GROUPS}
    for facts in failures:
        final = _reconsider_group(facts, problems[facts.id])
        by_group[final.failure.group].append(final)
    most = SAMPLES_PER_GROUP if keep is None else MAX_CANDIDATES
    chosen = {group: _spread_failures(members, most) for group, members in by_group.items()}
    rows = _rows_again(item, [facts.row for members in chosen.values() for facts in members])
    if keep is not None:
        keep |= {
            (item.benchmark, group): [rows[facts.row.output, facts.row.place] for facts in members]
            for group, members in chosen.items()
            if members
        }
    counted = [problem for problem in problems.values() if problem.scored]
    if counted:
        score = 100 * sum(problem.total / problem.scored for problem in counted) / len(counted)
    else:
        score = None
    groups = []
    for group, members in by_group.items():
        examples = [
            _failure_sample(folder, run, item, facts, rows[facts.row.output, facts.row.place])
            for facts in _spread_failures(chosen[group], SAMPLES_PER_GROUP)
        ]
        groups.append(_group_share(group, members, examples, problems, len(counted), samples))
    limit = _token_limit(item)
    loss = None if score is None else 100 - score
    return BenchmarkDiagnosis(
        benchmark=item.benchmark,
        problems=len(problems),
        samples=samples,
        failures=len(failures),
        unscored=unscored,
        score=score,
        loss=loss,
        groups=tuple(
            replace(share, change=f"{share.change} {limit}".rstrip()) if share.group == "truncation" else share
            for share in sorted(groups, key=lambda share: (-share.points, -share.samples))
            if share.samples
        ),
    )


def _read_failure(row: SampleRow, problems: dict[str, _Problem]) -> FailureFacts | None:
    """Count a sample for its problem; return its facts where it is not fully correct."""
    identity = str(row.row.get("id"))
    problem = problems.setdefault(identity, _Problem())
    transcript = Transcript(**row.for_worker)
    answer = transcript.answer[:_SHORT_CHARS]
    if row.score is not None:
        problem.scored += 1
        problem.total += row.score
        problem.correct += row.score >= 1
        if answer:
            problem.answers[answer] += 1
    if row.outcome == "ungraded" or (row.score is not None and row.score >= 1):
        return None
    return FailureFacts(identity, answer, group_failure(transcript), row._replace(row={}))


def _spread_failures(members: Sequence[FailureFacts], most: int) -> list[FailureFacts]:
    """Return at most so many failures, evenly over the group, of different problems where there are enough."""
    by_problem = list({facts.id: facts for facts in reversed(members)}.values())[::-1]
    chosen = by_problem if len(by_problem) >= most else list(members)
    return chosen[:: max(1, len(chosen) // most)][:most]


def _rows_again(item: BenchmarkResults, wanted: Sequence[SampleRow]) -> dict[tuple[Path, int], SampleRow]:
    """Read these samples once more, with their records: while groups are made, no record is held."""
    rows = {(row.output, row.place): row for row in wanted}
    for output in {row.output for row in wanted}:
        records = BenchmarkRecords(benchmark=item.benchmark, folder=item.folder, files=item.files)
        for record in read_whole_rows(item, output, records):
            key = (output, records.place)
            if key in rows:
                rows[key] = rows[key]._replace(row=record)
    return rows


def _failure_sample(
    folder: Path, run: str, item: BenchmarkResults, facts: FailureFacts, row: SampleRow
) -> FailureSample:
    command = f"ns samples {quote(str(folder))} --benchmarks {item.benchmark} --id {quote(facts.id)}"
    if row.seed is not None:
        command += f" --seed {row.seed}"
    where: Row = {
        "run": run,
        "benchmark": item.benchmark,
        "file": item.files.index(row.output),
        "number": row.place,
    }
    transcript = Transcript(**row.for_worker)
    return FailureSample(
        benchmark=item.benchmark,
        id=facts.id,
        seed=row.seed,
        reason=facts.failure.detail or facts.failure.reason,
        quote=facts.failure.quote,
        question=question_of(row.row)[:_SHORT_CHARS],
        expected=transcript.gold[:_SHORT_CHARS],
        extracted=facts.answer,
        command=f"{command} --full",
        viewer=f"#/sample?{urlencode(where)}",
    )


def _reconsider_group(facts: FailureFacts, problem: _Problem) -> FailureFacts:
    """Return the facts with the group `gold` where the samples of the problem agree on another answer."""
    consensus = problem.consensus()
    if not consensus or facts.answer != consensus or facts.failure.group not in _RECONSIDERED:
        return facts
    votes = f"{problem.answers[consensus]} of {problem.scored} samples agree on another answer"
    failure = GroupedFailure("gold", "samples agree on another answer", facts.failure.quote, votes)
    return facts._replace(failure=failure)


def _group_share(
    group: FailureGroup,
    failures: Sequence[FailureFacts],
    examples: Sequence[FailureSample],
    problems: dict[str, _Problem],
    scored: int,
    samples: int,
) -> FailureShare:
    points = sum(
        100 * (1 - facts.row.score) / (problems[facts.id].scored * scored)
        for facts in failures
        if facts.row.score is not None
    )
    low, high = 0.0, 0.0
    if samples:
        low, high = wilson_interval(len(failures) / samples, samples)
    return FailureShare(
        group=group,
        title=GROUPS[group].title,
        samples=len(failures),
        share=Number(value=100 * len(failures) / max(samples, 1), low=100 * low, high=100 * high, n=samples),
        points=points,
        unscored=sum(facts.row.score is None for facts in failures),
        reasons=dict(Counter(facts.failure.reason for facts in failures).most_common()),
        change=GROUPS[group].change,
        examples=tuple(examples),
    )


def _token_limit(item: BenchmarkResults) -> str:
    """Return a sentence with the token limit of the run, where it is recorded."""
    states = [load_state(OutputPaths(file).state) for file in item.files]
    limits = {state.settings.get("inference.tokens_to_generate") for state in states if state is not None} - {None}
    if limits:
        return f"It was {', '.join(map(str, sorted(limits, key=str)))} tokens."
    return ""


def group_changes(before: RunDiagnosis, after: RunDiagnosis) -> list[GroupChange]:
    """Return the groups of the benchmarks that both runs have, the largest change of points first."""
    others = {benchmark.benchmark: benchmark for benchmark in after.benchmarks}
    made = []
    for benchmark in before.benchmarks:
        if (other := others.get(benchmark.benchmark)) is None:
            continue
        shares = [{share.group: share for share in side.groups} for side in (benchmark, other)]
        for group, text in GROUPS.items():
            first, second = (side.get(group) for side in shares)
            if first is None and second is None:
                continue
            made.append(
                GroupChange(
                    benchmark=benchmark.benchmark,
                    group=group,
                    title=text.title,
                    samples=(getattr(first, "samples", 0), getattr(second, "samples", 0)),
                    points=(getattr(first, "points", 0.0), getattr(second, "points", 0.0)),
                )
            )
    return sorted(made, key=lambda change: (change.benchmark, -abs(change.change)))
