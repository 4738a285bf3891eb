# SPDX-License-Identifier: Apache-2.0
"""Words, sentences and tokens as the published checks of instructions count them. Linear in the length of a text.

Two ways to find sentences are in use: `split_sentences` goes by rules about dots, `punkt_sentences` is the Punkt
algorithm (Kiss and Strunk, Computational Linguistics 32, 2006) with its English abbreviations and a word list in place
of its corpus statistics.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import lru_cache

PUNCTUATION = string.punctuation
BLANK_OR_MARK = PUNCTUATION + " "
_NO_MARKS = str.maketrans("", "", PUNCTUATION)
_WORD = re.compile(r"\w+")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list that is written as prose."""
    return frozenset(text.split())


STOP_WORDS = word_set(
    """a about above after again against ain all am an and any are aren as at be because been before being below
    between both but by can couldn d did didn do does doesn doing don down during each few for from further had hadn
    has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll
    m ma me mightn more most mustn my myself needn no nor not now o of off on once only or other our ours ourselves
    out over own re s same shan she should shouldn so some such t than that the their theirs them themselves then
    there these they this those through to too under until up ve very was wasn we were weren what when where which
    while who whom why will with won wouldn y you your yours yourself yourselves"""
)

_DOT, _END = "\ue000", "\ue001"
_STARTER = r"((?:Mr|Mrs|Ms|Dr|Prof|Capt|Cpt|Lt|Wherever)|(?:He|She|It|They|Their|Our|We|But|However|That|This)\s)"
_COMPANY = r" (Inc|Ltd|Jr|Sr|Co)[.]"
_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(Mr|St|Mrs|Ms|Dr)[.]", rf"\1{_DOT}"),
        (r"[.](com|net|org|io|gov|edu|me)", rf"{_DOT}\1"),
        (r"([0-9])[.]([0-9])", rf"\1{_DOT}\2"),
        (r"[.]([.]+)", lambda dots: _DOT * len(dots.group()) + _END),
        (r"Ph[.]D[.]", f"Ph{_DOT}D{_DOT}"),
        (r"\s([A-Za-z])[.] ", rf" \1{_DOT} "),
        (rf"([A-Z][.][A-Z][.](?:[A-Z][.])?) {_STARTER}", rf"\1{_END} \2"),
        (r"([A-Za-z])[.]([A-Za-z])[.]([A-Za-z])[.]", rf"\1{_DOT}\2{_DOT}\3{_DOT}"),
        (r"([A-Za-z])[.]([A-Za-z])[.]", rf"\1{_DOT}\2{_DOT}"),
        (rf"{_COMPANY} {_STARTER}", rf" \1{_END} \2"),
        (_COMPANY, rf" \1{_DOT}"),
        (r" ([A-Za-z])[.]", rf" \1{_DOT}"),
        (r"[.]([”\"])", r"\1."),
        (r"!\"", '"!'),
        (r"\?\"", '"?'),
        (r"([.?!])", rf"\1{_END}"),
    )
)


def plain_words(text: str) -> list[str]:
    """Return the runs of letters, digits and `_`."""
    return _WORD.findall(text)


def without_marks(text: str) -> str:
    """Return `text` without ASCII punctuation."""
    return text.translate(_NO_MARKS)


def bare_words(text: str) -> list[str]:
    """Return the lower-case words between blanks, without ASCII punctuation anywhere."""
    return without_marks(text.lower()).split()


@lru_cache(maxsize=32)
def split_sentences(text: str) -> tuple[str, ...]:
    """Cut behind `.`, `?` and `!`, but not at the dots of titles, initials, numbers, companies and addresses.

    The last piece counts as a sentence without a mark at its end, too.
    """
    padded = f" {text}  ".replace("\n", " ")
    for pattern, replacement in _RULES:
        padded = pattern.sub(replacement, padded)
    pieces = [piece.strip() for piece in padded.replace(_DOT, ".").split(_END)]
    if not pieces[-1]:
        pieces.pop()
    return tuple(pieces)


_ABBREVIATIONS = word_set(
    """a.a a.c a.d a.g a.h a.m a.m.e a.s a.t adm ala ariz aug ave b.f b.v bros c.i.t c.o.m.b c.v calif chg cie
    co col colo conn corp cos ct d.c d.h d.w dec dr e.f e.h e.l e.m f.g f.j feb fla fri ft g.d g.f g.k ga gen
    h.c h.f h.m i.m.s ill inc j.b j.c j.j j.k j.p j.r jan jr kan ky l.a l.f l.p lt ltd m.b.a m.d.c m.j
    maj messrs mg mich minn mr mrs ms n.c n.d n.h n.j n.m n.v n.y nev nov oct okla ok ore p.a.m p.m pa ph.d prof
    r.a r.h r.i r.j r.k r.t rep reps s.a s.a.y s.c s.g s.p.a s.s sen sep sept sr st sw t.j tenn tues u.k u.n u.s
    u.s.a u.s.s.r v va vs vt w.c w.r w.va w.w wash wed wis yr"""
)
_LETTERS = frozenset("cdefghklmnprstvw")
_STARTERS = word_set(
    """above according adding adjust ain aim allow although always among ask attend available balancing being between
    both but call check choose collaborate combining consider considering cool create creating depending describe
    despite develop didn direct discover discuss document does doesn doing early embrace encourage engage engaging
    enjoy ensure even examples exercise experience experiment explain explore exploring fix focusing given hadn hasn he
    her here hers herself him himself historical however i if implement in include including incorporate indeed instead
    into isn it learn listen managing many meanwhile mightn mix moreover most multiple myself needn nevertheless
    nonetheless nor ours ourselves perfect personal physical please practical practice prepare preparing provide
    receive regular regularly remember remove same schedule send separately serve sharing shouldn similarly since so
    some sometimes still such taking thank thanks the them themselves there therefore these they think this though
    through thus together traditional try ultimately under understand using utilize ve very visiting walk warm were
    weren when whether which while whom written yes yet your yourself"""
)
_CANDIDATE = re.compile(r"[.?!](?=\s|[)\";}\]*:@'({\[!?”’»])")
_AFTER_NUMBERS = word_set(
    """abreast business commodities cooper credit corrections dividend financing insider international leisure letters
    notable review who"""
)
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*$")
_BLANK = re.compile(r"\s")
_AFTER = re.compile(r"\s*([,:;.!?]?)(\w*)")
_CLOSING = re.compile(r"\s*[)\"'\]}‘’“”«»]+(?=\s|--|$)")
_MARK_UP = " \t*#>_-"


def punkt_sentences(text: str) -> list[str]:
    """Return the sentences by Punkt, without the blanks around them.

    Of the marks between two blanks the last ends the sentence where any of them does.
    """
    pieces, start = [], 0
    for marks in _sentence_mark_groups(text):
        if any(_ends_sentence(text, mark) for mark in marks):
            closing = _CLOSING.match(text, marks[-1] + 1)
            end = closing.end() if closing else marks[-1] + 1
            pieces.append(text[start:end].strip())
            start = end
    pieces.append(text[start:].strip())
    return [sentence for sentence in pieces if sentence]


def _sentence_mark_groups(text: str) -> Iterator[list[int]]:
    """Yield the places of the marks that may end a sentence, those without a blank between them together."""
    together: list[int] = []
    for mark in _CANDIDATE.finditer(text):
        if together and _BLANK.search(text, together[-1], mark.start()):
            yield together
            together = []
        together.append(mark.start())
    if together:
        yield together


def _ends_sentence(text: str, at: int) -> bool:
    """Return whether a sentence ends at the mark at `at`, which is not the last character."""
    if text[at] != ".":
        return True
    before = text[max(0, at - 64) : at]
    word = ""
    if before and not before[-1].isspace():
        word = before.split()[-1].lstrip("([{\"'*“‘`")
    after = _AFTER.match(text, at + 1, at + 80)
    sign, following = after.groups() if after else ("", "")
    starts = following[:1].isupper() and following.lower() in _STARTERS
    if word.endswith("."):
        return starts
    if len(word) == 1 and word.isalpha():
        if word.lower() in _LETTERS:
            return False
        line = text[text.rfind("\n", max(0, at - 40), at) + 1 : at - 1]
        heads = not following or word.islower() or not line.strip(_MARK_UP)
        return not sign and (starts or (heads and not following[:1].islower()))
    lower = word.lower()
    if lower in _ABBREVIATIONS or lower.rpartition("-")[2] in _ABBREVIATIONS | _LETTERS:
        return starts
    if _NUMBER.match(word):
        return not sign and not following[:1].islower() and following.lower() not in _AFTER_NUMBERS
    return True


def treebank_tokens(text: str) -> list[str]:
    """Return words and marks after the conventions of the Penn Treebank.

    Contractions and clitics are split off, a dot only from the end of a sentence.
    """
    return [token for sentence in punkt_sentences(text) for token in _split_treebank(sentence)]


def _split_treebank(sentence: str) -> list[str]:
    for pattern, replacement in _TREEBANK:
        sentence = pattern.sub(replacement, sentence)
    return sentence.split()


_TREEBANK = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[«“‘„]|`+", r" \g<0> "),
        (r'^"', "``"),
        (r"``", " `` "),
        (r"(?<=[ (\[{<])(?:\"|'')", " `` "),
        (r"(?i)(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", "' "),
        (r"(?<=[^.])\.(?=[\])}>\"'»”’ ]*\s*$)", " . "),
        (r"([:,])(\D|$)", r" \1 \2"),
        (r"\.\.+|[;@#$%&\u2012-\u2015?!*\]\[(){}<>]", r" \g<0> "),
        (r"(?<=[^'])' ", " ' "),
        (r"--|[»”’]|''", r" \g<0> "),
        (r'"', " '' "),
        (r"\s+", " "),
        (r"(?<=[^' ])('[sSmMdD]|')(?= |$)", r" \1 "),
        (r"(?<=[^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T)(?= |$)", r" \1 "),
        (r"(?i)\b(can)(not)\b", r" \1 \2 "),
        (r"(?i)\b(gim|lem)(me)\b", r" \1 \2 "),
        (r"(?i)\b(gon)(na)\b", r" \1 \2 "),
        (r"(?i)\b(got)(ta)\b", r" \1 \2 "),
        (r"(?i) ('t)(is|was)\b", r" \1 \2 "),
    )
)
