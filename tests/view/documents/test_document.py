# SPDX-License-Identifier: Apache-2.0
from html.parser import HTMLParser
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from newskills.view.documents.charts import Estimate, Series, distribution_chart, interval_pictures, line_chart
from newskills.view.documents.document import (
    Figure,
    Fold,
    Grid,
    Heading,
    Paragraph,
    Preformatted,
    Table,
    as_html,
    as_markdown,
)

OWN = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "pre", "figure", "figcaption", "svg"),
    *(
        "details",
        "summary",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "line",
        "circle",
        "text",
        "polyline",
        "rect",
    ),
}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)


@given(
    st.text()
    | st.sampled_from(["</pre><script>alert(1)</script>", '"><img src=x onerror=y>', "</title><svg/onload=1>"])
)
def test_no_text_is_markup(text: str) -> None:
    (picture,) = interval_pictures([Estimate(text, 1, 0, 2)])
    figure = Figure(distribution_chart([(text, [1.0, 2.0])], text, (340, 200)), text)
    table = Table([[text], [text]], [picture])
    blocks = [Heading(text), Paragraph(text), Preformatted(text), Fold(text, [table]), Grid([figure])]
    tags = Tags()
    page = as_html(text, blocks)
    tags.feed(page)
    assert tags.seen <= OWN
    assert not any(name.startswith("on") for name in tags.attributes)
    assert "\x1b" not in page
    assert "\x1b" not in as_markdown(text, blocks)


def test_markdown_says_the_same() -> None:
    text = as_markdown(
        "A *title*", [Table([["a|b", "c"], ["1", "2"]]), Preformatted("x ``` y"), Figure("<svg/>", "Two.")]
    )
    assert text == "# A \\*title\\*\n\n| a\\|b | c |\n|---|---|\n| 1 | 2 |\n\n````text\nx ``` y\n````\n\n*Two.*\n"


@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(-1e6, 1e6, allow_subnormal=False)), min_size=1, max_size=20)
)
def test_plots_are_well_formed_whatever_the_values(points: list[tuple[int, float]]) -> None:
    values = [value for _, value in points]
    for plot in (
        line_chart([Series("one", [(float(x), y) for x, y in points]), Series("none", [])], "step", "value"),
        distribution_chart([("one", values), ("two", values[:1])], "value", (340, 200)),
        *interval_pictures([Estimate("a", value, value - 1, value + 1) for value in values]),
    ):
        root = ElementTree.fromstring(plot)
        assert root.get("role") == "img"
        assert root.get("aria-label")
        for element in root.iter():
            for name in ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2"):
                assert element.get(name) is None or -1 <= float(element.get(name)) <= 1000
