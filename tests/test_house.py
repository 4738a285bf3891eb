# SPDX-License-Identifier: Apache-2.0
"""How the source is laid out: no circles of imports, no crowded folders, no exception swallowed unsaid, a command where
its words say."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import newskills
from newskills._api.applications import FOR_APPLICATIONS
from newskills._api.public import PUBLIC
from newskills.base.libraries import APPLICATIONS, LIBRARIES, library_source
from newskills.benchmarks.generate_catalog import NO_CATEGORIES
from newskills.commands.command import resolve_function
from newskills.commands.loading import load_command
from newskills.commands.table import GROUPS, command_names, module_of

ROOT = Path(newskills.__file__).parent
REPOSITORY = ROOT.parents[1]
PACKAGES = (ROOT, *(ROOT.parent / name for name in (*LIBRARIES, *APPLICATIONS)))
"""Ours: newskills, and the libraries that come along."""
MOST = 25
"""Python files beside each other."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def source_files(root: Path) -> list[Path]:
    """Files of a package, with those of the folders in it that are links (`newskills.aimo`)."""
    folders = os.walk(root, followlinks=True)
    return sorted(Path(folder, name) for folder, _, names in folders for name in names if name.endswith(".py"))


FILES = {module_name(path): path for root in PACKAGES for path in source_files(root)}


class Facts(NamedTuple):
    """What the rules ask of a module, found in one walk: modules that it names in any import, those that are loaded
    with it, classes, and variables and parameters of functions that say nothing."""

    imports: set[str]
    loads: set[str]
    classes: list[str]
    fillers: set[str]


@cache
def facts(name: str) -> Facts:
    package = name.split(".") if FILES[name].name == "__init__.py" else name.split(".")[:-1]
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    return Facts(
        imports=_imports(nodes, package) & FILES.keys() - {name},
        loads=_imports(tree.body, package) & FILES.keys() - {name},
        classes=[node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_")],
        fillers=fillers(nodes),
    )


def _imports(nodes: Iterable[ast.AST], package: Sequence[str]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # what is no module is a name in the module that it is imported from
            names |= {whole if (whole := f"{base}.{alias.name}") in FILES else base for alias in node.names}
    return names


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Sets of modules each of which imports, by way of others, itself: first who imports nobody is left out."""
    left = dict(graph)
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    reach = {name: _reached(name, left) for name in left}
    groups = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in left}
    return sorted(list(group) for group in groups if group)


def _reached(name: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for target in graph[waiting.pop()] & graph.keys() - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert "newskills.commands.command" in facts("newskills.commands.loading").imports  # for types only
    assert (
        "newskills.pipelines.start.benchmark_list" in facts("newskills.commands.loading").imports
    )  # within a function


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles({name: facts(name).imports for name in FILES}) == []


def test_what_names_the_libraries_names_all() -> None:
    """Settings of tools that know no patterns, links, and the packages that go along with jobs."""
    libraries, applications = (
        sorted(path.name for path in (REPOSITORY / place).iterdir()) for place in ("libs", "apps")
    )
    packages = [name.replace("-", "_") for name in (*libraries, *applications)]
    assert [*sorted(LIBRARIES), *sorted(APPLICATIONS)] == packages
    assert [os.readlink(ROOT.parent / name) for name in packages] == [
        f"../{library_source(name)}" for name in packages
    ]
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["hatch"]["build"]["targets"]["wheel"]["packages"][2:] == [f"src/{name}" for name in packages]
    tests = [*(f"libs/{name}/tests" for name in libraries), *(f"apps/{name}/tests" for name in applications)]
    assert settings["mypy"]["mypy_path"].split(":") == ["src", *tests]
    assert settings["coverage"]["run"]["source"] == ["newskills", *packages]
    assert settings["importlinter"]["root_packages"] == ["newskills", *packages]
    contracts = {contract["name"]: contract for contract in settings["importlinter"]["contracts"]}
    libraries_alone = contracts["The libraries know nothing of the rest"]
    assert libraries_alone["source_modules"] == packages[: len(libraries)]
    assert libraries_alone["forbidden_modules"] == ["newskills", *packages[len(libraries) :]]
    core = contracts["newskills knows nothing of the applications"]
    assert core["forbidden_modules"] == packages[len(libraries) :]


def test_applications_import_what_is_meant_for_them() -> None:
    """Public modules, and those of a list that has no others."""
    own = (*APPLICATIONS, "newskills.aimo", "newskills.interop")
    names = [name for name in FILES if name.startswith(own)]
    imported = {module for name in names for module in facts(name).imports if not module.startswith(own)}
    assert {name for name in imported - PUBLIC.keys() if name.startswith("newskills.")} == FOR_APPLICATIONS


def test_no_folder_is_crowded() -> None:
    tests = REPOSITORY / "tests"
    folders = [path for root in (*PACKAGES, tests) for path in (root, *root.rglob("*")) if path.is_dir()]
    crowded = {folder for folder in folders if sum(file.suffix == ".py" for file in folder.iterdir()) > MOST}
    categories = {path for path in (ROOT / "benchmarks").iterdir() if path.is_dir()}
    categories -= {ROOT.parent.joinpath(*name.split(".")) for name in NO_CATEGORIES}
    assert crowded <= categories | {tests / "agreement/cases"}, "a file for each benchmark, and nothing else"


BROAD = {"Exception", "BaseException", "BaseExceptionGroup", "ExceptionGroup"}
WHY = re.compile(r"# noqa: BLE001 - (\S+ +){2}\S")


def broad_handlers(text: str) -> list[int]:
    """Lines of handlers that take any exception and neither raise at their end nor say why (ruff's own comment)."""
    lines = text.splitlines()
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler | ast.Call)
        and _is_broad(node)
        and not _raises_at_its_end(node)
        and not WHY.search(lines[node.lineno - 1])
    ]


def _is_broad(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        return node.type is None or any(ast.unparse(kind) in BROAD for kind in _kinds(node.type))
    if isinstance(node, ast.Call) and "suppress" in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
        return any(ast.unparse(kind) in BROAD for kind in node.args)
    return False


def _kinds(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _raises_at_its_end(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and isinstance(node.body[-1], ast.Raise)


@pytest.mark.parametrize(
    ("handler", "broad"),
    [
        ("except Exception:\n pass", True),
        ("except (OSError, BaseException) as error:\n log(error)", True),
        ("except:\n pass", True),
        ("except Exception:  # noqa: BLE001\n pass", True),
        ("except Exception:  # noqa: BLE001 - a plug-in may raise anything\n pass", False),
        ("except BaseException:\n close()\n raise", False),
        ("except OSError:\n pass", False),
        ("finally:\n with suppress(Exception):\n  close()", True),
    ],
)
def test_broad_handlers_are_found(handler: str, broad: bool) -> None:
    assert bool(broad_handlers(f"try:\n work()\n{handler}")) == broad


def test_no_exception_is_swallowed_without_a_reason() -> None:
    swallowing = {
        name: lines for name, path in FILES.items() if (lines := broad_handlers(path.read_text(encoding="utf-8")))
    }
    assert swallowing == {}


HEAVY = (
    "newskills.run.engine",
    "newskills.run.evaluate",
    "newskills.graders.",
    "newskills.benchmarks.data",
    "newskills.models.tokenizer",
    "newskills_math.verdict",
)
"""What works loads these; what only describes a command does not, so that its help comes at once."""


def test_help_loads_nothing_that_works() -> None:
    graph = {name: facts(name).loads for name in FILES}
    loaded = {name: _reached(module_of(name), graph) for name in command_names()}
    assert "newskills.run.engine.build" in _reached("newskills.pipelines.training.methods.sft", graph)
    heavy = {
        name: sorted(module for module in modules if module.startswith(HEAVY)) for name, modules in loaded.items()
    }
    assert {name: modules for name, modules in heavy.items() if modules} == {}


@pytest.mark.parametrize("name", command_names())
def test_a_command_is_where_its_words_say(name: str) -> None:
    command = load_command(name)
    assert command.name == name
    assert module_of(name) in FILES
    for function in (command.run, command.result, command.prepare, command.more_help):
        assert function is None or callable(resolve_function(function))


WITH_FUNCTIONS = {
    "commands/evaluate": "of newskills_evaluator: reads words as Hydra does",
    "jobs/plan": "runs another command",
    "jobs/rehearse": "runs another command",
    "jobs/run_cmd": "reads the words of a command of the user's",
    "shell/completion": "reads half a command line",
}
"""Files of commands that do more than to name options and a function of pipelines, and why."""


def test_commands_name_options_and_one_function_of_pipelines() -> None:
    rooms = [path for path in (ROOT / "commands").iterdir() if path.is_dir()]
    working = {
        f"{room.name}/{path.relative_to(room).with_suffix('')}"
        for room in (*rooms, *(ROOT.parent / name / "commands" for name in APPLICATIONS))
        for path in room.glob("**/*.py")
        if re.search(r"^ *def ", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert working == WITH_FUNCTIONS.keys()


def test_rooms_are_the_groups_of_the_help() -> None:
    rooms = {path.name for path in (ROOT / "commands").iterdir() if (path / "__init__.py").is_file()}
    assert rooms == {*GROUPS, "shared"}


DOCS = ROOT.parents[1] / "docs"


def names_of_files(page: str) -> set[str]:
    return set(re.findall(r"`([\w/]+(?:\.py|/))`", (DOCS / page).read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_pages_on_the_source_name_what_exists(page: str) -> None:
    assert [name for name in sorted(names_of_files(page)) if not (ROOT / name).exists()] == []


def test_the_page_on_the_architecture_names_all_rooms() -> None:
    folders = {f"{path.name}/" for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    rooms = {f"run/{path.name}/" for path in (ROOT / "run").iterdir() if (path / "__init__.py").is_file()}
    assert folders | rooms <= names_of_files("architecture.md")


def rows_of_how_to_add() -> dict[str, str]:
    """What is added → where, as CONTRIBUTING tells it."""
    text = (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## How to add")[2].partition("## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    return {what.strip(): f"{where.strip()} | {then.strip()}" for what, where, then in rows}


@pytest.mark.parametrize("what", rows_of_how_to_add())
def test_where_something_is_added_is_a_folder_or_a_file_that_exists(what: str) -> None:
    words = re.findall(r"`([^`]+)`", rows_of_how_to_add()[what])
    paths = [word.partition("<")[0] for word in words if re.fullmatch(r"[\w/<>.]+", word) and "/" in word]
    assert [path for path in paths if not any((root / path).exists() for root in (ROOT.parents[1], ROOT))] == []
    assert any(path.startswith(("src/newskills", "tests/agreement/")) for path in paths)
    for name in (word for word in words if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+\.[A-Z]\w+", word)):
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(f"newskills.{module}"), attribute), name


@pytest.mark.parametrize("what", rows_of_how_to_add())
def test_a_registry_that_gets_a_row_is_in_the_file_beside_its_name(what: str) -> None:
    for registry, file in re.findall(r"`([A-Z]+)`(?: \(| of )`([\w/.]+)`", rows_of_how_to_add()[what]):
        path = next(path for root in (ROOT.parents[1], ROOT) if (path := root / file).exists())
        module = import_module(module_name(path))
        assert hasattr(module, registry), (registry, file)


PLACE = re.compile(
    r"\b(?:one (?:file|YAML)|a (?:file|folder|room|row|line|name)|its (?:name|address)|the struct)\b"
)
"""How the table says that something is written or changed somewhere."""


@pytest.mark.parametrize("what", rows_of_how_to_add())
def test_what_is_added_touches_three_places_at_most(what: str) -> None:
    """Code and row; what is done then, a test mostly, is the third."""
    where, _, then = rows_of_how_to_add()[what].partition(" | ")
    assert 1 <= len(PLACE.findall(where)) <= 2, where
    assert then


FILLERS = {"found", "one", "said", "told", "asked", "given", "known"}
"""Variables and parameters are called by what they hold."""


_FUNCTION_WORDS = """
accented adjusted aligned anything anywhere apart assembled balanced bearable behind bounded carried classified
completed concluded conclusive constrained contained converted covered decrypted dedented delegated delivered detected
different differing distinct doubled embedded enclosed every exactly exchanged executed expanded exported falling
faulty fenced filtered headed hosted imported leftmost lettered linked longer longest loose mixed multiplied muted
nearest never newer normal normalised noted numerically other outermost outside paired parted pinned primed
proportional received reducible refuted released reliable renamed renotated renumbered satisfied served settled shaped
shorter sniffed soft sparse spelled spoken staging steep stripped styled symbolically tagged then thinned tidied
titled touched turned twice undecorated undone undressed unescaped unjudged unmarked unmerged unpacked unquoted
unreachable usable usual yes zipped
"""
FILLER_FUNCTIONS = frozenset(_FUNCTION_WORDS.split())
"""A function is called by what it does or returns."""
_CONSTANT_WORDS = """
ALIVE BURST CALM FLOOD GAIN GROWTH LAG LARGE LATE MAKING NOW_AND_THEN ONCE ORDINARY PERSIST QUICK
REST STALE STEEPEST STRONG TELLTALES TOLERANT TROUBLE UNPLACED UNSURE USABLE YOUNG
"""
FILLER_CONSTANTS = frozenset(_CONSTANT_WORDS.split())
"""A constant says quantity, role and unit."""


def fillers(nodes: Sequence[ast.AST]) -> set[str]:
    """Variables and parameters of functions; fields of classes may be words of a format. With an underscore, too,
    functions and constants."""
    bodies = [node.body for node in nodes if isinstance(node, ast.ClassDef)]
    fields = {id(item.target) for body in bodies for item in body if isinstance(item, ast.AnnAssign)}
    names = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    functions = {
        node.name.strip("_") for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    constants = {node.id.strip("_") for node in names}
    bad = (functions & FILLER_FUNCTIONS) | (constants & FILLER_CONSTANTS)
    return bad | FILLERS & (parameters | {node.id for node in names if id(node) not in fields})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(told): pass", {"told"}),
        ("async def _titled(name): pass", {"titled"}),
        ("def _undressed(text): pass", {"undressed"}),
        ("_STEEPEST = 0.1", {"STEEPEST"}),
        ("def title(name): MIN_RATE_SHARE = 0.1", set()),
    ],
)
def test_names_that_say_nothing_are_found(text: str, words: set[str]) -> None:
    assert fillers(list(ast.walk(ast.parse(text)))) == words


def test_variables_are_called_by_what_they_hold() -> None:
    bad = {name: facts(name).fillers for name in FILES}
    assert {name: words for name, words in bad.items() if words} == {}


_NO_TERM = re.compile(r"\b(?:rungs?|mend(?:s|ed|ing)?)\b", re.IGNORECASE)
_LISTS_OF_WORDS = {"newskills/graders/instructions/verbs.py", "newskills/benchmarks/ruler/words.py"}


def test_words_that_nobody_searches_for_stand_nowhere() -> None:
    """CONTRIBUTING has the better ones; here are those that came back."""
    files = {path.relative_to(ROOT.parent).as_posix(): path for path in FILES.values()}
    pages = {path.name: path for path in (ROOT.parents[1] / "docs").glob("*.md")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in (files | pages).items()}
    bad = {name: _NO_TERM.findall(text) for name, text in texts.items() if name not in _LISTS_OF_WORDS}
    assert {name: words for name, words in bad.items() if words} == {}


SHARED_NAMES = {
    "Options": "of each command, in its own file",
    "Command": "what is typed; what a job runs; NeMo-Skills' word in Python plans",
    "CommandGroup": "NeMo-Skills' word in Python plans",
    "Model": "what answers, which plug-ins write; its name and server, in Python calls",
    "Pipeline": "NeMo-Skills' word in Python plans",
    "Checkpoint": "of the loops, and of the recipes that drive Tinker",
    "Group": "of benchmarks, which users write; of answers to one problem, as GRPO calls it",
    "Progress": "of a run; of a training loop",
    "SandboxError": "of the library; the core's is a subclass, in its own family",
    "ExecutionRefusedError": "likewise",
    "Sandbox": "what runs code, which plug-ins get; of the library, for ordinary Python",
    "Steps": "of the loops, and of the recipes that drive Tinker",
}
"""Classes that may have one name in several places, and why."""


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for name in FILES:
        for class_name in facts(name).classes:
            places.setdefault(class_name, []).append(name)
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in SHARED_NAMES} == {}
