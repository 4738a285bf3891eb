# SPDX-License-Identifier: Apache-2.0
"""Answers and tests as two programs: in place of the function, the tests call a stub that asks the answer's program.

The stub has the head that the benchmark gives, so nothing of the answer is in the tests' program: what it defines,
redefines, prints, reads or ends is its own. Values travel as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from msgspec import Struct

from newskills.base.records import Row
from newskills.graders.code.programs import CHAINS, PairTask, ProgramPart

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")


class _Answer(Struct, frozen=True, kw_only=True):
    """The answer's program by itself, and what the row says of its tests."""

    body: str
    prompt: str
    tests: str
    entry: str
    closing: str
    inside: bool
    main: str


def separate(body: str, record: Row, cpu: float) -> PairTask | None:
    """None where the head that the prompt ends with is not one whose calls can be carried."""
    language = str(record["language"])
    if language not in _WRITERS:
        return None
    inside = bool(record.get("inside"))
    return _WRITERS[language](
        _Answer(
            body=f"{body}\n}}\n" if inside else body,
            prompt=str(record["prompt"]),
            tests=str(record["test"]),
            entry=str(record["entry_point"]),
            closing=str(record.get("closing") or ""),
            inside=inside,
            main=str(record.get("main", "Main")),
        ),
        cpu,
    )


def _split_parameters(text: str) -> list[str]:
    """Between commas that no brackets enclose.

    >>> _split_parameters("map<int, int> a, int b = 2")
    ['map<int, int> a', 'int b = 2']
    """
    pieces, depth = [""], 0
    for sign in text:
        depth += (sign in "<([{") - (sign in ">)]}")
        if sign == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    return [piece.strip() for piece in pieces if piece.strip()]


def _last_names(parameters: list[str]) -> list[str] | None:
    """The name of each parameter, which ends it but for a default; None where one has no name."""
    names = [_WORD.findall(parameter.partition("=")[0].partition("[")[0])[-1:] for parameter in parameters]
    return [name[0] for name in names] if all(names) else None


_CPP_HEAD = r"([^;{{}}]*?)\b{}\s*\(([^{{}}]*)\)\s*\{{\s*$"
_CPP_DEFINES = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


def _cpp(answer: _Answer, cpu: float) -> PairTask | None:
    code = re.sub(r"(?m)^[ \t]*(?:#|using\b)[^\n]*$", ";", _COMMENT.sub(" ", answer.prompt))
    head = re.search(_CPP_HEAD.format(re.escape(answer.entry)), code)
    if head is None or not head[1].strip():
        return None
    names = _last_names(_split_parameters(head[2]))
    if names is None:
        return None
    call = f"::ns_wire::Function<decltype(&::{answer.entry})>"
    tests = (
        f'#include <bits/stdc++.h>\n#include "wire.hpp"\n{answer.prompt}\n    return {call}::call({", ".join(names)});\n}}\n'
        f"static auto ns_check = &{call}::check;\n#undef NDEBUG\n{answer.tests}\n"
    )
    undone = "".join(f"#undef {name}\n" for name in dict.fromkeys(_CPP_DEFINES.findall(answer.body)))
    values = ", ".join(f"auto &ns_{number}" for number in range(len(names)))
    passed = ", ".join(f"ns_{number}" for number in range(len(names)))
    program = (
        f'#define main answer_main\n{answer.body}\n#undef main\n{undone}#include "wire.hpp"\n'
        f"namespace ns_asked {{\nusing namespace std;\n{head[1]} {answer.entry}({head[2]});\n}}\n"
        f"int main() {{\n  return ns_wire::Function<decltype(&ns_asked::{answer.entry})>::serve(\n"
        f"      [&]({values}) -> decltype(auto) {{ return ::{answer.entry}({passed}); }});\n}}\n"
    )
    chain = CHAINS["cpp"]
    libraries = ("-lcrypto",) if "<openssl/" in answer.body + answer.prompt + answer.tests else ()
    steps = tuple((*step, *libraries) for step in chain.build)
    wire = {"wire.hpp": _text("wire.hpp")}
    return PairTask(
        answer=ProgramPart(files={chain.file: program, **wire}, build=steps, run=chain.run),
        tests=ProgramPart(files={chain.file: tests, **wire}, build=steps, run=chain.run),
        cpu=cpu,
    )


_JS_HEAD = (
    r"(?:\bfunction\s+{0}|\b(?:const|let|var)\s+{0}\s*=(?:\s*function\b\s*\w*)?)"
    r"\s*\(([^()]*)\)\s*(?:=>)?\s*\{{\s*$"
)


def _js(answer: _Answer, cpu: float) -> PairTask | None:
    head = re.search(_JS_HEAD.format(re.escape(answer.entry)), _COMMENT.sub(" ", answer.prompt))
    if head is None:
        return None
    names = [parameter.partition("=")[0].strip() for parameter in _split_parameters(head[1])]
    if not all(_NAME.fullmatch(name) for name in names):
        return None
    tests = (
        "const ns_call = require('./wire.js').call;\n"
        "console.assert = (held) => { if (!held) throw new Error('assertion failed'); };\n"
        f"{answer.prompt}\n    return ns_call([{', '.join(names)}]);\n}}\n{answer.tests}\n"
    )
    program = f"{answer.body}\n;require('./wire.js').serve({answer.entry});\n"
    chain, wire = CHAINS["js"], {"wire.js": _text("wire.js")}
    return PairTask(
        answer=ProgramPart(files={chain.file: program, **wire}, run=chain.run),
        tests=ProgramPart(files={chain.file: tests, **wire}, run=chain.run),
        cpu=cpu,
    )


_JAVA_HEAD = r"([^;{{}}]*?)\b{}\s*\(([^{{}}]*)\)\s*(?:throws\s+[\w, .]+)?\{{\s*$"
_JAVA_CLASS = re.compile(r"\bclass\s+(\w+)")
_JAVA_WORDS = frozenset(
    (
        *("public", "private", "protected", "static", "final", "void"),
        *("boolean", "byte", "char", "short", "int", "long", "float", "double"),
        *("Boolean", "Byte", "Character", "Short", "Integer", "Long", "Float", "Double", "Number", "Object"),
        *("String", "CharSequence", "BigInteger", "BigDecimal", "Optional", "Comparable"),
        *("Iterable", "Collection", "List", "ArrayList", "Map", "HashMap", "Set", "HashSet"),
    )
)
_JAVA_PUBLIC = re.compile(r"^[ \t]*public[ \t]+(?=(?:final[ \t]+)?class\b)", re.MULTILINE)


def java_program(body: str, rest: str) -> str:
    """One file of Java: imports come first, and none of the classes but `rest`'s is public."""
    imports = [line for line in body.splitlines() if line.lstrip().startswith("import ")]
    code = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("import "))
    return "\n".join(dict.fromkeys(imports)) + f"\n{rest}\n" + _JAVA_PUBLIC.sub("", f"{code}\n")


def _java(answer: _Answer, cpu: float) -> PairTask | None:
    code = _COMMENT.sub(" ", answer.prompt)
    head = re.search(_JAVA_HEAD.format(re.escape(answer.entry)), code)
    holder = _JAVA_CLASS.findall(code)[-1:]
    if head is None or not holder:
        return None
    parameters = _split_parameters(head[2])
    names = _last_names(parameters)
    types = [word for parameter in parameters for word in _WORD.findall(parameter)[:-1]]
    if names is None or not {*types, *_WORD.findall(head[1])} <= _JAVA_WORDS:
        return None
    call = f"NsWire.call(new Object[] {{{', '.join(names)}}});"
    stub = call if re.search(r"\bvoid\s*$", head[1]) else f"return {call}"
    ends = answer.closing if answer.inside else "}\n}\n"
    start = (
        "public class Program {\n  public static void main(String[] arguments) throws Throwable {\n"
        f"    NsWire.silence();\n    {answer.main}.main(arguments);\n  }}\n}}"
    )
    serve = (
        "public class Program {\n  public static void main(String[] arguments) throws Throwable {\n"
        f'    NsWire.serve("{holder[0]}", "{answer.entry}", {len(names)});\n  }}\n}}'
    )
    chain, wire = CHAINS["java"], {"NsWire.java": _text("NsWire.java")}
    build = tuple((*step, "-proc:none", "NsWire.java") for step in chain.build)
    programs = (
        java_program(answer.body, serve),
        java_program(f"{answer.prompt}\n        {stub}\n{ends}{answer.tests}", start),
    )
    parts = [ProgramPart(files={chain.file: program, **wire}, build=build, run=chain.run) for program in programs]
    return PairTask(answer=parts[0], tests=parts[1], cpu=cpu, stdio=True)


_SH_HEAD = r"(?m)^\s*(?:function\s+{0}\s*(?:\(\s*\))?|{0}\s*\(\s*\))\s*\{{\s*\Z"
_SH_STUB = r"""
    builtin printf '%s\0' "$#" "$@" >&3
    local ns_out ns_code
    IFS= builtin read -r -d '' ns_out <&4 && IFS= builtin read -r -d '' ns_code <&4 || builtin kill -KILL $$
    builtin printf '%s' "$ns_out"
    return "$ns_code"
"""
_SH_CALL = """ns_given=("$@")
set --
exec 3>&1 >/dev/null
source ./program.sh
exec >&3 3>&-
{} "${{ns_given[@]}}"
"""


def _sh(answer: _Answer, cpu: float) -> PairTask | None:
    if re.search(_SH_HEAD.format(re.escape(answer.entry)), answer.prompt) is None:
        return None
    tests = f"{answer.prompt}{_SH_STUB}{answer.closing or '}'}\n{answer.tests}\n"
    chain = CHAINS["sh"]
    call = _SH_CALL.format(answer.entry)
    return PairTask(
        answer=ProgramPart(files={chain.file: answer.body, "call.sh": call}, run=("bash", "call.sh")),
        tests=ProgramPart(files={chain.file: tests}, run=chain.run),
        cpu=cpu,
        each=True,
    )


_WRITERS: dict[str, Callable[[_Answer, float], PairTask | None]] = {
    "cpp": _cpp,
    "java": _java,
    "js": _js,
    "sh": _sh,
}


@cache
def _text(name: str) -> str:
    return files("newskills.graders.code.inside").joinpath(name).read_text("utf-8")
