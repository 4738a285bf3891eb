# SPDX-License-Identifier: Apache-2.0
"""Tokens → tree, by recursive descent. Linear, bounded in depth, executes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import reduce

from newskills.graders.math import tables
from newskills.graders.math.lexer import Token, tokenise
from newskills.graders.math.nodes import Node, TooBig, Unreadable, number

MAX_DEPTH = 40
MAX_EXPONENT = 4000
_CLOSERS = frozenset({")", "]", r"\}", "}", r"\rangle", r"\rfloor", r"\rceil", r"\|"})
_OPENERS = {"(": ")", "[": "]", r"\{": r"\}", "{": "}"}
_ENVIRONMENTS = frozenset({"pmatrix", "bmatrix", "Bmatrix", "matrix", "smallmatrix", "array", "vmatrix"})
_CASES = frozenset({"cases", "aligned", "align", "align*", "gathered", "split"})
_DECORATIONS = frozenset(
    r"\overline \bar \vec \hat \tilde \dot \ddot \widehat \widetilde \overrightarrow \overleftrightarrow \mathring".split()
)
_APPLIED = frozenset({"f", "g", "h", "F", "G", "H", "P", "Q", "R", "T", "u", "p", "q", "S", "N", "V", "A"})


def parse(text: str, *, comma_groups: bool = True) -> Node:
    """The tree of an answer. Raises Unreadable for what is no answer, TooBig for what is too long or too deep."""
    return _Parser(tokenise(text, comma_groups=comma_groups)).answer()


def literal(text: str) -> Node:
    """A number literal, `6.02e23` included."""
    mantissa, _, exponent = text.lower().partition("e")
    power = int(exponent) if exponent else 0
    if abs(power) > MAX_EXPONENT:
        raise TooBig("exponent of a literal")
    whole, dot, digits = mantissa.partition(".")
    value = Fraction(int((whole + digits) or "0")) * Fraction(10) ** (power - len(digits))
    places = -1 if not dot and not exponent else max(len(digits) - power, 0)
    return Node("num", value=value, places=places)


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._bars = 0
        self._in_set = 0

    # --- tokens

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _ahead(self, n: int = 1) -> Token:
        return self._tokens[min(self._at + n, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._now.kind in ("op", "cmd") and self._now.text in texts

    def _accept(self, *texts: str) -> bool:
        if self._is(*texts):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise Unreadable(f"'{text}' is missing before '{self._now.text}'")

    @contextmanager
    def _nested(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooBig("deeper nesting than is read")
        bars, self._bars = self._bars, 0
        in_set, self._in_set = self._in_set, 0
        yield
        self._depth -= 1
        self._bars, self._in_set = bars, in_set

    # --- answer, lists, relations

    def answer(self) -> Node:
        if all(t.kind in ("text", "end") or t.text in ",.;-!?'" for t in self._tokens):
            return Node("text", name=" ".join(t.text for t in self._tokens if t.kind != "end"))
        self._skip_lead_in()
        node = self._list()
        while self._accept(".", ",", ";", "!", r"\\"):
            pass
        if self._now.kind != "end":
            raise Unreadable(f"nothing is known to follow before '{self._now.text[:30]}'")
        return node

    def _skip_lead_in(self) -> None:
        words = []
        end = self._at
        while self._tokens[end].kind == "text":
            words.append(self._tokens[end].text.lower().strip(":., "))
            end += 1
        if not words or self._tokens[end].kind == "end":
            return
        if " ".join(words) not in tables.LEAD_INS and self._tokens[end] != ("rel", "=", self._tokens[end].spaced):
            return
        self._at = end + (self._tokens[end].kind == "rel")
        if self._is(":"):
            self._at += 1

    def _list(self, *, stop: str = "") -> Node:
        """Statements separated by `,` `;` `and` `or` or line breaks; one alone stays itself."""
        items = [self._statement()]
        separators = set()
        while (separator := self._separator()) and not (stop and self._is(stop)):
            if self._now.kind == "end":
                break
            separators.add(separator)
            items.append(self._statement())
        if len(items) == 1 and not separators:
            return items[0]
        name = next((s for s in (";", "or", "and") if s in separators), ",")
        return Node("list", tuple(items), name=name)

    def _separator(self) -> str:
        found = ""
        while True:
            token = self._now
            if token.kind == "op" and token.text in (",", ";", r"\\"):
                found = found or ("," if token.text == r"\\" else token.text)
            elif (token.kind == "op" and token.text == "&") or (
                token.kind == "text" and token.text.lower().strip(" ,;") in tables.SEPARATORS
            ):
                found = "or" if token.text.lower().strip(" ,;") in ("or", "oder", "ou", "或") else "and"
            else:
                return found
            self._at += 1

    def _statement(self) -> Node:
        first = self._union()
        args, relations = [first], ""
        while self._now.kind == "rel" or self._element_of():
            relations += "∈" if self._now.kind == "text" else self._now.text
            self._take()
            args.append(self._union())
        if relations:
            return Node("rel", tuple(args), name=relations)
        if self._is(":") and not self._in_set:
            while self._accept(":"):
                args.append(self._union())
            return Node("ratio", tuple(args))
        return first

    def _element_of(self) -> bool:
        """The plain word `in` before a set."""
        return self._now.kind == "text" and self._now.text == "in" and self._ahead().text in ("(", "[", r"\{", "ℝ")

    def _union(self) -> Node:
        node = self._sum()
        while self._is(r"\cup", r"\cap", r"\setminus"):
            kind = {r"\cup": "union", r"\cap": "inter", r"\setminus": "minus"}[self._take().text]
            node = Node(kind, (node, self._sum()))
        return node

    # --- sums and products

    def _sum(self) -> Node:
        with_sign = self._take().text if self._is("+", "-", r"\pm", r"\mp") else ""
        node = self._term()
        if with_sign == "-":
            node = Node("neg", (node,))
        elif with_sign in (r"\pm", r"\mp"):
            node = Node("pm", (number(0), node), name="±" if with_sign == r"\pm" else "∓")
        while True:
            if self._is("+", "-"):
                sign = self._take().text
                term = self._signed_term()
                node = Node("add", (node, term if sign == "+" else Node("neg", (term,))))
            elif self._is(r"\pm", r"\mp"):
                name = "±" if self._take().text == r"\pm" else "∓"
                node = Node("pm", (node, self._signed_term()), name=name)
            elif node.kind in ("unit", "add") and _ends_in_unit(node) and self._now.kind in ("num", "cur"):
                node = Node("add", (node, self._term()))
            else:
                return node

    def _signed_term(self) -> Node:
        if self._accept("-"):
            return Node("neg", (self._signed_term(),))
        self._accept("+")
        return self._term()

    def _term(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooBig("deeper nesting than is read")
        node = self._power()
        while True:
            if self._accept("*", r"\cdot", r"\times"):
                node = Node("mul", (node, self._signed_power()))
            elif self._accept("/"):
                node = self._over(node)
            elif self._now.kind == "text":
                if self._now.text.lower().strip(" ,;") in tables.SEPARATORS or self._element_of():
                    break
                node = self._annotated(node)
            elif self._now.kind == "cur":
                self._take()
                node = Node("unit", (node,), name="dollar")
            elif self._starts_factor():
                if node.kind in ("unit",):
                    break
                node = self._implicit(node)
            else:
                break
        self._depth -= 1
        return node

    def _over(self, node: Node) -> Node:
        if self._now.kind == "text" and node.kind == "unit":
            return Node("unit", node.args, name=f"{node.name}/{self._take().text}")
        return Node("div", (node, self._signed_power()))

    def _signed_power(self) -> Node:
        if self._accept("-"):
            return Node("neg", (self._signed_power(),))
        self._accept("+")
        return self._power()

    def _implicit(self, node: Node) -> Node:
        """A factor without a sign between; an integer before a plain fraction is a mixed number."""
        if node.kind == "num" and self._now.kind == "num":
            return self._mixed_slash(node)
        mixed = node.kind == "num" and node.places < 0 and self._is(r"\frac")
        factor = self._power()
        if mixed and factor.kind == "div" and all(a.kind == "num" and a.places < 0 for a in factor.args):
            return Node("add", (node, factor))
        return Node("mul", (node, factor))

    def _mixed_slash(self, whole: Node) -> Node:
        """`1 3/4`; any other two numbers side by side mean nothing."""
        if whole.places < 0 and self._ahead().text == "/" and self._ahead(2).kind == "num":
            top = self._power()
            self._take()
            bottom = self._power()
            if top.kind == bottom.kind == "num" and top.places < 0 and bottom.places < 0 and top.value < bottom.value:
                return Node("add", (whole, Node("div", (top, bottom))))
        raise Unreadable("two numbers side by side")

    def _starts_factor(self) -> bool:
        kind, text, _ = self._now
        if kind in ("num", "sym", "fn", "based"):
            return True
        if kind == "cmd":
            return text not in (
                r"\cup", r"\cap", r"\setminus", r"\mid", r"\pm", r"\mp", r"\rangle", r"\rfloor", r"\rceil", r"\end", r"\to"
            )  # fmt: skip
        if kind == "op":
            return text in ("(", "[", "{", r"\{", "ℝ") or (text == "|" and not self._bars and not self._in_set)
        return False

    def _annotated(self, node: Node) -> Node:
        """A word after a value: percent, degree, a multiplier, or a unit (with its power and denominator)."""
        word = self._take().text.lower().strip(" .")
        if word in ("percent", "per cent", "pct"):
            return Node("percent", (node,))
        if word in ("degree", "degrees", "deg"):
            return Node("deg", (node,))
        if word in tables.MULTIPLIERS:
            return Node("mul", (node, number(tables.MULTIPLIERS[word])))
        while self._now.kind == "text" and self._now.text.lower().strip(" ,;") not in tables.SEPARATORS:
            word += " " + self._take().text.lower()
        if self._accept("^"):
            exponent = self._script()
            word += f"^{exponent.value}" if exponent.kind == "num" else ""
        if self._is("(") and self._ahead().kind == "text" and self._ahead(2).text == ")":
            self._at += 3
        if node.kind == "unit":
            return Node("unit", node.args, name=f"{node.name} {word}")
        return Node("unit", (node,), name=word)

    # --- powers and postfixes

    def _power(self) -> Node:
        node = self._postfix(self._atom())
        if self._is("^"):
            node = self._raised(node)
        return node

    def _raised(self, base: Node) -> Node:
        self._expect("^")
        if self._is(r"\circ", "°"):
            self._take()
            return self._after_degree(base)
        if self._is("{") and self._ahead().text in (r"\circ", "°") and self._ahead(2).text == "}":
            self._at += 3
            return self._after_degree(base)
        if self._now.kind == "text":
            self._take()
            return base
        if self._is(r"\prime"):
            self._take()
            return _primed(base)
        if self._is("{") and self._ahead().text in (r"\prime", "'"):
            return self._primes(base)
        if self._is("{") and self._ahead().kind == "text" and self._ahead(2).text == "}":
            self._at += 3
            return base
        exponent = self._script()
        node = Node("pow", (base, exponent))
        node = self._postfix(node)
        if self._is("^"):
            raised = self._raised(exponent)
            return Node("pow", (base, raised.args[1] if raised.kind == "deg" else raised))
        return node

    def _primes(self, base: Node) -> Node:
        self._expect("{")
        while self._accept(r"\prime", "'"):
            base = _primed(base)
        self._expect("}")
        return base

    def _after_degree(self, base: Node) -> Node:
        if self._now.kind == "sym" and self._now.text in "CF" and not self._now.spaced:
            return Node("unit", (base,), name={"C": "celsius", "F": "fahrenheit"}[self._take().text])
        return self._postfix(Node("deg", (base,)))

    def _script(self) -> Node:
        """What follows `^`: a group or one signed atom."""
        with self._nested():
            if self._is("-", "+"):
                sign = self._take().text
                inner = self._script()
                return Node("neg", (inner,)) if sign == "-" else inner
            if self._accept("*"):
                return Node("sym", name="*")
            return self._atom()

    def _postfix(self, node: Node) -> Node:
        while True:
            if self._is("!"):
                count = 0
                while self._accept("!"):
                    count += 1
                node = Node("fn", (node, number(count)), name="factorial")
            elif self._is("%"):
                self._take()
                node = Node("percent", (node,))
            elif self._is("°"):
                self._take()
                node = self._after_degree(node)
            elif self._is("'"):
                self._take()
                node = _primed(node)
            elif self._is("_"):
                node = self._subscript(node)
            else:
                return node

    def _subscript(self, node: Node) -> Node:
        self._expect("_")
        if node.kind not in ("sym", "app", "const"):
            raise Unreadable("a subscript on a value")
        return Node("sym", name=f"{node.name}_{self._raw_group()}")

    def _raw_group(self) -> str:
        """The text of a group or one token, without blanks (for names)."""
        if not self._is("{"):
            token = self._take()
            return token.text
        depth, parts = 0, []
        while True:
            token = self._take()
            if token.kind == "end":
                raise Unreadable("a group without end")
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0:
                return "".join(parts[1:])
            parts.append(token.text)

    # --- atoms

    def _atom(self) -> Node:
        token = self._now
        if token.kind == "num":
            self._take()
            return self._repeating(token.text)
        if token.kind == "sym":
            return self._symbol()
        if token.kind == "fn":
            return self._function()
        if token.kind == "based":
            digits, _, base = self._take().text.rpartition("_")
            return Node("based", name=digits, places=int(base))
        if token.kind == "cur":
            self._take()
            with self._nested():
                sign = self._accept("-")
                amount = self._power()
            return Node("unit", (Node("neg", (amount,)) if sign else amount,), name="dollar")
        if token.kind == "cmd":
            return self._named()
        if token.kind == "text":
            return self._word_atom()
        if token.kind == "op":
            return self._bracketed()
        raise Unreadable(f"a value is missing at '{token.text[:20]}'")

    def _word_atom(self) -> Node:
        word = self._now.text.lower().strip(" .")
        if word in tables.NUMBER_WORDS:
            self._take()
            return number(tables.NUMBER_WORDS[word])
        if (meaning := tables.SYNONYMS.get(word)) is not None and meaning in "∅ℝ":
            self._take()
            return Node("const", name={"∅": "empty", "ℝ": "ℝ"}[meaning])
        if 1 < len(word) < 4 and self._now.text in tables.PLAIN_UNITS:
            letters = [Node("sym", name=letter) for letter in self._take().text]
            return reduce(lambda a, b: Node("mul", (a, b)), letters)
        raise Unreadable(f"prose: '{word[:30]}'")

    def _repeating(self, text: str) -> Node:
        """A literal, with its repetend where `\\overline{…}` or `\\dot` follows."""
        if "." not in text or not self._is(r"\overline", r"\dot", r"\bar"):
            return literal(text)
        self._take()
        digits = self._raw_group()
        while self._is(r"\dot"):
            self._take()
            digits += self._raw_group()
        if not digits.isdigit() or len(digits) > 200:
            raise Unreadable("no repeating decimal")
        self._accept(r"\ldots")
        places = len(text.partition(".")[2])
        tail = Fraction(int(digits), 10 ** len(digits) - 1) / 10**places
        return Node("num", value=literal(text).value + tail)

    def _symbol(self) -> Node:
        name = self._take().text
        if name == "e" or name == "i":
            node = Node("const", name=name)
        elif name in ("ℝ", "ℤ", "ℚ", "ℕ", "ℂ"):
            node = Node("const", name=name)
        else:
            node = Node("sym", name=name)
        while self._is("'", "_"):
            node = _primed(node) if self._accept("'") else self._subscript(node)
        if self._is("(") and not self._now.spaced and self._is_application(node.name):
            return Node("app", self._arguments(), name=node.name)
        return node

    def _is_application(self, name: str) -> bool:
        """`f(x)`, `I(0)`, `P(n, k)` apply a function; `x(x+1)` and `n(n-1)` multiply."""
        first, second = self._ahead(), self._ahead(2)
        if second.text == ")":
            return first.kind == "num" or (first.kind == "sym" and name.partition("_")[0].rstrip("'") in _APPLIED)
        depth = 0
        for index in range(self._at, len(self._tokens)):
            token = self._tokens[index]
            if token.kind == "op" and token.text in "([":
                depth += 1
            elif token.kind == "op" and token.text in ")]":
                depth -= 1
                if depth == 0:
                    return False
            elif token.kind == "op" and token.text == "," and depth == 1:
                return True
        return False

    def _arguments(self) -> tuple[Node, ...]:
        with self._nested():
            self._expect("(")
            inside = self._list()
            self._expect(")")
        return inside.args if inside.kind == "list" else (inside,)

    def _function(self) -> Node:
        with self._nested():
            name = self._take().text
            base: tuple[Node, ...] = ()
            exponent: Node | None = None
            while self._is("_", "^"):
                if self._accept("_"):
                    base = (self._script(),)
                else:
                    self._take()
                    exponent = self._script()
            argument = self._argument()
            if exponent is not None and exponent == Node("neg", (number(1),)) and name in tables.FUNCTIONS:
                name, exponent = tables.FUNCTIONS.get(f"a{name}", name), None
            node = Node("fn", (*argument, *base), name="logb" if base and name in ("log", "ln") else name)
            return Node("pow", (node, exponent)) if exponent is not None else node

    def _argument(self) -> tuple[Node, ...]:
        """In brackets, else the product of plain factors up to a sign, a slash or the next function."""
        if self._is("("):
            inside = self._bracketed()
            if inside.kind == "tuple":
                return inside.args
            return (inside,)
        if self._is("{"):
            return (self._atom(),)
        node = self._signed_power()
        while self._starts_factor() and self._now.kind in ("num", "sym", "cmd") and not self._is(r"\{"):
            node = self._implicit(node)
        return (node,)

    def _named(self) -> Node:
        name = self._take().text
        with self._nested():
            if name in (r"\frac", r"\binom"):
                top, bottom = self._digit_or_group(), self._digit_or_group()
                return Node("div", (top, bottom)) if name == r"\frac" else Node("fn", (top, bottom), name="binom")
            if name == r"\sqrt":
                return self._root()
            if name in (r"\sum", r"\prod"):
                return self._big(name[1:])
            if name in (r"\lfloor", r"\lceil", r"\langle"):
                return self._special_brackets(name)
            if name == r"\begin":
                return self._environment()
            if name in _DECORATIONS:
                return Node("sym", name=f"{name[1:]} {self._raw_group()}")
        constant = {r"\pi": "pi", r"\infty": "inf", r"\emptyset": "empty", r"\ldots": "dots"}.get(name)
        if constant is None:
            raise Unreadable(f"{name[:30]} is not read here")
        return Node("const", name=constant)

    def _digit_or_group(self) -> Node:
        """An argument of `\\frac`: a group, or one token; `\\frac12` takes one digit only."""
        if self._now.kind == "num":
            token = self._now
            if len(token.text) > 1 and token.text.isdigit():
                self._tokens[self._at] = Token("num", token.text[1:])
                return number(int(token.text[0]))
        if self._is("-"):
            self._take()
            return Node("neg", (self._digit_or_group(),))
        return self._atom()

    def _root(self) -> Node:
        degree: Node | None = None
        if self._is("["):
            self._take()
            degree = self._sum()
            self._expect("]")
        if self._now.kind == "num" and not self._now.spaced and len(self._now.text) > 1 and self._previous_is_command():
            radicand = literal(self._take().text)
        else:
            radicand = self._atom()
        return Node("fn", (radicand, degree) if degree is not None else (radicand,), name="root")

    def _previous_is_command(self) -> bool:
        return self._tokens[self._at - 1].kind == "cmd"

    def _big(self, name: str) -> Node:
        low: Node | None = None
        high: Node | None = None
        while self._is("_", "^"):
            if self._accept("_"):
                self._expect("{")
                low = self._statement()
                self._expect("}")
            else:
                self._take()
                high = self._script()
        if low is None or high is None or low.kind != "rel" or low.name != "=":
            raise Unreadable("a sum without plain limits")
        variable = Node("sym", name=low.args[0].name)
        if low.args[0].kind not in ("sym", "const") or not variable.name:
            raise Unreadable("a sum without a variable")
        body = self._term()
        return Node("big", (variable, low.args[1], high, body), name=name)

    def _special_brackets(self, name: str) -> Node:
        inside = self._list()
        self._expect({r"\lfloor": r"\rfloor", r"\lceil": r"\rceil", r"\langle": r"\rangle"}[name])
        if name == r"\langle":
            return Node("tuple", inside.args if inside.kind == "list" else (inside,), name="<>")
        return Node("fn", (inside,), name="floor" if name == r"\lfloor" else "ceil")

    def _environment(self) -> Node:
        name = self._raw_group()
        if name not in _ENVIRONMENTS | _CASES:
            raise Unreadable(f"environment {name[:20]}")
        if name == "array" and self._is("{"):
            self._raw_group()
        rows: list[tuple[Node, ...]] = []
        while not self._is(r"\end"):
            rows.append(self._row(name in _CASES))
            if not self._accept(r"\\"):
                break
        self._expect(r"\end")
        self._raw_group()
        if name in _CASES:
            return Node("list", tuple(row[0] for row in rows), name=",")
        matrix = Node("matrix", tuple(Node("tuple", row, name="[]") for row in rows))
        return Node("fn", (matrix,), name="det") if name == "vmatrix" else matrix

    def _row(self, is_case: bool) -> tuple[Node, ...]:
        while self._is("|"):
            self._take()
        cells = [self._statement()]
        while self._accept("&"):
            if is_case:
                raise Unreadable("cases with conditions")
            cells.append(self._statement())
        return tuple(cells)

    def _bracketed(self) -> Node:
        opening = self._take().text
        if opening == "|":
            return self._absolute()
        if opening not in _OPENERS:
            raise Unreadable(f"a value is missing at '{opening[:20]}'")
        with self._nested():
            if opening == r"\{":
                return self._set()
            if opening in "([" and self._is(")", "]"):
                return Node("tuple", (), name=opening + self._take().text)
            inside = self._list()
            closing = self._take().text
            if opening == "{":
                if closing != "}":
                    raise Unreadable("a group without end")
                return Node("set", inside.args) if inside.kind == "list" else inside
            if closing not in (")", "]"):
                raise Unreadable("a bracket without end")
            if inside.kind == "list" and inside.name in (",", ";"):
                return Node("tuple", inside.args, name=opening + closing)
            if inside.kind in ("matrix", "tuple") or inside.kind == "list":
                return Node("tuple", (inside,), name=opening + closing) if opening == "[" else inside
            return inside

    def _set(self) -> Node:
        if self._accept(r"\}"):
            return Node("const", name="empty")
        self._in_set = 1
        inside = self._list(stop=r"\}")
        if self._accept("|", r"\mid", ":"):
            condition = self._list(stop=r"\}")
            self._expect(r"\}")
            return Node("builder", (inside, condition))
        self._expect(r"\}")
        return Node("set", inside.args if inside.kind == "list" else (inside,))

    def _absolute(self) -> Node:
        with self._nested():
            self._bars = 1
            inside = self._sum()
            self._expect("|")
        return Node("fn", (inside,), name="abs")


def _primed(node: Node) -> Node:
    if node.kind not in ("sym", "app", "const"):
        raise Unreadable("a prime on a value")
    return Node(node.kind if node.kind != "const" else "sym", node.args, name=f"{node.name}'")


def _ends_in_unit(node: Node) -> bool:
    return node.kind == "unit" or (node.kind == "add" and node.args[1].kind == "unit")
