# SPDX-License-Identifier: Apache-2.0
"""Sessions that lose their process, and what the next cell finds."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.sandbox.toy import ToySandbox

from newskills.base.protocols import Execution, ExecutionResult, Sandbox
from newskills_sandbox.replay import ReplayingSandbox

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 60))


def cell(code: str, session: str | None = "s", **fields: Any) -> Execution:
    return Execution(code=code, session_id=session, **fields)


async def play(*codes: str, session: str | None = "s") -> tuple[list[ExecutionResult], ToySandbox]:
    toy = ToySandbox()
    sandbox = ReplayingSandbox(toy)
    await sandbox.start()
    return [await sandbox.execute(cell(code, session)) for code in codes], toy


def test_it_is_a_sandbox() -> None:
    assert isinstance(ReplayingSandbox(ToySandbox()), Sandbox)


def test_a_lost_session_comes_back_with_its_state() -> None:
    results, toy = run(play("x = 1", "x += 1", "die", "x += 1\nx"))
    assert [result.status for result in results] == ["completed", "completed", "crashed", "completed"]
    assert results[-1].stdout == "3\n"
    assert [result.new_session_created for result in results] == [True, False, False, False]
    # The cell that found the loss ran in an empty session, which was thrown away, and again at its place.
    assert toy.begun == ["x = 1", "x += 1", "die", "x += 1\nx", "x = 1", "x += 1", "x += 1\nx"]


def test_only_finished_cells_are_run_again() -> None:
    results, toy = run(play("x = 1", "y", "die", "x"))
    assert results[-1].stdout == "1\n"
    assert toy.begun[4:] == ["x = 1", "x"]


def test_a_session_may_be_lost_again_and_again() -> None:
    results, _ = run(play("x = 1", "die", "x += 1", "die", "x += 1", "die", "x"))
    assert results[-1].stdout == "3\n"


def test_a_new_session_with_nothing_to_restore_is_new() -> None:
    results, toy = run(play("die", "x = 1"))
    assert results[-1].new_session_created
    assert toy.begun == ["die", "x = 1"]


def test_a_replay_that_fails_is_told_and_not_tried_for_ever() -> None:
    async def scenario() -> tuple[ExecutionResult, ExecutionResult, list[str]]:
        toy = ToySandbox()
        sandbox = ReplayingSandbox(toy)
        await sandbox.execute(cell("x = 1"))
        toy._states["s"]["clock"] = 1  # what the world was like
        for code in ("clock", "x = 3"):
            assert (await sandbox.execute(cell(code))).status == "completed"
        await sandbox.execute(cell("die"))
        told = await sandbox.execute(cell("x"))
        del toy.begun[:]
        await sandbox.execute(cell("die"))
        return told, await sandbox.execute(cell("x")), toy.begun

    told, after, begun = run(scenario())
    assert (told.stdout, told.new_session_created) == ("1\n", True)
    assert told.stderr == (
        "The session was lost; of its 3 earlier cells, 1 could be run again, then one ended as: error.\n"
    )
    assert (after.stdout, after.stderr, after.new_session_created) == ("1\n", "", False)
    assert begun == ["die", "x", "x = 1", "x", "x"]


def test_deleting_a_session_forgets_its_cells() -> None:
    async def scenario() -> ExecutionResult:
        sandbox = ReplayingSandbox(ToySandbox())
        await sandbox.execute(cell("x = 1"))
        await sandbox.delete_session("s")
        return await sandbox.execute(cell("x"))

    result = run(scenario())
    assert (result.status, result.new_session_created) == ("error", True)


def test_sessions_and_stateless_languages_are_kept_apart() -> None:
    async def scenario() -> list[str]:
        toy = ToySandbox()
        sandbox = ReplayingSandbox(toy)
        await sandbox.execute(cell("x = 1", "a"))
        await sandbox.execute(cell("x = 2", "b"))
        await sandbox.execute(cell("x = 3", None))
        await sandbox.execute(cell("x = 4", "a", language="shell"))
        await toy.delete_session("a")
        return [(await sandbox.execute(cell("x", name))).stdout for name in ("a", "b")]

    assert run(scenario()) == ["1\n", "2\n"]


def test_cells_of_one_session_that_come_together_are_restored_once() -> None:
    async def scenario() -> tuple[list[str], list[str]]:
        toy = ToySandbox()
        sandbox = ReplayingSandbox(toy)
        await sandbox.execute(cell("x = 1"))
        await toy.delete_session("s")
        del toy.begun[:]
        results = await asyncio.gather(*(sandbox.execute(cell("x += 1\nx")) for _ in range(4)))
        return [result.stdout for result in results], toy.begun

    outputs, begun = run(scenario())
    assert outputs == ["2\n", "3\n", "4\n", "5\n"]
    assert begun.count("x = 1") == 1


def test_closing_reaches_the_inner_sandbox() -> None:
    async def scenario() -> bool:
        toy = ToySandbox()
        await ReplayingSandbox(toy).close()
        return toy.closed

    assert run(scenario())
