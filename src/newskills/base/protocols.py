# SPDX-License-Identifier: Apache-2.0
"""What the rooms above promise each other. Structural: a class fits by having the methods, not by inheriting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from newskills.base.environment import AgentEnvironments
from newskills.base.plan import Job
from newskills.base.records import Attempt, Ledger, Message, Number, Reply, Request, Row, Sample, Score
from newskills_sandbox.execution import Execution as Execution
from newskills_sandbox.execution import ExecutionResult as ExecutionResult


@runtime_checkable
class Model(Protocol):
    """A model behind an endpoint. Errors raised: the `HttpError` family only."""

    name: str

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one reply; retries belong to the caller."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Tokenizer(Protocol):
    """Counts and cuts text as the served model does."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def render(self, messages: Sequence[Message], **template_kwargs: Any) -> str:
        """Render the chat template with the generation prompt appended."""
        ...


@runtime_checkable
class Grader(Protocol):
    """(record) → Score. Runs in a worker process: pure, deterministic, no network unless handed in by the Kit.

    `record` is the input row with the attempt's fields merged in. `version` changes whenever any verdict may.
    """

    name: str
    version: str

    def grade(self, record: Row) -> Score: ...


@runtime_checkable
class ComparesAnswers(Protocol):
    """A grader that knows which answers say the same, however they are written: they vote together."""

    def same_answer(self, left: str, right: str) -> bool:
        """Return whether a vote for one is a vote for the other. Quick, since many are compared."""
        ...


@runtime_checkable
class Metric(Protocol):
    """Scores → metrics. One instance per benchmark and summary.

    `fields`: keys of a record that `update` reads, with their types; other keys may be missing from what it gets.
    `columns`: metrics of the printed table, in order; empty = all numbers.
    """

    fields: Mapping[str, Any]
    columns: tuple[str, ...]

    def update(self, predictions: Sequence[Row]) -> None:
        """Add all samples of one problem, in seed order."""
        ...

    def incorrect(self, prediction: Row) -> Row:
        """Return `prediction` as if it were wrong (too long a generation)."""
        ...

    def metrics(self) -> dict[str, Row]:
        """Return mode → metric → value, as metrics.json holds it."""
        ...

    def numbers(self) -> dict[str, dict[str, Number]]:
        """Return mode → metric → Number."""
        ...

    def ledger(self) -> Ledger:
        """Return how every sample ended."""
        ...

    def shown(self) -> tuple[str, ...]:
        """Return the modes of the printed table, in order; empty for all."""
        ...


class Kit(Struct, kw_only=True):
    """What a solver or an executing grader is handed by `run`. Leaf rooms never fetch these themselves."""

    models: Mapping[str, Model] = {}
    sandbox: Sandbox | None = None
    tools: Toolbox | None = None
    environments: AgentEnvironments | None = None


@runtime_checkable
class Solver(Protocol):
    """How an answer is produced. Raises only the NewskillsError family; `run` turns that into a Failure."""

    def request(self, sample: Sample) -> Request:
        """Return the first request, rendered but not sent (dry run, resume key)."""
        ...

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt: ...


@runtime_checkable
class NeedsCheck(Protocol):
    """A solver that needs something of the machine on which it works; asked there, before the first request."""

    def check(self) -> None:
        """Raise ConfigError for what is missing, with the command that installs it."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """A solver that works on so many samples at the same time; others wait within it."""

    @property
    def at_once(self) -> int: ...


@runtime_checkable
class Aggregates(Protocol):
    """A class of solvers whose environment makes figures of its own of all records."""

    async def aggregate(self, seeds: Sequence[Sequence[Row]]) -> tuple[Row, Row]:
        """Return all figures, and those to show, of the records of each seed. Raises NewskillsError."""
        ...


@runtime_checkable
class NeedsProbe(Protocol):
    """A solver that needs something of the server that not every one gives; asked once, before the first row."""

    async def probe(self, model: Model) -> None:
        """Raise BadRequestError for a server that cannot do it."""
        ...


@runtime_checkable
class PreparesAhead(Protocol):
    """A solver that can get ready for a sample while it works on others."""

    def prepare_ahead(self, sample: Sample, kit: Kit) -> None:
        """Begin what the sample will need. Raises nothing: what fails here is tried again when its turn comes."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """Where code written by a model runs, and nowhere else.

    Whatever the code does is an `ExecutionResult`. Raises ExecutionRefusedError for a request that makes no sense
    and SandboxError when the sandbox itself failed, which says nothing about the code.
    """

    async def execute(self, execution: Execution) -> ExecutionResult: ...

    async def delete_session(self, session_id: str) -> None:
        """End the session and everything it started; an unknown id is no error."""
        ...

    async def close(self) -> None: ...


class ToolSpec(Struct, frozen=True, kw_only=True):
    """What a model is told about a tool; `input_schema` is a JSON schema of the arguments."""

    name: str
    description: str
    input_schema: Row


@runtime_checkable
class Toolbox(Protocol):
    """All tools of a run, under the names and parameters that the model sees.

    `request_id` names one solved sample: a tool may keep state for it until `release`.
    """

    def specs(self) -> Sequence[ToolSpec]: ...

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        """Run the tool and return the text for the model. Raises ToolError (told to the model), FatalToolError (ends
        the sample)."""
        ...

    async def release(self, request_id: str) -> Row:
        """Forget the state kept for the sample and return what was measured for it."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class ExecutingGrader(Protocol):
    """A grader that runs code or asks models: awaited on the event loop with the run's Kit."""

    name: str
    version: str

    async def grade(self, record: Row, kit: Kit) -> Score: ...


@runtime_checkable
class Executor(Protocol):
    """Places work: submit, look, read, stop. `handle` is the executor's own id of a submitted job."""

    def submit(self, job: Job, *, after: Sequence[str] = ()) -> str: ...

    def state(self, handles: Sequence[str]) -> dict[str, str]: ...

    def logs(self, handle: str) -> Iterable[str]: ...

    def cancel(self, handles: Sequence[str]) -> None: ...
