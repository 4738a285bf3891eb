# SPDX-License-Identifier: Apache-2.0
"""A model that improves on its own replies in two tasks: a short fine-tuning on solved problems, then, for each task,
rounds of `ns improve` with the other task as a guard. A round is kept only if a paired test on held-out problems calls
it better; `--wrong` adds one whose expected answers are wrong, to see it refused.

    python recipes/improve/run.py --dry_run
    python recipes/improve/run.py --output_dir=results/improve --wrong
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import StepRecipe, options  # noqa: E402

TASKS = ("sorting-lesson", "letters")
STAGES = ("problems", "rows", "sft", *TASKS)


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.set_defaults(model="smollm2", server_type="llamacpp")
    parser.add_argument("--rounds", type=int, default=2, help="rounds on the model's own replies, for each task")
    parser.add_argument("--wrong", action="store_true", help="and a last round with wrong expected answers")
    parser.add_argument("--problems", type=int, default=300, help="training problems per round")
    parser.add_argument("--held_out", type=int, default=400, help="held-out problems of each task")
    parser.add_argument("--sft_steps", type=int, default=45, help="steps of the first fine-tuning")
    args = parser.parse_args(argv)
    recipe = StepRecipe(HERE, args, STAGES)
    places = {"sorting-lesson": "sorting-lesson", "letters": recipe.own("letters.py")}

    data = recipe.out / "problems"
    for task, place in places.items():
        train = data / task / "train.jsonl"
        recipe.run("problems", ["ns", "prepare_data", place, f"--data_dir={data}"])
        for step in ("solved", "others", "wrong"):
            recipe.rows("rows", step, f"{task}-{step}", [train])
    recipe.rows("rows", "joined", "solved", [recipe.file(f"{task}-solved") for task in TASKS])

    # Of its own replies a model learns only what it sometimes gets right: this is where that comes from.
    recipe.train("sft", recipe.file("solved"), {"steps": args.sft_steps, "learning_rate": 2e-3}, model=args.model)

    start = recipe.out / "sft" / "final_hf_model"
    for task, place in places.items():
        (guard,) = (other for other in TASKS if other != task)
        config = recipe.out / f"{task}.yaml"
        if task in recipe.wanted and not args.dry_run:
            recipe.out.mkdir(parents=True, exist_ok=True)
            config.write_text(json.dumps(rounds_of(recipe, task, args.rounds, wrong=args.wrong), indent=1))
        words = [
            *("ns", "improve", f"--model={start}", f"--benchmark={place}", f"--guard={places[guard]}"),
            *(f"--config={config}", f"--output_dir={recipe.out / 'improve' / task}", f"--data_dir={data}"),
            *(f"--rounds={args.rounds + args.wrong}", "--patience=4"),
            *(f"--server_type={args.server_type}", f"--server_gpus={args.server_gpus or 0}"),
            *(f"++held_out={args.held_out}", f"++problems={args.problems}", "++max_tokens=32"),
        ]
        recipe.run(task, words, reads=[recipe.file(f"{task}-others"), start])


def rounds_of(recipe: StepRecipe, task: str, rounds: int, *, wrong: bool) -> dict[str, Any]:
    """Return settings of `ns improve`: rounds on the model's own replies, and the one with wrong answers."""
    others, poison = (str(recipe.file(f"{task}-{step}")) for step in ("others", "wrong"))
    own = {"training_data": others, "samples": 4, "learning_rate": 1e-3}
    stages: list[dict[str, Any]] = [{"name": f"own-{number}", **own} for number in range(1, rounds + 1)]
    if wrong:
        stages.append(
            {"name": "wrong", "training_data": poison, "solutions": [poison], "samples": 0, "learning_rate": 1e-3}
        )
    return {"stages": stages}


if __name__ == "__main__":
    main()
