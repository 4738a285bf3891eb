# SPDX-License-Identifier: Apache-2.0
"""What is forked is like what a new Python runs: folder, environment, streams, exit code."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forkserver import ForkServer, shared
from tests.launch.places import until
from tests.launch.ray_cluster import processes_with

SHOW = """
import json, os, sys
print(json.dumps([os.getcwd(), os.environ.get("NAME"), sys.argv[1:], __name__, sys.path[0], sys.stdin.read()]))
print("newskills.commands.table" in sys.modules, os.getpid(), os.getppid(), file=sys.stderr)
sys.exit(3)
"""
DIE = "import os; os.kill(os.getpid(), 9)"
WAIT = "import time; print('begun', flush=True); time.sleep(600)"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NEWSKILLS_TEST_FORKSERVER", raising=False)
        yield ForkServer()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, program in {"show": SHOW, "die": DIE, "wait": WAIT}.items():
        (tmp_path / f"{name}.py").write_text(program)
    return tmp_path


@pytest.mark.parametrize("variable", ["OTHER", "PYTHONUTF8"], ids=["forked", "new"])
def test_a_process_has_what_it_is_given(server: ForkServer, here: Path, variable: str) -> None:
    env = {**os.environ, "NAME": "value", variable: "1"}
    done = server.run(["show", "one", "two"], cwd=here, env=env, stdin="é\nline")
    assert json.loads(done.stdout) == [str(here), "value", ["one", "two"], "__main__", str(here), "é\nline"]
    known, pid, parent = done.stderr.split()
    assert known == str(variable == "OTHER")
    assert pid != str(os.getpid())
    assert (parent == str(os.getpid())) == (variable != "OTHER")
    assert done.returncode == 3


def test_a_signal_is_its_exit_code(server: ForkServer, here: Path) -> None:
    assert server.run(["die"], cwd=here).returncode == -9


def test_what_does_not_end_in_time_is_killed(server: ForkServer, here: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        server.run(["wait"], cwd=here, timeout=5)
    assert raised.value.stdout in ("begun\n", "")


def test_workers_share_a_server_that_ends_after_them(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEWSKILLS_TEST_FORKSERVER", raising=False)
    with shared() as folder:
        for _ in range(2):
            if (pid := os.fork()) == 0:
                os._exit(ForkServer().run(["show"], cwd=here).returncode)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        assert len(processes_with(str(folder))) == 1
    until(lambda: not processes_with(str(folder)), "the end of the server")
