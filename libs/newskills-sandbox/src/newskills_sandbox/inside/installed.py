# SPDX-License-Identifier: Apache-2.0
"""What an interpreter can import, told by itself: where it keeps things, and which files belong to a distribution."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import sysconfig
from importlib import metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

SITES = ("site-packages", "dist-packages")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def main(job: str) -> None:
    """Print, as JSON, what `job` asks for: {"preload": modules, "packages": names of distributions or
    null} as JSON."""
    request = json.loads(job)
    json.dump(facts(request["preload"], request["packages"]), sys.stdout)


def facts(preload: Sequence[str], packages: Sequence[str] | None) -> dict[str, Any]:
    """Return places, path: what the interpreter needs to see. missing: modules of `preload` that it does not have.

    With `packages`: shown (site folder → entries), unknown (names not installed there), hidden (modules of `preload`
    that these do not bring).
    """
    places = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, sysconfig.get_path("stdlib")]
    path = [each for each in sys.path if each and _is_inside(each, places)]
    shown: dict[str, list[str]] = {}
    unknown: list[str] = []
    if packages is not None:
        shown, unknown = _shown_entries(packages, [each for each in path if os.path.basename(each) in SITES])
    present = {entry.split(".")[0] for entries in shown.values() for entry in entries} | sys.stdlib_module_names
    tops = {module: module.split(".")[0] for module in preload}
    return {
        "places": places,
        "path": path,
        "missing": [module for module, top in tops.items() if importlib.util.find_spec(top) is None],
        "shown": shown,
        "unknown": unknown,
        "hidden": [module for module, top in tops.items() if packages is not None and top not in present],
    }


def _is_inside(path: str, places: Iterable[str]) -> bool:
    """Return whether a file belongs to a distribution; not so the sources of an editable installation, which may lie
    among a user's other files."""
    return os.path.basename(path) in SITES or any(path.startswith(place + os.sep) for place in places)


def _shown_entries(names: Iterable[str], sites: Iterable[str]) -> tuple[dict[str, list[str]], list[str]]:
    entries: dict[str, set[str]] = {os.path.realpath(site): set() for site in sites if os.path.isdir(site)}
    unknown = []
    for name, distribution in _required_distributions(names).items():
        site, modules = _site_entries(distribution) if distribution else ("", set())
        if not modules and name in names:
            unknown.append(name)
        if site in entries:
            entries[site] |= modules
    return {site: sorted(modules_of_site) for site, modules_of_site in entries.items()}, unknown


def _required_distributions(names: Iterable[str]) -> dict[str, metadata.Distribution | None]:
    """Return the distributions and all that they require here; None for those that are not installed."""
    distributions: dict[str, metadata.Distribution | None] = {}
    seen: set[str] = set()
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        folded = re.sub(r"[-_.]+", "-", name).lower()
        if folded in seen:
            continue
        seen.add(folded)
        try:
            distribution = distributions[name] = metadata.distribution(name)
        except (metadata.PackageNotFoundError, ValueError):
            distributions[name] = None
        else:
            wanted += filter(None, map(_required_name, distribution.requires or ()))
    return distributions


def _required_name(line: str) -> str:
    """Return the name in a requirement; empty where it belongs to an extra or to another machine."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        match = _NAME.match(line)
        if match and "extra" not in line.partition(";")[2]:
            return match.group()
        return ""
    requirement = Requirement(line)
    applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    if applies:
        return str(requirement.name)
    return ""


def _site_entries(distribution: metadata.Distribution) -> tuple[str, set[str]]:
    """Return the site folder and the names that the distribution has put into it; no names where it has put only its
    metadata there."""
    site = os.path.realpath(str(distribution.locate_file("")))
    tops = {file.parts[0] for file in distribution.files or ()}
    tops |= {
        top for name in (distribution.read_text("top_level.txt") or "").split() for top in (name, f"{name}.py")
    }
    names_of_modules = {
        top
        for top in tops
        if top not in ("..", "/", "__pycache__") and not top.endswith(".pth") and os.path.exists(f"{site}/{top}")
    }
    modules = {top for top in names_of_modules if not top.endswith((".dist-info", ".egg-info"))}
    module_names = names_of_modules if modules else set()
    return site, module_names
