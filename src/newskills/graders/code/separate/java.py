# SPDX-License-Identifier: Apache-2.0
"""Java: what the tests call is a method of the class that the prompt begins."""

from __future__ import annotations

import re

from newskills.graders.code.programs import CHAINS, PairTask, ProgramPart
from newskills.graders.code.separate.parts import COMMENT, WORD, Answer, last_names, split_parameters, wire_source

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
    """Write one file of Java: imports come first, and none of the classes but `rest`'s is public."""
    imports = [line for line in body.splitlines() if line.lstrip().startswith("import ")]
    code = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("import "))
    return "\n".join(dict.fromkeys(imports)) + f"\n{rest}\n" + _JAVA_PUBLIC.sub("", f"{code}\n")


def separate_java(answer: Answer, cpu: float) -> PairTask | None:
    code = COMMENT.sub(" ", answer.prompt)
    head = re.search(_JAVA_HEAD.format(re.escape(answer.entry)), code)
    holder = _JAVA_CLASS.findall(code)[-1:]
    if head is None or not holder:
        return None
    parameters = split_parameters(head[2])
    names = last_names(parameters)
    types = [word for parameter in parameters for word in WORD.findall(parameter)[:-1]]
    if names is None or not {*types, *WORD.findall(head[1])} <= _JAVA_WORDS:
        return None
    call = f"NsWire.call(new Object[] {{{', '.join(names)}}});"
    stub = call if re.search(r"\bvoid\s*$", head[1]) else f"return {call}"
    ends = answer.closing if answer.inside else "}\n}\n"
    start = (
        "public class Program {\n  public static void main(String[] arguments) throws Throwable {\n"
        f"    NsWire.prepare({str(answer.knows_nan).lower()});\n    {answer.main}.main(arguments);\n  }}\n}}"
    )
    serve = (
        "public class Program {\n  public static void main(String[] arguments) throws Throwable {\n"
        f'    NsWire.serve("{holder[0]}", "{answer.entry}", {len(names)});\n  }}\n}}'
    )
    chain, carried = CHAINS["java"], {"NsWire.java": wire_source("NsWire.java")}
    build = tuple((*step, "-proc:none", "NsWire.java") for step in chain.build)
    programs = (
        java_program(answer.body, serve),
        java_program(f"{answer.prompt}\n        {stub}\n{ends}{answer.tests}", start),
    )
    parts = [
        ProgramPart(files={chain.file: program, **carried}, build=build, run=chain.run) for program in programs
    ]
    return PairTask(answer=parts[0], tests=parts[1], cpu=cpu, stdio=True)
