# SPDX-License-Identifier: Apache-2.0
"""Where a reply has answered and goes on with a next question of its own, as base models do after few-shot prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

_HEADINGS = (
    *(
        "Question",
        "Q",
        "Problem",
        "Exercise",
        "Instruction",
        "Human",
        "User",
        "Frage",
        "Aufgabe",
        "Pregunta",
        "Problema",
    ),
    *(
        "Domanda",
        "Pergunta",
        "Вопрос",
        "Задача",
        "Питання",
        "问题",
        "題目",
        "题目",
        "質問",
        "問題",
        "질문",
        "문제",
        "প্রশ্ন",
    ),
    *("ప్రశ్న", "คำถาม", "โจทย์", "Swali", "प्रश्न", "सवाल", "سؤال", "السؤال", "Câu hỏi", "Soru", "Pytanie", "Vraag"),
)
_FIRST_SIGNS = "".join({word[0] for word in _HEADINGS})
_HEADING = (
    rf"(?=[ \t#*{_FIRST_SIGNS}])[ \t]*(?:#+[ \t]*|\*\*)?(?P<word>{'|'.join(_HEADINGS)})[ \t]*"
    r"(?P<number>\d{0,4})[ \t]*(?:\*\*)?[ \t]*[:：.]"
)
_FIRST_LINE, _LATER_LINE = re.compile(_HEADING), re.compile("\n" + _HEADING)
_ANSWER = re.compile(
    r"\\(?:boxed|fbox)\s?\{\s?[^\s}]|####[ \t]*\S*\d|</answer>"
    r"|(?i:answer|option|choice|antwort|réponse|respuesta|risposta|resposta|ответ|答案|答え|정답|답|jibu|উত্তর|సమాధానం|คำตอบ)"
    r"[^\S\n]?(?:(?i:is|:|：|=|est|ist|es|è|é|是|为|は|은|ni|হল|คือ)[^\n]{0,60}?|[^\w\n]{1,6})"
    r"(?:\d|\\[a-zA-Z]|(?<![^\W\d_])[A-Z](?![^\W\d_])|\b(?i:yes|no|true|false)\b)"
)
_LINE_ANSWER = re.compile(
    r"^[\s*_#>]*(?:(?:so|thus|hence|therefore),? )?(?:the )?(?:final |correct )?answer[*_ ]*"
    r"(?:[:：][*_ \t]*\S|is:? (?:[\w'-]+ ?){1,4}[.!*_]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_BARE_ANSWER = re.compile(
    r"(?:\(?[A-Z]\)?[.):]?(?:\s[^\n]{0,200})?|[^\n\s]{0,20}\d[^\n\s]{0,20}|(?i:yes|no|true|false)\.?)"
)
_FLAW = re.compile(r"[ \t]*[a-z]")
"""What follows "Problem:" where that is no question: "Problem: this counts the empty set"."""
_MOST_HEADINGS = 8


def without_next_question(text: str) -> str:
    """Return a reply up to the heading of a next question, or of a next speaker, that stands behind an answer.

    A heading that follows the one numbered before it belongs to the reply.

    >>> without_next_question("#### 18\\n\\nQuestion: Two and two?\\n#### 4")
    '#### 18\\n'
    """
    if _FIRST_LINE.match(text) is None and _LATER_LINE.search(text) is None:
        return text
    numbered: set[tuple[str, str]] = set()
    for heading in islice(_find_headings(text), _MOST_HEADINGS):
        word, number = heading["word"], heading["number"]
        if word == "Problem" and _FLAW.match(text, heading.end()):
            continue
        goes_on = number != "" and (word, str(int(number) - 1)) in numbered
        numbered.add((word, number.lstrip("0") or number))
        before = text[: heading.start()]
        if not goes_on and _gives_answer(before):
            return before
    return text


def _find_headings(text: str) -> Iterator[re.Match[str]]:
    first = _FIRST_LINE.match(text)
    if first is not None:
        yield first
    yield from _LATER_LINE.finditer(text)


def _gives_answer(text: str) -> bool:
    return (
        _ANSWER.search(text) is not None
        or _LINE_ANSWER.search(text) is not None
        or _BARE_ANSWER.fullmatch(text.strip()) is not None
    )
