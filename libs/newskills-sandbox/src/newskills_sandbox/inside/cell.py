# SPDX-License-Identifier: Apache-2.0
"""Runs cells as a notebook does and scripts as the interpreter does.

Code may replace anything it can reach here; what these functions need is therefore bound when they are made.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # what `signal` wraps in enumerations, at a price for each cell
import ast
import builtins
import contextlib
import io
import linecache
import os
import signal
import sys
import threading
import traceback
from inspect import CO_COROUTINE
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType, TracebackType
    from typing import Any

CONTEXT_LINES = 3
LONGEST_VALUE = 200
LONGEST_CHAIN = 100
RECURSION_LIMIT = 1000
_compile, _exec, _eval, _repr = builtins.compile, builtins.exec, builtins.eval, builtins.repr
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Session:
    """The namespace that cells share, and the state of the interpreter that is fixed before each of them."""

    def __init__(self) -> None:
        self._main = _new_main()
        self._running = False
        self._reset = _Reset(self._interrupt)

    def run(self, code: str, stdin: str, style: str, number: int) -> bool:
        """Run a cell, and return True where an exception ended it; its traceback goes to standard output, as in a
        notebook."""
        self._reset.before(self._main, stdin)
        name = f"<cell {number}>"
        self._running = True
        failed = False
        try:
            try:
                _run_cell(code, self._main.__dict__, name)
            except BaseException as error:  # noqa: BLE001 - all that a cell raises is its result
                failed = True
                self._reset.tell(render_traceback(error, style))
            self._running = False
        except BaseException as error:  # noqa: BLE001 - interrupted, or text that cannot be made
            self._running = False
            failed = True
            self._reset.tell(f"{type(error).__name__}\n")
        self._reset.after()
        return failed

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._running:
            raise KeyboardInterrupt


class _Reset:
    """Puts back what cells like to break: streams, signals, tracing, the recursion limit."""

    def __init__(self, on_interrupt: Callable[[int, FrameType | None], None]) -> None:
        self._on_interrupt = on_interrupt
        self._signal, self._mask = _signal.signal, _signal.pthread_sigmask
        self._timer, self._trace = signal.setitimer, sys.settrace
        self._profile, self._recursion = sys.setprofile, sys.setrecursionlimit
        self._raw, self._wrap, self._text = io.FileIO, io.TextIOWrapper, io.StringIO
        self._buffered = io.BufferedWriter
        self.out = self.err = self._open_stream(1)

    def before(self, main: ModuleType, stdin: str) -> None:
        self._signal(signal.SIGINT, self._on_interrupt)
        self._mask(signal.SIG_SETMASK, ())
        self.out, self.err = self._open_stream(1), self._open_stream(2)
        sys.stdout = sys.__stdout__ = self.out  # type: ignore[misc] # code restores them from there
        sys.stderr = sys.__stderr__ = self.err  # type: ignore[misc]
        sys.stdin = self._text(stdin)
        setattr(sys, "__stdin__", sys.stdin)  # noqa: B010 - its type says: a file
        sys.modules["__main__"] = main

    def tell(self, text: str) -> None:
        """Write to standard output, also where the cell has closed its own."""
        try:
            self.out.write(text)
        except (OSError, ValueError):
            os.write(1, text.encode("utf-8", "backslashreplace"))

    def after(self) -> None:
        self._recursion(RECURSION_LIMIT)
        self._trace(None)
        self._profile(None)
        for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            self._timer(which, 0)
        for stream in (self.out, self.err):
            with contextlib.suppress(OSError, ValueError):  # closed, or its descriptor is
                stream.flush()

    def _open_stream(self, descriptor: int) -> io.TextIOWrapper:
        raw = self._buffered(self._raw(descriptor, "w", closefd=False))
        return self._wrap(raw, encoding="utf-8", errors="backslashreplace")


def _new_main() -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    return main


def _run_cell(code: str, namespace: dict[str, Any], name: str) -> None:
    """Run the statements; a last expression is echoed unless a semicolon follows it."""
    code = _dedent_code(code)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    tree = _compile(code, name, "exec", ast.PyCF_ONLY_AST | _FLAGS)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        _execute_code(_compile(tree, name, "exec", _FLAGS, True), namespace)
        return
    tree.body.pop()
    if tree.body:
        _execute_code(_compile(tree, name, "exec", _FLAGS, True), namespace)
    value = _execute_code(_compile(ast.Expression(last.value), name, "eval", _FLAGS, True), namespace)
    if value is not None:
        namespace["_"] = value
        if not _is_muted(code, last):
            sys.stdout.write(_repr(value) + "\n")


def _dedent_code(code: str) -> str:
    """Remove the first line's indentation from every line that has it, as IPython does; lines keep their numbers."""
    lines = code.splitlines(keepends=True)
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    if indent:
        return "".join([line.removeprefix(indent) for line in lines])
    return code


def _execute_code(code: CodeType, namespace: dict[str, Any]) -> Any:
    value = _eval(code, namespace)
    if code.co_flags & CO_COROUTINE:
        import asyncio

        return asyncio.run(value)
    return value


def _is_muted(code: str, last: ast.Expr) -> bool:
    line = code.encode().splitlines()[(last.end_lineno or 1) - 1]
    return line[last.end_col_offset or 0 :].split(b"#")[0].strip().startswith(b";")


def render_traceback(error: BaseException, style: str) -> str:
    """Return the traceback in the style Plain, Context, Verbose or Minimal, without the frames of this file."""
    if style == "Minimal":
        return "".join(traceback.format_exception_only(error))
    trace = error.__traceback__
    if style == "Plain" or trace is None:
        return "".join(_without_own_frames(traceback.TracebackException.from_exception(error)).format())
    pieces = ["Traceback (most recent call last):\n"]
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != __file__:
            pieces += _frame_lines(trace, verbose=style == "Verbose")
        trace = trace.tb_next
    return "".join([*pieces, *traceback.format_exception_only(error)])


def _without_own_frames(summary: traceback.TracebackException) -> traceback.TracebackException:
    link: traceback.TracebackException | None = summary
    for _ in range(LONGEST_CHAIN):
        if link is None:
            break
        link.stack = traceback.StackSummary.from_list([each for each in link.stack if each.filename != __file__])
        link = link.__cause__ or link.__context__
    return summary


def _frame_lines(trace: TracebackType, *, verbose: bool) -> list[str]:
    frame, number = trace.tb_frame, trace.tb_lineno
    file = frame.f_code.co_filename
    pieces = [f'  File "{file}", line {number}, in {frame.f_code.co_name}\n']
    for line in range(max(1, number - CONTEXT_LINES), number + CONTEXT_LINES + 1):
        text = linecache.getline(file, line)
        if text:
            pointer = "->" if line == number else "  "
            pieces.append(f"{pointer} {line:4d} {text.rstrip()}\n")
    if verbose:
        for name, value in frame.f_locals.items():
            if not name.startswith("__"):
                pieces.append(f"       {name} = {_short_repr(value)}\n")
    return pieces


def _short_repr(value: object) -> str:
    try:
        text = _repr(value)
    except Exception as error:  # noqa: BLE001 - the object is the cell's own
        text = f"<{type(error).__name__} in repr>"
    if len(text) <= LONGEST_VALUE:
        return text
    return text[:LONGEST_VALUE] + "…"


def run_script(code: str) -> None:
    """Run `code` as `__main__`, and end the process as the interpreter would. Never returns."""
    main = _new_main()
    main.__file__ = name = "main.py"
    sys.argv = [name]
    sys.modules["__main__"] = main
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = io.TextIOWrapper(
        io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8", errors="replace"
    )
    sys.stdout, sys.stderr = _open_stream(1), _open_stream(2)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    status = 0
    try:
        _exec(_compile(code, name, "exec", 0, True), main.__dict__)
    except BaseException as error:  # noqa: BLE001 - all that a script raises is its result
        status = _exit_code(error)
    try:
        threading._shutdown()  # type: ignore[attr-defined] # what the interpreter itself does at its end
        import atexit

        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - the last words of a script are its own affair
        status = status or 120
    os._exit(status)


def _open_stream(descriptor: int) -> io.TextIOWrapper:
    raw = io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace")


def _exit_code(error: BaseException) -> int:
    """Return the exit code, after writing the traceback where there is one (PEP 3151 and `sys.exit`)."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        sys.stderr.write(f"{error.code}\n")
        return 1
    sys.stdout.flush()
    os.write(2, render_traceback(error, "Plain").encode("utf-8", "backslashreplace"))
    return 1
