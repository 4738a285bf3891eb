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
from newskills._api.signatures import call_docstring, call_signature
from newskills.base.store import atomic_write
from newskills.commands.loading import load_command

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
    text = stub_text()
    if not PATH.is_file() or PATH.read_text(encoding="utf-8") != text:
        with atomic_write(PATH) as file:
            file.write(text.encode())


def stub_text() -> str:
    """Return the whole text of the stub file."""
    parts = [HEAD + "\n".join(_type_imports()), _generation_stub(), *map(_function_stub, FUNCTIONS)]
    parts += [f"{spelling} = {name}" for spelling, name in SPELLINGS.items()]
    return "\n\n".join(parts) + "\n"


def _type_imports() -> list[str]:
    """Return an import of each of our types that functions take and return."""
    names: set[str] = set()
    for function in FUNCTIONS.values():
        made = call_signature(function, load_command(function.command))
        for kind in (made.return_annotation, *(each.annotation for each in made.parameters.values())):
            names |= {*re.findall(r"\w+", str(kind))} & OBJECTS.keys()
    return sorted(f"from {OBJECTS[name]} import {name}" for name in names - {Generation.__name__})


def _function_stub(name: str) -> str:
    function = FUNCTIONS[name]
    command = load_command(function.command)
    made = call_signature(function, command)
    text = call_docstring(function, command)
    first, *options = map(_format_parameter, made.parameters.values())
    lines = [f"{'async ' * function.awaited}def {name}(", *(f"    {line}," for line in (first, "*", *options))]
    quotes = 'r"""' if "\\" in text else '"""'
    lines += [f") -> {made.return_annotation}:", textwrap.indent(f'{quotes}{text}\n"""', " " * 4)]
    return "\n".join(lines)


def _generation_stub() -> str:
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


def _format_parameter(parameter: Parameter) -> str:
    stars = "**" if parameter.kind is Parameter.VAR_KEYWORD else ""
    if parameter.default is Parameter.empty:
        default = ""
    else:
        default = f" = {parameter.default!r}"
    return f"{stars}{parameter.name}: {parameter.annotation}{default}"
