# SPDX-License-Identifier: Apache-2.0
"""Accuracy against the budget of thinking: one evaluation for each budget, forced on the text endpoint, and a curve.

    python recipes/thinking_budget/run.py --dry_run
    python recipes/thinking_budget/run.py --model=Qwen/Qwen3-8B --server_type=vllm --server_gpus=1 \
        --benchmarks=gsm8k --budgets=none,256,512,1024,2048 --output_dir=results/budgets
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from stages import Recipe, options  # noqa: E402

BUDGETS = ("none", "256", "1024", "4096")
STAGES = ("data", *BUDGETS)
HEAD = ("benchmark", "budget", "score", "95 % interval", "thought", "answered", "ended", "continued")


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(str(__doc__))
    parser.add_argument("--benchmarks", default="gsm8k", help="benchmarks to evaluate on")
    parser.add_argument("--data_dir", help="folder of their data (default: that of ns prepare_data)")
    parser.add_argument("--budgets", default=",".join(BUDGETS), help="tokens of thinking; none: an empty thinking")
    parser.add_argument("--answer_tokens", type=int, default=512, help="tokens of the answer, beside the budget")
    parser.add_argument("--minimum", type=int, default=0, help="tokens below which a thinking is continued")
    parser.add_argument("--begin", help="text that begins the thinking, for models that do not begin themselves")
    parser.add_argument("--end", help="text that ends it (default: </think> between line breaks)")
    args = parser.parse_args(argv)
    budgets = args.budgets.split(",")
    recipe = Recipe("thinking_budget", args, ["data", *budgets])

    data_dir = [f"--data_dir={args.data_dir}"] if args.data_dir else []
    recipe.run("data", ["ns", "prepare_data", *args.benchmarks.split(","), *data_dir])

    for budget in budgets:
        tokens = 0 if budget == "none" else int(budget)
        recipe.evaluate(
            budget,
            {
                "inference.endpoint_type": "text",
                "inference.thinking_budget": budget,
                "inference.tokens_to_generate": tokens + args.answer_tokens,
                "budget_forcing.minimum": min(args.minimum, tokens) or None,
                "budget_forcing.begin": args.begin,
                "budget_forcing.end": args.end,
            },
            prepared_by="data",
            benchmarks=args.benchmarks,
            data_dir=args.data_dir,
            **recipe.model(),
        )
    if args.cluster is None and not args.dry_run:
        print()
        for row in (HEAD, *points(recipe.out, budgets)):
            print("  ".join(text.rjust(max(9, len(name))) for text, name in zip(row, HEAD, strict=True)))
        print(f"\nthe curve with its comparison: ns report {recipe.out}")


def points(out: Path, budgets: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each benchmark and budget: score and interval, mean tokens of both parts, what was forced."""
    for budget in budgets:
        for path in sorted((out / budget / "eval-results").glob("*/metrics.json")):
            modes: dict[str, dict[str, Any]] = next(iter(json.loads(path.read_text()).values()))
            mode = next(iter(modes.values()))
            interval = next(name for name in mode if name.endswith("_interval"))
            low, high = mode[interval]
            rows = [json.loads(line) for file in path.parent.glob("output*.jsonl") for line in file.open()]
            yield (
                path.parent.name,
                budget,
                f"{mode[interval.removesuffix('_interval')]:.1f} %",
                f"[{low:.1f}, {high:.1f}]",
                mean(rows, "num_reasoning_tokens"),
                mean(rows, "num_answer_tokens"),
                f"{sum(row.get('num_forced_ends', 0) for row in rows)}/{len(rows)}",
                str(sum(row.get("num_forced_continuations", 0) for row in rows)),
            )


def mean(rows: Sequence[dict[str, Any]], field: str) -> str:
    """Return the mean of a field over the rows that have it."""
    values = [row[field] for row in rows if row.get(field) is not None]
    if not values:
        return "?"
    return f"{sum(values) / len(values):.1f}"


if __name__ == "__main__":
    main()
