# SPDX-License-Identifier: Apache-2.0
"""Every form of training rows keeps its meaning: calls of tools, parts, ShareGPT, TRL's forms, ends of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import write
from tests.recipes.test_trajectories import CHATML, TOOL, call, model, trained
from tests.run.training.test_rows import ASKED, THINKING, example, said

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.run.training.examples import examples_of
from newskills.run.training.preferences import as_pair, read_labelled, read_preferences
from newskills.run.training.rows import training_row
from newskills.run.training.skill import Skill

NO_CALLS = CHATML.replace("{% for c in m.tool_calls or [] %}", "{% for c in [] %}")
NO_TOOLS = CHATML.replace("{% if tools %}", "{% if false %}")
NO_RESULTS = CHATML.replace("{{ m.content or '' }}", "{% if m.role != 'tool' %}{{ m.content or '' }}{% endif %}")
CALLING = {"role": "assistant", "content": None, "tool_calls": call("ls")}
CALLED = '<call>bash {"command": "ls"}<|im_end|>'
HELLO = {"role": "assistant", "content": "hello"}


def test_a_reply_that_only_calls_is_trained_on(tmp_path: Path) -> None:
    _, learnt, _ = example(tmp_path, {"messages": [ASKED, CALLING], "tools": [TOOL]})
    assert learnt == [CALLED]


@pytest.mark.parametrize(
    ("template", "row", "words"),
    [
        (NO_CALLS, {"messages": [ASKED, CALLING]}, "does not show the calls of tools in a reply"),
        (NO_CALLS, {"messages": [ASKED, {**CALLING, "content": "I look."}]}, "does not show the calls of tools"),
        (NO_TOOLS, {"messages": [ASKED, HELLO], "tools": [TOOL]}, "does not show the tools that a row offers"),
        (
            NO_RESULTS,
            {"messages": [ASKED, CALLING, {"role": "tool", "content": "x", "tool_call_id": "c"}, HELLO]},
            "does not show the results of tools",
        ),
    ],
    ids=["calls", "calls-beside-text", "tools", "results"],
)
def test_a_template_that_would_lose_tools_is_refused(tmp_path: Path, template: str, row: Row, words: str) -> None:
    skill = Skill(model(tmp_path / "model", template))
    with pytest.raises(ConfigError, match=f"rows.jsonl, row 2: The model's chat template {words}"):
        examples_of([{"messages": [ASKED, HELLO]}, row], skill, Path("rows.jsonl"))


def test_parts_of_text_are_one_text(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "good "}, {"type": "text", "text": "day"}]
    row = {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": parts}]}
    text, learnt, _ = example(tmp_path, row)
    assert text.startswith("<|im_start|>user\ngood day<|im_end|>")
    assert learnt == ["good day<|im_end|>"]


SHARED: Row = {
    "system": "Be brief.",
    "conversations": [
        {"from": "human", "value": "list the files"},
        {"from": "function_call", "value": '{"name": "bash", "arguments": {"command": "ls"}}'},
        {"from": "observation", "value": "a.txt"},
        {"from": "gpt", "value": "One file."},
    ],
    "tools": json.dumps([TOOL["function"]]),
}


def test_sharegpt_rows_are_conversations(tmp_path: Path) -> None:
    text, learnt, _ = example(tmp_path, SHARED)
    assert text == (
        f"<|im_start|>system\ntools: {json.dumps([TOOL])}<|im_end|>\n<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nlist the files<|im_end|>\n"
        '<|im_start|>assistant\n<call>bash {"command": "ls"}<|im_end|>\n'
        "<|im_start|>tool\na.txt<|im_end|>\n<|im_start|>assistant\nOne file.<|im_end|>"
    )
    assert learnt == ["One file.<|im_end|>"]


@pytest.mark.parametrize(
    ("row", "learnt"),
    [
        ({"prompt": [ASKED], "completion": [HELLO]}, ["hello<|im_end|>"]),
        ({"prompt": [ASKED], "completion": "hello"}, ["hello<|im_end|>"]),
        ({"prompt": [ASKED], "completion": [CALLING], "tools": [TOOL]}, [CALLED]),
        (
            {"prompt": [ASKED], "completion": [HELLO, ASKED, {**HELLO, "content": "bye"}]},
            ["hello<|im_end|>", "bye<|im_end|>"],
        ),
        ({"prompt": "2 + 2 =", "completion": " 4"}, [" 4<|im_end|>"]),
        ({"prompt": "2 + 2 =", "completion": " 4<|im_end|>\n"}, [" 4<|im_end|>\n"]),
        ({"input": "2 + 2 =", "output": " 4"}, [" 4<|im_end|>"]),
        ({"input": "2 + 2 =", "output": " 4", "finish_reason": "length"}, [" 4"]),
        ({"text": "2 + 2 = 4"}, [" + 2 = 4<|im_end|>"]),
    ],
)
def test_what_is_trained_on_of_each_form(tmp_path: Path, row: Row, learnt: list[str]) -> None:
    _, got, _ = example(tmp_path, row)
    assert got == learnt


def test_an_end_that_was_added_is_told_and_can_be_left_out(tmp_path: Path) -> None:
    skill, remarks = Skill(model(tmp_path / "model", CHATML)), list[str]()
    rows = [{"input": "a", "output": "b"}, {"input": "a", "output": "b<|im_end|>"}]
    examples_of(rows, skill, Path("rows"), say=remarks.append)
    assert remarks == ["1 text had no end token: <|im_end|> was added, so that the model learns to stop."]
    data = examples_of(rows, skill, Path("rows"), add_end=False, say=remarks.append)
    assert [trained(skill, datum) for datum in data] == [["b"], ["b<|im_end|>"]]
    assert len(remarks) == 1


def test_the_end_is_the_one_that_the_model_s_template_writes(tmp_path: Path) -> None:
    """Llama 3 has several end tokens: a reply ends with <|eot_id|>, though <|end_of_text|> is the first of them."""
    folder = model(tmp_path / "model", CHATML)
    (folder / "config.json").write_text(json.dumps({"eos_token_id": [256, 257]}))
    skill = Skill(folder)
    rows = [{"messages": [ASKED, HELLO]}, {"input": "a", "output": "b"}]
    data = examples_of(rows, skill, Path("rows"), say=[].append)
    assert [trained(skill, datum) for datum in data] == [["hello<|im_end|>"], ["b<|im_end|>"]]


def test_texts_begin_as_the_tokenizer_begins_them(tmp_path: Path) -> None:
    folder = model(tmp_path / "model", CHATML)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [256], "tokens": ["<|im_start|>"]}},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    skill = Skill(folder)
    rows = [{"input": "a", "output": "b"}, {"input": "<|im_start|>a", "output": "b"}, {"text": "a"}]
    data = examples_of(rows, skill, Path("rows"), say=[].append)
    assert [said(skill, datum) for datum in data] == [
        "<|im_start|>ab<|im_end|>",
        "<|im_start|>ab<|im_end|>",
        "<|im_start|>a<|im_end|>",
    ]


def test_a_row_sets_variables_of_the_template(tmp_path: Path) -> None:
    template = CHATML.replace("{{ m.content or '' }}", "{{ m.content or '' }}{{ mood or '' }}")
    row = {"messages": [ASKED, HELLO], "chat_template_kwargs": {"mood": "!"}}
    text, _, _ = example(tmp_path, row, template)
    assert text.startswith("<|im_start|>user\nhi!<|im_end|>")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"messages": [{**ASKED, "weight": 1}, HELLO]}, "message 1: `weight` is 1, but only replies"),
        ({"messages": [ASKED, {**HELLO, "weight": 0.5}]}, "message 2: `weight` is 0.5"),
        ({"messages": [ASKED, {**HELLO, "train": False}]}, "message 2: the field `train` would be lost"),
        ({"messages": [ASKED, {**HELLO, "refusal": "I will not."}]}, "the field `refusal` would be lost"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, HELLO]},
            "message 1: `content` has a part of the type `image_url`",
        ),
        ({"messages": [ASKED, {**CALLING, "tool_calls": [{"id": "c"}]}]}, "`tool_calls` is not a list of calls"),
        (
            {"messages": [{**ASKED, "tool_calls": call("ls")}, HELLO]},
            "`tool_calls` stands in a message of the role",
        ),
        ({"messages": [ASKED, HELLO], "functions": [{"name": "f"}]}, "`functions` would be lost"),
        ({"messages": [ASKED, HELLO], "tools": "none"}, "`tools` is not JSON"),
        ({"messages": [ASKED, HELLO], "chat_template_kwargs": "x"}, "`chat_template_kwargs` is not an object"),
        ({"conversations": [{"from": "human", "value": "hi"}]}, "the last message is not a reply"),
        ({"prompt": [ASKED], "chosen": [HELLO], "rejected": [HELLO]}, "it has `chosen`"),
        ({"prompt": "a", "completion": "b", "label": False}, "`label` would be lost"),
        ({"prompt": [ASKED], "completion": [HELLO], "label": True}, "`label` would be lost"),
        ({"prompt": "a", "completion": "b", "system": "Be brief."}, "put it into `prompt`"),
        ({"input": "a", "output": "b", "tools": [TOOL]}, "`tools` would be lost"),
        ({"text": ""}, "`text` is empty"),
        ({"input_ids": [1, 2]}, "it has `input_ids`"),
        ({"prompt": "a", "completions": ["b"], "labels": [True]}, "it has `completions`"),
    ],
)
def test_what_would_be_lost_or_misread_is_refused_with_its_row(row: Row, words: str) -> None:
    with pytest.raises(DataError) as caught:
        training_row(row, "rows.jsonl, row 3")
    assert str(caught.value).startswith("rows.jsonl, row 3")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("more", "learnt"),
    [
        ({"content": None, "tool_calls": call("ls")}, CALLED),
        ({"content": "good", "reasoning_content": "hmm"}, "<think>\nhmm\n</think>\n\ngood<|im_end|>"),
        ({"content": [{"type": "text", "text": "good"}]}, "good<|im_end|>"),
    ],
)
def test_replies_of_pairs_keep_calls_and_reasoning(tmp_path: Path, more: dict[str, Any], learnt: str) -> None:
    skill = Skill(model(tmp_path / "model", THINKING))
    reply = {"role": "assistant", **more}
    row = {"prompt": [ASKED], "chosen": [reply], "rejected": "bad", "tools": [TOOL]}
    (preference,) = read_preferences(write(tmp_path / "pairs.jsonl", [row]))
    assert trained(skill, as_pair(preference, skill).chosen) == [learnt]
    row = {"prompt": [ASKED], "completion": [reply], "label": True, "tools": json.dumps([TOOL])}
    (labelled,) = read_labelled(write(tmp_path / "kto.jsonl", [row]))
    assert trained(skill, labelled.example(skill)) == [learnt]


def pair_of(tmp_path: Path, row: Row) -> tuple[str, list[str], list[str]]:
    skill = Skill(model(tmp_path / "model", CHATML))
    (preference,) = read_preferences(write(tmp_path / "pairs.jsonl", [row]))
    pair = as_pair(preference, skill)
    chosen, rejected = trained(skill, pair.chosen), trained(skill, pair.rejected)
    return said(skill, pair.chosen).removesuffix(chosen[-1]), chosen, rejected


def test_pairs_of_texts_end_as_trl_ends_them(tmp_path: Path) -> None:
    row = {"prompt": "2 + 2 =", "chosen": " 4", "rejected": " 5<|im_end|>"}
    assert pair_of(tmp_path, row) == ("2 + 2 =", [" 4<|im_end|>"], [" 5<|im_end|>"])


def test_pairs_that_reached_their_limit_have_no_end(tmp_path: Path) -> None:
    row = {"prompt": "2 + 2 =", "chosen": " 4", "rejected": " 5 or", "unfinished": ["rejected"]}
    assert pair_of(tmp_path, row) == ("2 + 2 =", [" 4<|im_end|>"], [" 5 or"])


def test_pairs_of_whole_texts_begin_to_differ_with_a_word(tmp_path: Path) -> None:
    row = {"chosen": "Human: hi\n\nAssistant: I can", "rejected": "Human: hi\n\nAssistant: I could"}
    assert pair_of(tmp_path, row) == (
        "Human: hi\n\nAssistant: I",
        [" can<|im_end|>"],
        [" could<|im_end|>"],
    )


def test_sharegpt_pairs(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "hi"}]
    replies = {"chosen": {"from": "gpt", "value": "good"}, "rejected": {"from": "gpt", "value": "bad"}}
    assert pair_of(tmp_path, {"conversations": turns, **replies}) == (
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
        ["good<|im_end|>"],
        ["bad<|im_end|>"],
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"prompt": "a", "chosen": "b", "rejected": "b"}, "`chosen` and `rejected` are the same"),
        ({"prompt": "a", "chosen": "b", "rejected": "c", "margin": 0.3}, "`margin` would be lost"),
        ({"chosen": "yes", "rejected": "no"}, "do not begin with the same words"),
        ({"prompt": [ASKED], "chosen": [HELLO, HELLO], "rejected": "c"}, "`chosen`: a reply must be one turn"),
        ({"prompt": [ASKED], "chosen": [ASKED], "rejected": "c"}, "`chosen`: a reply must be one turn"),
    ],
)
def test_pairs_that_mean_something_else_are_refused(tmp_path: Path, row: Row, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_preferences(write(tmp_path / "pairs.jsonl", [row]))
