# SPDX-License-Identifier: Apache-2.0
"""Statuses and state are exact: what a client is told about a cell is what happened to it."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator

import pytest
from tests.sandbox.hostile.arena import Arena, cpu_seconds, tree, wait_until
from tests.sandbox.serving import Answer, Client

SYNTAX = "def broken(:\n    pass"


@pytest.fixture
def client(arena: Arena) -> Client:
    return arena.client


@pytest.fixture
def session(client: Client) -> Iterator[str]:
    """An id of its own for each test."""
    name = "state-" + secrets.token_hex(4)
    yield name
    client.delete(name)


def test_an_exception_of_a_session_is_an_error_in_its_output(client: Client, session: str) -> None:
    answer = client.execute("print('before')\n1 / 0", session, max_output_characters=5000)
    assert answer.status == "error"
    assert answer.stdout.startswith("before\n")
    assert "ZeroDivisionError: division by zero" in answer.stdout
    assert "ZeroDivisionError" not in answer.stderr


@pytest.mark.parametrize(
    "code", [SYNTAX, "x = = 1", "if True:\nprint(1)", "return 5", "print('a'", "1 = x", "\x01"]
)
def test_a_syntax_error_goes_where_exceptions_go(client: Client, session: str, code: str) -> None:
    answer = client.execute(code, session, max_output_characters=5000)
    assert answer.status == "error", answer.text
    assert "Error" in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize("language", ["python", "python3"])
def test_an_exception_of_a_stateless_program_is_in_its_error_output(client: Client, language: str) -> None:
    for code, name in (("print('before')\n1 / 0", "ZeroDivisionError"), (SYNTAX, "SyntaxError")):
        answer = client.execute(code, language=language, max_output_characters=5000)
        assert answer.status == "completed", answer.text
        assert name in answer.stderr
        assert name not in answer.stdout
        assert "Traceback" in answer.stderr or name == "SyntaxError"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("exit 0", "completed"),
        ("exit 3", "error"),
        ("false", "error"),
        ("no-such-command", "error"),
        ("if", "error"),
        ("true", "completed"),
    ],
)
def test_a_shell_fails_by_its_exit_code(client: Client, code: str, status: str) -> None:
    assert client.execute(code, language="shell").status == status


@pytest.mark.parametrize("language", ["ipython", "python", "shell"])
def test_a_deadline_is_a_timeout_and_says_so(client: Client, session: str, language: str) -> None:
    code = (
        "echo before; sleep 100"
        if language == "shell"
        else "import time\nprint('before', flush=True)\ntime.sleep(100)"
    )
    answer = client.execute(code, session, language=language, timeout=0.5)
    assert answer.status == "timeout", answer.text
    assert "Execution timed out after 0.5 seconds\n" in answer.said, answer.text
    assert "before" in answer.stdout
    assert answer.seconds < 60


def test_a_timeout_of_an_obedient_cell_says_truly_what_became_of_its_state(client: Client, session: str) -> None:
    client.execute("kept = 1", session)
    assert client.execute("import time; time.sleep(100)", session, timeout=0.5).status == "timeout"
    following = client.execute("print(kept)", session)
    assert (following.status == "completed") == (not following.new), following.text


def test_a_dead_worker_is_told_once(client: Client, session: str) -> None:
    first = client.execute("kept = 1", session)
    second = client.execute("kept", session)
    assert (first.new, second.new, second.stdout.strip()) == (True, False, "1")
    dead = client.execute("import os; os._exit(0)", session)
    assert (dead.status, dead.code) == ("crashed", 200), dead.text
    lost = client.execute("print('kept' in globals())", session)
    assert (lost.status, lost.stdout, lost.new) == ("completed", "False\n", True)
    assert client.execute("1", session).new is False


def test_running_out_of_memory_is_told_as_such(client: Client, session: str) -> None:
    client.execute("kept = 1", session)
    child = "    if os.fork() == 0:\n        x = b'x' * (120 << 20)\n        time.sleep(20)\n"
    code = f"import os, time\nfor _ in range(8):\n{child}time.sleep(20)"
    answer = client.execute(code, session, timeout=3)
    # Where the kernel ends the children one by one, their parent sleeps on until its deadline.
    assert answer.status in ("out_of_memory", "timeout"), answer.text
    following = client.execute("print('kept' in globals())", session)
    assert (following.stdout == "False\n") == following.new, following.text


def test_memory_error_that_python_raises_keeps_the_session(client: Client, session: str) -> None:
    client.execute("kept = 1", session)
    answer = client.execute("x = bytearray(1 << 40)", session)
    assert answer.status in ("error", "out_of_memory")
    assert "MemoryError" in answer.stdout
    following = client.execute("print(kept)", session)
    assert (following.stdout, following.new) == ("1\n", False)


def test_the_last_expression_is_echoed_and_none_is_not(client: Client, session: str) -> None:
    for code, out in (
        ("1 + 1", "2"),
        ("'a'", "'a'"),
        ("None", ""),
        ("x = 5", ""),
        ("print(1); 2", "1\n2"),
        ("2;", ""),
    ):
        answer = client.execute(code, session)
        assert answer.status == "completed"
        assert answer.stdout.strip() == out, code


@pytest.mark.parametrize("verbosity", ["Plain", "Context", "Verbose", "Minimal"])
def test_every_verbosity_names_the_error(client: Client, session: str, verbosity: str) -> None:
    code = "secret_local = 41\ndef f(value):\n    return value / 0\nf(secret_local)"
    answer = client.execute(code, session, traceback_verbosity=verbosity, max_output_characters=20_000)
    assert answer.status == "error"
    assert "ZeroDivisionError" in answer.stdout
    if verbosity == "Minimal":
        assert "Traceback" not in answer.stdout


def test_nothing_of_a_stateless_program_is_left(client: Client) -> None:
    client.execute(
        "import builtins, os\nbuiltins.leak = 1\nopen('/tmp/leak', 'w').write('x')\nos.environ['LEAK'] = '1'",
        language="python",
    )
    answer = client.execute(
        "import builtins, os\nprint(hasattr(builtins, 'leak'), os.path.exists('/tmp/leak'), 'LEAK' in os.environ)",
        language="python",
    )
    assert answer.stdout == "False False False\n"
    assert "session_id" not in client.sessions()


def test_a_fresh_session_shares_nothing_with_the_one_before(client: Client) -> None:
    spoil = (
        "import numpy, sympy, os, json\nnumpy.pi = 3\nsympy.pi = 3\njson.dumps = None\nos.environ['LEAK'] = '1'"
    )
    assert client.execute(spoil, "spoiler").status == "completed"
    look = (
        "import numpy, sympy, os, json\nprint(numpy.pi == 3, sympy.pi == 3, json.dumps is None, os.getenv('LEAK'))"
    )
    assert client.execute(look, "other").stdout == "False False False None\n"
    for name in ("spoiler", "other"):
        client.delete(name)


def test_random_numbers_of_two_sessions_differ(client: Client) -> None:
    code = "import os, random, numpy\nprint(random.random(), numpy.random.random(), os.urandom(4).hex())"
    seen = [client.execute(code, f"random-{number}").stdout.split() for number in range(3)]
    for column in zip(*seen, strict=True):
        assert len(set(column)) == 3, seen
    for number in range(3):
        client.delete(f"random-{number}")


def test_hash_seeds_of_two_programs_may_not_matter_but_their_outputs_are_their_own(client: Client) -> None:
    answers = [client.execute(f"print({number})", language="python") for number in range(5)]
    assert [answer.stdout for answer in answers] == [f"{number}\n" for number in range(5)]
    assert all(answer.body.get("isolation_level", "a") in ("a", "b", "none") for answer in answers)


def test_idle_sessions_use_no_processor(arena: Arena) -> None:
    for number in range(10):
        arena.client.execute("x = 1", f"idle-{number}")
    time.sleep(0.5)
    pids = tree(arena.server.pid)
    before = cpu_seconds(pids)
    time.sleep(1.0)
    assert cpu_seconds(pids) - before < 1.5
    for number in range(10):
        arena.client.delete(f"idle-{number}")


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_sessions_opened_and_closed_leave_nothing(arena: Arena) -> None:
    """Processes and descriptors of the server, after 60 sessions of every end."""
    client = arena.client
    ends = ("x = 1", "import os; os._exit(1)", "import os\nos.fork() or __import__('time').sleep(100)", "1 / 0")

    def cycle(count: int) -> None:
        for number in range(count):
            answer: Answer = client.execute(ends[number % 4], f"cycle-{number}")
            assert answer.code == 200
            assert client.delete(f"cycle-{number}").code == 200
            if number % 5 == 0:
                assert client.execute("print(1)", language="python").code == 200

    cycle(8)
    time.sleep(0.5)
    processes, descriptors = len(tree(arena.server.pid)), _descriptors(arena.server.pid)
    cycle(60)
    wait_until(lambda: len(tree(arena.server.pid)) <= processes + 4, "processes are left")
    wait_until(lambda: _descriptors(arena.server.pid) <= descriptors + 8, "descriptors are left")
    assert set(client.sessions()) == {arena.bystander}
