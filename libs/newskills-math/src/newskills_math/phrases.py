# SPDX-License-Identifier: Apache-2.0
"""Short answers in words with what a sentence puts around them: `the series is convergent`, `on Monday`."""

from __future__ import annotations

import re

from newskills_math.syntax.multiples import MULTIPLIERS
from newskills_math.syntax.tables import HEDGES, NUMBER_WORDS, SYNONYMS

_SUBJECTS = (
    "it|this|that|given|infinite|improper|series|sequence|integral|sum|limit|function|equation|graph|curve|conic|shape"
    "|figure|triangle|quadrilateral|statement|claim|relation|matrix|system|answer|number|result|day|weekday|month"
)
_LEAD = re.compile(
    rf"(?:there (?:is|are) )?(?:(?:{_SUBJECTS}) )*"
    r"(?:(?:is|are|was|has|have|will be|would be|falls|must be) )?(?:on )?(?:called )?"
)
_DAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
_DAYS = {day[:3]: day for day in _DAY_NAMES.split()}
_WEEKDAY = re.compile(rf"(?:on )?((?:{'|'.join(_DAYS)})[a-z]{{0,7}})")
_NOUN = re.compile(r" (?:triangle|function|series|sequence|number|quadrilateral|matrix|curve|graph)s?$")
_LIMIT = re.compile(
    r"(?P<before>absolutely |conditionally |uniformly |pointwise )?"
    r"(?P<denied>does not |doesnt |is not |not |isnt )?(?:does |is )?(?:(?P<near>converg)|diverg)(?:es|ent|e|ing)"
    r"(?P<behind> absolutely| conditionally| uniformly| pointwise)?"
)

_DENYING_WORDS = """
not never cannot impossible wrong incorrect false invalid extraneous excluded rejected discarded fails fail
failed contradiction inadmissible infeasible unacceptable untrue too instead rather neither nor either unless
without maybe perhaps
"""
DENYING = frozenset(_DENYING_WORDS.split())
"""Words that deny or doubt a value beside them."""

_CHANGING_WORDS = "twice double triple thrice half third quarter negative minus opposite reciprocal inverse than"
_CHANGING = frozenset(_CHANGING_WORDS.split())
_NUMBERS = NUMBER_WORDS.keys() - {"one"}
_NO_LEAD_IN = DENYING | _CHANGING | _NUMBERS | (HEDGES - {"to", "only", "least", "most"})
_VERB = re.compile(
    r"(?:is|are|was|were|be|isn't|aren't|wasn't|does|do|did|can|could|will|would|should|must|may|might)\b"
)
_APPROVAL = re.compile(
    r"(?:is|are|was) (?:indeed |therefore |thus |also |clearly )?"
    r"(?:correct|right|true|valid|possible|enough|needed|required|left|the case"
    r"|(?:the|our|my|your|its|their)(?: [a-z'-]+)+|an?(?: [a-z]+)? (?:solution|root|zero|answer|value))"
)
_SUBJECT = (
    r"(?:the |an? )?(?:ordered )?(?:point|pair|triple|vector|interval|set|line|number|value|matrix|function|polynomial"
    r"|equation|integer|fraction|ratio|angle|solution|root|curve|sequence)s?"
)
_STATEMENT = re.compile(
    rf"{_SUBJECT}|(?:[a-z'-]+ )*(?:is|are|was|were|be|equals?|becomes|have|has|had|get|gives|obtain|costs?|needs?"
    r"|takes?|contains?)(?: (?:exactly|only|just|simply|therefore|thus|about|approximately|roughly|equal to|given by"
    r"|a total of|the|an?))*"
)
_OF_ANOTHER = re.compile(r"(?<!total)(?<!value)(?<!number)(?<!consists)(?<!probability)(?<!price)(?<!length) of$")
_NEAR = frozenset({"under", "below", "above", "over", "almost", "nearly", "but", "exceeding", "approaching"})
_SIGNS = ".,:;!?()\"'"
_LONGEST_STATEMENT = 200


def is_lead_in(text: str) -> bool:
    """Return whether words before a value only say what it is the value of: `the probability is`, `there are`."""
    if len(text) > _LONGEST_STATEMENT or _STATEMENT.fullmatch(text) is None:
        return False
    return not set(text.split()) & _NO_LEAD_IN


def is_approval(text: str) -> bool:
    """Return whether words behind a value only say that it is the answer: `is the final answer`."""
    return _APPROVAL.fullmatch(text) is not None and not set(text.split()) & (DENYING | _CHANGING | _NUMBERS)


def is_denial(text: str) -> bool:
    """Return whether words behind a value deny it, or say of the value itself what only an approval may."""
    if any(word.strip(_SIGNS) in DENYING or word.endswith("n't") for word in text.split()):
        return True
    return _VERB.match(text) is not None and not is_approval(text)


def changes_value(before: str, behind: str) -> bool:
    """Return whether plain words around a value speak of another one, or deny it: `half of 5`, `5 is too big`."""
    leading, trailing = (text.lower().replace("\\text", " ").strip(" .,:;{}()") for text in (before, behind))
    if _OF_ANOTHER.search(leading) or set(leading.split()) & (DENYING | _CHANGING | _NEAR | _NUMBERS):
        return True
    first = trailing.partition(" ")[0]
    return is_denial(trailing) or first in MULTIPLIERS or bool(set(trailing.split()) & _NUMBERS)


def is_hedge(words: list[str]) -> bool:
    """Return whether words behind a value make it another statement: `or more`, `to`, `less than`.

    `more apples` and `ways to choose` do not.
    """
    if words[:1] in (["more"], ["fewer"], ["less"]) and "than" not in words:
        words = words[1:]
    if words and words[-1] != "to" and not _NUMBERS & set(words):
        harmless = {"to"}
    else:
        harmless = set()
    return bool(HEDGES & set(words) - harmless)


def same_phrase(gold: str, pred: str) -> bool:
    """Return whether two texts in plain words say the same but for what stands around one of them."""
    if (behaviour := _series_behaviour(gold)) and behaviour == _series_behaviour(pred):
        return True
    return any(short in _shorter_forms(long) for short, long in ((gold, pred), (pred, gold)))


def _series_behaviour(text: str) -> str:
    """Tell how a series behaves, in one form of many; '' for anything else."""
    match = _LIMIT.fullmatch(_without_lead(text)) or _LIMIT.fullmatch(text)
    if match is None or (match["before"] and match["behind"]):
        return ""
    manner = (match["before"] or match["behind"] or "").strip()
    if match["denied"] and manner:
        return ""
    behaviour = "diverges"
    if bool(match["near"]) != bool(match["denied"]):
        behaviour = "converges"
    return f"{behaviour} {manner}"


def _without_lead(text: str) -> str:
    match = _LEAD.match(text)
    if match is not None:
        return text[match.end() :]
    return text


def _weekday_name(text: str) -> str:
    """Return `monday` for `on Mondays` and `Mon`; '' for anything else."""
    if (match := _WEEKDAY.fullmatch(text)) is None:
        return ""
    day = _DAYS[match[1][:3]]
    if day.startswith(match[1].removesuffix("s")):
        return day
    return ""


def _shorter_forms(text: str) -> tuple[str, ...]:
    """Return the forms of the text without what stands before it, and without the noun behind."""
    bare = _without_lead(text)
    forms = (SYNONYMS.get(bare, bare), _NOUN.sub("", bare), _weekday_name(bare))
    return tuple(form for form in forms if form and form != text)
