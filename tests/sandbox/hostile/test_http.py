# SPDX-License-Identifier: Apache-2.0
"""Abuse of the API itself: bad requests get one clear sentence, and nobody waits for a client that is gone."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.sandbox.hostile.arena import Arena, cpu_seconds, tree, wait_until
from tests.sandbox.serving import Answer

pytestmark = pytest.mark.parametrize("server_arena", ["ordinary"], indirect=True)
"""The same for every user."""

GOOD = {"generated_code": "print(1)", "language": "python"}


@pytest.fixture(autouse=True)
def _still_serves(arena: Arena) -> Iterator[None]:
    yield
    arena.still_serves()
    assert arena.server.alive()


def refused(answer: Answer) -> None:
    """A 4xx with one clear sentence, and no inner workings."""
    assert 400 <= answer.code < 500, answer.text[:500]
    assert 5 < len(answer.error) < 500, answer.text[:500]
    assert "Traceback" not in answer.text
    assert "\n" not in answer.error.strip()


BODIES = {
    "nothing": b"",
    "no json": b"print(1)",
    "half": b'{"generated_code": "print(1)"',
    "a list": b"[1, 2]",
    "a text": b'"print(1)"',
    "a number": b"7",
    "null": b"null",
    "not utf-8": b'{"generated_code": "\xff\xfe"}',
    "NaN": b'{"generated_code": "1", "language": "python", "timeout": NaN}',
    "infinite": b'{"generated_code": "1", "language": "python", "timeout": 1e999}',
    "deep": b'{"generated_code": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no code": b'{"language": "python"}',
    "zero bytes": b"\0" * 1000,
    "two objects": b'{"generated_code": "1", "language": "python"}{"generated_code": "2"}',
    "half of a pair": b'{"generated_code": "x = 1 # \\ud800", "language": "python"}',
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_makes_no_sense_is_refused(arena: Arena, name: str) -> None:
    refused(arena.client.send("POST", "/execute", BODIES[name], {"X-Session-ID": "bad"}))
    assert "bad" not in arena.client.sessions()


FIELDS: dict[str, dict[str, object]] = {
    "code is a number": {"generated_code": 5},
    "code is null": {"generated_code": None},
    "code is a list": {"generated_code": ["print(1)"]},
    "unknown language": {"language": "cobol"},
    "a program as a language": {"language": "/bin/sh"},
    "options as a language": {"language": "python -c 1"},
    "a path as a language": {"language": "../../bin/sh"},
    "language is a list": {"language": ["python"]},
    "empty language": {"language": ""},
    "timeout below zero": {"timeout": -1},
    "timeout zero": {"timeout": 0},
    "timeout huge": {"timeout": 10**9},
    "timeout beyond floats": {"timeout": 10**400},
    "timeout is text": {"timeout": "soon"},
    "timeout is a list": {"timeout": [1]},
    "timeout is a flag": {"timeout": True},
    "input is a number": {"std_input": 5},
    "input is a list": {"std_input": ["x"]},
    "limit below zero": {"max_output_characters": -1},
    "limit is text": {"max_output_characters": "many"},
    "limit is a fraction": {"max_output_characters": 1.5},
    "unknown verbosity": {"traceback_verbosity": "Shouting", "language": "ipython"},
    "verbosity is a number": {"traceback_verbosity": 3, "language": "ipython"},
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_makes_no_sense_is_refused(arena: Arena, name: str) -> None:
    body = json.dumps({**GOOD, **FIELDS[name]})
    session = "bad-" + secrets.token_hex(4)
    refused(arena.client.send("POST", "/execute", body, {"X-Session-ID": session}))
    assert session not in arena.client.sessions()


def test_a_session_is_required_for_a_stateful_language(arena: Arena) -> None:
    refused(arena.client.send("POST", "/execute", json.dumps({"generated_code": "1"})))
    refused(arena.client.send("POST", "/execute", json.dumps({"generated_code": "1"}), {"X-Session-ID": ""}))


ODD_IDS = ["../../etc/passwd", "a/b", "a b", "a\tb", "%2e%2e%2f", "a;b", "a|b", "$(id)", "`id`", "'", '"', "<x>",
           "*", "ü", "\x7f", "x" * 10_000, "..", ".", "a\\b", "{}", "a?b", "a#b"]  # fmt: skip


@pytest.mark.parametrize("name", ODD_IDS, ids=lambda name: ascii(name)[:20])
def test_an_odd_session_id_is_refused_or_harmless(arena: Arena, name: str) -> None:
    """Where it is accepted it is a plain name: listed exactly so, and deleted exactly so."""
    headers = {"X-Session-ID": name.encode("utf-8").decode("latin-1")}
    body = json.dumps({"generated_code": "print('odd')"})
    answer = arena.client.send("POST", "/execute", body, headers)
    if answer.code == 200:
        assert answer.stdout == "odd\n"
        assert any("odd" not in found for found in arena.client.sessions())
        for found in arena.client.sessions():
            if not found.startswith("bystander"):
                from urllib.parse import quote

                code = arena.client.delete(quote(found, safe="")).code
                assert code == 200 or (code == 404 and found != name)  # one of an earlier test may be ending
    else:
        refused(answer)


def test_two_session_headers_or_a_forged_line_do_not_split(arena: Arena) -> None:
    body = b'{"generated_code": "print(5)"}'
    head = (
        b"POST /execute HTTP/1.1\r\nHost: x\r\nX-Session-ID: one\r\nX-Session-ID: two\r\nContent-Length: %d\r\n"
        % len(body)
    )
    with arena.client.raw(head + b"Connection: close\r\n\r\n" + body) as connection:
        assert connection.recv(20).startswith(b"HTTP/1.")
    for name in ("one", "two", "one, two", "one,two"):
        arena.client.delete(name.replace(" ", "%20"))


def test_ten_megabytes_of_code_are_refused(arena: Arena) -> None:
    code = "x = '" + "a" * (10 << 20) + "'"
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused by its length before it was read
        refused(arena.client.execute(code, language="python"))


def test_nine_megabytes_of_code_are_code(arena: Arena) -> None:
    code = "x = '" + "a" * (9 << 20) + "'\nprint(len(x))"
    answer = arena.client.execute(code, language="python", timeout=20)
    assert (answer.status, answer.stdout) == ("completed", f"{9 << 20}\n"), answer.text[:500]


PATHS = [
    ("GET", "/execute", 405),
    ("PUT", "/execute", 405),
    ("DELETE", "/execute", 405),
    ("POST", "/health", 405),
    ("GET", "/", 404),
    ("GET", "/../../etc/passwd", 404),
    ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
    ("GET", "/sessions/unknown", 405),
    ("DELETE", "/sessions/unknown", 404),
    ("DELETE", "/sessions/", 404),
    ("DELETE", "/sessions", 405),
    ("DELETE", "/sessions/..%2f..%2fx", 404),
    ("DELETE", "/sessions/%00", 404),
    ("DELETE", "/sessions/%ff", 404),
    ("OPTIONS", "/execute", 405),
    ("TRACE", "/", 404),
]


@pytest.mark.parametrize(("method", "path", "code"), PATHS)
def test_other_paths_and_methods_are_refused(arena: Arena, method: str, path: str, code: int) -> None:
    answer = arena.client.send(method, path)
    assert answer.code in (code, 400, 404, 405), answer.text
    assert answer.code != 200


RAW = {
    "no http": b"hello\r\n\r\n",
    "zero bytes": b"\0" * 100,
    "tls": bytes.fromhex("16030100c8010000c40303") + b"x" * 100,
    "negative length": b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    "huge length": b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n{}",
    "two lengths": b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length and chunks": b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad chunk": b"POST /execute HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n",
    "huge chunk": b"POST /execute HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffff\r\n",
    "many headers": b"GET /health HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(20_000)) + b"\r\n",
    "a long header": b"GET /health HTTP/1.1\r\nX: " + b"y" * 3_000_000 + b"\r\n\r\n",
    "a long line": b"GET /" + b"y" * 3_000_000 + b" HTTP/1.1\r\n\r\n",
    "a header without end": b"GET /health HTTP/1.1\r\nX: " + b"y" * 1000,
    "old http": b"GET /health HTTP/0.9\r\n\r\n",
    "future http": b"GET /health HTTP/9.9\r\n\r\n",
}


@pytest.mark.parametrize("name", RAW)
def test_bytes_that_are_no_request_end_the_connection_only(arena: Arena, name: str) -> None:
    try:
        with arena.client.raw(RAW[name]) as connection:
            connection.settimeout(0.5)
            seen = connection.recv(1000)
            assert seen == b"" or seen.startswith(b"HTTP/1."), seen
            assert b"Traceback" not in seen
    except OSError:
        pass  # closed in our face, or waiting for more that never comes


def test_slow_clients_do_not_hold_up_others(arena: Arena) -> None:
    heads = [
        arena.client.raw(b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{") for _ in range(100)
    ]
    begin = time.monotonic()
    arena.still_serves()
    assert time.monotonic() - begin < 10
    for connection in heads:
        connection.close()


def test_a_client_that_leaves_frees_its_work(arena: Arena) -> None:
    """The cell of a stateless and of a stateful request is stopped, long before its deadline."""
    for language in ("python", "shell", "ipython"):
        session = "leaver-" + secrets.token_hex(4)
        code = "while true; do :; done" if language == "shell" else "while True:\n    pass"
        body = json.dumps({"generated_code": code, "language": language, "timeout": 100}).encode()
        head = (
            f"POST /execute HTTP/1.1\r\nHost: x\r\nX-Session-ID: {session}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection = arena.client.raw(head.encode() + body)
        time.sleep(0.4)
        connection.close()

        def quiet() -> bool:
            pids = tree(arena.server.pid)
            before = cpu_seconds(pids)
            time.sleep(0.3)
            return cpu_seconds(pids) - before < 0.15

        wait_until(quiet, f"{language}: the work of a client that left goes on", within=10)
        arena.client.delete(session)


def test_parallel_cells_of_a_session_run_one_by_one(arena: Arena) -> None:
    """200 requests at once on one session: each sees what another one left, none is lost."""
    session = "crowd"
    assert arena.client.execute("seen = []", session).status == "completed"
    code = (
        "import time\nbusy = 'busy' in globals() and busy\nassert not busy\nbusy = True\nseen.append({n})\n"
        "time.sleep(0.001)\nbusy = False\nprint({n}, len(seen))"
    )
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda n: arena.client.execute(code.replace("{n}", str(n)), session), range(200)))
    for number, answer in enumerate(answers):
        assert (answer.code, answer.status, answer.new) == (200, "completed", False), answer.text
        assert answer.stdout.split()[0] == str(number)
    assert sorted(int(answer.stdout.split()[1]) for answer in answers) == list(range(1, 201))
    arena.client.delete(session)


def test_cells_sent_in_order_run_in_order(arena: Arena) -> None:
    session = "queue"
    arena.client.execute("seen = []", session)
    slow = threading.Thread(
        target=arena.client.execute, args=("import time; time.sleep(0.5); seen.append('slow')", session)
    )
    slow.start()
    time.sleep(0.15)
    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=arena.client.execute, args=(f"seen.append({number})", session)))
        threads[-1].start()
        time.sleep(0.03)
    for thread in (slow, *threads):
        thread.join()
    assert arena.client.execute("print(seen)", session).stdout == "['slow', 0, 1, 2, 3, 4]\n"
    arena.client.delete(session)


def test_waiting_for_a_session_does_not_use_up_the_deadline(arena: Arena) -> None:
    session = "patient"
    arena.client.execute("x = 1", session)
    slow = threading.Thread(target=arena.client.execute, args=("import time; time.sleep(1.5)", session))
    slow.start()
    time.sleep(0.2)
    answer = arena.client.execute("print(x)", session, timeout=1.0)
    slow.join()
    assert (answer.status, answer.stdout) == ("completed", "1\n"), answer.text
    arena.client.delete(session)


def test_a_session_deleted_while_it_runs_ends_at_once(arena: Arena) -> None:
    replies: list[Answer] = []
    runner = threading.Thread(
        target=lambda: replies.append(arena.client.execute("while True: pass", "doomed", timeout=60))
    )
    runner.start()
    wait_until(lambda: "doomed" in arena.client.sessions(), "the session does not appear")
    time.sleep(0.2)
    assert arena.client.delete("doomed").code == 200
    runner.join(50)
    assert replies, "the cell of a deleted session is still waited for"
    assert replies[0].status != "completed"
    assert "doomed" not in arena.client.sessions()
    again = arena.client.execute("print(1)", "doomed")
    assert (again.status, again.new) == ("completed", True)
    assert arena.client.delete("doomed").code == 200
    assert arena.client.delete("doomed").code == 404


def test_many_sessions_at_once_keep_apart(arena: Arena) -> None:
    names = [f"many-{number}" for number in range(40)]
    with ThreadPoolExecutor(20) as pool:
        first = list(pool.map(lambda name: arena.client.execute(f"mine = {name!r}", name), names))
        second = list(pool.map(lambda name: arena.client.execute("print(mine)", name), names))
        gone = list(pool.map(arena.client.delete, names))
    assert all(answer.status == "completed" and answer.new for answer in first)
    assert [answer.stdout for answer in second] == [f"{name}\n" for name in names]
    assert all(answer.code == 200 for answer in gone)
