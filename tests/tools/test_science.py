# SPDX-License-Identifier: Apache-2.0
"""Tools over packages of the sciences: against values that textbooks have, and what models get wrong."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest
from tests.tools.test_toolbox import box, specs, use

from newskills.base.errors import ConfigError, ToolError
from newskills.tools import science

PACKAGES = {
    "periodictable": "periodictable",
    "coolprop": "CoolProp",
    "particle": "particle",
    "radioactivedecay": "radioactivedecay",
}
THEIRS = "nemo_skills.mcp.servers.particle_tool::ParticleTool"


def said(tool: str, name: str, **arguments: Any) -> str:
    """What a model is told."""
    pytest.importorskip(PACKAGES[tool], reason=f"no {PACKAGES[tool]} here: pip install {PACKAGES[tool]}")

    async def work(toolbox: Any) -> str:
        return str(await toolbox.execute(name, arguments, "r"))

    return str(use(box(tool), work))


@pytest.mark.parametrize(
    ("tool", "name", "arguments", "parts"),
    [
        ("periodictable", "element-info", {"element": "iron"}, ("Atomic number: 26", "55.845", "Fe-56 (91.75 %)")),
        ("periodictable", "element-info", {"element": "92"}, ("uranium (U)", "238.02891")),
        ("periodictable", "isotope-info", {"element": "U", "mass_number": 235}, ("U-235", "235.0439")),
        (
            "coolprop",
            "fluid-property",
            {"fluid": "Water", "output_property": "D", "temperature": 300, "pressure": 101325},
            ("996.55",),
        ),
        ("coolprop", "fluid-list", {}, ("Nitrogen", "R134a")),
        (
            "particle",
            "particle-lookup",
            {"name_or_id": "211"},
            ("pi+ (PDG 211)", "139.57", "Lifetime [ns]: 26.03", "Parity P: -\nQuarks: uD"),
        ),
        ("particle", "particle-search", {"query": "K*"}, ("particles, the first 10", "K*(892)0")),
        ("radioactivedecay", "nuclide-info", {"nuclide": "Co-60"}, ("5.2713 y", "Ni-60 (1)", "β-")),
        ("radioactivedecay", "nuclide-info", {"nuclide": "Fe-56"}, ("stable",)),
        (
            "radioactivedecay",
            "decay-chain",
            {"nuclide": "Cs-137", "time": 30.1, "time_unit": "y"},
            ("Cs-137 [Bq]: 0.500771", "Ba-137m [Bq]: 0.47"),
        ),
    ],
)
def test_values(tool: str, name: str, arguments: dict[str, Any], parts: tuple[str, ...]) -> None:
    text = said(tool, name, **arguments)
    assert all(part in text for part in parts), text


@pytest.mark.parametrize(
    ("tool", "name", "arguments", "why"),
    [
        ("periodictable", "element-info", {"element": "unobtainium"}, "no element 'unobtainium'"),
        ("periodictable", "isotope-info", {"element": "H", "mass_number": 99}, "no isotope H-99"),
        (
            "coolprop",
            "fluid-property",
            {"fluid": "Wather", "output_property": "D", "temperature": 300, "pressure": 1e5},
            "CoolProp cannot calculate this",
        ),
        (
            "coolprop",
            "fluid-property",
            {"fluid": "Water", "output_property": "D", "temperature": -1, "pressure": 1e5},
            "The arguments do not fit",
        ),
        ("particle", "particle-lookup", {"name_or_id": "pion"}, "no particle 'pion'"),
        ("radioactivedecay", "nuclide-info", {"nuclide": "Xx-1"}, "no data of 'Xx-1'"),
        ("radioactivedecay", "decay-chain", {"nuclide": "H-3", "time": 1, "time_unit": "week"}, "time unit"),
    ],
)
def test_what_is_wrong_is_told_to_the_model(tool: str, name: str, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        said(tool, name, **arguments)


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(science, "find_spec", lambda name: None)
    for tool, package in PACKAGES.items():
        with pytest.raises(ConfigError, match=f"Run: pip install {package}$"):
            box(tool)
    with pytest.raises(ConfigError, match="Run: pip install particle"):
        box(THEIRS)


def test_what_models_are_told_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Descriptions come from the functions, which import their packages when they are called."""
    monkeypatch.setattr(science, "find_spec", lambda name: True)
    described = {spec.name: spec for spec in specs(box(*PACKAGES))}
    assert set(described) == {
        *("element-info", "isotope-info", "fluid-property", "fluid-list"),
        *("particle-lookup", "particle-search", "nuclide-info", "decay-chain"),
    }
    schema = described["decay-chain"].input_schema
    assert (schema["required"], schema["properties"]["time_unit"]["default"]) == (["nuclide", "time"], "s")
    assert not any(importlib.util.find_spec(name) is None and name in sys.modules for name in PACKAGES.values())


def test_a_function_of_a_package_raises_what_models_may_know() -> None:
    pytest.importorskip("particle", reason="no particle here: pip install particle")
    with pytest.raises(ToolError):
        science.particle_search("no such name at all")
