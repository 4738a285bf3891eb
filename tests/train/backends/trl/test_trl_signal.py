# SPDX-License-Identifier: Apache-2.0
"""The signal of a step with TRL's trainer: the figures of the cpu trainer on the same samples."""

from pathlib import Path

import msgspec
import pytest
from tests.train.tiny import tiny_folder, with_tokenizer

pytest.importorskip("trl")

import torch
from tests.train.backends.trl.test_trl_trainer import END, GRPO, SETTINGS, metrics, pairs_of, reinforce

from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.backends.trl.signal import PLACE, GradientParts, in_order
from newskills.train.loops.schedule import rate_at
from newskills.train.loops.signal import noise_scale, signal_of

CONFIG = msgspec.structs.replace(GRPO, steps=4, batch_size=4)
IN_PARTS = msgspec.structs.replace(SETTINGS, trl=TrlSettings(micro_batch_size=4))
"""A part for each group."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END))


def test_parts_are_told_apart() -> None:
    weight = torch.zeros(2, requires_grad=True)
    parts = GradientParts([weight, torch.zeros(1)])
    for gradient in ([4.0, 0.0], [4.0, 2.0]):
        weight.grad = torch.tensor(gradient)
        parts.add()
    moments = parts.moments()
    assert (moments.squares, moments.total, moments.cosine) == (16 + 4, 16 + 4, 0.0)


def test_samples_get_their_order_back() -> None:
    order = torch.tensor([2, 0, 3, 1])
    rows = {
        PLACE: order,
        "ids": order[:, None] * 10,
        "names": [f"{place}" for place in order.tolist()],
        "none": None,
    }
    rows["count"] = torch.tensor(7.0)
    divided = (PLACE, "ids", "names")
    parts = [
        {name: value[at : at + 2] if name in divided else value for name, value in rows.items()} for at in (0, 2)
    ]
    first, second = in_order(parts)
    assert first["ids"].flatten().tolist() + second["ids"].flatten().tolist() == [0, 10, 20, 30]
    assert first["names"] + second["names"] == ["0", "1", "2", "3"]
    assert (first["none"], second["count"].item()) == (None, 7.0)


def test_the_signal_is_measured(model: Path, tmp_path: Path) -> None:
    """How a step is divided changes no learning rate."""
    assert reinforce(model, tmp_path, CONFIG, IN_PARTS)
    rows = metrics(tmp_path)
    for step, row in enumerate(rows):
        assert row["learning_rate"] == rate_at(step, CONFIG.steps, CONFIG.learning_rate, CONFIG.schedule)
    pooled = noise_scale([row["gradient_square"] for row in rows], [row["gradient_variance"] for row in rows])
    assert rows[-1]["signal"] == pytest.approx(signal_of(4, pooled))
    assert all(row["gradient_variance"] > 0 and -1 <= row.get("halves_cosine", 0) <= 1 for row in rows)


def test_measuring_changes_no_weights(model: Path, tmp_path: Path) -> None:
    """One part cannot be measured; the weights are the same but for last digits."""
    assert reinforce(model, tmp_path / "parts", CONFIG, IN_PARTS)
    assert reinforce(model, tmp_path / "whole", CONFIG)
    assert "signal" not in metrics(tmp_path / "whole")[0]
    parts, whole = pairs_of(tmp_path / "parts", 4), pairs_of(tmp_path / "whole", 4)
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-3, atol=1e-4)
