# SPDX-License-Identifier: Apache-2.0
"""TRL's KTOTrainer on labelled replies: its loss is the paper's, good replies become likelier, runs go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import load_file
from tests.train.preferences import END, PAIRS, SETTINGS, metrics
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.base.errors import ConfigError, DataError
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.kto import KtoConfig, LabelledReply
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import TrainerSettings
from newskills.train.trainers import make_trainer

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

REPLIES = [
    LabelledReply(reply=reply, good=good)
    for pair in PAIRS
    for reply, good in ((pair.chosen, True), (pair.rejected, False))
]
KTO = KtoConfig(steps=6, batch_size=8, learning_rate=0.01, beta=0.2, save_every=3)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END))


def learn(
    model: Path,
    path: Path,
    config: KtoConfig = KTO,
    settings: TrainerSettings = SETTINGS,
    replies: list[LabelledReply] = REPLIES,
    backend: str = "trl",
    **hooks: Any,
) -> bool:
    folder = TrainingFolder(path, {})
    try:
        return make_trainer(backend, model, settings).run(config, replies, folder, Hooks(**hooks))
    finally:
        folder.close()


@pytest.mark.nightly
def test_good_replies_become_likelier_and_a_stopped_run_goes_on(model: Path, tmp_path: Path) -> None:
    assert learn(model, tmp_path / "whole")
    rows = metrics(tmp_path / "whole")
    assert rows[0]["loss"] == pytest.approx(0.5, abs=1e-4)  # still the reference: every σ is one half
    assert rows[-1]["loss"] < 0.45
    assert rows[-1]["rewards/chosen"] > rows[-1]["rewards/rejected"]
    count = iter(range(100))
    assert not learn(model, tmp_path / "cut", stop=lambda: next(count) == 3)
    assert learn(model, tmp_path / "cut")
    for ours, theirs in zip(rows, metrics(tmp_path / "cut"), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)


def test_the_cpu_trainer_gives_the_numbers_of_trl(model: Path, tmp_path: Path) -> None:
    config = msgspec.structs.replace(KTO, good_weight=1.5, bad_weight=0.7)
    assert learn(model, tmp_path / "trl", config)
    assert learn(model, tmp_path / "cpu", config, backend="cpu")
    rows = list(zip(metrics(tmp_path / "trl"), metrics(tmp_path / "cpu"), strict=True))
    assert max(theirs["kl"] for theirs, _ in rows) > 0.1
    for theirs, ours in rows:
        assert theirs.keys() - ours.keys() == {"entropy"}
        for name in ours:
            assert ours[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-5), (theirs["step"], name)
    last = "checkpoint-000006/adapter_model.safetensors"
    own, other = load_file(tmp_path / "cpu" / last), load_file(tmp_path / "trl" / last)
    assert own.keys() == other.keys()
    for name, value in own.items():
        torch.testing.assert_close(value, other[name], rtol=1e-3, atol=1e-4)


def test_all_weights_learn_with_weights_for_each_kind(model: Path, tmp_path: Path) -> None:
    full = msgspec.structs.replace(SETTINGS, weights="full")
    config = msgspec.structs.replace(KTO, steps=2, learning_rate=1e-3, good_weight=3.0)
    assert learn(model, tmp_path, config, full)
    first = metrics(tmp_path)[0]
    assert 0.5 < first["loss"] < 1.5
    assert torch.isfinite(torch.tensor(first["grad_norm"]))


def test_what_cannot_be_learnt_from_is_told(model: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="are good; KTO needs good and bad ones"):
        learn(model, tmp_path / "good", replies=REPLIES[::2])
    with pytest.raises(DataError, match="nothing to train on"):
        learn(model, tmp_path / "none", replies=[])
    with pytest.raises(ConfigError, match="a batch of 1 is too small"):
        learn(model, tmp_path / "single", msgspec.structs.replace(KTO, batch_size=1))
    packed = msgspec.structs.replace(SETTINGS, trl=TrlSettings(packing=True))
    with pytest.raises(ConfigError, match="cannot pack"):
        learn(model, tmp_path / "packed", settings=packed)
