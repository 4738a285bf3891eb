# SPDX-License-Identifier: Apache-2.0
"""One family of errors, and one place that attributes any other exception.

NewskillsError                 every error a user may see; `str()` is the sentence to print
├── UserError                  the user can fix it; exit code 2
│   ├── ConfigError            a value or key in flags, files or profiles
│   ├── UnknownNameError       a name that is not registered (carries did-you-mean)
│   ├── DataError              a file, a row or a field that does not fit
│   └── LockedError            another run works in the same place
├── HttpError                  an exchange with a server, whatever it serves
│   ├── TransportError         reset, broken body: retried within the budget
│   │   └── ConnectError       no connection: host name, port, certificate
│   ├── RequestTimeoutError    no reply within the timeout
│   ├── RedirectError          the server redirects, which is not followed; carries `target`
│   └── ModelError             what a model's endpoint answers
│       ├── AuthError              key missing or refused, no credit (401/402/403); one row's, where others are answered
│       ├── ModelNotFoundError     the endpoint does not serve that model (404); likewise; lives in `models.errors`
│       ├── BadRequestError        the endpoint refuses this request (400/422); never retried
│       │   ├── ContextLimitError  prompt + generation exceed the model's context
│       │   └── ContentFilterError a filter of the endpoint withholds the answer, or refuses the prompt
│       ├── RateLimitError         429; carries `retry_after` seconds
│       └── ServerError            5xx, malformed body: retried within the budget
├── ServerStartError           a server that we start did not come up
├── GraderError                a grader could not decide
├── WorkerStartError           worker processes cannot be started on this machine: nothing is said of any row
├── SandboxError               the sandbox itself failed; says nothing about the code
│   ├── ExecutionRefusedError  the request makes no sense (unknown language, bad timeout); never retried
│   └── EnvironmentFailedError an environment that an agent acts in failed; says nothing about the agent
├── ToolError                  a tool call that failed; its text is told to the model
│   └── FatalToolError         a tool that cannot be used at all: the sample ends unscored
├── TrainingError              training cannot go on (a loss that is not a number, memory)
├── RemoteError                a machine behind ssh cannot be reached or used
├── GateError                  a condition of `--fail_if` holds; exit code 3
├── BudgetError                ++max_total_tokens or ++max_cost is used up; exit code 4
└── StorageError               disk full, not writable
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from newskills_sandbox import errors as sandbox_errors

if TYPE_CHECKING:  # the front pages of the command load this module, and msgspec alone costs them 30 ms
    from pathlib import Path

    from newskills.base.records import Cause, Failure

T = TypeVar("T")


class NewskillsError(Exception):
    """Base of all errors meant for people. `hint` is the next thing to type, if there is one."""

    exit_code = 1
    cause: Cause = "harness"
    retryable = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class UserError(NewskillsError):
    exit_code = 2


class ConfigError(UserError):
    pass


class UnknownNameError(UserError):
    """`name` is no `kind`; names the closest of `known`."""

    def __init__(self, kind: str, name: str, known_names: Iterable[str], *, hint: str = "") -> None:
        self.kind, self.name = kind, name
        super().__init__(f"Unknown {kind} '{name}'{suggest(name, known_names)}", hint=hint)


class DataError(UserError):
    cause: Cause = "data"


class LockedError(UserError):
    pass


class HttpError(NewskillsError):
    cause: Cause = "provider"

    def __init__(self, message: str, *, hint: str = "", status: int | None = None, server_text: str = "") -> None:
        """Create the error; `server_text`: what the server said, where `message` draws a conclusion from it."""
        super().__init__(message, hint=hint)
        self.status = status
        self.server_text = server_text or message


class TransportError(HttpError):
    retryable = True


class ConnectError(TransportError):
    """`certificate`: the server's is not trusted, which no waiting fixes."""

    def __init__(self, message: str, *, hint: str = "", certificate: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.certificate = certificate


class RequestTimeoutError(HttpError):
    cause: Cause = "timeout"
    retryable = True


class RedirectError(HttpError):
    """`target`: where to, as the server wrote it."""

    def __init__(self, message: str, *, status: int, target: str) -> None:
        super().__init__(message, status=status)
        self.target = target


class ModelError(HttpError):
    pass


class AuthError(ModelError):
    pass


class BadRequestError(ModelError):
    pass


class ContextLimitError(BadRequestError):
    """`limit`, `prompt_tokens`, `requested` in tokens where the server's message tells them."""

    cause: Cause = "context"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        limit: int | None = None,
        prompt_tokens: int | None = None,
        requested: int | None = None,
    ) -> None:
        super().__init__(message, status=status)
        self.limit, self.prompt_tokens, self.requested = limit, prompt_tokens, requested


class ContentFilterError(BadRequestError):
    cause: Cause = "content_filter"


class RateLimitError(ModelError):
    retryable = True

    def __init__(self, message: str, *, status: int | None = 429, retry_after: float | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after


class ServerError(ModelError):
    retryable = True

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, status=status, hint=hint)
        self.retry_after = retry_after


class ServerStartError(NewskillsError):
    pass


class GraderError(NewskillsError):
    cause: Cause = "grader"


class WorkerStartError(NewskillsError):
    pass


class SandboxError(NewskillsError, sandbox_errors.SandboxError):
    cause: Cause = "sandbox"
    retryable = True


class ExecutionRefusedError(SandboxError, sandbox_errors.ExecutionRefusedError):
    retryable = False


class EnvironmentFailedError(SandboxError):
    cause: Cause = "environment"


class ToolError(NewskillsError):
    cause: Cause = "tool"


class FatalToolError(ToolError):
    pass


class TrainingError(NewskillsError):
    pass


class RemoteError(NewskillsError):
    pass


class GateError(NewskillsError):
    exit_code = 3


class BudgetError(NewskillsError):
    """What is done is on disk, and the same command resumes with a larger budget."""

    exit_code = 4


class StorageError(NewskillsError):
    """`full`: there is no space, which may pass."""

    def __init__(self, message: str, *, hint: str = "", full: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.full = full


_NEGATIONS = ("in", "un", "not", "non", "dis", "im", "ir", "il", "mis")


def suggest(name: str, known_names: Iterable[str]) -> str:
    """Return `; did you mean 'a' or 'b'?` or, where nothing is close, a list of at most 12 names, or `.` without
    names."""
    import difflib

    names = sorted(set(known_names))
    folded = {n.lower().replace("-", "_"): n for n in names}
    wanted = name.lower().replace("-", "_")
    near = difflib.get_close_matches(wanted, folded, n=3, cutoff=0.6)
    close = [candidate for candidate in near if not _are_opposites(wanted, candidate)]
    if close:
        return "; did you mean " + " or ".join(f"'{folded[c]}'" for c in close) + "?"
    if not names:
        return "."
    choices = names[:12]
    if len(names) > 12:
        choices.append("…")
    return f"; the choices are {', '.join(choices)}."


def _are_opposites(first: str, second: str) -> bool:
    """Return whether one is the other behind a syllable that means not, as `incorrect` and `correct`."""
    shorter, longer = sorted((first, second), key=len)
    return longer.endswith(shorter) and longer.removesuffix(shorter).rstrip("_") in _NEGATIONS


def boundary(error: BaseException) -> Failure:
    """Turn any exception into data, with its cause; the only place that does so.

    An error of our own family carries its cause; anything else is the harness's fault and keeps its type
    in the message, so that it can never pass for a wrong answer.
    """
    from newskills.base.records import Failure

    if isinstance(error, NewskillsError):
        status = error.status if isinstance(error, HttpError) else None
        return Failure(kind=type(error).__name__, cause=error.cause, message=str(error), status=status)
    if isinstance(error, TimeoutError):
        return Failure(kind="TimeoutError", cause="timeout", message=str(error) or "timed out")
    return Failure(kind=type(error).__name__, cause="harness", message=f"{type(error).__name__}: {error}")


def guard(work: Callable[[], T]) -> T | Failure:
    """Run `work`; an `Exception` becomes a `Failure` (KeyboardInterrupt and exit pass through)."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - this is the boundary
        return boundary(error)


_SHORTAGE_ERRNOS = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)


def describe_shortage(error: Exception) -> str:
    """Return a sentence where the system has no disk space, memory, process or file left; empty for other errors."""
    if isinstance(error, OSError) and error.errno in FULL_DISK_ERRNOS:
        return str(storage_error(error, error.filename or "the output"))
    if isinstance(error, RuntimeError):
        short = "can't start new thread" in str(error)
    elif isinstance(error, OSError):
        short = error.errno in _SHORTAGE_ERRNOS
    elif isinstance(error, ImportError):
        short = "annot allocate memory" in str(error) or "failed to map segment" in str(error)
    else:
        short = True
    try:
        from newskills.base.limits import describe_limits

        limits = describe_limits()
    except (ImportError, MemoryError):
        limits = ""
    if not short or (isinstance(error, SystemError) and not limits):
        return ""
    within = f" Limits of this process: {limits}." if limits else ""
    what = f"{type(error).__name__}: {error}"
    return f"The system gives this process no more memory, processes or files ({what}).{within}"


def _why_not_in(folder: Path) -> str:
    """Return why nothing could be made in the folder."""
    if not os.statvfs(folder).f_blocks:  # of the kernel's own making: /proc, /sys
        return f"{folder} takes no files or folders"
    return f"The folder below {folder} is gone"


FULL_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


def _number_in(text: str) -> int:
    """Return the error number in texts of libraries that only quote the system's error: `[Errno 28]` of Python,
    `(os error 28)` of Rust; else 0."""
    match = re.search(r"\[Errno (\d+)\]|\(os error (\d+)\)", text, re.ASCII)
    if match:
        return int(match[1] or match[2])
    return 0


def storage_error(error: OSError, path: object) -> StorageError:
    """Return the error that explains an `OSError` on writing `path`."""
    from pathlib import Path

    place = Path(str(path))
    number = error.errno or _number_in(str(error))
    if number in (errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.EISDIR):
        blocking = next((p for p in (place, *place.parents) if p.is_symlink() or p.exists()), place)
        if blocking.is_dir():
            why = "A folder has that name"
            if blocking != place:
                why = _why_not_in(blocking)
        else:
            why = f"{blocking} is in the way: it is not a folder"
        return StorageError(f"{why}; cannot write {path}.", hint="Move it away, or use another path.")
    what = {
        errno.ENOSPC: "No space is left on the disk",
        errno.EDQUOT: "The disk quota is used up",
        errno.EACCES: "Writing is not permitted",
        errno.EROFS: "The file system is read-only",
    }.get(number, error.strerror or str(error))
    full = number in FULL_DISK_ERRNOS
    remedy = "free some space" if full else "fix that"
    hint = f"Finished work is safe; {remedy}, then run again."
    return StorageError(f"{what}: cannot write {path}.", hint=hint, full=full)
