# SPDX-License-Identifier: Apache-2.0
"""Our graders agree with the authors' scorers on hundreds of replies, but where a reason is given."""

from __future__ import annotations

import pytest
from tests.graders.originals.ours import CLOSE, REASONS, recorded, verdicts
from tests.graders.originals.replies import CASES

from newskills.graders.reading.legal import MEASURES


def test_every_measure_of_legalbench_is_compared() -> None:
    assert {row["measure"] for row, _, _ in CASES["legalbench"]()} == set(MEASURES)


@pytest.mark.parametrize("name", CASES)
def test_verdicts_are_the_same(name: str) -> None:
    forms = [form for _, form, _ in CASES[name]()]
    assert [form for form, _ in recorded(name)] == forms, "the replies changed: record again"
    assert len(forms) >= 290
    differ = {
        (form, reply): (value, ours)
        for form, reply, value, ours in verdicts(name)
        if abs(ours - value) > CLOSE and form not in REASONS[name]
    }
    assert differ == {}


@pytest.mark.parametrize("name", CASES)
def test_each_reason_is_needed(name: str) -> None:
    forms = {form for form, _, value, ours in verdicts(name) if abs(ours - value) > CLOSE}
    assert set(REASONS[name]) <= forms
