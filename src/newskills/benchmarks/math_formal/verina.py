# SPDX-License-Identifier: Apache-2.0
"""Lean 4 programs that are to be proved right (Ye et al. 2025, arXiv:2505.23135)."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.lean import to_prove

_MARK = "-- !benchmark"
_PART = re.compile(rf"{_MARK} @start ([^\n]*)\n(.*?){_MARK} @end [^\n]*", re.DOTALL)
_PROOF = f"{_MARK} @start proof\n"


def join_task_files(rows: Iterable[Row]) -> Iterator[Row]:
    """Join files of a task's folder to one row."""
    tasks: dict[str, Row] = {}
    for raw in rows:
        folder, _, file = raw["_file"].rpartition("/")
        tasks.setdefault(folder.rpartition("/")[2], {})[file] = raw["text"]
    for name in sorted(tasks):
        yield {"id": name, **tasks[name]}


def row(raw: Row, index: int) -> Row:
    """Return the program, its conditions and the theorem; the proof that some tasks bring is left out."""
    text, marker, _ = raw["task.lean"].replace("\r\n", "\n").rpartition(_PROOF)
    if not marker:
        raise ValueError("task.lean has no place for a proof")
    lines = [line for line in text.splitlines() if not line.strip().startswith(_MARK)]
    imports = [line for line in lines if line.startswith("import ") and line != "import Mathlib"]
    rest = "\n".join(line for line in lines if not line.startswith("import "))
    return {
        "id": raw["id"],
        "name": msgspec.json.decode(raw["task.json"])["signature"]["name"],
        "split": "test",
        "header": "\n".join(["import Mathlib", *dict.fromkeys(imports)]) + "\n\n",
        "informal_prefix": "",
        "formal_statement": to_prove(rest.strip()),
        "problem": raw["description.txt"].replace("\r\n", "\n").strip(),
        "subset_for_metrics": raw["id"].split("_")[1],
    }


def _task_parts(raw: Row) -> dict[str, str]:
    """Return the texts between the marks of task.lean, by their names; of the imports, those of the solution."""
    return {
        part[1].strip(): part[2].strip("\n").rstrip()
        for part in _PART.finditer(raw["task.lean"].replace("\r\n", "\n"))
    }


def _task_fields(raw: Row) -> Row:
    parts, signature = _task_parts(raw), msgspec.json.decode(raw["task.json"])["signature"]
    imports = [line for name, text in parts.items() if name.startswith("import") for line in text.splitlines()]
    wanted = [line for line in imports if line.startswith("import ") and line != "import Mathlib"]
    return {
        "id": raw["id"],
        "header": "\n".join(["import Mathlib", *dict.fromkeys(wanted)]),
        "problem": raw["description.txt"].replace("\r\n", "\n").strip(),
        "signature": signature,
        "tests": msgspec.json.decode(raw["test.json"]),
        "reject_inputs": msgspec.json.decode(raw["reject_inputs.json"]),
        "subset_for_metrics": raw["id"].split("_")[1],
        "parts": parts,
    }


def _definition_head(signature: Row, suffix: str, more: str) -> str:
    binders = " ".join(f"({each['param_name']} : {each['param_type']})" for each in signature["parameters"])
    return f"def {signature['name']}{suffix} {binders}{more} :="


def _precondition_binder(signature: Row) -> str:
    names = " ".join(each["param_name"] for each in signature["parameters"])
    return f" (h_precond : {signature['name']}_precond {names})"


def code_row(raw: Row, index: int) -> Row:
    """Return a row that gives the precondition; its helpers are those of the task, and of the solution where it uses
    them."""
    task = _task_fields(raw)
    parts, signature = task.pop("parts"), task["signature"]
    precondition = f"{_definition_head(signature, '_precond', ' : Prop')}\n{parts['precond']}"
    if _has_helper_names(parts["precond"] + parts["precond_aux"], parts["solution_aux"]):
        helpers = parts["solution_aux"]
    else:
        helpers = ""
    definitions = [parts.get("task_aux", ""), helpers, parts["precond_aux"], f"@[reducible, simp]\n{precondition}"]
    head = _definition_head(signature, "", f"{_precondition_binder(signature)} : {signature['return_type']}")
    own = "" if helpers else parts["solution_aux"]
    gold = [own, parts["code_aux"], f"{head}\n{parts['code']}"]
    return {**task, "given": _join_parts(definitions), "head": head, "code": _join_parts(gold)}


def spec_row(raw: Row, index: int) -> Row:
    task = _task_fields(raw)
    parts, signature = task.pop("parts"), task["signature"]
    result = f" (result : {signature['return_type']})"
    heads = (
        _definition_head(signature, "_precond", " : Prop"),
        _definition_head(signature, "_postcond", f"{result}{_precondition_binder(signature)} : Prop"),
    )
    gold = [parts["solution_aux"], parts["precond_aux"], f"{heads[0]}\n{parts['precond']}"]
    gold += [parts["postcond_aux"], f"{heads[1]}\n{parts['postcond']}"]
    return {
        **task,
        "given": parts.get("task_aux", ""),
        "head": "\n\n".join(heads),
        "specification": _join_parts(gold),
    }


def _join_parts(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part.strip())


def _has_helper_names(text: str, helpers: str) -> bool:
    """Return whether `text` names what `helpers` defines."""
    names = re.findall(r"\b(?:def|abbrev|structure|inductive)\s+([\w'.!?]+)", helpers)
    return any(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w'])", text) for name in names)


def _benchmark(name: str, title: str, *traps: str, members: str, sha256: str, **more: Any) -> Benchmark:
    return Benchmark(
        name=name,
        category="math-formal",
        title=title,
        sources=(
            Source(
                github="sunblaze-ucb/verina",
                ref="main",
                revision="d12090a87619cbfcc43b83a8cb08f6deda1ecea8",
                members=f"datasets/verina/*/{{{members}}}",
                format="text",
                sha256=sha256,
            ),
        ),
        join=join_task_files,
        metric="lean4-proof",
        items={"test": 189},
        licence="Apache-2.0",
        homepage="https://github.com/sunblaze-ucb/verina",
        citation="arXiv:2505.23135",
        needs_sandbox=True,
        traps=(*traps, "Needs a Lean 4 project with Mathlib."),
        **more,
    )


_PROOF_FILES = "task.lean,task.json,description.txt"
_ALL_FILES = f"{_PROOF_FILES},test.json,reject_inputs.json"
_ALL_SHA256 = "51a86e861c93b30a98b5c50669320bb70ff11b090de93cb601cc8dafcf65b1e2"

BENCHMARKS = (
    _benchmark(
        "verina",
        "Verina: Lean 4 programs to be proved right",
        "The proof task: program and conditions are given. `verina-code` and `verina-spec` ask for these.",
        members=_PROOF_FILES,
        sha256="0799013ffdeb00aeacba5ea6b193035fe40f1b9a40fab26c0a65413819e20c17",
        row=row,
        prompt="lean4/formal-proof",
        grader="lean4-proof",
    ),
    _benchmark(
        "verina-code",
        "Verina: Lean 4 programs to be written, judged by tests",
        "Lean itself evaluates the tests; a program that it cannot evaluate is wrong.",
        members=_ALL_FILES,
        sha256=_ALL_SHA256,
        row=code_row,
        prompt="lean4/verina-code",
        grader="verina-code",
    ),
    _benchmark(
        "verina-spec",
        "Verina: conditions of Lean 4 programs to be written, judged by tests",
        "Conditions that Lean neither decides nor proves for a test leave the answer unscored.",
        members=_ALL_FILES,
        sha256=_ALL_SHA256,
        row=spec_row,
        prompt="lean4/verina-spec",
        grader="verina-spec",
    ),
)
