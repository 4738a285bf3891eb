# SPDX-License-Identifier: Apache-2.0
"""Token ids and labels of training rows are those of TRL's own data path (`SFTTrainer`), form by form."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.recipes.test_trajectories import CHATML, TOOL, model
from tests.run.training.test_rows import ASKED, THINKING
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig as TrlConfig
from trl import SFTTrainer

from newskills.base.records import Row
from newskills.run.training.examples import examples_of, fit_to_length
from newskills.run.training.skill import Skill
from newskills.train.verbs import Datum

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")

IGNORED = -100
GENERATION = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n"
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}\n"
    "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A template with marks around what the assistant wrote, up to its end token."""
HELLO = {"role": "assistant", "content": "hello"}
CALLING = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}}],
}


def labelled(datum: Datum) -> tuple[list[int], list[int]]:
    """(token ids, labels) in TRL's form."""
    flags = [0.0, *(datum.weights or ())]
    ids = [datum.tokens[0], *datum.targets]
    return ids, [token if flag else IGNORED for token, flag in zip(ids, flags, strict=True)]


def of_trl(folder: Path, out: Path, row: Row, **changed: Any) -> tuple[list[int], list[int]]:
    """The first training example of TRL's own trainer."""
    from datasets import Dataset

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    shape = {"vocab_size": len(tokenizer), "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    tiny = LlamaForCausalLM(LlamaConfig(**shape, num_attention_heads=1, num_key_value_heads=1))
    config = TrlConfig(
        output_dir=str(out), use_cpu=True, report_to=[], bf16=False, shuffle_dataset=False, **changed
    )
    data = Dataset.from_list([copy.deepcopy(row)])
    trainer = SFTTrainer(model=tiny, args=config, train_dataset=data, processing_class=tokenizer)
    (made,) = trainer.train_dataset
    return made["input_ids"], made["labels"]


def up_to_end(example: tuple[list[int], list[int]], skill: Skill) -> tuple[list[int], list[int]]:
    """Without what a chat template writes after the last end token: no model gets there."""
    ids, labels = example
    count = len(ids) - ids[::-1].index(skill.reply_end)
    assert not skill.tokenizer.decode(ids[count:]).strip()
    return ids[:count], labels[:count]


@pytest.mark.parametrize(
    ("row", "template"),
    [
        ({"prompt": "2 + 2 =", "completion": " 4"}, CHATML),
        ({"prompt": "2 + 2 =", "completion": " 4<|im_end|>"}, CHATML),
        ({"text": "two and two is four"}, CHATML),
        ({"prompt": [ASKED], "completion": [HELLO]}, CHATML),
        ({"prompt": [{"role": "system", "content": "Be brief."}, ASKED], "completion": [HELLO]}, CHATML),
        ({"prompt": [ASKED], "completion": [{**HELLO, "reasoning_content": "hmm"}]}, THINKING),
        ({"prompt": [ASKED], "completion": [CALLING], "tools": json.dumps([TOOL])}, CHATML),
    ],
    ids=["texts", "ended", "text", "chat", "system", "reasoning", "calls"],
)
def test_rows_are_those_of_trl(tmp_path: Path, row: Row, template: str) -> None:
    folder = model(tmp_path / "model", template)
    skill = Skill(folder)
    (datum,) = examples_of([row], skill, Path("rows"), say=[].append)
    ours, theirs = labelled(datum), of_trl(folder, tmp_path / "out", row)
    if "text" in row:  # the first token is never predicted; TRL's loss shifts it away
        theirs[1][0] = IGNORED
    assert ours == up_to_end(theirs, skill)
    assert any(label != IGNORED for label in ours[1])


def test_weights_of_turns_are_the_masks_of_assistant_only_loss(tmp_path: Path) -> None:
    folder = model(tmp_path / "model", GENERATION)
    skill = Skill(folder)
    turns = [ASKED, HELLO, {**ASKED, "content": "and?"}, {**HELLO, "content": "bye"}]
    (datum,) = examples_of(
        [{"messages": [{**turn, "weight": int(turn["role"] == "assistant")} for turn in turns]}],
        skill,
        Path("rows"),
    )
    theirs = of_trl(folder, tmp_path / "out", {"messages": turns}, assistant_only_loss=True)
    assert labelled(datum) == up_to_end(theirs, skill)


def test_truncation_keeps_the_start_as_trl_does(tmp_path: Path) -> None:
    folder = model(tmp_path / "model", CHATML)
    row = {"prompt": "2 + 2 =", "completion": " 4, as everybody knows"}
    data = examples_of([row], Skill(folder), Path("rows"), say=[].append)
    (datum,) = fit_to_length(data, 12, "truncate", say=[].append)
    assert labelled(datum) == of_trl(folder, tmp_path / "out", row, max_length=12)
