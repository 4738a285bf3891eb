# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio

import pytest

from newskills.base.aio import run
from newskills.base.errors import ConfigError, ExecutionRefusedError, NewskillsError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult
from newskills.run.engine.sandboxes import MAX_ALIKE_FAILURES, Sandboxes
from newskills.sandbox.config import SandboxConfig

ONE = Execution(code="1")
HERE, OTHER = SandboxConfig(), SandboxConfig(network=True)


class Box:
    """Does what `outcome` says: None = runs, an error = raises it. Starts at the `late`-th try."""

    def __init__(self, outcome: NewskillsError | None = None, *, late: int = 0, stuck: bool = False) -> None:
        self.outcome, self.late, self.stuck = outcome, late, stuck
        self.started = self.closed = 0

    async def start(self) -> None:
        self.started += 1
        await asyncio.sleep(0)
        if self.started <= self.late:
            raise SandboxError("Not up yet.")

    async def execute(self, execution: Execution) -> ExecutionResult:
        await asyncio.sleep(0)
        if self.outcome is not None:
            raise self.outcome
        return ExecutionResult(status="completed")

    async def delete_session(self, session_id: str) -> None:
        pass

    async def close(self) -> None:
        self.closed += 1
        if self.stuck:
            raise SandboxError("It does not end.")


class Maker:
    def __init__(self, box: Box) -> None:
        self.box = box
        self.made: list[SandboxConfig] = []

    def sandbox(self, config: SandboxConfig) -> Box:
        self.made.append(config)
        return self.box


def test_one_sandbox_for_a_configuration_started_by_the_first_cell() -> None:
    maker = Maker(Box())

    async def main() -> None:
        sandboxes = Sandboxes(maker)
        assert sandboxes.get(HERE) is sandboxes.get(SandboxConfig())
        assert sandboxes.get(HERE) is not sandboxes.get(OTHER)
        assert maker.made == []
        await asyncio.gather(*(sandboxes.get(HERE).execute(ONE) for _ in range(5)))
        assert (maker.made, maker.box.started) == ([HERE], 1)
        assert await sandboxes.close() == []
        assert maker.box.closed == 1

    run(main)


def test_a_sandbox_that_cannot_start_is_fatal_and_closed() -> None:
    maker, fatal = Maker(Box(late=99)), list[NewskillsError]()

    async def main() -> None:
        sandboxes = Sandboxes(maker, fatal.append)
        with pytest.raises(SandboxError, match="Not up"):
            await sandboxes.get(HERE).start()

    run(main)
    assert (len(fatal), maker.box.closed) == (1, 1)


def test_patience_waits_for_a_sandbox_that_comes_up() -> None:
    maker, fatal = Maker(Box(late=1)), list[NewskillsError]()

    async def main() -> None:
        await Sandboxes(maker, fatal.append).get(HERE).start(patience=30)

    run(main)
    assert (fatal, maker.box.started) == ([], 2)


def test_a_wrong_configuration_is_fatal_at_once() -> None:
    class Refusing(Maker):
        def sandbox(self, config: SandboxConfig) -> Box:
            raise ConfigError("No such port.")

    fatal = list[NewskillsError]()

    async def main() -> None:
        with pytest.raises(ConfigError):
            await Sandboxes(Refusing(Box()), fatal.append).get(HERE).start(patience=30)

    run(main)
    assert len(fatal) == 1


@pytest.mark.parametrize("error", [SandboxError("Gone."), ExecutionRefusedError("No such language.")])
def test_failures_in_a_row_end_the_run(error: NewskillsError) -> None:
    maker, fatal = Maker(Box(error)), list[NewskillsError]()

    async def main() -> None:
        shared = Sandboxes(maker, fatal.append).get(HERE)
        for n in range(MAX_ALIKE_FAILURES):
            assert len(fatal) == 0, n
            with pytest.raises(SandboxError):
                await shared.execute(ONE)

    run(main)
    assert len(fatal) == 1


def test_failures_at_the_same_time_count_once() -> None:
    maker, fatal = Maker(Box(SandboxError("Gone."))), list[NewskillsError]()

    async def main() -> None:
        shared = Sandboxes(maker, fatal.append).get(HERE)
        await shared.start()
        await asyncio.gather(*(shared.execute(ONE) for _ in range(3 * MAX_ALIKE_FAILURES)), return_exceptions=True)
        maker.box.outcome = None
        await shared.execute(ONE)
        maker.box.outcome = ExecutionRefusedError("This one makes no sense.")
        for _ in range(3 * MAX_ALIKE_FAILURES):
            with pytest.raises(ExecutionRefusedError):
                await shared.execute(ONE)

    run(main)
    assert fatal == []


def test_trouble_at_the_end_is_told() -> None:
    maker = Maker(Box(stuck=True))

    async def main() -> list[str]:
        sandboxes = Sandboxes(maker)
        await sandboxes.get(HERE).start()
        return [failure.message for failure in await sandboxes.close()]

    assert run(main) == ["It does not end."]
