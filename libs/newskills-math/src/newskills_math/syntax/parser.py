# SPDX-License-Identifier: Apache-2.0
"""Tokens → tree, by recursive descent. Linear, bounded in depth, executes nothing."""

from __future__ import annotations

import re

from newskills_math.numerals import spelled_number
from newskills_math.phrases import is_approval, is_denial, is_hedge, is_lead_in
from newskills_math.syntax import tables
from newskills_math.syntax.atoms import Atoms, with_prime
from newskills_math.syntax.cursor import MAX_DEPTH
from newskills_math.syntax.lexer import tokenise
from newskills_math.syntax.multiples import JOINED_MULTIPLIERS, MULTIPLIERS
from newskills_math.syntax.nodes import Node, TooBig, Unreadable, number_node


def parse(text: str, *, comma_groups: bool = True) -> Node:
    """Return the tree of an answer. Raises Unreadable for what is no answer, TooBig for what is too long or too
    deep."""
    return _Parser(tokenise(text, comma_groups=comma_groups)).answer()


_NO_FACTOR = frozenset(
    {r"\cup", r"\cap", r"\setminus", r"\mid", r"\pm", r"\mp", r"\to", r"\end"}
    | {r"\rangle", r"\rfloor", r"\rceil"}
)
"""Commands that do not begin another factor of a product."""

_WORD_END = re.compile(r"[,;:()\[\]!?]")


class _Parser(Atoms):
    """Answers, lists, relations, sums, products, powers."""

    # --- answer, lists, relations

    def answer(self) -> Node:
        if all(t.kind in ("text", "end") or t.text in ",.;-!?'" for t in self._tokens):
            return self._words()
        self._skip_lead_in()
        if self._now.kind == "rel" and self._now.text in "≈~=":
            self._take()
        node = self._list()
        while self._accept(".", ",", ";", "!", r"\\"):
            pass
        if self._now.kind != "end":
            raise Unreadable(f"nothing is known to follow before '{self._now.text[:30]}'")
        return node

    def _words(self) -> Node:
        """Read words only: one text, or several where commas or `and` stand between."""
        items: list[list[str]] = [[]]
        for token in self._tokens:
            if token.text == "," or token.text.lower() in tables.SEPARATORS:
                items.append([])
            elif token.kind != "end":
                items[-1].append(token.text)
        texts = tuple(Node("text", name=" ".join(item)) for item in items if item)
        if len(texts) == 1:
            return texts[0]
        if texts:
            return Node("list", texts, name=",")
        return Node("text")

    def _skip_lead_in(self) -> None:
        words = []
        end = self._at
        while self._tokens[end].kind == "text":
            words.append(self._tokens[end].text.lower().strip(":., "))
            end += 1
        if not words or self._tokens[end].kind == "end":
            return
        is_label = self._tokens[end] == ("rel", "=", self._tokens[end].spaced)
        if not (is_label or " ".join(words) in tables.LEAD_INS or is_lead_in(" ".join(words))):
            return
        self._at = end + (self._tokens[end].kind == "rel")
        if self._is(":"):
            self._at += 1

    def _list(self, *, stop: str = "") -> Node:
        """Read statements separated by `,` `;` `and` `or` or line breaks; one alone stays itself."""
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
        separator = ""
        while True:
            token = self._now
            if token.kind == "op" and token.text in (",", ";", r"\\"):
                separator = separator or ("," if token.text == r"\\" else token.text)
            elif (token.kind == "op" and token.text == "&") or (
                token.kind == "text" and token.text.lower().strip(" ,;") in tables.SEPARATORS
            ):
                if token.text.lower().strip(" ,;") in ("or", "oder", "ou", "或"):
                    separator = "or"
                else:
                    separator = "and"
            else:
                return separator
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
        """Return whether the plain word `in` stands before a set."""
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
            sign_name = "±" if with_sign == r"\pm" else "∓"
            node = Node("pm", (number_node(0), node), name=sign_name)
        while True:
            if self._is("+", "-"):
                sign = self._take().text
                term = self._signed_term()
                signed_term = term if sign == "+" else Node("neg", (term,))
                node = Node("add", (node, signed_term))
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
            if self._is("*", r"\cdot", r"\times"):
                sign = self._take().text
                node = _product_node(node, self._signed_power(), sign)
            elif self._accept("/"):
                node = self._over(node)
            elif self._now.kind == "text":
                if self._now.text.lower().strip(" ,;") in tables.SEPARATORS or self._element_of():
                    break
                node = self._annotated(node)
            elif self._now.kind == "cur":
                self._take()
                node = Node("unit", (node,), name="dollar")
            elif self._is("(") and self._ahead().kind == "text" and self._ahead(2).text == ")":
                node = self._repeated_in_words(node)
            elif self._starts_factor():
                if node.kind == "unit":
                    break
                node = self._implicit(node)
            else:
                break
        self._depth -= 1
        return node

    def _repeated_in_words(self, node: Node) -> Node:
        """Read what follows in brackets, as in `5 (five)`: the same once more, or a unit in brackets."""
        word = self._ahead().text.lower()
        if word in tables.NUMBER_WORDS and node != number_node(tables.NUMBER_WORDS[word]):
            raise Unreadable("a number and another number in words")
        self._take()
        if word in tables.NUMBER_WORDS:
            self._take()
        else:
            node = self._annotated(node)
        self._expect(")")
        return node

    @staticmethod
    def _repeated(node: Node, digits: str) -> Node:
        spelled = int(digits) if digits.isdecimal() else -1
        if node != number_node(spelled):
            raise Unreadable("a number and another number in words")
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
        """Parse a factor without a sign between; an integer before a plain fraction is a mixed number."""
        if node.kind == "num" and self._now.kind == "num":
            return self._mixed_slash(node)
        mixed = node.kind == "num" and node.places < 0 and self._is(r"\frac")
        factor = self._power()
        if mixed and factor.kind == "percent" and factor.args[0].kind == "div":
            return Node("percent", (Node("add", (node, factor.args[0])),))
        if mixed and factor.kind == "div" and all(a.kind == "num" and a.places < 0 for a in factor.args):
            return Node("add", (node, factor))
        return Node("mul", (node, factor))

    def _mixed_slash(self, whole: Node) -> Node:
        """Read a mixed number, `1 3/4`; any other two numbers side by side mean nothing."""
        if whole.places < 0 and self._ahead().text == "/" and self._ahead(2).kind == "num":
            top = self._power()
            self._take()
            bottom = self._power()
            if (
                top.kind == bottom.kind == "num"
                and top.places < 0
                and bottom.places < 0
                and top.value < bottom.value
            ):
                return Node("add", (whole, Node("div", (top, bottom))))
        raise Unreadable("two numbers side by side")

    def _starts_factor(self) -> bool:
        kind, text, _ = self._now
        if kind in ("num", "sym", "fn", "based"):
            return True
        if kind == "cmd":
            return text not in _NO_FACTOR
        if kind == "op":
            return text in ("(", "[", "{", r"\{", "ℝ") or (text == "|" and not self._bars and not self._in_set)
        return False

    def _annotated(self, node: Node) -> Node:
        """Parse a word after a value: percent, degree, a multiplier, or a unit (with its power and denominator)."""
        token = self._take()
        if token.text in JOINED_MULTIPLIERS and not token.spaced:
            return Node("mul", (node, number_node(JOINED_MULTIPLIERS[token.text])))
        word = token.text.lower().strip(" .,;")
        if word in ("percent", "per cent", "pct"):
            return Node("percent", (node,))
        if word in ("degree", "degrees", "deg"):
            return Node("deg", (node,))
        while (multiplier := MULTIPLIERS.get(word.partition(" ")[0])) is not None:
            node, word = Node("mul", (node, number_node(multiplier))), word.partition(" ")[2].strip()
        while self._now.kind == "text" and self._now.text.lower().strip(" ,;") not in tables.SEPARATORS:
            word += " " + self._take().text.lower()
        word = word.strip()
        if not word or is_approval(word):
            return node
        if (digits := spelled_number(word.strip("() "))) is not None:
            return self._repeated(node, digits)
        if is_denial(word) or is_hedge(_WORD_END.sub(" ", word).split()):
            raise Unreadable("a value that is hedged")
        if self._accept("^"):
            exponent = self._script()
            if exponent.kind == "num":
                word += f"^{exponent.value}"
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
            return with_prime(base)
        if self._is("{") and self._ahead().text in (r"\prime", "'"):
            return self._primes(base)
        if self._is("{") and self._ahead().kind == "text" and self._ahead(2).text == "}":
            self._at += 3
            return base
        exponent = self._script()
        node = Node("pow", (base, exponent))
        node = self._postfix(node)
        if self._is("^"):
            with self._nested():
                raised = self._raised(exponent)
            if raised.kind == "deg":
                return Node("deg", (node,))
            return Node("pow", (base, raised))
        return node

    def _primes(self, base: Node) -> Node:
        self._expect("{")
        while self._accept(r"\prime", "'"):
            base = with_prime(base)
        self._expect("}")
        return base

    def _after_degree(self, base: Node) -> Node:
        if self._now.kind == "sym" and self._now.text in "CF" and not self._now.spaced:
            return Node("unit", (base,), name={"C": "celsius", "F": "fahrenheit"}[self._take().text])
        return self._postfix(Node("deg", (base,)))

    def _postfix(self, node: Node) -> Node:
        while True:
            if self._is("!"):
                count = 0
                while self._accept("!"):
                    count += 1
                node = Node("fn", (node, number_node(count)), name="factorial")
            elif self._is("%"):
                self._take()
                node = Node("percent", (node,))
            elif self._is("°"):
                self._take()
                node = self._after_degree(node)
            elif self._is("'"):
                self._take()
                node = with_prime(node)
            elif self._is("_"):
                node = self._subscript(node)
            else:
                return node


def _product_node(left: Node, right: Node, sign: str) -> Node:
    """Return a product that shows its sign; of two vectors with a cross between, what changes its sign with their
    order."""
    if sign == r"\times" and all(_is_vector(side) for side in (left, right)):
        first, second = sorted((left.name, right.name))
        crossed = Node("sym", name=f"{first} cross {second}")
        if left.name == first:
            return crossed
        return Node("neg", (crossed,))
    return Node("mul", (left, right), name="*")


def _is_vector(node: Node) -> bool:
    return node.kind == "sym" and node.name.startswith("vec ")


def _ends_in_unit(node: Node) -> bool:
    return node.kind == "unit" or (node.kind == "add" and node.args[1].kind == "unit")
