# SPDX-License-Identifier: Apache-2.0
"""The pages of `--explain` and `--dry_run`, and lines about results."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from newskills.base.records import Ledger, Request, Row
from newskills.base.registry import load_function
from newskills.base.requirements import NotInstalledError, installing_nothing
from newskills.base.tables import print_table
from newskills.base.terminal import printable
from newskills.config.layers import explain
from newskills.models.kinds import MODELS
from newskills.pipelines.options import WorkOptions
from newskills.run.engine.build import thinking_limits
from newskills.run.engine.execute import preview_request
from newskills.run.planning.plan import PlannedUnit
from newskills.run.planning.spec import UnitResult


def dry_run(options: WorkOptions, planned: Sequence[PlannedUnit]) -> bool:
    """Return whether this is a dry run; `--dry_run` and `++dry_run=true` are equivalent."""
    return options.dry_run or any(unit.unit.config.dry_run for unit in planned)


def ledger_line(ledger: Ledger) -> str:
    """Return the counts by outcome, and the causes of what is neither right nor plainly wrong."""
    causes = ", ".join(f"{cause} {n}" for cause, n in sorted(ledger.causes.items()) if cause != "model")
    counts = (
        f"{ledger.correct} correct, {ledger.wrong} wrong, {ledger.no_answer} without answer, "
        f"{ledger.unscored} unscored"
    )
    if causes:
        return f"{counts} ({causes})"
    return counts


def cache_line(units: Iterable[UnitResult]) -> str:
    """Return a line on the prompt tokens that came from a provider's cache; empty where no unit counts them."""
    counting = [unit for unit in units if unit.cached_tokens is not None and unit.input_tokens]
    read = sum(unit.input_tokens or 0 for unit in counting)
    if not read:
        return ""
    hits = sum(unit.cached_tokens or 0 for unit in counting)
    stores = sum(unit.cache_written_tokens or 0 for unit in counting)
    return (
        f"prompt cache: {hits:,} of {read:,} tokens read from it ({hits / read:.1%}), {stores:,} written to it\n"
    )


def show_explained(planned: Sequence[PlannedUnit]) -> None:
    """Print, for `--explain`, every setting of the first unit of each name, and its source."""
    shown: set[str] = set()
    for unit in planned:
        if unit.unit.name in shown:
            continue
        shown.add(unit.unit.name)
        sys.stdout.write(f"\n{unit.unit.label}\n")
        print_table([(f"++{key}", v, src) for key, v, src in explain(unit.resolved)], ("key", "value", "from"))
        sys.stdout.write(_thinking_line(unit))


def show_plan(planned: Sequence[PlannedUnit]) -> None:
    """Print, for `--dry_run`, the units, and the first prompt of each name."""
    rows = [(unit.unit.label, unit.unit.config.input_file, unit.unit.config.output_file) for unit in planned]
    print_table(rows, ("unit", "input", "output"))
    shown: set[str] = set()
    for unit in planned:
        if unit.unit.name in shown:
            continue
        shown.add(unit.unit.name)
        thinking = _thinking_line(unit)
        if unit.unit.config.judges and not Path(unit.unit.config.input_file).exists():
            sys.stdout.write(
                f"\n{unit.unit.label} will ask {unit.unit.config.server.model} about these answers.\n"
            )
        else:
            sys.stdout.write(f"\nfirst prompt of {unit.unit.label}:\n{_first_prompt(unit)}\n")
        sys.stdout.write(thinking)


def _thinking_line(unit: PlannedUnit) -> str:
    """Return the keys by which the server is told how much to think; empty where nothing is set. Raises ConfigError
    where the server has no word for it."""
    config = unit.unit.config
    if (limits := thinking_limits(config)) is not None:
        return f"\nforced on thinking: {msgspec.json.encode(limits.inserted_texts()).decode()}\n"
    if config.inference.thinking_budget is None and config.inference.reasoning_effort is None:
        return ""
    keys_of_thinking = load_function(MODELS.properties(config.server.server_type).thinking)
    keys = keys_of_thinking(config.server.server_type, config.server.model or "", config.inference)
    if keys:
        return f"\nsent about thinking: {msgspec.json.encode(keys).decode()}\n"
    return ""


def _first_prompt(unit: PlannedUnit) -> str:
    """Return the first prompt, or why it is not known yet."""
    try:
        with installing_nothing():
            return prompt_text(preview_request(unit.unit))
    except NotInstalledError as error:
        return f"(not known yet: {error})"


def prompt_text(request: Request) -> str:
    """Return a request as a person reads it; control characters of data are made visible."""
    if request.messages is None:
        return printable(str(request.prompt))
    turns = [f"[{message.role}]\n{printable(_content_text(message.content))}" for message in request.messages]
    if request.tools:
        turns += ["[tools]", *(_format_tool(tool.get("function", tool)) for tool in request.tools)]
    return "\n".join(turns)


def _format_tool(function: Row) -> str:
    """Format a tool as `name(parameter, …): description`."""
    parameters = ", ".join(function.get("parameters", {}).get("properties", {}))
    return printable(f"{function.get('name')}({parameters}): {function.get('description')}")


def _content_text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", f"<{part.get('type')}>")) for part in content)
    return str(content or "")
