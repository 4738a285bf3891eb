# SPDX-License-Identifier: Apache-2.0
"""The HTTP API's nouns as JSON: what `POST /execute` may hold, and which names a session may have."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from newskills_sandbox.errors import ExecutionRefusedError
from newskills_sandbox.execution import Execution, ExecutionResult
from newskills_sandbox.http.json_codec import STANDARD_JSON, JsonCodec
from newskills_sandbox.languages import language

SESSION_HEADER = "X-Session-ID"
REQUEST_HEADER = "X-Request-ID"
ONCE_HEADER = "X-Session-Once"
"""With any value: nothing of the session is kept, as if it were deleted right after the cell."""

_NAME = re.compile(r"[A-Za-z0-9._:@+=,~-]{1,256}", re.ASCII)
_DEFAULTS = Execution(code="")


def check_name(name: str | None, what: str) -> str:
    """Check the `name` of a session or request. Raises ExecutionRefusedError where it is missing or has odd signs."""
    if not name:
        raise ExecutionRefusedError(f"{what} is missing.")
    if not is_name(name):
        raise ExecutionRefusedError(f"{what} may have 1 to 256 letters, digits and the characters ._:@+=,~- only.")
    return name


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def read_execution(body: bytes, session_id: str | None, codec: JsonCodec = STANDARD_JSON) -> Execution:
    """Read a request. `session_id` is the header's value. Unknown keys are left alone; null means the default.

    Raises ExecutionRefusedError with one sentence for a wrong type or name; what a number may be, the sandbox knows.
    """
    try:
        values = codec.decode(body)
    except ValueError as error:
        raise ExecutionRefusedError(f"The body is not valid JSON ({error}).") from error
    if not isinstance(values, dict):
        raise ExecutionRefusedError(f"The body must be a JSON object, not {_kind_name(values)}.")
    if not isinstance(values.get("generated_code"), str):
        raise ExecutionRefusedError(
            f"generated_code must be text, not {_kind_name(values.get('generated_code'))}."
        )
    spoken = language(_text_field(values, "language", _DEFAULTS.language)[:64])
    if spoken.stateful or session_id:
        check_name(session_id, f"The header {SESSION_HEADER}")
    return Execution(
        code=values["generated_code"],
        language=spoken.name,
        timeout=_seconds_field(values, "timeout", _DEFAULTS.timeout),
        session_id=session_id,
        std_input=_text_field(values, "std_input", ""),
        max_output_characters=_count_field(values, "max_output_characters", _DEFAULTS.max_output_characters),
        traceback_verbosity=_text_field(values, "traceback_verbosity", _DEFAULTS.traceback_verbosity),
        database=_text_field(values, "database", ""),
    )


def write_execution(execution: Execution, codec: JsonCodec = STANDARD_JSON) -> bytes:
    """Return the body of `POST /execute`. Lone surrogates, which are no text, become question marks."""
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
    return encode(values, codec)


def write_result(
    result: ExecutionResult, *, stateful: bool, run_id: str, codec: JsonCodec = STANDARD_JSON
) -> bytes:
    """Return the answer to `POST /execute`; where `stateful`, it says whether the session is new."""
    values = {
        "process_status": result.status,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "isolation_level": result.isolation_level,
        "run_id": run_id,
        "exit_code": result.exit_code,
        "seconds": result.seconds,
    }
    if stateful:
        values["new_session_created"] = result.new_session_created
    return encode(values, codec)


def encode(values: Mapping[str, Any], codec: JsonCodec) -> bytes:
    """Return `values`, of one level, as JSON; lone surrogates, which are no text, become question marks."""
    try:
        return codec.encode(values)
    except UnicodeEncodeError:
        return codec.encode({key: _without_surrogates(value) for key, value in values.items()})


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def _text_field(values: Mapping[str, Any], key: str, default: str) -> str:
    value = values.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ExecutionRefusedError(f"{key} must be text, not {_kind_name(value)}.")
    return value


def _seconds_field(values: Mapping[str, Any], key: str, default: float) -> float:
    value = values.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExecutionRefusedError(f"{key} must be a number of seconds, not {_kind_name(value)}.")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _count_field(values: Mapping[str, Any], key: str, default: int) -> int:
    value = values.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExecutionRefusedError(f"{key} must be a whole number, not {_kind_name(value)}.")
    return value


def _kind_name(value: Any) -> str:
    kinds = {type(None): "nothing", bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")
