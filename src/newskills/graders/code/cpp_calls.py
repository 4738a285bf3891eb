# SPDX-License-Identifier: Apache-2.0
"""Programs that call a C++ function with JSON values, typed as the problem's own head of it says."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_INSIDE = "newskills.graders.code.inside"
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEAD = re.compile(r"\b(\w+)\s*\(([^(){}]*)\)\s*(?:const\b\s*)?\{")
_TYPES = frozenset(
    (
        *(
            "vector",
            "string",
            "pair",
            "int",
            "long",
            "short",
            "unsigned",
            "signed",
            "double",
            "float",
            "bool",
            "char",
        ),
        *("const", "void", "size_t", "std", "int64_t", "int32_t", "uint64_t", "uint32_t"),
    )
)
_WORD = re.compile(r"[A-Za-z_]\w*")


def calling_program(code: str, starter: str, function: str) -> str:
    """Return `code` with a main function that calls `function` of it.

    Raises ValueError where the head in `starter` has types that JSON has no values for: that is not the answer's doing.
    """
    stub_source = _COMMENT.sub(" ", starter)
    head = next((match for match in _HEAD.finditer(stub_source) if match[1] == function), None)
    if head is None:
        raise ValueError(f"the starter code has no head of {function}")
    parts = _split_parameters(head[2]) if head[2].strip() else []
    _check_types(stub_source[: head.start()].rpartition("public:")[2], parts)
    names = ", ".join(f"v{number}" for number in range(len(parts)))
    solution = "class Solution" in stub_source
    call = f"ns_solution.{function}" if solution else f"::{function}"
    stub = stub_source + "}" * (stub_source.count("{") - stub_source.count("}")) + ";"
    parameters = ", ".join(f"auto &{name}" for name in names.split(", ") if name)
    instance = "  ::Solution ns_solution;" if solution else ""
    scope = "Solution::" if solution else ""
    return "\n".join(
        (
            _header_source(),
            f"namespace ns_asked {{\n{stub}\n}}",
            f"#define main answer_main\n{code}\n#undef main",
            "int main() {",
            instance,
            f"  return ns_json::run<decltype(&ns_asked::{scope}{function})>(",
            f"      [&]({parameters}) {{ return {call}({names}); }});",
            "}",
            "",
        )
    )


def _check_types(result: str, parameters: list[str]) -> None:
    """Raise ValueError for a type without values of JSON. The last word of each parameter is its name."""
    words = [
        *_WORD.findall(result.rpartition(";")[2]),
        *(w for part in parameters for w in _WORD.findall(part)[:-1]),
    ]
    pointer = "*" if "*" in result + "".join(parameters) else ""
    odd = next((word for word in words if word not in _TYPES), pointer)
    if odd:
        raise ValueError(f"there are no values of JSON for the type {odd}")


def _split_parameters(parameters: str) -> list[str]:
    """Split parameters at the commas that no angle brackets enclose."""
    pieces, depth = [""], 0
    for sign in parameters:
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    return pieces


@cache
def _header_source() -> str:
    return files(_INSIDE).joinpath("call.hpp").read_text("utf-8")
