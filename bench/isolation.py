# SPDX-License-Identifier: Apache-2.0
"""The library newskills-sandbox beside bubblewrap, nsjail and a container: what a script costs, and what gets out.

Each tool gets the same scripts with the options that its own documentation recommends for programs nobody trusts: no
network, system folders read-only, a /tmp of its own, all name spaces; limits where the tool has them. Tools that are
not installed here are left out. A script "gets out" where it prints ESCAPED, or where the machine shows it afterwards.
No script runs without a tool around it, and none does harm where it gets out: what it reaches for was made for it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from bench.measure import BenchError, Line, Options
from newskills_sandbox import Sandbox, SandboxSettings, SessionLimits

Runs = Callable[[str], str]
"""Runs a script and returns what it prints, however it ends."""

NOTHING = "print('done')"
SECONDS = 4.0
ROUNDS = 30
USER = 65534
SHOWN = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
LIMITS = SessionLimits(memory_mb=512, disk_mb=64, files=2000, processes=48)
CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    done = libc.syscall(number, *words)
    if done < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return done
"""
NUMBERS = {
    "a user name space of its own": (272, 0x10000000),
    "a program for the kernel (bpf)": (321, 5, b"\0" * 128, 128),
    "counters of the kernel": (298, b"\x01\0\0\0\x70\0\0\0" + b"\0" * 104, 0, -1, -1, 0),
    "page faults of the kernel": (323, 0),
    "rings of the kernel (io_uring)": (425, 4, b"\0" * 120),
    "the keyring of its user": (250, 0, -4, 1),
    "the kernel's log": (103, 10, 0, 0),
}
"""What → number and words of a system call (x86-64) that hostile code has no business with."""
ATTEMPTS = {
    "secrets that its user may read": "print('ESCAPED', open({secret!r}).read())",
    "accounts of this machine": "print('ESCAPED', open('/etc/shadow').read()[:1])",
    "variables of its parent": "import os; assert {token!r} in str(dict(os.environ)); print('ESCAPED')",
    "variables of processes": (
        "import glob\n"
        "for path in glob.glob('/proc/*/environ'):\n"
        "    try: text = open(path).read()\n"
        "    except OSError: continue\n"
        "    if {token!r} in text: print('ESCAPED')"
    ),
    "processes of others": "import os; assert b'600' in open('/proc/{pid}/cmdline', 'rb').read(); print('ESCAPED')",
    "a server of this machine": "import socket; socket.create_connection(('127.0.0.1', {port}), 1); print('ESCAPED')",
    "a socket without a place": (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0' + {token!r}); print('ESCAPED')"
    ),
    "writing system files": "open('/usr/bin/' + {token!r}, 'w').close(); print('ESCAPED')",
    "leaving a file for the next": (
        "import os\nif os.path.exists('/tmp/' + {token!r}): print('ESCAPED')\n"
        "open('/tmp/' + {token!r}, 'w').close()"
    ),
    "more memory than 512 MB": "x = bytearray(1 << 30)\nx[::4096] = b'x' * len(x[::4096])\nprint('ESCAPED')",
    "more than 64 MB of files": (
        "with open('/tmp/large', 'wb') as f:\n    for _ in range(160): f.write(b'x' * (1 << 20))\nprint('ESCAPED')"
    ),
    "more than 48 processes": (
        "import os, time\nn = 0\nfor _ in range(200):\n"
        "    if os.fork() == 0: time.sleep(1); os._exit(0)\n    n += 1\nprint('ESCAPED', n)"
    ),
    "more than 2,000 files": "for n in range(4000): open(f'/tmp/f{{n}}', 'w').close()\nprint('ESCAPED')",
    "a process that lives on": (
        "import os, sys, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    os.execvp(sys.executable or 'python3', ['python3', '-c', "
        "'import time; time.sleep(300)', {token!r}])\n"
        "time.sleep(0.3)"
    ),
    "tracing another process": f"{CALL}call(101, 0x4206, {{pid}}, 0, 0); print('ESCAPED')",
    "mounting": (
        f"{CALL}place = '/tmp/m' + {{token!r}}; os.makedirs(place)\n"
        "call(165, b'none', place.encode(), b'tmpfs', 0, 0); print('ESCAPED')"
    ),
    **{what: f"{CALL}call{words!r}; print('ESCAPED')" for what, words in NUMBERS.items()},
}


class Tool(NamedTuple):
    """A way to run a script, by name."""

    name: str
    runs: Runs


def bench(options: Options) -> Iterator[Line]:
    with ExitStack() as stack:
        tools = list(_ours(stack))
        if options.peers:
            tools += _peers(stack)
        alone = _least(Tool("python3 alone", _command([_system_python()])), options.rows(ROUNDS))
        yield Line(
            bench="isolation", what="a script in python3 alone", ours=1000 * alone, unit="ms", better="less"
        )
        yield from _own_costs(options)
        for tool in tools:
            seconds = _least(tool, options.rows(ROUNDS))
            escapes = _escapes(tool.runs)
            what = f"a script in {tool.name}"
            yield Line(bench="isolation", what=what, ours=1000 * seconds, unit="ms", better="less")
            line = Line(
                bench="isolation", what=f"{tool.name}: got out", ours=len(escapes), unit="attempts", better="less"
            )
            line.note = f"of {len(ATTEMPTS)}: {', '.join(escapes) or 'none'}"
            if tool.name.startswith("newskills"):
                line.target, line.met = "0", not escapes
            yield line


def _least(tool: Tool, rounds: int) -> float:
    """Return the least seconds from the call to the output of a script that does nothing: other work only adds."""
    times = []
    for _ in range(max(3, rounds)):
        began = time.perf_counter()
        if tool.runs(NOTHING).strip() != "done":
            raise BenchError(f"{tool.name} does not run here.")
        times.append(time.perf_counter() - began)
    return min(times)


def _escapes(runs: Runs) -> list[str]:
    """Return the attempts that had their way."""
    token = f"nsx{secrets.token_hex(8)}"
    secret = Path("/var/tmp", token)
    secret.write_text("secret")
    secret.chmod(0o644)
    os.environ["NSX_SECRET"] = token
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX) as abstract,
        subprocess.Popen(["sleep", "600"]) as bystander,
    ):
        abstract.bind(f"\0{token}")
        abstract.listen()
        port = listener.getsockname()[1]
        values = {"secret": str(secret), "token": token, "pid": bystander.pid, "port": port}
        try:
            return [what for what, code in ATTEMPTS.items() if _gets_out(what, code, runs, values)]
        finally:
            bystander.kill()
            del os.environ["NSX_SECRET"]
            for path in (secret, Path("/tmp", token), Path("/usr/bin", token)):
                path.unlink(missing_ok=True)


def _gets_out(what: str, code: str, runs: Runs, values: dict[str, object]) -> bool:
    text = code.format(**values)
    output = runs(text)
    if what == "leaving a file for the next":
        output = runs(text)
    if what == "a process that lives on":
        return _end_of(str(values["token"]))
    return "ESCAPED" in output


def _end_of(token: str) -> bool:
    """Return whether a process of that name is alive a second later; it is ended."""
    time.sleep(1)
    alive = False
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"time.sleep(300)\0{token}" in (folder / "cmdline").read_text():
                alive = True
                os.kill(int(folder.name), 9)
    return alive


def _own_costs(options: Options) -> Iterator[Line]:
    """What only a sandbox that stays has: a start, once, and cells of a session."""
    settings = SandboxSettings(preload=(), python=_system_python(), limits=LIMITS)
    began = time.perf_counter()
    with Sandbox(settings) as sandbox, sandbox.session() as session:
        session.run(NOTHING)
        start = time.perf_counter() - began
        runs: Runs = lambda code: session.run(code).stdout  # noqa: E731 - shorter than a function
        cell = _least(Tool("a cell", runs), options.rows(ROUNDS))
    for what, seconds in (("the start of newskills-sandbox, once", start), ("a cell in its session", cell)):
        yield Line(bench="isolation", what=what, ours=1000 * seconds, unit="ms", better="less")


def _ours(stack: ExitStack) -> Iterator[Tool]:
    for level in ("a", "b"):
        settings = SandboxSettings(isolation=level, preload=(), python=_system_python(), limits=LIMITS)
        sandbox = stack.enter_context(Sandbox(settings))

        def runs(code: str, sandbox: Sandbox = sandbox) -> str:
            result = sandbox.run(code, timeout=SECONDS)
            return result.stdout

        yield Tool(f"newskills-sandbox, level {level}", runs)


def _peers(stack: ExitStack) -> Iterator[Tool]:
    python = _system_python()
    if bwrap := shutil.which("bwrap"):
        shown = [word for place in SHOWN if os.path.exists(place) for word in ("--ro-bind", place, place)]
        options = ["--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--uid", str(USER)]
        places = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
        version = _version([bwrap, "--version"])
        yield Tool(version, _command([bwrap, *options, *shown, *places, python]))
    if nsjail := shutil.which("nsjail"):
        shown = [word for place in SHOWN if os.path.exists(place) for word in ("-R", place)]
        limits = ["--rlimit_as", "512", "--rlimit_nproc", "48", "--rlimit_fsize", "64", "-t", str(int(SECONDS))]
        tree = ["-T", "/tmp", "-u", f"{USER}:{USER}", "-g", f"{USER}:{USER}"]
        yield Tool("nsjail", _command([nsjail, "-Mo", "--really_quiet", *limits, *tree, *shown, "--", python]))
    if podman := shutil.which("podman"):
        root = stack.enter_context(_RootFolder())
        limits = ["--ulimit", "nofile=256:256", "--ulimit", "nproc=1000:1000", "--memory", "512m"]
        limits += ["--pids-limit", "48", "--tmpfs", "/tmp:size=64m", "--user", str(USER)]
        safe = ["--network", "none", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"]
        shown = []
        for place in SHOWN:
            if Path(place).is_dir():
                shown += ["-v", f"{os.path.realpath(place)}:{place}:ro"]
        argv = [podman, "run", "--rm", "-i", *limits, *safe, *shown, "--rootfs", root, python]
        yield Tool(_version([podman, "--version"]).replace(" version", ""), _command(argv))


def _system_python() -> str:
    """Return an interpreter that every user of this machine may read."""
    system = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    return str(system) if system.exists() else sys.executable


class _RootFolder:
    """An empty tree for a container, whose folders are mounted."""

    def __enter__(self) -> str:
        self._folder = Path(f"/tmp/nsx-root-{secrets.token_hex(4)}")
        for name in ("proc", "sys", "dev", "tmp", "etc", "run", *(place[1:] for place in SHOWN)):
            (self._folder / name).mkdir(parents=True)
        return str(self._folder)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _command(argv: list[str]) -> Runs:
    """Return what runs a script from standard input by a command, which is ended after `SECONDS` and two more."""

    def runs(code: str) -> str:
        with subprocess.Popen(
            [*argv, "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd="/tmp",  # where podman leaves its notes
        ) as process:
            try:
                output, _ = process.communicate(code, timeout=SECONDS + 2)
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
            return output

    return runs


def _version(argv: list[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
