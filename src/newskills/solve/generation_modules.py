# SPDX-License-Identifier: Apache-2.0
"""Generation modules of NeMo-Skills: which solver does the same, and how a task class becomes a solver.

Modules of users are read here, never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.requirements import source_of

PACKAGE = "nemo_skills"
PREFIX = f"{PACKAGE}.inference."
PAGE = "docs/generation-tasks.md"

GENERATION_MODULE_MAP = {
    "generate": "chat",
    "llm_math_judge": "math_judge",
    "check_contamination": "check_contamination",
    "autoformalize": "autoformalize",
    "prover": "prover",
    "eval.arena_judge": "arena_judge",
    "eval.critpt": "critpt",
    "eval.scicode": "scicode",
    "eval.swebench": "software_agent",
}
"""Name of a module below `nemo_skills.inference` → our solver."""

_INSTEAD = {
    "eval.bfcl": "Its subsets are solved in several ways: ns eval --benchmarks=bfcl_v3 chooses for each.",
    "eval.compute_eval": "Run: ns eval --benchmarks=compute-eval",
    "retrieve_similar": "Run: ns retrieve_similar --help",
}
"""Modules that are no single solver → what to type."""

TASK_CLASS = "GENERATION_TASK_CLASS"
_BASE = "GenerationTask"
METHODS = {
    "load_data": "--input_file, or --preprocess_cmd that writes it",
    "preprocess_data": "request(sample) for a change within rows, --preprocess_cmd for other rows",
    "fill_prompt": "request(sample)",
    "setup_prompt": "++prompt_config",
    "log_example_prompt": "--dry_run, which prints the first prompt",
    "prefill_generation": "solve(), which returns without a request",
    "process_single_datapoint": "solve(sample, request, kit)",
    "generate_with_semaphore": "ask(kit.models[MAIN], request)",
    "postprocess_single_output": "the fields that solve() returns",
    "evaluate_single_datapoint": "++eval_type=FILE.py::GRADER",
    "apply_evaluation_hook": "++eval_type=FILE.py::GRADER",
    "run_batch_evaluation": "++eval_type=FILE.py::GRADER",
    "dump_outputs": "the fields that solve() returns",
    "postprocess": "--postprocess_cmd",
    "setup_llm": "--server_type, or ++server.model_class for a model of your own",
    "wait_for_server": "nothing: every run waits for its server",
    "get_generation_default_args": "++ keys of the command, or defaults of a struct Config",
    "get_server_command_fn": "--server_entrypoint",
}
"""Method of a generation task → what does its work here."""


class TaskModule(Struct, frozen=True, kw_only=True):
    """What a module of NeMo-Skills' form has, read from its text.

    task      name of its task class; "" without one
    methods   what the class overrides, in the order of the text
    imported  1-based line of the first top-level import of NeMo-Skills; None where there is none
    names     names bound at its top level
    """

    task: str = ""
    methods: tuple[str, ...] = ()
    imported: int | None = None
    names: frozenset[str] = frozenset()


def solver_of_module(module: str) -> str | None:
    """Return our solver for a module of NeMo-Skills, by its full name; None for other modules.

    Raises ConfigError for one that nothing here stands for.
    """
    if not module.startswith(f"{PACKAGE}.") or "::" in module:
        return None
    name = module.removeprefix(PREFIX)
    if (solver := GENERATION_MODULE_MAP.get(name)) is not None:
        return solver
    known_modules = ", ".join(PREFIX + module for module in GENERATION_MODULE_MAP)
    raise ConfigError(
        f"{module} is a program of NeMo-Skills, which cannot run here.",
        hint=_INSTEAD.get(name, f"These names are known: {known_modules}; for your own task see {PAGE}."),
    )


def refuse_task(spec: str) -> None:
    """Raise ConfigError where `module::maker` or `file.py::maker` names no solver but a task of NeMo-Skills, or a
    module that cannot be imported without that. Whatever else is wrong, importing it will say."""
    where, _, maker = spec.partition("::")
    facts = read_module(where)
    if facts is None:
        return
    if facts.task and (maker not in facts.names or maker in (facts.task, TASK_CLASS)):
        raise ConfigError(
            f"{where}: {facts.task} is a generation task of NeMo-Skills, which newskills cannot run unchanged."
            + (f" It overrides {', '.join(facts.methods)}." if facts.methods else ""),
            hint=_as_solver(facts.methods),
        )
    if facts.imported is not None and find_spec(PACKAGE) is None:
        raise ConfigError(
            f"{where}, line {facts.imported}: it imports {PACKAGE}, which is not installed and not needed by solvers.",
            hint=f"Remove the import; {PAGE} shows what replaces its parts.",
        )


def read_module(where: str) -> TaskModule | None:
    """Read a module; None where there is no such file, it cannot be parsed, or nothing in it is NeMo-Skills'."""
    path = source_of(where)
    try:
        text = path.read_text("utf-8") if path is not None else ""
        if PACKAGE not in text and TASK_CLASS not in text:
            return None
        body = ast.parse(text).body
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
        return None
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    task = _task_class(body, classes)
    lines = [node.lineno for node in body if _is_reference(node)]
    return TaskModule(
        task=task,
        methods=tuple(dict.fromkeys(_method_names(classes, task))),
        imported=lines[0] if lines else None,
        names=frozenset(name for node in body for name in _bound_names(node)),
    )


def _as_solver(methods: tuple[str, ...]) -> str:
    advice = "; ".join(f"{name} becomes {METHODS[name]}" for name in methods)
    return f"Turn it into a solver: {advice or 'two methods'}. {PAGE} shows a task and its solver side by side."


def _task_class(body: list[ast.stmt], classes: dict[str, ast.ClassDef]) -> str:
    for node in body:
        if isinstance(node, ast.Assign) and TASK_CLASS in _bound_names(node):
            if isinstance(node.value, ast.Name):
                return node.value.id
            return TASK_CLASS
    derived = [name for name, node in classes.items() if _BASE in map(_last_name, node.bases)]
    if derived:
        return derived[-1]
    return ""


def _method_names(classes: dict[str, ast.ClassDef], name: str) -> Iterator[str]:
    """Yield the methods of the class and of those in the same file that it comes from."""
    node = classes.get(name)
    if node is None:
        return
    for base in node.bases:
        if _last_name(base) != name:
            yield from _method_names({k: v for k, v in classes.items() if k != name}, _last_name(base))
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name in METHODS:
            yield item.name


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return getattr(node, "id", "")


def _is_reference(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == PACKAGE for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE


def _bound_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
