# SPDX-License-Identifier: Apache-2.0
"""Every command that does something can say what it would do, and then leaves everything as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.clusters import BENCHMARK, SUMS
from tests.commands.running import ns, write

from newskills.commands.loading import load_command
from newskills.commands.table import command_names
from newskills.config.fields import leaves
from newskills.graders.math.grader import VERSION

ONLY_LOOK = {
    *("doctor", "list", "plan", "rehearse", "status", "logs", "experiments", "info", "completion"),
    *("compare", "why", "samples", "query", "regrade", "report", "plan_eval", "kuberay", "judge_agreement"),
    *("push", "environments"),
}
"""Commands that change nothing of the user's; a rehearsal is itself the trial of another command, those that look at
results write new files at most, a manifest is only printed, `ns push` is a dry run unless it is told to send, and
`ns environments prune` one without --yes.
"""

GRADED = [{**row, "predicted_answer": row["expected_answer"], "symbolic_correct": True} for row in SUMS]
MODEL = "--server_type=openai --server_address=http://127.0.0.1:9 --model=m"
TASKS = "evaluation: {tasks: [{name: gsm8k}]}"
LINES = {
    "quickstart": ("ns quickstart --output_dir=out", "out/rounds"),
    "setup": ("ns setup --non_interactive --executor=none --name=mine", "cluster_configs/mine.yaml"),
    "prepare_data": (
        "ns prepare_data ./sums.py reasoning-gym.easy-sum --data_dir=data",
        "data/own-sums/test.jsonl",
    ),
    "mirror": ("ns mirror build gsm8k mirrored", "gsm8k"),
    "generate": (
        f"ns generate {MODEL} --input_file=in.jsonl --output_dir=out ++prompt_config=generic/math",
        "out/output.jsonl",
    ),
    "eval": (f"ns eval {MODEL} --benchmarks=./sums.py --data_dir=ready --output_dir=out", "Add 0 and 0."),
    "evaluate": (
        "ns evaluate execution.output_dir=out target.api_endpoint.url=http://127.0.0.1:9 "
        "target.api_endpoint.model_id=m -t gsm8k",
        "task 0 gsm8k: ns eval --benchmarks=gsm8k",
    ),
    "resume": ("ns resume feed", "feed00.0"),
    "robust_eval": (
        f"ns robust_eval {MODEL} --benchmarks=./sums.py --data_dir=ready --output_dir=out --prompt_set_config=set.yaml",
        "Add 0 and 0.",
    ),
    "retrieve_similar": (
        "ns retrieve_similar --retrieve_from=in.jsonl --compare_to=in.jsonl,in.jsonl --output_file=similar.jsonl",
        "similar.jsonl",
    ),
    "validate": ("ns validate ./sums.py --data_dir=ready", "ready/own-sums"),
    "scan": ("ns scan results --scanners refusal", "results/gsm8k/scans/refusal"),
    "diagnose": (f"ns diagnose results {MODEL} --output=why", "why.html"),
    "grade": ("ns grade --input_files in.jsonl --output_file graded.jsonl ++timeout=3", "graded.jsonl"),
    "critpt": ("ns critpt export in.jsonl --output_file=batch.json", "batch.json"),
    "swe_bench": ("ns swe_bench export in.jsonl --output_file=predictions.jsonl", "predictions.jsonl"),
    "prepare_training_data": (
        "ns prepare_training_data --config-name=math_rl ++input_files=in.jsonl ++output_path=rl.jsonl "
        "++filters.remove_contaminated=false ++filters.remove_len_outlier_problems=false",
        "rl.jsonl",
    ),
    "sft": ("ns sft --model=a --training_data=pairs.jsonl --output_dir=out", "final_hf_model"),
    "dpo": ("ns dpo --model=nowhere --training_data=in.jsonl --output_dir=out", "out/final_hf_model"),
    "distill": (
        "ns distill --model=a --teacher=b --training_data=in.jsonl --output_dir=out ++prompt_config=generic/math",
        "the teacher",
    ),
    "reward_model": (
        "ns reward_model --model=nowhere --training_data=in.jsonl --output_dir=out",
        "out/final_hf_model",
    ),
    "kto": ("ns kto --model=nowhere --training_data=in.jsonl --output_dir=out", "out/final_hf_model"),
    "grpo": (
        "ns grpo --model=a --training_data=in.jsonl --output_dir=out ++prompt_config=generic/math",
        "final_hf_model",
    ),
    "improve": (
        "ns improve --benchmark=./sums.py --data_dir=ready --training_data=new.jsonl --output_dir=out",
        "each round (SFT): 1 problem, at most",
    ),
    "sft_nemo_rl": (
        "ns nemo_rl sft --hf_model=/models/m --training_data=pairs.jsonl --output_dir=out --num_gpus=1",
        "examples/run_sft.py",
    ),
    "grpo_nemo_rl": (
        "ns nemo_rl grpo --hf_model=/models/m --training_data=ready/own-sums/test.jsonl --output_dir=out --num_gpus=1",
        "examples/run_grpo.py",
    ),
    "aimo_train": ("ns aimo train --stage=cot --base_model=a", "ns sft --model=a"),
    "aimo_evaluate": ("ns aimo evaluate --model=a --benchmark=gsm8k", "--benchmarks=gsm8k:0"),
    "aimo_evaluate_all": ("ns aimo evaluate_all --model=a --no-vllm", "amc23:0,gsm8k:0"),
    "aimo_evaluate_checkpoints": (
        "ns aimo evaluate_checkpoints --model=run --base_model=a --benchmark=gsm8k",
        "ns merge_lora --base_model=a",
    ),
    "aimo_generate": ("ns aimo generate --model=a --problem=p --strategy=genselect", "++solver=genselect"),
    "aimo_regenerate_summary": ("ns aimo regenerate_summary run/artifacts", "ns summarize_results run/artifacts"),
    "ppo_verl": (
        "ns verl ppo --hf_model=/models/m --prompt_data=ready/own-sums/test.jsonl --output_dir=out --num_gpus=1",
        "verl.trainer.main_ppo",
    ),
    "train_megatron_lm": (
        "ns megatron_lm train --megatron_model=/models/m --tokenizer_model=t --per_split_data_path=/data/blend.json "
        "--output_dir=out --num_gpus=1",
        "torch.distributed.run",
    ),
    "convert": ("ns convert --input_model=a --output_model=b --convert_from=hf --convert_to=gguf", "gguf"),
    "merge_lora": ("ns merge_lora --base_model=a --adapter=b --output_model=c", "the LoRA pairs"),
    "average_checkpoints": ("ns average_checkpoints --checkpoints a b --output_model=c", "average of 2"),
    "run_cmd": ("ns run_cmd touch made", "touch made"),
    "aggregate_answers": ("ns aggregate_answers . --input_files=in.jsonl --mode=extract", "output-agg.jsonl"),
    "nemo_gym_rollouts": (
        "ns nemo_gym_rollouts --config_paths=a.yaml --input_file=in.jsonl --output_dir=out --model=m "
        "--server_address=http://127.0.0.1:9",
        "ng_collect_rollouts",
    ),
    "merge_chunks": ("ns merge_chunks all.jsonl in.jsonl in.jsonl", "20 rows"),
    "cancel": ("ns cancel long", "nothing is cancelled"),
    "summarize_results": ("ns summarize_results results --debug", "results/metrics_extended.json"),
    "summarize_robustness": ("ns summarize_robustness robust --debug", "summarize_robustness/tables.txt"),
    "compute_metrics": (
        "ns compute_metrics --prediction_jsonl_files in.jsonl --benchmark=gsm8k --save_metrics_path=m.json",
        "m_extended.json",
    ),
    "nemo_evaluator": (
        "ns nemo_evaluator --nemo_evaluator_config=tasks.yaml --output_dir=out --server_model=m "
        "--server_base_url=http://h",
        "nemo_evaluator.core.entrypoint",
    ),
    "import": ("ns import results", "10 records"),
    "export": ("ns export results --format inspect", "to logs"),
    "view": ("ns view results --export page", "a page, its data and its scripts"),
    "start_server": ("ns start_server --server_type=vllm --model=/models/m --server_gpus=1", "/models/m"),
    "serve_rewards": ("ns serve_rewards --grader=math ++reward.wrong=-0.5", f"math@{VERSION}"),
    "serve_gym": ("ns serve_gym --grader=math", f"math@{VERSION}"),
    "serve_evals": ("ns serve_evals --port=0 --output-root=evals", "++server.model=slime-openai-model"),
    "agents": ("ns agents install codex", "codex/0."),
    "gateway": (
        "ns gateway --server_type=vllm --server_address=http://host:8000 --model=m --port=0",
        "gateway.jsonl",
    ),
    "load_test": (
        "ns load_test --server_type=vllm --server_address=http://host:8000 --model=m --rate=1,2",
        "200 requests, sent within 100 s",
    ),
    "tinker_rl": ("ns tinker rl model_name=m log_dir=rl dataset_name=in.jsonl", "to train m, LoRA of rank 64"),
    "tinker_sft": ("ns tinker sft model_name=m log_dir=s dataset_name=pairs.jsonl", "3 epochs of 32 sequences"),
    "serve_tinker": ("ns serve_tinker --model=smollm2 --output_dir=states --port=0", "training runs"),
    "sandbox": ("ns sandbox serve --port=0 --memory_mb=64", "++sandbox.limits.memory_mb"),
}


def snapshot(folder: Path) -> dict[str, tuple[int, bytes | bool]]:
    """Everything below it; that files for the moment came and went in its tmp is no change."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.is_file() and path.read_bytes())
        for path in folder.rglob("*")
        if path != folder / "tmp"
    }


def test_every_command_that_does_something_has_a_dry_run() -> None:
    able = {name for name in command_names() if "dry_run" in leaves(load_command(name).options)}
    assert able == set(command_names()) - ONLY_LOOK == set(LINES)


@pytest.fixture
def home(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """(folder, environment): whatever `ns` writes is written below the folder."""
    wordings = "own-sums: [{prompt: generic/math}]"
    for name, text in (
        ("sums.py", BENCHMARK),
        ("ready/own-sums/.keep", ""),
        ("set.yaml", wordings),
        ("tasks.yaml", TASKS),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    write(tmp_path / "in.jsonl", GRADED)
    write(tmp_path / "new.jsonl", [{"problem": "How many legs have nine dogs?", "expected_answer": "36"}])
    write(tmp_path / "pairs.jsonl", [{"input": "1 + 1 =", "output": " 2"}])
    write(tmp_path / "ready/own-sums/test.jsonl", SUMS)
    write(tmp_path / "results/gsm8k/output.jsonl", GRADED)
    write(tmp_path / "robust/own-sums/math/eval-results/own-sums/output.jsonl", GRADED)
    write(tmp_path / "run/artifacts/eval-results/gsm8k/output.jsonl", GRADED)
    write(tmp_path / "run/checkpoint-000001/adapter_config.json", [{}])
    job = {"invocation_id": "feed00", "job_id": "feed00.0", "timestamp": 1.0, "executor": "local"}
    write(
        tmp_path / "home/.nemo-evaluator/exec-db/exec.v1.jsonl",
        [{**job, "data": {"output_dir": f"{tmp_path}/run"}}],
    )
    folders = {
        "HOME": "home",
        "TMPDIR": "tmp",
        "NEWSKILLS_EXPERIMENTS_DIR": "experiments",
        "NEWSKILLS_DATA_DIR": "cache-data",
        "NEWSKILLS_CACHE": "cache",
        "XDG_CACHE_HOME": "cache2",
    }
    for folder in folders.values():
        (tmp_path / folder).mkdir(exist_ok=True)
    return tmp_path, {name: str(tmp_path / folder) for name, folder in folders.items()}


@pytest.mark.parametrize("name", [name for name in LINES if name != "cancel"])
def test_a_dry_run_shows_what_would_be_done_and_leaves_everything_alone(
    home: tuple[Path, dict[str, str]], name: str
) -> None:
    folder, env = home
    line, shown = LINES[name]
    before = snapshot(folder)
    done = ns(f"{line} --dry_run" if name != "run_cmd" else "ns run_cmd --dry_run touch made", cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    assert snapshot(folder) == before
