# SPDX-License-Identifier: Apache-2.0
"""Solutions of programming tasks with reasoning, kept where they pass the tests of the task in the sandbox.

python recipes/opencode/run.py --dry_run
python recipes/opencode/run.py --tasks=tasks.jsonl --model=Qwen/Qwen3-235B-A22B --server_gpus=8 --cluster=slurm
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import StepRecipe, options  # noqa: E402

STAGES = ("tasks", "tested", "untested", "passed", "data")
SOLVING = {"inference.temperature": 0.6, "inference.top_p": 0.95, "inference.tokens_to_generate": 16384}
EXAMPLE = {"problem": "Read n and print n + 1.", "test_cases": [{"input": "1\n", "output": "2\n"}]}
SOLVED = {"input": EXAMPLE["problem"], "output": "```python\nprint(int(input()) + 1)\n```"}


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.add_argument(
        "--tasks", default="tasks.jsonl", help="JSONL of {problem, test_cases: [{input, output}]?}"
    )
    parser.add_argument("--num_solutions", type=int, default=8, help="solutions of each task")
    parser.add_argument("--tokenizer", help="tokenizer of the student, for the lengths of solutions")
    parser.add_argument("--max_tokens", type=int, default=16384, help="longer solutions are dropped")
    args = parser.parse_args(argv)
    recipe = StepRecipe(HERE, args, STAGES)

    tasks = Path(args.tasks).absolute()
    for step in ("with_tests", "without_tests"):
        recipe.rows("tasks", step, step, [tasks])

    solving = {**SOLVING, "prompt_config": recipe.prompt("program")}
    given = {"num_random_seeds": args.num_solutions, **recipe.model()}
    grading = {**solving, "eval_type": "code_exec"}
    recipe.generate("tested", recipe.file("with_tests"), EXAMPLE, grading, with_sandbox=True, **given)
    recipe.generate("untested", recipe.file("without_tests"), EXAMPLE, solving, **given)
    for kind in ("tested", "untested"):
        recipe.rows("passed", "passed", f"passed_{kind}", recipe.seeds(kind, args.num_solutions))

    lengths = {"filters.remove_len_outlier_outputs": True, "max_output_length": args.max_tokens}
    keys = {
        "output_path": recipe.out / "data" / "train.jsonl",
        "filters.drop_incorrect_code_blocks": False,  # reasoning may hold further blocks: `passed` has looked
        **({**lengths, "tokenizer": args.tokenizer} if args.tokenizer else {}),
    }
    passed = [recipe.file("passed_tested"), recipe.file("passed_untested")]
    recipe.prepare("data", passed, SOLVED, keys, config_name="code_sft")


if __name__ == "__main__":
    main()
