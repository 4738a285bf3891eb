# SPDX-License-Identifier: Apache-2.0
"""One output file from its input to its `.done`: jobs out, records in, verdicts in, final file."""

from __future__ import annotations

import asyncio
import contextlib
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, StorageError, guard, storage_error
from newskills.base.protocols import Model, Solver
from newskills.base.records import CONTENT_FILTER, Attempt, Failure, Ledger, Request, Row, Sample, Score, Usage
from newskills.base.store import atomic_write, encode_line
from newskills.run.engine.early_stop import EarlyStop
from newskills.run.engine.grader_pool import Grading, verdict_fields
from newskills.run.engine.reply_cache import CachedModel
from newskills.run.planning.spec import Status, Unit, UnitResult, count_attempt, count_finish
from newskills.run.records.chunks import merge_if_complete
from newskills.run.records.damage import block_sums, seal_line
from newskills.run.records.log import (
    Disk,
    GradeLine,
    GradeReader,
    GroupLog,
    LogReader,
    content_key,
    decode_record,
    log_line,
)
from newskills.run.records.log_index import ABSENT_OFFSET, KeptIndex, LogIndex, RecordKeys
from newskills.run.records.paths import done_path
from newskills.run.records.record import record_of
from newskills.run.records.rows import MARK_ROWS, Input
from newskills.run.records.state import PROMPT, RunState
from newskills.solve.judges.judge import PREFIX

YIELD_EVERY = 256
CHECKED_ROWS = 4096
"""About so many finished rows are asked of the solver anew, to see that they would be asked the same."""
REFUSED_FIELD = f"{PREFIX}error"
"""Field of a record that the judge gave no reply for."""
JUDGE_ANEW = "judge the same answers again: --extra_judge_args='++skip_filled=false'."


class PendingRow(Struct):
    """A row that still needs its answer; `request` is a Failure where the prompt does not fit the row."""

    sample: Sample
    request: Request | Failure


class UnitRun:
    """The work on one unit. Built by `prepare`; everything but `pending_rows` and `finish` is cheap."""

    def __init__(
        self,
        unit: Unit,
        source: Input,
        rows: range,
        state: RunState,
        index: LogIndex,
        kept_index: KeptIndex | None = None,
    ) -> None:
        self._kept_index = kept_index
        self.unit, self.paths, self.config = unit, unit.paths, unit.config
        self.source, self.bounds, self.state, self.index = source, rows, state, index
        self.kept = index.done
        self._settings = state.digest
        self.open_rows = 0
        self.exhausted = False
        self._prefix = PREFIX if unit.config.judges else ""
        self.failures = self.unfit = 0
        self.lost: Counter[str] = Counter()
        self._in_grading = 0
        self.first_failure: Failure | None = None
        self.given_up = ""
        self.failure_causes: Counter[str] = Counter()
        self.merged = False
        self.status: Status | None = None
        self._grading: Grading | None = None
        self._logs: list[GroupLog] = []
        self._failed: GroupLog | None = None
        self._watcher: EarlyStop | None = None
        self._keys: RecordKeys | None = None

    @property
    def generated_rows(self) -> int:
        """Rows answered by this process."""
        return self.index.done - self.kept

    @property
    def is_watched(self) -> bool:
        """Whether each verdict is waited for, to see when there are enough."""
        return self._watcher is not None

    @property
    def tokens(self) -> int | None:
        """Read and written, in all processes; None while the server has told of none."""
        read, written = self.state.input_tokens, self.state.output_tokens
        if read is None and written is None:
            return None
        return (read or 0) + (written or 0)

    @property
    def cost(self) -> float | None:
        """In the unit of the prices; None where a price or a count is not known."""
        prices, used = self.config.server.prices, self.state.usage
        if not prices.known or used.input_tokens is None or used.output_tokens is None:
            return None
        return prices.cost(used)

    def give_up_if_refused(self, first: int) -> None:
        """Set `given_up`, the reason why no more rows are asked, where the server refused each of the `first`."""
        refusals = self.failure_causes.total() - self.unfit
        if not self.given_up and not self.index.done and refusals >= first and self.first_failure is not None:
            self.given_up = (
                f"the server refused each of the first {first} requests: {self.first_failure.message} "
                "The other rows were not asked."
            )

    @property
    def complete(self) -> bool:
        """No row is waiting for an answer, with or without success."""
        return self.exhausted and self.open_rows == 0

    def open(
        self, solver: Solver, disk: Disk, on_error: Callable[[StorageError], None], grading: Grading | None
    ) -> None:
        """Open the logs. Raises StorageError."""
        self.solver, self._grading = solver, grading
        self._disk, self._on_error = disk, on_error
        self._log = self._new_log(self.paths.log)
        self._grades = self._new_log(self.paths.grades) if grading else None

    async def watch(self, watcher: EarlyStop) -> None:
        """Ask for rows in the order of `watcher` from here on, and report every verdict to it, those of earlier
        processes first; answers without a grader are reported as they are. The unit is open."""
        self._watcher = watcher
        with contextlib.ExitStack() as stack:
            if not self.index.done:
                return
            log = stack.enter_context(LogReader(self.paths.log))
            if self._grading is not None:
                grades = stack.enter_context(GradeReader(self.paths.grades))
            else:
                grades = None
            for position in range(self.index.rows):
                if self.index.offsets[position] < 0:
                    continue
                record, at = self._log_row(log, position), self.index.grade_at(position)
                if at == ABSENT_OFFSET and self._grading is not None:
                    await self.await_grader()
                    self._grade(position, record)
                    continue
                if grades is not None and at >= 0:
                    record |= verdict_fields(record, self._score(grades, position))
                watcher.book(position, record)

    async def await_grader(self) -> None:
        """Return when verdicts have caught up with answers, but for as many as are asked at a time."""
        grading, most = self._grading, self.config.max_concurrent_requests
        if grading is not None:
            await grading.until(lambda: not grading.full and self._in_grading < most)

    def with_cache(self, model: Model) -> Model:
        """Wrap `model` so that it remembers its replies, where the settings say so."""
        if not self.config.enable_litellm_cache:
            return model
        return CachedModel(model, self.paths.replies, self._new_log(self.paths.replies))

    @property
    def disk_is_slow(self) -> bool:
        return self._log.full

    async def flush_log(self) -> None:
        """Return when the answers so far are with the kernel."""
        await self._log.await_written()

    async def flush(self) -> None:
        for log in self._logs:
            await log.flush()

    def pending_rows(self) -> Iterator[PendingRow | None]:
        """Yield rows without an answer, in order, and sometimes None, so that others work while many rows are
        skipped.

        Raises DataError if one of the finished rows that are looked at would now be asked something else. All are,
        unless there are so many that it would hold up the first request: what differs without a difference in the
        settings (the code, say) shows in some of them, too.
        """
        stride = max(1, self.kept // CHECKED_ROWS)
        offsets = self.index.offsets
        skipped = 0
        every = YIELD_EVERY if self._watcher is None else 1  # seeds of a watched benchmark go side by side
        order = None if self._watcher is None else self._watcher.order
        parts = None
        if stride >= MARK_ROWS and self.source.marks:
            stride -= stride % MARK_ROWS
            parts = self._parts(stride)
        for row_line in self.source.lines(self.bounds, order, parts):
            if offsets[row_line.position] < 0:
                sample = self.source.sample(row_line)
                self.open_rows += 1
                request = guard(partial(self.solver.request, sample))
                if isinstance(request, Failure) and request.cause == "data":
                    request.message = self.source.with_location(sample, request.message)
                yield PendingRow(sample, request)
                continue
            if row_line.position % stride == 0:
                self._check_unchanged(self.source.sample(row_line))
            skipped += 1
            if skipped % every == 0:
                yield None
        self.exhausted = True

    def _parts(self, stride: int) -> Iterator[range]:
        """Yield the positions to look at where most rows are done: those not done, and each `stride`th row."""
        for first in range(0, self.index.rows, MARK_ROWS):
            last = min(first + MARK_ROWS, self.index.rows)
            if not self.index.all_done(first, last):
                yield range(first, last)
            elif first % stride == 0:
                yield range(first, first + 1)

    def book_answer(self, sample: Sample, attempt: Attempt) -> None:
        """Book an answer: log, index, and the grader if it has room (else it is graded at the end)."""
        record = record_of(self.config, sample, attempt.fields)
        line = log_line(record, self.config.async_position_key, sample.position, attempt.key, self._settings)
        offset = self._log.append(line)
        gradable = "outcome" not in record
        self.index.add(sample.position, offset, line, gradable=gradable)
        if self._kept_index is not None:
            checksum = self.index.sums[sample.position]
            self._kept_index.records.add(sample.position, offset, checksum, gradable=gradable)
        if not gradable and record["outcome"] == "unscored":
            self.lost[record.get("outcome_cause") or "harness"] += 1
        if gradable:
            self.state.count_tokens(attempt.fields, self._prefix)
        self.open_rows -= 1
        if self._watcher is not None and (not gradable or self._grading is None):
            self._watcher.book(sample.position, record)
        if gradable and self._grading is not None and not self._grading.full:
            self._grade(sample.position, record)

    def book_failure(self, pending: PendingRow, failure: Failure) -> None:
        """Book a failure: an unscored record where failures are accepted, else nothing, so that a resumed run asks
        again.

        What a content filter withholds is no failure to be tried again: its record says so. Neither is a prompt that
        exceeds the context, where the benchmark counts it as an empty answer.
        """
        outcome_cause = "judge" if self.config.judges else failure.cause
        fields = {
            self.config.generation_key: "",
            f"{self._prefix}num_generated_tokens": 0,
            f"{self._prefix}error": failure.kind,
            f"{self._prefix}detailed_error": failure.message,
            "outcome": "unscored",
            "outcome_cause": outcome_cause,
        }
        empty = failure.cause == "context" and self.config.context_overflow == "wrong"
        if empty:
            del fields[f"{self._prefix}error"], fields["outcome"], fields["outcome_cause"]
            fields[f"{self._prefix}finish_reason"] = "context"
        filtered = failure.cause == CONTENT_FILTER
        if filtered:
            fields[f"{self._prefix}finish_reason"] = CONTENT_FILTER
        if empty or filtered or self.config.server.enable_soft_fail:
            self.book_answer(
                pending.sample,
                Attempt(sample_id=pending.sample.id, key=request_key(pending.request), fields=fields),
            )
            return
        self.open_rows -= 1
        self.failures += 1
        self.unfit += failure.cause == "data"
        self.first_failure = self.first_failure or failure
        self.failure_causes[failure.cause] += 1
        self.lost[failure.cause] += 1
        self._failed = self._failed or self._new_log(self.paths.failed)
        self._failed.append(encode_line({"id": pending.sample.id, "position": pending.sample.position, **fields}))
        if self._watcher is not None:
            self._watcher.book_failure(pending.sample.position)

    async def finish(self) -> None:
        """Grade the remaining answers once all rows have one, write the final file and its marker, and merge
        chunks."""
        await self.flush()
        if self._grading is not None:
            await self._grade_rest(self._grading)
        await self.close()
        await asyncio.to_thread(self._finalise)
        self.status = "done"

    async def await_verdicts(self) -> None:
        """Return when every answer that went to the grader has its verdict."""
        if self._grading is not None:
            await self._grading.until(lambda: self._in_grading == 0)

    async def finish_early(self, positions: Sequence[int]) -> None:
        """Write a final file of these rows, which a rule says are enough, and keep the logs, with which the same unit
        goes on. Raises StorageError."""
        await self.await_verdicts()
        await self.flush()
        await self.close()
        await asyncio.to_thread(self._write_final, positions)
        self.end("stopped_early", exit_code=0, error="")

    async def close(self) -> None:
        for log in self._logs:
            await log.close()
        for file in (self._kept_index, self._keys):
            if file is not None:
                file.close()

    def end(self, status: Status, *, exit_code: int, error: str) -> None:
        """Save an exit record that says how far the unit got. Raises StorageError."""
        self.status = status
        self._save_state(status, exit_code=exit_code, error=error)

    def result(self) -> UnitResult:
        return unit_result(self.unit, self.state, self.status or "stopped", kept=self.kept, merged=self.merged)

    def _new_log(self, path: Path) -> GroupLog:
        log = GroupLog(path, self._disk, self._on_error)
        self._logs.append(log)
        return log

    def _check_unchanged(self, sample: Sample) -> None:
        if self._keys is None:
            self._keys = RecordKeys(self.paths.log, self.config.async_position_key)
        recorded_key = self._keys.key(self.index.offsets[sample.position])
        if recorded_key and recorded_key != content_key(
            sample.id, request_key(guard(partial(self.solver.request, sample)))
        ):
            raise changed_settings(self.unit, [f"the request of row {sample.position} (id {sample.id})"])

    async def _grade_rest(self, grading: Grading) -> None:
        await grading.until(lambda: self._in_grading == 0)
        with LogReader(self.paths.log) as reader:
            for position in self.index.ungraded_positions():
                record = self._log_row(reader, position)
                await grading.until(lambda: not grading.full)
                self._grade(position, record)
        await grading.until(lambda: self._in_grading == 0)
        await self.flush()

    def _grade(self, position: int, record: Row) -> None:
        assert self._grading is not None
        self._in_grading += 1
        watched = None if self._watcher is None else record
        self._grading.submit(record, partial(self._book_grade, position, self.index.sums[position], watched))

    def _book_grade(self, position: int, checksum: int, record: Row | None, score: Score) -> None:
        assert self._grades is not None
        self._in_grading -= 1
        line = seal_line(encode_line(GradeLine(position=position, sum=checksum, score=score)))
        offset = self._grades.append(line)
        self.index.add_grade(position, offset)
        if self._kept_index is not None and score.cause != "sandbox":
            self._kept_index.grades.add(position, offset, checksum)
        if score.outcome == "unscored":
            self.lost[score.cause or "grader"] += 1
        if record is not None and self._watcher is not None:
            self._watcher.book(position, record | verdict_fields(record, score))

    def _finalise(self) -> None:
        """Write, in a thread, the final file, then the exit record, then `.done`, then remove logs; a kill
        anywhere can be resumed."""
        tally = self._write_final(range(self.index.rows))
        self.state.take_usage(tally.usage)
        stat = self.paths.output.stat()
        self.state.size, self.state.written = stat.st_size, stat.st_mtime_ns
        self.state.sums = block_sums(self.paths.output, self.index.rows)
        self._save_state("done", exit_code=0, error="")
        mark_done(self.paths.output)
        self.paths.remove_logs()
        if self.config.num_chunks is not None:
            self.merged = merge_if_complete(
                self.unit.merged, self.config.num_chunks, self.state.merged_rows, first=self.config.chunk_id or 0
            )

    def _write_final(self, positions: Sequence[int]) -> RunState:
        """Write the final file of these rows; return a state that has their tokens."""
        ledger, written, unjudged = Ledger(), set[str](), 0
        tally = msgspec.structs.replace(self.state)
        tally.take_usage(Usage())
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(atomic_write(self.paths.output))
            log = stack.enter_context(LogReader(self.paths.log))
            grades = None
            if self._grades:
                grades = stack.enter_context(GradeReader(self.paths.grades))
            for position in positions:
                record = self._log_row(log, position)
                if grades is not None and self.index.grade_at(position) >= 0:
                    fields = verdict_fields(record, self._score(grades, position))
                    record |= fields
                    written |= fields.keys()
                if "error" not in record:
                    tally.count_tokens(record, self._prefix)
                unjudged += REFUSED_FIELD in record
                count_finish(ledger, record.get(f"{self._prefix}finish_reason"))
                if "outcome" in record:
                    count_attempt(ledger, record["outcome"], record.get("outcome_cause"))
                file.write(encode_line(record))
        self.state.ledger, self.state.grade_fields, self.state.unjudged = ledger, sorted(written), unjudged
        return tally

    def _log_row(self, log: LogReader, position: int) -> Row:
        line = log.line(self.index.offsets[position])
        if zlib.crc32(line) != self.index.sums[position]:
            raise self._changed_error(self.paths.log, position)
        return decode_record(line, self.config.async_position_key)

    def _score(self, grades: GradeReader, position: int) -> Score:
        score = grades.score(self.index.grade_at(position), position, self.index.sums[position])
        if score is None:
            raise self._changed_error(self.paths.grades, position)
        return score

    def _changed_error(self, log: Path, position: int) -> StorageError:
        if self._kept_index is not None:
            self._kept_index.drop()
        return StorageError(
            f"{log} changed since row {position} was written.",
            hint="Run the same command again: it reads the file as a whole, and makes damaged rows again.",
        )

    def _save_state(self, status: Status, *, exit_code: int, error: str) -> None:
        state = self.state
        state.status, state.exit_code, state.error = status, exit_code, error
        state.done, state.failures = self.index.done, self.failures
        state.ended = time.time()
        state.cost = self.cost
        state.save(self.paths.state)


def request_key(request: Request | Failure) -> str:
    """Return the key of what the row asks the model; rows that can not be asked are all alike."""
    if isinstance(request, Request):
        return request.key()
    return "f" * 16


def changed_settings(unit: Unit, what: Sequence[str]) -> DataError:
    """Return the error that refuses to mix two runs in one file."""
    anew = "start these files over with --rerun_done."
    if unit.config.judges:
        anew = JUDGE_ANEW
    wording = any(words.startswith(PROMPT) for words in what)
    advice = ""
    if wording:
        advice = " --prompt_source sets whose wording of a prompt is used: official or newskills."
    return DataError(
        f"{unit.paths.output} was started with other settings; changed: {', '.join(what)}.",
        hint=f"Use another output folder, or {anew}" + advice,
    )


def mark_done(output: Path) -> None:
    """Create the marker. Raises StorageError."""
    try:
        done_path(output).touch()
    except OSError as error:
        raise storage_error(error, done_path(output)) from error


def unit_result(
    unit: Unit, state: RunState, status: Status, *, kept: int, merged: bool = False, note: str = ""
) -> UnitResult:
    """Return what the exit record says, for the caller."""
    return UnitResult(
        name=unit.name,
        seed=unit.seed,
        chunk=unit.config.chunk_id,
        output=str(unit.paths.output),
        status=status,
        rows=state.rows,
        kept=kept,
        generated=max(0, state.done - kept),
        failures=state.failures,
        input_tokens=state.input_tokens,
        output_tokens=state.output_tokens,
        cached_tokens=state.cached_tokens,
        cache_written_tokens=state.cache_written_tokens,
        cost=state.cost,
        seconds=max(0.0, (state.ended or time.time()) - state.started),
        ledger=state.ledger,
        merged=merged,
        note=note,
    )
