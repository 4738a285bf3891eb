# SPDX-License-Identifier: Apache-2.0
"""The process that holds the tests: starts the candidate, runs the tests against it, reports the verdict.

The tests, the model's code and the secret mark of every line reported come on standard input, once the candidate has
its own interpreter and nothing of this process's: neither memory, nor descriptors, nor (not being dumpable) a look
into `/proc`. A candidate can therefore kill the judge, which is no verdict, but not speak for it.
"""

from __future__ import annotations

import builtins
import json
import os
import resource
import signal
import sys

from newskills.graders.code.inside.hiding import hide
from newskills.graders.code.inside.values import decode, encode, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

REQUESTS, REPLIES = 3, 4
_PARKED = 64
_MESSAGE = 300
_CHANGEABLE = (list, dict, set, bytearray)
_NEED_MORE = ("UnicodeEncodeError", "UnicodeDecodeError", "UnicodeTranslateError", "ExceptionGroup")


class CandidateGone(BaseException):
    """The candidate does not answer any more; `kind`: timeout, crashed, protocol."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text


class Unsupported(BaseException):
    """A test hands over what cannot travel: the harness's fault, not the code's."""


class CandidateError(Exception):
    """An exception of a class that only the candidate knows."""


class Link:
    """The pipe to the candidate."""

    def __init__(self, program: str, cpu_seconds: int) -> None:
        self._program, self._cpu_seconds = program, cpu_seconds
        self._path = os.pathsep.join(sys.path)
        self._is_waiting = False
        self.carries_changes = False
        self.unfit = ""
        self.gone: CandidateGone | None = None
        self._start_candidate()

    def _start_candidate(self) -> None:
        """Start the candidate: a fresh interpreter with two pipes and nothing else of ours."""
        requests_out, self._requests = os.pipe()
        self._replies, replies_in = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _become_candidate(self._program, self._cpu_seconds, self._path, requests_out, replies_in)
            finally:
                os._exit(127)
        os.close(requests_out)
        os.close(replies_in)

    def started(self) -> bool:
        """Return whether the candidate's interpreter is up; nothing of the model's has run yet."""
        return receive(self._replies) is not None

    @property
    def is_ready(self) -> bool:
        """Whether the candidate is there and owes no answer."""
        return self.gone is None and not self._is_waiting

    def restart(self) -> None:
        """Begin with another candidate, which knows nothing of the first. Raises CandidateGone."""
        if self.gone is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._requests)
        os.close(self._replies)
        self._start_candidate()
        self.gone, self._is_waiting = None, False
        if not self.started():
            raise self._gone()

    def ask(self, what: str, *arguments: Any) -> Any:
        """Return what the candidate answers. Raises what it raises, CandidateGone, Unsupported."""
        if self.gone is not None:
            raise self.gone
        try:
            request = encode([what, *arguments], self._number_of)
            self._is_waiting = True
            send(self._requests, request)
            reply = receive(self._replies)
            if reply is None:
                raise self._gone()
            kind, *content = decode(reply, lambda number: Remote(self, number))
            self._is_waiting = False
            if kind == "value" and len(content) == 1:
                return content[0]
            name, text, base = content
        except BrokenPipeError:
            raise self._gone() from None
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, MemoryError) as error:
            raise self._break_protocol(f"unreadable reply ({type(error).__name__})") from None
        raise _candidate_exception(str(name), str(text)[:_MESSAGE], str(base))

    def call(self, target: Remote, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call something of the candidate's; what it changes of lists and their like is changed here, too."""
        arguments = [*args, *kwargs.values()]
        if not self.carries_changes or not any(isinstance(each, _CHANGEABLE) for each in arguments):
            return self.ask("call", target, args, kwargs)
        reply = self.ask("change", target, args, kwargs)
        if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[1], list):
            raise self._break_protocol("unreadable reply")
        for before, after in zip(arguments, reply[1], strict=False):
            if isinstance(before, _CHANGEABLE) and type(before) is type(after) and before != after:
                before.clear()
                method = "update" if isinstance(before, dict | set) else "extend"
                getattr(before, method)(after)
        return reply[0]

    def _number_of(self, value: Any) -> int:
        if isinstance(value, Remote):
            number: int = object.__getattribute__(value, "_number")
            return number
        self.unfit = f"a test hands over {type(value).__name__}"
        raise Unsupported(self.unfit)

    def _break_protocol(self, text: str) -> CandidateGone:
        self._gone()
        self.gone = CandidateGone("protocol", text)
        return self.gone

    def _gone(self) -> CandidateGone:
        os.kill(self._pid, signal.SIGKILL)
        _, status, usage = os.wait4(self._pid, 0)
        code = os.waitstatus_to_exitcode(status)
        # The kernel counts by ticks where it limits, exactly where it reports.
        if code in (-signal.SIGKILL, -signal.SIGXCPU) and usage.ru_utime + usage.ru_stime > self._cpu_seconds / 2:
            self.gone = CandidateGone("timeout", f"more than {self._cpu_seconds} s of CPU time")
        else:
            how_ended = f"ended by signal {-code}" if code < 0 else f"exited with code {code}"
            self.gone = CandidateGone("crashed", how_ended)
        return self.gone


class Remote:
    """Something of the candidate's. It equals itself only: whether two things are equal is never the candidate's say.

    For the same reason there is no arithmetic, no order and no membership test.
    """

    def __init__(self, link: Link, number: int) -> None:
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_number", number)

    def _do(self, what: str, *arguments: Any) -> Any:
        link: Link = object.__getattribute__(self, "_link")
        return link.ask(what, self, *arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        link: Link = object.__getattribute__(self, "_link")
        return link.call(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):  # numpy would take an address in this process's memory from it
            raise AttributeError(name)
        return self._do("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._do("set", name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._do("item", key)

    def __iter__(self) -> Iterator[Any]:
        items = self._do("iter")
        if not isinstance(items, Remote):
            return iter(items)
        return _iterate_remote(items)

    def __next__(self) -> Any:
        return self._do("next")

    def __len__(self) -> int:
        return self._do("len")  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return self._do("bool")  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return self._do("str")  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and self._number_of == other._number_of

    def __hash__(self) -> int:
        return hash(self._number_of)


def _iterate_remote(iterator: Remote) -> Iterator[Any]:
    while True:
        try:
            yield iterator._do("next")
        except StopIteration:
            return


def _candidate_exception(name: str, text: str, base: str) -> Exception:
    """Return the candidate's exception, or Python's own that it derives from, so that tests can expect it."""
    kind = getattr(builtins, base, None)
    raisable = isinstance(kind, type) and issubclass(kind, Exception) and base not in _NEED_MORE
    raisable = raisable and (name == base or base not in ("Exception", "AssertionError"))
    error: Exception = kind(text) if raisable else CandidateError(f"{name}: {text}")  # type: ignore[misc]
    error.remote = f"{name}: {text}".rstrip(": ")  # type: ignore[attr-defined]
    return error


def main(program: str, cpu_seconds: int, work: Callable[[dict[str, Any], Link], Any] | None = None) -> None:
    """Judge the task on standard input, and report the verdicts. Never returns.

    `program`: the text that the candidate's interpreter runs; `work` judges, in place of `judge`.
    """
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    link = Link(program, cpu_seconds)
    _hide_process()
    task = json.loads(_read_all(0))
    if link.started():
        _write_report(out, task["mark"], "ready")
        _write_report(out, task["mark"], json.dumps((work or judge)(task, link)))
    os._exit(0)


def judge(task: dict[str, Any], link: Link) -> list[dict[str, str]]:
    """Return one verdict per suite.

    Its `kind` is passed, assertion, exception, load, timeout, crashed, protocol, data or harness.
    What the benchmark brings is made ready first: once the model's code runs, its own failures are all there can be.
    """
    if near := sys.modules.get("newskills.graders.code.inside.near"):
        near.guard_comparisons()
    suites = [_TestSuite(suite["before"], suite["tests"]) for suite in task["suites"]]
    try:
        loaded = link.ask("load", task["prefix"], task["answer"], task["prompt"], task["names"])
        names = {name: loaded[name] if name in loaded else missing_name(name) for name in task["names"]}
    except CandidateGone as gone:
        failed = _make_verdict(gone.kind, gone.text)
    except Exception as error:  # noqa: BLE001 - an answer that cannot be loaded fails every suite
        failed = _make_verdict("load", getattr(error, "remote", "unreadable reply"))
    else:
        return [suite.unfit or suite.run(names) for suite in suites]
    return [suite.unfit or failed for suite in suites]


class _TestSuite:
    """Tests ready to run; `unfit` is the verdict where they are none that anybody can be judged by."""

    def __init__(self, before: str, tests: list[str]) -> None:
        self.unfit: dict[str, str] | None = None
        self._space: dict[str, Any] = {"__name__": "tests"}
        try:
            exec(_compile_test(before), self._space)  # noqa: S102 - the benchmark's own text
            self._tests = [_compile_test(test) for test in tests]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the benchmark's
            self.unfit = _make_verdict("data", f"{type(error).__name__}: {error}")

    def run(self, names: dict[str, Any]) -> dict[str, str]:
        self._space.update(names)
        for number, test in enumerate(self._tests, 1):
            where = f"test {number} of {len(self._tests)}"
            try:
                exec(test, self._space)  # noqa: S102
            except CandidateGone as gone:
                return _make_verdict(gone.kind, f"{where}: {gone.text}")
            except Unsupported as error:
                return _make_verdict("harness", f"{where}: {error}")
            except Exception as error:  # noqa: BLE001 - any exception is a failed test
                raised = getattr(error, "remote", None)
                if raised is None and isinstance(error, AssertionError):
                    return _make_verdict("assertion", where)
                return _make_verdict("exception", f"{where}: {raised or f'{type(error).__name__}: {error}'}")
        return _make_verdict("passed", "")


def _make_verdict(kind: str, text: str) -> dict[str, str]:
    return {"kind": kind, "text": text[:_MESSAGE]}


def missing_name(name: str) -> Any:
    """Return what stands for a name that the answer does not define, lest a builtin of that name should pass."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise _candidate_exception("NameError", f"name '{name}' is not defined", "NameError")

    return call


def _compile_test(source: str) -> Any:
    return compile(source, "<tests>", "exec", dont_inherit=True)


def _become_candidate(program: str, cpu_seconds: int, path: str, requests: int, replies: int) -> None:
    os.dup2(1, 0)
    os.dup2(requests, _PARKED)
    os.dup2(replies, _PARKED + 1)
    os.dup2(_PARKED, REQUESTS)
    os.dup2(_PARKED + 1, REPLIES)
    os.closerange(max(REQUESTS, REPLIES) + 1, os.sysconf("SC_OPEN_MAX"))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    # The order of sets of texts must be the same every time: verdicts would depend on it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONPATH": path}
    os.execve(sys.executable, [sys.executable, "-S", "-P", "-c", program], environment)  # noqa: S606


def _hide_process() -> None:
    """Keep all processes of this user from looking into this one's memory and descriptors, and from giving it code.

    Modules that tests import are looked for only where the candidate cannot write.
    """
    installed = (sys.prefix, sys.base_prefix)
    sys.path[:] = [
        place
        for place in sys.path
        if os.path.isabs(place) and (place.startswith(installed) or not os.access(place, os.W_OK))
    ]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    hide()


def _read_all(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, 1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def _write_report(out: int, mark: str, text: str) -> None:
    line = memoryview(f"{mark} {text}\n".encode())
    while line:
        line = line[os.write(out, line) :]
