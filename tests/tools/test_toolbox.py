# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from newskills.base import aio
from newskills.base.errors import ConfigError, FatalToolError, SandboxError, ToolError, UnknownNameError
from newskills.base.protocols import Toolbox, ToolSpec
from newskills.tools import REFERENCE, TOOLS, runs_code, science
from newskills.tools.provider import ToolContext
from newskills.tools.toolbox import CUT, MAX_RESULT, ProviderToolbox, ToolSettings, make_toolbox

OWN = str(Path(__file__).with_name("own_tools.py"))


def box(*modules: str, environ: dict[str, str] | None = None, **settings: Any) -> ProviderToolbox:
    context = ToolContext(environ=environ or {})
    return make_toolbox(ToolSettings(modules=modules, **settings), context)


def use(toolbox: ProviderToolbox, work: Callable[[ProviderToolbox], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        try:
            await toolbox.open()
            return await work(toolbox)
        finally:
            await toolbox.close()

    return aio.run(main)


def specs(toolbox: ProviderToolbox) -> list[ToolSpec]:
    async def listed(box: ProviderToolbox) -> list[ToolSpec]:
        return list(box.specs())

    return use(toolbox, listed)


def call(toolbox: ProviderToolbox, name: str, **arguments: Any) -> str:
    async def work(box: ProviderToolbox) -> str:
        return await box.execute(name, arguments, "r")

    return use(toolbox, work)


def test_a_function_is_described_by_itself() -> None:
    (spec,) = specs(box(f"{OWN}::roll"))
    assert spec == ToolSpec(
        name="roll",
        description="Rolls a die. It always shows its highest number.",
        input_schema={
            "type": "object",
            "properties": {
                "sides": {"type": "integer", "description": "how many sides", "default": 6},
                "times": {"type": "integer", "default": 1},
            },
            "additionalProperties": False,
        },
    )
    assert call(box(f"{OWN}::roll"), "roll", sides=20, times=2.0) == "[20,20]"


def test_a_coroutine_with_nested_parameters() -> None:
    (spec,) = specs(box(f"{OWN}::distance"))
    assert spec.input_schema["properties"]["a"] == {"$ref": "#/$defs/Place"}
    assert spec.input_schema["$defs"]["Place"]["required"] == ["lat", "lon"]
    a, b = {"lat": 1, "lon": 2}, {"lat": 4, "lon": 2.5}
    assert call(box(f"{OWN}::distance"), "distance", a=a, b=b, unit="deg") == "3.5 deg"
    with pytest.raises(ToolError, match=r"missing required field `lon`"):
        call(box(f"{OWN}::distance"), "distance", a={"lat": 1}, b=b)


def test_the_failure_of_a_tool_is_a_sentence() -> None:
    with pytest.raises(ToolError, match="broken failed: ZeroDivisionError"):
        call(box(f"{OWN}::broken"), "broken", x=1)


def test_settings_names_keys_and_metrics() -> None:
    toolbox = box(
        f"tally={OWN}::Counter",
        f"{OWN}::roll",
        environ={"KEY": "s3cret"},
        overrides={"tally": {"start": 10, "step": "2", "key_variable": "KEY"}},
    )

    async def work(box: ProviderToolbox) -> Any:
        assert isinstance(box, Toolbox)
        texts = [await box.execute("count", {"by": 1}, "a") for _ in range(2)]
        texts.append(await box.execute("count", {"by": 1}, "b"))
        with pytest.raises(ToolError, match=r"There is no tool 'cuont'; did you mean 'count'\?"):
            await box.execute("cuont", {}, "a")
        with pytest.raises(ToolError, match="'by' is missing"):
            await box.execute("count", {}, "a")
        return texts, await box.release("a"), await box.release("a"), await box.release("b")

    texts, first, again, other = use(toolbox, work)
    assert texts == ["12 s3cret", "14 s3cret", "12 s3cret"]
    assert first.pop("tool_time") >= 0
    assert first == {"num_tool_errors": 2, "tally": {"counted": 14}}
    assert again == {"num_tool_errors": 0, "tool_time": 0.0}
    assert other["tally"] == {"counted": 12}


def test_what_ends_a_sample_passes() -> None:
    with pytest.raises(FatalToolError, match="Thirteen"):
        call(box(f"{OWN}::Counter"), "count", by=13)
    with pytest.raises(SandboxError, match="gone"):
        call(box(f"{OWN}::Counter"), "count", by=14)


def test_other_names_for_the_model() -> None:
    override = {"count": {"name": "add_up", "description": "Adds.", "parameters": {"by": {"name": "amount"}}}}
    override["count"]["parameters"]["note"] = {"description": "a word", "enum": ["a", "b"]}
    toolbox = box(f"{OWN}::Counter", schema_overrides={"Counter": override})
    (spec,) = specs(toolbox)
    assert spec == ToolSpec(
        name="add_up",
        description="Adds.",
        input_schema={
            "type": "object",
            "properties": {
                "amount": {"type": "integer"},
                "note": {"type": "string", "description": "a word", "enum": ["a", "b"]},
            },
            "required": ["amount"],
        },
    )
    assert (
        call(box(f"{OWN}::Counter", schema_overrides={"Counter": override}), "add_up", amount=3, note="a") == "3 a"
    )
    for wrong in ({"by": 3}, {"amount": 3, "note": "c"}):
        with pytest.raises(ToolError, match="do not fit"):
            call(box(f"{OWN}::Counter", schema_overrides={"Counter": override}), "add_up", **wrong)
    with pytest.raises(ToolError, match="no tool 'count'"):
        call(box(f"{OWN}::Counter", schema_overrides={"Counter": override}), "count", by=3)


def test_odd_names_are_made_fit_and_huge_results_are_cut() -> None:
    (spec,) = specs(box(f"{OWN}::Odd"))
    assert spec.name == ("s_k_p__nett_v2" + "x" * 80)[:64]
    assert spec.input_schema == {"type": "object", "properties": {}, "additionalProperties": True}
    assert call(box(f"{OWN}::Odd"), spec.name).startswith("søk.på/nett v2")
    text = call(box(f"{OWN}::Odd"), spec.name, huge=True)
    assert text == "y" * MAX_RESULT + CUT


def test_two_tools_of_one_name_are_refused_and_can_be_renamed() -> None:
    with pytest.raises(ConfigError, match=r"'count': Counter\.count and Second\.count.*schema_overrides\.Second"):
        specs(box(f"{OWN}::Counter", f"{OWN}::Second"))
    renamed = {"Second": {"count": {"name": "count_too"}}}
    both = specs(box(f"{OWN}::Counter", f"{OWN}::Second", schema_overrides=renamed))
    assert [spec.name for spec in both] == ["count", "count_too"]


@pytest.mark.parametrize(
    ("modules", "settings", "error", "words"),
    [
        (["pyton"], {}, UnknownNameError, "did you mean 'python'"),
        (["nemo_skills.mcp.servers.python_tool::PithonTool"], {}, UnknownNameError, "python_tool::PythonTool"),
        ([OWN], {}, ConfigError, "::Class or"),
        ([f"{OWN}::Countr"], {}, UnknownNameError, "did you mean 'Counter'"),
        (["no/such/file.py::x"], {}, ConfigError, "no file"),
        ([f"{OWN}::endless"], {}, ConfigError, "parameter 'words' cannot be given by name"),
        ([f"{OWN}::NoTool"], {}, ConfigError, "NoTool is not a tool"),
        ([f"{OWN}::Explosive"], {}, ConfigError, "Explosive cannot be created: RuntimeError: boom"),
        (["python", "python"], {}, ConfigError, "'PythonTool' is listed twice among the tools"),
        (["python"], {"overrides": {"PithonTool": {}}}, ConfigError, "did you mean 'PythonTool'"),
        (["python"], {"overrides": {"PythonTool": {"timeuot": 3}}}, ConfigError, "did you mean 'timeout'"),
        (["python"], {"overrides": {"PythonTool": {"timeout": -3}}}, ConfigError, "timeout"),
        (["python"], {"overrides": {"PythonTool": 3}}, ConfigError, "expected a mapping"),
        ([f"{OWN}::roll"], {"overrides": {"roll": {"a": 1}}}, ConfigError, "has no settings"),
        ([f"{OWN}::Odd"], {"overrides": {"Odd": {"a": 1}}}, ConfigError, "has no settings"),
        (["python"], {"schema_overrides": {"Pyton": {}}}, ConfigError, "did you mean 'PythonTool'"),
        (["python"], {"schema_overrides": {"python": {"exec": {}}}}, ConfigError, "no tool 'exec'"),
        ([f"{OWN}::roll"], {"schema_overrides": {"roll": {"roll": 3}}}, ConfigError, "expected a mapping"),
        ([f"{OWN}::roll"], {"schema_overrides": {"roll": {"roll": {"nam": "x"}}}}, ConfigError, "mean 'name'"),
        (
            [f"{OWN}::roll"],
            {"schema_overrides": {"roll": {"roll": {"parameters": {"side": {"name": "x"}}}}}},
            ConfigError,
            "did you mean 'sides'",
        ),
        (
            [f"{OWN}::roll"],
            {"schema_overrides": {"roll": {"roll": {"parameters": {"sides": {"name": "times"}}}}}},
            ConfigError,
            "two parameters the name 'times'",
        ),
    ],
)
def test_mistakes_are_told(modules: list[str], settings: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error) as caught:
        specs(box(*modules, **settings))
    assert words in str(caught.value)


@pytest.mark.parametrize("older", sorted(REFERENCE))
def test_older_names_lead_to_ours(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = older.rpartition("::")[2]
    keys = {"TAVILY_API_KEY": "t", "EXA_API_KEY": "e"}
    monkeypatch.setattr(science, "find_spec", lambda package: True)
    settings = {"timeout": 3} if hasattr(TOOLS.get(REFERENCE[older]), "Config") else {}
    ours = specs(box(older, environ=keys, overrides={name: settings}))
    same = specs(box(REFERENCE[older], environ=keys, overrides={REFERENCE[older]: settings}))
    assert ours == same
    assert REFERENCE[older] in TOOLS


def test_which_tools_run_code() -> None:
    assert runs_code(["mcp", "sums=python"])
    assert runs_code(["nemo_skills.mcp.servers.python_tool::DirectPythonTool"])
    assert not runs_code(["mcp", "python=mcp", "./x.py::python"])


def test_older_settings_of_the_notebook() -> None:
    (spec,) = specs(box("python", overrides={"PythonTool": {"exec_timeout_s": 7}}))
    assert "longer than 7 seconds" in spec.description
