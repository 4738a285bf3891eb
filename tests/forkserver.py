# SPDX-License-Identifier: Apache-2.0
"""Processes of `python -m MODULE` that need not import everything again.

A server that has imported it forks for each of them. What is forked is a process like any other: it has its own
folder, environment, standard streams and exit code, and runs MODULE as `__main__`; only its imports came before. Where
variables that Python or a library reads when it starts differ from the server's, a new Python runs instead; so it does
everywhere with NEWSKILLS_TEST_FORKSERVER=0. Tests of imports, start-up, signals and limits start a Python of their own.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import hashlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

_AT_START = (
    "PYTHON",
    "LD_",
    "MALLOC_",
    "OMP_",
    "MKL_",
    "TORCH",
    "PYTORCH_",
    "CUDA_",
    "HF_",
    "TRANSFORMERS_",
    "LC_",
)
_BACKLOG = 64
_PREFIX = "newskills-forkserver-"


class ForkServer:
    """Its process starts with the first request, and ends with the process that holds it, or with `shared`."""

    def __init__(self, *packages: str, environ: Mapping[str, str] | None = None) -> None:
        """`packages`, where they are installed, are imported besides the commands of newskills; each process gets
        `environ` in addition to what it is given.
        """
        self._packages = packages
        self._more = environ or {}
        self._address = ""
        self._environ: dict[str, str] = {}
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """`python -m WORDS`; its streams are captured, as text. Raises subprocess.TimeoutExpired."""
        env = {**(os.environ if env is None else env), **self._more}
        if os.environ.get("NEWSKILLS_TEST_FORKSERVER") == "0":
            return _new_python(words, cwd=cwd, env=env, stdin=stdin, timeout=timeout)
        with self._lock:
            self._start()
        if _at_start(env) != _at_start(self._environ):
            return _new_python(words, cwd=cwd, env=env, stdin=stdin, timeout=timeout)
        request = {"words": list(words), "cwd": str(cwd or Path.cwd()), "env": dict(env)}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._address)
            return _captured(connection, request, stdin, timeout)

    def _start(self) -> None:
        if self._address:
            return
        if _shared is None:
            self._started(Path(tempfile.mkdtemp(prefix=_PREFIX)), None)
            return
        key = hashlib.sha256(json.dumps([self._packages, sorted(self._more.items())]).encode()).hexdigest()[:16]
        folder = _shared.folder / key
        with folder.with_suffix(".lock").open("w") as lock:  # one worker starts it, the others wait and use it
            fcntl.flock(lock, fcntl.LOCK_EX)
            environ = folder / "environ.json"
            if environ.is_file():
                self._environ, self._address = json.loads(environ.read_text()), str(folder / "socket")
                return
            folder.mkdir()
            self._started(folder, _shared.end)
            environ.write_text(json.dumps(self._environ))

    def _started(self, folder: Path, end: int | None) -> None:
        """`end`: what it reads until it is to end; without, this process tells it."""
        address = str(folder / "socket")
        self._environ = {**os.environ, **self._more}
        argv = [sys.executable, __file__, address, *self._packages]
        server = self._server = subprocess.Popen(
            argv, stdin=subprocess.PIPE if end is None else end, stdout=subprocess.PIPE, env=self._environ
        )
        assert server.stdout is not None
        if server.stdin is not None:
            atexit.register(_stop, server, server.stdin, server.stdout)
        assert server.stdout.readline() == b"ready\n"
        self._address = address


class _Shared(NamedTuple):
    """Where the servers are, and the end of a pipe that tells them when to go."""

    folder: Path
    end: int


_shared: _Shared | None = None


@contextmanager
def shared() -> Iterator[Path]:
    """Processes that are forked meanwhile use the same servers, in a folder that goes with the last of them."""
    global _shared
    end, held = os.pipe()
    _shared = _Shared(Path(tempfile.mkdtemp(prefix=_PREFIX)), end)
    try:
        yield _shared.folder
    finally:
        os.close(held)
        os.close(end)
        shutil.rmtree(_shared.folder, ignore_errors=True)
        _shared = None


_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
_COMMANDS = ForkServer()
_CPU = ForkServer(
    "newskills.train.backends.cpu.local", "newskills.train.loops.trainer", "torch._dynamo", environ=_ONE_THREAD
)
_TRL = ForkServer(
    "newskills.train.backends.trl.sft",
    "newskills.train.backends.trl.dpo",
    "newskills.train.backends.trl.kto",
    "newskills.train.backends.trl.grpo",
    environ=_ONE_THREAD,
)
_TRAINING = (
    "sft",
    "dpo",
    "grpo",
    "distill",
    "reward_model",
    "aimo",
    "aimo_train",
    "convert",
    "merge_lora",
    "average_checkpoints",
)


def ns(
    words: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """`ns WORDS`, from the server that has imported what it needs."""
    if "--dry_run" in words:  # imports no trainer
        server = _COMMANDS
    elif "--backend=trl" in words or list(words[:1]) == ["kto"]:
        server = _TRL
    elif words and words[0] in _TRAINING:
        server = _CPU
    else:
        server = _COMMANDS
    return server.run(["newskills", *words], cwd=cwd, env=env, stdin=stdin, timeout=timeout)


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_AT_START)}


def _stop(server: subprocess.Popen[bytes], stdin: IO[bytes], stdout: IO[bytes]) -> None:
    stdin.close()
    stdout.close()
    server.wait()


def _new_python(
    words: Sequence[str], *, cwd: Path | None, env: Mapping[str, str], stdin: str | None, timeout: float | None
) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", *words]
    return subprocess.run(
        argv, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )


def _captured(
    connection: socket.socket, request: dict[str, object], stdin: str | None, timeout: float | None
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` does: all that is written is read until nobody can write any more."""
    argv = [sys.executable, "-m", *map(str, request["words"])]
    outputs = [_Reader(), _Reader()]
    read_end, write_end = os.pipe()
    socket.send_fds(connection, [b"\n"], [read_end, *(output.write_end for output in outputs)])
    connection.sendall(json.dumps(request).encode() + b"\n")
    for end in (read_end, *(output.write_end for output in outputs)):
        os.close(end)
    replies = connection.makefile("r")
    pid = int(replies.readline())
    writer = threading.Thread(target=_write, args=(write_end, stdin or ""))
    writer.start()
    connection.settimeout(timeout)
    try:
        code = int(replies.readline())
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        assert timeout is not None
        raise subprocess.TimeoutExpired(argv, timeout, *(output.text() for output in outputs)) from None
    finally:
        replies.close()
        writer.join()
    return subprocess.CompletedProcess(argv, code, *(output.text() for output in outputs))


def _write(end: int, text: str) -> None:
    with suppress(BrokenPipeError), open(end, "w") as stream:  # it may end before it has read all
        stream.write(text)


class _Reader(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._read_end, self.write_end = os.pipe()
        self._text = ""
        self.start()

    def run(self) -> None:
        with open(self._read_end) as stream:
            self._text = stream.read()

    def text(self) -> str:
        self.join()
        return self._text


# ---- The server -----------------------------------------------------------------------------------------------------


def _serve(address: str, packages: Sequence[str]) -> None:
    """Until standard input ends."""
    _import_commands()
    for name in packages:
        try:
            __import__(name)
        except ImportError:
            continue
    gc.collect()
    gc.freeze()  # so that a collection in what is forked touches, and copies, none of this
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(_BACKLOG)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener.fileno(), 0], [], [])
            if 0 in ready:
                break
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(connection)
            connection.close()
            _reap(os.WNOHANG)
    shutil.rmtree(Path(address).parent, ignore_errors=True)
    _reap(0)


def _reap(options: int) -> None:
    """So that their CPU time counts as the server's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options) != (0, 0):
            pass


def _import_commands() -> None:
    from newskills.commands.command import resolve_function
    from newskills.commands.loading import load_command
    from newskills.commands.table import command_names

    for name in command_names():
        try:
            resolve_function(load_command(name).run)
        except ImportError:  # a package that is not installed: the command itself says so
            continue


def _answer(connection: socket.socket) -> NoReturn:
    """Forks the process that is asked for, waits for it, and sends its exit code."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        request = json.loads(lines.readline())
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(request, streams)
    for stream in streams:
        os.close(stream)
    connection.sendall(b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):  # nobody waited so long
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(request: dict[str, object], streams: Sequence[int]) -> NoReturn:
    """`python -m WORDS`."""
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    words, cwd, env = request["words"], request["cwd"], request["env"]
    assert isinstance(words, list)
    assert isinstance(cwd, str)
    assert isinstance(env, dict)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path.insert(0, cwd)
    sys.argv = list(words)
    code: object = None
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    _end(code)


def _end(code: object) -> NoReturn:
    """As Python ends, but for taking apart what the server has imported: most of the time of a short command."""
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = 120
    os._exit((code or 0) & 0xFF)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of tests: what is imported is what `python -m` finds elsewhere
    _serve(sys.argv[1], sys.argv[2:])
