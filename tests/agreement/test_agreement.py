# SPDX-License-Identifier: Apache-2.0
"""Our graders and the official scorers say the same, but for what the page explains."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.agreement.compare import PARTS, VERDICTS
from tests.agreement.page import FACTS, PAGE, Figure, facts, measured, page
from tests.agreement.registry import comparisons

FEWEST = 300


@cache
def _figure(name: str) -> Figure:
    return measured(comparisons()[name])


@pytest.fixture(autouse=True)
def _originals(request: pytest.FixtureRequest) -> None:
    """Skips what needs a package that is not here: the page needs all of them."""
    names = [request.node.callspec.params["name"]] if hasattr(request.node, "callspec") else list(comparisons())
    for package in filter(None, (comparisons()[name].package for name in names)):
        pytest.importorskip(package)


@pytest.mark.parametrize("name", comparisons())
def test_every_disagreement_is_explained(name: str) -> None:
    figure = _figure(name)
    unexplained = Counter(
        (reply.key, reply.official, reply.ours)
        for reply in figure.disagreements
        if reply.key not in figure.comparison.known
    )
    assert not unexplained
    assert figure.comparison.known.keys() == {reply.key for reply in figure.disagreements}
    assert figure.attempts >= FEWEST


@pytest.mark.parametrize("name", comparisons())
def test_originals_give_different_verdicts(name: str) -> None:
    """Nobody agrees by saying the same to everything."""
    scores = [reply.official for reply in _figure(name).every]
    ((_, most),) = Counter(scores).most_common(1)
    assert most < len(scores) * 19 / 20


@pytest.mark.parametrize("name", comparisons())
def test_what_was_compared_has_a_known_name(name: str) -> None:
    """And what is read of a judge is never called the whole scorer."""
    figure = _figure(name)
    assert set(figure.comparison.compared.split(", ")) <= PARTS.keys()
    if any(isinstance(one.reply, dict) and "judgement" in one.reply for one in figure.every):
        assert figure.comparison.compared.startswith(VERDICTS)


def test_the_page_is_current() -> None:
    """`python -m tests.agreement --write` writes it."""
    figures = [_figure(name) for name in comparisons()]
    assert PAGE.read_text(encoding="utf-8") == page(figures)
    assert FACTS.read_text(encoding="utf-8") == facts(figures)
