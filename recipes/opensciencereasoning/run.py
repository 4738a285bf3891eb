# SPDX-License-Identifier: Apache-2.0
"""More multiple-choice questions of science out of some: written, answered by vote, solved, and made to training data.

    python recipes/opensciencereasoning/run.py --dry_run
    python recipes/opensciencereasoning/run.py --questions=questions.jsonl --model=Qwen/Qwen3-235B-A22B \
        --server_gpus=8 --cluster=slurm
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import StepRecipe, options  # noqa: E402

STAGES = ("augment", "questions", "vote", "agreed", "solutions", "data")
SOLVING = {"inference.temperature": 0.7, "inference.top_p": 0.95, "inference.tokens_to_generate": 16384}
EXAMPLE = {
    "problem": "Which of these is a noble gas?\nA) argon\nB) oxygen\nC) iron",
    "expected_answer": "A",
    "generation": "Argon is one.\n\nAnswer: A",
    "symbolic_correct": True,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.add_argument(
        "--questions", default="questions.jsonl", help="JSONL of {problem}: questions with options"
    )
    parser.add_argument("--num_questions", type=int, default=4, help="new questions for each")
    parser.add_argument(
        "--num_votes", type=int, default=16, help="answers of which the most frequent is the right one"
    )
    parser.add_argument("--num_solutions", type=int, default=8, help="solutions of each new question")
    parser.add_argument("--decontaminate", default="gpqa,mmlu-pro", help="benchmarks whose questions are removed")
    parser.add_argument("--tokenizer", help="tokenizer of the student, for texts in its chat template")
    args = parser.parse_args(argv)
    recipe = StepRecipe(HERE, args, STAGES)

    writing = {**SOLVING, "prompt_config": recipe.prompt("augment-question")}
    given = {"num_random_seeds": args.num_questions, **recipe.model()}
    recipe.generate("augment", Path(args.questions).absolute(), EXAMPLE, writing, **given)
    recipe.rows("questions", "questions", "questions", recipe.seeds("augment", args.num_questions))

    voting = {**SOLVING, "prompt_config": "generic/mcq", "solver_config.samples": args.num_votes}
    recipe.generate(
        "vote", recipe.file("questions"), EXAMPLE, voting, generation_type="majority", **recipe.model()
    )
    recipe.rows("agreed", "agreed", "agreed", [recipe.out / "vote" / "output.jsonl"])

    solving = {**SOLVING, "prompt_config": "generic/mcq", "eval_type": "multichoice"}
    given = {"num_random_seeds": args.num_solutions, **recipe.model()}
    recipe.generate("solutions", recipe.file("agreed"), EXAMPLE, solving, **given)

    text = {"prompt_config": "generic/mcq", "tokenizer": args.tokenizer} if args.tokenizer else {}
    against = [name for name in args.decontaminate.split(",") if name]
    keys = {
        "output_path": recipe.out / "data" / "train.jsonl",
        "filters.trim_solutions": False,
        "filters.remove_len_outlier_problems": False,
        "filters.remove_contaminated": bool(against),
        **text,
    }
    solved = recipe.seeds("solutions", args.num_solutions)
    recipe.prepare("data", solved, EXAMPLE, keys, config_name="math_sft", decontaminate=against)


if __name__ == "__main__":
    main()
