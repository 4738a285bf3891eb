# SPDX-License-Identifier: Apache-2.0
"""Pages of documents: distances and likenesses worked out by hand; the authors' program is in tests/agreement."""

from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

from newskills.base.records import Row
from newskills.graders.documents.markdown import read_page
from newskills.graders.documents.pairs import pair_parts
from newskills.graders.documents.tables import plain_table, table_likeness
from newskills.graders.documents.texts import plain_formula, plain_text
from newskills.metrics import make_metric

PAGE: Row = {
    "texts": [
        {"category": "title", "text": "Wells", "order": 1},
        {"category": "text_block", "text": "The mill has one.", "order": 2},
        {"category": "page_number", "text": "8", "order": 0},
    ],
    "formulas": [],
    "tables": [],
}


def fields(reply: str, page: Row = PAGE) -> Row:
    return plain_grader("document", {}).grade({"page": page, "generation": reply}).fields


def test_texts_and_their_order() -> None:
    assert fields("# Wells\n\nThe mill has one.") == {
        "text_edit": 0.0,
        "formula_edit": None,
        "table_edit": None,
        "reading_order_edit": 0.0,
        "table_teds": None,
    }
    assert fields("The mill has two.\n\nWells")["text_edit"] == pytest.approx(3 / (5 + 13)), "one → two"
    assert fields("The mill has one.\n\nWells")["reading_order_edit"] == 1.0, "1 2 → 2 1"
    assert fields("Wells")["reading_order_edit"] == pytest.approx(2 / 3), "what is missing counts twice"


def test_no_reply_is_no_answer() -> None:
    score = plain_grader("document", {}).grade({"page": PAGE, "generation": ""})
    assert (score.outcome, score.fields["text_edit"]) == ("no_answer", 1.0)
    assert plain_grader("document", {}).grade({"generation": "x"}).outcome == "unscored"


def table(*rows: str) -> str:
    cells = ("".join(f"<td>{cell}</td>" for cell in row.split()) for row in rows)
    return plain_table(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")


def test_likeness_of_tables() -> None:
    """Two rows of two cells are six elements."""
    whole = table("a b", "c dd")
    assert table_likeness(whole, whole) == 1.0
    assert table_likeness(table("a b"), whole) == pytest.approx(1 - 3 / 6), "a row and two cells are missing"
    assert table_likeness(table("a b", "c dx"), whole) == pytest.approx(1 - 0.5 / 6), "half of a cell's text"
    assert table_likeness(plain_table("<table><tr><td colspan=2>a</td></tr></table>"), table("a")) == 0.5
    assert table_likeness("", whole) == 0.0


@pytest.mark.parametrize(
    "written",
    [
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>c<td>dd</tbody></table>",
        '<table class="x"><tr><td style="y">a</td><td>b</td></tr><tr><td>c</td>\n<td><span>dd</span></td></tr></table>',
    ],
)
def test_tables_that_are_the_same(written: str) -> None:
    assert table_likeness(plain_table(written), table("a b", "c dd")) == 1.0


def test_parts_of_a_page() -> None:
    page = read_page(
        "# A\n\n$$x$$\n\nWith $y$ in it.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<table><tr></tr></table>"
    )
    assert [part.text for part in page.texts] == ["# A", "With $y$ in it."]
    assert [part.text for part in page.formulas] == ["\\[x\\]", "\\[y\\]"]
    assert [part.text.count("<td>") for part in page.tables] == [4, 0]


def test_what_is_compared_of_texts() -> None:
    assert plain_text("The $\\mathbb{R}^{2}$, $\\hat{a}$; 3 %") == "Theℝ2â3"
    assert plain_formula("\\[ \\mathrm{X}^2 \\quad \\tag{1} \\]") == "{x}^2"


def test_parts_that_belong_together() -> None:
    gold = "everymorningatsevenstationsrainwasmeasured"
    assert pair_parts([gold], [gold[:20], gold[20:]]) == [([0], [0, 1])]
    assert pair_parts(["first words", "second words here"], ["first words second words here"])[0][0] == [0, 1]
    assert pair_parts(["a"], []) == [([0], [])]


@pytest.mark.parametrize(
    "text", ["\\[" * 9000, "<table>" * 5000, "|" * 20000, "$" * 9999, "![" * 9000, "<td" * 9000]
)
def test_hostile_replies_end(text: str) -> None:
    tables: Row = {**PAGE, "tables": ["<table><tr><td>1</td></tr></table>"]}
    assert fields(text, tables)["table_teds"] == 0.0


def test_means_over_pages_that_have_the_measure() -> None:
    metric = make_metric("document")
    nothing: Row = dict.fromkeys(("formula_edit", "table_edit", "table_teds"))
    for text, order in ((0.25, 0.0), (0.75, 0.5)):
        metric.update([{"text_edit": text, "reading_order_edit": order, **nothing, "outcome": "wrong"}])
    numbers = metric.metrics()["pass@1"]
    assert (numbers["text_edit"], numbers["reading_order_edit"], numbers["overall_edit"]) == (50.0, 25.0, 37.5)
    assert "table_teds" not in numbers
