# SPDX-License-Identifier: Apache-2.0
"""What scripts of the recipe that this one replaces import, and what they set."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.apps.aimo.places import laid_out, ns, train_words

from newskills.aimo.evaluation.answer_extraction import (
    extract_answer_from_solution,
    extract_boxed_answer,
    extract_gsm8k_answer,
    is_equivalent_answer,
    normalize_answer,
    verify_answer,
)
from newskills.aimo.training.rl_math import MathRewardFunction, RLMathConfig, RLMathTrainer
from newskills.base.errors import ConfigError, DataError
from newskills.models.tokenizer import MISTRAL_WORDS, OTHERS_WORDS, HFTokenizer
from newskills_aimo.recipe.settings import RlStage


def test_answers_by_their_old_names() -> None:
    assert extract_boxed_answer(r"\boxed{3} then \boxed{4}") == "4"
    assert extract_gsm8k_answer("#### 1,008") == "1008"
    assert extract_answer_from_solution("The answer is 12.") == "12"
    assert normalize_answer(r"\dfrac{1}{2}") == normalize_answer(r"\frac{1}{2}")
    assert verify_answer("0.5", r"\frac{1}{2}")
    assert is_equivalent_answer("0.5", "1/2")


def test_the_defaults_are_those_of_the_stage() -> None:
    assert RLMathConfig().stage() == RlStage()
    assert RLMathConfig(force_cpu=True, num_generations=8).stage().vllm == "none"


def test_rewards_are_the_graders() -> None:
    rewards = MathRewardFunction(length_penalty=1.0)
    texts = [r"So \boxed{0.5}.", r"\boxed{3}", "no idea", r"\boxed{1/2}" + " " * 2989]
    found = rewards(["p"] * 4, texts, ["1/2"] * 4)
    assert found == pytest.approx([1.1, -0.4, -0.5, 0.1])
    own = MathRewardFunction(lambda text, truth: text == truth, 2.0, -1.0, 0.0)
    assert own(["p", "p"], ["a", "b"], ["a", "a"]) == [2.0, -1.0]
    with pytest.raises(ConfigError, match="judges answers by the math grader"):
        RLMathTrainer(RLMathConfig(), own)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_training_from_python(tmp_path: Path) -> None:
    laid_out(tmp_path)
    (tmp_path / "run.py").write_text(
        "from newskills.aimo.training.rl_math import *\n"
        "from newskills.aimo.training.rl_math import RLMathConfig, RLMathTrainer, MathRewardFunction\n"
        "config = RLMathConfig(model_name_or_path='model', output_dir='out', per_device_train_batch_size=2,\n"
        "    gradient_accumulation_steps=2, num_generations=2, max_completion_length=4, eval_steps=0, lora_r=2,\n"
        "    force_cpu=True, report_to='none', decontaminate=())\n"
        "rows = [{'prompt': f'WHAT IS {n} - 1?', 'answer': str(n - 1)} for n in range(4)]\n"
        "print('MADE', RLMathTrainer(config, MathRewardFunction(correct_reward=2.0)).train(rows))\n"
    )
    done = subprocess.run([sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "MADE out/final_hf_model" in done.stdout
    assert (tmp_path / "out/final_hf_model/model.safetensors").is_file()
    assert json.loads((tmp_path / "out/settings.json").read_text())["reward"]["correct"] == 2.0
    with pytest.raises(DataError, match="has no expected_answer or answer"):
        RLMathTrainer(RLMathConfig(output_dir=str(tmp_path / "o"))).train([{"problem": "x"}])


@pytest.mark.nightly
def test_four_bits_are_honoured_or_refused_with_a_sentence(tmp_path: Path) -> None:
    """Nobody asked: the weights stay whole, and that is said. Asked for: refused."""
    laid_out(tmp_path)
    words = train_words("--stage=cot", "--base-model=model", "--output-dir=out", "--dry_run")
    words.remove("--force-cpu")
    done = ns(tmp_path, *words, "--backend=trl")
    assert done.returncode == 0, done.stderr
    assert "not quantised to nf4: no GPU is visible" in done.stderr
    assert "quantization" not in done.stdout
    asked = ns(tmp_path, *words, "--backend=trl", "++cot.quantisation=nf4")
    assert asked.returncode == 2
    assert "++cot.quantisation=nf4 cannot be used here: no GPU is visible" in asked.stderr
    if find_spec("bitsandbytes") is None:
        learn = ["sft", "--backend=trl", "--model=model", "--training_data=pairs.jsonl", "--output_dir=o"]
        (tmp_path / "pairs.jsonl").write_text(json.dumps({"input": "A", "output": "B"}) + "\n")
        alone = ns(tmp_path, *learn, "++trainer.trl.quantization=nf4")
        assert alone.returncode == 2
        assert "++trainer.trl.quantization=nf4 cannot be used here: bitsandbytes is not installed" in alone.stderr


@pytest.mark.gpu
def test_four_bits_on_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    laid_out(tmp_path)
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"input": "A", "output": "B"}) + "\n")
    learn = ["sft", "--backend=trl", "--model=model", "--training_data=pairs.jsonl", "--output_dir=o"]
    done = ns(tmp_path, *learn, "++trainer.trl.quantization=nf4", "++steps=2")
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_weights_and_biases_switched_off_leaves_tensorboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_DISABLED", "true")
    laid_out(tmp_path)
    done = ns(tmp_path, *train_words("--stage=rl", "--base-model=model", "--dry_run", "--report-to=wandb"))
    assert done.returncode == 0, done.stderr
    assert "WANDB_DISABLED is set: metrics go to TensorBoard" in done.stderr
    assert "tensorboard" in done.stdout
    assert "--wandb_name" not in done.stdout


def test_a_share_of_the_samples_is_told(tmp_path: Path) -> None:
    laid_out(tmp_path)
    words = train_words(
        "--stage=rl", "--base-model=model", "--output-dir=out", "--save-samples", "--max-samples=6"
    )
    done = ns(tmp_path, *words, "--sample-save-rate=0.5", "--report-to=none", "--eval-steps=0")
    assert done.returncode == 0, done.stderr
    assert (
        "problems with their answers are kept in out/samples.jsonl (--sample-save-rate=0.5; 1, or" in done.stdout
    )


@pytest.mark.nightly
def test_apples_gpu_is_asked_for_by_its_variable() -> None:
    """Where there is none, the variable changes nothing."""
    pytest.importorskip("accelerate")
    code = "from newskills.train.backends.trl.processes import on_cpu; print(on_cpu())"
    environ = {**os.environ, "PYTORCH_ENABLE_MPS_FALLBACK": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("True", "False")


@pytest.mark.parametrize(
    ("config", "flags", "right"),
    [
        ({"model_type": "mistral", "transformers_version": "4.50.0"}, {}, True),
        ({"model_type": "mistral3"}, {}, True),
        ({"model_type": "mistral", "transformers_version": "5.2.0"}, {}, False),
        ({"model_type": "llama", "transformers_version": "4.50.0"}, {}, False),
        ({"model_type": "qwen2"}, {"fix_mistral_regex": True}, True),
        ({"model_type": "mistral"}, {"fix_mistral_regex": False}, False),
    ],
)
def test_mistrals_words_are_split_as_its_models_were_taught(
    tmp_path: Path, config: dict[str, str], flags: dict[str, bool], right: bool
) -> None:
    """`eBay` is one word in the one, two in the other; digits stand alone."""
    from tests.train.tiny import tiny_folder, with_tokenizer
    from tokenizers import pre_tokenizers

    folder = with_tokenizer(tiny_folder(tmp_path / "model"))
    wrong = (
        OTHERS_WORDS + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    held = json.loads((folder / "tokenizer.json").read_text())
    byte = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": wrong}, "behavior": "Isolated", "invert": False}
    held["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, byte]}
    (folder / "tokenizer.json").write_text(json.dumps(held))
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", **flags}))
    words = HFTokenizer(str(folder))._tokenizer.pre_tokenizer.pre_tokenize_str("eBay 12")
    expected = pre_tokenizers.Split(_regex(MISTRAL_WORDS if right else wrong), "isolated").pre_tokenize_str(
        "eBay 12"
    )
    assert [span for _, span in words] == [span for _, span in expected]
    assert len(words) == (5 if right else 3)


def _regex(pattern: str) -> Any:
    from tokenizers import Regex

    return Regex(pattern)
