# SPDX-License-Identifier: Apache-2.0
"""The text of `__init__.pyi`: signatures and docstrings of the functions, for type checkers and editors."""

from __future__ import annotations

import re
import textwrap
from inspect import Parameter, cleandoc
from pathlib import Path

from newskills import OBJECTS
from newskills._api.functions import FUNCTIONS, SPELLINGS
from newskills._api.objects import Generation, generation_signature
from newskills._api.signatures import docstring, signature
from newskills.base.store import atomic_write
from newskills.commands.loading import load

HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Made from the options of the commands: python docs/generate.py

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from newskills._api.calls import Arguments as Arguments, wrap_arguments as wrap_arguments
"""


PATH = Path(__file__).with_name("__init__.pyi")
"""Made by an installation, by docs/generate.py and by tests; git does not have it."""


def write_stub() -> None:
    """Write the file, unless it is current."""
    text = stub()
    if not PATH.is_file() or PATH.read_text(encoding="utf-8") != text:
        with atomic_write(PATH) as file:
            file.write(text.encode())


def stub() -> str:
    """Return the whole text of the stub file."""
    parts = [HEAD + "\n".join(_imports()), _generation(), *map(_definition, FUNCTIONS)]
    parts += [f"{spelling} = {name}" for spelling, name in SPELLINGS.items()]
    return "\n\n".join(parts) + "\n"


def _imports() -> list[str]:
    """Return an import of each of our types that functions take and return."""
    names: set[str] = set()
    for function in FUNCTIONS.values():
        made = signature(function, load(function.command))
        for kind in (made.return_annotation, *(each.annotation for each in made.parameters.values())):
            names |= {*re.findall(r"\w+", str(kind))} & OBJECTS.keys()
    return sorted(f"from {OBJECTS[name]} import {name}" for name in names - {Generation.__name__})


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
