# SPDX-License-Identifier: Apache-2.0
"""LoRA pairs merged into their base model, as a job."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from newskills.base.plan import Script
from newskills.launch.scripts.clients import ns_words
from newskills.launch.scripts.script import Context, JobScript


@dataclass(eq=False)
class MergeScript(JobScript):
    """`ns merge_lora`."""

    base: str
    adapter: str
    target: str
    _: KW_ONLY

    def build(self, context: Context) -> Script:
        words = [f"--base_model={self.base}", f"--adapter={self.adapter}", f"--output_model={self.target}"]
        return self._script([*ns_words(context, "merge_lora"), *words], context)
