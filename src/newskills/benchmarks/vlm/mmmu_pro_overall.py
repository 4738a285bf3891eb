# SPDX-License-Identifier: Apache-2.0
"""Both parts of MMMU-Pro and their mean, the overall score of its paper."""

from collections.abc import Mapping

from newskills.base.benchmark import Group
from newskills.base.records import Row
from newskills.benchmarks.scores import headline, mean

_PARTS = {"vision": "mmmu-pro", "standard": "mmmu-pro-standard"}


def score(members: Mapping[str, Mapping[str, Row]]) -> Row:
    """Average both parts, which weigh the same."""
    parts = {part: headline(members[name], "symbolic_correct") for part, name in _PARTS.items()}
    return {"overall": mean(parts.values()), **parts}


GROUP = Group(
    name="mmmu-pro-overall",
    category="vlm",
    title="MMMU-Pro: questions as pictures and as text, and the mean of both",
    members={name: {} for name in _PARTS.values()},
    score=score,
    columns=("overall", "vision", "standard"),
    homepage="https://huggingface.co/datasets/MMMU/MMMU_Pro",
    citation="arXiv:2409.02813",
    traps=("overall is the mean of both parts, as the paper's overall score: ten options in either.",),
)
