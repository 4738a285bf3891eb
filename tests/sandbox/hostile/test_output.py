# SPDX-License-Identifier: Apache-2.0
"""Floods and odd bytes: outputs are cut while they are read, and stay text."""

from __future__ import annotations

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare, shell
from tests.sandbox.serving import Answer

pytestmark = pytest.mark.parametrize("server_arena", ["ordinary"], indirect=True)
"""The same for every user."""

CUT = "<output cut>"


def flood(name: str, code: str, **settings: object) -> Case:
    values: dict[str, object] = {"says": (CUT,), "limit": 1000, "timeout": 20.0, "slow": True, **settings}
    return bare(name, code, **values)


def _both_cut(answer: Answer) -> None:
    assert CUT in answer.stdout
    assert CUT in answer.stderr
    assert "o" * 100 in answer.stdout
    assert "e" * 100 in answer.stderr
    assert "e" * 20 not in answer.stdout
    assert "o" * 20 not in answer.stderr


CASES = [
    flood("100 MB in one print", "print('o' * 100_000_000)"),
    flood("100 MB to the error output", "import sys\nsys.stderr.write('e' * 100_000_000)"),
    flood("100 MB by many prints", "for _ in range(100_000):\n    print('o' * 1000)"),
    flood(
        "100 MB to both outputs",
        "import sys\nfor _ in range(500):\n    sys.stdout.write('o' * 100_000)\n    sys.stderr.write('e' * 100_000)",
        check=_both_cut,
    ),
    flood("100 MB past the interpreter", "import os\nfor _ in range(1000):\n    os.write(1, b'o' * 100_000)"),
    flood(
        "100 MB past the interpreter to the error output",
        "import os\nfor _ in range(1000):\n    os.write(2, b'e' * 100_000)",
    ),
    flood("100 MB by a child", "import subprocess\nsubprocess.run(['head', '-c', '100000000', '/dev/zero'])"),
    flood(
        "100 MB by many children",
        "import os\nfor _ in range(5):\n    if os.fork() == 0:\n        for _ in range(200):\n"
        "            os.write(1, b'o' * 100_000)\n        os._exit(0)\nfor _ in range(5):\n    os.wait()",
    ),
    flood("100 MB, stateless", "print('o' * 100_000_000)", language="python"),
    flood(
        "100 MB to both, stateless",
        "import os\nfor _ in range(500):\n    os.write(1, b'o' * 100_000)\n    os.write(2, b'e' * 100_000)",
        language="python",
        check=_both_cut,
    ),
    flood("100 MB of a shell", "head -c 100000000 /dev/zero | tr '\\0' o", language="shell"),
    flood("100 MB as the last expression", "'o' * 100_000_000"),
    flood("100 MB of an exception", "raise ValueError('o' * 100_000_000)", status=("error",), says=()),
    flood(
        "output without end",
        "while True:\n    print('o' * 1000)",
        status=("timeout",),
        timeout=1.0,
        after="either",
    ),
    flood(
        "output without end past the interpreter",
        "import os\nwhile True:\n    os.write(1, b'o' * 1000)",
        status=("timeout",),
        timeout=1.0,
        after="either",
    ),
    flood("output without end of a shell", "yes", language="shell", status=("timeout",), timeout=1.0),
    flood(
        "output without end of a shell in the background",
        "yes & yes >&2 & echo CONTAINED",
        language="shell",
        status=("completed",),
        says=(),
        timeout=3.0,
    ),
    bare(
        "exactly the limit",
        "import sys\n_ = sys.stdout.write('o' * 1000)",
        limit=1000,
        says=("o" * 1000,),
        check=lambda answer: _equal(answer.stdout, "o" * 1000),
    ),
    bare("zero bytes", "import sys\n_ = sys.stdout.write('a\\0b\\0')", says=("a\0b\0",)),
    bare("zero bytes past the interpreter", "import os\n_ = os.write(1, b'a\\0b\\0')", says=("a\0b\0",)),
    bare("bytes that are no text", "import os\n_ = os.write(1, b'a\\xff\\xfe\\xc3(b')", says=("a", "(b")),
    bare(
        "bytes that are no text, stateless",
        "import os\n_ = os.write(1, b'a\\xff\\xfe\\xc3(b')",
        language="python",
        says=("a", "(b"),
    ),
    shell("bytes that are no text, shell", "printf 'a\\377\\376\\303(b'", says=("a", "(b")),
    bare("half of a pair", "print('a\\ud800b')", status=("completed", "error"), says=("a",)),
    bare("half of a pair as the last expression", "'a\\ud800b'", status=("completed", "error"), says=("a",)),
    bare(
        "half of a pair in an exception", "raise ValueError('a\\udfffb')", status=("error",), says=("ValueError",)
    ),
    bare("half of a pair, stateless", "print('a\\ud800b')", language="python", says=()),
    bare("a cut in the middle of a letter", "print('€' * 1000)", limit=1000, says=("€" * 900,)),
    bare("letters of four bytes", "print('😀' * 2000)", limit=1000, says=("😀" * 900, CUT)),
    bare("escapes of a terminal", "print('\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07\\r\\b')", says=("\x1b[31mred",)),
    bare("carriage returns", "print('a\\rb\\r\\nc')", says=("a\rb\r\nc",)),
    bare("line separators", "print('a\\u2028b\\u2029c\\x85d\\x0be')", says=("a\u2028b\u2029c\x85d\x0be",)),
    bare("one long line", "print('o' * 90_000)", says=("o" * 90_000,)),
    bare("nothing at all", "", says=()),
    bare("only white space", "   \n\t\n", says=(), status=("completed", "error")),
    bare("only a comment", "# nothing", says=()),
    bare("zero byte in the code", "print('a')\0print('b')", status=("error", "completed"), says=()),
    bare(
        "a wrong encoding line",
        "# coding: no-such-encoding\nprint('CONTAINED')",
        status=("completed", "error"),
        says=(),
    ),
    bare(
        "standard input past its end",
        "import sys\nprint(repr(sys.stdin.read()))\nprint(repr(sys.stdin.read()))",
        language="python",
        std_input="a\0b\xff€",
        says=("'a\\x00bÿ€'", "''"),
    ),
    bare("input that nobody reads", "print('CONTAINED')", language="python", std_input="x" * 5_000_000),
    bare(
        "input in a session",
        "print(repr(input()))",
        std_input="words\nmore\n",
        status=("completed", "error"),
        says=(),
    ),
]


def _equal(found: str, expected: str) -> None:
    assert found == expected


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_output_is_cut_and_stays_text(arena: Arena, case: Case) -> None:
    arena.judge(case)
