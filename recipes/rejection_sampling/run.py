# SPDX-License-Identifier: Apache-2.0
"""Rejection sampling: a model answers each problem several times, a grader reads the answers, and the correct ones
become training data, each once.

    python recipes/rejection_sampling/run.py --dry_run
    python recipes/rejection_sampling/run.py --model=smollm2 --server_type=llamacpp --problems=problems.jsonl \
        --output_dir=results/sampled
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import Recipe, options  # noqa: E402

STAGES = ("problems", "answers", "data")
ANSWER = {
    "problem": "What is 2 + 3?",
    "expected_answer": "5",
    "generation": "2 + 3 is \\boxed{5}.",
    "symbolic_correct": True,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.add_argument(
        "--problems", help="JSONL of {problem, expected_answer} (default: the train split of GSM8K)"
    )
    parser.add_argument("--samples", type=int, default=8, help="answers per problem")
    parser.add_argument("--examples", type=int, help="most examples, in turn from each problem (default: all)")
    parser.add_argument("--temperature", type=float, default=1.0, help="temperature of the answers")
    parser.add_argument("--max_tokens", type=int, default=2048, help="longest answer in tokens")
    parser.add_argument("--prompt", default="generic/math", help="prompt that asks for the answers")
    parser.add_argument("--grader", default="math", help="grader that decides what is correct")
    parser.add_argument("--tokenizer", help="tokenizer of the student: examples then have its chat template")
    parser.add_argument("--decontaminate", default="gsm8k", help="benchmarks whose problems are left out")
    args = parser.parse_args(argv)
    recipe = Recipe("rejection_sampling", args, STAGES)
    out = recipe.out

    problems = Path(args.problems) if args.problems else out / "problems" / "gsm8k-train" / "train.jsonl"
    if not args.problems:
        recipe.run("problems", ["ns", "prepare_data", "--dataset=gsm8k-train", f"--data_dir={out / 'problems'}"])

    recipe.generate(
        "answers",
        problems,
        {"problem": ANSWER["problem"], "expected_answer": ANSWER["expected_answer"]},
        {
            "inference.tokens_to_generate": args.max_tokens,
            "inference.temperature": args.temperature,
            "prompt_config": args.prompt,
            "eval_type": args.grader,
        },
        num_random_seeds=args.samples,
        **recipe.model(),
    )

    # Equal answers count once, wrong and unscored ones not at all; the card beside the file says how many there were.
    recipe.prepare(
        "data",
        [out / "answers" / f"output-rs{seed}.jsonl" for seed in range(args.samples)],
        ANSWER,
        {
            "output_path": out / "data" / "train.jsonl",
            **({"prompt_config": args.prompt, "tokenizer": args.tokenizer} if args.tokenizer else {}),
            **({"num_output_samples": args.examples, "downsampling_method": "fair"} if args.examples else {}),
            "filters.remove_len_outlier_problems": False,
            **({} if args.decontaminate else {"filters.remove_contaminated": False}),
        },
        config_name="math_sft",
        decontaminate=args.decontaminate.split(",") if args.decontaminate else [],
    )


if __name__ == "__main__":
    main()
