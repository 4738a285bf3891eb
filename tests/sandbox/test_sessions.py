# SPDX-License-Identifier: Apache-2.0
"""What sessions promise those who use them: state, echo, tracebacks, statuses, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox import children

from newskills.base.errors import ExecutionRefusedError, SandboxError
from newskills.base.protocols import Execution, ExecutionResult
from newskills.sandbox.config import Limits, SandboxConfig
from newskills.sandbox.host import LocalSandbox
from newskills_sandbox.replay import ReplayingSandbox
from newskills_sandbox.sessions import RELIEF_SECONDS

Run = Callable[..., Awaitable[ExecutionResult]]


@asynccontextmanager
async def sandbox(**settings: Any) -> AsyncIterator[LocalSandbox]:
    made = LocalSandbox(SandboxConfig(**{"preload": (), **settings}), environ={})
    try:
        yield made
    finally:
        await made.close()


def cells(*codes: str, timeout: float = 5, **settings: Any) -> list[ExecutionResult]:
    """The results of cells of one session, one after the other."""

    async def work() -> list[ExecutionResult]:
        async with sandbox(**settings) as made:
            return [await made.execute(Execution(code=code, session_id="s", timeout=timeout)) for code in codes]

    return asyncio.run(work())


def one(code: str, **execution: Any) -> ExecutionResult:
    async def work() -> ExecutionResult:
        async with sandbox() as made:
            return await made.execute(Execution(code=code, **{"timeout": 5, **execution}))

    return asyncio.run(work())


def processes_of(program: Path) -> set[str]:
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if Path(f"/proc/{name}/cmdline").read_bytes().startswith(bytes(program)):
                    found.add(name)
            except OSError:
                continue
    return found


def test_state_lives_from_cell_to_cell_and_the_last_expression_is_echoed() -> None:
    first, echo, text, nothing, muted, last = cells("x = 20", "x + 1", "'a\\nb'", "None", "x;", "_")
    assert (first.status, first.stdout, first.new_session_created) == ("completed", "", True)
    assert (echo.stdout, echo.new_session_created) == ("21\n", False)
    assert text.stdout == "'a\\nb'\n"
    assert (nothing.stdout, muted.stdout) == ("", "")
    assert last.stdout == "20\n"


def test_an_indented_cell_is_dedented_by_its_first_line_as_in_a_notebook() -> None:
    first, second, third, fourth = cells(
        "\n    a = 1\n    a",
        "  for n in range(2):\n      print(n)\nprint('left')",
        "\n\t1 / 0",
        "    text = '''one\n    two'''\n    text",
    )
    assert (first.status, first.stdout) == ("completed", "1\n")
    assert (second.status, second.stdout) == ("completed", "0\n1\nleft\n")
    assert "line 2" in third.stdout
    assert fourth.stdout == "'one\\ntwo'\n"


def test_the_streams_that_python_keeps_are_those_of_the_cell() -> None:
    code = (
        "import sys\nsys.stdout = None\nsys.stdout = sys.__stdout__\nprint('a')\nprint('b', file=sys.__stderr__)"
    )
    first, second = cells(code, "print('c', file=sys.__stdout__)\nassert sys.__stdin__.read() == ''")
    assert (first.stdout, first.stderr) == ("a\n", "b\n")
    assert (second.status, second.stdout) == ("completed", "c\n")


def test_output_before_an_echo_and_from_children_is_kept_in_place() -> None:
    (result,) = cells("import subprocess\nprint('a', flush=True)\nsubprocess.run(['echo', 'b'])\nprint('c')\n1")
    assert result.stdout == "a\nb\nc\n1\n"


def test_an_exception_is_an_error_with_its_traceback_on_standard_output() -> None:
    result, syntax, state = cells("def f():\n    return 1 / 0\nf()", "def (", "f.__name__")
    assert result.status == syntax.status == "error"
    assert result.stdout.startswith("Traceback (most recent call last):\n")
    assert "line 2, in f" in result.stdout
    assert "return 1 / 0" in result.stdout
    assert result.stdout.endswith("ZeroDivisionError: division by zero\n")
    assert "newskills" not in result.stdout
    assert "SyntaxError" in syntax.stdout
    assert (result.stderr, syntax.stderr, state.stdout) == ("", "", "'f'\n")


@pytest.mark.parametrize(
    ("style", "holds", "lacks"),
    [
        ("Plain", ["line 3, in <module>", "1 / number"], ["number = 0", "->"]),
        ("context", ["->    3", "number = 5 - 5"], ["number = 0"]),
        ("VERBOSE", ["->    3", "number = 0"], []),
        ("Minimal", ["ZeroDivisionError: division by zero"], ["Traceback", "line"]),
    ],
)
def test_tracebacks_come_in_four_styles(style: str, holds: list[str], lacks: list[str]) -> None:
    async def work() -> ExecutionResult:
        async with sandbox() as made:
            code = "number = 5 - 5\n\n1 / number\n"
            return await made.execute(Execution(code=code, traceback_verbosity=style))

    text = asyncio.run(work()).stdout
    assert all(part in text for part in holds), text
    assert not any(part in text for part in lacks), text


def test_a_cell_at_its_deadline_is_a_time_out_and_keeps_its_state() -> None:
    before, stopped, after = cells("x = 5", "print('on the way')\nwhile True: pass", "x", timeout=1)
    assert before.status == "completed"
    assert stopped.status == "timeout"
    assert stopped.stdout.startswith("on the way\n")
    assert stopped.stderr == "Execution timed out after 1 seconds\n"
    assert (after.stdout, after.new_session_created) == ("5\n", False)


def test_a_program_that_wakes_the_worker_costs_the_session_its_state() -> None:
    async def work() -> tuple[ExecutionResult, ExecutionResult]:
        async with sandbox(isolation="a") as made:
            first = await made.execute(Execution(code="import os\nx = 1\nprint(os.getpid())", session_id="s"))
            code = f"kill -CONT {first.stdout.strip()}"
            woke = await made.execute(Execution(code=code, language="shell", session_id="s"))
            return woke, await made.execute(Execution(code="'x' in globals()", session_id="s"))

    children.need("user name space", "pid name space")
    woke, after = asyncio.run(work())
    assert (woke.status, woke.stderr) == ("completed", "")
    assert (after.stdout, after.new_session_created) == ("False\n", True)


def test_a_cell_that_ignores_the_interrupt_loses_the_state_and_the_session_says_so() -> None:
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 1\nwhile True: pass"
    stopped, after = cells(code, "'x' in globals()", timeout=1)
    assert stopped.status == "timeout"
    assert (after.stdout, after.new_session_created) == ("False\n", True)


def test_a_worker_that_dies_is_a_crash_and_the_next_cell_has_a_new_one() -> None:
    crashed, after, killed = cells("import os; os._exit(3)", "1", "import os; os.kill(os.getpid(), 9)")
    assert (crashed.status, crashed.exit_code) == ("crashed", 3)
    assert (after.stdout, after.new_session_created) == ("1\n", True)
    assert (killed.status, killed.exit_code) == ("crashed", -9)


def test_memory_beyond_the_limit_is_told_apart_from_a_crash() -> None:
    refused, eaten, after = cells(
        "x = bytearray(10**10)",
        "import os\n[os.fork() for _ in range(3)]\ny = [bytearray(b'x' * 10**6) for _ in range(100)]\n"
        "import time; time.sleep(5)",
        "1",
        timeout=6,
        limits=Limits(memory_mb=256),
    )
    assert (refused.status, "MemoryError" in refused.stdout) == ("error", True)
    assert eaten.status == "out_of_memory"
    assert (after.stdout, after.new_session_created) == ("1\n", True)


def test_scripts_end_as_the_interpreter_ends_them() -> None:
    result = one(
        "import atexit, sys\natexit.register(print, 'bye')\nprint(input(), __name__, sys.argv)\nsys.exit(4)",
        language="python",
        std_input="hello\n",
    )
    assert (result.status, result.exit_code) == ("completed", 4)
    assert result.stdout == "hello __main__ ['main.py']\nbye\n"
    failed = one("def f(): 1 / 0\nf()", language="python3")
    assert (failed.status, failed.exit_code, failed.stdout) == ("completed", 1, "")
    assert failed.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert one("input()", language="python").stderr.endswith("EOFError: EOF when reading a line\n")


def test_output_is_cut_per_stream_and_is_always_text() -> None:
    result = one(
        "import sys\nprint('é' * 50)\nsys.stderr.write('e' * 99)",
        language="python",
        max_output_characters=20,
    )
    assert result.stdout == "é" * 20 + "<output cut>"
    assert result.stderr == "e" * 20 + "<output cut>"
    assert one("print('\\ud800', '\\0')", language="python").stdout == "\\ud800 \0\n"
    assert one("import os\nos.write(1, b'\\xff\\0')", language="python").stdout == "\ufffd\0"


def test_sessions_are_apart_and_ended_ones_are_gone() -> None:
    async def work() -> tuple[ExecutionResult, ExecutionResult, ExecutionResult]:
        async with sandbox() as made:
            await made.execute(Execution(code="x = 1; open('f', 'w').write('x')", session_id="a"))
            other = await made.execute(Execution(code="import os; 'x' in globals(), os.listdir()", session_id="b"))
            assert set(made.sessions()) == {"a", "b"}
            await made.delete_session("a")
            again = await made.execute(Execution(code="'x' in globals()", session_id="a"))
            shell = await made.execute(Execution(code="cat f", language="shell", session_id="b"))
            return other, again, shell

    other, again, shell = asyncio.run(work())
    assert other.stdout == "(False, [])\n"
    assert (again.stdout, again.new_session_created) == ("False\n", True)
    assert (shell.status, "No such file" in shell.stderr) == ("error", True)


def test_cells_of_one_session_run_one_after_the_other() -> None:
    async def work() -> list[str]:
        async with sandbox() as made:
            await made.execute(Execution(code="n = 0", session_id="s"))
            code = "import time\nm = n\ntime.sleep(0.01)\nn = m + 1\nn"
            results = await asyncio.gather(
                *(made.execute(Execution(code=code, session_id="s")) for _ in range(20))
            )
            return [result.stdout for result in results]

    assert asyncio.run(work()) == [f"{n}\n" for n in range(1, 21)]


def test_a_caller_who_leaves_frees_the_session() -> None:
    async def work() -> ExecutionResult:
        async with sandbox() as made:
            await made.execute(Execution(code="x = 7", session_id="s"))
            task = asyncio.create_task(
                made.execute(Execution(code="while True: pass", session_id="s", timeout=60))
            )
            await asyncio.sleep(0.3)
            task.cancel()
            async with asyncio.timeout(40):
                return await made.execute(Execution(code="x", session_id="s"))

    assert asyncio.run(work()).stdout == "7\n"


def test_idle_sessions_expire() -> None:
    async def work() -> None:
        async with sandbox(session_timeout=0.4) as made:
            await made.execute(Execution(code="1", session_id="s"))
            async with asyncio.timeout(120):
                while made.sessions():
                    await asyncio.sleep(0.1)

    asyncio.run(work())


def test_idle_sessions_end_oldest_first_while_memory_is_short_and_come_back_with_their_state() -> None:
    """As if this machine never had enough: what runs goes on, what is idle ends, and its client runs it again."""

    async def work() -> None:
        async with sandbox(free_memory_mb=1 << 30) as made:
            client = ReplayingSandbox(made)
            busy = asyncio.create_task(
                client.execute(Execution(code="import time; time.sleep(8); 5", session_id="busy", timeout=60))
            )
            for name in ("first", "second"):
                await client.execute(Execution(code=f"x = {name!r} * 2", session_id=name))
            async with asyncio.timeout(120):
                while "first" in made.sessions():
                    await asyncio.sleep(0.05)
                while "second" in made.sessions():
                    await asyncio.sleep(0.05)
            assert "busy" in made.sessions()
            assert (await client.execute(Execution(code="x", session_id="first"))).stdout == "'firstfirst'\n"
            assert (await busy).stdout == "5\n"

    asyncio.run(work())


def test_idle_sessions_stay_while_there_is_memory() -> None:
    async def work() -> None:
        async with sandbox(free_memory_mb=1) as made:
            await made.execute(Execution(code="1", session_id="s"))
            await asyncio.sleep(3 * RELIEF_SECONDS)
            assert "s" in made.sessions()

    asyncio.run(work())


def test_many_sessions_live_at_once_fork_and_leave_nothing(tmp_path: Path) -> None:
    program = tmp_path / "python"  # a name of its own tells its processes from those of other tests
    program.symlink_to(Path(sys.executable).resolve())

    async def work() -> None:
        before, groups = len(os.listdir("/proc/self/fd")), control_groups()
        async with sandbox(python=str(program)) as made:
            await made.start()
            assert processes_of(program)
            names = [f"s{number}" for number in range(100)]
            code = "import subprocess; subprocess.run(['true']).returncode"
            results = await asyncio.gather(*(made.execute(Execution(code=code, session_id=n)) for n in names))
            assert {(result.status, result.stdout) for result in results} == {("completed", "0\n")}
            await asyncio.gather(*(made.delete_session(name) for name in names))
            assert made.sessions() == {}
        while len(os.listdir("/proc/self/fd")) > before:  # transports close in a later turn of the loop
            await asyncio.sleep(0.05)
        assert control_groups() <= groups

    before = mounts()
    asyncio.run(work())
    assert processes_of(program) == set()
    assert mounts() <= before


def mounts() -> set[str]:
    """What is mounted here, without what containers of other tests bring."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return {line for line in lines if line.split()[2] != "nsfs" and "/containers/" not in line}


def control_groups() -> set[str]:
    places = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/pids"))
    return {str(path) for place in places if place.is_dir() for path in place.glob(f"newskills-{os.getpid()}*")}


@pytest.mark.parametrize(
    ("execution", "says"),
    [
        (Execution(code="1", language="pyhton"), "did you mean 'python'"),
        (Execution(code="1", timeout=0), "must be above 0"),
        (Execution(code="1", timeout=float("nan")), "must be above 0"),
        (Execution(code="1", timeout=1e9), "at most 3600"),
        (Execution(code="1", max_output_characters=-1), "max_output_characters"),
        (Execution(code="1", traceback_verbosity="Loud"), "Plain"),
        (Execution(code="'\ud800'"), "surrogate"),
    ],
)
def test_requests_that_make_no_sense_are_refused_with_a_sentence(execution: Execution, says: str) -> None:
    async def work() -> None:
        async with sandbox() as made:
            with pytest.raises(ExecutionRefusedError, match=says):
                await made.execute(execution)
            assert (await made.execute(Execution(code="1"))).stdout == "1\n"

    asyncio.run(work())


def test_a_sandbox_whose_zygote_dies_says_so_and_starts_another() -> None:
    async def work() -> None:
        async with sandbox() as made:
            await made.execute(Execution(code="x = 1", session_id="s"))
            running = asyncio.create_task(made.execute(Execution(code="while True: pass", session_id="s")))
            await asyncio.sleep(0.2)
            assert made._launched is not None
            made._launched.zygote._process.kill()
            with pytest.raises(SandboxError):
                await running
            again = await made.execute(Execution(code="'x' in globals()", session_id="s"))
            assert (again.stdout, again.new_session_created) == ("False\n", True)

    asyncio.run(work())


def test_a_strict_umask_of_the_users_locks_nobody_out() -> None:
    before = os.umask(0o077)
    try:
        (result,) = cells("import wave; wave.__name__")
    finally:
        os.umask(before)
    assert (result.status, result.stdout) == ("completed", "'wave'\n")


def test_no_level_is_a_refusal_that_names_the_next_step() -> None:
    async def work() -> None:
        with pytest.raises(SandboxError, match="not a working Python interpreter"):
            async with sandbox(python="/bin/true") as made:
                await made.start()

    asyncio.run(work())
