# SPDX-License-Identifier: Apache-2.0
"""The modules that scripts of the older recipe import do what they did there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.apps.aimo.places import laid_out

from newskills.aimo import verify_answer, verify_answers
from newskills.aimo.evaluation import benchmarks
from newskills.aimo.inference.solution_selection import SolutionCandidate, select
from newskills.aimo.inference.tir_executor import TIRExecutor, safe_execute_python
from newskills.aimo.training.rl_math import EvalCallback, LLMJudgeRewardFunction
from newskills.aimo.training.sft_cot import SFTCoTConfig, SFTCoTTrainer
from newskills.aimo.training.sft_tir import SFTTIRConfig, extract_code_blocks, format_code_output
from newskills.aimo.training.tinker_rl_math import MathRLConfig, compute_reward, train_math_rl
from newskills.base.errors import ConfigError, NewskillsError, UnknownNameError
from newskills_aimo.recipe.settings import CotStage, TirStage

THOUGHT = "Let me think. We have $x + 3 = 10$, so 3 is taken from 10."
FULL = [
    rf"{THOUGHT} Thus \boxed{{7}}.",
    f"{THOUGHT}\n#### 7",
    f"{THOUGHT} The answer is 7.",
    f"{THOUGHT}\n\n**Final Answer**\n\\boxed{{7}}",
    f"{THOUGHT}\nTherefore, the final answer is: $\\boxed{{7}}$.",
    f"<think>Is it \\boxed{{6}}? No.</think>{THOUGHT} \\boxed{{7}}",
    r"\boxed{\frac{14}{2}}",
    f"{THOUGHT}\nAnswer: 7",
    "7",
]


@pytest.mark.parametrize("response", FULL)
@pytest.mark.parametrize("truth", ["7", "#### 7", r"We get $x=7$. The answer is \boxed{7}."])
def test_a_whole_response_is_verified(response: str, truth: str) -> None:
    assert verify_answer(response, truth) is True
    assert verify_answer(response, truth.replace("7", "8")) is False


@pytest.mark.parametrize(
    "response",
    ["no idea", f"{THOUGHT}\nIt must be\n7 or so.", r"either \boxed{7} or \boxed{8}", "7 or 8", "", None],
)
def test_what_gives_no_single_answer_is_wrong(response: str | None) -> None:
    assert verify_answer(response, "7") is False


def test_many_at_once_are_as_one() -> None:
    pairs: list[tuple[str | None, str]] = [(text, "7") for text in FULL]
    pairs += [(None, "7"), (r"\boxed{x+1}", "1+x"), (r"\boxed{8}", "7"), ("0.5", r"\frac{1}{2}")]
    assert verify_answers(pairs) == [*[True] * len(FULL), False, True, False, True]


def test_rewards_of_the_tinker_recipe() -> None:
    config = MathRLConfig()
    texts = [r"So \boxed{0.5}.", r"\boxed{3}", "The answer is 0.5.", "no idea"]
    rewards = [compute_reward(text, r"It is \boxed{\frac12}.", config) for text in texts]
    assert rewards == pytest.approx([1.1, -0.4, -0.5, -0.5])
    assert compute_reward(r"\boxed{1}", "1", MathRLConfig(correct_reward=2.0, format_bonus=0.0)) == 2.0


def test_a_tinker_training_is_the_command_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "none.jsonl"
    with pytest.raises(ConfigError, match="ended with code"):
        train_math_rl(MathRLConfig(model_name="m", log_dir=str(tmp_path / "log"), dataset_name=str(data)))
    assert capsys.readouterr().err


def test_settings_of_the_stages_are_the_usual_ones() -> None:
    assert SFTCoTConfig().stage() == CotStage()
    assert SFTTIRConfig().stage() == TirStage()
    changed = SFTTIRConfig(
        max_code_executions=3, load_in_4bit=False, max_train_samples=9, validation_split=0.2
    ).stage()
    assert isinstance(changed, TirStage)
    assert (changed.max_executions, changed.quantisation, changed.max_samples, changed.validation) == (
        3,
        "none",
        9,
        0.2,
    )
    for wrong in ({"use_lora": False}, {"trust_remote_code": True}, {"lr_scheduler_type": "warped"}):
        with pytest.raises(ConfigError):
            SFTCoTTrainer(SFTCoTConfig(**wrong))


def test_programs_of_solutions() -> None:
    shown = format_code_output("print(2)\n", "2")
    assert extract_code_blocks(f"So\n{shown}\nand\n{shown}") == ["print(2)", "print(2)"]


@pytest.mark.nightly
def test_a_stage_trained_from_python(tmp_path: Path) -> None:
    laid_out(tmp_path)
    (tmp_path / "run.py").write_text(
        "from newskills.aimo.training.sft_cot import SFTCoTConfig, SFTCoTTrainer\n"
        "config = SFTCoTConfig(model_name_or_path='model', output_dir='out', per_device_train_batch_size=2,\n"
        "    gradient_accumulation_steps=1, num_train_epochs=1, eval_steps=0, lora_r=2, force_cpu=True,\n"
        "    report_to='none', decontaminate=(), max_seq_length=64, max_train_samples=4)\n"
        "rows = [{'problem': f'WHAT IS {n} - 1?', 'generation': f'{n - 1}'} for n in range(6)]\n"
        "trainer = SFTCoTTrainer(config)\n"
        "print('MADE', trainer.train(rows))\n"
        "trainer.save_merged_model('merged')\n"
    )
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert "MADE out/final_hf_model" in done.stdout
    assert (tmp_path / "merged/model.safetensors").is_file()


def test_benchmarks_by_their_old_names(tmp_path: Path) -> None:
    assert benchmarks.MATH500_BENCHMARK.name == "math-500"
    assert benchmarks.get_benchmark("AIME") == benchmarks.AIME_BENCHMARK
    with pytest.raises(UnknownNameError):
        benchmarks.get_benchmark("aimee")
    with pytest.raises(NewskillsError, match="prepare_data"):
        benchmarks.load_benchmark(benchmarks.GSM8K_BENCHMARK, data_dir=str(tmp_path))
    file = tmp_path / "gsm8k/test.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps({"problem": f"p{n}", "expected_answer": n}) + "\n" for n in range(3)))
    rows = benchmarks.load_benchmark(benchmarks.GSM8K_BENCHMARK, 2, data_dir=str(tmp_path))
    assert [(row["problem"], row["solution"]) for row in rows] == [("p0", "0"), ("p1", "1")]


def test_votes_for_answers() -> None:
    def candidate(answer: str | None, text: str, logprob: float = 0.0) -> SolutionCandidate:
        return SolutionCandidate(response=text, answer=answer, log_prob=logprob)

    several = [
        candidate("3", "a"),
        candidate("0.5", "bb"),
        candidate(r"\frac12", "cccc"),
        candidate(None, "ddddd"),
    ]
    assert select(several) == "cccc"
    assert select(several, [5.0, 1.0, 1.0, 9.0]) == "a"
    assert select([candidate(None, "x"), candidate(None, "yy")]) == "x"
    assert select([]) == ""


def test_a_program_runs_in_the_sandbox() -> None:
    done = safe_execute_python("print(6 * 7)")
    assert (done.success, done.output) == (True, "42\n")
    failed = safe_execute_python("1 / 0")
    assert not failed.success
    assert "ZeroDivisionError" in str(failed.error)
    assert "timed out" in str(safe_execute_python("while True: pass", timeout=1.0).error)


# Models of transformers in this process


@pytest.fixture(scope="module")
def local() -> tuple[Any, Any]:
    """A model without any training, whose tokenizer has a word for each number and mark."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = ["[UNK]", "</s>", *(rf"\boxed{{{n}}}" for n in range(4)), *"abcdefgh"]
    made = Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", unk_token="[UNK]")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        eos_token_id=1,
        bos_token_id=None,
        pad_token_id=None,
    )
    return transformers.LlamaForCausalLM(config), tokenizer


def test_solvers_return_one_of_their_solutions(local: tuple[Any, Any]) -> None:
    from newskills.aimo.inference.solution_selection import GenSelectSolver, MajorityVoteSolver, WeightedVoteSolver

    model, tokenizer = local
    solver = MajorityVoteSolver(model, tokenizer, num_samples=12, temperature=1.0, max_new_tokens=6)
    drawn = solver.candidates("a b c")
    assert len(drawn) == 12
    assert len({candidate.response for candidate in drawn}) > 1
    assert all(candidate.log_prob < 0 for candidate in drawn)
    answers = Counter(candidate.answer for candidate in drawn if candidate.answer is not None)
    assert not answers or select(drawn).find(f"{{{answers.most_common(1)[0][0]}}}") >= 0
    for kind in (MajorityVoteSolver, WeightedVoteSolver):
        assert isinstance(kind(model, tokenizer, 3, 1.0, 5).solve("a b"), str)
    assert isinstance(GenSelectSolver(model, model, tokenizer, 3, 1.0, 5).solve("a b"), str)
    assert tokenizer.pad_token is None


def test_a_callback_evaluates_where_a_step_is_due(local: tuple[Any, Any], tmp_path: Path) -> None:
    model, tokenizer = local
    rows = [{"prompt": "a b", "answer": "1"}, {"prompt": "c d e", "answer": "2"}, {"prompt": "f", "answer": "3"}]
    callback = EvalCallback(
        rows, tokenizer, eval_steps=2, max_completion_length=5, report_to="none", eval_batch_size=2
    )
    metrics = callback.evaluate(model, 2)
    assert metrics["eval/num_samples"] + metrics["eval/num_unscored"] == 3
    assert metrics["eval/accuracy"] == metrics["eval/num_correct"] / metrics["eval/num_samples"]
    assert callback.evaluate(model, 2).keys() == metrics.keys()
    transformers = pytest.importorskip("transformers")
    handler = transformers.trainer_callback.CallbackHandler([callback], model, tokenizer, None, None)
    args = transformers.TrainingArguments(output_dir=str(tmp_path), report_to=[])
    state = transformers.TrainerState(global_step=1, is_world_process_zero=True)
    control = transformers.TrainerControl()
    handler.on_train_begin(args, state, control)
    handler.on_step_end(args, state, control)


def test_a_judge_has_a_part_in_the_reward(local: tuple[Any, Any]) -> None:
    model, tokenizer = local
    alone = LLMJudgeRewardFunction(llm_judge_weight=0.0)
    assert alone(["p"], [r"\boxed{1}"], ["1"]) == pytest.approx([1.1])
    judged = LLMJudgeRewardFunction()
    with pytest.raises(ConfigError, match="no judge"):
        judged(["p"], [r"\boxed{1}"], ["1"])
    judged.set_policy_model(model, tokenizer)
    assert judged(["p"], [r"\boxed{1}"], ["1"]) == [None]  # its reply has no marks


def test_the_parts_of_the_reward_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = LLMJudgeRewardFunction(llm_judge_weight=0.5)
    monkeypatch.setattr(judged, "_score", lambda *_: 0.8)
    assert judged(["p"], [r"\boxed{1}"], ["1"]) == pytest.approx([0.5 * 1.1 + 0.5 * (1.5 * 0.8 - 0.5)])


def test_an_answer_goes_on_behind_its_program(local: tuple[Any, Any]) -> None:
    executor = TIRExecutor(*local, max_code_executions=2)
    replies = iter(["First\n```python\nprint(6 * 7)\n```\n```output\nguess\n```", r" So \boxed{42}."])
    executor._local = SimpleNamespace(  # type: ignore[assignment]
        prompt=lambda name, row, begun: begun,
        generate=lambda prompts, max_new_tokens: [SimpleNamespace(text=next(replies), logprob=0.0)],
    )
    assert executor.solve_with_tir("?") == (
        "First\n```python\nprint(6 * 7)\n```\n```output\n42\n```\n So \\boxed{42}."
    )
