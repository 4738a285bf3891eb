# SPDX-License-Identifier: Apache-2.0
"""A page of a document as Markdown beside its texts, formulas, tables and reading order (OmniDocBench).

Ouyang et al. 2025, arXiv:2412.07626, §4: matching, normalisation and distances as the authors' program has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from newskills.base.records import Row, Score
from newskills.graders.documents.markdown import Page, Part, read_page
from newskills.graders.documents.pairs import nearest_parts, pair_parts
from newskills.graders.documents.tables import plain_table, table_likeness
from newskills.graders.documents.texts import plain_formula, plain_text
from newskills.graders.reading.overlap import edit_distance
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

MEASURES = ("text_edit", "formula_edit", "table_edit", "reading_order_edit", "table_teds")
BESIDE = (
    *("figure_caption", "figure_footnote", "table_caption", "table_footnote", "code_algorithm"),
    *("code_algorithm_caption", "header", "footer", "page_footnote", "page_number", "equation_caption"),
)
"""Categories that are matched, so that they spoil no other, and not scored."""
_DECIDING, _GOOD = ("text_edit", "table_edit", "reading_order_edit"), 0.1
_LONGEST = 60_000
"""Characters of a reply that are read: no page has as many, a model that repeats itself has more."""
_MOST_PARTS = 500


class DocumentGrader:
    """`page` of the record: `texts` [{category, text, order}], `formulas` [{latex, order}], `tables` [html].

    Fields written, 0–1 each, null where the page has nothing of the kind: `text_edit`, `formula_edit`, `table_edit`,
    `reading_order_edit` (normalised edit distances, lower is better) and `table_teds` (likeness, higher is better).
    Tables are read in HTML and Markdown, not in LaTeX. A page is called correct up to a tenth of edits in texts, tables
    and order; annotated formulas hold their delimiters, so that no reply has all of them. Nothing but filters should
    rely on that.
    """

    name = "document"
    version = "2"
    answer_keys = ("generation",)

    def gold_reply(self, record: Row) -> str | None:
        page = record.get("page")
        if not isinstance(page, Mapping):
            return None
        parts = [(item["order"], item["text"]) for item in page["texts"]]
        parts += [(item["order"], f"$$\n{item['latex'].strip().strip('$')}\n$$") for item in page["formulas"]]
        texts = [text for _, text in sorted(parts, key=lambda part: part[0])]
        return "\n\n".join([*texts, *page["tables"]])

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        page = record.get("page")
        if not isinstance(page, Mapping):
            return ungradable_score(stamp, "the record has no page", dict.fromkeys(MEASURES))
        reply = visible_reply(str(record.get("generation") or ""))
        fields = page_distances(page, (reply or "")[:_LONGEST])
        if not reply:
            return no_answer_score(stamp, record, fields)
        edits = [value for name in _DECIDING if (value := fields[name]) is not None]
        mean = sum(edits) / len(edits) if edits else 0.0
        return verdict_score(stamp, mean <= _GOOD, fields, f"mean edit distance {mean:.3f}", 1 - mean)


def page_distances(page: Mapping[str, Any], markdown: str) -> dict[str, float | None]:
    """Return the value of each of `MEASURES` for this page; None where the page has nothing of the kind."""
    reply = read_page(markdown)
    for parts in (reply.texts, reply.formulas, reply.tables):
        del parts[_MOST_PARTS:]
    text, order = _text_distances(page["texts"], reply.texts)
    tables = [table for table in page["tables"] if table]
    if tables:
        table_shares = _table_scores(tables, [part.text for part in reply.tables])
    else:
        table_shares = {}
    return {
        "text_edit": text,
        "formula_edit": _formula_distance(page["formulas"], reply),
        "table_edit": None,
        "reading_order_edit": order,
        "table_teds": None,
        **table_shares,
    }


def _text_distances(golds: Sequence[Row], parts: Sequence[Part]) -> tuple[float | None, float | None]:
    """Return (distance of the texts, distance of their order)."""
    golds = sorted(golds, key=lambda item: item["order"])
    plain = [(item, text) for item in golds if (text := plain_text(item["text"]))]
    shown = [(part, text) for part in parts if (text := plain_text(part.text))]
    if not plain:
        return None, None
    counted = [
        (own, seen)
        for own, seen in pair_parts([text for _, text in plain], [text for _, text in shown])
        if not own or any(plain[at][0]["category"] not in BESIDE for at in own)
    ]
    compared = [
        ("".join(plain[at][1] for at in own), "".join(shown[at][1] for at in seen)) for own, seen in counted
    ]
    orders = [
        ([plain[at][0]["order"] for at in own], [shown[at][0].at for at in replied]) for own, replied in counted
    ]
    wanted = sorted(order for own, _ in orders for order in own if order)
    read = sorted((pair for pair in orders if all(pair)), key=lambda pair: pair[1][0])
    read_orders = [order for own, _ in read for order in own if order]
    longest = max(len(wanted), len(read_orders))
    edits = edit_distance([*map(str, wanted)], [*map(str, read_orders)])
    order_share = edits / longest if longest else None
    return _edit_share(compared), order_share


def _formula_distance(golds: Sequence[Row], reply: Page) -> float | None:
    wanted = [
        text for item in sorted(golds, key=lambda item: item["order"]) if (text := plain_formula(item["latex"]))
    ]
    shown = [text for part in reply.formulas if (text := plain_formula(part.text))]
    if not wanted:
        return None
    counted = [pair for pair in pair_parts(wanted, shown) if pair[0]]
    return _edit_share(
        [("".join(wanted[at] for at in own), "".join(shown[at] for at in replied)) for own, replied in counted]
    )


def _table_scores(golds: list[str], shown: list[str]) -> dict[str, float | None]:
    chosen = [("" if at is None else shown[at]) for at in nearest_parts(golds, shown)]
    plain = [(plain_table(gold), plain_table(reply)) for gold, reply in zip(golds, chosen, strict=True)]
    likeness = [table_likeness(reply, gold) for gold, reply in plain]
    return {"table_edit": _edit_share(plain), "table_teds": sum(likeness) / len(likeness)}


def _edit_share(texts: Sequence[tuple[str, str]]) -> float | None:
    """Return all edits of the pairs as a share of the sum of their longer texts."""
    total = sum(max(map(len, pair)) for pair in texts)
    if total:
        return sum(edit_distance(*pair) for pair in texts) / total
    return None
