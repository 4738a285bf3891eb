# SPDX-License-Identifier: Apache-2.0
"""Structs that many threads read at once for the first time; in a process of its own, since it may die of it."""

from __future__ import annotations

import subprocess
import sys

RACE = """
import sys, threading, types
import msgspec
from newskills.run.engine.threads import ready_for_threads

sys.setswitchinterval(1e-6)
text = '''
import msgspec
from typing import Annotated, Literal
class A(msgspec.Struct, frozen=True):
    x: int = 0
class B(msgspec.Struct):
    a: A = A()
    b: Annotated[int, msgspec.Meta(ge=0)] = 1
    c: list[A] = []
    d: Literal["a", "b"] = "a"
'''
for number in range(60):
    module = sys.modules[f"made{number}"] = types.ModuleType(f"made{number}")
    exec("from __future__ import annotations\\n" + text, module.__dict__)
    ready_for_threads()
    def read():
        begin.wait()
        assert msgspec.convert({"a": {"x": 1}, "c": [{"x": 2}]}, module.B).c[0].x == 2
    begin = threading.Barrier(4)
    threads = [threading.Thread(target=read) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_threads_find_complete_structs() -> None:
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_everything_that_an_evaluation_may_load_is_loaded() -> None:
    code = (
        "import sys; from newskills.run.engine.threads import ready_for_threads; ready_for_threads();"
        "wanted = ('run.engine', 'models.openai_chat', 'graders.math.grader', 'metrics.math', 'solve.chat',"
        " 'sandbox.host', 'tools.mcp', 'prompts.renderer', 'base.pool.workers');"
        "assert all(f'newskills.{name}' in sys.modules for name in wanted);"
        "assert not {'torch', 'litellm', 'mcp', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
