# SPDX-License-Identifier: Apache-2.0
"""How the most read pages are written: short sentences, and none of the phrases that readers stumble over."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from newskills.commands.loading import load_command
from newskills.commands.table import command_names, help_page

ROOT = Path(__file__).parents[2]
RULES = tomllib.loads((Path(__file__).parent / "prose.toml").read_text(encoding="utf-8"))
LONGEST: dict[str, int] = RULES["longest_sentence"]
PHRASES: dict[str, str] = RULES["phrases"]
QUOTES_OTHERS = "docs/agreement.md"
"""Tables with the words of official scorers and of replies."""
DOCS = [page.relative_to(ROOT).as_posix() for page in sorted(ROOT.glob("docs/*.md"))]
PAGES = ["README.md", *(name for name in DOCS if name != QUOTES_OTHERS)]

CODE_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
BLOCK_START = re.compile(r"^(?:#+|[-*>]|\d+\.|===|!!!) ")
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")
IMAGE_OR_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\))?(?:\{[^}]*\})?")


def blocks_in(page: str) -> Iterator[str]:
    """Yield headings, paragraphs, list items and table cells of a page, each as one line, without code blocks."""
    lines: list[str] = []
    for line in [*CODE_BLOCK.sub("\n", page).splitlines(), ""]:
        text = line.strip()
        if not text or BLOCK_START.match(text) or text.startswith("|"):
            yield " ".join(lines)
            lines = []
        if text.startswith("|"):
            yield from re.split(r"(?<!\\)\|", text)
        elif text:
            lines.append(text)
            if text.startswith("#"):
                yield " ".join(lines)
                lines = []


def sentences_in(page: str) -> Iterator[str]:
    """Yield the sentences of a page as they are read: of a link its text, of inline code one word."""
    for block in blocks_in(page):
        text = IMAGE_OR_LINK.sub(r"\1", BLOCK_START.sub("", block))
        text = re.sub(r"`[^`]*`", "CODE", text).replace("*", "")
        yield from (sentence for sentence in SENTENCE_END.split(text) if sentence.strip())


def too_long_in(page: str, limit: int) -> list[str]:
    """Return the sentences of a page with more words than `limit`."""
    return [sentence for sentence in sentences_in(page) if len(re.findall(r"\w[\w'’.,-]*", sentence)) > limit]


def phrases_in(page: str) -> dict[str, str]:
    """Return the phrases of a page that readers stumble over, with what to write instead."""
    text = "\n".join(re.sub(r"`[^`]*`", "CODE", block) for block in blocks_in(page)).lower()
    return {
        phrase: better
        for phrase, better in PHRASES.items()
        if re.search(rf"(?<!\w){re.escape(phrase.lower())}(?!\w)", text)
    }


@pytest.mark.parametrize("name", LONGEST)
def test_sentences_are_short(name: str) -> None:
    assert too_long_in((ROOT / name).read_text(encoding="utf-8"), LONGEST[name]) == []


@pytest.mark.parametrize("name", PAGES)
def test_words_are_those_of_the_field(name: str) -> None:
    assert phrases_in((ROOT / name).read_text(encoding="utf-8")) == {}


def test_help_uses_the_words_of_the_field() -> None:
    helps = {name: load_command(name).help(full=True) for name in command_names()} | {"": help_page()}
    texts = {name: " ".join(re.sub(r"(--|\+\+)[\w.]+", "OPTION", text).split()) for name, text in helps.items()}
    assert {name: phrases for name, text in texts.items() if (phrases := phrases_in(text))} == {}


def test_long_sentences_and_odd_phrases_are_seen() -> None:
    long = "One two three four\nfive [six seven](a-page.md) `not counted as more` nine."
    page = f"# A short title\n\nShort. {long}\n\n```text\n{long} worth\n```\n\n- {long}\n"
    page += "| a cell | {} |\n".format(long.replace("\n", " "))
    assert [len(re.findall(r"\w+", sentence)) for sentence in too_long_in(page, 8)] == [9, 9, 9]
    assert too_long_in(page, 9) == []
    assert phrases_in(page) == {}
    assert list(phrases_in(page + "The answer was taken\nfrom nowhere.")) == ["taken from nowhere"]
    assert list(phrases_in(page + "| step | worth |")) == ["worth"]
    assert phrases_in("It is worthwhile. `worth` is a column.") == {}
