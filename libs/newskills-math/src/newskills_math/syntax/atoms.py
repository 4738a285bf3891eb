# SPDX-License-Identifier: Apache-2.0
"""The lowest level of the grammar: literals, symbols, functions, fractions, roots, brackets, environments."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from newskills_math.syntax import tables
from newskills_math.syntax.cursor import Cursor
from newskills_math.syntax.lexer import Token
from newskills_math.syntax.multiples import JOINED_MULTIPLIERS
from newskills_math.syntax.nodes import Node, TooBig, Unreadable, number_node, replace_nodes

MAX_EXPONENT = 4000
_OPENERS = {"(": ")", "[": "]", r"\{": r"\}", "{": "}"}
_ENVIRONMENTS = frozenset({"pmatrix", "bmatrix", "Bmatrix", "matrix", "smallmatrix", "array", "vmatrix"})
_CASES = frozenset({"cases", "aligned", "align", "align*", "gathered", "split"})
_DECORATIONS = frozenset(
    [
        r"\overline",
        r"\bar",
        r"\vec",
        r"\hat",
        r"\tilde",
        r"\dot",
        r"\ddot",
        r"\widehat",
        r"\widetilde",
        r"\overrightarrow",
        r"\overleftrightarrow",
        r"\mathring",
    ]
)
_SAME_MARK = {
    r"\overrightarrow": r"\vec",
    r"\widehat": r"\hat",
    r"\widetilde": r"\tilde",
    r"\bar": r"\overline",
}
_FACTORS = frozenset("abcdkmnt")
_EVENT_SIGNS = frozenset({"|", r"\cap", r"\cup", "=", "<", ">", "≤", "≥", "≠"})
"""What stands in the brackets of a probability or expectation, and in those of no function."""
_APPLIED = frozenset({"f", "g", "h", "F", "G", "H", "P", "Q", "R", "T", "u", "p", "q", "S", "N", "V", "A", "E"})


def number_literal(text: str) -> Node:
    """Return the node of a number literal, `6.02e23` included."""
    mantissa, _, exponent = text.lower().partition("e")
    power = int(exponent) if exponent else 0
    if abs(power) > MAX_EXPONENT:
        raise TooBig("exponent of a literal")
    whole, dot, digits = mantissa.partition(".")
    value = Fraction(int((whole + digits) or "0")) * Fraction(10) ** (power - len(digits))
    places = -1 if not dot and not exponent else max(len(digits) - power, 0)
    return Node("num", value=value, places=places)


class Atoms(Cursor):
    """What can stand between two operators."""

    def _script(self) -> Node:
        """Parse what follows `^`: a group or one signed atom."""
        with self._nested():
            if self._is("-", "+"):
                sign = self._take().text
                inner = self._script()
                if sign == "-":
                    return Node("neg", (inner,))
                return inner
            if self._accept("*"):
                return Node("sym", name="*")
            return self._atom()

    def _subscript(self, node: Node) -> Node:
        self._expect("_")
        if node.kind not in ("sym", "app", "const"):
            raise Unreadable("a subscript on a value")
        return Node("sym", name=f"{node.name}_{self._raw_group()}")

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
                if self._now.kind == "sym" and self._now.text in JOINED_MULTIPLIERS and not self._now.spaced:
                    amount = Node("mul", (amount, number_node(JOINED_MULTIPLIERS[self._take().text])))
            signed_amount = Node("neg", (amount,)) if sign else amount
            return Node("unit", (signed_amount,), name="dollar")
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
            return number_node(tables.NUMBER_WORDS[word])
        if (meaning := tables.SYNONYMS.get(word)) is not None and meaning in "∅ℝ":
            self._take()
            return Node("const", name={"∅": "empty", "ℝ": "ℝ"}[meaning])
        if 1 < len(word) < 4 and self._now.text in tables.PLAIN_UNITS:
            letters = [Node("sym", name=letter) for letter in self._take().text]
            return reduce(lambda a, b: Node("mul", (a, b)), letters)
        raise Unreadable(f"prose: '{word[:30]}'")

    def _repeating(self, text: str) -> Node:
        """Parse a literal, with its repetend where `\\overline{…}` or `\\dot` follows."""
        if "." not in text or not self._is(r"\overline", r"\dot", r"\bar"):
            return number_literal(text)
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
        return Node("num", value=number_literal(text).value + tail)

    def _symbol(self) -> Node:
        starts = self._at == 0 or self._tokens[self._at - 1].text in (",", ";")
        name = self._take().text
        if name == "e" or name == "i" or name in ("ℝ", "ℤ", "ℚ", "ℕ", "ℂ"):
            node = Node("const", name=name)
        else:
            node = Node("sym", name=name)
        while self._is("'", "_"):
            node = with_prime(node) if self._accept("'") else self._subscript(node)
        if name in ("P", "E") and self._is("(", "[") and (described := self._described(name)) is not None:
            return described
        if self._is("(") and not self._now.spaced and self._is_application(node.name, starts):
            return Node("app", self._arguments(), name=node.name)
        return node

    def _described(self, name: str) -> Node | None:
        """Read `P(A|B)`, `P(X = 4)`, `E[X|Y]` as one symbol, as it is written; `E[X]` as `E(X)`; None for anything
        else.
        """
        parts, depth, end = list[str](), 0, self._at
        while True:
            token = self._tokens[end]
            if token.kind == "end":
                return None
            depth += (token.text in ("(", "[", r"\{")) - (token.text in (")", "]", r"\}"))
            if depth == 0:
                break
            word = "|" if token.text == r"\mid" else token.text
            parts.append(word)
            end += 1
        inside = parts[1:]
        if _EVENT_SIGNS.isdisjoint(inside):
            if parts[0] == "(" or len(inside) != 1 or not inside[0].isalpha():
                return None
            self._at = end + 1
            return Node("app", (Node("sym", name=inside[0]),), name=name)
        self._at = end + 1
        joints = set(inside[1::2])
        if joints in ({r"\cap"}, {r"\cup"}) and all(part.isalpha() for part in inside[::2]):
            inside = [joints.pop().join(sorted(inside[::2]))]
        return Node("sym", name=f"{name}({''.join(inside)})")

    def _is_application(self, name: str, starts: bool) -> bool:
        """Return whether a name is that of a function: `f(x)`, `I(0)`, `P(n, k)` and what starts with `K(t) =` apply a
        function; `x(x+1)` and `n(n-1)` multiply."""
        if name == "Gamma":
            return True
        first, second = self._ahead(), self._ahead(2)
        if second.text == ")":
            head = name.partition("_")[0].rstrip("'")
            if first.kind == "num":
                return head in _APPLIED or head not in _FACTORS
            return first.kind == "sym" and (head in _APPLIED or (starts and self._ahead(3).text == "="))
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
        if inside.kind == "list":
            return inside.args
        return (inside,)

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
            if exponent is not None and exponent == Node("neg", (number_node(1),)) and name in tables.FUNCTIONS:
                name, exponent = tables.FUNCTIONS.get(f"a{name}", name), None
            function_name = "logb" if base and name in ("log", "ln") else name
            node = Node("fn", (*argument, *base), name=function_name)
            if exponent is not None:
                return Node("pow", (node, exponent))
            return node

    def _argument(self) -> tuple[Node, ...]:
        """Read an argument in brackets, else the product of plain factors up to a sign, a slash or the next
        function."""
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
                if name == r"\frac":
                    return Node("div", (top, bottom))
                return Node("fn", (top, bottom), name="binom")
            if name == r"\sqrt":
                return self._root()
            if name in (r"\sum", r"\prod"):
                return self._big(name[1:])
            if name in (r"\lfloor", r"\lceil", r"\langle"):
                return self._special_brackets(name)
            if name == r"\begin":
                return self._environment()
            if name in _DECORATIONS:
                return Node("sym", name=f"{_SAME_MARK.get(name, name)[1:]} {self._raw_group()}")
        constant = {r"\pi": "pi", r"\infty": "inf", r"\emptyset": "empty", r"\ldots": "dots"}.get(name)
        if constant is None:
            raise Unreadable(f"{name[:30]} is not read here")
        return Node("const", name=constant)

    def _digit_or_group(self) -> Node:
        """Parse an argument of `\\frac`: a group, or one token; `\\frac12` takes one digit only."""
        if self._now.kind == "num":
            token = self._now
            if len(token.text) > 1 and token.text.isdigit():
                self._tokens[self._at] = Token("num", token.text[1:])
                return number_node(int(token.text[0]))
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
        if (
            self._now.kind == "num"
            and not self._now.spaced
            and len(self._now.text) > 1
            and self._previous_is_command()
        ):
            radicand = number_literal(self._take().text)
        else:
            radicand = self._atom()
        root_arguments = (radicand, degree) if degree is not None else (radicand,)
        return Node("fn", root_arguments, name="root")

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
        if low.args[0].kind == "const":  # an index called i or e is no constant
            body = replace_nodes(
                body, lambda n: variable if n.kind == "const" and n.name == variable.name else None
            )
        return Node("big", (variable, low.args[1], high, body), name=name)

    def _special_brackets(self, name: str) -> Node:
        inside = self._list()
        self._expect({r"\lfloor": r"\rfloor", r"\lceil": r"\rceil", r"\langle": r"\rangle"}[name])
        if name == r"\langle":
            members = inside.args if inside.kind == "list" else (inside,)
            return Node("tuple", members, name="<>")
        rounding = "floor" if name == r"\lfloor" else "ceil"
        return Node("fn", (inside,), name=rounding)

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
            cases = tuple(Node("tuple", row, name="<>") if len(row) > 1 else row[0] for row in rows)
            return Node("list", cases, name=",")
        matrix = Node("matrix", tuple(Node("tuple", row, name="[]") for row in rows))
        if name == "vmatrix":
            return Node("fn", (matrix,), name="det")
        return matrix

    def _row(self, is_case: bool) -> tuple[Node, ...]:
        while self._is("|"):
            self._take()
        cells = [self._statement()]
        while self._accept("&"):
            if is_case and self._now.kind == "text" and self._now.text.lower() in ("if", "for", "when"):
                self._take()
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
                if inside.kind == "list":
                    return Node("set", inside.args)
                return inside
            if closing not in (")", "]"):
                raise Unreadable("a bracket without end")
            if opening + closing in ("(]", "[)") and inside.kind != "list":
                return Node("tuple", (inside,), name=opening + closing)
            if inside.kind == "list" and inside.name in (",", ";"):
                return Node("tuple", inside.args, name=opening + closing)
            if inside.kind in ("matrix", "tuple") or inside.kind == "list":
                if opening == "[":
                    return Node("tuple", (inside,), name=opening + closing)
                return inside
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
        members = inside.args if inside.kind == "list" else (inside,)
        return Node("set", members)

    def _absolute(self) -> Node:
        with self._nested():
            self._bars = 1
            inside = self._sum()
            self._expect("|")
        name = "det" if inside.kind == "matrix" else "abs"
        return Node("fn", (inside,), name=name)


def with_prime(node: Node) -> Node:
    if node.kind not in ("sym", "app", "const"):
        raise Unreadable("a prime on a value")
    kind = node.kind if node.kind != "const" else "sym"
    return Node(kind, node.args, name=f"{node.name}'")
