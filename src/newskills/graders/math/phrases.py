# SPDX-License-Identifier: Apache-2.0
"""Short answers in words with what a sentence puts around them: `the series is convergent`, `on Monday`."""

from __future__ import annotations

import re

from newskills.graders.math.syntax.tables import SYNONYMS

_SUBJECTS = (
    "it|this|that|given|infinite|improper|series|sequence|integral|sum|limit|function|equation|graph|curve|conic|shape"
    "|figure|triangle|quadrilateral|statement|claim|relation|matrix|system|answer|number|result|day|weekday|month"
)
_LEAD = re.compile(
    rf"(?:there (?:is|are) )?(?:(?:{_SUBJECTS}) )*"
    r"(?:(?:is|are|was|has|have|will be|would be|falls|must be) )?(?:on )?(?:called )?"
)
_WEEKDAY = re.compile(r"(?:on )?((?:mon|tues|wednes|thurs|fri|satur|sun)day)s?")
_NOUN = re.compile(r" (?:triangle|function|series|sequence|number|quadrilateral|matrix|curve|graph)s?$")
_LIMIT = re.compile(
    r"(?P<before>absolutely |conditionally |uniformly |pointwise )?"
    r"(?P<denied>does not |doesnt |is not |not |isnt )?(?:does |is )?(?:(?P<near>converg)|diverg)(?:es|ent|e|ing)"
    r"(?P<behind> absolutely| conditionally| uniformly| pointwise)?"
)


def same_phrase(gold: str, pred: str) -> bool:
    """Whether two texts in plain words say the same but for what stands around one of them."""
    if (behaviour := _behaviour(gold)) and behaviour == _behaviour(pred):
        return True
    return any(short in _shorter(long) for short, long in ((gold, pred), (pred, gold)))


def _behaviour(text: str) -> str:
    """How a series behaves, in one form of many; '' for anything else."""
    match = _LIMIT.fullmatch(_without_lead(text)) or _LIMIT.fullmatch(text)
    if match is None or (match["before"] and match["behind"]):
        return ""
    manner = (match["before"] or match["behind"] or "").strip()
    if match["denied"] and manner:
        return ""
    return f"{'converges' if bool(match['near']) != bool(match['denied']) else 'diverges'} {manner}"


def _without_lead(text: str) -> str:
    match = _LEAD.match(text)
    return text[match.end() :] if match is not None else text


def _shorter(text: str) -> tuple[str, ...]:
    """The text without what stands before it, and without the noun behind."""
    bare = _without_lead(text)
    weekday = _WEEKDAY.fullmatch(bare)
    forms = (SYNONYMS.get(bare, bare), _NOUN.sub("", bare), weekday[1] if weekday is not None else "")
    return tuple(form for form in forms if form and form != text)
