# SPDX-License-Identifier: Apache-2.0
"""Eight benchmarks with the settings of the Artificial Analysis Intelligence Index, version 3, and their mean."""

from collections.abc import Mapping

from newskills.base.benchmark import Group
from newskills.base.records import Row
from newskills.benchmarks.scores import headline, mean

_GREEDY = {"inference.temperature": 0.0}
_METRICS = {
    "mmlu-pro": "symbolic_correct",
    "hle": "judge_correct",
    "gpqa": "symbolic_correct",
    "aime25": "symbolic_correct",
    "scicode": "subtask_accuracy",
    "livecodebench": "accuracy",
    "ifbench": "average_score",
    "aalcr": "judge_correct",
}


def score(members: Mapping[str, Mapping[str, Row]]) -> Row:
    """Average eight headline numbers equally; `math_score` is AIME, `code_score` the mean of both code benchmarks."""
    of = {name: headline(members[name], metric) for name, metric in _METRICS.items()}
    return {
        "overall_score": mean(of.values()),
        "math_score": of["aime25"],
        "code_score": mean([of["scicode"], of["livecodebench"]]),
        **of,
    }


GROUP = Group(
    name="aai",
    category="general-knowledge",
    title="The eight text benchmarks of the Artificial Analysis Intelligence Index",
    members={
        "mmlu-pro": {"prompt": "eval/aai/mcq-10choices", "defaults": _GREEDY},
        "hle": {"defaults": _GREEDY},
        "gpqa": {"prompt": "eval/aai/mcq-4choices", "defaults": _GREEDY},
        "aime25": {"prompt": "eval/aai/math", "defaults": _GREEDY, "samples": 10},
        "scicode": {"defaults": _GREEDY, "split": "test_aai", "samples": 3},
        "livecodebench": {
            "prompt": "eval/aai/livecodebench",
            "defaults": _GREEDY,
            "split": "test_v5_2407_2412",
            "samples": 3,
        },
        "ifbench": {"defaults": _GREEDY, "samples": 5},
        "aalcr": {"defaults": _GREEDY, "samples": 4},
    },
    score=score,
    columns=("overall_score", "math_score", "code_score"),
    homepage="https://artificialanalysis.ai/methodology/intelligence-benchmarking",
    traps=(
        "hle and aalcr need a judge; scicode also its file of targets, see its page.",
        "Prompts have the form of the index in words of our own: small differences from its numbers are normal.",
    ),
)
