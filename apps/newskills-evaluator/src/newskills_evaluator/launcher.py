# SPDX-License-Identifier: Apache-2.0
"""NeMo Evaluator's launcher, where it is installed: it runs the tasks that newskills has no benchmark for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import structs

from newskills.base.errors import NewskillsError, UnknownNameError
from newskills_evaluator.compile import dialects
from newskills_evaluator.compile.compiler import WANDB_KEYS
from newskills_evaluator.config import CompiledConfig, Dialect, EnvMap
from newskills_evaluator.tasks import own_names

PROGRAM = "nemo-evaluator-launcher"
PARSE = """\
from hydra.core.override_parser.overrides_parser import OverridesParser
OverridesParser.create().parse_override("a=1")
"""
_INVOCATION = re.compile(r"Invocation ID: ([0-9a-f]{8,16})")
_VERSION = re.compile(r"(\d+)\.(\d+)")


def find_launcher(environ: Mapping[str, str]) -> str | None:
    """Return the launcher's program: on the path, or beside this Python."""
    beside = Path(sys.executable).with_name(PROGRAM)
    return shutil.which(PROGRAM, path=environ.get("PATH")) or (str(beside) if beside.is_file() else None)


def needs_launcher(compiled: CompiledConfig) -> bool:
    """Return whether a task is not one of newskills' own."""
    return any(task.benchmark is None for task in compiled.tasks)


def check_tasks(compiled: CompiledConfig, program: str | None) -> None:
    """Raise UnknownNameError where a task is not one of newskills' own, and there is no launcher to ask."""
    foreign = [task.name for task in compiled.tasks if task.benchmark is None]
    if foreign and program is None:
        _, dot, rest = foreign[0].partition(".")
        hint = "Tasks of NeMo Evaluator need its launcher: pip install nemo-evaluator-launcher"
        if dot and rest in own_names():
            hint = f"newskills has its own benchmark '{rest}': write '- name: {rest}'. {hint}"
        raise UnknownNameError("task", foreign[0], own_names(), hint=hint)


def launcher_dialect(program: str) -> Dialect:
    """Return the dialect of the launcher's configurations. Raises NewskillsError where it does not run, or
    could read none."""
    done = _capture_output([program, "--version"])
    version = _VERSION.search(done.stdout)
    if done.returncode or version is None:
        raise NewskillsError(f"{program} does not run: {_last_line(done.stdout + done.stderr)}")
    check_parser(program)
    if (int(version[1]), int(version[2])) < (0, 2):
        return "0.1"
    return "0.2"


def check_parser(program: str) -> None:
    """Raise NewskillsError where Hydra, which reads the launcher's configurations, finds another antlr4 than 4.9."""
    with open(program, encoding="utf-8", errors="replace") as file:
        python = file.readline().removeprefix("#!").strip()
    if "python" not in Path(python).name:
        return
    message = _last_line(_capture_output([python, "-c", PARSE]).stderr)
    if "deserialize ATN" in message:
        raise NewskillsError(
            f"{program} cannot read configurations: {message}.",
            hint=f"Hydra needs antlr4 4.9, which newskills[math] also works with. Run: {python} -m pip "
            "install antlr4-python3-runtime==4.9.3",
        )


def for_launcher(compiled: CompiledConfig, dialect: Dialect, environ: Mapping[str, str]) -> CompiledConfig:
    """Return the config in the launcher's dialect, and without the variables of W&B that are not set here,
    which it would insist on."""
    variables = dialects.read_variables(compiled.config, [])

    def without_unset_wandb(env: EnvMap) -> EnvMap:
        return {
            name: value
            for name, value in env.items()
            if value.kind != "host" or value.value not in WANDB_KEYS or value.value in environ
        }

    variables = structs.replace(
        variables,
        evaluation=without_unset_wandb(variables.evaluation),
        export=without_unset_wandb(variables.export),
        tasks=tuple(without_unset_wandb(env) for env in variables.tasks),
    )
    return structs.replace(
        compiled, config=dialects.write_variables(compiled.config, variables, dialect), dialect=dialect
    )


def hand_over(program: str, config: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> str:
    """Let the launcher run `config`, and pass on what it prints; return the invocation. Raises NewskillsError
    where it fails."""
    invocation_id = ""

    def read_line(line: str) -> None:
        nonlocal invocation_id
        say(line)
        if invocation := _INVOCATION.search(line):
            invocation_id = invocation[1]

    if code := _run_config(program, config, (), environ, read_line):
        raise NewskillsError(f"{PROGRAM} ended with exit code {code}.", hint=f"Its config was {config}.")
    if not invocation_id:
        raise NewskillsError(f"{PROGRAM} printed no invocation id.", hint=f"Its config was {config}.")
    return invocation_id


def ask_dry_run(program: str, config: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Let the launcher say what it would do with `config`. Raises NewskillsError where it refuses it."""
    say(f"{PROGRAM} run --dry-run:")
    words = ("--dry-run", f"--config-output={config.parent}")
    if code := _run_config(program, config, words, environ, say):
        raise NewskillsError(f"{PROGRAM} refuses this configuration: its dry run ended with exit code {code}.")


def _run_config(
    program: str, config: Path, words: Sequence[str], environ: Mapping[str, str], say: Callable[[str], None]
) -> int:
    """Run the launcher on `config`, hand on what it prints, and return its exit code."""
    with subprocess.Popen(
        [program, "run", "--config", str(config), "--config-mode", "raw", *words],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            say(line.rstrip("\n"))
    return process.returncode


def run_launcher(program: str, words: Sequence[str]) -> int:
    """Run the launcher in the foreground, and return its exit code."""
    return subprocess.run([program, *words], check=False).returncode


def _capture_output(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines() or ["it printed nothing"]
    return lines[-1]
