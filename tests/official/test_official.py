# SPDX-License-Identifier: Apache-2.0
"""Our scorers beside the benchmarks' own, on recorded attempts; every disagreement is listed here with its reason."""

from __future__ import annotations

import os

import pytest

from newskills.benchmarks.pages import Agreement, stored_figures
from tests.official.compared import Compared, compared
from tests.official.figures import FIGURES
from tests.official.recording import read
from tests.official.tau2_bench import stored

ENOUGH = 300
REVERSES = "    return (value, [a.reverse() for a in arguments if type(a) is list])[0]"
KNOWN = {
    "SearchEngine": "the original searches its documents, of which other words find the same",
    "AddAgenda": "the token of another user of the original's database",
}


def _with_figures(name: str) -> Compared:
    """What the comparison comes to now, after a look at the figures that the page of headlines shows of it."""
    figure, stored_here = compared(name), stored_figures(FIGURES)
    now = Agreement(figure.scorer, figure.attempts, figure.agreement, figure.part)
    assert [stored_here[benchmark] for benchmark in figure.benchmarks] == [now] * len(figure.benchmarks)
    return figure


@pytest.mark.parametrize("name", ["alpaca_eval", "followbench", "strongreject"])
def test_verdicts_are_those_of_the_original(name: str) -> None:
    figure = _with_figures(name)
    assert figure.attempts >= ENOUGH
    assert not figure.different, figure.different[:5]


def test_calls_of_api_bank() -> None:
    figure = _with_figures("api_bank")
    assert figure.attempts >= ENOUGH
    assert sorted(case["name"] for case, _, _ in figure.different) == sorted(KNOWN), figure.different


@pytest.mark.parametrize("domain", ["airline", "telecom"])
def test_conversations_of_tau2_bench(domain: str) -> None:
    """The reward, the state that is left, and what each call was told; the tasks' own actions are right."""
    figure = _with_figures(f"tau2_{domain}")
    assert figure.attempts >= ENOUGH
    assert not figure.different, figure.different[:5]
    own = [case["official"][0] for case in read(f"tau2_{domain}") if not case["change"]]
    assert own == [1.0] * len(stored(f"tau2_{domain}")["tasks"])


@pytest.mark.slow
@pytest.mark.nightly
def test_test_classes_of_classeval() -> None:
    figure = _with_figures("classeval")
    assert figure.attempts >= ENOUGH
    assert not figure.different, figure.different[:3]


@pytest.mark.nightly
@pytest.mark.slow
def test_programs_of_evalplus() -> None:
    """A program reverses its argument: the original looks for a zero of what that leaves, ours of what was given."""
    figure = _with_figures("evalplus")
    assert figure.attempts >= ENOUGH
    assert [case["code"].splitlines()[-1] for case, _, _ in figure.different] == [REVERSES], figure.different[:3]


@pytest.mark.nightly
@pytest.mark.slow
def test_programs_of_human_eval() -> None:
    """Its tasks stand in the offline mirror."""
    if "NEWSKILLS_MIRROR" not in os.environ:
        pytest.skip("needs the offline mirror")
    figure = _with_figures("human_eval")
    assert figure.attempts >= ENOUGH
    assert not figure.different, figure.different[:3]


@pytest.mark.nightly
@pytest.mark.slow
def test_programs_of_ds_1000() -> None:
    figure = _with_figures("ds_1000")
    assert figure.attempts >= ENOUGH
    assert not figure.different, figure.different[:3]
