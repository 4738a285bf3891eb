# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.prompts.files import picture

from newskills.base.chat_template import render_chat_template
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message, Row
from newskills.prompts.renderer import Prompt, PromptOverrides, load_prompt


class Words:
    """A tokenizer of whole words with a small chat template."""

    def encode(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join("x" * n for n in ids)

    def render(self, messages: Sequence[Message], **template_kwargs: Any) -> str:
        template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>{{ mode }}"
        return render_chat_template(template, messages, **template_kwargs)


def contents(prompt: Prompt, row: Row) -> list[tuple[str, Any]]:
    return [(m.role, m.content) for m in prompt.messages(row)]


@given(st.text(), st.text())
def test_data_with_any_braces_comes_through_verbatim(problem: str, system: str) -> None:
    prompt = load_prompt({"user": "Q: {problem} {{x}}", "system": "{rule}"})
    assert contents(prompt, {"problem": problem, "rule": system}) == [
        ("system", system),
        ("user", f"Q: {problem} {{x}}"),
    ]


def test_system_message_null_empty_and_given() -> None:
    assert contents(load_prompt({"user": "u"}), {}) == [("user", "u")]
    assert contents(load_prompt({"user": "u", "system": None}), {}) == [("user", "u")]
    assert contents(load_prompt({"user": "u", "system": ""}), {}) == [("system", ""), ("user", "u")]


def test_overrides_of_texts() -> None:
    overrides = PromptOverrides(system_message="S {a}", user_message="U {b}", prompt_suffix=" {no field}")
    prompt = load_prompt("generic/math", overrides)
    assert contents(prompt, {"a": 1, "b": 2}) == [("system", "S 1"), ("user", "U 2 {no field}")]
    assert prompt.fields == ("a", "b")
    assert prompt.name == "generic/math"


def test_an_override_with_a_stray_brace_names_the_option() -> None:
    with pytest.raises(ConfigError, match=r"\+\+system_message, line 1, column 5: a single '\{'"):
        load_prompt("math", PromptOverrides(system_message="say {"))


def test_a_user_message_alone_is_a_prompt() -> None:
    assert contents(load_prompt(None, PromptOverrides(user_message="{q}?")), {"q": "why"}) == [("user", "why?")]


def test_no_prompt_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"No prompt is given\. For example, set \+\+prompt_config"):
        load_prompt(None)


def test_a_missing_field_names_field_prompt_and_record() -> None:
    with pytest.raises(DataError) as error:
        load_prompt("generic/math").messages({"id": "row-7", "problm": "x"})
    assert "Record row-7 has no field 'problem', which prompt generic/math needs" in str(error.value)
    assert "did you mean 'problm'?" in str(error.value)


def test_the_begun_answer() -> None:
    prompt = load_prompt({"user": "u"}, PromptOverrides(start_assistant_response_key="start"))
    assert contents(prompt, {"start": "Well, {x}"}) == [("user", "u"), ("assistant", "Well, {x}")]
    assert prompt.text({"start": "Well"}, None) == "uWell"
    assert prompt.text({"start": "Well"}, Words()) == "<user>u<assistant>Well"
    assert prompt.fields == ("start",)
    with pytest.raises(DataError, match="no field 'start'"):
        prompt.messages({})


def test_text_takes_the_chat_template_with_its_arguments() -> None:
    assert isinstance(Words(), Tokenizer)
    prompt = load_prompt({"user": "{q}", "system": "s"}, PromptOverrides(chat_template_kwargs={"mode": "think"}))
    assert prompt.text({"q": "{{ x }}"}, Words()) == "<system>s<user>{{ x }}<assistant>think"


def test_text_without_a_template_goes_on_from_the_user_text() -> None:
    assert load_prompt({"user": "Once {a}"}).text({"a": "upon"}, None) == "Once upon"
    assert load_prompt({"user": "u", "system": "s"}).text({}, None) == "s\n\nu"
    assert load_prompt({"user": "u", "system": ""}).text({}, None) == "u"


def test_text_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    image = load_prompt({"user": "u", "image_field": "i"}, PromptOverrides(data_dir=str(tmp_path)))
    with pytest.raises(ConfigError, match="images or audio"):
        image.text({"i": "a.png"}, Words())
    chat = load_prompt(None, PromptOverrides(prompt_format="openai"))
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    with pytest.raises(ConfigError, match="needs a chat template"):
        chat.text({"messages": turns}, None)
    assert chat.text({"messages": turns}, Words()) == "<user>a<assistant>b<user>c<assistant>"
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert chat.text({"messages": parts}, None) == "ab"


def test_messages_are_the_callers_own() -> None:
    prompt = load_prompt({"user": "u", "system": "s"})
    first = prompt.messages({})
    first[0].content = "changed"
    first.append(Message(role="user"))
    assert contents(prompt, {}) == [("system", "s"), ("user", "u")]


# --- few-shots ---------------------------------------------------------------------------------------------------

SHOTS = {"user": "{examples}{q}", "few_shot_examples": {"prefix": "P|", "template": "{a}+{b}|", "suffix": "S|"}}
ROWS = [{"a": "{x}", "b": i} for i in range(3)]


def sets(name: str) -> list[Row] | None:
    return {"mine": ROWS, "none": [], "other": ROWS[:1]}.get(name)


def rendered(overrides: PromptOverrides, row: Row) -> Any:
    return load_prompt(SHOTS, overrides, sets).messages(row)[0].content


def test_examples_are_prefix_template_suffix() -> None:
    assert rendered(PromptOverrides(examples_type="mine"), {"q": "Q{}"}) == "P|{x}+0|{x}+1|{x}+2|S|Q{}"


def test_without_examples_nothing_of_them_stays() -> None:
    assert rendered(PromptOverrides(), {"q": "Q"}) == "Q"
    assert rendered(PromptOverrides(examples_type="none"), {"q": "Q"}) == "Q"


def test_a_record_may_choose_its_set() -> None:
    overrides = PromptOverrides(examples_type="{subject}")
    prompt = load_prompt(SHOTS, overrides, sets)
    assert prompt.fields == ("q", "subject")
    assert prompt.messages({"q": "Q", "subject": "other"})[0].content == "P|{x}+0|S|Q"
    assert prompt.messages({"q": "Q", "subject": "none"})[0].content == "Q"
    with pytest.raises(UnknownNameError, match="few-shot set 'physics'"):
        prompt.messages({"q": "Q", "subject": "physics"})
    with pytest.raises(DataError, match="no field 'subject'"):
        prompt.messages({"q": "Q"})


def test_the_number_of_examples() -> None:
    assert rendered(PromptOverrides(examples_type="mine", few_shot_examples={"num_few_shots": 1}), {"q": ""}) == (
        "P|{x}+0|S|"
    )
    assert rendered(PromptOverrides(examples_type="mine", few_shot_examples={"num_few_shots": 0}), {"q": ""}) == ""
    with pytest.raises(ConfigError, match="has 3 examples, but num_few_shots=4"):
        rendered(PromptOverrides(examples_type="mine", few_shot_examples={"num_few_shots": 4}), {"q": ""})
    with pytest.raises(ConfigError, match="no few-shot set is given"):
        rendered(PromptOverrides(few_shot_examples={"num_few_shots": 4}), {"q": ""})


def test_single_keys_of_the_section_can_be_replaced() -> None:
    overrides = PromptOverrides(few_shot_examples={"template": "<{b}>", "examples_type": "mine"})
    assert rendered(overrides, {"q": "Q"}) == "P|<0><1><2>S|Q"


def test_examples_without_a_place_or_a_form_are_refused() -> None:
    with pytest.raises(ConfigError, match="does not define how an example is shown"):
        load_prompt("generic/default", PromptOverrides(examples_type="gsm8k_text_detailed"))
    section = {"template": "{problem}", "examples_type": "gsm8k_text_detailed"}
    with pytest.raises(ConfigError, match="has no place for few-shot examples"):
        load_prompt("generic/default", PromptOverrides(few_shot_examples=section))


def test_examples_without_the_field_are_refused() -> None:
    with pytest.raises(ConfigError, match="the examples of few-shot set gsm8k_text_detailed have no field 'a'"):
        load_prompt(SHOTS, PromptOverrides(examples_type="gsm8k_text_detailed"))


def test_an_unknown_set_is_refused_with_near_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gsm8k_text_detailed'"):
        load_prompt("math", PromptOverrides(examples_type="gsm8k_text_detail"))


def test_a_fault_of_the_provider_is_not_taken_for_a_missing_field() -> None:
    def broken(name: str) -> Any:
        return {}[name]

    prompt = load_prompt(SHOTS, PromptOverrides(examples_type="{subject}"), broken)
    with pytest.raises(KeyError, match="law"):
        prompt.messages({"q": "Q", "subject": "law"})


# --- the hash ----------------------------------------------------------------------------------------------------


def digest(overrides: PromptOverrides | None = None, spec: str | dict[str, Any] = SHOTS) -> str:
    return load_prompt(spec, overrides, sets).hash


def test_the_hash_changes_with_what_is_shown() -> None:
    every = [
        digest(),
        digest(PromptOverrides(examples_type="mine")),
        digest(PromptOverrides(examples_type="other")),
        digest(PromptOverrides(examples_type="{subject}")),
        digest(PromptOverrides(prompt_suffix="x")),
        digest(PromptOverrides(system_message="")),
        digest(PromptOverrides(user_message="{q}")),
        digest(PromptOverrides(chat_template_kwargs={"a": 1})),
        digest(PromptOverrides(start_assistant_response_key="s")),
        digest(PromptOverrides(prompt_format="openai")),
        digest(spec="generic/math"),
        digest(PromptOverrides(examples_type="gsm8k_text_with_code"), "generic/math"),
        digest(PromptOverrides(examples_type="gsm8k_text_with_code", code_tags="llama3"), "generic/math"),
    ]
    assert len(set(every)) == len(every)
    assert all(len(value) == 16 for value in every)


def test_the_hash_keeps_with_what_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "copy.yaml"
    path.write_text("few_shot_examples: {template: '{other}'}\nuser: '{question}'\n")
    assert load_prompt(str(path)).hash == load_prompt("generic/default").hash
    assert digest(PromptOverrides(code_tags="llama3", data_dir="/elsewhere")) == digest()
    assert digest(PromptOverrides(chat_template_kwargs={"a": 1, "b": 2})) == digest(
        PromptOverrides(chat_template_kwargs={"b": 2, "a": 1})
    )
