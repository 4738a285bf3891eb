# SPDX-License-Identifier: Apache-2.0
"""Control groups: made, filled beyond their limits and removed, where this user may."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandbox import children

from newskills_sandbox.cgroups import Cgroups, ControlGroup, _delegated_groups, _mounted_path, own_prefix

GREEDY = "bytearray(400 << 20)"
SLEEPERS = """
import os, time
for made in range(30):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError:
        break
print(made, flush=True)
os.killpg(0, 9)
"""


@pytest.fixture(scope="module")
def groups() -> Cgroups:
    found = Cgroups.find()
    if found is None:
        pytest.skip("this user may make no control groups")
    return found


@pytest.fixture
def group(groups: Cgroups) -> Iterator[ControlGroup]:
    made = groups.create(f"{own_prefix()}test", 128 << 20, 12)
    yield made
    assert made.remove()


def inside(group: ControlGroup, code: str, *, user: int | None = None) -> subprocess.CompletedProcess[str]:
    """`code` in a process that has entered the group by the descriptors it was given, as `user`."""
    fds = group.enter_fds()
    enter = f"import os\nfor fd in {fds}: os.write(fd, b'0'); os.close(fd)\n"
    leave = (
        f"import os; os.setgroups([]); os.setresgid(*[{user}] * 3); os.setresuid(*[{user}] * 3)\n" if user else ""
    )
    try:
        return subprocess.run(
            [sys.executable, "-ISc", leave + enter + code],
            pass_fds=fds,
            capture_output=True,
            text=True,
            timeout=60,
            start_new_session=True,
            check=False,
        )
    finally:
        for fd in fds:
            os.close(fd)


def test_memory_is_limited_and_the_killing_is_seen(group: ControlGroup) -> None:
    assert inside(group, "bytearray(40 << 20); print('fine')").stdout == "fine\n"
    assert group.oom_kills() == 0
    assert inside(group, GREEDY).returncode == -9
    assert group.oom_kills() == 1


def test_a_process_without_rights_may_enter(group: ControlGroup) -> None:
    children.need_root()
    done = inside(group, GREEDY, user=children.NOBODY)
    assert (done.returncode, done.stderr) == (-9, "")


def test_processes_are_limited(group: ControlGroup) -> None:
    assert int(inside(group, SLEEPERS).stdout) == 11


def test_a_name_is_taken_once(groups: Cgroups, group: ControlGroup) -> None:
    with pytest.raises(FileExistsError):
        groups.create(f"{own_prefix()}test", 128 << 20, 12)
    assert inside(group, "print('still there')").stdout == "still there\n"


def test_removing_waits_for_processes_and_can_be_repeated(groups: Cgroups) -> None:
    made = groups.create(f"{own_prefix()}busy", 128 << 20, 12)
    fds = made.enter_fds()
    with subprocess.Popen(["sleep", "600"]) as process:
        for fd in fds:
            os.write(fd, str(process.pid).encode())
            os.close(fd)
        assert not made.remove()
        process.kill()
    assert made.remove()
    assert made.remove()


def test_what_a_killed_process_left_is_swept(groups: Cgroups, group: ControlGroup) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    left = groups.create(f"newskills-{ended.pid}-3", 128 << 20, 12)
    assert Cgroups.find() is not None
    for made, is_there in ((left, False), (group, True)):
        assert all(folder.exists() == is_there for folder in made._folders)


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [("/", "/", "/g"), ("/", "/a/b", "/g/a/b"), ("/a", "/a/b", "/g/b"), ("/a", "/a", "/g"), ("/a", "/c", "/g")],
)
def test_where_a_group_is_seen(root: str, path: str, expected: str) -> None:
    assert _mounted_path("/g", root, path) == Path(expected)


def test_version_2_places(tmp_path: Path) -> None:
    own = tmp_path / "slice" / "scope"
    own.mkdir(parents=True)
    (own / "cgroup.subtree_control").write_text("\n")
    assert list(_delegated_groups(own)) == []
    (own.parent / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert list(_delegated_groups(own)) == [own.parent]
    (own / "memory.max").write_text("max\n")
    assert list(_delegated_groups(own)) == [own.parent]
    (own / "memory.max").write_text("1000000\n")  # sessions beside us would escape this
    assert list(_delegated_groups(own)) == []
    (own / "cgroup.subtree_control").write_text("memory pids\n")
    assert list(_delegated_groups(own)) == [own]
