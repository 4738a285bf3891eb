# SPDX-License-Identifier: Apache-2.0
"""What `ns why A B` does: what differs between two runs, and how many points each difference is worth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from newskills.config.command_line import Parsed
from newskills.pipelines.json_output import print_json
from newskills.pipelines.options import doc, split_names

if TYPE_CHECKING:
    from newskills.view.comparison.why import Explanation


class WhyOptions(Struct, frozen=True, kw_only=True):
    before: Annotated[str, doc("folder of results", {"positional": True})]
    after: Annotated[str, doc("another one", {"positional": True})]
    benchmarks: Annotated[str | None, doc("only these, comma separated (default: all that both have)")] = None
    json: Annotated[bool, doc("print everything as JSON")] = False


def run(parsed: Parsed[WhyOptions]) -> int:
    from newskills.view.comparison.why_shown import as_text

    explanations = explain_difference(parsed)
    if parsed.options.json:
        print_json(explanations)
    else:
        sys.stdout.write("\n".join(map(as_text, explanations)))
    return 0


def explain_difference(parsed: Parsed[WhyOptions]) -> list[Explanation]:
    """Return, for Python, one explanation for each benchmark that both runs have."""
    from newskills.view.comparison.why import explain_run_difference

    options = parsed.options
    return explain_run_difference(Path(options.before), Path(options.after), split_names(options.benchmarks))
