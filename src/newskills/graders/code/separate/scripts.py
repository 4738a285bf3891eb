# SPDX-License-Identifier: Apache-2.0
"""JavaScript, whose answer serves all calls, and Bash, whose answer runs anew for each."""

from __future__ import annotations

import re

from newskills.graders.code.programs import CHAINS, PairTask, ProgramPart
from newskills.graders.code.separate.parts import COMMENT, Answer, split_parameters, wire_source

_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_JS_HEAD = (
    r"(?:\bfunction\s+{0}|\b(?:const|let|var)\s+{0}\s*=(?:\s*function\b\s*\w*)?)"
    r"\s*\(([^()]*)\)\s*(?:=>)?\s*\{{\s*$"
)


def separate_js(answer: Answer, cpu: float) -> PairTask | None:
    head = re.search(_JS_HEAD.format(re.escape(answer.entry)), COMMENT.sub(" ", answer.prompt))
    if head is None:
        return None
    names = [parameter.partition("=")[0].strip() for parameter in split_parameters(head[1])]
    if not all(_NAME.fullmatch(name) for name in names):
        return None
    tests = (
        "const ns_call = require('./wire.js').call;\n"
        f"require('./wire.js').knowsNan = {str(answer.knows_nan).lower()};\n"
        "console.assert = (held) => { if (!held) throw new Error('assertion failed'); };\n"
        f"{answer.prompt}\n    return ns_call([{', '.join(names)}]);\n}}\n{answer.tests}\n"
    )
    program = f"{answer.body}\n;require('./wire.js').serve({answer.entry});\n"
    chain, carried = CHAINS["js"], {"wire.js": wire_source("wire.js")}
    return PairTask(
        answer=ProgramPart(files={chain.file: program, **carried}, run=chain.run),
        tests=ProgramPart(files={chain.file: tests, **carried}, run=chain.run),
        cpu=cpu,
    )


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


def separate_sh(answer: Answer, cpu: float) -> PairTask | None:
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
