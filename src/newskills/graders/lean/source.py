# SPDX-License-Identifier: Apache-2.0
"""Lean 4 text, as far as it is read without Lean: comments, words, and what an answer must not hold.

What is read as a comment is taken out before Lean sees the text, so that nothing reaches Lean which was not looked
through: where this reading and Lean's differ, an answer may lose text, but cannot hide any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

_LEXEME = re.compile(
    r""""[^"\\]*(?:\\.[^"\\]*)*\\?(?:"|\Z)|[A-Za-z_][\w'!?.]*|'(?:[^'\\\n]|\\[^\n]{1,6}?)'|--[^\n]*|/-|.""",
    re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/-|-/")
_TOKEN = re.compile(r"#[A-Za-z_]+|[A-Za-z_][A-Za-z0-9_'!?]*(?:\.[A-Za-z_][A-Za-z0-9_'!?]*)*|\d+|:=|\S")
UNPROVED = frozenset({"sorry", "admit", "sorryAx"})
_RUNS_CODE = frozenset(
    [
        "macro",
        "macro_rules",
        "syntax",
        "notation",
        "notation3",
        "infix",
        "infixl",
        "infixr",
        "prefix",
        "postfix",
        "elab",
        "elab_rules",
        "binder_predicate",
        "declare_syntax_cat",
        "declare_config_elab",
        "declare_command_config_elab",
        "declare_simp_like_tactic",
        "run_cmd",
        "run_elab",
        "run_meta",
        "run_tac",
        "run_conv",
        "by_elab",
        "initialize",
        "builtin_initialize",
        "simproc",
        "dsimproc",
        "simproc_decl",
        "dsimproc_decl",
        "builtin_simproc",
        "builtin_dsimproc",
        "register_option",
        "register_builtin_option",
        "register_simp_attr",
        "register_label_attr",
        "register_parser_alias",
        "include_str",
        "implemented_by",
        "extern",
        "unsafe",
        "eval_expr",
        "unsafeIO",
        "unsafeEIO",
        "unsafeBaseIO",
        "unsafeCast",
    ]
)
_MACHINERY = frozenset({"Lean", "Meta", "Elab", "IO", "EIO", "BaseIO", "System", "RealWorld", "println"})
"""Parts of names. Settings of tactics (`simp (config := …)`) are evaluated as programs while a proof is checked, and
even pure ones can be made to read files, print and exit, by these."""
_CHANGES_MEANING = frozenset(["axiom", "variable", "variables", "include", "omit", "import", "prelude"])
_COMMANDS = ("#eval", "#exit", "#guard", "#html", "#widget", "#test", "#run", "#sample", "#plausible", "#exec")
_OPTIONS = re.compile(
    r"(?:maxHeartbeats|maxRecDepth|autoImplicit|relaxedAutoImplicit|exponentiation\.threshold|"
    r"(?:synthInstance|linter|simprocs|tactic|aesop|diagnostics)(?:\.\w+)*)"
)
_ATTRIBUTES = frozenset(
    [
        "simp",
        "simps",
        "ext",
        "norm_cast",
        "push_cast",
        "instance",
        "reducible",
        "semireducible",
        "irreducible",
        "inline",
        "specialize",
        "elab_as_elim",
        "refl",
        "symm",
        "trans",
        "congr",
        "gcongr",
        "mono",
        "grind",
        "fun_prop",
        "continuity",
        "measurability",
        "mk_iff",
        "to_additive",
        "nolint",
        "local",
        "scoped",
        "inherit_doc",
        "class",
        "match_pattern",
        "rcases_patterns",
        "deprecated",
        "field_simps",
        "push",
        "pull",
        "bound",
        "zify_simps",
        "qify_simps",
        "rify_simps",
        "parity_simps",
        "nontriviality",
        "ring_nf",
        "coe",
        "default_instance",
    ]
)
_BRACKETS = {"(": 1, "[": 1, "{": 1, "⟨": 1, "⦃": 1, ")": -1, "]": -1, "}": -1, "⟩": -1, "⦄": -1}


class LeanToken(Struct, frozen=True):
    text: str
    start: int
    end: int


def without_comments(text: str) -> str:
    """Return the text with a space in place of each comment, its line breaks kept. A comment that does not end
    stays."""
    kept, at = [], 0
    while match := _LEXEME.match(text, at):
        at = match.end()
        if match[0].startswith("--"):
            kept.append(" ")
        elif match[0] == "/-":
            end = _comment_end(text, at)
            if end is None:
                return "".join([*kept, text[match.start() :]])
            kept.append(" " + "\n" * text.count("\n", at, end))
            at = end
        else:
            kept.append(match[0])
    return "".join(kept)


def _comment_end(text: str, at: int) -> int | None:
    """Return the place behind the `-/` that closes the comment whose text begins at `at`; comments nest."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        if edge[0] == "/-":
            depth += 1
        else:
            depth -= 1
        if depth == 0:
            return edge.end()
    return None


def lean_tokens(text: str) -> list[LeanToken]:
    """Return the words with their dots, numbers, `:=`, `#word`, and single signs of a text without comments."""
    return [LeanToken(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]


def find_run(source_tokens: Sequence[LeanToken], wanted: Sequence[LeanToken]) -> int:
    """Index at which the texts of `wanted` stand in a row in `found`; -1 where they do not, or are none."""
    texts, run = [token.text for token in source_tokens], [token.text for token in wanted]
    if not run:
        return -1
    starts = (at for at, text in enumerate(texts) if text == run[0])
    return next((at for at in starts if texts[at : at + len(run)] == run), -1)


def outside_brackets(source_tokens: Sequence[LeanToken], wanted: str) -> int:
    """Index of the first token `wanted` that no bracket encloses; -1 where there is none."""
    depth = 0
    for at, token in enumerate(source_tokens):
        if depth == 0 and token.text == wanted:
            return at
        depth = max(0, depth + _BRACKETS.get(token.text, 0))
    return -1


def forbidden_reason(text: str) -> str:
    """Return why an answer without comments is not run; empty = it may run.

    The reason is what it holds that could sidestep the check.
    """
    source_tokens = lean_tokens(text)
    whys = (_why_not(source_tokens, at) for at in range(len(source_tokens)))
    first = next(filter(None, whys), "")
    return first or next(
        (f"the attribute {name} may not be given" for name in _unsafe_attributes(source_tokens)), ""
    )


def _why_not(source_tokens: Sequence[LeanToken], at: int) -> str:
    word = source_tokens[at].text.rstrip("'!?")
    after = source_tokens[at + 1].text if at + 1 < len(source_tokens) else ""
    if word in UNPROVED:
        return f"`{word}` leaves the proof open"
    if word.startswith(_COMMANDS):
        return f"`{word}` runs code or hides messages"
    if word in _RUNS_CODE and not (
        word == "unsafe" and [each.text for each in source_tokens[at - 2 : at]] == ["(", "add"]
    ):
        return f"`{word}` can run code or change what text means"
    if not _MACHINERY.isdisjoint(word.split(".")):
        return f"`{word}` reaches what checks the proof, or files"
    if word in _CHANGES_MEANING:
        return f"`{word}` can change what is assumed"
    if word == "set_option" and not _OPTIONS.fullmatch(after):
        return f"the option {after} may not be set"
    if word in ("eval", "type_of") and after == "%":
        return f"`{word}%` can run code"
    return ""


def _unsafe_attributes(source_tokens: Sequence[LeanToken]) -> Iterator[str]:
    """Yield the attributes of `@[…]` and `attribute […]` that are none of the harmless ones."""
    for at, token in enumerate(source_tokens[1:], 1):
        if token.text == "[" and source_tokens[at - 1].text in ("@", "attribute"):
            yield from _attribute_entries(source_tokens[at + 1 :])


def _attribute_entries(source_tokens: Sequence[LeanToken]) -> Iterator[str]:
    depth, first = 0, True
    for token in source_tokens:
        if token.text == "]" and depth == 0:
            return
        depth += _BRACKETS.get(token.text, 0)
        if token.text == "," and depth == 0:
            first = True
        elif first and token.text not in ("local", "scoped", "-"):
            first = False
            if token.text not in _ATTRIBUTES:
                yield token.text
