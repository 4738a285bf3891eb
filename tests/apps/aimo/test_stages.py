# SPDX-License-Identifier: Apache-2.0
"""Parts of the stages that a whole run does not show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.store import read_rows, write_rows
from newskills_aimo.recipe.evaluating import EvaluationSettings, evaluation_lines, prompt_settings
from newskills_aimo.recipe.lines import CommandLine, ReportingOptions
from newskills_aimo.recipe.settings import AimoConfig, CotStage, RlStage
from newskills_aimo.recipe.training import (
    StagedTraining,
    _build_first_dataset,
    keep_samples,
    model_in,
    plan_stages,
)


def line(dataset: str) -> CommandLine:
    return CommandLine(command="prepare_training_data", options={"dataset": dataset})


def test_the_next_set_takes_the_place_of_one_that_cannot_be_had() -> None:
    asked: list[Any] = []
    said: list[Any] = []

    def ns(one: CommandLine) -> int:
        asked.append(one.options["dataset"])
        if one.options["dataset"] == "math-hard":
            raise DataError("The hub refuses it.")
        return 0

    _build_first_dataset([line("math-hard"), line("numinamath-cot")], ns, said.append)
    assert asked == ["math-hard", "numinamath-cot"]
    assert said == ["note: math-hard: The hub refuses it.; numinamath-cot is used instead"]
    with pytest.raises(DataError, match="refuses"):
        _build_first_dataset([line("math-hard")], ns, said.append)


@pytest.mark.parametrize(("share", "low", "high"), [(1.0, 2000, 2000), (0.1, 130, 270), (0.01, 5, 40)])
def test_a_share_of_the_samples_is_kept(tmp_path: Path, share: float, low: int, high: int) -> None:
    write_rows(tmp_path / "samples.jsonl", [{"step": n, "problem": f"p{n}"} for n in range(2000)])
    reporting = ReportingOptions(save_samples=share, samples_filename="kept.jsonl")
    keep_samples(tmp_path, reporting)
    first = list(read_rows(tmp_path / "kept.jsonl"))
    assert low <= len(first) <= high
    keep_samples(tmp_path, reporting)
    assert list(read_rows(tmp_path / "kept.jsonl")) == first


def test_where_a_stage_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("outputs/sft_cot/final_hf_model", "plain", "outputs/empty"):
        Path(name).mkdir(parents=True)
    Path("plain/config.json").write_text("{}")
    assert model_in("outputs/sft_cot", "o") == "outputs/sft_cot/final_hf_model"
    assert model_in("plain", "o") == "plain"
    assert model_in("smollm2", "o") == "o/base_hf_model"
    assert model_in("Qwen/Qwen3-0.6B", "o") == "Qwen/Qwen3-0.6B"
    for missing in ("outputs/empty", "./nowhere"):
        with pytest.raises(ConfigError, match="--base-model"):
            model_in(missing, "o")
        assert model_in(missing, "o", there=False).endswith("final_hf_model")


def test_the_plan_for_a_gpu_says_all_that_the_table_says() -> None:
    config = AimoConfig(cot=CotStage(start="m"))
    lines = {
        f"{name} {one.command}": one
        for name, one in plan_stages(StagedTraining(stages=("cot", "tir", "rl"), config=config, backend="trl"))
    }
    cot, rl = lines["cot sft"].keys, lines["rl grpo"].keys
    assert (cot["batch_size"], cot["trainer.trl.micro_batch_size"], cot["max_length"]) == (32, 4, 4096)
    assert (cot["trainer.lora.rank"], cot["trainer.lora.alpha"], cot["trainer.lora.dropout"]) == (64, 128.0, 0.05)
    assert (cot["trainer.trl.quantization"], cot["keep"], rl["keep"]) == ("nf4", 3, 3)
    assert (rl["batch_size"], rl["group_size"], rl["kl"], rl["max_tokens"]) == (8, 4, 0.1, 2048)
    assert (rl["trainer.trl.sampler"], rl["trainer.trl.vllm_memory"]) == ("vllm", 0.5)
    assert rl["trainer.lora.targets"] == ("q_proj", "k_proj", "v_proj", "o_proj")
    assert (rl["eval.every"], rl["eval.max_problems"], rl["eval.batch_size"], rl["eval.temperature"]) == (
        100,
        50,
        8,
        0.1,
    )
    assert "eval_benchmark" in lines["cot sft"].options
    tir = lines["tir sft"]
    assert str(tir.options["eval_benchmark"]).endswith("::WITH_PROGRAMS")
    assert (tir.keys["eval.code_tags"], tir.keys["eval.code_executions"], tir.keys["eval.every"]) == (
        "qwen",
        5,
        200,
    )


def test_a_line_is_what_a_person_would_type() -> None:
    one = CommandLine(
        command="sft", places=("x",), options={"a": None, "b": True}, keys={"c": ("q", "r"), "d": "two words"}
    )
    assert one.shell_text == """ns sft x --b=true '++c=["q","r"]' '++d=two words'"""
    assert json.loads(one.words[2].partition("=")[2]) == ["q", "r"]
    assert RlStage().batch == 32


def test_an_unknown_benchmark_is_told_before_a_model_is_converted(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UnknownNameError, match="gsm9k"):
        next(
            evaluation_lines(
                EvaluationSettings(model=str(tmp_path), benchmarks=["gsm9k"], output_dir=tmp_path / "out")
            )
        )


def test_programs_are_asked_for_as_texts_where_the_tokenizer_is_here(tmp_path: Path) -> None:
    model = tmp_path / "run/final_hf_model"
    model.mkdir(parents=True)
    (model / "tokenizer.json").write_text("{}")
    run = str(tmp_path / "run")
    keys = prompt_settings(True, run, None)
    assert (keys["inference.endpoint_type"], keys["tokenizer"], keys["code_tags"]) == ("text", model, "qwen")
    assert "tokenizer" not in prompt_settings(True, run, "http://127.0.0.1:1")
    assert "tokenizer" not in prompt_settings(True, "Qwen/Qwen3-0.6B", None)
    assert prompt_settings(False, run, None) == {"prompt_config": "qwen/math-cot"}
