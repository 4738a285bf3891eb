# SPDX-License-Identifier: Apache-2.0
"""Training data as OpenMathReasoning was made (https://arxiv.org/abs/2504.16891).

Problems out of a forum, solutions with and without code, and choices among solutions (GenSelect).

    python recipes/openmathreasoning/run.py --dry_run
    python recipes/openmathreasoning/run.py --posts=posts.jsonl --model=Qwen/Qwen3-235B-A22B \
        --server_gpus=8 --cluster=slurm
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import StepRecipe, options  # noqa: E402

STAGES = (
    *("extract", "problems", "classify", "kinds", "convert", "questions", "answers", "vote", "gold"),
    *("similar", "contamination", "cot", "tir", "code", "summaries", "select", "comparisons", "data"),
)
TEXT = {"inference.tokens_to_generate": 2048, "inference.temperature": 0.0}
SOLVING = {"inference.temperature": 0.7, "inference.top_p": 0.95, "inference.tokens_to_generate": 16384}
POST = {"forum_post": "A: Find x with x + 1 = 3. B: x = 2."}
QUESTION = {"problem": "Find x with x + 1 = 3.", "problem_type": "has_answer_extracted", **POST}
GOLD = {**QUESTION, "expected_answer": "2"}
SOLVED = {**GOLD, "solution": "x = 2", "generation": "So \\boxed{2}.", "symbolic_correct": True, "id": "0"}
GROUP = {**GOLD, "solutions": "Solution 0:\n2", "num_solutions": 2, "max_idx": 1, "comparison": "Both …"}


class OpenMathReasoning(StepRecipe):
    """Asks its own prompts."""

    def ask(self, stage: str, reads: str, example: dict[str, Any], prompt: str, **given: Any) -> None:
        """Ask one of the recipe's own prompts, once for each row, at temperature 0 unless there are several seeds."""
        keys = {**TEXT, **({"inference.temperature": 0.7} if "num_random_seeds" in given else {})}
        path = self.prompt(prompt)
        self.generate(stage, self.file(reads), example, {**keys, "prompt_config": path}, **given, **self.model())


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.add_argument("--posts", default="posts.jsonl", help="JSONL of {forum_post}: first post and its answers")
    parser.add_argument("--num_solutions", type=int, default=32, help="solutions of each problem, of each mode")
    parser.add_argument(
        "--against", default="", help="JSONL files of problems that must not be in the data, commas"
    )
    parser.add_argument("--tokenizer", help="tokenizer of the student, for texts in its chat template")
    recipe = OpenMathReasoning(HERE, args := parser.parse_args(argv), STAGES)
    make_problems(recipe, Path(args.posts).absolute())
    if args.against:
        find_contamination(recipe, args.against.split(","))
    make_solutions(recipe, args.num_solutions)
    make_genselect(recipe, args.num_solutions)
    make_data(recipe, args.num_solutions)


def make_problems(recipe: OpenMathReasoning, posts: Path) -> None:
    """Make problems with an answer of posts: that of the discussion, else the one that most solutions agree on."""
    out, file = recipe.out, recipe.file
    keys = {**TEXT, "prompt_config": recipe.prompt("extract-problems")}
    recipe.generate("extract", posts, POST, keys, **recipe.model())
    recipe.rows("problems", "problems", "problems", [out / "extract" / "output.jsonl"])
    recipe.ask("classify", "problems", QUESTION, "classify")
    for step in ("find", "proofs"):
        recipe.rows("kinds", step, step, [out / "classify" / "output.jsonl"])
    recipe.ask("convert", "proofs", QUESTION, "convert-proof")
    recipe.rows("questions", "questions", "questions", [file("find"), out / "convert" / "output.jsonl"])
    recipe.ask("answers", "questions", QUESTION, "extract-answer")
    for step in ("known", "unknown"):
        recipe.rows("answers", step, step, [out / "answers" / "output.jsonl"])
    voting = {**SOLVING, "prompt_config": "generic/math", "solver_config.samples": 16}
    recipe.generate("vote", file("unknown"), QUESTION, voting, generation_type="majority", **recipe.model())
    recipe.rows("gold", "gold", "gold", [file("known"), out / "vote" / "output.jsonl"])


def find_contamination(recipe: OpenMathReasoning, against: Sequence[str]) -> None:
    """Find problems that a benchmark asks in other words; shared words are found by prepare_training_data."""
    words = ["ns", "retrieve_similar", "--retrieve_from", *against, f"--compare_to={recipe.file('gold')}"]
    recipe.run("similar", [*words, f"--output_file={recipe.file('similar')}"], reads=[recipe.file("gold")])
    similar = {"problem": "Find x.", "similar_items": ["Find y."]}
    keys = {"check_both_ways": True}
    given = {"generation_type": "check_contamination", **recipe.model()}
    recipe.generate("contamination", recipe.file("similar"), similar, keys, **given)


def make_solutions(recipe: OpenMathReasoning, count: int) -> None:
    """Generate solutions in words (CoT), and with code that is run (TIR): 1 to 8 executions, as many as the prompt
    says.
    """
    grading = {"eval_type": "math", "enable_litellm_cache": True}
    given = {"num_random_seeds": count, **recipe.model()}
    cot = {**SOLVING, **grading, "prompt_config": "generic/math"}
    recipe.generate("cot", recipe.file("gold"), GOLD, cot, **given)
    tir = {
        **SOLVING,
        **grading,
        "prompt_config": "openmath/tir",
        "code_execution": True,
        "code_tags": "qwen",
        "total_code_executions_in_prompt": "[1,8]",
        "override_max_code_executions": True,
        "server.code_execution.add_remaining_code_executions": True,
    }
    recipe.generate("tir", recipe.file("gold"), GOLD, tir, with_sandbox=True, **given)
    recipe.rows("tir", "within_limit", "tir", recipe.seeds("tir", count))
    recipe.rows("code", "as_solution", "to_judge", [recipe.file("tir")])
    recipe.ask("code", "to_judge", SOLVED, "judge-code")
    recipe.rows("code", "good_code", "good_code", [recipe.out / "code" / "output.jsonl"])


def make_genselect(recipe: OpenMathReasoning, count: int) -> None:
    """Generate four summaries of each solution, groups of them, choices of a model, and these in a few words."""
    solved = [*recipe.seeds("cot", count), *recipe.seeds("tir", count)]
    recipe.rows("summaries", "to_summarize", "to_summarize", solved)
    keys = {**TEXT, "inference.temperature": 0.7, "eval_type": "math", "prompt_config": recipe.prompt("summarize")}
    given = {"num_random_seeds": 4, **recipe.model()}
    recipe.generate("summaries", recipe.file("to_summarize"), SOLVED, keys, **given)
    recipe.rows("summaries", "groups", "groups", recipe.seeds("summaries", 4))
    selecting = {**SOLVING, "prompt_config": "openmath/genselect"}
    recipe.generate("select", recipe.file("groups"), GROUP, selecting, **recipe.model())
    recipe.rows("select", "chosen_right", "chosen", [recipe.out / "select" / "output.jsonl"])
    recipe.ask("comparisons", "chosen", GROUP, "summarize-comparison", num_random_seeds=4)
    recipe.rows("comparisons", "genselect", "genselect", recipe.seeds("comparisons", 4))


def make_data(recipe: OpenMathReasoning, count: int) -> None:
    """Write what is learnt from, a file for each kind; models of CoT and TIR were merged with weights 0.3 and 0.7."""
    modes = {
        "cot": ("generic/math", recipe.seeds("cot", count)),
        "tir": ("openmath/tir", [recipe.file("tir")]),
        "tir_stage0": ("openmath/tir", [recipe.file("good_code")]),  # to teach a model to use code at all
        "genselect": ("openmath/genselect", [recipe.file("genselect")]),
    }
    checked = recipe.out / "contamination" / "output.jsonl"
    for mode, (prompt, reads) in modes.items():
        text = {"prompt_config": prompt, "tokenizer": recipe.args.tokenizer} if recipe.args.tokenizer else {}
        keys = {
            "output_path": recipe.out / "data" / f"{mode}.jsonl",
            "filters.trim_solutions": mode == "cot",
            "filters.remove_len_outlier_problems": False,
            "filters.remove_contaminated": bool(recipe.args.against),
            "contamination_file": checked if recipe.args.against and not recipe.args.dry_run else None,
            **text,
        }
        against = recipe.args.against.split(",") if recipe.args.against else []
        recipe.prepare("data", reads, {**SOLVED, **GROUP}, keys, config_name="math_sft", decontaminate=against)


if __name__ == "__main__":
    main()
