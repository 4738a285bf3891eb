# SPDX-License-Identifier: Apache-2.0
"""What the generated catalog knows of benchmarks, and where else they are looked for. Imports no benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from newskills.base.errors import UnknownNameError
from newskills.base.registry import fold

if TYPE_CHECKING:
    from newskills.base.benchmark import Benchmark, Group
    from newskills.base.lm_eval.building import HarnessWishes
    from newskills.benchmarks.files.words import TableWords

CATALOG = Path(__file__).with_name("catalog.jsonl")
"""One entry a line, written by `python -m newskills.benchmarks.generate_catalog`."""
ENTRY_POINTS = "newskills.benchmarks"

State = Literal["not verified", "differs here", "schema checked", "verified", "checked here"]
"""How far a benchmark is proven against its live source, from the least to the most."""

STATES: tuple[State, ...] = get_args(State)

STATE_MEANING: dict[State, str] = {
    "not verified": "written from the source's documentation and tried only on rows of that form: its live source "
    "could not be reached, so fields may be named differently there, or rows may have changed",
    "differs here": "checked on this machine when it was prepared from its live source, with differences: "
    "ns prepare_data NAME shows them",
    "schema checked": "compared with a public card, loading script or code that names fields, configurations and "
    "splits: its page says which",
    "verified": "rows of the source were prepared and graded when it was added",
    "checked here": "checked on this machine when it was prepared from its live source, without a difference",
}
"""What each state means, in lists and on pages."""


class BenchmarkPlaces(NamedTuple):
    """Where else benchmarks are looked for: a map of names, a data directory with packages in it, folders of them, and
    `objects` of this process by their names, which win over all others; `words`: what is said of files of
    questions; `wishes`: of tasks of lm_eval."""

    extra: str | Path | Mapping[str, str] | None
    data_dir: Path
    folders: tuple[Path, ...] = ()
    objects: Mapping[str, Benchmark | Group] = MappingProxyType({})
    words: TableWords | None = None
    wishes: HarnessWishes | None = None


Extra = str | Path | Mapping[str, str] | BenchmarkPlaces


class CatalogEntry(NamedTuple):
    """What the catalog knows of a benchmark, or of a group, which has `members`.

    `items` = rows of the default split, 0 = not counted; `evidence`: what was compared is known; `data`: benchmark
    whose prepared rows it shares; `judge`: its usual judge, "" = the user names one; `keys`: variables that hold them.
    """

    name: str
    aliases: tuple[str, ...]
    category: str
    module: str
    title: str
    split: str
    items: int
    prompt: str
    grader: str
    metric: str
    licence: str
    requires: str
    needs_sandbox: bool
    members: tuple[str, ...] = ()
    verified: bool = True
    evidence: bool = False
    data: str = ""
    judge: str | None = None
    keys: tuple[str, ...] = ()

    def needs(self) -> list[str]:
        """Return what is needed beside a model and the bare installation: packages, the sandbox, a judge, keys."""
        needs: list[str] = []
        if self.requires:
            needs.append(self.requires)
        if self.needs_sandbox:
            needs.append("sandbox")
        if self.judge:
            needs.append(f"judge ({self.judge})")
        elif self.judge is not None:
            needs.append("judge")
        return [*needs, *self.keys]


def list_benchmarks(category: str | None = None) -> list[CatalogEntry]:
    """Return the built-in benchmarks, by category and name. Raises UnknownNameError for an unknown category."""
    return [entry for entry in list_all(category) if not entry.members]


def list_all(category: str | None = None) -> list[CatalogEntry]:
    """Return the built-in benchmarks and the groups, whose entries have `members`; the category `group` is all of
    those.

    Raises UnknownNameError for a category that is not there.
    """
    listed = list(catalog_entries())
    if category is None:
        return listed
    wanted = fold(category)
    chosen = [entry for entry in listed if fold(entry.category) == wanted or (wanted == "group" and entry.members)]
    if not chosen:
        raise UnknownNameError("category", category, {"group", *(entry.category for entry in listed)})
    return chosen


@cache
def catalog_entries() -> tuple[CatalogEntry, ...]:
    """Return all entries; read once, since looking for a name that there is not asks for them several times."""
    with CATALOG.open(encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        return tuple(CatalogEntry._make(tuple(v) if isinstance(v, list) else v for v in row) for row in rows)


def state_of(entry: CatalogEntry, root: Path) -> State:
    """Return how far the benchmark is verified, also by checks of rows below `root`; of a group: its least
    verified member."""
    if entry.members:
        by_name = _by_name()
        states = [state_of(by_name[member], root) for member in entry.members if member in by_name]
        return min(states, key=STATES.index, default="not verified")
    if (passed := check_passed(entry, root)) is not None:
        if passed:
            return "checked here"
        return "differs here"
    if entry.verified:
        return "verified"
    if entry.evidence:
        return "schema checked"
    return "not verified"


def check_passed(entry: CatalogEntry, root: Path) -> bool | None:
    """Return whether the check of the prepared default split found no differences; None where there is no record of one
    that can be read."""
    from newskills.benchmarks.folders import check_file, folder_of

    rows = folder_of(entry.data or entry.name, root) / f"{entry.split}.jsonl"
    try:
        text = check_file(rows, entry.name, shared=bool(entry.data)).read_bytes()
    except OSError:
        return None
    try:
        return not json.loads(text)["differences"]
    except (ValueError, KeyError, TypeError):
        return None


@cache
def _by_name() -> dict[str, CatalogEntry]:
    return {entry.name: entry for entry in catalog_entries()}
