# SPDX-License-Identifier: Apache-2.0
"""One of our own commands as a job, with the words that the user typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from newskills.base.plan import Script, Word
from newskills.launch.scripts.clients import ns_words
from newskills.launch.scripts.script import Context, JobScript
from newskills.pipelines.submission.groups import meeting_env

RESUMED_BY_NEXT_JOB = "NEWSKILLS_RESUMED_BY_NEXT_JOB"
"""Variable of a command in a job: it ends with 75 where it wants to go on in the job behind."""


@dataclass(eq=False)
class CommandScript(JobScript):
    """`ns command words…`, on each of `nodes`, where they are told how to meet."""

    command: str
    words: Sequence[str]
    _: KW_ONLY
    nodes: int = 1
    port: int | None = None

    def build(self, context: Context) -> Script:
        env: dict[str, Word] = {RESUMED_BY_NEXT_JOB: "1"}
        if self.span_group_nodes:
            env |= meeting_env(self.nodes, context)
        return self._script([*ns_words(context, self.command), *self.words], context, env=env)
