# SPDX-License-Identifier: Apache-2.0
"""`ns evaluate` on a config of either format: one compiled configuration, or one for each model of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import structs

from newskills.base.errors import ConfigError
from newskills_evaluator.compile import overrides
from newskills_evaluator.compile.compiler import (
    CompileRequest,
    CompilerResult,
    compile_file,
    compile_tree,
    named_file,
    too_deep,
)
from newskills_evaluator.compile.defaults import compose_defaults
from newskills_evaluator.compile.files import File
from newskills_evaluator.compile.problems import ConfigProblem, raise_problems
from newskills_evaluator.profiles import EnvFile
from newskills_evaluator.suites.composing import compose_suite, is_suite, with_variables
from newskills_evaluator.suites.translate import NEWER, parts_of


def compile_all(request: CompileRequest, environ: Mapping[str, str], cwd: Path) -> list[CompilerResult]:
    """Compile all configs in the order of the file. Raises UserError, for a suite with all that newskills has
    nothing for."""
    try:
        file, env_file = named_file(request, environ, cwd)
        if not is_suite(file):
            return [compile_file(request, file, environ, env_file)]
        return _compile_suite(request, file, environ, env_file)
    except RecursionError as error:
        raise too_deep(request) from error


def _compile_suite(
    request: CompileRequest, file: File, environ: Mapping[str, str], env_file: EnvFile
) -> list[CompilerResult]:
    problems: list[ConfigProblem] = []
    tree = compose_suite(file)
    overrides.apply_overrides(tree, request.overrides)
    parts = parts_of(with_variables(tree, environ, problems), request.tasks, problems)
    try:
        raise_problems(problems, f"{file.path} ({NEWER})")
    except ConfigError as error:
        raise ConfigError(f"{error}\nnel itself runs what is left out here: nel eval run {file.path}") from error
    plain = structs.replace(request, overrides={}, tasks=())
    done = []
    for part in parts:
        made, _ = compose_defaults(File(path=file.path, content=part.config), {})
        compiled = compile_tree(plain, file.path, made, environ, env_file)
        done.append(structs.replace(compiled, notes=(f"read as {NEWER}", *part.notes)))
    return done
