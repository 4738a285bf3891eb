# SPDX-License-Identifier: Apache-2.0
"""Data files of agents: those that come with newskills are sound, and what is wrong with another is said by its key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from newskills.agents.definition import (
    SETTINGS,
    agents_folder,
    fill_placeholders,
    find_definition,
    library_files,
    placeholder_values,
    read_definition,
)
from newskills.base.errors import ConfigError

GOOD = """
protocol: chat
install: {npm: some-agent, version: 1.20}
command: [some-agent, "--model={model}", "{task}"]
variables: {BASE: "{url}/v1", RETRIES: 3, QUIET: true}
exit_codes: {53: steps}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_a_file_is_read_with_its_name_and_texts_for_numbers(tmp_path: Path) -> None:
    definition = read_definition(write(tmp_path, GOOD))
    assert (definition.name, definition.display_name) == ("mine", "mine")
    assert definition.variables == {"BASE": "{url}/v1", "RETRIES": "3", "QUIET": "true"}
    assert definition.exit_codes == {"53": "steps"}
    assert definition.limits.seconds == 7200


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("command:", "comand:", "has no key 'comand'; did you mean 'command'?"),
        ("npm:", "npn:", "install has no key 'npn'; did you mean 'npm'?"),
        ("{model}", "{modle}", "command has the placeholder {modle}; did you mean 'model' or 'node'?"),
        ('"{url}/v1"', '"{ulr}/v1"', "variables.BASE has the placeholder {ulr}; did you mean 'url'?"),
        ('"{url}/v1"', "x", "nothing has {url}"),
        ('"{task}"', "x", "command has neither {task} nor {task_file}"),
        ("protocol: chat", "protocol: grpc", "protocol"),
        ("version: 1.20", "version: latest", "install.version must be one version"),
        ("npm: some-agent", "npm: a, pip: b", "has npm and pip"),
        ("npm: some-agent, ", "", "has none"),
        ("53: steps", "999: steps", "'999', which is not an exit code"),
        ("53: steps", "53: stesp", "exit_codes"),
        ("command: [some-agent", "command: [[some-agent]", "command"),
        ("protocol: chat", "protocol: [", "cannot be read"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        read_definition(write(tmp_path, GOOD.replace(old, new)))
    assert sentence in str(caught.value)
    assert "mine.yaml" in str(caught.value)


def test_a_file_that_is_not_there_or_is_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        find_definition(str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigError, match="expected keys, got list"):
        read_definition(write(tmp_path, "- a\n"))


def test_values_are_put_in_once() -> None:
    values = {"task": "say {model} and {url}", "model": "m"}
    assert fill_placeholders(["{task}", {"{model}": "{unknown}"}], values) == [
        "say {model} and {url}",
        {"m": "{unknown}"},
    ]


def test_the_page_adds_an_agent_in_thirty_lines(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "add-an-agent.md"
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(text.splitlines()) <= 30
    assert read_definition(write(tmp_path, text)).title == "Continue"


@pytest.mark.parametrize("name", library_files())
def test_those_that_come_along_are_sound_and_short(name: str) -> None:
    definition = read_definition(library_files()[name])
    lines = [line for line in library_files()[name].read_text().splitlines() if not line.startswith("#")]
    assert definition.title
    assert definition.site.startswith("https://")
    assert definition.log
    assert len(lines) <= 40
    whole = fill_placeholders(list(definition.command), {**placeholder_values(), **dict.fromkeys(SETTINGS, "x")})
    assert not any("{program}" in word or "{arch}" in word for word in whole)


def test_names_are_found_in_any_spelling_and_unknown_ones_are_none() -> None:
    assert find_definition("Qwen_Code") == find_definition("qwen-code")
    assert find_definition("bash") is None


def test_the_folder_is_that_of_the_variable(tmp_path: Path) -> None:
    assert agents_folder({"NEWSKILLS_AGENTS": str(tmp_path)}) == tmp_path.resolve()
    assert agents_folder({"NEWSKILLS_CACHE": str(tmp_path)}) == tmp_path.resolve() / "agents"
