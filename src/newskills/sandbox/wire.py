# SPDX-License-Identifier: Apache-2.0
"""The HTTP API's nouns as JSON: what `POST /execute` may hold, and which names a session may have."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from newskills.base.errors import ExecutionRefusedError, suggest
from newskills.base.protocols import Execution, ExecutionResult

SESSION_HEADER = "X-Session-ID"
REQUEST_HEADER = "X-Request-ID"
STATEFUL = "ipython"
LANGUAGES = ("ipython", "python", "python3", "pypy3", "shell", "cpp", "lean4", "sql")
VERBOSITIES = ("Plain", "Context", "Verbose", "Minimal")
MAX_OUTPUT_CHARACTERS = 10_000_000

_NAME = re.compile(r"[A-Za-z0-9._:@+=,~-]{1,256}", re.ASCII)
_DEFAULTS = Execution(code="")


def check_name(name: str | None, what: str) -> str:
    """`name` of a session or request. Raises ExecutionRefusedError where it is missing or has odd signs."""
    if not name:
        raise ExecutionRefusedError(f"{what} is missing.")
    if not is_name(name):
        raise ExecutionRefusedError(f"{what} may hold 1 to 256 letters, digits and signs of ._:@+=,~- only.")
    return name


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def read_execution(body: bytes, session_id: str | None, max_timeout: float) -> Execution:
    """`session_id` is the header's value. Unknown keys are left alone; null means the default.

    Raises ExecutionRefusedError with one sentence for whatever does not fit.
    """
    try:
        values = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ExecutionRefusedError(f"The body is no valid JSON ({error}).") from error
    if not isinstance(values, dict):
        raise ExecutionRefusedError(f"The body must be a JSON object, not {_kind(values)}.")
    if not isinstance(values.get("generated_code"), str):
        raise ExecutionRefusedError(f"generated_code must be text, not {_kind(values.get('generated_code'))}.")
    language = _choice(values, "language", _DEFAULTS.language, LANGUAGES)
    if language == STATEFUL or session_id:
        check_name(session_id, f"The header {SESSION_HEADER}")
    return Execution(
        code=values["generated_code"],
        language=language,
        timeout=_timeout(values, max_timeout),
        session_id=session_id,
        std_input=_text(values, "std_input"),
        max_output_characters=_count(values, "max_output_characters", _DEFAULTS.max_output_characters),
        traceback_verbosity=_choice(values, "traceback_verbosity", "Plain", VERBOSITIES),
        database=_text(values, "database"),
    )


def write_execution(execution: Execution) -> bytes:
    """The body of `POST /execute`. Lone surrogates, which are no text, become question marks."""
    values = {
        "generated_code": execution.code,
        "timeout": execution.timeout,
        "language": execution.language,
        "std_input": execution.std_input,
        "max_output_characters": execution.max_output_characters,
        "traceback_verbosity": execution.traceback_verbosity,
    }
    if execution.database:
        values["database"] = execution.database
    return encode(values)


def write_result(result: ExecutionResult, language: str) -> bytes:
    values = {
        "process_status": result.status,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "rung": result.rung,
        "exit_code": result.exit_code,
        "seconds": result.seconds,
    }
    if language == STATEFUL:
        values["new_session_created"] = result.new_session_created
    return encode(values)


def encode(values: Mapping[str, Any]) -> bytes:
    """JSON of one level."""
    try:
        return msgspec.json.encode(values)
    except UnicodeEncodeError:
        return msgspec.json.encode({key: _clean(value) for key, value in values.items()})


def _clean(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ExecutionRefusedError(f"{key} must be text, not {_kind(value)}.")
    return value


def _choice(values: dict[str, Any], key: str, default: str, choices: Collection[str]) -> str:
    value = values.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ExecutionRefusedError(f"{key} must be text, not {_kind(value)}.")
    if value not in choices:
        raise ExecutionRefusedError(f"Unknown {key} '{value[:50]}'{suggest(value[:50], choices)}")
    return value


def _timeout(values: dict[str, Any], max_timeout: float) -> float:
    value = values.get("timeout")
    if value is None:
        return _DEFAULTS.timeout
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExecutionRefusedError(f"timeout must be a number of seconds, not {_kind(value)}.")
    if not 0 < value <= max_timeout:
        raise ExecutionRefusedError(f"timeout must be above 0 and at most {max_timeout:g} seconds.")
    return float(value)


def _count(values: dict[str, Any], key: str, default: int) -> int:
    value = values.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExecutionRefusedError(f"{key} must be a whole number, not {_kind(value)}.")
    if not 0 <= value <= MAX_OUTPUT_CHARACTERS:
        raise ExecutionRefusedError(f"{key} must be from 0 to {MAX_OUTPUT_CHARACTERS:,}.")
    return value


def _kind(value: Any) -> str:
    kinds = {type(None): "nothing", bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")
