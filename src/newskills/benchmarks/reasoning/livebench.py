# SPDX-License-Identifier: Apache-2.0
"""Questions that are renewed against contamination, with answers that rules can check (arXiv:2406.19314).

Ten tasks of data analysis, instruction following, mathematics and reasoning; code is in `livebench-coding`, all four
tasks of instruction following in `livebench-instructions`.
"""

import json

from msgspec import structs

from newskills.base.benchmark import Benchmark, Drop, Source
from newskills.base.records import Row

_KEPT = ("task", "category", "subtask", "livebench_release_date", "livebench_removal_date")


def row(raw: Row, index: int) -> Row | Drop:
    """Keep the current questions: those that were never removed. The others are in the split `all`."""
    if raw["livebench_removal_date"]:
        return Drop("removed from the current release")
    return any_category_row(raw, index)


def any_category_row(raw: Row, index: int) -> Row:
    if len(raw["turns"]) != 1:
        raise ValueError(f"{len(raw['turns'])} turns; one is expected")
    truth = raw.get("ground_truth")
    ground_truth: Row = {}
    if isinstance(truth, str):
        ground_truth = {"ground_truth": truth}
    elif truth is not None:
        ground_truth = {"ground_truth": json.dumps(truth)}
    instructions: Row = {}
    if "instruction_id_list" in raw:
        kwargs = [
            {key: value for key, value in arguments.items() if value is not None} for arguments in raw["kwargs"]
        ]
        instructions = {"instruction_id_list": raw["instruction_id_list"], "kwargs": kwargs}
    elif truth is None:
        raise ValueError("there is neither ground_truth nor instruction_id_list")
    return {
        "id": raw["question_id"],
        "question": raw["turns"][0],
        **ground_truth,
        **instructions,
        **{key: raw[key] for key in _KEPT if key in raw},
        "subset_for_metrics": raw["category"],
    }


def question_sources(members: str, sha256: str) -> tuple[Source, Source]:
    """Return the files of the authors' repository, for the splits `test` and `all`."""
    test = Source(
        split="test",
        github="LiveBench/LiveBench",
        ref="main",
        revision="995e86f0cb983054e1e283fbb81a111a25e444d0",
        members=f"livebench/data/live_bench/{members}/question.jsonl",
        sha256=sha256,
    )
    return test, structs.replace(test, split="all")


CURRENT = "Only questions without a removal date are in `test`; `all` has the removed ones, too."
BENCHMARK = Benchmark(
    name="livebench",
    category="reasoning",
    title="LiveBench without code: ten tasks, checked by rules",
    sources=question_sources(
        "{data_analysis/*,instruction_following/paraphrase,math/*,reasoning/*}",
        "61f913d967adcd9080c53f15ac94719b06a4d28bb7ac8ce48baf2e2ccb8018bd",
    ),
    row=row,
    variants={"all": any_category_row},
    prompt="generic/default",
    grader="livebench",
    metric="livebench",
    items={"test": 482, "all": 818},
    requires="newskills[instructions]",
    licence="Apache-2.0",
    homepage="https://livebench.ai",
    citation="arXiv:2406.19314",
    traps=(
        CURRENT,
        "Of the four tasks of instruction following it has `paraphrase`; all four are in "
        "[livebench-instructions](livebench-instructions.md).",
        "Where ours and the authors' scorers differ is listed in [Agreement](../agreement.md#livebench).",
        "Tables, proofs, puzzles and instructions may be worth a part of a point.",
        "As on the leaderboard, `accuracy` is the mean over categories of the mean over their tasks, of the four "
        "categories here; `by_question` lets every question weigh the same.",
    ),
)
