# SPDX-License-Identifier: Apache-2.0
"""Draws mutants, runs the tests that reach their lines, and counts those that no test notices.

A place in the code is drawn, then one mutant of it, so that an expression with many operators counts as once. The
tests run in a copy of the checkout. Which of them reach a line is measured beforehand, by one run under coverage.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from bench.measure import RESULTS, ROOT, BenchError, Line, Options, scratch
from bench.peers import Peer, venv

COSMIC_RAY = Peer(name="cosmic-ray", shown="cosmic-ray 8.7.0", requirements=("cosmic-ray==8.7.0",))
SHARE = 80.0
"""Per cent of the mutants that tests must notice."""
SAMPLE, SEED = 60, 1
EQUIVALENT = Path(__file__).with_name("equivalent.json")
COSMIC = Path(__file__).with_name("cosmic.py")
RUNNER = Path(__file__).with_name("runner.py")
BITS = re.compile(r"core/ReplaceBinaryOperator_(?!Bit|LShift|RShift)\w+_(?:Bit\w+|LShift|RShift)$")
"""Bits of a float are a TypeError, which proves nothing of a test."""
_seconds = itertools.count(1)
"""Since 1970, for mutated files: Python compiles a file anew where its time is another."""
METRICS = ("documents", "judges", "logic_grid", "long_context", "long_text", "longfact", "measures", "option_set")
"""These, and some more, compute metrics of what their graders say."""
GRADER_TESTS = tuple(
    f"graders/{room}test_*.py"
    for room in ("", "choices/", "documents/", "judges/", "lean/", "math/", "reading/", "tau2/", "texts/")
)
MATH, LIBRARY_TESTS = "libs/newskills-math/src/newskills_math", "libs/newskills-math/tests"


class Area(Struct, frozen=True):
    """Glob patterns: `sources` below the checkout, `tests` below tests, `of_library` below the tests of the library."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    of_library: tuple[str, ...] = ()


AREAS: Mapping[str, Area] = {
    "stats": Area(("src/newskills/base/stats.py",), ("base/test_stats.py",)),
    "metrics": Area(
        ("src/newskills/metrics/**/*.py",),
        (
            *(
                "metrics/test_*.py",
                *(f"run/reporting/test_{name}.py" for name in ("voting", "summarize", "counted")),
            ),
            *(f"graders/**/test_{name}.py" for name in (*METRICS, "arena", "rubric", "tau2", "translation")),
            *("graders/instructions/test_multi_if.py", "solve/test_loglikelihood.py"),
        ),
    ),
    "records": Area(
        ("src/newskills/run/records/*.py",),
        ("run/records/test_*.py", "run/engine/test_engine.py", "run/reporting/test_texts.py"),
    ),
    "math": Area(
        (f"{MATH}/**/*.py", *(f"src/newskills/graders/{room}/*.py" for room in ("math", "voting"))),
        GRADER_TESTS,
        ("test_math_*.py", "test_api.py"),
    ),
    "graders": Area(
        tuple(f"src/newskills/graders/{room}*.py" for room in ("", "reading/", "instructions/", "tool_calls/")),
        (*GRADER_TESTS, "graders/instructions/test_*.py", "graders/tool_calls/test_*.py"),
    ),
}


class Mutant(Struct, kw_only=True):
    """A change that cosmic-ray makes, and what came of it: `before` and `after` are the lines that differ."""

    file: str
    operator: str
    occurrence: int
    line: int
    column: int
    definition: str = ""
    before: str = ""
    after: str = ""
    tests: int = 0
    status: Literal["", "killed", "survived", "equivalent"] = ""


class Equivalent(Struct, frozen=True, kw_only=True):
    """A mutant that does what the original does, with the reason why no test can tell them apart."""

    file: str
    before: str
    after: str
    reason: str


def bench(options: Options) -> Iterator[Line]:
    """One line for each area."""
    for name in AREAS:
        mutants = run_area(name, options.rows(SAMPLE), SEED)
        yield line_of(name, mutants)


def line_of(area: str, mutants: Sequence[Mutant]) -> Line:
    """The share of noticed mutants among those that a test could notice."""
    killed, survived = (sum(mutant.status == status for mutant in mutants) for status in ("killed", "survived"))
    share = 100 * killed / max(1, killed + survived)
    return Line(
        bench="mutation",
        what=f"mutants of {area} that tests notice",
        ours=share,
        unit="%",
        target=f"≥ {SHARE:.0f} %",
        met=share >= SHARE,
        note=f"{killed} of {killed + survived}, {len(mutants) - killed - survived} equivalent",
    )


def run_area(name: str, size: int, seed: int, only: str = "") -> list[Mutant]:
    """Draw `size` mutants of the area and run their tests; `only`: of files whose path holds this.

    Results also go to bench/results/mutation-NAME.json. Raises BenchError where the tests do not run unchanged.
    """
    area = AREAS[name]
    python = venv(COSMIC_RAY) / "python"
    with scratch() as folder:
        copy = copied(folder / "copy")
        sources = [path for path in files(copy, area.sources) if only in str(path)]
        paths = [*files(copy / "tests", area.tests), *files(copy / LIBRARY_TESTS, area.of_library)]
        tests = [str(path.relative_to(copy)) for path in paths]
        reached, failing = reach(copy, tests, sources)
        if failing:
            print(f"left out, since they fail without a mutant: {', '.join(sorted(failing))}", flush=True)
        known = msgspec.json.decode(EQUIVALENT.read_bytes(), type=list[Equivalent])
        mutants = []
        with Runner(copy) as runner:
            check_unchanged(runner, reached, failing)
            for mutant, mutated in drawn(python, copy, sources, random.Random(seed), size):
                covering = tests_of(reached.get(mutant.file, {}), mutant.line) - failing
                mutant.tests = len(covering)
                mutant.status = judged(copy, mutant, mutated, sorted(covering), known, runner)
                mutants.append(mutant)
                print(
                    f"{mutant.status:10} {mutant.file}:{mutant.line} {mutant.before} → {mutant.after}", flush=True
                )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"mutation-{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(mutants)))
    return mutants


def copied(folder: Path) -> Path:
    """The checkout's files, those that git does not know yet included."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return folder


def files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Files below `folder`, each once, in the order of their names."""
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.name != "__init__.py"})


def drawn(
    python: Path, copy: Path, sources: Sequence[Path], chance: random.Random, size: int
) -> list[tuple[Mutant, str]]:
    """At most `size` mutants with their sources, each of another place, that change what the program does."""
    by_place: dict[tuple[str, int, int], list[Mutant]] = {}
    names = [str(path.relative_to(copy)) for path in sources]
    for line in cosmic(python, copy, ["list", *names]):
        mutant = msgspec.json.decode(line, type=Mutant)
        if not BITS.match(mutant.operator):
            by_place.setdefault((mutant.file, mutant.line, mutant.column), []).append(mutant)
    places = sorted(by_place)
    chance.shuffle(places)
    wanted = [chance.choice(by_place[place]) for place in places[: 2 * size]]
    given = "".join(msgspec.json.encode(mutant).decode() + "\n" for mutant in wanted)
    found = []
    for mutant, line in zip(wanted, cosmic(python, copy, ["show"], given), strict=True):
        mutated, original = json.loads(line), (copy / mutant.file).read_text()
        if mutated and not same_program(original, mutated):
            mutant.before, mutant.after = changed_lines(original, mutated)
            found.append((mutant, mutated))
    return found[:size]


def cosmic(python: Path, copy: Path, words: Sequence[str], given: str = "") -> list[str]:
    """The lines that `cosmic.py` prints."""
    argv = [str(python), str(COSMIC), *words]
    done = subprocess.run(argv, cwd=copy, input=given, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def same_program(original: str, mutated: str) -> bool:
    """Whether they differ only in annotations that are never evaluated: those of functions and within them.

    What is no program at all, such as `not` before an assignment expression, is no mutant either.
    """
    try:
        ast.parse(mutated)
    except SyntaxError:
        return True
    return _without_annotations(original) == _without_annotations(mutated)


def _without_annotations(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            for inner in ast.walk(node):
                if isinstance(inner, ast.AnnAssign):
                    inner.annotation = ast.Constant(value=None)
        elif isinstance(node, ast.arg):
            node.annotation = None
    return ast.dump(tree)


def changed_lines(original: str, mutated: str) -> tuple[str, str]:
    """What the original says and what the mutant says, without the blanks around it."""
    changed = [
        line
        for line in difflib.unified_diff(original.splitlines(), mutated.splitlines(), n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    sides = ([line[1:].strip() for line in changed if line[0] == sign] for sign in "-+")
    before, after = (" ".join(filter(None, side)) for side in sides)
    return before, after


def reach(
    copy: Path, tests: Sequence[str], sources: Sequence[Path]
) -> tuple[dict[str, dict[int, set[str]]], set[str]]:
    """(file → line → tests that reach it, tests that fail anyway). Line 0 stands for those that run as it is imported.

    Raises BenchError where the tests do not run at all.
    """
    settings = copy / "coverage.ini"
    settings.write_text("[run]\ndata_file = reach.db\nsource =\n  src\n  libs\n")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "--cov",
        f"--cov-config={settings}",
        "--cov-context=test",
        "--cov-report=",
    ]
    argv = [*words, "-q", "-p", "no:cacheprovider", "-rfE", *tests]
    done = subprocess.run(argv, cwd=copy, env=environment(copy), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise BenchError(f"the tests do not run unchanged:\n{done.stdout[-2000:]}")
    failing = {
        _function(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))
    }
    reached = {str(path.relative_to(copy)): _lines(copy, path) for path in sources}
    return reached, failing


def _lines(copy: Path, source: Path) -> dict[int, set[str]]:
    from coverage.numbits import numbits_to_nums

    reached: dict[int, set[str]] = {}
    with sqlite3.connect(copy / "reach.db") as data:
        rows = data.execute(
            "select context.context, line_bits.numbits from line_bits join file on file.id = line_bits.file_id "
            "join context on context.id = line_bits.context_id where file.path = ?",
            (str(source),),
        )
        for context, numbits in rows:
            for line in numbits_to_nums(numbits):
                reached.setdefault(line, set()).update(filter(None, [_function(context.partition("|")[0])]))
    return reached


def _function(node: str) -> str:
    return node.partition("[")[0]


def check_unchanged(runner: Runner, reached: Mapping[str, Mapping[int, set[str]]], failing: set[str]) -> None:
    """Raises BenchError where tests fail in the runner without any mutant: all mutants would count as noticed."""
    tests = set().union(*(tests for lines in reached.values() for tests in lines.values())) - failing
    if code := runner.run(sorted(tests)):
        raise BenchError(f"the tests end with {code} in the runner, where nothing was changed")


def tests_of(reached: Mapping[int, set[str]], line: int) -> set[str]:
    """Those that reach the line; of a line that runs as its file is imported, all that reach the file."""
    return reached.get(line) or set().union(*reached.values())


def judged(
    copy: Path, mutant: Mutant, mutated: str, tests: Sequence[str], known: Sequence[Equivalent], runner: Runner
) -> Literal["killed", "survived", "equivalent"]:
    """Run the tests with the mutant in the place of its file."""
    here = (mutant.file, mutant.before, mutant.after)
    if any((equivalent.file, equivalent.before, equivalent.after) == here for equivalent in known):
        return "equivalent"
    if not tests:
        return "survived"
    path = copy / mutant.file
    original, times = path.read_bytes(), path.stat()
    path.write_text(mutated)
    os.utime(path, (0, next(_seconds)))
    try:
        code = runner.run(tests)
    finally:
        path.write_bytes(original)
        os.utime(path, (times.st_atime, times.st_mtime))
    return "survived" if code == 0 else "killed"


class Runner:
    """The process of `runner.py`, in a copy of the checkout."""

    def __init__(self, copy: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(RUNNER)],
            cwd=copy,
            env=environment(copy),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, tests: Sequence[str]) -> int:
        """The exit code of pytest. Raises BenchError where the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(list(tests)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise BenchError(f"the process that runs tests ended with {self._process.wait()}")
        return int(answer)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def environment(copy: Path) -> dict[str, str]:
    """That of a process which runs tests of the copy with the code of the copy."""
    paths = {"PYTHONPATH": f"{copy / 'src'}:{copy}", "HYPOTHESIS_PROFILE": "ci", "NEWSKILLS_TEST_FORKSERVER": "0"}
    return {**os.environ, **paths}


def main(argv: Sequence[str] | None = None) -> int:
    """0 where each area meets its target."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutation", description=__doc__)
    parser.add_argument("areas", nargs="*", choices=[[], *AREAS], help=f"default: {' '.join(AREAS)}")
    parser.add_argument("--sample", type=int, default=SAMPLE, help=f"mutants of each area (default {SAMPLE})")
    parser.add_argument("--seed", type=int, default=SEED, help="of the draw; another one draws other mutants")
    parser.add_argument("--only", default="", help="files whose path holds this")
    arguments = parser.parse_args(argv)
    lines = []
    for name in arguments.areas or AREAS:
        lines.append(line_of(name, run_area(name, arguments.sample, arguments.seed, arguments.only)))
        print(f"{name}: {lines[-1].ours:.1f} % of the mutants are noticed ({lines[-1].note})", flush=True)
    return int(any(line.met is False for line in lines))
