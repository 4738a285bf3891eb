# SPDX-License-Identifier: Apache-2.0
"""TRL's RewardTrainer, transformers' classifier and the cpu trainer agree on reward models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import load_file
from tests.train.preferences import END, PAIRS, SETTINGS, metrics
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.base.errors import ConfigError
from newskills.base.store import read_rows
from newskills.train.backends.cpu.reward import load_reward_model
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.reward_model import HELD_OUT, HeldOutPairs, PreferenceData, RewardModelConfig
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import TrainerSettings
from newskills.train.trainers import make_trainer

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

CONFIG = RewardModelConfig(steps=5, batch_size=4, learning_rate=0.01, eval_every=3, save_every=2)
HELD = HeldOutPairs(pairs=PAIRS[:4], problems=["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(
        tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END, pad_token_id=END)
    )


def trained(model: Path, path: Path, backend: str, settings: TrainerSettings = SETTINGS, **hooks: Any) -> bool:
    folder = TrainingFolder(path, {})
    trainer = make_trainer(backend, model, settings)
    try:
        ended = trainer.run(CONFIG, PreferenceData(pairs=PAIRS[4:], held_out=HELD), folder, Hooks(**hooks))
        if ended:
            trainer.finish(folder, path / "final")
        return ended
    finally:
        folder.close()


def test_both_give_the_same_numbers_and_a_model_that_transformers_reads(model: Path, tmp_path: Path) -> None:
    for backend in ("trl", "cpu"):
        assert trained(model, tmp_path / backend, backend)
    for theirs, ours in zip(metrics(tmp_path / "trl"), metrics(tmp_path / "cpu"), strict=True):
        assert theirs.keys() == ours.keys()
        assert theirs == pytest.approx(ours, rel=1e-3, abs=1e-4)
    held = [
        [value for row in read_rows(tmp_path / backend / HELD_OUT) for value in (row["chosen"], row["rejected"])]
        for backend in ("trl", "cpu")
    ]
    assert held[0] == pytest.approx(held[1], rel=1e-3, abs=1e-4)
    weights = [load_file(tmp_path / backend / "final/model.safetensors") for backend in ("trl", "cpu")]
    assert weights[0].keys() == weights[1].keys()
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name], rtol=1e-3, atol=1e-4)

    from transformers import AutoModelForSequenceClassification

    classifier = AutoModelForSequenceClassification.from_pretrained(tmp_path / "cpu/final", dtype=torch.float32)
    sequences = [[*pair.chosen.tokens, pair.chosen.targets[-1]] for pair in HELD.pairs]
    width = max(map(len, sequences))
    pad = classifier.config.pad_token_id
    assert pad != END  # the head reads the last token that is no padding
    ids = torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in sequences])
    with torch.inference_mode():
        theirs = classifier(input_ids=ids, attention_mask=(ids != pad).long()).logits.squeeze(-1).tolist()
    scorer = load_reward_model(tmp_path / "cpu/final", 1, "float32")
    assert scorer.values(sequences) == pytest.approx(theirs, rel=1e-4, abs=1e-5)


def test_a_run_that_was_stopped_goes_on_to_the_same_numbers(model: Path, tmp_path: Path) -> None:
    for backend in ("cpu", "trl"):
        whole, cut = tmp_path / backend / "whole", tmp_path / backend / "cut"
        assert trained(model, whole, backend)
        count = iter(range(100))
        assert not trained(model, cut, backend, stop=lambda count=count: next(count) == 2)
        assert trained(model, cut, backend)
        for ours, theirs in zip(metrics(whole), metrics(cut), strict=True):
            assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)


def test_settings_that_reward_models_lack_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="LoRA pairs"):
        trained(model, tmp_path, "trl", msgspec.structs.replace(SETTINGS, weights="full"))
