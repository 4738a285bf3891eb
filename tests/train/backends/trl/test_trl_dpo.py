# SPDX-License-Identifier: Apache-2.0
"""TRL's DPOTrainer and the cpu trainer agree on pairs, step by step."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file
from tests.train.preferences import DPO, END, SETTINGS, metrics, prefer
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.base.errors import ConfigError
from newskills.train.backends.trl.settings import TrlSettings

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

SAME = (
    *("loss", "grad_norm", "learning_rate", "tokens"),
    *("rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies"),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END))


def test_dpo_gives_the_numbers_of_the_cpu_trainer(model: Path, tmp_path: Path) -> None:
    assert prefer(model, tmp_path / "trl", backend="trl")
    assert prefer(model, tmp_path / "cpu")
    for theirs, ours in zip(metrics(tmp_path / "trl"), metrics(tmp_path / "cpu"), strict=True):
        for name in SAME:
            assert theirs[name] == pytest.approx(ours[name], rel=1e-3, abs=1e-5), (theirs["step"], name)
    last = "checkpoint-000009/adapter_model.safetensors"
    one, other = load_file(tmp_path / "trl" / last), load_file(tmp_path / "cpu" / last)
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], rtol=1e-3, atol=1e-4)


def test_a_run_that_was_stopped_goes_on_to_the_same_numbers(model: Path, tmp_path: Path) -> None:
    assert prefer(model, tmp_path / "whole", backend="trl")
    count = iter(range(100))
    assert not prefer(model, tmp_path / "cut", backend="trl", stop=lambda: next(count) == 5)
    assert prefer(model, tmp_path / "cut", backend="trl")
    for one, other in zip(metrics(tmp_path / "whole"), metrics(tmp_path / "cut"), strict=True):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-7)


def test_all_weights_learn_too_and_packing_is_refused(model: Path, tmp_path: Path) -> None:
    full = msgspec.structs.replace(SETTINGS, weights="full")
    config = msgspec.structs.replace(DPO, learning_rate=1e-3)
    assert prefer(model, tmp_path / "full", config, full, "trl")
    assert metrics(tmp_path / "full")[-1]["rewards/margins"] > 0.1
    packed = msgspec.structs.replace(SETTINGS, trl=TrlSettings(packing=True))
    with pytest.raises(ConfigError, match="cannot pack pairs"):
        prefer(model, tmp_path / "packed", DPO, packed, "trl")
