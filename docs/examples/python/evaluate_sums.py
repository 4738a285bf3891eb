"""Evaluate a model at an address on a benchmark of your own (python evaluate_sums.py http://HOST:PORT/v1)."""

import sys
from collections.abc import Iterator
from typing import Any

from newskills import Benchmark, Evaluation, Generation, Model, evaluate, prepare_data


def sums(split: str) -> Iterator[dict[str, Any]]:
    for number in range(1, 21):
        yield {"problem": f"What is {number} + {number}?", "expected_answer": str(2 * number)}


BENCHMARK = Benchmark(name="sums", category="math", title="Sums", generate_rows=sums, prompt="generic/math")


def main(address: str) -> Evaluation:
    prepare_data(benchmarks=[BENCHMARK])
    return evaluate(
        benchmarks=[BENCHMARK],
        model=Model("policy", server="openai", address=address, settings={"api_key_env_var": "MY_KEY"}),
        settings=Generation(temperature=0.7, tokens_to_generate=512),
        output_dir="results",
    )


if __name__ == "__main__":
    evaluation = main(sys.argv[1])
    print(evaluation)
    score = evaluation.scores["sums"]
    print(f"{score.value:.1f} % [{score.low:.1f}, {score.high:.1f}] of {score.n} problems")
    for sample in evaluation.samples("sums", outcome="wrong", number=2):
        print(sample.record["problem"], sample.record["predicted_answer"], sample.record["why"])
