# SPDX-License-Identifier: Apache-2.0
"""Whether a benchmark measures what it should, found without a model: its rows, its prompts, and replies of known
worth, graded as an evaluation grades them.

Replies that know nothing (silence, the prompt itself, always the same, the right reply to another row) may be right as
often as by chance: no more often than a binomial law allows but once in a million. So may hedges, replies that say
several things (`hedges`).
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.errors import NewskillsError, SandboxError
from newskills.base.pool.workers import WorkerPool
from newskills.base.protocols import ExecutingGrader, Grader
from newskills.base.records import Row, Score
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.config.values import Text
from newskills.graders import is_executing, make_grader
from newskills.graders.gold import gold_reply, same_replies
from newskills.run.engine.grader_pool import as_score
from newskills.run.grade import ExecutedGrading
from newskills.run.planning.config import GenerationConfig
from newskills.run.validation.hedges import NEUTRAL, OF_THE_QUESTION, HedgeRow, hedged_replies
from newskills.run.validation.inspection import InspectedRow, find_rows, look_through

GOLD, MUTATED = "gold", "mutated"
BLANK, ECHO, CONSTANT, SHUFFLED, HEDGE = "blank", "echo", "constant", "shuffled", "hedge"
KINDS = (GOLD, BLANK, ECHO, CONSTANT, SHUFFLED, MUTATED, HEDGE)
SAMPLES, EXECUTED = 200, 25
"""Rows of a benchmark that get replies, and of one whose grader runs code."""
LIKELIHOOD = "loglikelihood"
_SURROUNDINGS = frozenset(("harness", "sandbox", "provider"))
"""Causes that lie in this machine, not in the benchmark."""
_RARE = 1e-6
_COINCIDENCE = 0.01
"""Share of answers that differ and still mean the same."""
_UNDECIDED = 0.02
"""Share of replies, beyond a single one, that may be left ungraded."""
_INSTALL = re.compile(r"pip install (?:--no-deps )?'?(newskills\[[a-z,]+\]|[\w.-]+)")
"""What a message tells to install."""
_FEWEST_HEDGED = 10
"""Rows below which hedges are not tried: by chance, nearly all of so few replies may be right."""
_AHEAD = 2
_SHOWN, _CUT = 3, 60


class ReplyShare(Struct, kw_only=True):
    """`right` of `of` replies; no more than `limit` may be, None: all must be. `worth` is the sum of their values."""

    right: int = 0
    of: int = 0
    unscored: int = 0
    limit: int | None = None
    worth: float = 0.0


class Validation(Struct, kw_only=True):
    """What was found out about one benchmark.

    shares      kind of reply → how many of them are right; of hedges, of the one that is right most often
    hedges      hedge → how many of its replies are right
    exceptions  id → why a row's own answer, in some form, is not right
    problems    what makes it unfit; `notes` is only to be known
    left_out    package that its checks need and that is not installed ("newskills[excel]", "bfcl-eval")
    """

    benchmark: str
    category: str
    rows: int = 0
    sampled: int = 0
    shares: dict[str, ReplyShare] = {}
    hedges: dict[str, ReplyShare] = {}
    exceptions: dict[str, str] = {}
    problems: list[str] = []
    notes: list[str] = []
    left_out: str = ""


class _Reply(NamedTuple):
    """A reply to a row; `hedge` is the name of one of that kind."""

    kind: str
    record: Row
    hedge: str = ""


class _Case(Struct, kw_only=True):
    """A benchmark on its way: `verdicts` on its `replies`, in order; `chances`: kind → share right by chance;
    `hedgeable`: why hedges may be right more often."""

    found: Validation
    hedgeable: str = ""
    replies: list[_Reply] = []
    verdicts: Iterable[Score] = ()
    chances: Mapping[str, float] = {}


class ValidationSampling(Struct, frozen=True, kw_only=True):
    """`graded` rows of each benchmark get replies, `executed` where they are run as code; -1 = all.

    default_only    only the split that is evaluated is looked at, not all there are
    hedged          hedges are tried, too
    settings        `++` keys of the evaluation
    """

    data_dir: Path | None = None
    fetch: FetchOptions = FetchOptions()
    graded: int = SAMPLES
    executed: int = EXECUTED
    default_only: bool = False
    hedged: bool = True
    settings: Mapping[str, Text] = {}


def check_benchmarks(benchmarks: Iterable[Benchmark], sampling: ValidationSampling) -> Iterator[Validation]:
    """Validate each benchmark, in order; while worker processes grade the replies to one, the next is read."""
    with (
        WorkerPool("newskills.graders.gold:make", {}, result_type=Score) as pool,
        ExecutedGrading() as executed,
    ):
        waiting: deque[_Case] = deque()
        for benchmark in benchmarks:
            waiting.append(_make_case(benchmark, sampling, pool, executed))
            if len(waiting) > _AHEAD:
                yield _finish_case(waiting.popleft())
        yield from map(_finish_case, waiting)


def _make_case(
    benchmark: Benchmark, sampling: ValidationSampling, pool: WorkerPool[Score], executed: ExecutedGrading
) -> _Case:
    validation = Validation(benchmark=benchmark.name, category=benchmark.category)
    case = _Case(found=validation, hedgeable=benchmark.hedgeable)
    try:
        splits = (benchmark.split,) if sampling.default_only else ()
        rows = find_rows(benchmark, sampling.data_dir, sampling.fetch, splits, sampling.settings)
        validation.problems, validation.notes = rows.problems, rows.notes
        config = rows.config
        grader = None
        if config.eval_type:
            grader = make_grader(config.eval_type, config.eval_config)
        inspected = look_through(rows, sampling.executed if grader and is_executing(grader) else sampling.graded)
        validation.rows = rows.count
        if grader is None:
            validation.notes.append("a judge decides: only rows and prompts are checked")
            return case
        _think_up(case, benchmark, grader, inspected)
        if sampling.hedged:
            _add_hedges(case, benchmark, grader, inspected)
        case.verdicts = _reply_verdicts(case, grader, config, pool, executed)
    except SandboxError as error:
        validation.notes.append(f"nothing can be graded here: {error}")
        case.replies.clear()
    except NewskillsError as error:
        if not _leaves_out(validation, str(error)):
            validation.problems.append(str(error))
        case.replies.clear()
    return case


def _leaves_out(validation: Validation, why: str) -> bool:
    """Return whether only a package is missing: the benchmark is not at fault, and is marked as left out."""
    if (package := _INSTALL.search(why)) is not None:
        validation.left_out = package[1]
    return package is not None


def _reply_verdicts(
    case: _Case,
    grader: Grader | ExecutingGrader,
    config: GenerationConfig,
    pool: WorkerPool[Score],
    executed: ExecutedGrading,
) -> Iterable[Score]:
    """Yield the verdicts in the order of the replies; those to hedges, which are many, are graded only as they are
    read."""
    settings = {"grader": config.eval_type or "", "config": config.eval_config}
    records = ({**reply.record, "finish_reason": "stop"} for reply in case.replies)
    if is_executing(grader):
        return [
            _record_score(graded)
            for graded in executed.grade_rows(records, grader, config.sandbox, config.environment)
        ]
    label = f"{grader.name}@{grader.version}"
    payloads = ({**settings, "record": record} for record in records)
    first = sum(reply.kind != HEDGE for reply in case.replies)
    futures = pool.submit_many(list(islice(payloads, first)))
    arrived = (future.result() for future in futures)
    return (as_score(result, label) for result in chain(arrived, pool.map(payloads)))


def _record_score(record: Row) -> Score:
    why, cause = record.get("why", ""), record.get("outcome_cause")
    return Score(outcome=record["outcome"], fields={}, grader=record["grader"], why=why, cause=cause)


def _think_up(
    case: _Case, benchmark: Benchmark, grader: Grader | ExecutingGrader, inspected: Sequence[InspectedRow]
) -> None:
    """Add the replies of all kinds to the case."""
    validation, replies = case.found, case.replies
    validation.sampled = len(inspected)
    golds: list[tuple[Row, Row]] = []
    silent: set[str] = set()
    for row, _ in inspected:
        if row["id"] in benchmark.misprints:
            validation.exceptions[row["id"]] = benchmark.misprints[row["id"]]
            continue
        if (gold := gold_reply(grader, row)) is None:
            continue
        golds.append((row, gold))
        replies.append(_Reply(GOLD, row | gold))
        replies += [_Reply(MUTATED, row | same) for same in same_replies(grader, row)]
        if gold == {"generation": ""}:
            silent.add(row["id"])
    if unknown := len(inspected) - len(golds) - len(validation.exceptions):
        validation.notes.append(f"no correct reply is known for {unknown} of {len(inspected)} rows")
    validation.notes += [f"{row} can never be correct: {why}" for row, why in validation.exceptions.items()]
    if silent:
        validation.notes.append(f"an empty reply is correct in {len(silent)} of {len(inspected)} rows")
    if benchmark.solver == LIKELIHOOD:
        spoken = []
    else:
        spoken = [item for item in inspected if item.row["id"] not in silent]
    replies += [_Reply(BLANK, row | {"generation": ""}) for row, _ in spoken]
    if golds:
        replies += [_Reply(ECHO, row | {"generation": prompt}) for row, prompt in _not_telling(spoken, golds)]
    if len(golds) > 1:
        _without_knowledge(case, benchmark, golds)


def _not_telling(inspected: Sequence[InspectedRow], golds: Sequence[tuple[Row, Row]]) -> Iterator[InspectedRow]:
    """Yield the rows whose prompt does not hold the right reply, as questions about a text may."""
    gold_texts = {row["id"]: gold["generation"] for row, gold in golds if gold["generation"]}
    return (
        item
        for item in inspected
        if item.row["id"] not in gold_texts or gold_texts[item.row["id"]] not in item.prompt
    )


def _without_knowledge(case: _Case, benchmark: Benchmark, golds: Sequence[tuple[Row, Row]]) -> None:
    """Grade right replies to other rows: the most frequent one everywhere, and each where another belongs."""
    counts = Counter(_reply_key(gold) for _, gold in golds)
    usual, times = counts.most_common(1)[0]
    reply = next(gold for _, gold in golds if _reply_key(gold) == usual)
    order = list(range(len(golds)))
    random.Random(benchmark.name).shuffle(order)  # noqa: S311 - repeatable on purpose, no secret
    for place, other in zip(order, [*order[1:], order[0]], strict=True):
        row = golds[place][0]
        case.replies += [_Reply(CONSTANT, row | reply), _Reply(SHUFFLED, row | golds[other][1])]
    share = times / len(golds)
    alike = sum(count * (count - 1) for count in counts.values()) / (len(golds) * (len(golds) - 1))
    chance = max(benchmark.chance, _COINCIDENCE)
    case.chances = {ECHO: max(chance, share), CONSTANT: max(chance, share), SHUFFLED: max(chance, alike)}
    text = str(reply["generation"])[:_CUT]
    if benchmark.solver == LIKELIHOOD or not text or times <= at_most(len(golds), chance):
        return
    line = f"'{text}' is correct in {times} of {len(golds)} rows, chance is {benchmark.chance:.0%}"
    skewed = benchmark.chance > 0 and share > (1 + chance) / 2
    if skewed:
        case.found.problems.append(line)
    else:
        case.found.notes.append(line)


def _add_hedges(
    case: _Case, benchmark: Benchmark, grader: Grader | ExecutingGrader, inspected: Sequence[InspectedRow]
) -> None:
    """Add replies that say several things, or nothing, to rows that have something to say."""
    rows = []
    for item in inspected:
        gold = gold_reply(grader, item.row)
        if item.row["id"] not in benchmark.misprints and gold != {"generation": ""}:
            rows.append(HedgeRow(item, str(gold["generation"] if gold else "")))
    if benchmark.solver == LIKELIHOOD or len(rows) < _FEWEST_HEDGED:
        return
    replies = hedged_replies(rows, executes=is_executing(grader))
    case.replies += [_Reply(HEDGE, row | reply, name) for name, row, reply in replies]


def _finish_case(case: _Case) -> Validation:
    validation = case.found
    troubles: dict[str, list[str]] = {GOLD: [], MUTATED: []}
    why: dict[str, str] = {}
    missing: dict[str, set[str]] = {}
    try:
        for reply, score in zip(case.replies, case.verdicts, strict=True):
            if score.outcome == "unscored" and _leaves_out(validation, score.why):
                continue
            if reply.hedge:
                shares, name = (validation.hedges, reply.hedge)
            else:
                shares, name = (validation.shares, reply.kind)
            share = shares.setdefault(name, ReplyShare())
            if score.outcome == "unscored" and score.cause in _SURROUNDINGS:
                missing.setdefault(score.why, set()).add(reply.record["id"])
                continue
            share.of += 1
            share.right += score.outcome == "correct"
            share.worth += _reply_score(score)
            if score.outcome == "unscored" and score.cause != "data":
                share.unscored += 1
                why.setdefault(name, score.why)
            if reply.kind in troubles and score.outcome != "correct":
                troubles[reply.kind].append(_trouble_line(validation, reply, score))
    except NewskillsError as error:
        if not _leaves_out(validation, str(error)):
            validation.problems.append(str(error))
        return validation
    validation.problems += _complaint_lines(troubles)
    validation.notes += [f"{len(rows)} rows cannot be graded here: {text}" for text, rows in missing.items()]
    for kind, share in validation.shares.items():
        if share.unscored > max(1, _UNDECIDED * share.of):
            validation.problems.append(
                f"{kind}: {share.unscored} of {share.of} replies were not graded: {why[kind]}"
            )
        if kind not in troubles:
            share.limit = at_most(share.of, case.chances.get(kind, 0.0))
            if share.right > share.limit:
                validation.problems.append(
                    f"{kind}: {share.right} of {share.of} are correct, {share.limit} could be by chance"
                )
    _judge_hedges(case)
    return validation


def _reply_score(score: Score) -> float:
    """Return what a reply earns, 0–1."""
    if score.value is None:
        return float(score.outcome == "correct")
    return min(1.0, max(0.0, score.value))


def _judge_hedges(case: _Case) -> None:
    """Compare each hedge with what replies that know nothing are worth: no other may earn more, but by chance.

    Those are the most frequent right reply and the right replies to other rows; where the right replies to some rows
    are not known, also short replies that say nothing.
    """
    validation = case.found
    if not validation.hedges:
        return
    plain = [validation.shares[kind] for kind in (CONSTANT, SHUFFLED) if kind in validation.shares]
    graded_golds = validation.shares[GOLD].of if GOLD in validation.shares else 0
    if graded_golds < max(share.of for share in validation.hedges.values()):
        plain += [share for name, share in validation.hedges.items() if name in NEUTRAL]
    honest = [max(share.right, share.worth) / share.of for share in plain if share.of]
    chance = max(case.chances.get(CONSTANT, _COINCIDENCE), *honest, _COINCIDENCE)
    guilty = []
    for name, share in validation.hedges.items():
        share.limit = at_most(share.of, chance)
        earned = share.right if name in OF_THE_QUESTION else max(share.right, share.worth)
        if earned > share.limit:
            guilty.append(f"{_shown_hedge(case, name)} earns {earned:.4g} of {share.of}, {share.limit} by chance")
    validation.shares[HEDGE] = max(validation.hedges.values(), key=lambda share: share.right / max(1, share.of))
    if guilty and case.hedgeable:
        validation.notes.append(f"{len(guilty)} hedges earn more than chance, as its page says: {case.hedgeable}")
    elif guilty:
        more = f" and {len(guilty) - _SHOWN} more" if len(guilty) > _SHOWN else ""
        validation.problems.append(f"hedge: {'; '.join(guilty[:_SHOWN])}{more}")


def _shown_hedge(case: _Case, name: str) -> str:
    """Return the name of the hedge, and how its first reply begins."""
    text = next(str(reply.record["generation"]) for reply in case.replies if reply.hedge == name)
    return f"{name} {text[:_CUT]!r}"


def _trouble_line(validation: Validation, reply: _Reply, score: Score) -> str:
    row = reply.record["id"]
    outcome = f"{score.outcome}: {score.why}"
    if reply.kind == MUTATED:
        outcome = f"{str(reply.record['generation'])[:_CUT]!r} is {outcome}"
    validation.exceptions.setdefault(row, f"{reply.kind}: {outcome}")
    return f"{row} ({outcome})"


def _complaint_lines(troubles: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for kind, several in troubles.items():
        if several:
            more = f" and {len(several) - _SHOWN} more" if len(several) > _SHOWN else ""
            yield f"{kind}: not correct: {'; '.join(several[:_SHOWN])}{more}"


def at_most(n: int, chance: float) -> int:
    """Return the least number of right ones out of `n` that is exceeded with a probability below one in a million.

    >>> at_most(200, 0.25), at_most(10, 0.0), at_most(10, 1.0)
    (81, 0, 10)
    """
    if not 0 < chance < 1:
        return round(n * chance)
    rest = 1.0
    for right in range(n + 1):
        ways = math.lgamma(n + 1) - math.lgamma(right + 1) - math.lgamma(n - right + 1)
        rest -= math.exp(ways + right * math.log(chance) + (n - right) * math.log1p(-chance))
        if rest < _RARE:
            return right
    return n


def _reply_key(reply: Row) -> bytes:
    return msgspec.json.encode(reply, order="deterministic")
