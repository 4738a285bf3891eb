# SPDX-License-Identifier: Apache-2.0
"""Real weights: TRL and the cpu trainer compute the same losses and end with the same pairs, in float32."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.train.backends.trl.test_trl_trainer import Replay, alike, close, recorded

from newskills.base.records import Row
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainerConfig
from newskills.train.convert.from_gguf import gguf_to_hf
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems, grpo
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.sft import SftConfig, example
from newskills.train.settings import LoraSettings, TrainerSettings
from newskills.train.trainers import make_trainer

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.local_model, pytest.mark.slow]

END = 2
SETTINGS = TrainerSettings(lora=LoraSettings(rank=8, alpha=16), dtype="float32")
WORDS = range(1000, 1200)


class RealReplay(Replay):
    end = END


def rewarded(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
    return [Judged(float(sum(map(int, text.split())) % 5), correct=False) for _, text, _ in samples]


@pytest.mark.nightly
def test_the_embedded_model_is_trained_alike(small_model: Path, tmp_path: Path) -> None:
    gguf_to_hf(small_model, tmp_path / "hf")
    examples = [example(WORDS[at : at + 9], WORDS[at + 50 : at + 58]) for at in range(0, 60, 10)]
    config = SftConfig(steps=1, batch_size=3, learning_rate=1e-3, save_every=0)
    for name in ("trl", "cpu"):
        folder = TrainingFolder(tmp_path / name, {})
        assert make_trainer(name, tmp_path / "hf", SETTINGS).run(config, examples, folder)
        folder.close()
    close(tmp_path / "trl", tmp_path / "cpu", ["loss", "grad_norm"])
    alike(tmp_path / "trl", tmp_path / "cpu", 1, atol=3e-4)

    problems = [Problem(list(WORDS[at : at + 12]), {}) for at in (0, 40)]
    how = GrpoConfig(steps=1, batch_size=2, group_size=3, max_tokens=6, learning_rate=1e-4, save_every=0)
    scorer = Scorer(rewarded, lambda tokens: " ".join(map(str, tokens)), [END])
    folder = TrainingFolder(tmp_path / "rl-trl", {})
    assert make_trainer("trl", tmp_path / "hf", SETTINGS).run(how, RewardedProblems(problems, scorer), folder)
    folder.close()
    lora = LoraConfig(**{name: getattr(SETTINGS.lora, name) for name in ("rank", "alpha", "seed")})
    client = RealReplay(tmp_path / "hf", CpuTrainerConfig(lora=lora, dtype="float32"))
    client.recorded = recorded(tmp_path / "rl-trl", END)
    folder = TrainingFolder(tmp_path / "rl-cpu", {})
    assert grpo(client, problems, how, folder, scorer)
    folder.close()
    close(tmp_path / "rl-trl", tmp_path / "rl-cpu", ["loss", "grad_norm", "reward"])
    alike(tmp_path / "rl-trl", tmp_path / "rl-cpu", 1, atol=3e-4)
