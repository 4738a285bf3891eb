# SPDX-License-Identifier: Apache-2.0
from datetime import datetime

import pytest

from newskills.base.chat_template import render_chat_template
from newskills.base.errors import ConfigError
from newskills.base.records import Message

CHATML = """{% for message in messages %}
{% if message['role'] not in ['system', 'user', 'assistant'] %}
    {{ raise_exception('unknown role ' + message.role) }}
{% endif %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}
{{ '<think></think>' }}
{%- endif %}
{% endif %}"""


def test_blocks_leave_no_blank_lines_and_the_generation_prompt_ends_the_text() -> None:
    text = render_chat_template(
        CHATML, [Message(role="system", content="S"), Message(role="user", content="U {x}")]
    )
    assert (
        text == "<|im_start|>system\nS<|im_end|>\n\n<|im_start|>user\nU {x}<|im_end|>\n\n<|im_start|>assistant\n"
    )


def test_variables_of_the_template_come_from_the_caller() -> None:
    messages = [{"role": "user", "content": "U"}]
    assert render_chat_template(CHATML, messages, enable_thinking=False).endswith("assistant\n<think></think>")
    assert (
        render_chat_template(CHATML, messages, add_generation_prompt=False) == "<|im_start|>user\nU<|im_end|>\n\n"
    )
    assert render_chat_template("{{ bos_token }}|{{ eos_token }}", messages, "<s>", "</s>") == "<s>|</s>"


def test_messages_lack_what_was_not_given() -> None:
    template = "{{ messages[0] | tojson }} {{ 'none' if messages[0].tool_calls is not defined }}"
    assert render_chat_template(template, [Message(role="user", content="<é>")]) == (
        '{"role": "user", "content": "<é>"} none'
    )


def test_arguments_of_tool_calls_are_objects_for_the_template() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}}
    broken = {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{"}}
    template = "{% for c in messages[0].tool_calls %}{{ c.function.arguments | tojson }};{% endfor %}"
    text = render_chat_template(template, [Message(role="assistant", tool_calls=[call, broken])])
    assert text == '{"a": [1]};"{";'
    assert call["function"]["arguments"] == '{"a": [1]}'


def test_helpers_of_hugging_face_templates() -> None:
    template = (
        "{{ strftime_now('%Y') }} {% generation %}G{% endgeneration %} {{ tools | tojson(indent=1) }}"
        "{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"
    )
    text = render_chat_template(template, [], tools=[{"b": 1, "a": "é"}])
    assert text == f'{datetime.now().year} G [\n {{\n  "b": 1,\n  "a": "é"\n }}\n]1'


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (CHATML, "unknown role tool"),
        ("{% if %}", "chat template cannot render"),
        ("{{ messages[0].content + 1 }}", "chat template cannot render"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
    ],
)
def test_refusals_and_break_out_attempts_become_one_error(template: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        render_chat_template(template, [Message(role="tool", content="x")])
