# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import msgspec
import pytest
import yaml

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.config.fields import leaves
from newskills_aimo.recipe.settings import DEFAULTS, AimoConfig, resolve_settings


def test_the_file_with_the_defaults_holds_them_all() -> None:
    loaded = yaml.safe_load(DEFAULTS.read_text())
    assert resolve_settings(str(DEFAULTS), {}, {}).value == AimoConfig()
    flat = {f"{name}.{key}" for name, stage in loaded.items() if isinstance(stage, dict) for key in stage}
    assert flat | {"decontaminate"} == set(leaves(AimoConfig))


def test_the_published_values() -> None:
    config = AimoConfig()
    table = [
        (
            stage.epochs,
            stage.batch_size,
            stage.accumulation,
            stage.learning_rate,
            stage.lora_rank,
            stage.lora_alpha,
        )
        for stage in (config.cot, config.tir, config.rl)
    ]
    assert table == [(3, 4, 8, 2e-5, 64, 128), (2, 2, 16, 1e-5, 32, 64), (1, 4, 8, 1e-6, 16, 32)]
    assert (config.cot.max_length, config.tir.max_length, config.rl.max_tokens) == (4096, 8192, 2048)
    assert config.rl.lora_modules == ("q_proj", "k_proj", "v_proj", "o_proj")
    assert (config.rl.num_generations, config.rl.beta, config.rl.max_grad_norm) == (4, 0.1, 0.5)
    assert (config.rl.correct, config.rl.wrong, config.rl.boxed) == (1.0, -0.5, 0.1)


def test_a_later_layer_wins(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("cot: {learning_rate: 2e-4, epochs: 5}\nrl: {lora_modules: [q_proj]}\n")
    resolved = resolve_settings(str(file), {"cot.epochs": 2.0}, {"cot.seed": 7})
    assert (resolved.value.cot.learning_rate, resolved.value.cot.epochs, resolved.value.cot.seed) == (2e-4, 2.0, 7)
    assert resolved.value.rl.lora_modules == ("q_proj",)
    assert resolved.value.tir == AimoConfig().tir
    assert resolved.origin["cot.learning_rate"] == str(file)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("cot: {learnin_rate: 1}", UnknownNameError, "cot.learning_rate"),
        ("cot: {epochs: many}", ConfigError, "epochs"),
        ("[1, 2]", ConfigError, "expected settings, got list"),
        ("cot: {", ConfigError, "default.yaml"),
        ("rl: {num_generations: 1}", ConfigError, "num_generations"),
    ],
)
def test_a_bad_file_is_told(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(error, match=said):
        resolve_settings(str(file), {}, {})


def test_every_key_says_what_it_means() -> None:
    assert not [path for path, leaf in leaves(AimoConfig).items() if not leaf.description]
    assert msgspec.to_builtins(AimoConfig())["tir"]["max_executions"] == 5
