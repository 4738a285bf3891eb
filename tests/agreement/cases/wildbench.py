# SPDX-License-Identifier: Apache-2.0
"""WildBench (arXiv:2406.04770): scores of many marks, by the authors' program for the leaderboard."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.chat_judge.conversations import wildbench_row
from newskills.metrics import make_metric
from tests.agreement.compare import FIGURES, Comparison, Verdict

_TAGS = (
    *("Information seeking", "Creative Writing", "Coding & Debugging", "Reasoning", "Editing", "Math", "Planning"),
    *("Brainstorming", "Role playing", "Advice seeking", "Data Analysis", "Others"),
)
_FORMS = {
    "all": slice(None),
    "half": slice(None, None, 2),
    "third": slice(1, None, 3),
    "last five": slice(-5, None),
}
_FIGURES = {"WB-Score": "wb_score", "task score": "wb_task_score"}


def rows() -> Iterator[Row]:
    """Samples of invented models: tags, and marks around a level that differs; some are all good or all bad."""
    for seed in range(38):
        draw = random.Random(seed)
        level = {0: 99.0, 1: -99.0}.get(seed % 12, draw.uniform(2, 9))
        size = draw.choice((60, 120))
        tags = [draw.choices(_TAGS, k=1 + draw.randrange(4)) for _ in range(size)]
        for place, tag in enumerate(_TAGS):
            tags[-1 - place % 5].append(tag)
        marks = [min(max(round(draw.gauss(level, 2)), 1), 10) for _ in tags]
        pairs = zip(marks, tags, strict=True)
        yield {"seed": seed, "samples": [[mark, *map(_TAGS.index, names)] for mark, names in pairs]}


def forms(row: Row) -> Mapping[str, Any]:
    return {
        f"{figure}, {name}": {"figure": figure, "samples": row["samples"][part]}
        for figure in _FIGURES
        for name, part in _FORMS.items()
    }


def ours(row: Row, reply: Any) -> float:
    metric = make_metric("wildbench")
    for mark, *tags in reply["samples"]:
        metric.update([{**wildbench_row(_raw(tags), 0), "generation": "text", "ratings": {"all": mark}}])
    return metric.numbers()["pass@1"][_FIGURES[reply["figure"]]].value / 100


def _raw(tags: list[int]) -> Row:
    first, *others = (_TAGS[tag] for tag in tags)
    return {
        "session_id": "",
        "conversation_input": [{"role": "user", "content": "?"}],
        "checklist": [],
        "primary_tag": first,
        "secondary_tags": others,
    }


def original(folder: Path) -> Verdict:
    """The branch for marks of the program that makes the leaderboard's tables; its tenths are of 10."""
    tree = ast.parse((folder / "leaderboard" / "data_dir" / "_create_tables.py").read_text(encoding="utf-8"))
    groups: dict[str, str] = {}
    exec(compile(ast.Module([_assigned(tree, "task_group_new")], []), "groups", "exec"), groups)
    branch = next(node for node in ast.walk(tree) if isinstance(node, ast.If) and _for_marks(node))
    code = compile(ast.Module(branch.body, []), "marks", "exec")

    def verdict(row: Row, reply: Any) -> float:
        results, tasks = [], {}
        for place, (mark, *tags) in enumerate(reply["samples"]):
            results.append({"score": mark, "model_output": "text", "session_id": place, "model_test": "invented"})
            tasks[place] = [groups["task_group_new"][_TAGS[tag]] for tag in tags]
        scope: Row = {"eval_result": results, "task_mapping": tasks, "scores": [], "lengths": []}
        scope |= {"ACTION": "score", "file": "invented.json", "table": []}
        exec(code, scope)
        made = scope["row_item"]
        return float(made["adjusted_score" if reply["figure"] == "WB-Score" else "task_macro_score"]) / 10

    return verdict


def _assigned(tree: ast.Module, name: str) -> ast.stmt:
    return next(
        node for node in tree.body if isinstance(node, ast.Assign) and name in ast.unparse(node.targets[0])
    )


def _for_marks(node: ast.If) -> bool:
    return ast.unparse(node.test) == "MODE == 'score'" and "row_item" in ast.unparse(node.body)


COMPARISON = Comparison(
    name="wildbench",
    benchmarks=("wildbench",),
    scorer="WildBench `_create_tables.py`",
    compared=FIGURES,
    repository="allenai/WildBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
