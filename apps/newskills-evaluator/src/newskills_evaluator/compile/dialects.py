# SPDX-License-Identifier: Apache-2.0
"""Environment variables of the two dialects of the launcher's configurations (interop.md §2.6).

0.1  `execution.env_vars.{deployment,evaluation,export}`; `evaluation.env_vars: {NAME: HOSTNAME}`
0.2  `env_vars`, `deployment.env_vars`, `evaluation.env_vars`, those of a task, `export.env_vars`; values begin with
     `host:`, `lit:` or `runtime:`

They are read before references are resolved, so that `${oc.env:KEY}` stays the name of a variable.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from newskills.base.records import Row
from newskills.launch.clusters.names import is_variable
from newskills_evaluator.compile.problems import ConfigProblem
from newskills_evaluator.compile.tree import Path, get_section
from newskills_evaluator.config import Dialect, EnvMap, EnvValue

KEY = "env_vars"
SECTIONS = ("deployment", "evaluation", "export")
_ENV = re.compile(r"\$\{oc\.env:\s*([A-Za-z_]\w*)\s*(?:,(.*))?\}\Z", re.ASCII | re.DOTALL)
_PREFIX = re.compile(r"(host|lit|runtime):(.*)\Z", re.DOTALL)
_UPPER = re.compile(r"[A-Z_][A-Z0-9_]*\Z", re.ASCII)
Kind = Literal["host", "lit", "runtime"]


class DialectVariables(Struct, frozen=True, kw_only=True):
    """All variables of a configuration, by who gets them; those of tasks by the task's place in the list."""

    deployment: EnvMap = {}
    evaluation: EnvMap = {}
    export: EnvMap = {}
    tasks: tuple[EnvMap, ...] = ()
    dialect: Dialect = "0.2"


def protect_variables(tree: Row, environ: Mapping[str, str]) -> None:
    """Write `host:NAME` in place of `${oc.env:NAME}` wherever variables are given, so that no value is written; the
    default of an unset variable is written as `lit:DEFAULT`."""
    for _, section in _find_variable_sections(tree, ()):
        for name, value in section.items():
            if not isinstance(value, str):
                continue
            match = _ENV.match(value.strip())
            if match and (match[2] is None or match[1] in environ):
                section[name] = f"host:{match[1]}"
            elif match:
                section[name] = f"lit:{match[2].strip().strip(chr(34) + chr(39))}"


def read_variables(config: Row, problems: list[ConfigProblem]) -> DialectVariables:
    """Read the variables from the resolved sections of `config`."""
    reader = _DialectReader(problems)
    old = get_section(get_section(config, "execution"), KEY)
    common = reader.read_section(get_section(config, KEY), (KEY,), host=True)
    older = {
        name: reader.read_section(get_section(old, name), ("execution", KEY, name), host=False)
        for name in SECTIONS
    }
    own = {
        name: reader.read_section(
            get_section(get_section(config, name), KEY), (name, KEY), host=name != "deployment"
        )
        for name in SECTIONS
    }
    tasks = get_section(config, "evaluation").get("tasks")
    if not isinstance(tasks, list):
        tasks = []
    single = tuple(
        reader.read_section(get_section(task, KEY), ("evaluation", "tasks", str(at), KEY), host=True)
        for at, task in enumerate(tasks)
    )
    dialect: Dialect = "0.2"
    if any(older.values()) or reader.bare:
        dialect = "0.1"
    return DialectVariables(
        **{name: {**common, **older[name], **own[name]} for name in SECTIONS},
        tasks=single,
        dialect=dialect,
    )


def write_variables(config: Row, variables: DialectVariables, dialect: Dialect) -> Row:
    """Return `config` with its variables in `dialect`: a copy, as far as it differs."""
    done: Row = {key: copy.copy(value) for key, value in config.items()}
    done.pop(KEY, None)
    for name in ("execution", *SECTIONS):
        if isinstance(done.get(name), dict):
            done[name].pop(KEY, None)
    evaluation = done.get("evaluation")
    if isinstance(evaluation, dict) and isinstance(evaluation.get("tasks"), list):
        evaluation["tasks"] = [
            _write_task(task, own, dialect) for task, own in zip(evaluation["tasks"], variables.tasks, strict=True)
        ]
    if dialect == "0.1":
        _write_old(done, variables)
    else:
        _write_new(done, variables)
    return done


def _write_new(config: Row, variables: DialectVariables) -> None:
    for name in SECTIONS:
        values: EnvMap = getattr(variables, name)
        if values:
            config.setdefault(name, {})[KEY] = {key: _with_prefix(value) for key, value in values.items()}


def _write_old(config: Row, variables: DialectVariables) -> None:
    place: Row = {}
    for name in SECTIONS:
        values: EnvMap = getattr(variables, name)
        if name == "evaluation":
            named = {key: value.value for key, value in values.items() if value.kind == "host"}
            if named:
                config.setdefault(name, {})[KEY] = named
            values = {key: value for key, value in values.items() if value.kind != "host"}
        if values:
            place[name] = {key: _with_dollar(value) for key, value in values.items()}
    if place:
        config.setdefault("execution", {})[KEY] = place


def _write_task(task: Row, own: EnvMap, dialect: Dialect) -> Row:
    rest = {key: value for key, value in task.items() if key != KEY}
    if not own:
        return rest
    if dialect == "0.1":
        texts = {key: value.value for key, value in own.items()}
    else:
        texts = {key: _with_prefix(value) for key, value in own.items()}
    return {**rest, KEY: texts}


def _with_prefix(value: EnvValue) -> str:
    return f"{value.kind}:{value.value}"


def _with_dollar(value: EnvValue) -> str:
    if value.kind == "lit":
        return value.value
    return f"${value.value}"


class _DialectReader:
    """`bare`: some value had no prefix where the newer dialect wants one."""

    def __init__(self, problems: list[ConfigProblem]) -> None:
        self.problems = problems
        self.bare = False

    def read_section(self, section: Row, path: Path, *, host: bool) -> EnvMap:
        """Read the variables of a section. `host`: a bare word names a variable of the submitting machine; else
        only one in capitals does."""
        variables: EnvMap = {}
        for name, value in section.items():
            if not is_variable(name):
                self.problems.append(
                    ConfigProblem((*path, name), "this is not the name of an environment variable")
                )
            elif isinstance(value, dict | list):
                self.problems.append(ConfigProblem((*path, name), "expected one text, as host:NAME or lit:TEXT"))
            elif value is not None:
                variables[name] = self.parse_value(value, host)
        return variables

    def parse_value(self, value: Any, host: bool) -> EnvValue:
        text = str(value)
        if isinstance(value, bool):
            text = text.lower()
        if prefixed := _PREFIX.match(text):
            if prefixed[1] == "host":
                kind: Kind = "host"
            elif prefixed[1] == "lit":
                kind = "lit"
            else:
                kind = "runtime"
            return EnvValue(kind, prefixed[2])
        self.bare = True
        if text.startswith("$") and is_variable(text[1:]):
            return EnvValue("host", text[1:])
        if isinstance(value, str) and is_variable(text) and (host or _UPPER.match(text)):
            return EnvValue("host", text)
        return EnvValue("lit", text)


def _find_variable_sections(node: Any, path: Path) -> list[tuple[Path, Row]]:
    """List every dictionary that holds variables."""
    maps: list[tuple[Path, Row]] = []
    children: Iterable[tuple[Any, Any]]
    if isinstance(node, dict):
        children = node.items()
    elif isinstance(node, list):
        children = enumerate(node)
    else:
        children = ()
    for key, value in children:
        if key == KEY and isinstance(value, dict):
            nested = [item for item in value.values() if isinstance(item, dict)]
            maps += [((*path, KEY), item) for item in (nested or [value])]
        else:
            maps += _find_variable_sections(value, (*path, str(key)))
    return maps
