# SPDX-License-Identifier: Apache-2.0
"""The mean of checkpoints as a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from newskills.base.plan import Script, Word
from newskills.launch.scripts.clients import ns_words
from newskills.launch.scripts.script import Context, JobScript


@dataclass(eq=False)
class AverageScript(JobScript):
    """`ns average_checkpoints`; `remove`: folders that it removes when the mean is there."""

    folders: Sequence[str]
    target: str
    remove: Sequence[str] = ()
    _: KW_ONLY

    def build(self, context: Context) -> Script:
        words: list[Word] = [*ns_words(context, "average_checkpoints"), "--checkpoints", *self.folders]
        words.append(f"--output_model={self.target}")
        if self.remove:
            words += ["--remove", *self.remove]
        return self._script(words, context)
