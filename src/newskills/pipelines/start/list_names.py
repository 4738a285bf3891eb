# SPDX-License-Identifier: Apache-2.0
"""What `ns list [KIND]` does: names that can be typed elsewhere. Imports nothing but tables."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from newskills.base.tables import print_table
from newskills.benchmarks.folders import data_dir, prepared_files
from newskills.config.command_line import Parsed
from newskills.pipelines.options import doc
from newskills.pipelines.start.benchmark_list import ListedName, fitting_benchmarks, holds_all, show_benchmarks

Kind = Literal["benchmarks", "prompts", "graders", "metrics", "models", "servers", "solvers", "code_tags", "tools"]


class ListOptions(Struct, frozen=True, kw_only=True):
    kind: Annotated[
        Kind,
        doc(
            "benchmarks, prompts, graders, metrics, models, servers, solvers, code_tags or tools",
            {"positional": True},
        ),
    ] = "benchmarks"
    category: Annotated[str | None, doc("only benchmarks of this category, for example code or science")] = None
    search: Annotated[
        str | None,
        doc("only benchmarks with these words in name, category or description; other kinds: in the name"),
    ] = None
    prepared: Annotated[bool, doc("only benchmarks whose rows are prepared on this machine")] = False


def run(parsed: Parsed[ListOptions]) -> int:
    options = parsed.options
    if options.kind == "benchmarks":
        show_benchmarks(options.category, options.search or "", prepared=options.prepared)
    else:
        print_table([(item.name,) for item in list_names(parsed)])
    return 0


def list_names(parsed: Parsed[ListOptions]) -> list[ListedName]:
    """Return the names that fit. Raises UnknownNameError for an unknown category, or where no benchmark fits."""
    options = parsed.options
    search = options.search or ""
    if options.kind != "benchmarks":
        return [
            ListedName(name, options.kind, "")
            for name in registered_names(options.kind)
            if holds_all(name, search)
        ]
    root = data_dir()
    return fitting_benchmarks(prepared_files(root), root, options.category, search, prepared=options.prepared)


def registered_names(kind: Kind) -> list[str]:
    """Return the registered names of one kind, plug-ins included."""
    if kind == "prompts":
        from newskills.prompts import prompt_names

        return prompt_names()
    if kind == "code_tags":
        from newskills.prompts.code_tags import CODE_TAGS

        return sorted(CODE_TAGS)
    if kind == "graders":
        from newskills.graders import GRADERS as REGISTRY
    elif kind == "metrics":
        from newskills.metrics import METRICS as REGISTRY
    elif kind == "models":
        from newskills.models import MODELS as REGISTRY
    elif kind == "solvers":
        from newskills.solve import SOLVERS as REGISTRY
    elif kind == "tools":
        from newskills.tools import TOOLS as REGISTRY
    else:
        from newskills.models.serving import SERVERS as REGISTRY
    return REGISTRY.names()
