# SPDX-License-Identifier: Apache-2.0
"""Questions asked of transcripts: scanners by rule, scanners by model, and what they said, kept beside the records."""

from __future__ import annotations

from msgspec import Struct

from newskills.base.registry import DescribedRegistry


class ScannerProperties(Struct, frozen=True, kw_only=True):
    """`looks_for`: what the scanner reports, for lists and pages."""

    looks_for: str = "what its function reports"


_REPLIES = "newskills.view.scans.reply_rules"
_TOOLS = "newskills.view.scans.tool_rules"


SCANNERS: DescribedRegistry[ScannerProperties] = DescribedRegistry(
    "scanner",
    {
        name: (f"{module}:{name}", ScannerProperties(looks_for=looks_for))
        for name, module, looks_for in (
            ("refusal", _REPLIES, "the reply declines the task"),
            ("loop", _REPLIES, "the reply repeats itself until its end"),
            ("language_switch", _REPLIES, "the reply is in another script than the prompt, or changes it"),
            ("truncated", _REPLIES, "the reply ended at the token limit, or within its reasoning"),
            ("empty_tool_output", _TOOLS, "a tool returned nothing"),
            ("tool_error_ignored", _TOOLS, "a tool failed, and the model went on as if it had not"),
            ("special_cased_tests", _TOOLS, "code returns literals for literal inputs, or tampers with its tests"),
            ("reads_gold", _TOOLS, "a command reads test files or the expected answer"),
            ("answer_in_prompt", _REPLIES, "the prompt already holds the expected answer"),
            ("not_extracted", _REPLIES, "the reply ends with the expected answer, which was not extracted"),
            ("format_lost", _REPLIES, "the prompt asks for a format that the reply lacks"),
        )
    },
    usual=ScannerProperties(),
    group="newskills.scanners",
)
"""Name → function `(Transcript) -> Finding | None`."""
