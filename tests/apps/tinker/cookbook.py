# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.apps.tinker.cookbook KIND ADDRESS MODEL FOLDER`: loops of the Tinker cookbook, as it is
published, with its own data sets and environments, at a service.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tinker_cookbook.recipes.math_rl.arithmetic_env import ArithmeticDatasetBuilder
from tinker_cookbook.recipes.multiplayer_rl.guess_number.env import GuessNumberDatasetBuilder
from tinker_cookbook.rl import train as reinforced
from tinker_cookbook.supervised import train as supervised
from tinker_cookbook.supervised.data import FromConversationFileBuilder
from tinker_cookbook.supervised.types import ChatDatasetBuilderCommonConfig

RENDERER = "role_colon"


def sft(address: str, model: str, folder: Path) -> None:
    data = folder / "conversations.jsonl"
    turns = [("user", "2+2?"), ("assistant", "4"), ("user", "3+3?"), ("assistant", "6")]
    row = {"messages": [{"role": role, "content": content} for role, content in turns]}
    data.write_text(f"{json.dumps(row)}\n" * 8)
    common = ChatDatasetBuilderCommonConfig(
        model_name_for_tokenizer=model, renderer_name=RENDERER, max_length=256, batch_size=4
    )
    config = supervised.Config(
        log_path=str(folder / "log"),
        model_name=model,
        recipe_name="kept_test",
        renderer_name=RENDERER,
        dataset_builder=FromConversationFileBuilder(file_path=str(data), common_config=common),
        learning_rate=1e-2,
        lora_rank=4,
        base_url=address,
        eval_every=0,
        save_every=1,
        num_epochs=2,
    )
    asyncio.run(supervised.main(config))


def _reinforce(builder: Any, address: str, model: str, folder: Path, **more: Any) -> None:
    config = reinforced.Config(
        learning_rate=1e-3,
        dataset_builder=builder,
        model_name=model,
        recipe_name="kept_test",
        max_tokens=4,
        log_path=str(folder / "log"),
        eval_every=0,
        save_every=1,
        renderer_name=RENDERER,
        lora_rank=4,
        base_url=address,
        max_steps=1,
        **more,
    )
    asyncio.run(reinforced.main(config))


def rl(address: str, model: str, folder: Path) -> None:
    """One turn."""
    builder = ArithmeticDatasetBuilder(
        batch_size=2, model_name_for_tokenizer=model, renderer_name=RENDERER, n_batches=2, group_size=2
    )
    _reinforce(builder, address, model, folder, loss_fn="dro", loss_fn_config={"beta": 0.1})


def turns(address: str, model: str, folder: Path) -> None:
    """Several turns of a game."""
    builder = GuessNumberDatasetBuilder(
        batch_size=1, renderer_name=RENDERER, train_group_size=2, model_name=model, base_url=address
    )
    _reinforce(builder, address, model, folder, loss_fn="ppo")


if __name__ == "__main__":
    kind, address, model, folder = sys.argv[1:]
    {"sft": sft, "rl": rl, "turns": turns}[kind](address, model, Path(folder))
