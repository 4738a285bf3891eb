# SPDX-License-Identifier: Apache-2.0
"""Every benchmark has wordings for `ns robust_eval` that its grader reads, or its page says why it has none.

That they render on real rows stands in `golds.check_prompts`, which sees rows of the mirror and of the raw fixtures.
"""

from collections import defaultdict
from typing import Any, cast

import pytest

from newskills.base.protocols import Grader
from newskills.base.records import Row
from newskills.benchmarks.generate_catalog import built_in
from newskills.benchmarks.pages import benchmark_pages
from newskills.graders import GRADERS, make_grader
from newskills.prompts.prompt_sets import USUAL_SET, load_prompt_set
from newskills.prompts.renderer import load_prompt

SET = load_prompt_set(USUAL_SET)
KINDS = {name: kind.wordings for name, kind in SET.kinds.items() if kind.wordings}
CATALOG = [benchmark for _, benchmark in built_in()]


def test_every_benchmark_has_wordings_or_a_reason_on_its_page() -> None:
    shown = benchmark_pages()
    reasons = defaultdict(list)
    for benchmark in CATALOG:
        family = benchmark.name.partition(".")[0]
        variants, why = SET.wordings(benchmark, [benchmark.name, family, *benchmark.aliases])
        page = shown[f"{family}.md"]
        if variants is None:
            assert f"none, as {why}" in page, benchmark.name
            reasons[why].append(benchmark.name)
            continue
        assert len(variants) >= 4, benchmark.name
        assert f"{len(variants)}, for [`ns robust_eval`]" in page, benchmark.name
        settings = getattr(GRADERS.get(benchmark.grader), "Config", None) if benchmark.grader else None
        needed = {"extract_regex" for variant in variants if variant.extract_regex}
        assert needed <= set(getattr(settings, "__struct_fields__", ())), benchmark.name
    assert not [why for why in reasons if why.startswith("there is no kind")], "reworded where that makes sense"
    assert sum(map(len, reasons.values())) < len(CATALOG) / 4


@pytest.mark.parametrize("kind", KINDS)
def test_wordings_insert_every_field_of_a_row(kind: str) -> None:
    for variant in KINDS[kind]:
        prompt = load_prompt(variant.prompt_config)
        row = {field: f"<the {field}>" for field in prompt.fields}
        text = "\n".join(str(message.content) for message in prompt.messages(row))
        assert all(value in text for value in row.values()), variant


CHOICE = {"expected_answer": "C", "problem": "Which?\n\nA) an ant\nB) a bee\nC) a cat\nD) a dog"}
READ: list[tuple[str, str, Row, str, dict[str, Any]]] = [
    ("mathematics", "math", {"expected_answer": "7"}, r"So \boxed{7}", {}),
    ("physics", "math", {"expected_answer": "7"}, r"So \boxed{7}", {}),
    ("course physics", "math", {"expected_answer": "7"}, r"The final answer is \boxed{7}.", {}),
    ("workbooks", "dsbench", {"expected_answer": "7"}, r"\boxed{7}", {}),
    ("contents of workbooks", "dsbench", {"expected_answer": "B"}, r"\boxed{B}", {}),
    ("any box", "exact", {"expected_answer": "red"}, r"\boxed{red}", {"extract": "answer", "loose": True}),
    ("korean choices", "multichoice", CHOICE, "이유.\n정답: C", {}),
    ("choices about a long text", "multichoice", CHOICE, r"\boxed{C}", {}),
    ("yes or no", "multichoice", {"expected_answer": "A", "problem": "A) Yes\nB) No"}, "Answer: A", {}),
    ("inference", "multichoice", CHOICE, "Answer: C", {}),
    ("better answers", "multichoice", CHOICE, "B is long.\nAnswer: C", {}),
    ("pictures and choices", "multichoice", CHOICE, "A cat.\nAnswer: C", {}),
    ("pictures and mathematics", "math", {"expected_answer": "7"}, r"\boxed{7}", {}),
    ("short answers", "short_answer", {"expected_answer": ["Paris"], "answers": ["Paris"]}, "Answer: Paris", {}),
    ("final answers", "gaia", {"expected_answer": "3"}, "Thoughts.\nFINAL ANSWER: 3", {}),
    (
        "same answers",
        "answer-judgement",
        {"expected_judgement": "Judgement: Yes"},
        "Reasoning: 1\nJudgement: Yes",
        {},
    ),
    (
        "checks of proofs",
        "answer-judgement",
        {"expected_judgement": "Judgement: No"},
        "Summary: x\nJudgement: No",
        {},
    ),
]


@pytest.mark.parametrize(("kind", "grader", "record", "reply", "config"), READ, ids=[case[0] for case in READ])
def test_graders_read_the_form_that_the_wordings_ask_for(
    kind: str, grader: str, record: Row, reply: str, config: Row
) -> None:
    """The forms of `choices` are read by the regexes of the set: tests/prompts/test_prompt_sets.py."""
    assert KINDS[kind]
    read = cast(Grader, make_grader(grader, config)).grade({"id": 1, **record, "generation": reply})
    assert read.outcome == "correct", read
