# SPDX-License-Identifier: Apache-2.0
"""Our scorers beside the benchmarks' own, on recorded attempts; every disagreement is listed here with its reason."""

from __future__ import annotations

from tests.graders.plain import plain_grader
from tests.official.recording import read

ENOUGH = 300


def test_followbench_rules_and_lists_of_judges() -> None:
    grader, different, total = plain_grader("followbench", {}), [], 0
    for case in read("followbench"):
        official = case.pop("official")
        fields = grader.grade(case).fields
        if "judgement" in case:
            ours = (
                None if fields["hard_satisfied"] is None else [fields["hard_satisfied"], fields["soft_satisfied"]]
            )
        else:
            ours = fields["hard_satisfied"]
        total += 1
        if ours != official:
            different.append((case, official, ours))
    assert total >= ENOUGH
    assert not different, different[:5]


def test_strongreject_rubric() -> None:
    grader, different, total = plain_grader("strongreject", {}), [], 0
    for case in read("strongreject"):
        official = case.pop("official")
        ours = grader.grade(case).fields["strongreject_score"]
        total += 1
        if ours != official:
            different.append((case, official, ours))
    assert total >= ENOUGH
    assert not different, different[:5]
