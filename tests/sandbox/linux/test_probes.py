# SPDX-License-Identifier: Apache-2.0
"""What a machine allows, as found on this one and on ones made poorer by a filter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox import children

from newskills_sandbox.probes import Probe, run_probes, strongest_level, why_not

NAMESPACES = ("user", "pid", "mount", "network", "ipc", "uts")
PROBE = """
import os, signal, subprocess, sys, threading
import msgspec
from newskills_sandbox import probes
from newskills_sandbox.inside import linux, seccomp, trials
before = (sorted(os.listdir("/proc/self/fd")), os.getcwd(), threading.active_count())
{before}
found = probes.run_probes({python!r})
assert before == (sorted(os.listdir("/proc/self/fd")), os.getcwd(), threading.active_count())
print(msgspec.json.encode([found, probes.strongest_level(found), probes.why_not(found, "a"),
                           probes.why_not(found, "b")]).decode())
"""
# As in a container that may not make name spaces: clone and unshare with CLONE_NEW*, mount, pivot_root are refused.
POOR = """
column = seccomp._MACHINES[os.uname().machine][1]
code = [seccomp._encode_op(0x20, 0)]
body = seccomp._check_code(seccomp._allow_only(0, (0,), 0x7E020000)) + seccomp._encode_op(0x06, 0x7FFF0000)
for name in ("clone", "unshare"):
    code += [seccomp._encode_op(0x15, seccomp._NUMBERS[name][column], 0, len(body) // 8), body]
code.append(seccomp._encode_op(0x06, 0x7FFF0000))
code = b"".join(code)
import ctypes
linux.no_new_privileges()
program = seccomp._Program(len(code) // 8, code)
linux.syscall(seccomp._NUMBERS["seccomp"][column], 1, 0, ctypes.addressof(program))
"""


def probe(before: str = "", python: str = "") -> tuple[dict[str, Probe], str, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(before=before, python=python)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, level, no_a, no_b = json.loads(done.stdout)
    return {each["name"]: Probe(**each) for each in found}, level, no_a, no_b


def world_readable_python() -> str:
    """An interpreter that every user may run."""
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        place = shutil.which(name, path="/usr/bin:/usr/local/bin")
        if place is not None:
            test = [place, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(test, check=False).returncode == 0:
                return place
    pytest.skip("no Python >= 3.11 that every user may run")


def test_every_probe_has_an_answer() -> None:
    found = {each.name: each for each in run_probes()}
    assert {f"{name} name space" for name in NAMESPACES} < set(found)
    assert {"user", "python", "tmpfs", "pivot_root", "fresh /proc", "nested name spaces", "seccomp"} < set(found)
    assert {"no_new_privs", "landlock", "resource limits", "control groups"} < set(found)
    assert found["user"].detail == ("root" if os.geteuid() == 0 else f"uid {os.geteuid()}")
    for each in found.values():
        assert each.ok or each.detail, each


def test_root_and_an_ordinary_user_get_the_same_level() -> None:
    children.need_root()
    python = world_readable_python()
    ours, level, _, _ = probe(python=python)
    theirs, their_level, _, _ = probe("trials.become_nobody()", python=python)
    assert ours["user"].detail == "root"
    assert theirs["user"].detail == f"uid {children.NOBODY}"
    assert their_level == level
    assert {name for name, each in theirs.items() if not each.ok} - {"control groups", "python"} == {
        name for name, each in ours.items() if not each.ok
    } - {"control groups", "python"}


def test_where_name_spaces_are_refused_level_b_is_left() -> None:
    children.need("seccomp", "landlock")
    found, level, no_a, no_b = probe(POOR)
    assert level == "b"
    assert no_b == ""
    for name in NAMESPACES:
        assert not found[f"{name} name space"].ok
        assert f"{name} name space" in no_a
    assert "Operation not permitted" in no_a
    assert found["landlock"].ok


def test_where_landlock_is_refused_too_nothing_is_left() -> None:
    children.need("seccomp")
    found, level, _, no_b = probe("seccomp.install(network=True, namespaced=False)")
    assert level == "none"
    assert not found["landlock"].ok
    assert no_b.startswith("isolation level b is not possible here: landlock: ")


def test_a_hidden_part_of_proc_is_named() -> None:
    children.need("user name space", "mount name space", "fresh /proc")
    found, level, no_a, _ = probe(
        """
user, group = os.getuid(), os.getgid()
pid = linux.clone(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
if pid:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
for name, text in (("setgroups", "deny"), ("uid_map", f"1000 {user} 1"), ("gid_map", f"1000 {group} 1")):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
linux.mount("tmpfs", "/proc/sys", "tmpfs")
""",
    )
    assert not found["fresh /proc"].ok
    assert "a container hides /proc/sys" in found["fresh /proc"].detail
    assert found["pivot_root"].ok
    assert level != "a"
    assert "a container hides /proc/sys" in no_a


@pytest.mark.parametrize(
    ("python", "said"), [("/nowhere/python", "No such file"), ("/bin/false", "ended with 1"), ("/bin/echo", "")]
)
def test_an_interpreter_that_does_not_start(python: str, said: str) -> None:
    found = run_probes(python)
    assert [each.name for each in found] == ["python", "control groups"]
    assert said in found[0].detail
    assert strongest_level(found) == "none"
    assert found[0].detail in why_not(found, "a")


def test_the_strongest_level_needs_all_of_its_probes() -> None:
    every: list[Any] = [Probe(each.name, True, "") for each in run_probes()]
    assert strongest_level(every) == "a"
    assert why_not(every, "a") == why_not(every, "b") == why_not(every, "none") == ""
    without = [each for each in every if each.name != "fresh /proc"]
    assert strongest_level(without) == "b"
    assert "fresh /proc: " in why_not(without, "a")
    assert strongest_level([each for each in every if each.name != "seccomp"]) == "none"


def test_a_closed_folder_on_the_way_to_python_is_named(tmp_path: Path) -> None:
    children.need_root()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    python = closed / "python"
    python.symlink_to(sys.executable)
    found = {each.name: each for each in run_probes(str(python))}
    assert found["python"].ok == os.access(os.path.realpath(sys.executable), os.X_OK, effective_ids=True) or (
        "is closed to it" in found["python"].detail
    )
