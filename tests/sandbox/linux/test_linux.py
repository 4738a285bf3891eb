# SPDX-License-Identifier: Apache-2.0
"""System calls on real name spaces, mounts and processes."""

from __future__ import annotations

import errno

import pytest
from tests.sandbox import children

from newskills_sandbox.inside import linux

NAMESPACES = """
FLAGS = linux.CLONE_NEWUSER | linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWUTS
user, group = os.getuid(), os.getgid()
reader, writer = os.pipe()

def inside(action):
    "Runs `action` as process 1 of new name spaces and takes over the answers that it leaves."
    pid = linux.clone(FLAGS)
    if pid == 0:
        try:
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
            action()
            os.write(writer, json.dumps(answers).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    answers.update(json.loads(os.read(reader, 1 << 16) or b"{}"))
"""


def test_clone_makes_a_whole_python_process() -> None:
    children.need("user name space", "pid name space")
    answers = children.run(
        NAMESPACES
        + """
import random
hooks = []
os.register_at_fork(before=lambda: hooks.append("before"), after_in_child=lambda: hooks.append("child"),
                    after_in_parent=lambda: hooks.append("parent"))
random.seed(1)
def action():
    attempt("number", lambda: str(os.getpid()))
    attempt("hooks", lambda: list(hooks))
    thread = threading.Thread(target=lambda: attempt("thread", lambda: "ran")); thread.start(); thread.join()
    attempt("threads", lambda: str(threading.active_count()))
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(7)
    attempt("fork", lambda: str(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])))
inside(action)
attempt("hooks of the parent", lambda: list(hooks))
"""
    )
    assert answers == {
        "number": "1",
        "hooks": ["before", "child"],
        "thread": "ran",
        "threads": "1",
        "fork": "7",
        "hooks of the parent": ["before", "parent"],
    }


def test_mounts_and_roots() -> None:
    children.need("user name space", "mount name space", "tmpfs", "pivot_root", "fresh /proc")
    answers = children.run(
        NAMESPACES
        + """
def action():
    linux.set_hostname("sandbox")
    attempt("host", lambda: os.uname().nodename)
    linux.loopback_up()
    with socket.create_server(("127.0.0.1", 0)) as server:
        attempt("loopback", lambda: socket.create_connection(server.getsockname()).close())
    linux.small_tcp_buffers()
    attempt("buffers", lambda: open("/proc/sys/net/ipv4/tcp_rmem").read().split())
    held = 0
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        client.setblocking(False)
        try:
            while held < 1 << 24:
                held += client.send(bytes(1 << 16))
        except BlockingIOError:
            pass
    attempt("little is held", lambda: held < 1 << 18 or str(held))
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    attempt("no such type", lambda: linux.mount("none", "/mnt", "nonsense"))
    linux.mount("tmpfs", "/mnt", "tmpfs", linux.MS_NOSUID, "size=64k,mode=755")
    os.mkdir("/mnt/proc"); os.mkdir("/mnt/extra")
    linux.mount("proc", "/mnt/proc", "proc")
    linux.mount("tmpfs", "/mnt/extra", "tmpfs")
    linux.umount("/mnt/extra")
    attempt("not mounted", lambda: linux.umount("/mnt/extra"))
    os.chdir("/mnt")
    linux.pivot_root(".", ".")
    linux.umount(".", linux.MNT_DETACH)
    attempt("root", lambda: sorted(os.listdir("/")))
    attempt("processes", lambda: [name for name in os.listdir("/proc") if name.isdigit()])
inside(action)
"""
    )
    assert answers == {
        "host": "sandbox",
        "loopback": 0,
        "buffers": ["4096", "16384", "65536"],
        "little is held": True,
        "no such type": errno.ENODEV,
        "not mounted": errno.EINVAL,
        "root": ["extra", "proc"],
        "processes": ["1"],
    }


def test_privileges_are_given_up_for_good() -> None:
    answers = children.run(
        """
linux.drop_capabilities()
linux.no_new_privileges()
linux.drop_capabilities()
names = ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs")
with open("/proc/self/status") as status:
    attempt("left", lambda: [line.split()[1] for line in status if line.startswith(names)])
attempt("mount", lambda: linux.mount("tmpfs", "/mnt", "tmpfs"))
attempt("host name", lambda: linux.set_hostname("x"))
attempt("unshare", lambda: linux.unshare(linux.CLONE_NEWNS))
attempt("clone", lambda: linux.clone(linux.CLONE_NEWNS))
attempt("still whole", lambda: str(os.waitpid(os.fork() or os._exit(0), 0)[1]))
"""
    )
    denied = dict.fromkeys(("mount", "host name", "unshare", "clone"), errno.EPERM)
    assert answers == {"left": ["0" * 16] * 4 + ["1"], **denied, "still whole": "0"}


def test_descriptors_are_closed_but_for_some() -> None:
    answers = children.run(
        """
low, high = os.dup(1), 200
os.dup2(1, high)
others = [os.dup(1) for _ in range(20)]
linux.close_descriptors({0, 1, 2, low, high, 777})
attempt("open", lambda: [str(fd) for fd in range(1000) if os.path.exists(f"/proc/self/fd/{fd}")])
"""
    )
    kept = answers["open"]
    assert kept[:3] == ["0", "1", "2"]
    assert kept[-1] == "200"
    assert len(kept) == 5


def test_orphans_and_deaths() -> None:
    answers = children.run(
        """
linux.subreaper()
reaper = os.getpid()
middle = os.fork()
if middle == 0:
    if os.fork() == 0:
        while os.getppid() != reaper:
            time.sleep(0.01)
        os._exit(5)
    os._exit(0)
os.waitpid(middle, 0)
attempt("orphan comes to us", lambda: str(os.waitstatus_to_exitcode(os.wait()[1])))

bound, tell = os.pipe()
middle = os.fork()
if middle == 0:
    inner = os.fork()
    if inner == 0:
        linux.die_with_parent()
        os.write(tell, b"x")
        signal.pause()
    os.read(bound, 1)
    os._exit(0)
os.waitpid(middle, 0)
attempt("child dies with its parent", lambda: str(os.waitstatus_to_exitcode(os.wait()[1])))

linux.set_dumpable(False)
attempt("hidden", lambda: str(linux.prctl(3)))
linux.set_dumpable(True)
attempt("seen", lambda: str(linux.prctl(3)))
attempt("no such option", lambda: linux.prctl(123456))
"""
    )
    assert answers == {
        "orphan comes to us": "5",
        "child dies with its parent": "-9",
        "hidden": "0",
        "seen": "1",
        "no such option": errno.EINVAL,
    }


def test_a_refused_call_says_what_was_refused() -> None:
    with pytest.raises(OSError, match="umount /nowhere/at/all") as refused:
        linux.umount("/nowhere/at/all")
    assert refused.value.errno in (errno.ENOENT, errno.EPERM)
