# SPDX-License-Identifier: Apache-2.0
"""What agents did as training data: the loss is on the model's own replies, never on what it was told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from newskills.base.errors import DataError
from newskills.run.training.examples import examples_of
from newskills.run.training.skill import Skill
from newskills.train.verbs import Datum

CALLS = (
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}"
)
CHATML = (
    "{% if tools %}<|im_start|>system\ntools: {{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}" + CALLS + "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FORGETFUL = CHATML.replace(
    "{{ m.content or '' }}",
    "{% if m.role == 'assistant' and not loop.last %}{{ (m.content or '').split('</think>')[-1] }}"
    "{% else %}{{ m.content or '' }}{% endif %}",
)
TOOL = {"type": "function", "function": {"name": "bash", "description": "Runs it.", "parameters": {}}}


def call(command: str) -> list[dict[str, Any]]:
    arguments = json.dumps({"command": command})
    return [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": arguments}}]


CONVERSATION = [
    {"role": "system", "content": "You work by commands."},
    {"role": "user", "content": "Fix the sum."},
    {"role": "assistant", "content": "I look.", "tool_calls": call("cat sum.py")},
    {"role": "tool", "content": "SECRET OUTPUT one", "tool_call_id": "c"},
    {"role": "assistant", "content": None, "tool_calls": call("sed -i s/-/+/ sum.py")},
    {"role": "tool", "content": "SECRET OUTPUT two", "tool_call_id": "c"},
    {"role": "user", "content": "There was no command in your reply."},
    {"role": "assistant", "content": "Done.", "tool_calls": call("echo SUBMIT_CHANGES")},
    {"role": "tool", "content": "Exit code: 0", "tool_call_id": "c"},
]


def model(folder: Path, template: str) -> Path:
    """A folder with a tokenizer of bytes and that chat template."""
    folder.mkdir()
    alphabet = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|im_start|>"), AddedToken("<|im_end|>")])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    (folder / "chat_template.jinja").write_text(template)
    (folder / "config.json").write_text(json.dumps({"eos_token_id": len(alphabet) + 1}))
    return folder


def prepared(folder: Path) -> list[dict[str, Any]]:
    """The rows that training reads of two rollouts, one of which failed."""
    record = {"id": "sum", "generation": "", "conversation": CONVERSATION, "tools": [TOOL], "outcome": "correct"}
    write(folder / "output.jsonl", [record, {**record, "id": "lost", "outcome": "wrong"}])
    line = "ns prepare_training_data --config_name=agent_sft ++input_files=output.jsonl ++output_path=train.jsonl"
    done = ns(line, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return rows_of(folder / "train.jsonl")


def trained(skill: Skill, datum: Datum) -> list[str]:
    """The runs of targets that have a loss, as text."""
    pieces: list[list[int]] = []
    before = 0.0
    for target, weight in zip(datum.targets, datum.weights or (), strict=True):
        if weight and not before:
            pieces.append([])
        if weight:
            pieces[-1].append(target)
        before = weight
    return [skill.tokenizer.decode(piece) for piece in pieces]


REPLIES = [
    'I look.<call>bash {"command": "cat sum.py"}<|im_end|>',
    '<call>bash {"command": "sed -i s/-/+/ sum.py"}<|im_end|>',
    'Done.<call>bash {"command": "echo SUBMIT_CHANGES"}<|im_end|>',
]


def test_only_replies_of_successful_rollouts_have_a_loss(tmp_path: Path) -> None:
    (row,) = prepared(tmp_path)
    assert [message.get("weight") for message in row["messages"]] == [None, None, 1, None, 1, None, None, 1]
    skill = Skill(model(tmp_path / "model", CHATML))
    (datum,) = examples_of([row], skill, tmp_path)
    assert trained(skill, datum) == REPLIES
    whole = skill.tokenizer.decode([*datum.tokens, datum.targets[-1]])
    rendered = skill.tokenizer.render(row["messages"], tools=[TOOL], add_generation_prompt=False)
    assert whole == rendered.rstrip()
    assert "SECRET OUTPUT one" in whole
    assert list(datum.tokens[1:]) == list(datum.targets[:-1])


def test_templates_that_forget_reasoning_make_an_example_of_each_reply(tmp_path: Path) -> None:
    (row,) = prepared(tmp_path)
    row["messages"][2]["content"] = "<think>hm</think>I look."
    row["messages"][4]["content"] = "<think>aha</think>I change it."
    skill = Skill(model(tmp_path / "model", FORGETFUL))
    data = examples_of([row], skill, tmp_path)
    assert [len(trained(skill, datum)) for datum in data] == [1, 1, 1]
    assert trained(skill, data[1])[0].startswith("<think>aha</think>I change it.<call>")
    assert "<think>hm" not in skill.tokenizer.decode(data[1].tokens)


def test_without_weights_the_last_reply_counts_alone(tmp_path: Path) -> None:
    skill = Skill(model(tmp_path / "model", CHATML))
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (datum,) = examples_of([{"messages": [*turns, *turns]}], skill, tmp_path)
    assert trained(skill, datum) == ["b<|im_end|>"]
    with pytest.raises(DataError, match="nothing to train on"):
        examples_of([{"messages": [{**turn, "weight": 0} for turn in turns]}], skill, tmp_path)


def test_records_without_a_conversation_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "output.jsonl", [{"id": "a", "generation": "x", "symbolic_correct": True}])
    line = "ns prepare_training_data --config_name=agent_sft ++input_files=output.jsonl ++output_path=train.jsonl"
    done = ns(line, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "no `conversation` with replies" in " ".join((done.stdout + done.stderr).split())
