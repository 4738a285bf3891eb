# SPDX-License-Identifier: Apache-2.0
"""LoRA pairs on frozen weights in 4 bits (QLoRA), which bitsandbytes also computes on a CPU."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from tests.train.backends.trl.test_trl_trainer import END, SETTINGS, SFT, fine_tune, metrics, reinforce
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.trainers import make_trainer

pytest.importorskip("trl")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"),
]
FOUR_BITS = msgspec.structs.replace(SETTINGS, trl=TrlSettings(quantization="nf4"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tokenizer(tiny_folder(tmp_path_factory.mktemp("model") / "tiny", eos_token_id=END))


def test_fine_tuning_learns_resumes_and_writes_a_whole_model(model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    assert fine_tune(model, tmp_path / "whole", settings=FOUR_BITS)
    losses = [row["loss"] for row in metrics(tmp_path / "whole")]
    assert losses[-1] < 0.8 * losses[0]
    assert fine_tune(model, tmp_path / "full")
    first = metrics(tmp_path / "full")[0]["loss"]
    assert losses[0] != first  # the frozen weights are rounded
    assert losses[0] == pytest.approx(first, rel=0.5)
    assert not fine_tune(model, tmp_path / "stopped", settings=FOUR_BITS, stop=iter([False] * 4 + [True]).__next__)
    assert fine_tune(model, tmp_path / "stopped", settings=FOUR_BITS)
    for ours, theirs in zip(metrics(tmp_path / "stopped"), metrics(tmp_path / "whole"), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6)
    folder = TrainingFolder(tmp_path / "whole", {"steps": SFT.steps})
    make_trainer("trl", model, FOUR_BITS).finish(folder, tmp_path / "final")
    folder.close()
    before, after = (load_file(path / "model.safetensors") for path in (model, tmp_path / "final"))
    assert before.keys() == after.keys()
    assert {name for name in before if not before[name].equal(after[name])} == {
        name for name in before if "_proj" in name
    }


def test_reinforcement_samples_and_steps(model: Path, tmp_path: Path) -> None:
    config = GrpoConfig(steps=2, batch_size=3, group_size=4, learning_rate=0.02, max_tokens=3, save_every=0)
    assert reinforce(model, tmp_path, config, FOUR_BITS)
    assert [row["groups_used"] > 0 for row in metrics(tmp_path)] == [True, True]
