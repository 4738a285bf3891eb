# SPDX-License-Identifier: Apache-2.0
"""Two answer texts → equal, different or undecided, with the step that decided. The first step that knows wins."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from newskills_math.angles import same_angle
from newskills_math.chains import by_sides, contradicts_itself, known_sides
from newskills_math.choices import same_choice
from newskills_math.clock import same_time
from newskills_math.dates import same_date
from newskills_math.divisions import same_ratio, same_remainder
from newskills_math.extraction.prose import formula_in_prose
from newskills_math.figures import same_figure
from newskills_math.measurements import is_value, read_measure
from newskills_math.normalise import comparison_key, latinise, tidy_answer
from newskills_math.parameters import same_conditions, with_primes
from newskills_math.quantities import is_counted
from newskills_math.residues import same_residues
from newskills_math.structure import are_same
from newskills_math.syntax.labels import are_other_names
from newskills_math.syntax.nodes import Node, TooBig, Unreadable, has_kind, number_node, walk_tree
from newskills_math.syntax.parser import parse
from newskills_math.syntax.tables import HEDGES
from newskills_math.syntax.units import SAME_NAME
from newskills_math.values import symbolic
from newskills_math.values.deadline import OutOfTime, is_limited, run_limited
from newskills_math.values.equal import Options
from newskills_math.values.evaluate import own_context
from newskills_math.values.exact import PlainNumber, are_close, plain_number
from newskills_math.values.modular import is_beyond_computing
from newskills_math.values.one_integer import differ_in_one_integer
from newskills_math.vectors import as_tuple
from newskills_math.words import (
    bare_option_letter,
    behind_letter,
    is_prose,
    option_letter,
    plain_words,
    same_letters,
    same_words,
)

Verdict = tuple[bool | None, str]
MAX_LENGTH = 20_000
CPU_SECONDS = 0.9
"""For one answer, imports aside; what a benchmark asks for takes a fiftieth of it."""
NO_SINGLE_ANSWER = "no single answer"
_CACHED_LENGTH = 2_000
DEFAULT = Options()
_VARIABLE = re.compile(r"[a-zA-Z](?:_\{?\w{1,8}\}?)?\s*=\s*")
_VALUES = frozenset({"num", "sym", "const", "add", "mul", "neg", "div", "pow", "fn", "tuple", "list", "set"})
_NO_EXPRESSIONS = (
    ("time of day", same_time),
    ("date", same_date),
    ("angle", same_angle),
    ("figure", same_figure),
    ("residues", same_residues),
    ("ratio", same_ratio),
    ("remainder", same_remainder),
)
_GROUPS = re.compile(r"\d,\d{3}(?!\d)")
_NO_ELEMENT = re.compile(r",0\d")
"""A group of digits that can only be the end of a number: nobody lists `000`."""
_ARROW = re.compile(r"\\to(?![a-zA-Z])")
_DECIMAL_COMMA = re.compile(r"[^,.;\d(\[]*?(?<![\d.])(\d{1,15})(?:,|\{,\})(\d{1,15})[^,.;\d)\]]*")

_REMARK = re.compile(
    r"(?<=[\d}])(?:\s|~|\\[,;:! ]|\\text\s?\{)*"
    r"(?:or so|(?:instead of|rather than|\(\s?not)\s*\}?\s*\$?-?[\d./]{1,20})[\s)}$.]*$"
)
"""What says how sure a value is, or which other one it is not: `5 or so`, `5 (not 6)`."""
_LONGEST_REMARK = 200


def equal(pred: str, gold: str, options: Options = DEFAULT) -> Verdict:
    """Return (True | False | None, which step decided). None: undecided, never to be counted as wrong."""
    if len(pred) + len(gold) <= _CACHED_LENGTH:
        return _decide_cached(pred, gold, options)
    return _decide_equality(pred, gold, options)


@lru_cache(maxsize=1 << 16)
def _decide_cached(pred: str, gold: str, options: Options) -> Verdict:
    return _decide_equality(pred, gold, options)


def _decide_equality(pred: str, gold: str, options: Options) -> Verdict:
    at_sight = _at_sight(pred, gold, options)
    return at_sight or in_time(lambda: _worked_out(pred, gold, options), (gold,))


def in_time(work: Callable[[], Verdict], golds: Sequence[str]) -> Verdict:
    """Return what `work` decides about one answer, whose time all steps share.

    If that is used up, the answer is wrong where our own reader knows the values of all `golds`; else one of them may
    be what takes too long, and it is undecided.
    """
    try:
        return run_limited(work, CPU_SECONDS)
    except OutOfTime as end:
        if is_limited():
            raise
        own_context.cache_clear()  # it may have been left with another precision
        is_readable = all(_has_value(_parse_tree(tidy_answer(gold), True)) for gold in golds)
        verdict = False if is_readable else None
        return verdict, f"no time left in step {end.step}"


def _worked_out(pred: str, gold: str, options: Options) -> Verdict:
    verdict = _by_meaning(tidy_answer(pred), tidy_answer(gold), pred, options)
    if not verdict[0] and "," not in gold and (pointed := _with_point(pred)):
        again = _at_sight(pointed, gold, options) or _by_meaning(
            tidy_answer(pointed), tidy_answer(gold), pointed, options
        )
        if again[0]:
            return (True, "decimal comma")
        return verdict
    if not verdict[0] and len(pred) <= _LONGEST_REMARK and (remark := _REMARK.search(pred)) is not None:
        return equal(pred[: remark.start()], gold, options)
    return verdict


def _with_point(pred: str) -> str:
    """Write `2,5 cm` as `2.5 cm`; empty where the comma cannot be that of a decimal, or may part groups of three
    digits.
    """
    if "," not in pred or "\\{" in pred or (match := _DECIMAL_COMMA.fullmatch(pred)) is None:
        return ""
    whole, part = match[1], match[2]
    if len(part) == 3 and not whole.startswith("0"):
        return ""
    return f"{pred[: match.start(1)]}{whole}.{part}{pred[match.end(2) :]}"


def _at_sight(pred: str, gold: str, options: Options) -> Verdict | None:
    """Compare by the texts alone: the same number, text or option letter."""
    a, b = plain_number(pred), plain_number(gold)
    if a is not None and b is not None:
        return _same_plain(a, b, options), "exact"
    if max(len(pred), len(gold)) > MAX_LENGTH:
        return pred.strip() == gold.strip(), "length"
    p, g = tidy_answer(pred), tidy_answer(gold)
    if not p or not g:
        if p == g and pred.strip() == gold.strip():
            return (True, "identical")
        return (False, "empty")
    if p == g:
        return True, "identical"
    a, b = plain_number(p), plain_number(g)
    if a is not None and b is not None:
        return _same_plain(a, b, options), "exact"
    if comparison_key(p) == comparison_key(g):
        return True, "normalised"
    if letter := bare_option_letter(g):
        if option_letter(p) or not letter.isupper():
            if option_letter(p) == letter.upper():
                return True, "option"
            if letter.isupper():
                return False, "option"
        elif len(g) > 1 or len(p) > 1:
            return False, "option"
    return None


def _by_meaning(p: str, g: str, raw: str, options: Options) -> Verdict:
    if (certain := _by_notation(p, g, options)) is not None:
        return certain
    if (measured := _compare_measurements(p, g, options)) is not None:
        return measured
    return _compare_trees(*with_primes(*same_conditions(p, g)), raw, options)


def _by_notation(p: str, g: str, options: Options) -> Verdict | None:
    """Compare what is no expression: a time, a date, a figure, a residue class, a sum of unit vectors."""
    for step, same_kind in _NO_EXPRESSIONS:
        if (verdict := same_kind(p, g)) is not None:
            return verdict, step
    if are_other_names(p, g):
        return False, "another name"
    if (chosen := same_choice(p, g, lambda value, wanted: equal(value, wanted, options)[0])) is not None:
        return chosen, "option"
    return _by_components(p, g, options)


def _by_components(p: str, g: str, options: Options) -> Verdict | None:
    pred, gold = as_tuple(p), as_tuple(g)
    if pred is None and gold is None:
        return None
    verdict = equal(pred or p, gold or g, options)
    if verdict[0] or (pred or gold or "").count(",") > 1:
        return verdict
    return equal(as_tuple(p, 3) or p, as_tuple(g, 3) or g, options)


def _compare_measurements(p: str, g: str, options: Options) -> Verdict | None:
    """Compare measurements: where units of measurement are known, they decide; a unit that only one side states is
    forgiven."""
    said_g, said_p = _VARIABLE.match(g), _VARIABLE.match(p)
    if said_g is not None and (said_p is None or said_p.group() == said_g.group()):
        g = g[said_g.end() :]
    if said_p is not None and (said_g is None or said_p.group() == said_g.group()):
        p = p[said_p.end() :]
    gold, pred = read_measure(g), read_measure(p)
    if gold is None or pred is None:
        interval = gold or pred
        if interval is None or not interval.certain or not is_value(p if gold is not None else g):
            return None
        if gold is not None:
            return equal(p, interval.value, options)
        return equal(interval.value, g, options)
    if not (gold.certain or pred.certain):
        return None
    if frozenset([gold.base, pred.base]) in SAME_NAME:
        return equal(pred.value, gold.value, options)
    if gold.base != pred.base:
        bare = (("unit", 1),)
        if bare in (gold.base, pred.base):
            return None
        return (False, "another unit")
    if gold.factor == pred.factor:
        return equal(pred.value, gold.value, options)
    left, right = _parse_tree(gold.value, True), _parse_tree(pred.value, True)
    if isinstance(left, str) or isinstance(right, str):
        return None
    scaled = [Node("mul", (number_node(m.factor), tree)) for m, tree in ((gold, left), (pred, right))]
    return _compare_nodes(scaled[0], scaled[1], options), "value"


def _same_plain(a: PlainNumber, b: PlainNumber, options: Options) -> bool:
    if a.value == b.value:
        return b.percent or not a.percent or not 0 < b.value < 1  # 0.25 is no 0.25%
    if a.percent != b.percent:
        if a.percent and a.value / 100 == b.value:
            return True
        if b.percent and b.value / 100 == a.value:
            return True
    return are_close(a.value, b.value, a.places, b.places, options.digits)


@lru_cache(maxsize=1 << 14)
def _parse_tree(text: str, comma_groups: bool) -> Node | str:
    """Return the tree, or why there is none: `big` or `unreadable`."""
    try:
        return parse(text, comma_groups=comma_groups)
    except TooBig:
        return "big"
    except Unreadable:
        return _tree_by_sides(text, comma_groups)
    except RecursionError:
        return "unreadable"


def _tree_by_sides(text: str, comma_groups: bool) -> Node | str:
    try:
        return by_sides(text, lambda side: parse(side, comma_groups=comma_groups)) or "unreadable"
    except TooBig:
        return "big"
    except RecursionError:
        return "unreadable"


def _known_sides(text: str) -> Node | None:
    try:
        return known_sides(text, parse)
    except (TooBig, RecursionError):
        return None


def _compare_trees(p: str, g: str, raw: str, options: Options) -> Verdict:
    gold, pred = _parse_tree(g, True), _parse_tree(p, True)
    if isinstance(gold, str):
        return _unread_gold(p, g, gold, options)
    if isinstance(pred, str):
        return _unread_pred(p, g, raw, pred, options)
    if gold != pred and _contradicts_itself(pred, options):
        return False, NO_SINGLE_ANSWER
    verdict = _compare_nodes(gold, pred, options)
    if not verdict and (_GROUPS.search(g) or _GROUPS.search(p)) and not _NO_ELEMENT.search(f"{g} {p}"):
        verdict = _other_commas(p, g, options) or verdict
    if verdict is None and (is_beyond_computing(gold) or is_beyond_computing(pred)):
        return None if is_beyond_computing(gold) else False, "too big to compare symbolically"
    if verdict is None and differ_in_one_integer(gold, pred):
        return False, "one number differs"
    if verdict is None:
        return _decide_by_algebra(p, g, options)
    if not verdict and (has_kind(gold, "text") or has_kind(pred, "text")) and same_words(g, p):
        return True, "words"
    if (
        verdict is False
        and not is_counted(pred)
        and is_prose(p)
        and not is_prose(g)
        and (formula := formula_in_prose(latinise(raw)))
    ):
        verdict, step = equal(formula, g, options)
        return verdict, f"{step}, in prose"
    if not verdict and same_letters(g, p):
        return True, "option"
    if not verdict and (letter := option_letter(g)) and letter == option_letter(p):
        return True, "option"
    how = "words" if "text" in (gold.kind, pred.kind) else "value"
    return verdict, how


def _decide_by_algebra(p: str, g: str, options: Options) -> Verdict:
    if not options.symbolic:
        return None, "left to computer algebra"
    return symbolic.decide_symbolically(p, g, options.digits)


def _contradicts_itself(pred: Node, options: Options) -> bool:
    try:
        return contradicts_itself(pred, lambda a, b: are_same(a, b, options))
    except (TooBig, RecursionError):
        return False


def _has_value(tree: Node | str) -> bool:
    """Return whether our own reader knows the value of everything in it."""
    return isinstance(tree, Node) and all(n.kind in _VALUES for n in walk_tree(tree))


def _compare_nodes(gold: Node, pred: Node, options: Options) -> bool | None:
    try:
        return are_same(gold, pred, options)
    except (TooBig, RecursionError):
        return None


def _other_commas(p: str, g: str, options: Options) -> bool | None:
    """Compare under the other reading of commas. `1,234` may also be a list: the reading under which both are the same
    counts, with as many elements."""
    for gold_joined, pred_joined in ((True, False), (False, True), (False, False)):
        gold, pred = _parse_tree(g, gold_joined), _parse_tree(p, pred_joined)
        if isinstance(gold, Node) and isinstance(pred, Node) and _compare_nodes(gold, pred, options):
            return True
    return None


def _unread_gold(p: str, g: str, why: str, options: Options) -> Verdict:
    if same_words(g, p):
        return True, "words"
    if why == "big":
        return False, "length"
    if letter := option_letter(g):
        return _same_option(letter, p, g, options)
    if is_prose(g):
        return False, "words"
    return _decide_by_algebra(p, g, options)


def _same_option(letter: str, p: str, g: str, options: Options) -> Verdict:
    """Compare with a right answer such as `(C) 12`: its letter, or what stands behind it."""
    if chosen := option_letter(p):
        return chosen == letter, "option"
    return equal(p, behind_letter(g), options)


def _unread_pred(p: str, g: str, raw: str, why: str, options: Options) -> Verdict:
    """Judge an answer with prose around it by its one formula, unless the prose denies or hedges it."""
    if why == "big":
        return False, "length"
    if same_words(g, p):
        return True, "words"
    if (letter := option_letter(g)) and letter == option_letter(p):
        return True, "option"
    if formula := formula_in_prose(latinise(raw)):
        verdict, step = equal(formula, g, options)
        return verdict, f"{step}, in prose"
    sides = _known_sides(p)
    if sides is not None and _contradicts_itself(sides, options):
        return False, NO_SINGLE_ANSWER
    if is_prose(p) or HEDGES & set(plain_words(_ARROW.sub(" ", p)).split()):
        return False, "prose"
    return _decide_by_algebra(p, g, options)
