# SPDX-License-Identifier: Apache-2.0
"""The smallest whole loop: a teacher solves problems, what is right becomes training data, a student learns from it.

    python recipes/simple/run.py --dry_run
    python recipes/simple/run.py --model=Qwen/Qwen3-32B --server_gpus=8 --student=Qwen/Qwen2.5-1.5B-Instruct \
        --student_gpus=8 --cluster=slurm
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import Recipe, model_options, options  # noqa: E402

STAGES = ("problems", "before", "solutions", "base", "data", "training", "gguf", "after", "report")
PREPARE = ("ns", "prepare_data")
TO_HF, TO_GGUF = ("--convert_from=gguf", "--convert_to=hf"), ("--convert_from=hf", "--convert_to=gguf")
SOLUTION = {
    "problem": "What is 2 + 3?",
    "expected_answer": "5",
    "generation": "2 + 3 is \\boxed{5}.",
    "symbolic_correct": True,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    model_options(parser, "student", "the model that learns")
    parser.add_argument(
        "--problems", help="JSONL of {problem, expected_answer} (default: the train split of GSM8K)"
    )
    parser.add_argument("--num_solutions", type=int, default=4, help="solutions of each problem")
    parser.add_argument("--benchmark", default="gsm8k", help="what the student is measured by")
    parser.add_argument(
        "--data_dir", help="where benchmarks are prepared (on clusters: a folder that its jobs see)"
    )
    parser.add_argument("--max_tokens", type=int, default=2048, help="of a solution, at most")
    parser.add_argument("--epochs", type=float, default=2, help="passes over the data")
    args = parser.parse_args(argv)
    recipe = Recipe("simple", args, STAGES)
    out = recipe.out
    here = args.student_type == "llamacpp"
    limits = {"inference.tokens_to_generate": args.max_tokens}

    problems = Path(args.problems) if args.problems else out / "problems" / "gsm8k-train" / "train.jsonl"
    if not args.problems:
        recipe.run("problems", [*PREPARE, "--dataset=gsm8k-train", f"--data_dir={out / 'problems'}"])
    recipe.run("problems", [*PREPARE, args.benchmark, *([f"--data_dir={args.data_dir}"] if args.data_dir else [])])

    folder = {"data_dir": args.data_dir} if args.data_dir else {}
    measured = {"benchmarks": args.benchmark, "prepared_by": "problems", **folder}
    recipe.evaluate("before", limits, **measured, **recipe.model("student"))

    recipe.generate(
        "solutions",
        problems,
        {"problem": SOLUTION["problem"], "expected_answer": SOLUTION["expected_answer"]},
        {**limits, "prompt_config": "generic/math", "eval_type": "math"},
        num_random_seeds=args.num_solutions,
        **recipe.model(),
    )

    # The embedded server takes GGUF, training a Hugging Face folder.
    base = Path(args.student)
    if here:
        base = out / "base"
        recipe.run("base", ["ns", "convert", f"--input_model={args.student}", f"--output_model={base}", *TO_HF])

    # What the benchmark asks must not be learnt: --decontaminate removes problems that share words with it.
    recipe.prepare(
        "data",
        [out / "solutions" / f"output-rs{seed}.jsonl" for seed in range(args.num_solutions)],
        SOLUTION,
        {
            "output_path": out / "data" / "train.jsonl",
            **({"prompt_config": "generic/math", "tokenizer": base} if base.exists() or not args.dry_run else {}),
            "filters.remove_len_outlier_problems": False,
        },
        config_name="math_sft",
        decontaminate=[args.benchmark],
    )
    recipe.train("training", out / "data" / "train.jsonl", {"epochs": args.epochs}, model=str(base))

    trained = out / "training" / "final_hf_model"
    student = {**recipe.model("student"), "model": str(trained)}
    if here:
        student["model"] = str(out / "gguf" / "trained.gguf")
        words = ["ns", "convert", f"--input_model={trained}", f"--output_model={student['model']}", *TO_GGUF]
        recipe.run("gguf", words, reads=[trained])
    recipe.evaluate("after", limits, **measured, **student)
    for when in ("before", "after"):
        recipe.run("report", ["ns", "summarize_results", out / when], reads=[out / when])


if __name__ == "__main__":
    main()
