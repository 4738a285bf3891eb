# SPDX-License-Identifier: Apache-2.0
"""What `generate` and `eval` share: `++` layers, notices, `--explain` and `--dry_run` pages."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from newskills.base.errors import ConfigError
from newskills.base.records import Ledger, Request, Row
from newskills.base.requirements import NotInstalledError, installing_nothing
from newskills.base.terminal import printable
from newskills.commands._columns import print_table
from newskills.commands._options import WorkOptions
from newskills.config.ids import parse_ids
from newskills.config.layers import Layer, explain
from newskills.config.values import Text
from newskills.run.execute import preview
from newskills.run.plan import PlannedUnit

_CREDENTIALS = re.compile(r"(https?://)[^/@\s]+@")
OLD_TEMPLATES = "prompt_template"


def user_layer(overrides: Mapping[str, Text], *, consumed: Sequence[str] = ()) -> Layer:
    """The `++` keys as the last layer. What has no effect any more is dropped with a notice."""
    values = {key: value for key, value in overrides.items() if key not in consumed}
    if template := values.pop(OLD_TEMPLATES, None):
        notice(f"++prompt_template={template} has no effect: the model's own chat template is used")
    return Layer("command line", values)


def command_line(command: str) -> str:
    """What to type to go on: this process's own words, quoted, without any key or password in them."""
    words = sys.argv[1:]
    if not words or words[0].replace("-", "_") != command:
        return f"ns {command} …"
    return shlex.join(["ns", *(_masked(word) for word in words)])


def _masked(word: str) -> str:
    if "api_key" in word.partition("api_key_env_var")[0]:
        return f"{word.partition('=')[0]}=***"
    return _CREDENTIALS.sub(r"\1***@", word)


def chunk_ids(options: WorkOptions) -> tuple[int, ...]:
    """`--chunk_ids` as numbers; none = all. Raises ConfigError."""
    return () if options.chunk_ids is None else tuple(parse_ids(options.chunk_ids, "--chunk_ids"))


def dry_run(options: WorkOptions, planned: Sequence[PlannedUnit]) -> bool:
    """`--dry_run` and `++dry_run=true` are one thing."""
    return options.dry_run or any(unit.unit.config.dry_run for unit in planned)


def ledger_line(ledger: Ledger) -> str:
    """Counts by outcome, and the causes of what is neither right nor plainly wrong."""
    causes = ", ".join(f"{cause} {n}" for cause, n in sorted(ledger.causes.items()) if cause != "model")
    return (
        f"{ledger.correct} correct, {ledger.wrong} wrong, {ledger.no_answer} without answer, "
        f"{ledger.unscored} unscored{f' ({causes})' if causes else ''}"
    )


def show_explained(planned: Sequence[PlannedUnit]) -> None:
    """`--explain`: every setting of the first unit of each name, and its source."""
    shown: set[str] = set()
    for unit in planned:
        if unit.unit.name in shown:
            continue
        shown.add(unit.unit.name)
        sys.stdout.write(f"\n{unit.unit.label}\n")
        print_table([("key", "value", "from"), *((f"++{key}", v, src) for key, v, src in explain(unit.resolved))])


def show_plan(planned: Sequence[PlannedUnit]) -> None:
    """`--dry_run`: the units, and the first prompt of each name."""
    rows = [(unit.unit.label, unit.unit.config.input_file, unit.unit.config.output_file) for unit in planned]
    print_table([("unit", "input", "output"), *rows])
    shown: set[str] = set()
    for unit in planned:
        if unit.unit.name in shown:
            continue
        shown.add(unit.unit.name)
        if unit.unit.config.judges and not Path(unit.unit.config.input_file).exists():
            sys.stdout.write(
                f"\n{unit.unit.label} will ask {unit.unit.config.server.model} about these answers.\n"
            )
        else:
            sys.stdout.write(f"\nfirst prompt of {unit.unit.label}:\n{_first_prompt(unit)}\n")


def _first_prompt(unit: PlannedUnit) -> str:
    """Or why it is not known yet."""
    try:
        with installing_nothing():
            return prompt_text(preview(unit.unit))
    except NotInstalledError as error:
        return f"(not known yet: {error})"


def prompt_text(request: Request) -> str:
    """A request as a person reads it; control characters of data are made visible."""
    if request.messages is None:
        return printable(str(request.prompt))
    turns = [f"[{message.role}]\n{printable(_content(message.content))}" for message in request.messages]
    tools = [_tool(tool.get("function", tool)) for tool in request.tools or ()]
    return "\n".join([*turns, *(["[tools]", *tools] if tools else [])])


def read_json(text: str, option: str) -> dict[str, object]:
    """The JSON object of an option. Raises ConfigError."""
    import msgspec

    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{option}: a JSON object is expected ({error}).") from error


def default_output(expname: str) -> Path:
    """Where results go when nobody said so."""
    path = Path("results") / expname
    notice(f"no --output_dir: writing to {path}")
    return path


@cache
def notice(text: str) -> None:
    """Says it once, however often a command comes to the same conclusion."""
    sys.stderr.write(f"note: {text}\n")


def _tool(function: Row) -> str:
    """`name(parameter, …): description`."""
    parameters = ", ".join(function.get("parameters", {}).get("properties", {}))
    return printable(f"{function.get('name')}({parameters}): {function.get('description')}")


def _content(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", f"<{part.get('type')}>")) for part in content)
    return str(content or "")
