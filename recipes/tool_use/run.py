# SPDX-License-Identifier: Apache-2.0
"""A small model learns to use Python for calculations beyond its reach: solutions of its own, found by showing it
examples once, a short fine-tuning on them, then reinforcement learning in the sandbox, measured on held-out problems.

    python recipes/tool_use/run.py --dry_run
    python recipes/tool_use/run.py --output_dir=results/tool_use
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import StepRecipe, options  # noqa: E402

STAGES = (
    *("problems", "base", "before", "begun", "harvest", "solved", "data", "sft", "gguf", "tuned"),
    *("grpo", "after", "replay", "report"),
)
TO_HF, TO_GGUF = ("--convert_from=gguf", "--convert_to=hf"), ("--convert_from=hf", "--convert_to=gguf")
CODE = {
    "code_execution": True,
    "code_tags": "qwen",
    "server.code_execution.max_code_executions": 2,
    "inference.endpoint_type": "text",
    "inference.tokens_to_generate": 64,
}
"""How replies with code are made and run; the same in generation, training and evaluation."""
EXAMPLE = {"id": "0", "question": "What is 1 + 1?", "expected_answer": "2", "begin": "```python\n"}


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.set_defaults(model="smollm2", server_type="")
    parser.add_argument("--sft_steps", type=int, default=6, help="steps of fine-tuning, of 8 solutions each")
    parser.add_argument(
        "--grpo_steps",
        type=int,
        default=16,
        help="steps of reinforcement learning, of 4 problems with 8 samples each",
    )
    args = parser.parse_args(argv)
    args.server_type = args.server_type or ("vllm" if args.cluster else "llamacpp")
    recipe = StepRecipe(HERE, args, STAGES)
    data, skill = recipe.out / "problems", recipe.own("calculations.py")
    train, base = data / "calculations" / "train.jsonl", recipe.out / "base"
    tuned = recipe.out / "sft" / "final_hf_model"
    rewarded = recipe.out / "grpo" / "final_hf_model"

    # A text that goes on behind an output needs the model's own template, which a dry run cannot have yet.
    there = base.exists() or not args.dry_run
    code = {**CODE, "tokenizer": base} if there else {**CODE, "inference.endpoint_type": "chat"}

    recipe.run("problems", ["ns", "prepare_data", skill, f"--data_dir={data}"])

    def measure(stage: str, model: str) -> None:
        served = {**recipe.model(), "model": model}
        given = {"benchmarks": skill, "data_dir": str(data), "prepared_by": "problems", "with_sandbox": True}
        recipe.evaluate(stage, code, **given, **served)

    words = ["ns", "convert", f"--input_model={args.model}", f"--output_model={base}", *TO_HF]
    recipe.run("base", words)
    measure("before", args.model)

    # Shown how, and with the first line of a reply, the model solves some: the grader keeps these.
    recipe.rows("begun", "begun", "begun", [train])
    keys = {
        **code,
        "inference.tokens_to_generate": 64,
        "inference.temperature": 0.7,
        "prompt_config": recipe.prompt("shown"),
        "start_assistant_response_key": "begin",
        "eval_type": "exact",
        "eval_config.extract": "answer",
    }
    recipe.generate("harvest", recipe.file("begun"), EXAMPLE, keys, with_sandbox=True, **recipe.model())
    recipe.rows("solved", "solved", "solved", [recipe.out / "harvest" / "output.jsonl"])

    # Fine-tuning on them, without the examples; what Python printed is read, not learnt.
    keys = {
        "output_path": recipe.file("sft"),
        "input_key": "question",
        "code_tags": "qwen",
        "filters.remove_contaminated": False,
        "filters.remove_len_outlier_problems": False,
        **({"prompt_config": "generic/default", "tokenizer": base} if there else {}),
    }
    solution = {**EXAMPLE, "generation": "```python\nprint(1 + 1)\n```\n", "outcome": "correct"}
    recipe.prepare("data", [recipe.file("solved")], solution, keys)
    keys = {"code_tags": "qwen", "steps": args.sft_steps, "batch_size": 8, "learning_rate": 1e-3}
    recipe.train("sft", recipe.file("sft"), keys, model=str(base))

    # Reinforcement learning: the sandbox runs what the model writes, the grader rewards what it says then.
    words = [
        *("ns", "grpo", f"--model={tuned}", f"--benchmark={skill}", f"--data_dir={data}"),
        *(f"--output_dir={recipe.out / 'grpo'}", "++code_tags=qwen", "++code_executions=2", "++max_tokens=64"),
        *(
            f"++steps={args.grpo_steps}",
            "++batch_size=4",
            "++group_size=8",
            "++learning_rate=3e-4",
            "++held_out=0",
        ),
    ]
    recipe.run("grpo", words, reads=[tuned])

    # The rewards once more: what the grader says of each sample now is what it was rewarded with.
    samples, graded = recipe.file("samples"), recipe.file("graded")
    recipe.rows("replay", "sampled", "samples", [recipe.out / "grpo" / "samples.jsonl"])
    words = [
        "ns",
        "grade",
        "--grader=exact",
        f"--input_files={samples}",
        f"--output_file={graded}",
        "++extract=answer",
    ]
    recipe.run("replay", words, reads=[samples])
    recipe.rows("replay", "replayed", "replay", [graded])

    for stage, model in (("tuned", tuned), ("after", rewarded)):
        served = recipe.out / "gguf" / f"{stage}.gguf"
        recipe.run("gguf", ["ns", "convert", f"--input_model={model}", f"--output_model={served}", *TO_GGUF])
        measure(stage, str(served))
    for stage in ("before", "tuned", "after"):
        output = recipe.out / stage / "eval-results" / "calculations" / "output.jsonl"
        recipe.rows("report", "used", f"used-{stage}", [output])
    for earlier, later in (("before", "tuned"), ("tuned", "after")):
        recipe.run("report", ["ns", "compare", recipe.out / earlier, recipe.out / later])


if __name__ == "__main__":
    main()
