# SPDX-License-Identifier: Apache-2.0
"""Pages of documents, to be written as Markdown (Ouyang et al. 2025, arXiv:2412.07626), version 1.0.

Address, columns and the form of `answer`: OmniDocBench in VLMEvalKit (e8e78f0), whose program compares pages.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.media import embedded_asset

_TEXTS = (
    *("text_block", "title", "code_txt", "code_txt_caption", "reference", "equation_caption", "figure_caption"),
    *("figure_footnote", "table_caption", "table_footnote", "code_algorithm", "code_algorithm_caption", "header"),
    *("footer", "page_footnote", "page_number"),
)


def page_fields(annotated: Row) -> Row:
    """Map texts, formulas and tables of an annotated page; blocks that a column or page cut in two are one."""
    blocks = annotated["layout_dets"]
    cut: list[set[Any]] = []
    for relation in annotated["extra"]["relation"]:
        if relation["relation_type"] == "truncated":
            ends = {relation["source_anno_id"], relation["target_anno_id"]}
            joined = ends.union(*(group for group in cut if group & ends))
            cut = [*(group for group in cut if not group & ends), joined]
    inside = set().union(*cut)
    texts = [block for block in blocks if block["anno_id"] not in inside]
    for group in cut:
        pieces = sorted((block for block in blocks if block["anno_id"] in group), key=_reading_order)
        if pieces:
            texts.append({**pieces[0], "text": "".join(str(piece.get("text") or "") for piece in pieces)})
    tables = [block for block in texts if block["category_type"] == "table" and block.get("html")]
    return {
        "texts": [
            {"category": block["category_type"], "text": str(block["text"]), "order": _reading_order(block)}
            for block in texts
            if block["category_type"] in _TEXTS and block.get("text")
        ],
        "formulas": [
            {"latex": str(block["latex"]), "order": _reading_order(block)}
            for block in texts
            if block["category_type"] == "equation_isolated" and block.get("latex")
        ],
        "tables": [str(block["html"]) for block in sorted(tables, key=_reading_order)],
    }


def _reading_order(block: Row) -> int:
    """Return the place of a block in the order of reading; 0 for one without a place."""
    return int(block.get("order") or 0)


def row(raw: Row, index: int) -> Row:
    annotated = json.loads(raw["answer"])
    attributes = annotated["page_info"]["page_attribute"]
    name = f"omnidocbench-{raw['index']}"
    return {
        "id": name,
        "question": "Write this page as Markdown.",
        "page": page_fields(annotated),
        "image_path": embedded_asset({"bytes": base64.b64decode(raw["image"])}, name),
        "source": attributes.get("data_source", ""),
        "subset_for_metrics": attributes["language"],
    }


BENCHMARK = Benchmark(
    name="omnidocbench-lite",
    category="vlm",
    title="OmniDocBench 1.0: pages of documents as Markdown, by edit distances and TEDS",
    sources=(
        Source(
            url="https://huggingface.co/datasets/ouyanglinke/OmniDocBench_tsv/resolve/main/OmniDocBench.tsv",
            format="tsv",
        ),
    ),
    row=row,
    prompt="vlm/document",
    grader="document",
    metric="document",
    items={"test": 981},
    licence="research only",
    homepage="https://github.com/opendatalab/OmniDocBench",
    citation="arXiv:2412.07626",
    requires="newskills[media]",
    unverified=True,
    traps=(
        "Headline: overall_edit of version 1.0, the mean of the edit distances of texts, formulas, tables and "
        "reading order; the authors give it for English and Chinese pages, here the two subsets.",
        "Lite, because versions 1.5 and later put CDM into their headline: it compares pictures of formulas, which "
        "takes a TeX installation. Their pages (1,355 and 1,651) are others, too.",
        "Tables are read in HTML and Markdown; the authors read LaTeX, too, with latexml. No BLEU, no METEOR.",
        "The prompt is ours.",
    ),
)
