# SPDX-License-Identifier: Apache-2.0
"""IFBench (arXiv:2507.02833): every kind of instruction, on replies that keep it and that do not."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_REPLIES = Path(__file__).parents[2] / "graders" / "instructions" / "recorded.jsonl"
_VERB, _OVERLAP = "words:start_verb", "ratio:overlap"
_OPENINGS = """Write|Explain|Consider|Imagine|Begin|Start|Take|Make|Running|Walking|Learning|Built|Written|Given|Known
Is|Are|Was|Do|Does|Did|Can|Will|Should|May|Have|Has|Let|Let's|Go|Be|Being|Been|Think|Remember|Note|Look|Find|Use|Try
Create|Discover|Explore|Embark|Welcome|Thank|Please|The|A|An|This|There|It|I|We|You|He|In|On|At|By|For|With|Sure
Certainly|Absolutely|Yes|No|Here|Now|Then|When|While|Although|Because|However|Today|Once|Water|Time|Love|Hope|Work
Plan|Help|Hello|Hi|Dear|Dogs|Cats|People|Science|Music|Paris|John|Happy|Beautiful|Many|Some|Every|Never|Always|Often
Perhaps|Ensure|Mix|Cook|Heat|Preheat|Add|Stir|Travel|Play|Sing|Dance|Read|Study|Teach|Buy|Sell|Open|Close|Wait|Stop
Unlocking|Understanding|Developing|Navigating|Building|Growing|Saving|Breaking|Eating|Sleeping|Seeing|Believe|Dream"""
_AFTER = ("the first step with care.", "with me, and see what happens.")


def rows() -> Iterator[Row]:
    yield from recorded("ifbench")
    for word in _OPENINGS.replace("\n", "|").split("|"):
        for after in _AFTER:
            yield _row(_VERB, {}, f"{word} {after}")


def recorded(grader: str) -> Iterator[Row]:
    """The replies of `tests/graders/instructions` for a grader's kinds."""
    for line in _REPLIES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["grader"] == grader:
            yield _row(case["kind"], case["args"], case["text"])


def _row(kind: str, arguments: Row, text: str) -> Row:
    return {"task": kind, "instruction_id_list": [kind], "kwargs": [arguments], "text": text}


def forms(row: Row) -> Mapping[str, str]:
    return {"reply": row["text"]}


def original(folder: Path) -> Verdict:
    """Needs nltk < 3.9 with its tagger's data, emoji, syllapy; a reply is one sentence to the tagger."""
    sys.path.insert(0, str(folder))
    nltk: Any = importlib.import_module("nltk")
    nltk.download = lambda *_, **__: True
    nltk.word_tokenize = nltk.tokenize.TreebankWordTokenizer().tokenize
    instructions_registry = importlib.import_module("ifbench.instructions_registry")

    def verdict(row: Row, reply: Any) -> float | None:
        (kind,), (arguments,) = row["instruction_id_list"], row["kwargs"]
        check = instructions_registry.INSTRUCTION_DICT[kind](kind)
        check.build_description(**arguments)
        try:
            return float(bool(reply.strip()) and bool(check.check_following(reply)))
        except LookupError:
            return None

    return verdict


COMPARISON = Comparison(
    name="ifbench",
    benchmarks=("ifbench",),
    scorer="IFBench checks",
    compared=WHOLE,
    repository="allenai/IFBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("ifbench", value="is_correct"),
    known={
        "words:start_verb/reply": "the original asks a statistical tagger, to which `Discover the …` begins with a "
        "noun; ours goes by a list of verbs in all their forms",
        "repeat:repeat_span/reply": "the prompts speak of word indices; the original has counted characters since "
        "May 2026",
        "format:quote_unquote/reply": "the original no longer knows curly quotation marks",
        "format:title_case/reply": "the original cuts words with a tokenizer that splits otherwise between scripts",
    },
)
