# SPDX-License-Identifier: Apache-2.0
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.prompts.files import picture, sound

from newskills.base.errors import ConfigError, DataError
from newskills.prompts.renderer import Prompt, PromptOverrides, load_prompt

TURNS = [
    {"role": "system", "content": "old"},
    {"role": "user", "content": "a {b}", "weight": 1},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}], "reasoning": "hm"},
    {"role": "tool", "content": "42", "tool_call_id": "1"},
    {"role": "user", "content": "last"},
]


def load(spec: str | dict[str, Any] | None = None, **overrides: Any) -> Prompt:
    return load_prompt(spec, PromptOverrides(prompt_format="openai", **overrides))


def test_messages_pass_through() -> None:
    prompt = load()
    assert (prompt.name, prompt.fields) == ("openai", ("messages",))
    system, user, assistant, tool, last = prompt.messages({"messages": TURNS})
    assert (system.content, user.content, last.content) == ("old", "a {b}", "last")
    assert (assistant.content, assistant.tool_calls, assistant.reasoning_content) == (None, [{"id": "1"}], "hm")
    assert (tool.role, tool.tool_call_id) == ("tool", "1")


def test_overrides_are_merged_and_the_record_is_not_changed() -> None:
    prompt = load(system_message="new {x}", prompt_suffix=" /no_think")
    messages = prompt.messages({"messages": TURNS})
    assert [m.content for m in messages] == ["new {x}", "a {b}", None, "42", "last /no_think"]
    assert [m.content for m in prompt.messages({"messages": TURNS[1:2]})] == ["new {x}", "a {b} /no_think"]
    assert TURNS[0]["content"] == "old"


def test_the_suffix_goes_to_the_last_text_of_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}]
    row = {"messages": [{"role": "user", "content": parts}]}
    (message,) = load(prompt_suffix="!").messages(row)
    assert message.content == [{"type": "text", "text": "a!"}, parts[1]]
    assert parts[0]["text"] == "a"
    (message,) = load(prompt_suffix="!").messages({"messages": [{"role": "user", "content": parts[1:]}]})
    assert message.content == [parts[1], {"type": "text", "text": "!"}]


def test_images_and_sound_of_messages_are_put_in(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    (tmp_path / "b.wav").write_bytes(sound())
    image = {"type": "image_url", "image_url": {"url": "a.png", "detail": "low"}}
    row = {
        "messages": [
            {"role": "user", "content": [image], "audios": [{"path": "b.wav"}, {"path": "b.wav"}]},
            {"role": "user", "content": "hear", "audio": {"path": "b.wav", "duration": 1.0}},
        ]
    }
    first, second = load(data_dir=str(tmp_path)).messages(row)
    assert [part["type"] for part in first.content] == ["input_audio", "input_audio", "image_url"]
    assert first.content[2]["image_url"] == {
        "url": f"data:image/png;base64,{b64encode(picture()).decode()}",
        "detail": "low",
    }
    assert [part["type"] for part in second.content] == ["input_audio", "text"]
    merged = load({"user": "Q {q}", "system": "s"}, data_dir=str(tmp_path))
    assert merged.fields == ("q", "messages")
    system, user = merged.messages(row | {"q": "1"})
    assert system.content == "s"
    assert [part.get("text", part["type"]) for part in user.content] == ["input_audio", "Q 1"]
    assert merged.messages({"q": "1", "messages": TURNS})[1].content == "Q 1"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": 3}, "Record 3 has no field 'messages'"),
        ({"id": 3, "messages": []}, "at least one message of record 3"),
        ({"messages": "hello"}, "must be a list"),
        ({"messages": [1]}, "message 1: expected an object, got 1"),
        ({"messages": [{"content": "a"}]}, "missing required field 'role'"),
        ({"messages": [{"role": "human", "content": "a"}]}, "the role 'human' is not one of"),
        ({"messages": [{"role": "user", "content": 5}]}, "content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "a text part without `text`"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "an image part needs"),
        ({"messages": [{"role": "user", "audio": {"file": "x"}}]}, "expected audio as"),
    ],
)
def test_unfit_messages_are_refused(row: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        load().messages(row)


@pytest.mark.parametrize("overrides", [{"examples_type": "x"}, {"few_shot_examples": {"num_few_shots": 1}}])
def test_few_shots_need_a_prompt(overrides: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Few-shot examples need a prompt"):
        load(**overrides)
