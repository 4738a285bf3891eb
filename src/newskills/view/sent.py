# SPDX-License-Identifier: Apache-2.0
"""The prompt of a record as it was sent: out of the record, or rendered again with the settings of its run.

Only prompts of the library, or those that the run's settings spell out, are rendered, and only where that reads no file
outside of the given folders.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from newskills.base.errors import ConfigError, DataError, NewskillsError
from newskills.base.reading.json_values import list_or_empty, object_or_empty
from newskills.base.records import Row
from newskills.run.planning.spec import RUN_FILE
from newskills.solve.judges.judge import shown_to_judges
from newskills.view.discovery import OutputFile, Run
from newskills.view.files import read_json, state_of
from newskills.view.folders import Folders
from newskills.view.records import messages_in

if TYPE_CHECKING:
    from newskills.prompts.renderer import Prompt

RECORDED = "The record holds the conversation."
_INFERENCE, _OF_REQUEST = "inference.", ("server.model", "solver", "stop_phrase")
_MAX_KEPT_PROMPTS = 64
_LONGEST_PATH = 4096
_prompts: OrderedDict[str, _PromptOfRun] = OrderedDict()
_lock = threading.Lock()


class SentPrompt(NamedTuple):
    """`messages` empty: it is not known, and `note` says why. `exact`: this is what the model was shown."""

    messages: list[Row]
    exact: bool
    note: str


class _PromptOfRun(NamedTuple):
    prompt: Prompt
    folder: Path


def prompt_sent(folders: Folders, run: Run, file: OutputFile, row: Row) -> SentPrompt:
    """Return the prompt that was sent, with a note; what cannot be shown is said in the note, and nothing is
    raised."""
    if messages := messages_in(row):
        return SentPrompt(_asked_messages(messages), True, RECORDED)
    if "_prompt" in row or isinstance(row.get("rendered_prompt"), str):
        text = row.get("_prompt", row.get("rendered_prompt"))
        return SentPrompt([{"role": "user", "content": text}], True, "The record holds the prompt.")
    settings = object_or_empty(state_of(folders, file).get("settings"))
    unit = _file_settings(folders, run, file) or _recorded_prompt(settings)
    if unit is None:
        return SentPrompt([], False, "The run left no settings from which the prompt could be rendered again.")
    try:
        rendering = _prompt_of_run(folders, unit)
        _check_files(folders, rendering, row)
        messages = [msgspec.to_builtins(message) for message in rendering.prompt.messages(row)]
    except (NewskillsError, msgspec.MsgspecError, TypeError, ValueError) as error:
        return SentPrompt([], False, f"The prompt cannot be rendered again: {error}")
    recorded = str(settings.get("prompt") or "")
    name = f"{rendering.prompt.name} {rendering.prompt.hash}"
    if recorded in ("", name):
        return SentPrompt(messages, bool(recorded), f"Rendered again with prompt {name}.")
    note = f"Rendered again with prompt {name}, but the run was made with {recorded}: it may differ from what was sent."
    return SentPrompt(messages, False, note)


def judge_prompt_sent(folders: Folders, row: Row) -> SentPrompt:
    """Return the question to the judge, rendered again by the prompt that the record names; nothing is raised."""
    recorded = str(row.get("judge_prompt") or "")
    config = _recorded_prompt({"prompt": recorded})
    if config is None:
        return SentPrompt([], False, "")
    try:
        rendering = _prompt_of_run(folders, config)
        shown = shown_to_judges(row)
        _check_files(folders, rendering, shown)
        messages = [msgspec.to_builtins(message) for message in rendering.prompt.messages(shown)]
    except (NewskillsError, msgspec.MsgspecError, TypeError, ValueError):
        return SentPrompt([], False, "")
    name = f"{rendering.prompt.name} {rendering.prompt.hash}"
    if name == recorded:
        return SentPrompt(messages, True, f"Rendered again with prompt {name}.")
    return SentPrompt(messages, False, f"Rendered again with prompt {name}, but the judge had {recorded}.")


def settings_sent(folders: Folders, file: OutputFile) -> Row:
    """Return the model and the settings that went with every request of a file, as its run recorded them; empty where
    it recorded none."""
    settings = object_or_empty(state_of(folders, file).get("settings"))
    return {
        name.removeprefix(_INFERENCE).removeprefix("server."): value
        for name, value in settings.items()
        if name in _OF_REQUEST or name.startswith(_INFERENCE)
    }


def _asked_messages(messages: list[Row]) -> list[Row]:
    """Return the messages before the first answer."""
    for number, message in enumerate(messages):
        if message.get("role") == "assistant" or message.get("type") in ("function_call", "message", "reasoning"):
            return messages[:number]
    return messages


def _file_settings(folders: Folders, run: Run, file: OutputFile) -> Row | None:
    """Return the settings of a file in run.json; paths may have changed since, so the end of the name decides. None:
    there are none."""
    wanted: tuple[str, ...] = ()
    if file.output.is_relative_to(run.folder):
        wanted = file.output.relative_to(run.folder).parts[-2:]
    for unit in list_or_empty(read_json(folders, run.folder / RUN_FILE).get("units")):
        config = object_or_empty(object_or_empty(unit).get("config"))
        if Path(str(config.get("output_file", ""))).parts[-2:] == wanted:
            return config
    return None


def _recorded_prompt(settings: Row) -> Row | None:
    """Return what the record of a file says of its prompt, where its run has left no run.json, as jobs on clusters do;
    None where it names no prompt.

    The prompt's hash tells whether that is all there is to know.
    """
    name = str(settings.get("prompt") or "").rpartition(" ")[0]
    form = settings.get("prompt_format", "ns")
    if name:
        prompt_config = name if form == "ns" else None
        return {"prompt_config": prompt_config, "prompt_format": form}
    return None


def _prompt_of_run(folders: Folders, config: Row) -> _PromptOfRun:
    """Return the prompt of these settings; the latest `_MAX_KEPT_PROMPTS` are kept. Raises NewskillsError,
    msgspec.ValidationError."""
    key = msgspec.json.encode({name: value for name, value in config.items() if name != "output_file"}).decode()
    with _lock:
        if key not in _prompts:
            _prompts[key] = _load_prompt(folders, config)
        _prompts.move_to_end(key)
        while len(_prompts) > _MAX_KEPT_PROMPTS:
            _prompts.popitem(last=False)
        return _prompts[key]


def _load_prompt(folders: Folders, config: Row) -> _PromptOfRun:
    from newskills.prompts.renderer import load_prompt
    from newskills.run.engine.build import prompt_overrides
    from newskills.run.planning.config import GenerationConfig

    spec = config.get("prompt_config")
    if isinstance(spec, str) and spec.endswith((".yaml", ".yml")) and not folders.holds(Path(spec)):
        raise ConfigError(f"its file {spec} is not in the folders that are shown.")
    for value in (spec, config.get("few_shot_examples")):
        if "retrieval_file" in str(value):
            raise ConfigError("its examples were retrieved from a file.")
    settings = msgspec.convert({**config, "server": {}, "models": {}}, GenerationConfig)
    return _PromptOfRun(load_prompt(spec, prompt_overrides(settings)), Path(settings.input_file).parent)


def _check_files(folders: Folders, rendering: _PromptOfRun, row: Row) -> None:
    """Raise DataError where the record names a file, as for an image, that may not be read."""
    for text in _text_values(row):
        if len(text) > _LONGEST_PATH or "\n" in text or "\0" in text:
            continue
        try:
            path = rendering.folder / Path(text.removeprefix("file://")).expanduser()
            there = path.is_file()
        except (OSError, RuntimeError, ValueError):
            continue
        if there and not folders.holds(path):
            raise DataError(f"it has the file {path}, which is not in the folders that are shown.")


def _text_values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _text_values(item)
    elif isinstance(value, list):
        for item in value:
            yield from _text_values(item)
