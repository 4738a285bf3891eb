# SPDX-License-Identifier: Apache-2.0
"""One of our own commands as a job, with the words that the user typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from newskills.base.plan import Script
from newskills.launch.scripts.clients import ns_words
from newskills.launch.scripts.script import Context, JobScript


@dataclass(eq=False)
class CommandScript(JobScript):
    """`ns command words…`."""

    command: str
    words: Sequence[str]
    _: KW_ONLY

    def build(self, context: Context) -> Script:
        return self._script([*ns_words(context, self.command), *self.words], context)
