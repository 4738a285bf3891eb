# SPDX-License-Identifier: Apache-2.0
"""The answer in what a reply says last, where no mark tells it: what its last stating sentence states.

Nothing is computed; every step is bounded by the length of the text that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from newskills_math.extraction.clauses import CONCLUDES, ODD_ENDS, PREDICATE, formula_of, main_clause
from newskills_math.extraction.masks import MaskedText, mask
from newskills_math.normalise import latinise
from newskills_math.syntax.tables import NUMBER_WORDS

_LINE_DRESS = re.compile(r"^[\s#>|\-*+•]*(?:\d{1,2}[.)]\s+)?")
_SENTENCES = re.compile(r"(?<=[.!?])[*_\"')\]]*\s+")
_COMMENT = re.compile(
    r"\W*(?:i hope|hope|let me know|let's (?:verify|check)|let me (?:verify|check|double)|feel free|please|great|happy"
    r"|good luck|thank|note|notice|check|verif\w+|we (?:can|have|could) (?:also )?(?:verif|check|double)\w*"
    r"|this (?:is (?:because|consistent|reasonable|exactly the)|matches|completes|confirms|agrees"
    r"|follows|already|makes sense|works|can be)"
    r"|\((?=(?:[^\W\d_]+\s+){3})|that (?:is the answer|already|completes)|the (?:key|other|reason|idea)|here"
    r"|explanation|if you|compare|recall|remember|indeed|because|since lengths|we used|did you|you can|as a check"
    r"|in other words|would you like|(?:do you )?want (?:me|to)|shall i|interpretation|sanity"
    r"|end\b|done\b|q\.?e\.?d|proof|where\b|it is given|the remaining)",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,200}?)\*\*|__([^_\n]{1,200}?)__")
_LABEL = re.compile(
    r"[\s\w]{0,30}[:：]$|(?:final |correct )?(?:answer|conclusion|solution|result|explanation|step \d+)\W*$",
    re.IGNORECASE,
)
_FACES = re.compile(r"(?<=\s)[:;]-?[)(DP](?=\s|$)")
_DRAWING = re.compile(r"\[asy\].*?\[/asy\]", re.DOTALL)
_PICTURES = re.compile("[\u2190-\u21ff\u2600-\u27bf\U0001f000-\U0001faff\ufe0f]")
_LETTER = re.compile(
    r"(?:option|choice|answer)\s+(?:is\s+)?(?:therefore\s+)?\(?([A-J])\)?(?![\w'])"
    r"|\b(?:go with|choose|pick|select)\s+(?:option\s+)?\(?([A-J])\)?(?![\w'])"
    r"|\(([A-J])\)\s+(?:is|must be|has to be)\s+(?:the\s+)?(?:right|correct|best|answer|only)"
    r"|^\W*([A-J])\s+is\s+(?:the\s+)?(?:right|correct|best)"
)
_KNOWN = re.compile(
    r"\b(no (?:real |such |integer )?solutions?|all real numbers|all reals|infinitely many(?: solutions)?"
    r"|does not exist|(?:is |are )?undefined|empty set)\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(r"\W*(?:(?:therefore|so|thus|hence|answer)\W+)*(yes|no)\W*(?:[,.!]|$)", re.IGNORECASE)
_ALONE = re.compile(r"\W*([A-J])\W*")
_GIVES_UP = re.compile(
    r"\b(?:unable to|not able to|cannot|can't|could not|couldn't|failed to|did not manage to)\s(?:\w+\s)?"
    r"(?:find|determine|solve|compute|finish|complete|evaluate|answer|give)\b|\bran out of\b"
    r"|\blet me (?:recompute|reconsider|redo|re-?think|start over|try again)\b|\bi (?:do not|don't) know\b",
    re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(
    r"^[\s#>*_-]*(?:why (?:this|it) works|(?:quick |sanity )?check|verification|interpretation|justification|remarks?"
    r"|notes?|explanation|intuition|key (?:ideas?|takeaways?|insights?|points?|observations?)|takeaways?|tips?"
    r"|fun facts?|sources?|alternative (?:method|approach|solution))\W*[:：](?=[\s*_])",
    re.IGNORECASE | re.MULTILINE,
)
_CONCLUDING = re.compile(
    r"\b(?:answer|final|result|total|conclusion|therefore|altogether)\b"
    r"|(?:^|[.!?]\s)[\s*_]*(?:so|thus|hence|we (?:get|find|obtain))\b[^\n]*(?:\d|\\[a-z])",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWERED_FIRST = re.compile(
    r"\W*(yes|no)\s?[,—–:-]+\s(?:(?!\b(?:since|because|as)\b)[^\d\ue000-\uf7ff=])*(?:\b(?:since|because|as)\b|$)",
    re.IGNORECASE,
)
_ABOUT_THE_REPLY = re.compile(r"\W*(?:i|you|we|this|that|which)\b", re.IGNORECASE)
_COMMENTS_IN_WORDS = """
clear done correct complete finished required proved shown desired sufficient enough useful helpful right wrong
"""
_NO_ANSWERS = frozenset(_COMMENTS_IN_WORDS.split())
_NUMERAL = re.compile(
    r"\b(?:there (?:is|are)|left with|gives|yields|makes|has|have|exactly|only|total of|equals?|is|are|be|get)\s+"
    r"(?:exactly |only |just )?"
    rf"({'|'.join(NUMBER_WORDS)})\b(?!\W+(?:or|of the|more|less|time))",
    re.IGNORECASE,
)


class ClosingAnswer(NamedTuple):
    """`gives_up`: the reply says that it has found no answer."""

    answer: str | None
    gives_up: bool = False


def closing_answer(text: str) -> ClosingAnswer:
    """Return the answer in the last sentence that states one, afterthoughts left out where that leaves an answer."""
    text = _DRAWING.sub(" ", text)
    text = _PICTURES.sub(" ", _FACES.sub(" ", text).replace("。", "。\n"))
    afterthought = _AFTERTHOUGHT.search(text)
    if afterthought is not None and _CONCLUDING.search(text, afterthought.end()) is None:
        before = _last_statement(text[: afterthought.start()])
        if before.answer is not None:
            return before
    return _last_statement(text)


def _last_statement(text: str) -> ClosingAnswer:
    masked = mask(latinise(text))
    for sentence in reversed(list(_split_sentences(masked.text))):
        if _GIVES_UP.search(sentence):
            return ClosingAnswer(None, gives_up=True)
        comment = sentence.rstrip(" *_)").endswith("?") or (
            _COMMENT.match(sentence) is not None and CONCLUDES.search(sentence) is None
        )
        if not comment and (answer := stated_answer(sentence, masked)) is not None:
            return ClosingAnswer(answer)
    return ClosingAnswer(None)


def _split_sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        line = _LINE_DRESS.sub("", line)
        for sentence in _SENTENCES.split(line):
            if any(c.isalnum() or "\ue000" <= c <= "\uf7ff" for c in sentence):
                yield sentence


def stated_answer(sentence: str, masked: MaskedText) -> str | None:
    """Return what one sentence states: its bold part, its last formula, an option, or a word that is an answer."""
    bold = [b for match in _BOLD.finditer(sentence) if (b := match[1] or match[2]) and not _LABEL.match(b.strip())]
    plain = _BOLD.sub(lambda m: m[1] or m[2], sentence)
    if len(bold) == 1 and bold[0].strip() != plain.strip():
        inner = formula_of(bold[0], masked)
        if inner is not None or len(bold[0].split()) <= 3:
            return inner or bold[0].strip(ODD_ENDS)
    if (first := _ANSWERED_FIRST.match(plain)) is not None:
        return first[1]
    if (letter := _LETTER.search(plain)) is not None and formula_of(plain, masked) is None:
        return next(str(letter_group) for letter_group in letter.groups() if letter_group)
    return formula_of(plain, masked) or _in_words(plain)


def _in_words(sentence: str) -> str | None:
    if (match := _YES_OR_NO.match(sentence) or _ALONE.fullmatch(sentence)) is not None:
        return match[1]
    if (match := _KNOWN.search(sentence)) is not None:
        return re.sub(r"^(?:is|are) ", "", match[1])
    sentence = main_clause(sentence)
    if (numeral := _NUMERAL.search(sentence)) is not None:
        return str(NUMBER_WORDS[numeral[1].lower()])
    predicate = None
    if not _ABOUT_THE_REPLY.match(sentence):
        predicate = PREDICATE.match(sentence)
    if predicate is not None and predicate[1].lower() not in _NO_ANSWERS:
        return predicate[1]
    numerals = {w for w in re.findall(r"[a-z]+", sentence.lower()) if NUMBER_WORDS.get(w, 0) > 1}
    if len(numerals) == 1:
        return str(NUMBER_WORDS[numerals.pop()])
    return None
