# SPDX-License-Identifier: Apache-2.0
"""A task as its row tells it: the image, the repository, and how its patch is taken and applied.

Rows of SWE-bench (https://www.swebench.com) and rows of one's own (`newskills.benchmarks.agent_tasks`) are read alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from newskills.base.environment import (
    AgentEnvironment,
    AgentEnvironments,
    EnvironmentSpec,
    ExecutedCommand,
    image_of,
)
from newskills.base.errors import ConfigError, DataError, EnvironmentFailedError
from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import after_first_thinking
from newskills.base.records import Row

REPOSITORY = "/testbed"
"""Where the images of SWE-bench hold the repository."""
SETUP_TIMEOUT = 600.0
MAX_PATCH = 16 << 20
QUIET = {"PAGER": "cat", "MANPAGER": "cat", "GIT_PAGER": "cat", "PIP_PROGRESS_BAR": "off", "TQDM_DISABLE": "1"}
GIT = "git -c user.name=task -c user.email=task@localhost -c safe.directory='*' -c core.hooksPath=/dev/null"
_BEGIN = (
    f"{GIT} rev-parse --verify -q HEAD || "
    f"{{ {GIT} init -q . && {GIT} add -A -f && {GIT} commit -q --allow-empty -m task && {GIT} rev-parse HEAD; }}"
)
_DIFF = f"{GIT} add -A && {GIT} diff --cached --binary --no-color --no-ext-diff --no-textconv"
_ALL_BINARY = "mkdir -p .git/info && echo '* -diff' > .git/info/attributes"


_OUTPUTS = "swe-bench-outputs"
_BLOCK = re.compile(r"^```(?:diff|patch)[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PATCH = re.compile(r"^diff --git ", re.MULTILINE)


class SoftwareTask(Struct, frozen=True, kw_only=True):
    """`workdir` holds the repository: from the image, or a copy of the folder `repository` of the row."""

    instance: str
    spec: EnvironmentSpec
    workdir: str


def software_task(row: Row) -> SoftwareTask:
    """Return the task of a row. Raises DataError for a row that names no image."""
    instance = str(row.get("instance_id") or row.get("id") or "")
    workdir = str(row.get("container_repo_dir") or REPOSITORY)
    fields = {key: str(value) for key, value in row.items() if isinstance(value, str | int)}
    fields["instance_id"] = str(row.get("container_id") or instance)
    image = row.get("container_formatter") or row.get("image")
    if not image or not isinstance(image, str):
        raise DataError(
            f"Task {instance or '(without an instance_id)'} names no image.", hint="Give it an `image`."
        )
    repository = row.get("repository")
    if isinstance(repository, str) and repository:
        trees = {repository: workdir}
    else:
        trees = {}
    spec = EnvironmentSpec(
        image=image_of(image, fields), fields=fields, trees=trees, workdir=workdir, variables=dict(QUIET)
    )
    return SoftwareTask(instance=instance, spec=spec, workdir=workdir)


def environments_of(kit: Kit) -> AgentEnvironments:
    """Return the environments of the kit. Raises ConfigError where there are none."""
    if kit.environments is None:
        raise ConfigError("This grader needs containers, which are not given here.")
    return kit.environments


def check_test_fields(task: SoftwareTask, row: Row, needed: Sequence[str]) -> None:
    """Raise DataError for a row that lacks one of the fields by which its tests are run."""
    if missing := [field for field in needed if field not in row]:
        raise DataError(
            f"Task {task.instance} has no {', '.join(missing)}, so its tests cannot be run.",
            hint="Prepare the benchmark again: its source holds these fields now.",
        )


def patch_of(record: Row) -> str:
    """Return the record's patch: what an agent left, else the last block of diff in the answer; '' where there is none.

    >>> patch_of({"generation": "So:\\n```diff\\ndiff --git a/f b/f\\n```"})
    'diff --git a/f b/f\\n'
    """
    outputs = record.get(_OUTPUTS)
    for place in (record, outputs if isinstance(outputs, dict) else {}):
        if isinstance(patch := place.get("model_patch"), str):
            return patch
    text = (after_first_thinking(str(record.get("generation") or ""), "```") or "").replace("\r\n", "\n")
    if blocks := _BLOCK.findall(text):
        return str(blocks[-1])
    start = _PATCH.search(text)
    if start:
        return text[start.start() :].rstrip() + "\n"
    return ""


async def begin_task(environment: AgentEnvironment, task: SoftwareTask) -> str:
    """Return the commit that the task starts from; what is no repository yet becomes one. Raises
    EnvironmentFailedError."""
    made = await environment.execute(_BEGIN, timeout=SETUP_TIMEOUT)
    commit = made.output.decode("ascii", "replace").strip().rpartition("\n")[2]
    if made.exit_code != 0 or not commit.isalnum():
        raise EnvironmentFailedError(
            f"Task {task.instance}: git does not work in {task.workdir}: {format_ending(made)}"
        )
    return commit


async def taken_patch(environment: AgentEnvironment, commit: str) -> tuple[str, str]:
    """Return (all changes since `commit`, why there are none to be had).

    Files that are no UTF-8 are taken as binary.
    """
    why = ""
    for prepare in ("", f"{_ALL_BINARY} && "):
        made = await environment.execute(
            f"{prepare}{_DIFF} {commit}", timeout=SETUP_TIMEOUT, max_output=2 * MAX_PATCH
        )
        if made.exit_code != 0:
            return "", f"git does not work any more: {format_ending(made)}"
        if made.omitted or len(made.output) > MAX_PATCH:
            return "", f"the changes have more than {MAX_PATCH:,} bytes"
        try:
            return made.output.decode(), ""
        except UnicodeDecodeError as error:
            why = str(error)
    return "", why


def format_ending(result: ExecutedCommand) -> str:
    """Return a line on how a command ended."""
    text = result.output[-2000:].decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
    return f"{result.status}, exit code {result.exit_code}: {text or 'no output'}"
