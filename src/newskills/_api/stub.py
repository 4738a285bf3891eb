# SPDX-License-Identifier: Apache-2.0
"""The text of `__init__.pyi`: signatures and docstrings of the functions, for type checkers and editors."""

from __future__ import annotations

import textwrap
from inspect import Parameter, cleandoc

from newskills import OBJECTS
from newskills._api.functions import FUNCTIONS, SPELLINGS
from newskills._api.objects import Generation, generation_signature
from newskills._api.signatures import docstring, signature
from newskills.commands.loading import load

HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by docs/generate.py from the options of the commands.

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from newskills._api.calls import Arguments as Arguments, wrap_arguments as wrap_arguments
"""
RESULTS = (
    "AggregatedAnswers",
    "Benchmark",
    "Card",
    "Comparison",
    "CritPtFile",
    "EndedServer",
    "EndedService",
    "EvalPlan",
    "Evaluation",
    "Experiment",
    "Explanation",
    "JudgeAgreement",
    "FailureReport",
    "Graded",
    "Group",
    "Improvement",
    "Invocation",
    "JobState",
    "LoadTest",
    "MergedChunks",
    "MirrorFolder",
    "Model",
    "PreparedData",
    "Push",
    "QuickstartOutcome",
    "Regraded",
    "Report",
    "RobustnessSummary",
    "RunResult",
    "Scan",
    "SelectedSample",
    "ServiceTraining",
    "SimilarFile",
    "Summary",
    "SweBenchFile",
    "TrainingOutcome",
    "Validation",
)
"""Types that functions take and return."""


def stub() -> str:
    """Return the whole text of the stub file."""
    imports = sorted(f"from {OBJECTS[name]} import {name}" for name in RESULTS)
    parts = [HEAD + "\n".join(imports), _generation(), *map(_definition, FUNCTIONS)]
    parts += [f"{spelling} = {name}" for spelling, name in SPELLINGS.items()]
    return "\n\n".join(parts) + "\n"


def _definition(name: str) -> str:
    function = FUNCTIONS[name]
    command = load(function.command)
    made = signature(function, command)
    text = docstring(function, command)
    first, *options = map(_parameter, made.parameters.values())
    lines = [f"{'async ' * function.awaited}def {name}(", *(f"    {line}," for line in (first, "*", *options))]
    quotes = 'r"""' if "\\" in text else '"""'
    lines += [f") -> {made.return_annotation}:", textwrap.indent(f'{quotes}{text}\n"""', " " * 4)]
    return "\n".join(lines)


def _generation() -> str:
    parameters = (f"{each.name}: {each.annotation} = ..." for each in generation_signature().parameters.values())
    documented = f'"""{cleandoc(Generation.__doc__ or "")}\n"""'
    lines = [
        "class Generation:",
        textwrap.indent(documented, " " * 4),
        "",
        "    @property",
        "    def values(self) -> dict[str, Any]: ...",
        "    def __init__(",
        "        self,",
        *(f"        {line}," for line in ("*", *parameters)),
        "    ) -> None: ...",
    ]
    return "\n".join(lines)


def _parameter(parameter: Parameter) -> str:
    stars = "**" if parameter.kind is Parameter.VAR_KEYWORD else ""
    if parameter.default is Parameter.empty:
        default = ""
    else:
        default = f" = {parameter.default!r}"
    return f"{stars}{parameter.name}: {parameter.annotation}{default}"
