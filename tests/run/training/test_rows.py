# SPDX-License-Identifier: Apache-2.0
"""Rows of training data lose no field in silence: what they say is used, or refused by name with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.base.reading.row_forms import FORMS
from tests.commands.running import ns, rows_of, write
from tests.recipes.test_trajectories import CHATML, TOOL, call, model, trained

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.run.training.examples import examples_of
from newskills.run.training.preferences import as_pair, read_labelled, read_preferences
from newskills.run.training.rows import training_row
from newskills.run.training.skill import Skill
from newskills.train.pipelines.formats import FormatError, examine_file
from newskills.train.verbs import Datum

THINKING = CHATML.replace(
    "{{ m.content or '' }}",
    "{% if m.role == 'assistant' and m.reasoning_content and loop.last %}<think>\n{{ m.reasoning_content }}\n"
    "</think>\n\n{% endif %}{{ m.content or '' }}",
)
OPENED = CHATML.replace("<|im_start|>assistant\n{% endif %}", "<|im_start|>assistant\n<think>\n{% endif %}")
ASKED = {"role": "user", "content": "hi"}


def said(skill: Skill, datum: Datum) -> str:
    return skill.tokenizer.decode([*datum.tokens, datum.targets[-1]])


def example(folder: Path, row: Row, template: str = CHATML) -> tuple[str, list[str], list[str]]:
    """(the whole text, what has a loss, what was remarked) of a row."""
    skill, remarks = Skill(model(folder / "model", template)), list[str]()
    (datum,) = examples_of([row], skill, Path("rows"), say=remarks.append)
    return said(skill, datum), trained(skill, datum), remarks


def test_alpaca_rows_are_a_question_and_its_answer(tmp_path: Path) -> None:
    row = {"instruction": "Translate to German.", "input": "good morning", "output": "Guten Morgen"}
    text, learnt, _ = example(tmp_path, row)
    assert text == (
        "<|im_start|>user\nTranslate to German.\n\ngood morning<|im_end|>\n"
        "<|im_start|>assistant\nGuten Morgen<|im_end|>"
    )
    assert learnt == ["Guten Morgen<|im_end|>"]


def test_alpaca_rows_may_have_no_input_a_system_message_and_reasoning(tmp_path: Path) -> None:
    row = {
        "instruction": "hi",
        "input": "",
        "output": "Arr",
        "system": "You are a pirate.",
        "reasoning": "he is one",
    }
    text, learnt, remarks = example(tmp_path, row, THINKING)
    assert text.startswith("<|im_start|>system\nYou are a pirate.<|im_end|>\n<|im_start|>user\nhi<|im_end|>")
    assert learnt == ["<think>\nhe is one\n</think>\n\nArr<|im_end|>"]
    assert remarks == []


@pytest.mark.parametrize(
    ("template", "remarked"), [(THINKING, 0), (CHATML, 1), (OPENED, 1)], ids=["shown", "dropped", "opened"]
)
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_of_the_target_is_trained_on(tmp_path: Path, template: str, remarked: int, field: str) -> None:
    row = {"messages": [ASKED, {"role": "assistant", "content": "hello", field: "they greet me"}]}
    text, learnt, remarks = example(tmp_path, row, template)
    assert text.count("<think>") == 1
    assert text.endswith("<|im_start|>assistant\n<think>\nthey greet me\n</think>\n\nhello<|im_end|>")
    assert "they greet me\n</think>\n\nhello<|im_end|>" in learnt[0]
    assert len(remarks) == remarked
    assert all("chat template does not show the reasoning of 1 reply" in remark for remark in remarks)


def test_reasoning_in_the_text_of_a_weighted_reply_outlives_the_template(tmp_path: Path) -> None:
    drops = CHATML.replace("{{ m.content or '' }}", "{{ (m.content or '').split('</think>')[-1] }}")
    turns = [ASKED, {"role": "assistant", "content": "<think>hmm</think>hello", "weight": 1}]
    _, learnt, remarks = example(tmp_path, {"messages": turns}, drops)
    assert learnt == ["<think>\nhmm\n</think>\n\nhello<|im_end|>"]
    assert len(remarks) == 1


def test_calls_of_the_target_are_trained_on_beside_its_text(tmp_path: Path) -> None:
    reply = {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": call("ls"),
        "reasoning_content": "where am I",
    }
    _, learnt, remarks = example(tmp_path, {"messages": [ASKED, reply], "tools": [TOOL]})
    assert learnt == ['<think>\nwhere am I\n</think>\n\nI look.<call>bash {"command": "ls"}<|im_end|>']
    assert len(remarks) == 1


def test_a_system_key_stands_before_the_messages(tmp_path: Path) -> None:
    row = {"system": "Be brief.", "messages": [ASKED, {"role": "assistant", "content": "hello"}]}
    text, _, _ = example(tmp_path, row)
    assert text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"system": "You are a pirate.", "input": "a", "output": "Arr"},
            "`system` would be lost. Texts are taken",
        ),
        ({"system_prompt": "Be brief.", "input": "a", "output": "b"}, "`system_prompt` would be lost"),
        ({"input": "a", "output": "b", "reasoning_content": "hmm"}, "`reasoning_content` would be lost"),
        ({"input": "a", "output": "b", "history": [["c", "d"]]}, "`history` would be lost"),
        ({"instruction": "a", "output": "b", "history": [["c", "d"]]}, "`history` would be lost"),
        ({"input": "a", "output": "b", "images": ["x.png"]}, "`images` would be lost"),
        ({"messages": [ASKED, {"role": "assistant", "content": ""}]}, "message 2: `content` is empty"),
        ({"messages": [ASKED, {"role": "assistant", "content": None}]}, "message 2: `content` is null"),
        (
            {"messages": [{**ASKED, "content": None}, {"role": "assistant", "content": "b"}]},
            "message 1: `content` is null",
        ),
        (
            {"messages": [ASKED, {"role": "assistant", "content": "b", "function_call": {"name": "f"}}]},
            "`function_call` would be lost",
        ),
        (
            {
                "system": "a",
                "messages": [{"role": "system", "content": "b"}, ASKED, {"role": "assistant", "content": "c"}],
            },
            "`system` would be lost",
        ),
        ({"instruction": "a", "input": "", "output": ""}, "`content` is empty"),
    ],
)
def test_what_would_be_lost_is_refused_by_name(row: Row, words: str) -> None:
    with pytest.raises(DataError) as caught:
        training_row(row, "rows.jsonl, row 3")
    assert str(caught.value).startswith("rows.jsonl, row 3")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "more",
    [
        {"instruction": "Say a."},
        {"system": "", "history": [], "reasoning": "on", "id": 7, "problem": "a", "images": None},
        {"system": "Say"},
    ],
)
def test_what_the_texts_hold_already_is_not_lost(more: Row) -> None:
    texts = {"input": "<user>Say a.<assistant>", "output": "a"}
    assert training_row({**texts, **more}, "") == texts


PAIR: Row = {"chosen": "good", "rejected": "bad"}


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"instruction": "Do it.", "input": "now", **PAIR}, "<|im_start|>user\nDo it.\n\nnow<|im_end|>"),
        ({"instruction": "Do it.", **PAIR}, "<|im_start|>user\nDo it.<|im_end|>"),
        ({"system": "S", "prompt": [ASKED], **PAIR}, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nhi"),
    ],
)
def test_pairs_use_instructions_and_system_messages(tmp_path: Path, row: Row, prompt: str) -> None:
    skill = Skill(model(tmp_path / "model", CHATML))
    (preference,) = read_preferences(write(tmp_path / "pairs.jsonl", [row]))
    assert said(skill, as_pair(preference, skill).chosen).startswith(prompt)
    labelled = {key: value for key, value in row.items() if key not in PAIR}
    if "prompt" in row:
        (reply,) = read_labelled(
            write(tmp_path / "kto.jsonl", [{**labelled, "completion": "good", "label": True}])
        )
        assert said(skill, reply.example(skill)).startswith(prompt)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"prompt": "a", "system": "You are a pirate."}, "`system` would be lost"),
        ({"prompt": "a", "instruction": "b", "history": [["c", "d"]]}, "`history` would be lost"),
        ({"prompt": [ASKED], "history": [["c", "d"]]}, "`history` would be lost"),
        ({"prompt": "a", "images": ["x.png"]}, "`images` would be lost"),
    ],
)
def test_pairs_and_labelled_replies_refuse_what_they_would_lose(tmp_path: Path, more: Row, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_preferences(write(tmp_path / "pairs.jsonl", [{**PAIR, **more}]))
    with pytest.raises(DataError, match=words):
        read_labelled(write(tmp_path / "kto.jsonl", [{"completion": "c", "label": True, **more}]))


def prepare(folder: Path, row: Row, *more: str) -> Any:
    write(folder / "in.jsonl", [row])
    line = (
        "ns prepare_training_data ++preprocessed_dataset_files=in.jsonl ++output_path=train.jsonl "
        "++input_key=instruction ++output_key=output ++filters.trim_solutions=false "
        "++filters.remove_contaminated=false ++filters.remove_len_outlier_problems=false "
        "++filters.drop_multi_boxed=false"
    )
    return ns(line, *more, cwd=folder)


def test_preparing_data_refuses_what_it_would_lose(tmp_path: Path) -> None:
    done = prepare(tmp_path, {"instruction": "Translate.", "input": "good morning", "output": "Guten Morgen"})
    assert done.returncode == 2
    assert "in.jsonl, line 1: the field `input` would be lost" in " ".join(done.stderr.split())
    done = prepare(
        tmp_path, {"instruction": "Translate.", "system": "You are a pirate.", "output": "Guten Morgen"}
    )
    assert "`system` would be lost" in " ".join(done.stderr.split())


def test_preparing_data_takes_rows_whose_fields_are_used(tmp_path: Path) -> None:
    done = prepare(tmp_path, {"instruction": "Translate.", "input": "", "output": "Guten Morgen"})
    assert done.returncode == 0, done.stderr
    (row,) = rows_of(tmp_path / "train.jsonl")
    assert (row["input"], row["output"]) == ("Translate.", "Guten Morgen")
    (tmp_path / "prompt.yaml").write_text("user: '{instruction} {input}'\n")
    asked = {"instruction": "Translate.", "input": "good morning", "output": "Guten Morgen"}
    done = prepare(tmp_path, asked, "--config_name=stem_sft", "++prompt_config=./prompt.yaml")
    assert done.returncode == 0, done.stderr
    (row,) = rows_of(tmp_path / "train.jsonl")
    assert row["messages"][0]["content"] == "Translate. good morning"


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl.zst", "array.json", "rows.parquet", "bom.jsonl"])
def test_training_data_of_every_form_is_read(tmp_path: Path, name: str) -> None:
    rows = [{"instruction": f"Say {word}.", "input": "", "output": word} for word in ("one", "two", "three")]
    (tmp_path / name).write_bytes(FORMS[name](rows))
    done = ns(f"ns sft --model=a --training_data={name} --output_dir=out --dry_run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 rows" in done.stdout
    done = ns(
        f"ns prepare_training_data ++preprocessed_dataset_files={name} ++output_path=train.jsonl "
        "++input_key=instruction ++output_key=output ++filters.remove_contaminated=false "
        "++filters.remove_len_outlier_problems=false ++filters.trim_solutions=false",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "train.jsonl")) == 3


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"instruction": "Translate.", "input": "good morning", "output": "Guten Morgen"}, "instruction"),
        ({"input": "a", "output": "b", "system": "Be brief."}, "system"),
        ({"input": "a", "output": "b", "reasoning_content": "hmm"}, "reasoning_content"),
        ({"messages": [ASKED, {"role": "assistant", "content": "b"}], "system": "Be brief."}, "system"),
    ],
)
def test_trainers_of_others_get_no_file_from_which_they_lose_a_field(tmp_path: Path, row: Row, name: str) -> None:
    path = write(tmp_path / "rows.jsonl", [{"input": "a", "output": "b", "messages": [ASKED]}, row])
    forms = ("messages",) if "messages" in row else ("input_output",)
    with pytest.raises(FormatError, match=f"line 2: the field '{name}' would be lost"):
        examine_file(path, forms)
    fine = {**row, name: "", "instruction": ""}
    assert examine_file(write(path, [fine]), forms).rows == 1
