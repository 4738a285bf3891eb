# SPDX-License-Identifier: Apache-2.0
"""Code asks what an executor, a model, a server, a trainer, an engine or an agent can do, never what its name is: what
a plug-in is called nobody knows here. Names stand in the rows of their registries (`DescribedRegistry`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path

import pytest

import newskills
from newskills.base.libraries import APPLICATIONS
from newskills.base.registry import fold
from newskills.environments.engines import ENGINES
from newskills.launch.registry import EXECUTORS
from newskills.models.kinds import MODELS
from newskills.models.serving import SERVERS
from newskills.solve.agents.rollout import AGENTS
from newskills.train.trainers import TRAINERS

ROOT = Path(newskills.__file__).parent
APPS = tuple(ROOT.parent / name for name in APPLICATIONS)
NAMES = {
    fold(name)
    for registry in (EXECUTORS, MODELS, SERVERS, TRAINERS, ENGINES, AGENTS)
    for name in registry.built_in()
}
WORDS = {"none", "local", "generic", "cpu", "custom", "step", "comet", "openai", "docker", "bash"}
"""Names that mean other things as well: they count only beside one of SUBJECTS."""
SUBJECTS = {"executor", "server_type", "backend", "trainer", "engine", "program", "agent", "provider"}
LAUNCHER = "word of NeMo Evaluator's own configs, asked for in one property"
NEMO_RL = "training backend of NeMo-RL and verl, which is no server"
CONVERTED = "format of a checkpoint, which is no server"
SAMPLER = "where TRL samples (trainer.trl.sampler), which is no server"
ALLOWED = {
    "newskills_evaluator/config.py: self.executor == 'local'": LAUNCHER,
    "newskills_evaluator/config.py: self.executor == 'slurm'": LAUNCHER,
    "newskills_evaluator/config.py: self.executor == 'docker'": LAUNCHER,
    "newskills_evaluator/config.py: self.type == 'slurm'": LAUNCHER,
    "newskills_evaluator/invocations.py: self.executor == 'local'": LAUNCHER,
    "newskills_evaluator/suites/places.py: kind != 'slurm'": "word of NeMo Evaluator's suites",
    "train/pipelines/conversion.py: self.convert_to != 'trtllm'": CONVERTED,
    "train/pipelines/conversion.py: self.convert_to == 'trtllm'": CONVERTED,
    "train/pipelines/conversion.py: self.convert_from == 'megatron'": CONVERTED,
    "train/pipelines/conversion.py: self.pair == ('hf', 'trtllm')": CONVERTED,
    "pipelines/training/foreign/nemo_rl.py: backend == 'megatron'": NEMO_RL,
    "train/pipelines/nemo_rl.py: backend == 'megatron'": NEMO_RL,
    "train/pipelines/nemo_rl.py: self.backend == 'megatron'": NEMO_RL,
    "train/pipelines/verl.py: self.backend == 'megatron'": NEMO_RL,
    "pipelines/evaluation/judges.py: kind in MEASURES": "kind of a judge",
    "commands/shell/completion.py: words[0] in FAMILIES": "first word of a command",
    "commands/table.py: words[0] in APPLICATION_COMMANDS": "first word of a command",
    "environments/engines/references.py: scheme not in SCHEMES": "scheme of an image's address (docker://)",
    "newskills_evaluator/suites/places.py: kind not in ENGINES": "word of NeMo Evaluator's suites",
    "train/backends/trl/model.py: sampler in NEEDS_GPU": SAMPLER,
    "train/backends/trl/fitting.py: trl.sampler == 'vllm'": SAMPLER,
    "train/backends/trl/fitting.py: trl.sampler in ('vllm', 'vllm_server')": SAMPLER,
    "train/pipelines/conversion.py: self.pair == ('megatron', 'hf')": "formats of a conversion",
    "pipelines/conversion/jobs.py: conversion.convert_from == 'megatron'": "formats of a conversion",
    "pipelines/training/foreign/jobs.py: backend == 'megatron'": "formats of a conversion",
    "train/pipelines/conversion.py: self.convert_to == 'megatron'": "formats of a conversion",
}
"""Comparisons with words of others that are spelt like one of our names."""

Constants = dict[str, set[str]]


def texts(node: ast.AST, constants: Constants) -> set[str]:
    """Texts of a literal, or of a constant of the package by its name: what a value is compared with."""
    if isinstance(node, ast.Constant):
        return {fold(node.value)} if isinstance(node.value, str) else set()
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return {text for item in node.elts for text in texts(item, constants)}
    if isinstance(node, ast.Dict):
        return {text for key in node.keys if key is not None for text in texts(key, constants)}
    if (
        isinstance(node, ast.Call)
        and node.args
        and ast.unparse(node.func) in ("frozenset", "set", "tuple", "fold")
    ):
        return texts(node.args[0], constants)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return constants.get(name, set()) if name.isupper() else set()


def subject(node: ast.AST) -> str:
    """Last word of what is compared: `executor` of `fold(cluster.executor)`."""
    if isinstance(node, ast.Call):
        return subject(node.args[0] if node.args else node.func)
    if isinstance(node, ast.Attribute):
        return node.attr if node.attr not in ("lower", "upper", "strip", "replace") else subject(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def pairs(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """(what is compared, with what) of comparisons, of `case`, and of tables that are looked up in."""
    if isinstance(node, ast.Compare):
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if isinstance(operator, ast.Eq | ast.NotEq):
                yield from ((left, right), (right, left))
            elif isinstance(operator, ast.In | ast.NotIn) and not isinstance(left, ast.Constant):
                yield left, right
    elif isinstance(node, ast.Match):
        for value in (item for case in node.cases for item in ast.walk(case.pattern)):
            if isinstance(value, ast.MatchValue):
                yield node.subject, value.value
    elif isinstance(node, ast.Subscript):
        yield node.slice, node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr == "get":
            yield node.args[0], node.func.value
        elif node.func.attr in ("startswith", "endswith"):
            yield node.func.value, node.args[0]


def comparisons(tree: ast.AST, constants: Constants) -> list[str]:
    """Comparisons with a name of ours, as they are written."""
    sentences = []
    for node in ast.walk(tree):
        for compared, other in pairs(node):
            names = texts(other, constants) & NAMES
            lookup = isinstance(node, ast.Subscript | ast.Call)
            if (names - WORDS and not lookup) or (names and subject(compared) in SUBJECTS):
                sentences.append(ast.unparse(node if not isinstance(node, ast.Match) else compared))
    return sentences


def constants_of(trees: list[ast.Module]) -> Constants:
    """Names of constants at the top of modules → the texts in them, of literals that hold one of our names."""
    constants: Constants = {}
    for statement in (statement for tree in trees for statement in tree.body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if isinstance(target, ast.Name) and target.id.isupper() and value is not None:
                constants[target.id] = constants.get(target.id, set()) | texts(value, constants)
    return constants


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("cluster.executor == 'slurm'", True),
        ("'none' != executor", True),
        ("cluster.executor in ONE_MACHINE", True),
        ("fold(config.server_type) in ('openai', 'azureopenai')", True),
        ("if kind in {'vllm', 'sglang'}: pass", True),
        ("{'slurm': try_slurm}.get(cluster.executor)", True),
        ("{'podman': a, 'docker': b}[config.engine]", True),
        ("server_type.startswith('vllm')", True),
        ("match options.backend:\n case 'trl' | 'cpu': pass", True),
        ("split != 'none'", False),
        ("'vllm' in parsed.given", False),
        ("EXECUTORS.properties(executor).this_machine", False),
        ("kind.containers == 'command'", False),
        ("usual = 'llamacpp'", False),
    ],
)
def test_comparisons_are_found(text: str, is_found: bool) -> None:
    assert bool(comparisons(ast.parse(text), {"ONE_MACHINE": {"none", "local"}})) == is_found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def sources(names: Set[str], form: str) -> dict[str, ast.Module]:
    """Files that have one of the names, in this form; few have to be taken apart."""
    paths = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
    paths |= {path.relative_to(ROOT.parent).as_posix(): path for app in APPS for path in app.rglob("*.py")}
    words = {
        name: set(map(fold, re.findall(form, path.read_text(encoding="utf-8")))) for name, path in paths.items()
    }
    return {name: parsed(path) for name, path in paths.items() if words[name] & names}


def test_nothing_compares_a_name() -> None:
    files = sources(NAMES, r"""["']([\w.-]+)["']""")
    constants = {name: held for name, held in constants_of(list(files.values())).items() if held & NAMES}
    files |= sources({fold(name) for name in constants}, r"\b[A-Z][A-Z_]+\b")
    places = {f"{name}: {text}" for name, tree in files.items() for text in comparisons(tree, constants)}
    assert sorted(places - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - places) == []
