# SPDX-License-Identifier: Apache-2.0
"""Rust: types of the answer are inferred, so that it may choose between those that its tests fit."""

from __future__ import annotations

import re

from newskills.graders.code.programs import CHAINS, PairTask, ProgramPart
from newskills.graders.code.separate.parts import COMMENT, Answer, last_names, split_parameters, wire_source

_HEAD = r"\bfn\s+{}\s*\(([^{{}}]*)\)\s*(?:->[^{{}};]*)?\{{\s*\Z"
_MAIN = re.compile(r"\bfn\s+main\s*\(")
_EMPTY_MAIN = re.compile(r"\bfn\s+main\s*\(\s*\)\s*\{\s*\}")
_CRATES = {"use rand::Rng;": r"\brand\b|\.gen_", "use regex::Regex;": r"\b[rR]egex\b", "use md5;": r"\bmd5\b"}
"""What the head of every task of HumanEval-X imports, and what in a program needs it."""
_BUILD = ("rustc", "--edition", "2021", "--cap-lints", "allow", "-o", "program", "program.rs")


def separate_rust(answer: Answer, cpu: float) -> PairTask | None:
    """Place the answer in a program of its own.

    None where the prompt does not end with a head, or a parameter is changed in place.
    """
    head = re.search(_HEAD.format(re.escape(answer.entry)), COMMENT.sub(" ", answer.prompt))
    if head is None or re.search(r"&\s*(?:'\w+\s+)?mut\b", head[1]):
        return None
    parameters = split_parameters(head[1])
    names = last_names([parameter.partition(":")[0] for parameter in parameters])
    if names is None:
        return None
    puts = " ".join(f"ns_wire::put(&{name}, ns_out);" for name in names)
    tests = (
        f"{_EMPTY_MAIN.sub('', answer.prompt)}\n    ns_wire::call(|ns_out| {{ {puts} }})\n}}\n"
        f'{answer.tests}\n#[path = "wire.rs"]\nmod ns_wire;\n'
    )
    takes = "".join(f"        let ns_{number} = ns_wire::take(ns_in)?;\n" for number in range(len(names)))
    passed = ", ".join(f"ns_{number}" for number in range(len(names)))
    program = (
        f"{rename_main(answer.body)}\n"
        f'#[path = "wire.rs"]\nmod ns_wire;\nfn main() {{\n    ns_wire::serve(|ns_in, ns_out| {{\n{takes}'
        f"        ns_wire::put(&{answer.entry}({passed}), ns_out);\n        Some(())\n    }})\n}}\n"
    )
    chain, carried = CHAINS["rust"], {"wire.rs": wire_source("wire.rs")}
    harness = ("--test",) if "#[test]" in answer.tests else ()
    return PairTask(
        answer=ProgramPart(
            files={chain.file: _without_unused_imports(program), **carried}, build=(_BUILD,), run=chain.run
        ),
        tests=ProgramPart(
            files={chain.file: _without_unused_imports(tests), **carried},
            build=((*_BUILD, *harness),),
            run=chain.run,
        ),
        cpu=cpu,
    )


def rename_main(body: str) -> str:
    """Return the answer with its own main under another name."""
    return _MAIN.sub("fn ns_answer_main(", _EMPTY_MAIN.sub("", body))


def _without_unused_imports(program: str) -> str:
    """Return the program without imports of packages that it does not need."""
    for line, needed in _CRATES.items():
        rest = program.replace(line, "")
        if re.search(needed, rest) is None:
            program = rest
    return program
