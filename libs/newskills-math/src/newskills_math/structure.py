# SPDX-License-Identifier: Apache-2.0
"""Whether two trees are the same answer: by kind, element by element, down to values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from newskills_math import quantities
from newskills_math.chains import is_constant, read_chain, shows_enough
from newskills_math.numerals import same_numeral
from newskills_math.parameters import constants_alike, same_antiderivative, sum_terms, with_bound_name
from newskills_math.products import is_ranking, same_order
from newskills_math.relations import (
    LabelledValue,
    all_named,
    by_solution,
    has_equations,
    labelled_value,
    labels_of,
    same_relation,
    split_statements,
    value_of,
    values_of,
    with_every_name,
    without_label,
)
from newskills_math.syntax.labels import are_other_points
from newskills_math.syntax.nodes import Node, has_kind, number_node, replace_nodes, symbols
from newskills_math.values.equal import Options, same_value
from newskills_math.values.intervals import (
    NoRealSet,
    are_joined_and_apart,
    looks_like_one,
    real_set,
    repeats_member,
    same_set,
)
from newskills_math.words import option_letter, plain_words, same_words

MAX_ITEMS = 300
MAX_UNORDERED = 60
_SET_OPERATIONS = frozenset({"union", "inter", "minus", "builder"})
_HALF_OPEN = ("(]", "[)")
_COLLECTIONS = frozenset({"list", "set", "tuple"})


def are_same(gold: Node, pred: Node, options: Options) -> bool | None:
    """Return whether both are the same: True, False or None (cannot tell). Gold decides what must be said: labels and
    units may be missing in `pred`."""
    if gold == pred:
        return True
    gold, pred = _settle_unions(gold), _settle_unions(pred)
    if gold.kind == "text" or pred.kind == "text":
        return _same_text(gold, pred)
    if has_kind(gold, "pm") or has_kind(pred, "pm"):
        return are_same(_spread_answers(gold), _spread_answers(pred), options)
    if (verdict := _by_conjunction(gold, pred, options)) is not None:
        return verdict
    if (verdict := _by_names(gold, pred, options)) is not None:
        return verdict
    if (verdict := _without_labels(gold, pred, options)) is not None:
        return verdict
    if are_joined_and_apart(gold, pred):
        return False
    if looks_like_one(gold) or looks_like_one(pred):
        verdict = _same_set_of_reals(gold, pred)
        if verdict is not None:
            return verdict
        if gold.kind in _SET_OPERATIONS or pred.kind in _SET_OPERATIONS:
            return _same_operation(gold, pred, options)
    if gold.kind in _COLLECTIONS or pred.kind in _COLLECTIONS or "matrix" in (gold.kind, pred.kind):
        return _same_collection(gold, pred, options)
    if gold.kind == pred.kind == "ratio" and max(len(gold.args), len(pred.args)) > 2:
        return _same_ratio(gold, pred, options)
    if gold.kind == "rel" or pred.kind == "rel":
        return same_relation(gold, pred, lambda a, b: are_same(a, b, options))
    return same_expression(gold, pred, options)


def _by_conjunction(gold: Node, pred: Node, options: Options) -> bool | None:
    """Tell `p and q` from `p or q`; between values and `x = …` both words only list. `50% or 1/2` is one value."""
    if pred.kind != "list" or pred.name not in ("and", "or"):
        return None
    if gold.kind == "list":
        stated = (*gold.args, *pred.args)
        is_logic = any(a.kind == "sym" or (a.kind == "rel" and a.name != "=") for a in stated)
        return False if is_logic and {gold.name, pred.name} == {"and", "or"} else None
    first, *others = pred.args
    if pred.name == "or" and gold.kind not in _COLLECTIONS and all(are_same(first, a, options) for a in others):
        return are_same(gold, first, options)
    return None


def _settle_unions(node: Node) -> Node:
    """Make finite unions one set, one-element collections their element, words that mean maths their meaning."""
    if node.kind == "text":
        meaning = plain_words(node.name)
        if meaning in ("∅", "ℝ"):
            return Node("const", name="empty" if meaning == "∅" else meaning)
        if meaning == "infinite":
            return Node("const", name="inf")
        return number_node(int(meaning)) if meaning.isdecimal() and meaning.isascii() else node
    if node.kind == "union":
        parts = [_settle_unions(a) for a in node.args]
        if all(p.kind == "set" for p in parts):
            return Node("set", tuple(a for p in parts for a in p.args))
    if node.kind in ("set", "list") and len(node.args) == 1 and not _is_set_of_sets(node):
        return _settle_unions(node.args[0])
    if node.kind == "matrix" and len(node.args) == len(node.args[0].args) == 1:
        return _settle_unions(node.args[0].args[0])
    if node.kind == "list":
        node = with_every_name(node)
        return quantities.read_compound(node) or by_solution(node)
    if (
        node.kind == "tuple"
        and len(node.args) == 1
        and node.args[0].kind != "tuple"
        and node.name not in _HALF_OPEN
    ):
        return _settle_unions(node.args[0])
    if node.kind == "tuple" and node.args and node.name == "[]" and all(a.kind == "tuple" for a in node.args):
        widths = {len(a.args) for a in node.args}
        if len(widths) == 1 and all(a.name == "[]" for a in node.args):
            return Node("matrix", node.args)
    if node.kind == "matrix" and len(node.args) == 1 and len(node.args[0].args) == 1:
        return _settle_unions(node.args[0].args[0])
    if node.kind in ("mul", "neg", "div") and has_kind(node, "matrix"):
        return _expand_scalars(node)
    return node


def _is_set_of_sets(node: Node) -> bool:
    """Return whether it has sets as members: `\\{\\emptyset\\}`, `\\{\\{1\\}\\}`."""
    member = node.args[0]
    return node.kind == "set" and (member.kind == "set" or member == Node("const", name="empty"))


def _expand_scalars(node: Node) -> Node:
    """Expand a scalar times a matrix."""
    if node.kind == "neg":
        factor, matrix = number_node(-1), _settle_unions(node.args[0])
    elif node.kind == "div":
        factor, matrix = Node("div", (number_node(1), node.args[1])), _settle_unions(node.args[0])
    else:
        first, second = _settle_unions(node.args[0]), _settle_unions(node.args[1])
        factor, matrix = (first, second) if second.kind == "matrix" else (second, first)
    if matrix.kind != "matrix" or has_kind(factor, "matrix"):
        return node
    rows = tuple(
        Node("tuple", tuple(Node("mul", (factor, cell)) for cell in row.args), name="[]") for row in matrix.args
    )
    return Node("matrix", rows)


def _same_text(gold: Node, pred: Node) -> bool | None:
    if gold.kind == pred.kind == "text":
        return same_words(gold.name, pred.name)
    text, other = (gold, pred) if gold.kind == "text" else (pred, gold)
    if other.kind == "sym" or (other.kind == "tuple" and len(other.args) == 1):
        name = other.name or other.args[0].name
        return bool(option_letter(text.name)) and option_letter(text.name) == name.upper()
    return False


def _spread_answers(node: Node) -> Node:
    """Split what stands for several answers: every ± becomes two answers; a list is spread item by item."""
    if node.kind in ("list", "set"):
        items: list[Node] = []
        for arg in node.args:
            spread = _spread_answers(arg)
            items.extend(spread.args if spread is not arg and spread.kind == "list" else (spread,))
        return Node(node.kind, tuple(items), name=node.name)
    if not has_kind(node, "pm"):
        return node
    if node.kind == "rel" and len(node.args) == 2 and node.args[1].kind in ("list", "set"):
        return Node("rel", (node.args[0], _spread_answers(node.args[1])), name=node.name)
    plus, minus = _choose_sign(node, upper=True), _choose_sign(node, upper=False)
    return Node("list", (plus, minus), name=",")


def _choose_sign(node: Node, *, upper: bool) -> Node:
    def choose(n: Node) -> Node | None:
        if n.kind != "pm":
            return None
        left, right = (_choose_sign(a, upper=upper) for a in n.args)
        return Node("add", (left, right if (n.name == "±") == upper else Node("neg", (right,))))

    return replace_nodes(node, choose)


def _by_names(gold: Node, pred: Node, options: Options) -> bool | None:
    """Compare values by name, where one side gives a value to several names (`x = y = 4`) or letters (`m + n = 7`);
    None elsewhere.

    A reply must say all names of gold. It may say more, and where gold is a bare value none has to be the right one.
    """
    if "rel" not in (gold.kind, pred.kind):
        return None
    wanted, got = split_statements(gold), split_statements(pred)
    if wanted and pred.kind == "rel":
        sides = read_chain(pred)
        stated = [] if sides is None else [Node("rel", (side, sides.value), name="=") for side in sides.names]
        return _all_of([_any_of([are_same(member, other, options) for other in stated]) for member in wanted])
    if wanted:
        return are_same(Node("list", wanted, name=","), pred, options) if pred.kind in _COLLECTIONS else False
    if got and gold.kind in _COLLECTIONS:
        return are_same(gold, Node("list", got, name=","), options)
    if gold.kind == "rel":
        return _any_of([are_same(gold, member, options) for member in got]) if got else None
    value = value_of(pred)
    return None if value is None else _same_stated(LabelledValue("", gold), value, options)


def _without_labels(gold: Node, pred: Node, options: Options) -> bool | None:
    """Compare `x = 5` with 5, where one side says what it is a value of; both saying it must name the same thing."""
    g, p = labelled_value(gold), labelled_value(pred)
    if g is None and p is None:
        return _same_as_identity(gold, pred, options)
    if (g is None and gold.kind == "rel") or (p is None and pred.kind == "rel"):
        return None
    g, p = g or LabelledValue("", gold), p or LabelledValue("", pred)
    if g.label and p.label:
        if are_other_points(g.label, p.label):
            return False
        if g.label != p.label and not (_is_graph(gold, pred) or _is_graph(pred, gold)):
            return None
        if are_same(g.placed or g.value, p.placed or p.value, options):
            return True
    return _same_stated(g, p, options)


def _same_stated(gold: LabelledValue, pred: LabelledValue, options: Options) -> bool | None:
    """Compare by value; or by the decimal that one of them itself gives for its value, in a reply with three digits."""
    verdict = are_same(gold.value, pred.value, options)
    if verdict:
        return True
    if gold.shown is not None and are_same(gold.shown, pred.value, options):
        return True
    if pred.shown is not None and shows_enough(pred.shown) and are_same(gold.value, pred.shown, options):
        return True
    return verdict


def _is_graph(named: Node, graph: Node) -> bool:
    """Return whether one says what `f(x)` is, and the other `y`."""
    function, height = named.args[0], graph.args[0]
    return (
        function.kind == "app" and all(a.kind == "sym" for a in function.args) and height == Node("sym", name="y")
    )


def _same_as_identity(gold: Node, pred: Node, options: Options) -> bool | None:
    """Read an equation that always holds as its last side: `(x+1)(x-1) = x^2-1` beside `x^2-1`."""
    for equation, other in ((pred, gold), (gold, pred)):
        if equation.kind == "rel" and set(equation.name) == {"="} and other.kind not in ("rel", *_COLLECTIONS):
            *sides, last = equation.args
            if not any(map(is_constant, equation.args)) and all(same_value(a, last, options) for a in sides):
                return are_same(other, last, options) if equation is pred else are_same(last, other, options)
    return None


def _any_of(verdicts: Sequence[bool | None]) -> bool | None:
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _same_set_of_reals(gold: Node, pred: Node) -> bool | None:
    try:
        return repeats_member(gold) == repeats_member(pred) and same_set(real_set(gold), real_set(pred))
    except NoRealSet:
        return None


def _same_operation(gold: Node, pred: Node, options: Options) -> bool | None:
    """Compare sets that are not known numerically: the same operation on the same sets, or they cannot be told
    apart."""
    if gold.kind == pred.kind == "builder":
        pred = with_bound_name(gold, pred)
    if gold.kind == pred.kind:
        swapped = pred.args[::-1] if gold.kind != "minus" and gold.kind != "builder" else pred.args
        return _in_order(gold.args, pred.args, options) or _in_order(gold.args, swapped, options) or None
    other = pred if gold.kind in _SET_OPERATIONS else gold
    return None if other.kind in _COLLECTIONS | _SET_OPERATIONS | {"rel", "const", "sym"} else False


def _same_collection(gold: Node, pred: Node, options: Options) -> bool | None:
    if "matrix" in (gold.kind, pred.kind):
        return _same_matrix(gold, pred, options)
    if gold.kind == pred.kind == "tuple":
        return _same_brackets(gold.name, pred.name, len(gold.args)) and _in_order(gold.args, pred.args, options)
    if gold.kind not in _COLLECTIONS or pred.kind not in _COLLECTIONS:
        return False
    if "set" in (gold.kind, pred.kind) and "tuple" in (gold.kind, pred.kind):
        return False
    g, p = labels_of(gold), labels_of(pred)
    if len(set(g)) > 1 or len(set(p)) > 1:
        verdict = _same_by_label(gold, pred, g, p, options)
        if verdict is not None:
            return verdict
    if set(g) != set(p) and "" not in (*g, *p):
        return False
    gold, pred = without_label(gold, g), without_label(pred, p)
    if "tuple" in (gold.kind, pred.kind):
        other = pred if gold.kind == "tuple" else gold
        brackets = gold.name if gold.kind == "tuple" else pred.name
        if brackets in _HALF_OPEN or any(a.kind in _COLLECTIONS for a in other.args):
            return False
        if _in_order(gold.args, pred.args, options):
            return True
        return False if gold.kind == "tuple" else _in_any_order(gold.args, pred.args, options)
    if gold.kind == "set" or pred.kind == "set":
        return _in_any_order(_distinct_items(gold.args, options), _distinct_items(pred.args, options), options)
    if gold.name == ";" or is_ranking(gold.args):
        return _in_order(gold.args, pred.args, options)
    return _in_any_order(gold.args, pred.args, options)


def _same_brackets(gold: str, pred: str, size: int) -> bool:
    """Compare brackets: of a pair they say whether its ends belong to it; elsewhere only `(1,2,3]` is odd."""
    if gold == pred:
        return True
    if size != 2:
        return gold not in _HALF_OPEN and pred not in _HALF_OPEN
    return "<>" in (gold, pred)


def _same_matrix(gold: Node, pred: Node, options: Options) -> bool | None:
    if gold.kind == pred.kind == "matrix":
        if len(gold.args) != len(pred.args):
            return False
        verdicts = [_in_order(g.args, p.args, options) for g, p in zip(gold.args, pred.args, strict=True)]
        return _all_of(verdicts)
    matrix, other = (gold, pred) if gold.kind == "matrix" else (pred, gold)
    if len(matrix.args) == 1:
        flat = matrix.args[0].args
    elif all(len(row.args) == 1 for row in matrix.args):
        flat = tuple(row.args[0] for row in matrix.args)
    else:
        return None if other.kind not in _COLLECTIONS else False
    if other.kind == "tuple" or (other.kind == "list" and other.name == ","):
        left, right = (flat, other.args) if gold.kind == "matrix" else (other.args, flat)
        return _in_order(left, right, options)
    return None if has_kind(other, "sym") else False


def _same_ratio(gold: Node, pred: Node, options: Options) -> bool | None:
    """Compare ratios: `2:4:6` is `1:2:3`: every part in the same proportion to the first."""
    if len(gold.args) != len(pred.args):
        return False
    g, p = (tuple(Node("div", (part, node.args[0])) for part in node.args[1:]) for node in (gold, pred))
    return _in_order(g, p, options)


def _same_by_label(gold: Node, pred: Node, g: Sequence[str], p: Sequence[str], options: Options) -> bool | None:
    """Compare `x=1, y=2` against the same in any order, or against the bare values in order; None = not that case."""
    gold_named, pred_named = all_named(g), all_named(p)
    if not (gold_named or pred_named):
        return None
    if gold_named and pred_named:
        if set(g) != set(p):
            return False
        order = [p.index(label) for label in g]
        return _in_order(gold.args, [pred.args[i] for i in order], options)
    if any(g if pred_named else p) or has_equations(gold, g) or has_equations(pred, p):
        return None
    return _in_order(values_of(gold, g if gold_named else ()), values_of(pred, p if pred_named else ()), options)


def _in_order(gold: Sequence[Node], pred: Sequence[Node], options: Options) -> bool | None:
    if len(gold) != len(pred):
        return False
    if len(gold) > MAX_ITEMS:
        return None
    verdict: bool | None = True
    for g, p in zip(gold, pred, strict=True):
        is_same = are_same(g, p, options)
        if is_same is False:
            return False
        if is_same is None:
            verdict = None
    return verdict


def _all_of(verdicts: Sequence[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _in_any_order(gold: Sequence[Node], pred: Sequence[Node], options: Options) -> bool | None:
    """Pair the elements, those that are written alike first. Sameness is an equivalence: the first fit is enough."""
    if len(gold) != len(pred):
        return False
    open_gold, open_pred = _without_twins(gold, pred)
    if len(open_gold) > MAX_UNORDERED:
        return None
    unsure = False
    for g in open_gold:
        for i, p in enumerate(open_pred):
            verdict = _same_member(g, p, options)
            if verdict:
                del open_pred[i]
                break
            unsure = unsure or verdict is None
        else:
            return None if unsure else False
    return True


def _same_member(gold: Node, pred: Node, options: Options) -> bool | None:
    """Compare two members as `are_same` does, but `{1}` in a collection is not 1."""
    return False if (gold.kind == "set") != (pred.kind == "set") else are_same(gold, pred, options)


def _without_twins(gold: Sequence[Node], pred: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Return what is left of both after taking away pairs that are written alike."""
    counts = Counter(gold) & Counter(pred)
    left = []
    for items in (gold, pred):
        spare, rest = Counter(counts), []
        for item in items:
            if spare[item]:
                spare[item] -= 1
            else:
                rest.append(item)
        left.append(rest)
    return left[0], left[1]


def _distinct_items(items: Sequence[Node], options: Options) -> list[Node]:
    """Remove repetitions; those written differently are looked for in short collections only."""
    kept = list(dict.fromkeys(items))
    if len(kept) > MAX_UNORDERED:
        return kept
    distinct: list[Node] = []
    for item in kept:
        if not any(are_same(k, item, options) for k in distinct):
            distinct.append(item)
    return distinct


def same_expression(gold: Node, pred: Node, options: Options) -> bool | None:
    """Compare two values with their units, percent and degree signs."""
    if (in_order := same_order(gold, pred)) is not None:
        return in_order
    if gold.kind == "based" or pred.kind == "based":
        return same_numeral(gold, pred)
    if has_kind(gold, "app") != has_kind(pred, "app"):
        gold, pred = replace_nodes(gold, _read_counting), replace_nodes(pred, _read_counting)
    if (infinite := _same_infinity(gold, pred)) is not None:
        return infinite
    if (
        gold.kind == pred.kind == "add"
        and has_kind(gold, "unit")
        and has_kind(pred, "unit")
        and not quantities.is_sum(gold)
    ):
        return _in_any_order(sum_terms(gold), sum_terms(pred), options)
    g, p = quantities.read_pair(gold, pred)
    if not quantities.are_comparable(g, p):
        return False
    verdict: bool | None = False
    for a, b in quantities.value_readings(g, p):
        is_same = same_value(a, b, options)
        if is_same is False and symbols(a) != symbols(b):
            renamed = (same_value(a, tree, options) for tree in constants_alike(a, b))
            is_same = next(filter(None, renamed), False)
        if is_same:
            return True
        if is_same is None:
            verdict = None
    if verdict is False and same_antiderivative(gold, pred):
        return True
    return verdict


def _read_counting(node: Node) -> Node | None:
    """Read `C(n, k)` as a binomial, `P(n, k)` as a quotient of factorials, where k may be chosen out of n."""
    if node.kind != "app" or node.name not in ("C", "P") or len(node.args) != 2:
        return None
    total, taken = node.args
    if total.kind == taken.kind == "num" and not 0 <= taken.value <= total.value:
        return None
    if node.name == "C":
        return Node("fn", (total, taken), name="binom")
    rest = Node("add", (total, Node("neg", (taken,))))
    return Node("div", tuple(Node("fn", (size, number_node(1)), name="factorial") for size in (total, rest)))


def _same_infinity(gold: Node, pred: Node) -> bool | None:
    """Compare two infinities; None unless one side is ±∞, a set of numbers or dots, which have no value to compare."""
    signs = []
    for node in (gold, pred):
        sign = 1
        while node.kind == "neg":
            node, sign = node.args[0], -sign
        special = node.kind == "const" and node.name not in ("pi", "e", "i")
        signs.append((node.name, sign) if special else None)
    if signs == [None, None]:
        return None
    return signs[0] == signs[1]
