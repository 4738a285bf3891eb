# SPDX-License-Identifier: Apache-2.0
"""How a described benchmark is asked, graded and judged: names are looked up, texts are read, settings are tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError, UnknownNameError, suggest
from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.benchmarks.files.format import BenchmarkFile, JudgeSection
from newskills.benchmarks.files.kinds import KINDS, QuestionKind
from newskills.benchmarks.files.places import EXAMPLES as EXAMPLES_SPLIT
from newskills.benchmarks.files.positions import KeyPath, MarkedDocument
from newskills.benchmarks.files.rows import RowRules
from newskills.graders import GRADERS, make_grader
from newskills.metrics import METRICS, make_metric
from newskills.prompts.body import EXAMPLES
from newskills.prompts.names import find_prompt
from newskills.prompts.schema import read_source
from newskills.prompts.template import Template, TextPosition
from newskills.solve import SOLVERS

_OWN_FILE = re.compile(r"\.{1,2}/.*\.py::")
AT_ONCE_PROMPT = "judge/rubric-at-once"
_JUDGE_PROMPT = "generic/default"
"""Prompt whose text a judge's own replaces."""


class Asking(NamedTuple):
    """`fields`: what the prompt and the examples show, by name."""

    prompt: str
    defaults: Row
    fields: frozenset[str]


class DescribedGrading(NamedTuple):
    grader: str
    grader_config: Row
    metric: str
    metric_config: Row


def asking_of(
    file: BenchmarkFile,
    document: MarkedDocument,
    home: Path,
    kind: QuestionKind,
    rules: RowRules,
    rows: Sequence[Row],
) -> Asking:
    """Return prompt and settings. Raises ConfigError for a prompt that there is not, a place that no row fills, and
    examples without a place."""
    prompt, texts, defaults = _resolve_prompt(file, document, home, kind)
    if file.system is not None:
        texts["system"] = file.system
        if prompt:
            defaults["system_message"] = file.system
        else:
            defaults["prompt_config"] |= {"system": file.system}
    templates = {key: _parse_template(document, key, text) for key, text in texts.items()}
    fields = frozenset(name for template in templates.values() for name in template.fields)
    if file.few_shot is not None:
        if EXAMPLES not in fields:
            name = "" if is_text(file.prompt) else f"{prompt} "
            raise document.fault(
                ("prompt",) if file.prompt else ("few_shot",),
                f"the prompt {name}has no place for the examples.",
                hint='Write {examples} where they belong, in a prompt of your own: prompt: "{examples}{question}"',
            )
        shown = _shown_examples(file, document, kind, rules)
        defaults |= {"examples_type": EXAMPLES_SPLIT, "few_shot_examples": shown}
        if template := shown.get("template"):
            fields |= set(_parse_template(document, "few_shot", template).fields)
    if rows:
        _check_fields(document, templates, rules, rows)
    return Asking(prompt, defaults, fields)


def is_text(prompt: str) -> bool:
    """Return whether `prompt` is the text of one, not a name."""
    return "{" in prompt or "\n" in prompt or " " in prompt.strip()


def _resolve_prompt(
    file: BenchmarkFile, document: MarkedDocument, home: Path, kind: QuestionKind
) -> tuple[str, dict[str, str], Row]:
    """Return the prompt's name, its texts by key of the description, and settings; a text has no name."""
    spec = _prompt_file(file.prompt, home) or kind.prompt
    if spec in (file.prompt, kind.prompt) and is_text(spec):
        text = spec.removesuffix("\n")  # which YAML leaves at the end of a block
        return "", {"prompt": text}, {"prompt_config": {"user": text}}
    try:
        name, path = find_prompt(spec)
        config = read_source(name, path).config
    except (UnknownNameError, ConfigError) as error:
        raise document.fault(("prompt",), error.message, hint=error.hint) from error
    texts = dict(config.user_texts)
    return name, {"prompt": "\n".join(texts.values())}, {}


def _prompt_file(prompt: str, home: Path) -> str:
    """Return the path of a prompt file, which begins at the description's folder; any other prompt as it is."""
    is_file = prompt.endswith((".yaml", ".yml")) and (home / prompt).is_file()
    if is_file:
        return str(home / prompt)
    return prompt


def _parse_template(document: MarkedDocument, key: str, text: str) -> Template:
    try:
        return Template(text, TextPosition(key))
    except ConfigError as error:
        raise document.fault((key,), error.message, hint="Braces that are no field are doubled: {{ }}.") from error


def _shown_examples(file: BenchmarkFile, document: MarkedDocument, kind: QuestionKind, rules: RowRules) -> Row:
    """Return the settings of the section `few_shot_examples`. Raises ConfigError where nothing says how one looks."""
    few_shot = file.few_shot
    assert few_shot is not None, "called where there are examples"
    shown: Row = {"num_few_shots": few_shot.count}
    template = few_shot.template
    if not template and is_text(file.prompt):
        template = file.prompt.partition(f"{{{EXAMPLES}}}")[2].rstrip()
        if not template:
            raise document.fault(
                ("few_shot",),
                "say how an example looks.",
                hint='template: "Q: {question}\\nA: {expected_answer}\\n"',
            )
        template += " {expected_answer}\n\n"
    elif not template and "solution" not in rules.columns:
        template = kind.example
    if template:
        shown["template"] = template
    return shown | {
        key: text for key, text in (("prefix", few_shot.prefix), ("suffix", few_shot.suffix)) if text is not None
    }


def _check_fields(
    document: MarkedDocument, templates: dict[str, Template], rules: RowRules, rows: Sequence[Row]
) -> None:
    """Raise ConfigError for a field that the prompt shows and the first row does not have."""
    try:
        there = {*rules(rows[0], 0), *rows[0], EXAMPLES}
    except (KeyError, ValueError):
        return  # preparing names the row, and what is wrong with it
    for key, template in templates.items():
        for name in template.fields:
            if name not in there:
                raise document.fault(
                    (key,),
                    f"the prompt shows {{{name}}}, which rows do not have{suggest(name, there - {EXAMPLES})}",
                )


def grading_of(file: BenchmarkFile, document: MarkedDocument, home: Path, kind: QuestionKind) -> DescribedGrading:
    """Return grader and metric with their settings. Raises ConfigError for names and settings that there are not."""
    grader, config = _name_and_settings(file.grader, document, ("grader",), home)
    if file.grader == "":
        grader, config = (kind.grader, dict(kind.grader_config))
    elif fold(grader) == fold(kind.grader):
        config = {**kind.grader_config, **config}
    if grader:
        _try_to_make(document, ("grader",), config, lambda: make_grader(grader, config))
        grader = GRADERS.resolve(grader)
    metric, options = _name_and_settings(file.metric, document, ("metric",), home)
    metric = metric or _metric_of(grader, kind)
    _try_to_make(document, ("metric",), options, lambda: make_metric(metric, **options))
    return DescribedGrading(grader, config, metric, options)


def check_grader(name: str, document: MarkedDocument, file: BenchmarkFile) -> None:
    """Raise ConfigError at the name of a grader that there is not."""
    try:
        GRADERS.resolve(name)
    except UnknownNameError as error:
        path = ("grader", "name") if isinstance(file.grader, dict) else ("grader",)
        raise document.fault(path, error.message, hint="See: ns list graders") from error


def check_solver(name: str, document: MarkedDocument) -> None:
    """Raise ConfigError at the name of a solver that there is not."""
    try:
        SOLVERS.resolve(name)
    except UnknownNameError as error:
        raise document.fault(("solver",), error.message) from error


def _metric_of(grader: str, kind: QuestionKind) -> str:
    """Return the usual metric of a grader."""
    if not grader or grader == kind.grader:
        return kind.metric
    usual = next((spec.metric for spec in KINDS.values() if spec.grader == grader), grader)
    if usual in METRICS:
        return usual
    return "generic"


def _name_and_settings(value: Any, document: MarkedDocument, path: KeyPath, home: Path) -> tuple[str, Row]:
    """Return a name and its settings; a path of Python begins at the description's folder."""
    if isinstance(value, dict):
        if not isinstance(name := value.get("name"), str) or not name:
            raise document.fault(
                path, "the key 'name' is missing.", hint=f"{path[-1]}: {{name: NAME, SETTING: 1}}"
            )
        settings = {key: setting for key, setting in value.items() if key != "name"}
    else:
        name, settings = value or "", {}
    return (str(home / name) if _OWN_FILE.match(name) else name), settings


def _try_to_make(document: MarkedDocument, path: KeyPath, settings: Row, make: Callable[[], object]) -> None:
    """Make what was named. Raises ConfigError at the setting that the message names, else at the name."""
    try:
        make()
    except (UnknownNameError, ConfigError) as error:
        setting = next((key for key in settings if f"'{key}'" in error.message), "name")
        place = (*path, setting) if settings or setting != "name" else path
        raise document.fault(place, error.message, hint=error.hint, at_key=setting != "name") from error


def judge_of(file: BenchmarkFile, document: MarkedDocument, home: Path, kind: QuestionKind) -> Judge | None:
    """Return the judge; None where none is wanted. Raises ConfigError as `grading_of`."""
    section = file.judge
    if section is False or (section is None and not kind.judged):
        return None
    if isinstance(section, str):
        section = JudgeSection(prompt=section)
    elif not isinstance(section, JudgeSection):
        section = JudgeSection()
    usual = JudgeSection()
    if section.grader == usual.grader:
        section = replace(section, grader=kind.judge.grader)
    if section.prompt == usual.prompt:
        section = replace(section, prompt=AT_ONCE_PROMPT if section.at_once else kind.judge.prompt)
    grader, config = _name_and_settings(section.grader, document, ("judge", "grader"), home)
    _try_to_make(document, ("judge", "grader"), config, lambda: make_grader(grader, config))
    prompt, settings = _prompt_file(section.prompt, home), dict(section.settings)
    if prompt == section.prompt and is_text(prompt):
        _parse_template(document, "judge", prompt)
        prompt, settings = _JUDGE_PROMPT, {"user_message": prompt.removesuffix("\n"), **settings}
    else:
        try:
            prompt, _ = find_prompt(prompt)
        except (UnknownNameError, ConfigError) as error:
            raise document.fault(("judge", "prompt"), error.message, hint=error.hint) from error
    if section.at_once:
        if kind.judge.kind != "rubric":
            raise document.fault(("judge", "at_once"), "only kind: rubric has criteria to ask about at once.")
        settings = {**settings, "solver_config": {"at_once": True}}
    return Judge(
        prompt=prompt,
        kind=kind.judge.kind,
        grader=grader,
        grader_config=config,
        defaults=settings,
        model=section.model,
        server_type=section.server_type,
        server_address=section.server_address,
    )
