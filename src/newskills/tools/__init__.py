# SPDX-License-Identifier: Apache-2.0
"""What a model may call. One file per tool; names, and how the tools of a run are made from its settings.

Add a tool: a file with a provider (`provider.ToolProvider`) and a row in `TOOLS`, the entry point `newskills.tools`
of another distribution, or just a path: `++tool_modules=[./mine.py::roll]`.
"""

from __future__ import annotations

from collections.abc import Sequence

from newskills.base.registry import Registry, fold

_SERVERS = "nemo_skills.mcp.servers"

REFERENCE = {
    f"{_SERVERS}.python_tool::PythonTool": "python",
    f"{_SERVERS}.python_tool::DirectPythonTool": "python",
    f"{_SERVERS}.tavily_search_tool::TavilySearchTool": "tavily",
    f"{_SERVERS}.tavily_search_tool::DirectTavilySearchTool": "tavily",
    f"{_SERVERS}.exa_tool::ExaTool": "exa",
    f"{_SERVERS}.periodictable_tool::PeriodictableTool": "periodictable",
    f"{_SERVERS}.coolprop_tool::CoolPropTool": "coolprop",
    f"{_SERVERS}.particle_tool::ParticleTool": "particle",
    f"{_SERVERS}.radioactivedecay_tool::RadioactivedecayTool": "radioactivedecay",
    f"{_SERVERS}.arxiv_tool::ArxivSearchTool": "arxiv",
    f"{_SERVERS}.wikipedia_tool::WikipediaSearchTool": "wikipedia",
    f"{_SERVERS}.web.arxiv_tool::ArxivSearchTool": "arxiv",
    f"{_SERVERS}.web.wikipedia_tool::WikipediaSearchTool": "wikipedia",
    f"{_SERVERS}.chemistry.periodictable_tool::PeriodictableTool": "periodictable",
    f"{_SERVERS}.physics.coolprop_tool::CoolPropTool": "coolprop",
    f"{_SERVERS}.physics.particle_tool::ParticleTool": "particle",
    f"{_SERVERS}.physics.radioactivedecay_tool::RadioactivedecayTool": "radioactivedecay",
}
"""How older commands name tools → what they are called here."""

TOOLS = Registry(
    "tool",
    {
        "python": "newskills.tools.python:PythonTool",
        "mcp": "newskills.tools.mcp:McpTool",
        "tavily": "newskills.tools.web_search:TavilySearchTool",
        "exa": "newskills.tools.web_search:ExaTool",
        "arxiv": "newskills.tools.literature:ArxivSearchTool",
        "wikipedia": "newskills.tools.literature:WikipediaSearchTool",
        "periodictable": "newskills.tools.science:PeriodictableTool",
        "coolprop": "newskills.tools.science:CoolPropTool",
        "particle": "newskills.tools.science:ParticleTool",
        "radioactivedecay": "newskills.tools.science:RadioactivedecayTool",
    },
    group="newskills.tools",
)


def split_name(module: str) -> tuple[str, str]:
    """Split `NAME=tool` into (NAME, tool); a tool without a name of its own has the name ""."""
    name, mark, spec = module.partition("=")
    if mark and name.isidentifier():
        return (name, spec)
    return ("", module)


def runs_code(modules: Sequence[str]) -> bool:
    """Return whether one of the built-in tools that `modules` name runs code of the model."""
    specs = [split_name(module)[1] for module in modules]
    return any(fold(REFERENCE.get(spec, spec)) == "python" for spec in specs)
