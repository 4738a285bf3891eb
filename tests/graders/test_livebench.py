# SPDX-License-Identifier: Apache-2.0
"""LiveBench's tasks: what counts as an answer, and what it is worth."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Score
from newskills.graders.reading.tables import are_same_tables, last_block, read_mapping, read_table


def grade(task: str, gold: str | None, generation: str, **record: Any) -> Score:
    return plain_grader("livebench", {}).grade(
        {"task": task, "ground_truth": gold, "question": "", "generation": generation, **record}
    )


AMC = r"What? $\textbf{(A) } 12 \qquad\textbf{(B) } 15 \qquad\textbf{(C) } 20$"
NEW = {"livebench_release_date": "2024-11-25T00:00:00"}
OLD = {"livebench_release_date": "2024-06-24T00:00:00"}
ANYTHING = "1 2 3 4 5 cook painter nurse"


@pytest.mark.parametrize(
    ("task", "gold", "generation", "worth", "record"),
    [
        ("cta", "Country.of.Origin", "The class is `country of origin`", 1.0, {}),
        ("cta", "year", "month", 0.0, {}),
        ("tablejoin", '{"a": "x", "b": "y"}', "```python\n{'a': 'x', 'b': 'y'}\n```", 1.0, {}),
        ("tablejoin", '{"a": "x", "b": "y"}', "{'a': 'x'}", 0.67, {}),
        ("tablejoin", '{"a": "x", "b": "y"}', "{'a': 'x', 'b': 'z'}", 0.5, {}),
        ("tablejoin", '{"a": "x"}', "{'b': 'x'}", 0.0, {}),
        ("math_comp", "025", "so xy is 025", 1.0, {}),
        ("math_comp", "025", "so xy is 25.", 0.0, {}),
        ("math_comp", "025", "with x = 005 and y = 005, 005 * 005 = 025", 1.0, {}),
        ("math_comp", "025", "022, 023, 024, 025, 026, 027, 028", 0.0, {}),
        ("math_comp", "B", "AAAAA? no: BBBBB", 1.0, {}),
        ("math_comp", "B", "BBBBB? no: AAAAA", 0.0, {}),
        ("math_comp", "B", r"\boxed{\textbf{(B)}}", 1.0, {}),
        ("math_comp", "B", "it is 15", 1.0, {"question": AMC}),
        ("math_comp", "B", "it is 12", 0.0, {"question": AMC}),
        ("olympiad", "1,2,3,4", "Answer: 1, 2, 3, 4", 1.0, {}),
        ("olympiad", "1,2,3,4", "Answer: 2,1,3,4", 0.5, {}),
        ("olympiad", "1,2,3,4", "Answer: 1,2,3", 0.75, {}),
        ("spatial", "6", "There are **six**.", 1.0, {}),
        ("spatial", "6", "**5** or rather **6**", 1.0, {}),
        ("spatial", "6", "**5** **6** **7**", 0.0, {}),
        ("spatial", "6", "**6**, or **seven**", 0.0, {}),
        ("spatial", "6", "**6**\n\n**Checked twice**", 1.0, {}),
        ("spatial", "square", "**square** **triangle** **tetrahedron**", 0.0, {}),
        ("spatial", "triangle", "an **equilateral triangle**", 1.0, {}),
        ("spatial", "triangle", "a **square**", 0.0, {}),
        ("web_of_lies_v2", "no, yes, yes", "So **no, yes, yes**.", 1.0, {}),
        ("web_of_lies_v2", "no, yes, yes", "**yes**, **no**, **yes**", 0.0, {}),
        ("web_of_lies_v2", "no, yes, yes", "Thus:\nno, yes, yes", 1.0, {}),
        ("zebra_puzzle", "1, film-making, cook", "<solution>1, film making, cook</solution>", 1.0, NEW),
        ("zebra_puzzle", "1, film-making, cook", "<solution>2, film making, cook</solution>", 1 / 3, NEW),
        ("zebra_puzzle", "1, cook", "<solution>11, cook</solution>", 0.25, NEW),
        ("zebra_puzzle", "1, cook", "<solution>position 1, the cook</solution>", 1.0, NEW),
        ("zebra_puzzle", "1, cook", "<solution>the person at position 1, she is a cook</solution>", 1.0, NEW),
        ("zebra_puzzle", "1, cook", f"<solution>{ANYTHING}, {ANYTHING}</solution>", 0.0, NEW),
        ("spatial", "3", "So:\n\\boxed{3}", 1.0, {}),
        ("spatial", "3", "So:\n\\boxed{4}", 0.0, {}),
        ("spatial", "3", "3", 1.0, {}),
        ("spatial", "3", "4", 0.0, {}),
        ("math_comp", "C", "So:\nC", 1.0, {}),
        ("math_comp", "C", "So:\nD", 0.0, {}),
        ("math_comp", "D", "So:\n**(D)**", 1.0, {}),
        ("math_comp", "D", "So:\n**(E)**", 0.0, {}),
        ("math_comp", "C", "So:\n(C) 20", 1.0, {}),
        ("math_comp", "C", "So:\n(B) 20", 0.0, {}),
        ("math_comp", "D", "<solution>D</solution>", 1.0, {}),
        ("math_comp", "D", "<solution>C</solution>", 0.0, {}),
        ("tablejoin", '{"a": "x"}', "The mapping is {'a': 'x'}", None, {}),
        ("tablejoin", '{"a": "x"}', "```\n{'a': 'x', 'b': None}\n```", 1.0, {}),
        ("zebra_puzzle", "fantasy movies", "It is ***fantasy***", 1.0, OLD),
        ("zebra_puzzle", "fantasy movies", "It is ***drama***", 0.0, OLD),
        ("AMPS_Hard", r"\frac{1}{2}", r"\boxed{0.5}", 1.0, {}),
        ("AMPS_Hard", r"\frac{1}{2}", r"\boxed{0.6}", 0.0, {}),
        ("AMPS_Hard", r"\frac{x^3}{3}", r"$\boxed{\frac{x^3}{3} + C}$", 1.0, {}),
        ("AMPS_Hard", r"\frac{x^3}{3}", r"$\boxed{\frac{x^2}{2} + C}$", 0.0, {}),
        ("AMPS_Hard", r"(x-1)^2", r"First $x=2$. Hence $y = (x-1)^2$.", 1.0, {}),
        ("AMPS_Hard", r"(x-1)^2", r"We have $$y = (x-1)^2$$", 1.0, {}),
        ("AMPS_Hard", r"(x-1)^2", r"From $y = (x-1)^2$ follows $y = (x+1)^2$.", 0.0, {}),
        ("AMPS_Hard", r"(x-1)^2", r"<think>$(x-1)^2$</think>I give up.", None, {}),
    ],
)
def test_what_replies_are_worth(
    task: str, gold: str, generation: str, worth: float | None, record: dict[str, Any]
) -> None:
    score = grade(task, gold, generation, **record)
    assert score.fields["symbolic_correct"] == pytest.approx(worth or 0.0)
    assert (score.outcome == "no_answer") is (worth is None)
    assert (score.outcome == "correct") is (worth == 1.0)


@pytest.mark.parametrize("task", ["tablejoin", "olympiad", "spatial", "web_of_lies_v2", "cta", "math_comp"])
def test_nothing_is_no_answer(task: str) -> None:
    assert grade(task, "1", "").outcome == "no_answer"
    assert grade(task, "1", "<think>hm").cause == "truncation"


def test_what_cannot_be_graded() -> None:
    assert grade("unheard", "1", "1").outcome == "unscored"
    assert grade("cta", None, "1").outcome == "unscored"


def test_instructions_count_half_each_and_half_together() -> None:
    pytest.importorskip("langdetect")
    record = {
        "instruction_id_list": ["keywords:existence", "detectable_format:title"],
        "kwargs": [{"keywords": ["mill"]}, {}],
    }
    assert grade("paraphrase", None, "<<Olm>>\nThe mill grinds.", **record).fields["symbolic_correct"] == 1.0
    half = grade("paraphrase", None, "The mill grinds.", **record)
    assert (half.outcome, half.fields["symbolic_correct"]) == ("wrong", 0.25)
    assert grade("paraphrase", None, "", **record).outcome == "no_answer"
    for task in ("simplify", "story_generation", "summarize"):
        assert grade(task, None, "The mill grinds.", **record).fields["symbolic_correct"] == 0.25


CSV = "name,size\nmill,12\nbarn,3.5\n"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("csv", CSV),
        ("csv", f"Here it is:\n```csv\n{CSV}```\n"),
        ("csv", f"Here it is:\n{CSV}"),
        ("tsv", CSV.replace(",", "\t")),
        ("jsonl", '{"name":"mill","size":12}\n{"size":3.50,"name":"barn"}'),
        ("json", '{"7":{"name":"mill","size":12},"9":{"name":"barn","size":3.5}}'),
        ("json", '[{"name":"mill","size":"12"},{"name":"barn","size":3.5}]'),
        ("html", "<table><tr><th>name</th><th>size</th></tr><tr><td>mill</td><td>12</td></tr>"
         "<tr><td> barn</td><td>3.5</td></tr></table>"),
    ],
)  # fmt: skip
def test_tables_in_all_forms_are_the_same(form: str, text: str) -> None:
    wanted, found = read_table("csv", CSV), read_table(form, text, ["name", "size"])
    assert wanted is not None
    assert found is not None
    assert are_same_tables(found, wanted)


@pytest.mark.parametrize(
    "text",
    [
        "name,size\nmill,12\n",
        "name,size\nbarn,3.5\nmill,12\n",
        "name,width\nmill,12\nbarn,3.5\n",
        "name,size\nmill,12\nbarn,3.6\n",
    ],
)
def test_other_tables(text: str) -> None:
    wanted, found = read_table("csv", CSV), read_table("csv", text)
    assert wanted is not None
    assert found is not None
    assert not are_same_tables(found, wanted)


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl", "html"])
@pytest.mark.parametrize("text", ["", "no table", "{" * 50_000, "[" * 50_000, "<table>" * 20_000, "<td" * 50_000])
def test_texts_without_a_table(form: str, text: str) -> None:
    found = read_table(form, text)
    assert found is None or found == [] or form in ("csv", "tsv")


@pytest.mark.parametrize(
    ("form", "first", "second", "alike"),
    [
        ("json", '[{"a": null, "b": 1}]', '[{"a": NaN, "b": 1}]', True),
        ("json", '[{"a": null, "b": 1}]', '[{"a": "", "b": 1}]', False),
        ("jsonl", '{"a": "", "b": 1}', '{"a": null, "b": 1}', False),
        ("jsonl", '{"a": "", "b": 1}', '{"a": " ", "b": 1}', True),
        ("csv", "a,b\n,1\n", 'a,b\n"",1\n', True),
        ("csv", "a,b\n,1\n", "a,b\nNULL,1\n", True),
        ("csv", "a,b\n,1\n", "a,b\n-,1\n", False),
        ("tsv", "a\tb\n1\t\n", "a\tb\n1\tNaN\n", True),
        ("html", "<table><tr><th>a</th></tr><tr><td></td></tr></table>",
         "<table><tr><th>a</th></tr><tr><td>NaN</td></tr></table>", True),
    ],
)  # fmt: skip
def test_nothing_is_an_empty_text_where_the_form_cannot_tell(
    form: str, first: str, second: str, alike: bool
) -> None:
    one, other = read_table(form, first), read_table(form, second)
    assert one is not None
    assert other is not None
    assert are_same_tables(one, other) is alike


def test_words_behind_a_table_are_a_row_of_it() -> None:
    wanted, longer = read_table("csv", CSV), read_table("csv", f"{CSV}Done.", ["name", "size"])
    assert wanted is not None
    assert longer is not None
    assert not are_same_tables(longer, wanted)


def test_blocks_and_mappings() -> None:
    assert last_block("a\n```json\n{}\n```\nb") == "{}"
    assert last_block("x <solution>y</solution>") == "y"
    assert read_mapping("{'a': \"it's\", 'b': None}") == {"a": "it's"}
    assert read_mapping('{"a": "x\\"y"}') == {"a": 'x"y'}
    assert read_mapping("{}") == {}
    assert read_mapping("none") is None
    assert read_mapping("{" + "'a': 'b', " * 5000 + "'" * 5000 + "}") is None
    assert read_mapping("{" * 15_000) is None


def test_the_longest_text_that_is_read_as_a_table() -> None:
    text = '[{"a": "b"}]'
    assert read_table("json", text.ljust(200_000)) == [{"a": "b"}]
    assert read_table("json", text.ljust(200_001)) is None
