# SPDX-License-Identifier: Apache-2.0
"""SQL on a SQLite file below the data folder, opened so that nothing can change it.

Every statement that yields rows prints one line: a JSON array of arrays. Blobs are {"hex": "00ff"}, infinities
{"float": "inf"}. An error ends the query: its text is in stderr, the status `error`.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from newskills_sandbox.errors import ExecutionRefusedError
from newskills_sandbox.execution import Execution
from newskills_sandbox.inside import query
from newskills_sandbox.languages.language import Language, Message, script
from newskills_sandbox.settings import SandboxSettings

_RUNNER = Path(query.__file__).read_text("utf-8")


def _sql_request(execution: Execution, settings: SandboxSettings) -> Message:
    database = _database_path(execution.database, settings.data_dir)
    return script(f"{_RUNNER}\nmain({database!r}, {execution.code!r})\n")


def _database_path(database: str, data_dir: str) -> str:
    """Return the path of the database below the data folder. Raises ExecutionRefusedError."""
    if not data_dir:
        raise ExecutionRefusedError("SQL needs a folder with databases: set the sandbox's data_dir.")
    path = PurePosixPath(database)
    if not database or "\0" in database or path.is_absolute() or ".." in path.parts:
        complaint = f"not '{database[:200]}'" if database else "and it is missing"
        raise ExecutionRefusedError(f"database must be a path below the data folder, {complaint}.")
    folder = Path(data_dir).resolve()
    real = (folder / path).resolve()
    if not real.is_relative_to(folder) or not real.is_file():
        raise ExecutionRefusedError(f"There is no database '{database[:200]}' in the data folder.")
    return str(real.relative_to(folder))


SQL = Language(name="sql", request=_sql_request, failure="error", broken=query.CANNOT_OPEN)
