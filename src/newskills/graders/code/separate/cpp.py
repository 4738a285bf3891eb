# SPDX-License-Identifier: Apache-2.0
"""C++: types are those of the head that the prompt ends with."""

from __future__ import annotations

import re

from newskills.graders.code.programs import CHAINS, PairTask, ProgramPart
from newskills.graders.code.separate.parts import COMMENT, Answer, last_names, split_parameters, wire_source

_CPP_HEAD = r"([^;{{}}]*?)\b{}\s*\(([^{{}}]*)\)\s*\{{\s*$"
_ALL = "<bits/stdc++.h>"
_INCLUDES_ALL = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<bits/stdc\+\+\.h>", re.MULTILINE)
_TYPES = ("array", "deque", "list", "map", "optional", "set", "unordered_map", "unordered_set")
_CPP_DEFINES = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


def separate_cpp(answer: Answer, cpu: float) -> PairTask | None:
    code = re.sub(r"(?m)^[ \t]*(?:#|using\b)[^\n]*$", ";", COMMENT.sub(" ", answer.prompt))
    head = re.search(_CPP_HEAD.format(re.escape(answer.entry)), code)
    if head is None or not head[1].strip():
        return None
    names = last_names(split_parameters(head[2]))
    if names is None:
        return None
    call = f"::ns_wire::Function<decltype(&::{answer.entry})>"
    tests = (
        f"{answer.prompt}\n    return {call}::call({', '.join(names)});\n}}\n"
        f"static auto ns_check = &{call}::check;\n#undef NDEBUG\n{answer.tests}\n"
    )
    # Compiled beforehand in the sandbox, where it comes first, and only once.
    types = "".join(f"#define NS_{name.upper()}\n" for name in _TYPES if re.search(rf"{name}\b", head[0]))
    guard = types if answer.knows_nan else f"{types}#define NS_NO_NAN\n"
    tests = f'#include {_ALL}\n{guard}#include "wire.hpp"\n{_INCLUDES_ALL.sub("", tests)}'
    values = ", ".join(f"auto &ns_{number}" for number in range(len(names)))
    passed = ", ".join(f"ns_{number}" for number in range(len(names)))
    program = (
        f"#define main answer_main\n{answer.body}\n#undef main\n{undefine_macros(answer.body)}{types}"
        '#include "wire.hpp"\n'
        f"namespace ns_asked {{\nusing namespace std;\n{head[1]} {answer.entry}({head[2]});\n}}\n"
        f"int main() {{\n  return ns_wire::Function<decltype(&ns_asked::{answer.entry})>::serve(\n"
        f"      [&]({values}) -> decltype(auto) {{ return ::{answer.entry}({passed}); }});\n}}\n"
    )
    chain = CHAINS["cpp"]
    libraries = ("-lcrypto",) if "<openssl/" in answer.body + answer.prompt + answer.tests else ()
    steps = tuple((*step, *libraries) for step in chain.build)
    carried = {"wire.hpp": wire_source("wire.hpp")}
    return PairTask(
        answer=ProgramPart(files={chain.file: program, **carried}, build=steps, run=chain.run),
        tests=ProgramPart(files={chain.file: tests, **carried}, build=steps, run=chain.run),
        cpu=cpu,
    )


def undefine_macros(code: str) -> str:
    """Return lines that take back what the code defines, so that what follows means what it says."""
    return "".join(f"#undef {name}\n" for name in dict.fromkeys(_CPP_DEFINES.findall(code)))
