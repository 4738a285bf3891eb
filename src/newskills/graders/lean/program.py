# SPDX-License-Identifier: Apache-2.0
"""The file that Lean is given for one answer.

In this order: the header and the statement as the record has them, proved by `sorry` under a name that nobody can
know; a mark; what the answer brings along, and its proof under the record's statement; a theorem whose type is that
of the first one, proved by the second; and the axioms that it rests on. So the statement is elaborated before the
answer can change what its words mean, and the kernel compares what was proved with what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from secrets import token_hex

from msgspec import Struct

from newskills.graders.lean.source import LeanToken, find_run, lean_tokens, outside_brackets, without_comments

_DECLARES = ("theorem", "lemma", "def", "abbrev", "instance", "example")
_PROVES = ("theorem", "lemma", "example")
_MODIFIERS = ("private", "protected", "noncomputable", "nonrec", "partial")
_IMPORT = re.compile(r"^[ \t]*(?:prelude|import[ \t][^\n]*)$", re.MULTILINE)
_TAIL = re.compile(r":=\s*(?:by\b)?\s*(?:sorry\b)?\s*\Z|:=\s*(?:by\b)?\s*begin\s*\Z")
_HAS_DO = re.compile(r":=\s*by\s*(?:sorry\b)?\s*\Z")


class Statement(Struct, frozen=True):
    """`preamble` holds what comes before the declaration, `head` its binders and type, up to the `:=`. `tactics`:
    the record ends with `by`, so that an answer may go on from there."""

    header: str
    preamble: str
    keyword: str
    name: str
    head: str
    tactics: bool

    @property
    def text(self) -> str:
        return f"{self.keyword} {self.name}{self.head}"


class Proof(Struct, frozen=True):
    """`before`: declarations of the answer's own; `body`: from `:=` on, with all that follows."""

    before: str
    body: str
    statement: str

    @property
    def text(self) -> str:
        return f"{self.before}\n{self.statement} {self.body}".strip() + "\n"


class Names(Struct, frozen=True):
    """Names of this check; that they begin with `_` keeps searching tactics from finding the first."""

    asked: str
    mark: str
    final: str


def new_names() -> Names:
    nonce = token_hex(12)
    return Names(*(f"_ns_{nonce}_{name}" for name in ("asked", "mark", "final")))


def read_statement(header: str, formal: str) -> Statement:
    """Return the parts of a statement. Raises ValueError for a statement that is none of Lean 4's, or that is not
    whole."""
    text = without_comments(formal)
    tail = _TAIL.search(text)
    statement_tokens = lean_tokens(text[: tail.start()]) if tail else []
    at = next(
        (at for at in reversed(range(len(statement_tokens) - 1)) if statement_tokens[at].text in _DECLARES[:3]), -1
    )
    if tail is None or at < 0:
        raise ValueError("it is no theorem that ends with `:=`")
    if any(token.text == "sorry" for token in statement_tokens):
        raise ValueError("it holds `sorry` before its end")
    keyword, name = statement_tokens[at : at + 2]
    end = _name_end(text, name.start)
    return Statement(
        header=header,
        preamble=text[: keyword.start].strip(),
        keyword=keyword.text,
        name=text[name.start : end],
        head=text[end : tail.start()].rstrip(),
        tactics=bool(_HAS_DO.search(text)),
    )


def _name_end(text: str, start: int) -> int:
    match = re.compile(r"[^\s({\[⦃:]+").match(text, start)
    if match:
        return match.end()
    return start


def read_proof(code: str, statement: Statement, *, restate: bool) -> Proof | None:
    """Return the answer's proof; None where it has none. `restate`: under the record's statement, whatever the answer
    says is proved."""
    text = _without_given_parts(_IMPORT.sub("", without_comments(code)), statement)
    proof_tokens = lean_tokens(text)
    at = _declaration_index(proof_tokens, statement)
    if at < 0:
        return _bare_proof(text, statement)
    start = _with_modifiers(proof_tokens, at)
    body = _body_start(text, proof_tokens[at:], statement)
    if body is None:
        return None
    before = text[:start].strip()
    if restate:
        return Proof(before, text[body:].strip(), statement.text)
    return Proof(before, text[body:].strip(), text[start:body].strip())


def _without_given_parts(text: str, statement: Statement) -> str:
    """Remove the header and the preamble, which come from the record."""
    for preamble in (_IMPORT.sub("", without_comments(statement.header)), statement.preamble):
        proof_tokens, wanted = lean_tokens(text), lean_tokens(preamble)
        at = find_run(proof_tokens, wanted)
        if at >= 0:
            text = text[: proof_tokens[at].start] + text[proof_tokens[at + len(wanted) - 1].end :]
    return text


def _declaration_index(proof_tokens: Sequence[LeanToken], statement: Statement) -> int:
    """Index of the keyword that declares what is to be proved; else of the last proof; -1 where there is none."""
    names = {statement.name, statement.name.rpartition(".")[2]}
    for at in reversed(range(len(proof_tokens) - 1)):
        if proof_tokens[at].text in _DECLARES and proof_tokens[at + 1].text in names:
            return at
    return next((at for at in reversed(range(len(proof_tokens))) if proof_tokens[at].text in _PROVES), -1)


def _with_modifiers(proof_tokens: Sequence[LeanToken], at: int) -> int:
    while at and proof_tokens[at - 1].text in _MODIFIERS:
        at -= 1
    return proof_tokens[at].start


def _body_start(text: str, proof_tokens: Sequence[LeanToken], statement: Statement) -> int | None:
    """Return where the proof begins, with its `:=`.

    That is behind the statement, where the answer repeats it word for word.
    """
    wanted = lean_tokens(statement.text)
    if [token.text for token in proof_tokens[: len(wanted)]] == [token.text for token in wanted]:
        if len(proof_tokens) > len(wanted):
            return proof_tokens[len(wanted) - 1].end
        return None
    at = outside_brackets(proof_tokens, ":=")
    if at >= 0:
        return proof_tokens[at].start
    return None


def _bare_proof(text: str, statement: Statement) -> Proof | None:
    """Return a proof without a statement, given as a term or as tactics; None for an empty text."""
    body = text.strip("\n").rstrip()
    if not body:
        return None
    if body.lstrip().startswith(":="):
        return Proof("", body.strip(), statement.text)
    starts_by = re.match(r"\s*by\b", body) is not None
    if starts_by or not statement.tactics:
        return Proof("", f":= {body.strip()}", statement.text)
    indented = "\n".join(f"  {line}" for line in body.splitlines())
    return Proof("", f":= by\n{indented}", statement.text)


def proof_program(statement: Statement, proof: Proof, names: Names) -> str:
    """Return the whole file: the statement, the answer's proof, and the check that it has the statement's type."""
    if proof.statement == statement.text:
        name = statement.name
    else:
        name = _declared_name(proof.statement, statement)
    kind = "noncomputable def" if statement.keyword == "def" else "theorem"
    proved = f"{statement.keyword} {names.asked}{statement.head}"
    return "\n".join(
        (
            statement.header.strip(),
            statement.preamble,
            f"{proved} := by sorry",
            f"theorem {names.mark} : True := True.intro",
            f"#print axioms {names.mark}",
            proof.text,
            "set_option autoImplicit false in",
            f"{kind} {names.final} : type_of% @{names.asked} := @{name}",
            f"#print axioms {names.final}",
            "",
        )
    )


def _declared_name(text: str, statement: Statement) -> str:
    proof_tokens = lean_tokens(text)
    at = next((at for at, token in enumerate(proof_tokens[:-1]) if token.text in _DECLARES), -1)
    if at < 0:
        return statement.name
    start = proof_tokens[at + 1].start
    return text[start : _name_end(text, start)]
