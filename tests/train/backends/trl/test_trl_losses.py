# SPDX-License-Identifier: Apache-2.0
"""Losses by name: each is TRL's own, differs from the others where it should, and is refused by name elsewhere."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.train.backends.trl.test_trl_trainer import (
    END,
    GRPO,
    SETTINGS,
    SFT,
    fine_tune,
    metrics,
    reinforce,
)
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from newskills.base.errors import ConfigError
from newskills.train.backends.trl.losses import PAPERS, loss_arguments
from newskills.train.backends.trl.settings import TrlLoss, TrlSettings
from newskills.train.loops.grpo import GrpoConfig

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
SHORT = msgspec.structs.replace(
    GRPO, steps=2, save_every=0, iterations=2, loss="ppo", learning_rate=0.05, max_tokens=24
)
"""Long enough for some samples to end early: with samples of one length several losses are the same."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END))


def with_trl(**changed: Any) -> Any:
    return msgspec.structs.replace(SETTINGS, trl=TrlSettings(**changed))


def norms(model: Path, path: Path, config: GrpoConfig = SHORT, **changed: Any) -> list[float]:
    assert reinforce(model, path, config, with_trl(**changed))
    return [row["grad_norm"] for row in metrics(path)]


def test_each_loss_trains_and_is_a_loss_of_its_own(model: Path, tmp_path: Path) -> None:
    names = [name for name in typing.get_args(TrlLoss) if name != "masked"]
    assert set(names) | {"masked"} == {*PAPERS, "token_mean"}
    by_name = {name: norms(model, tmp_path / name, loss=name) for name in names}
    assert by_name["dapo"] == by_name["token_mean"]
    first = {name: round(values[0], 6) for name, values in by_name.items()}
    for one, other in (
        ("grpo", "dapo"),
        ("dr_grpo", "dapo"),
        ("luspo", "dapo"),
        ("sapo", "dapo"),
        ("vespo", "dapo"),
    ):
        assert first[one] != first[other], (one, other)
    later = {name: round(values[1], 6) for name, values in by_name.items()}
    assert later["gspo"] != later["grpo"]
    assert later["cispo"] != later["dapo"]


def test_entropy_is_rewarded(model: Path, tmp_path: Path) -> None:
    one = msgspec.structs.replace(SHORT, iterations=1, steps=6, loss="importance_sampling")
    assert reinforce(model, tmp_path / "without", one, with_trl())
    assert reinforce(model, tmp_path / "with", one, with_trl(entropy_bonus=0.5))
    plain, rewarded = (metrics(tmp_path / name) for name in ("without", "with"))
    assert plain[0]["entropy"] == pytest.approx(rewarded[0]["entropy"], rel=1e-4)
    assert rewarded[-1]["entropy"] > plain[-1]["entropy"]
    assert {"clip_ratio/low_mean", "clip_ratio/high_mean", "entropy"} <= plain[0].keys()


def test_what_a_loss_needs_is_said(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"loss=masked compares trainer and sampler"):
        reinforce(model, tmp_path / "masked", SHORT, with_trl(loss="masked"))
    with pytest.raises(ConfigError, match=r"loss=sapo does not go with .*algorithm=rloo"):
        reinforce(model, tmp_path / "rloo", GRPO, with_trl(loss="sapo", algorithm="rloo"))
    resampled = msgspec.structs.replace(GRPO, resample=1)
    with pytest.raises(ConfigError, match=r"entropy_bonus does not go with \+\+resample"):
        reinforce(model, tmp_path / "drawn", resampled, with_trl(entropy_bonus=0.1))
    for backend in ("cpu",):
        with pytest.raises(ConfigError, match=r"trainer\.trl\.loss"):
            reinforce(model, tmp_path / backend, GRPO, with_trl(loss="sapo"), backend=backend)
    with pytest.raises(ConfigError, match="has no experts"):
        fine_tune(model, tmp_path / "experts", settings=with_trl(router_loss=0.01))
    with pytest.raises(ConfigError, match="liger needs a GPU"):
        fine_tune(model, tmp_path / "liger", settings=with_trl(liger=True))
    masked = loss_arguments(TrlSettings(loss="masked", sampler="vllm"), GRPO)
    assert masked["vllm_importance_sampling_mode"] == "token_mask"


def test_experts_are_balanced(tmp_path: Path) -> None:
    folder = tmp_path / "experts"
    config = Qwen3MoeConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        moe_intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        decoder_sparse_step=1,
        max_position_embeddings=64,
        eos_token_id=END,
    )
    Qwen3MoeForCausalLM(config).save_pretrained(folder)
    with_tokenizer(folder)
    short = msgspec.structs.replace(SFT, steps=2, save_every=0)
    full = msgspec.structs.replace(with_trl(router_loss=0.1), weights="full")
    assert fine_tune(folder, tmp_path / "balanced", short, full)
    none = msgspec.structs.replace(with_trl(router_loss=0.0), weights="full")
    assert fine_tune(folder, tmp_path / "unbalanced", short, none)
    balanced, unbalanced = (metrics(tmp_path / name)[0] for name in ("balanced", "unbalanced"))
    assert balanced["aux_loss"] > 0
    assert "aux_loss" not in unbalanced
    assert balanced["loss"] != pytest.approx(unbalanced["loss"], abs=1e-4)
