# SPDX-License-Identifier: Apache-2.0
"""A model that improves on its own replies: a short fine-tuning on solved problems, then rounds of `ns improve`, of
which only those are kept that a paired test on held-out problems calls better.

    python recipes/improve/run.py --dry_run
    python recipes/improve/run.py --output_dir=results/improve
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import StepRecipe, options  # noqa: E402

STAGES = ("problems", "solved", "others", "sft", "improve")
BENCHMARK = "sorting-lesson"


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.set_defaults(model="smollm2", server_type="llamacpp")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of ns improve, at most")
    parser.add_argument("--guard", default="", help="benchmarks that must not get worse, separated by commas")
    parser.add_argument("--problems", type=int, default=300, help="training problems per round")
    parser.add_argument("--held_out", type=int, default=400, help="held-out problems")
    parser.add_argument("--sft_steps", type=int, default=30, help="steps of the first fine-tuning")
    args = parser.parse_args(argv)
    recipe = StepRecipe(HERE, args, STAGES)

    data = recipe.out / "problems"
    train = data / BENCHMARK / "train.jsonl"
    recipe.run("problems", ["ns", "prepare_data", BENCHMARK, f"--data_dir={data}"])
    recipe.rows("solved", "solved", "solved", [train])
    recipe.rows("others", "others", "others", [train])

    # Of its own replies a model learns only what it sometimes gets right: this is where that comes from.
    keys = {"steps": args.sft_steps, "learning_rate": 2e-3}
    recipe.train("sft", recipe.file("solved"), keys, model=args.model)

    words = [
        "ns",
        "improve",
        f"--model={recipe.out / 'sft' / 'final_hf_model'}",
        f"--benchmark={BENCHMARK}",
        f"--training_data={recipe.file('others')}",
        f"--rounds={args.rounds}",
        f"--output_dir={recipe.out / 'improve'}",
        f"--data_dir={data}",
        f"--server_type={args.server_type}",
        f"--server_gpus={args.server_gpus or 0}",
        *([f"--guard={args.guard}"] if args.guard else []),
        f"++problems={args.problems}",
        "++samples=4",
        "++max_tokens=32",
        f"++held_out={args.held_out}",
        "++learning_rate=1e-3",
    ]
    recipe.run("improve", words, reads=[recipe.file("others"), recipe.out / "sft" / "final_hf_model"])


if __name__ == "__main__":
    main()
