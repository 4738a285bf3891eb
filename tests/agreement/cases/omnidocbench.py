# SPDX-License-Identifier: Apache-2.0
"""OmniDocBench (arXiv:2412.07626): distances of pages, by the authors' program as VLMEvalKit carries it."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.vlm.omnidocbench import page_fields
from newskills.graders.documents.grader import MEASURES, page_distances
from tests.agreement.compare import WHOLE, Comparison, Verdict

_TABLE = (
    "<table><tr><td>Year</td><td>Rain</td><td>Days</td></tr><tr><td>2019</td><td>712 mm</td><td>131</td></tr>"
    "<tr><td>2020</td><td>655 mm</td><td>118</td></tr></table>"
)
_SPANS = (
    '<table><tr><td colspan="2">Costs</td><td rowspan="2">Sum</td></tr><tr><td>Paper</td><td>Ink</td></tr>'
    "<tr><td>12.5</td><td>7</td><td>19.5</td></tr><tr><td>x<sup>2</sup></td><td>&lt;1</td><td><b>3</b></td></tr></table>"
)
_MARKDOWN = "| Year | Rain | Days |\n|---|---|---|\n| 2019 | 712 mm | 131 |\n| 2020 | 655 mm | 118 |"
_LATEX = (
    "\\begin{tabular}{lll} Year & Rain & Days \\\\ 2019 & 712 mm & 131 \\\\ 2020 & 655 mm & 118 \\end{tabular}"
)
_PAGES: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("title", "1 Rainfall in the valley"),
        ("text_block", "Rain was measured every morning at seven stations between the mill and the upper bridge."),
        ("table_caption", "Table 1: rain by year"),
        ("table", _TABLE),
        (
            "text_block",
            "The second year was drier, with $\\mu_{2} = 55$ mm per month against $\\mu_1$ in the first.",
        ),
        ("equation_isolated", "$$\\bar{x} = \\frac{1}{n} \\sum_{i=1}^{n} x_{i} \\tag{1}$$"),
        ("text_block", "Here $x_i$ is the amount of day i."),
        ("page_number", "17"),
    ),
    (
        ("header", "ANNALS OF THE HARBOUR"),
        ("title", "Of ships and their masters"),
        (
            "text_block",
            "In March the quay was rebuilt; eleven ships lay at anchor outside and waited for the tide.",
        ),
        (
            "text_block",
            "Masters who paid in silver were let in first. The others drew lots at the gate, it is told.",
        ),
        ("figure_caption", "Figure 3. The quay after the storm."),
        ("text_block", "By June nothing was left of the old timber."),
        ("page_footnote", "a) See the ledger of 1702."),
    ),
    (
        ("title", "第三章 降雨"),
        ("text_block", "每天早上七点在山谷的七个站点测量降雨量,共两年。"),
        ("text_block", "第二年较干燥,平均每月 $\\alpha^{2}$ 毫米。"),
        ("equation_isolated", "$$E = mc^{2}$$"),
        ("equation_isolated", "$$\\mathbf{F} = \\begin{array}{c} m \\\\ a \\end{array}$$"),
        ("table", _SPANS),
    ),
    (
        ("title", "Exercises"),
        ("text_block", "1. Show that the sum of two even numbers is even."),
        ("text_block", "2. Find all x with $x^{2} + 1 = 5$ and $\\hat{x} > 0$."),
        ("text_block", "3. What is $\\mathcal{L}(f)$ for $f = \\sin(\\omega t)$?"),
        ("equation_isolated", "$$x^{2} + 1 = 5$$"),
        ("code_txt", "for i in range(3):\nprint(i)"),
        ("footer", "Hand in by Friday."),
    ),
)


def rows() -> Iterator[Row]:
    for parts in _PAGES:
        for measure in MEASURES:
            yield {"task": measure, "parts": [list(part) for part in parts]}


def _annotated(row: Row) -> Row:
    """The page in the form of the authors' data."""
    blocks = []
    for order, (category, text) in enumerate(row["parts"], 1):
        kind = {"equation_isolated": "latex", "table": "html"}.get(category, "text")
        block = {"category_type": category, kind: text, "order": order, "anno_id": order}
        blocks.append({"latex": _LATEX, **block} if category == "table" else block)
    info = {"page_attribute": {"language": "english"}, "image_path": "a.jpg"}
    return {"layout_dets": blocks, "extra": {"relation": []}, "page_info": info}


def forms(row: Row) -> Mapping[str, str]:
    parts = row["parts"]
    texts = [text if category != "title" else f"# {text}" for category, text in parts]
    prose = [text for (category, _), text in zip(parts, texts, strict=True) if category != "table"]
    whole = "\n\n".join(texts)
    long = max(range(len(texts)), key=lambda at: len(texts[at]) * (parts[at][0] == "text_block"))
    first, second = texts[long][: len(texts[long]) // 2], texts[long][len(texts[long]) // 2 :]
    return {
        "whole": whole,
        "fenced": f"```markdown\n{whole}\n```",
        "reversed": "\n\n".join(reversed(texts)),
        "first two swapped": "\n\n".join([texts[1], texts[0], *texts[2:]]),
        "last missing": "\n\n".join(texts[:-1]),
        "half": "\n\n".join(texts[: len(texts) // 2]),
        "without tables": "\n\n".join(prose),
        "small letters": whole.lower(),
        "a paragraph in two": "\n\n".join([*texts[:long], first, second, *texts[long + 1 :]]),
        "paragraphs in one": "\n\n".join([texts[0], " ".join(texts[1:3]), *texts[3:]]),
        "letters wrong": re.sub(r"e", "c", whole),
        "more text": f"{whole}\n\nThis page was written by a model that adds what nobody asked for.",
        "an image": f"![a picture](x.png)\n\n{whole}",
        "brackets": re.sub(r"\$\$(.*?)\$\$", r"\\[\1\\]", whole),
        "inline brackets": re.sub(r"(?<!\$)\$([^$]+)\$(?!\$)", r"\\(\1\\)", whole),
        "formulas plain": whole.replace("$", ""),
        "header cells": whole.replace("<td>Year</td>", "<th>Year</th>").replace("<table>", '<table border="1">'),
        "a row missing": re.sub(r"<tr>(?:(?!</tr>).)*</tr></table>", "</table>", whole),
        "cells wrong": whole.replace("655", "556").replace("12.5", "12,5").replace("131", ""),
        "spans missing": re.sub(r' (?:col|row)span="\d"', "", whole),
        "tables in parts": whole.replace("<table><tr>", "<table>\n<tbody>\n<tr>").replace(
            "</table>", "</tbody></table>"
        ),
        "a paragraph in three": "\n\n".join([*texts[:long], first[:20], first[20:], second, *texts[long + 1 :]]),
        "repeated": f"{whole}\n\n{texts[0]}\n\n{texts[long]}",
        "a table more": f"{whole}\n\n<table><tr><td>1</td></tr></table>",
        "a table in Markdown": whole.replace(_TABLE, _MARKDOWN),
        "a table in LaTeX": whole.replace(_TABLE, _LATEX),
        "a tag over two lines": whole.replace("<td colspan", "<td\ncolspan"),
        "single lines": "\n".join(text.replace("\n", " ") for text in texts),
        "nothing": "I cannot read this page.",
    }


def original(folder: Path) -> Verdict:
    """Needs apted, Levenshtein, lxml, beautifulsoup4, pylatexenc, scipy, pandas, tabulate, tqdm and func_timeout."""
    package = types.ModuleType("vlm_original")
    package.__path__ = [str(folder / "vlmeval" / "dataset")]
    names = ("dump", "get_intermediate_file_path", "load")
    stands: dict[str, Any] = {
        "vlm_original": package,
        "vlm_original.image_base": types.SimpleNamespace(ImageBaseDataset=object),
        "vlmeval": types.ModuleType("vlmeval"),
        "vlmeval.smp": types.SimpleNamespace(**dict.fromkeys(names)),
        "evaluate": types.SimpleNamespace(),
        "torch": types.ModuleType("torch"),
        "torch.distributed": types.ModuleType("torch.distributed"),
    }
    sys.modules.update(stands)
    program = importlib.import_module("vlm_original.OmniDocBench.omnidocbench")
    metrics = importlib.import_module("vlm_original.OmniDocBench.metrics")
    evaluator = object.__new__(program.end2end_evaluator)
    evaluator.match_method = "quick_match"

    def edits(samples: list[Row]) -> float | None:
        kept = [sample for sample in samples if len(sample["gt"]) or len(sample["pred"])]
        if not kept:
            return None
        return float(metrics.call_Edit_dist(kept).evaluate()[1]["Edit_dist"]["ALL_page_avg"])

    def measured(row: Row, reply: Any) -> float | None:
        text, formulas, _, tables, order = evaluator.process_get_matched_elements(_annotated(row), reply, "a.jpg")
        if row["task"] == "reading_order_edit":
            return order["edit"] if order else None
        if row["task"] in ("text_edit", "formula_edit"):
            return edits(text if row["task"] == "text_edit" else formulas)
        if not tables:
            return None
        normal = metrics.recogition_end2end_table_dataset(tables, "html").samples
        if row["task"] == "table_edit":
            return edits(normal)
        return float(metrics.call_TEDS(normal).evaluate()[1]["TEDS"]["all"])

    return _silent(measured)


def _silent(verdict: Callable[[Row, Any], float | None]) -> Verdict:
    def quiet(row: Row, reply: Any) -> float | None:
        with contextlib.redirect_stdout(io.StringIO()):
            return verdict(row, reply)

    return quiet


def ours(row: Row, reply: Any) -> float | None:
    return page_distances(page_fields(_annotated(row)), reply)[row["task"]]


COMPARISON = Comparison(
    name="omnidocbench",
    benchmarks=("omnidocbench-lite",),
    scorer="OmniDocBench, its copy in VLMEvalKit",
    compared=WHOLE,
    repository="open-compass/VLMEvalKit",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        "table_edit/a table in Markdown": "the original writes spans of one into the cells of such a table",
    },
)
