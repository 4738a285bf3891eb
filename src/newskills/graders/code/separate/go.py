# SPDX-License-Identifier: Apache-2.0
"""Go: imports are those that a program uses, since others are errors."""

from __future__ import annotations

import re

from newskills.graders.code.programs import CHAINS, PairTask, ProgramPart
from newskills.graders.code.separate.parts import COMMENT, Answer, split_parameters, wire_source

_HEAD = r"(?m)^func\s+{}\s*\(([^{{}}]*?)\)\s*([^{{}}]*?)\s*\{{\s*\Z"
_IMPORTS = re.compile(r"^import[ \t]*(?:\(([^)]*)\)|([^\n(]*\"[^\"\n]+\"))", re.MULTILINE)
_ONE_IMPORT = re.compile(r"([\w.]*)[ \t]*\"([^\"\n]+)\"")
_PACKAGE = re.compile(r"^package[ \t]+\w+[^\n]*$", re.MULTILINE)
_MAIN = re.compile(r"^func\s+main\s*\(", re.MULTILINE)
_TYPES = re.compile(
    r"(?:\[\d*\]|map\[(?:string|u?int(?:8|16|32|64)?|rune|byte)\]|string|bool|rune|byte|u?int(?:8|16|32|64)?"
    r"|float(?:32|64))+"
)
_INIT = ("go", "mod", "init", "program")


def separate_go(answer: Answer, cpu: float) -> PairTask | None:
    """Place the answer in a program of its own.

    None where the prompt does not end with a head whose types JSON carries.
    """
    head = re.search(_HEAD.format(re.escape(answer.entry)), COMMENT.sub(" ", answer.prompt))
    if head is None:
        return None
    parameters = split_parameters(head[1])
    names = [parameter.split()[0] for parameter in parameters]
    result_text = head[2][1:-1] if head[2].startswith("(") else head[2]
    results = split_parameters(result_text)
    types = [word for parameter in parameters for word in parameter.split()[1:]]
    if not all(_TYPES.fullmatch(word) for word in (*types, *results)):
        return None
    declared = "".join(f"    var nsResult{number} {kind}\n" for number, kind in enumerate(results))
    pointers = ", ".join(f"&nsResult{number}" for number in range(len(results)))
    returned = ", ".join(f"nsResult{number}" for number in range(len(results)))
    stub = f"{declared}    nsCall([]interface{{}}{{{pointers}}}, {', '.join(names)})\n    return {returned}\n}}\n"
    task_imports = _imported_packages(answer.prompt) | _imported_packages(answer.tests)
    tests = _main_package(f"{answer.prompt}\n{stub}{answer.tests}", task_imports, droppable=set(task_imports))
    code = answer.code if answer.whole else answer.body
    lent = {
        place: name
        for place, name in task_imports.items()
        if answer.whole and place not in _imported_packages(code)
    }
    program = _main_package(
        f"{_MAIN.sub('func nsAnswerMain(', code)}\nfunc main() {{\n    nsServe({answer.entry})\n}}\n",
        _imported_packages(code) | lent,
        droppable=set(task_imports),
    )
    chain, carried = CHAINS["go"], {"wire.go": wire_source("wire.go")}
    build = ("go", "build", "-o", "program", ".")
    return PairTask(
        answer=ProgramPart(files={"program.go": program, **carried}, build=(_INIT, build), run=("./program",)),
        tests=ProgramPart(
            files={chain.file: tests, "wire_test.go": carried["wire.go"]},
            build=(_INIT, ("go", "test", "-c", "-o", "program", ".")),
            run=("./program", "-test.timeout", "0"),
        ),
        cpu=cpu,
    )


def _imported_packages(code: str) -> dict[str, str]:
    """Map the path of each package that is imported to the name that it has in the code."""
    imported: dict[str, str] = {}
    for block in _IMPORTS.finditer(code):
        for alias, place in _ONE_IMPORT.findall(block[1] or block[2]):
            imported[place] = alias or place.rpartition("/")[2]
    return imported


def _main_package(code: str, imports: dict[str, str], droppable: set[str]) -> str:
    """Return the code as package main, with `imports`; those of `droppable` that it does not use are left out."""
    rest = _IMPORTS.sub("", _PACKAGE.sub("", code))
    kept = [
        f'    {name} "{place}"\n'
        for place, name in imports.items()
        if place not in droppable or name in ("_", ".") or re.search(rf"\b{re.escape(name)}\.", rest)
    ]
    return f"package main\n\nimport (\n{''.join(kept)})\n{rest}"
