# SPDX-License-Identifier: Apache-2.0
"""One model, and each way to learn from replies that are better or worse: DPO, DPO without the SFT loss, KTO, a reward
model, RLOO, and distillation from a teacher. A short fine-tuning makes a model that is sometimes correct; its replies
to other problems are graded; every way begins from there, and is compared on the same held-out problems.

    python recipes/preferences/run.py --dry_run
    python recipes/preferences/run.py --output_dir=results/preferences
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import StepRecipe, options  # noqa: E402

TASK = "sorting-lesson"
RATE = 2e-4
"""Learning rate of all ways that are compared: high enough that a few dozen steps show what each one does."""
TOKENS = 32
EXAMPLE = {"id": "0", "question": "Sort 2, 1.", "expected_answer": "1, 2"}
WAYS = ("dpo", "dpo_alone", "kto", "rloo", "distill")
STAGES = (
    "problems",
    "rows",
    "sft",
    "teacher",
    "before",
    "taught",
    "samples",
    *WAYS,
    "reward_model",
    "report",
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.set_defaults(model="smollm2", server_type="llamacpp")
    parser.add_argument("--seeds", type=int, default=8, help="sampled replies to each of 200 problems")
    parser.add_argument("--sft_steps", type=int, default=30, help="steps of the first fine-tuning, of 16 examples")
    parser.add_argument("--steps", type=int, default=30, help="steps of RLOO and of distillation")
    args = parser.parse_args(argv)
    recipe = StepRecipe(HERE, args, STAGES)
    data = recipe.out / "problems"
    train = data / TASK / "train.jsonl"
    start, teacher = (recipe.out / name / "final_hf_model" for name in ("sft", "teacher"))

    recipe.run("problems", ["ns", "prepare_data", TASK, f"--data_dir={data}"])
    for step in ("solved", "others", "sampled"):
        recipe.rows("rows", step, step, [train])
    keys = {"batch_size": 16, "learning_rate": 2e-3}
    recipe.train("sft", recipe.file("solved"), {**keys, "steps": args.sft_steps}, model=args.model)
    recipe.train("teacher", recipe.file("solved"), {**keys, "epochs": 2}, model=args.model)

    def measure(stage: str, model: Path, name: str) -> None:
        served = recipe.out / "gguf" / f"{name}.gguf"
        words = ["ns", "convert", f"--input_model={model}", f"--output_model={served}"]
        recipe.run(stage, [*words, "--convert_from=hf", "--convert_to=gguf"])
        given = {"benchmarks": TASK, "data_dir": str(data), "prepared_by": "problems", **recipe.model()}
        recipe.evaluate(stage, {"inference.tokens_to_generate": TOKENS}, **{**given, "model": str(served)})

    measure("before", start, "sft")
    measure("taught", teacher, "teacher")

    # What most ways learn from: several replies to each problem, and what the grader says of them.
    sampling = {"inference.temperature": 1.0, "inference.tokens_to_generate": TOKENS}
    asking = {"prompt_config": "generic/default", "eval_type": "exact", **sampling}
    served = {**recipe.model(), "model": str(recipe.out / "gguf" / "sft.gguf")}
    recipe.generate("samples", recipe.file("sampled"), EXAMPLE, asking, num_random_seeds=args.seeds, **served)
    replies = [f"--benchmark={TASK}", f"--data_dir={data}", f"--input_files={recipe.out}/samples/output-rs*.jsonl"]
    problems = [f"--training_data={recipe.file('others')}", "++prompt_config=generic/default"]
    problems += [f"++steps={args.steps}", f"++max_tokens={TOKENS}"]

    def learn(name: str, command: str, *words: str) -> None:
        into = recipe.out / "trained" / name
        line = ["ns", command, f"--model={start}", f"--output_dir={into}", *words, f"++learning_rate={RATE}"]
        recipe.run(name, line, reads=[start])
        if name != "reward_model":
            measure(name, into / "final_hf_model", name)

    learn("dpo", "dpo", *replies)
    learn("dpo_alone", "dpo", *replies, "++sft_weight=0")
    learn("kto", "kto", *replies)
    rloo = ["--backend=trl", "++trainer.trl.algorithm=rloo", "++eval_type=exact", "++held_out=0"]
    learn("rloo", "grpo", *problems, *rloo)
    learn("distill", "distill", *problems, f"--teacher={teacher}")
    learn("reward_model", "reward_model", *replies, "++epochs=3")
    for way in ("taught", *WAYS):
        recipe.run("report", ["ns", "compare", recipe.out / "before", recipe.out / way])


if __name__ == "__main__":
    main()
