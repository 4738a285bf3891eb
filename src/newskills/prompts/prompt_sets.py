# SPDX-License-Identifier: Apache-2.0
"""Sets of prompts that ask the same thing in other words, to measure how much the wording matters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.registry import fold
from newskills.base.type_errors import type_fault
from newskills.prompts.body import EXAMPLES
from newskills.prompts.names import find_prompt, prompt_names
from newskills.prompts.schema import read_source, read_yaml
from newskills.prompts.template import Template

PROMPT_SETS = Path(__file__).parent / "prompt_sets"
USUAL_SET = "robustness/prompt_set_config"


class Variant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One wording. `extract_regex` finds the answer where it asks for a form of its own."""

    prompt_config: str
    extract_regex: str | list[str] | None = None


class TaskKind(Struct, frozen=True, kw_only=True):
    """Benchmarks that are asked alike, and the wordings for them, or why there are none.

    A benchmark is of the kind if all conditions hold that are given (None: any):

    fields    what its usual prompt shows of a row: fields of the template, of image and sound; not the few-shots
    form      regex to be found in the usual prompt: the form of answer that it asks for
    graders, judges, solvers   names of which the benchmark has one (judges: of their prompts; "" is no judge)
    """

    fields: frozenset[str] | None = None
    form: str = ""
    graders: frozenset[str] | None = None
    judges: frozenset[str] | None = None
    solvers: frozenset[str] | None = None
    wordings: tuple[Variant, ...] = ()
    why_none: str = ""

    def holds(self, benchmark: Benchmark) -> bool:
        """Return whether the benchmark is of this kind. Raises ConfigError, UnknownNameError for its usual
        prompt."""
        judge = ""
        if benchmark.judge is not None:
            judge = benchmark.judge.prompt
        named = ((self.graders, benchmark.grader), (self.judges, judge), (self.solvers, benchmark.solver))
        if any(names is not None and name not in names for names, name in named):
            return False
        if self.fields is None and not self.form:
            return True
        fields, text = _fields_and_text(benchmark.prompt)
        return (self.fields is None or self.fields == fields) and re.search(self.form, text) is not None


class PromptSet(Struct, frozen=True):
    """`lists`: wordings of single benchmarks, or of all that are asked with one prompt; `kinds`, in order."""

    lists: dict[str, tuple[Variant, ...]]
    kinds: dict[str, TaskKind]

    def wordings(self, benchmark: Benchmark, names: Sequence[str]) -> tuple[Sequence[Variant] | None, str]:
        """Return (wordings, "") of the first of `names`, else of its prompt, else of its kind; (None, why) for
        neither.

        Raises ConfigError, UnknownNameError for the benchmark's usual prompt.
        """
        for name in (*names, benchmark.prompt):
            for existing, variants in self.lists.items():
                if fold(existing) == fold(name):
                    return variants, ""
        for kind in self.kinds.values():
            if kind.holds(benchmark):
                return kind.wordings or None, kind.why_none
        usual = "whole messages"
        if benchmark.prompt:
            usual = f"`{benchmark.prompt}`"
        return None, f"there is no kind that shows the same fields and asks for the same form of answer as {usual}"


def prompt_set_names() -> list[str]:
    """Return the names of the sets that come with newskills, sorted."""
    return sorted(path.relative_to(PROMPT_SETS).with_suffix("").as_posix() for path in PROMPT_SETS.rglob("*.yaml"))


def load_prompt_set(spec: str) -> PromptSet:
    """Return the set of that name, or of a path that ends in `.yaml`; every prompt in it exists.

    A list under a name is for a benchmark or a prompt, a mapping describes a kind. `prompt` is another spelling of
    `prompt_config`; a wording may be its prompt's name alone, where `*` stands for any text of names in the library.
    Raises ConfigError, UnknownNameError.
    """
    path = _set_path(spec)
    values, _ = read_yaml(path)
    if not isinstance(values, dict) or not all(isinstance(value, (list, dict)) for value in values.values()):
        raise ConfigError(f"{path}: expected benchmark: [{{prompt_config: …}}, …].")
    lists = {str(name): _read_variants(value, path) for name, value in values.items() if isinstance(value, list)}
    kinds = {
        str(name): _read_kind(str(name), value, path) for name, value in values.items() if isinstance(value, dict)
    }
    return PromptSet(lists, kinds)


@cache
def _fields_and_text(prompt: str) -> tuple[frozenset[str], str]:
    """Return what a prompt shows of a row, and its text; of no prompt, the messages of the row. Raises what
    `find_prompt` raises."""
    if not prompt:
        return frozenset({"messages"}), ""
    source = read_source(*find_prompt(prompt))
    config = source.config
    users = config.user_texts
    texts = list(users.values())
    names = {config.image_field, config.audio_field}
    if config.cases is not None:
        names.add(config.cases.field)
    for key, user in users.items():
        names.update(Template(user, source.place(key)).fields)
    if config.system is not None:
        texts.insert(0, config.system)
        names.update(Template(config.system, source.place("system")).fields)
    return frozenset(name for name in names if name is not None and name != EXAMPLES), "\n".join(texts)


def _set_path(spec: str) -> Path:
    if spec.endswith((".yaml", ".yml")):
        path = Path(spec).expanduser()
        if path.is_file():
            return path
        raise ConfigError(f"There is no file {path} with a set of prompts.")
    for name in prompt_set_names():
        if fold(spec) in (fold(name), fold(name.rpartition("/")[2])):
            return PROMPT_SETS / f"{name}.yaml"
    raise UnknownNameError("set of prompts", spec, prompt_set_names())


def _read_kind(name: str, raw: Mapping[str, Any], path: Path) -> TaskKind:
    keys = TaskKind.__struct_fields__
    if unknown := [str(key) for key in raw if key not in keys]:
        raise ConfigError(f"{path}: kind {name}: unknown key `{unknown[0]}`. Keys: {', '.join(keys)}.")
    wordings = raw.get("wordings", [])
    if not isinstance(wordings, list) or bool(wordings) == bool(raw.get("why_none")):
        raise ConfigError(f"{path}: kind {name}: expected either wordings: [prompt, …] or why_none: a reason.")
    try:
        kind = msgspec.convert({key: value for key, value in raw.items() if key != "wordings"}, TaskKind)
        re.compile(kind.form)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: kind {name}: {type_fault(error, dict(raw))}.") from error
    except re.error as error:
        raise ConfigError(f"{path}: kind {name}: {kind.form}: {error}.") from error
    return msgspec.structs.replace(kind, wordings=_read_variants(wordings, path))


def _read_variants(raw: Sequence[Any], path: Path) -> tuple[Variant, ...]:
    return tuple(variant for item in raw for variant in _read_variant(item, path))


def _read_variant(raw: Any, path: Path) -> list[Variant]:
    if isinstance(raw, str) and "*" in raw:
        names = [name for name in prompt_names() if fnmatchcase(name, raw)]
        if not names:
            raise UnknownNameError("prompt", raw, prompt_names())
        return [Variant(prompt_config=name) for name in names]
    if isinstance(raw, str):
        raw = {"prompt_config": raw}
    if isinstance(raw, dict) and "prompt" in raw and "prompt_config" not in raw:
        raw = {"prompt_config" if key == "prompt" else key: value for key, value in raw.items()}
    try:
        variant = msgspec.convert(raw, Variant)
        regexes = variant.extract_regex or []
        if isinstance(regexes, str):
            regexes = [regexes]
        for regex in regexes:
            re.compile(regex)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {raw}: {type_fault(error, raw)}.") from error
    except re.error as error:
        raise ConfigError(f"{path}: {raw}: {error}.") from error
    find_prompt(variant.prompt_config)
    return [variant]
