# SPDX-License-Identifier: Apache-2.0
"""JSONSchemaBench (Geng et al. 2025, arXiv:2501.10868): documents that are valid under real-world schemas."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_CONFIGS = (
    "Github_trivial,Github_easy,Github_medium,Github_hard,Github_ultra,Glaiveai2K,JsonSchemaStore,Kubernetes,"
    "Snowplow,WashingtonPost"
)


def row(raw: Row, index: int) -> Row:
    subset = raw["_config"] if "_config" in raw else raw["unique_id"].rpartition("_")[0]
    return {
        "id": raw["unique_id"],
        "question": raw["json_schema"],
        "expected_answer": raw["json_schema"],
        "subset_for_metrics": subset,
    }


BENCHMARK = Benchmark(
    name="jsonschema_bench",
    category="instruction-following",
    title="JSONSchemaBench: JSON documents under given schemas",
    aliases=("jsonschemabench",),
    sources=(Source(hf="epfl-dlab/JSONSchemaBench", config=f"{{{_CONFIGS}}}", hf_split="test"),),
    row=row,
    prompt="eval/json-schema",
    grader="json_schema",
    metric="generic",
    unverified=True,
    requires="newskills[instructions]",
    licence="MIT",
    homepage="https://huggingface.co/datasets/epfl-dlab/JSONSchemaBench",
    citation="arXiv:2501.10868",
    traps=(
        "A schema that is invalid or refers to others on the network leaves its sample unscored.",
        "With constrained decoding the score measures the decoder, not the model.",
    ),
)
