# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.benchmarks.scores import entries, headline, mean, weighted

ONE = {"pass@1": {"num_entries": 10, "accuracy": 50.0}}
MANY = {
    "pass@2": {"num_entries": 30, "accuracy": 99.0},
    "pass@1[avg-of-2]": {"num_entries": 30, "accuracy": 60.0},
    "pass@1[avg-of-10]": {"num_entries": 30, "accuracy": 70.0},
}


def test_the_headline_is_the_longest_average() -> None:
    assert headline(ONE, "accuracy") == 50.0
    assert headline(MANY, "accuracy") == 70.0
    with pytest.raises(KeyError):
        headline(ONE, "bleu")


def test_means() -> None:
    assert mean([1.0, 2.0]) == 1.5
    assert (entries(ONE), entries(MANY)) == (10, 30)
    assert weighted([ONE, MANY], "accuracy") == 65.0
    with pytest.raises(ValueError, match="nothing"):
        mean([])
    with pytest.raises(ValueError, match="nothing"):
        weighted([], "accuracy")
