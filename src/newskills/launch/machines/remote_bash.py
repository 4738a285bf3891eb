# SPDX-License-Identifier: Apache-2.0
"""A bash that stays: what it shall run comes through its stdin, what that printed is told apart by marks.

One start of the login shell there (which may read a slow .bashrc) serves all commands of an `ns`.
"""

from __future__ import annotations

import os
import secrets
import selectors
import subprocess
import weakref
from collections.abc import Sequence

from newskills.launch.machines.shell import CommandResult

LOOP = 'while IFS= read -r -d "" job; do eval "$job"; done'
"""What the bash is started with; a NUL ends each piece. It ends when its stdin does."""
_GRACE_SECONDS = 2.0


class RemoteBashEnded(Exception):
    """The bash is gone: its exit code and all that it said on stderr since the last mark."""

    def __init__(self, code: int, output: str) -> None:
        super().__init__(output)
        self.code, self.said = code, output


class RemoteBash:
    """`argv` starts `bash -c LOOP` somewhere."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for us: what runs there may have to be cancelled over this very line
        )
        self._finalizer = weakref.finalize(self, _end_process, self._process)

    def alive(self) -> bool:
        return self._finalizer.alive and self._process.poll() is None

    def close(self) -> None:
        self._finalizer()

    def run(self, lines: Sequence[str]) -> list[CommandResult]:
        """Run each of `lines` (bash, which must not read stdin). Raises RemoteBashEnded.

        An exception, also Ctrl-C, closes it: nobody knows what it is doing then.
        """
        nonce = secrets.token_hex(16)
        mark = f'mark() {{ printf "\\n{nonce} %s\\n" "$1"; printf "\\n{nonce} %s\\n" "$1" >&2; }}\nmark 0\n'
        script = mark + "".join(f"{line}\nmark $?\n" for line in lines)
        try:
            texts = self._exchange(
                script.encode("utf-8", "surrogateescape") + b"\0", nonce.encode(), len(lines) + 1
            )
        except BaseException:
            self.close()
            raise
        out, err = (_split_frames(text, nonce.encode()) for text in texts)
        return [
            CommandResult(code=code, out=text, err=errors)
            for (code, text), (_, errors) in zip(out, err, strict=True)
        ][1:]

    def _exchange(self, script: bytes, nonce: bytes, marks: int) -> tuple[bytes, bytes]:
        """Write `script` and read stdout and stderr until each contains `marks` marks."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        texts = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        mark, stdin = b"\n" + nonce + b" ", process.stdin.fileno()
        left = memoryview(script)
        os.set_blocking(stdin, False)
        with selectors.DefaultSelector() as selector:
            selector.register(stdin, selectors.EVENT_WRITE)
            for fd in texts:
                selector.register(fd, selectors.EVENT_READ)
            while len(selector.get_map()) > 0:
                for key, _ in selector.select():
                    fd = key.fd
                    if fd == stdin:
                        left = left[_write_some(fd, left) :]
                        if not left:
                            selector.unregister(fd)
                        continue
                    data = os.read(fd, 1 << 16)
                    texts[fd] += data
                    if not data or _is_whole_mark(texts[fd], mark, marks):
                        selector.unregister(fd)
                    if not data and not _is_whole_mark(texts[fd], mark, marks):
                        raise self._ended(texts[process.stderr.fileno()])
        out, err = texts.values()
        return bytes(out), bytes(err)

    def _ended(self, output: bytearray) -> RemoteBashEnded:
        assert self._process.stderr is not None
        try:
            code = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # only its outputs are closed
            self._process.kill()
            code = self._process.wait()
        rest = self._process.stderr.read() or b""
        return RemoteBashEnded(code, (bytes(output) + rest).decode(errors="replace"))


def _write_some(fd: int, data: memoryview) -> int:
    """Write what the pipe takes and return its bytes; a reader that has gone takes all, as its end is noticed
    elsewhere."""
    try:
        return os.write(fd, data)
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


def _is_whole_mark(text: bytearray, mark: bytes, marks: int) -> bool:
    """Return whether the last line is a whole mark, and the last of them."""
    return text.endswith(b"\n") and text.rfind(mark, len(text) - len(mark) - 8) >= 0 and text.count(mark) == marks


def _split_frames(text: bytes, nonce: bytes) -> list[tuple[int, str]]:
    """Split output into (exit code in a mark, what stands between it and the mark before)."""
    before, *parts = text.split(b"\n" + nonce + b" ")
    frames = []
    for part in parts:
        code, _, after = part.partition(b"\n")
        frames.append((int(code), before.decode(errors="replace")))
        before = after
    return frames


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Close stdin, which ends the loop; kill a process that does not end in time."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
