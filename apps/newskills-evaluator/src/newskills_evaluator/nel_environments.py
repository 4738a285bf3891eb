# SPDX-License-Identifier: Apache-2.0
"""newskills' benchmarks as environments of nemo-evaluator 0.3 and later, which loads this file by its path.

export NEWSKILLS=$(python -m newskills.interop.nel_environments)      prints the path
benchmarks: [{name: "${NEWSKILLS}:newskills.gsm8k", …}]               in a config of `nel eval run`

The rows, the prompt and the grader are those of `ns eval`; the model, the requests and the results are nel's.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newskills.base.errors import ConfigError
from newskills.base.records import Row, Sample
from newskills.benchmarks import CatalogEntry, catalog_entries

if TYPE_CHECKING:
    from newskills.run.rewarding.graders import BatchGrader
    from newskills.run.validation.inspection import Rows

PREFIX = "newskills."
FIELD = "newskills_row"
"""Key of a problem's metadata: the number of its row, which nel hands back with the answer."""


class EnvironmentProblems:
    """The rows of one benchmark with their prompts, and its grader, which starts with the first answer.

    Raises NewskillsError where there are no rows, ConfigError for what is more than a question and an answer.
    """

    def __init__(self, name: str, most: int | None) -> None:
        from newskills.base.store import read_rows
        from newskills.benchmarks import get_benchmark
        from newskills.benchmarks.downloads.fetch import FetchOptions
        from newskills.run.validation.inspection import find_rows

        benchmark = get_benchmark(name)
        if benchmark.solver != "chat" or benchmark.judge is not None:
            if benchmark.judge is not None:
                kind = "is judged by a model"
            else:
                kind = "needs several requests per problem"
            raise ConfigError(
                f"{name} {kind}, which nel's environments do not support.", hint=f"ns eval --benchmarks={name}"
            )
        self.found: Rows = find_rows(benchmark, None, FetchOptions())
        self.rows: list[Row] = list(read_rows(self.found.files[benchmark.split]))[:most]
        self._verdicts: BatchGrader | None = None

    def messages(self, at: int) -> list[dict[str, str]]:
        """Return the messages of row `at`. Raises ConfigError for a prompt that is more than texts."""
        solver, row = self.found.prompts.solver, self.rows[at]
        if solver is None:
            raise ConfigError(f"the prompts of {self.found.benchmark.name} cannot be created here")
        messages = solver.request(Sample(id=str(row.get("id")), row=row)).messages or []
        if not messages or not all(isinstance(message.content, str) for message in messages):
            raise ConfigError(f"the prompts of {self.found.benchmark.name} are more than text")
        return [{"role": message.role, "content": str(message.content)} for message in messages]

    def score(self, at: int, answer: str) -> tuple[float | None, Row]:
        """Grade an answer to row `at`: (share from 0 to 1, or None where the grader failed; what the grader
        says)."""
        from newskills.run.rewarding.graders import BatchGrader
        from newskills.run.rewarding.reward import answered_record

        if self._verdicts is None:
            config = self.found.config
            self._verdicts = BatchGrader(config.eval_type or "", config.eval_config).__enter__()
        (score,) = self._verdicts([answered_record(self.rows[at], answer, "stop")])
        details: Row = {"method": score.grader, "outcome": score.outcome}
        if score.why:
            details["why"] = score.why
        details["predicted_answer"] = score.fields.get("predicted_answer")
        if score.outcome == "unscored":
            return None, details
        if score.value is None:
            return float(score.outcome == "correct"), details
        return score.value, details

    def close(self) -> None:
        verdicts, self._verdicts = self._verdicts, None
        if verdicts is not None:
            verdicts.__exit__(None, None, None)


def register_all() -> None:
    """Register every benchmark of the catalog, as `newskills.<name>`; rows are read when one is asked for."""
    from nemo_evaluator.environments.base import EvalEnvironment, SeedResult, VerifyResult
    from nemo_evaluator.environments.registry import register
    from nemo_evaluator.errors import InfraError

    class Environment(EvalEnvironment):  # type: ignore[misc]
        entry: CatalogEntry

        def __init__(self, num_examples: int | None = None) -> None:
            super().__init__()
            self._problems = EnvironmentProblems(self.entry.name, num_examples)
            self._turn = asyncio.Lock()
            self._dataset = self._problems.rows

        async def seed(self, idx: int) -> Any:
            messages = self._problems.messages(idx)
            expected = self._problems.rows[idx].get("expected_answer")
            return SeedResult(
                prompt=messages[-1]["content"],
                expected_answer="" if expected is None else str(expected),
                metadata={FIELD: idx},
                messages=messages,
            )

        async def verify(self, response: str, expected: str, sandbox: Any = None, **metadata: Any) -> Any:
            async with self._turn:
                share, details = await asyncio.to_thread(self._problems.score, metadata[FIELD], response)
            if share is None:
                raise InfraError(f"newskills could not grade this answer: {details.get('why', '')}")
            answer = details.pop("predicted_answer")
            return VerifyResult(
                reward=share,
                extracted_answer=None if answer is None else str(answer),
                scoring_details=details,
            )

        async def close(self) -> None:
            self._problems.close()

    for entry in catalog_entries():
        if not entry.members:
            register(f"{PREFIX}{entry.name}")(type("Environment", (Environment,), {"entry": entry}))


def path() -> Path:
    """Return the path of this file, as configurations name it."""
    return Path(__file__).resolve()


if __name__ == "__main__":
    print(path())
elif __name__.startswith("_nel_ext_"):
    register_all()
