# SPDX-License-Identifier: Apache-2.0
"""Runs the authors' scorers on `replies.py` and writes their verdicts beside it.

python -m tests.graders.originals.record NAME PATH

NAME and PATH are
  zebralogic    src/evaluation of WildEval/ZeroEval (needs tabulate)
  gaia          the leaderboard's scorer.py, as evalscope carries it (evalscope/benchmarks/gaia/scorer.py)
  locomo        task_eval/evaluation.py of snap-research/locomo (needs nltk)
  finqa         code/evaluate/evaluate.py of czyssrs/FinQA
  legalbench    evaluation.py of HazyResearch/legalbench (needs nltk)
  processbench  code/run_eval.py of QwenLM/ProcessBench
The files are evaluated in this process: run it only on copies that you have read.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.graders.originals.replies import CASES

from newskills.graders.reading.table_program import _ARITHMETIC, _ROWS

FOLDER = Path(__file__).parent
Original = Callable[[dict[str, Any], str], float]


def functions(file: Path, *names: str, **known: Any) -> dict[str, Any]:
    """The functions of a file, without what it imports; `known` stands in for that."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and (not names or node.name in names)]
    namespace: dict[str, Any] = dict(known)
    exec(compile(ast.Module(body, []), str(file), "exec"), namespace)
    return namespace


def zebralogic(path: Path) -> Original:
    sys.path.insert(0, str(path))
    sys.modules["datasets"] = types.SimpleNamespace(load_dataset=None)  # type: ignore[assignment]
    from zebra_grid_eval import eval_model, file_cache, private_solutions  # type: ignore[import-not-found]

    sizes = ("2*2", "3*4", "4*5", "5*5")
    for size in sizes:
        private_solutions[size] = {"header": ["House", "Name"], "rows": [["1", "Ann"]]}

    def cells(row: dict[str, Any], reply: str) -> float:
        """A puzzle of each group of sizes comes first: the means of its program fail without them."""
        private_solutions[row["id"]] = row["solution"]
        file_cache.clear()
        answer = json.dumps({"reasoning": "", "solution": {"House 1": {"Name": "Ann"}}})
        items = [*((size, size, answer) for size in sizes), (row["id"], row["size"], reply)]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump([{"id": name, "size": size, "output": [text]} for name, size, text in items], file)
            file.flush()
            _, parsed = eval_model("m%x", file.name, mode="single")
        return float(parsed[-1]["correct_cells"])

    return cells


def gaia(path: Path) -> Original:
    names = ("normalize_number_str", "split_string", "normalize_str", "question_scorer")
    log = types.SimpleNamespace(warning=lambda text: None)
    import string

    scorer = functions(
        path, *names, re=re, string=string, logger=log, List=list, Tuple=tuple, Any=Any, warnings=log
    )["question_scorer"]

    def same(row: dict[str, Any], reply: str) -> float:
        verdict = scorer(reply, row["expected_answer"])
        return float(verdict[0] if isinstance(verdict, tuple) else verdict)

    return same


def locomo(path: Path) -> Original:
    import string
    from collections import Counter
    from statistics import fmean

    from nltk.stem import PorterStemmer

    mean = types.SimpleNamespace(mean=fmean)
    known = {"regex": re, "string": string, "Counter": Counter, "ps": PorterStemmer(), "np": mean}
    scorer = functions(path, "normalize_answer", "f1_score", "f1", **known)

    def value(row: dict[str, Any], reply: str) -> float:
        gold, kind = row["expected_answer"], row["question_type"]
        if kind == "adversarial":  # as eval_question_answering writes it
            return float("no information available" in reply.lower() or "not mentioned" in reply.lower())
        if kind == "multi-hop":
            return float(scorer["f1"](reply, gold))
        return float(scorer["f1_score"](reply, gold.split(";")[0].strip() if kind == "commonsense" else gold))

    return value


def processbench(path: Path) -> Original:
    extract = functions(path, "extract_answer", re=re)["extract_answer"]

    def found(row: dict[str, Any], reply: str) -> float:
        try:
            return float(int(extract(reply)) == int(row["expected_answer"]))
        except (TypeError, ValueError):
            return 0.0

    return found


def finqa(path: Path) -> Original:
    names = [*_ARITHMETIC, "greater", *_ROWS]
    run = functions(path, "str_to_num", "process_row", "eval_program", all_ops=names)["eval_program"]

    def equal(row: dict[str, Any], reply: str) -> float:
        """Tokens as the authors' predictions have them: `op(`, two arguments, `)`, and `EOF` at the end."""
        tokens = []
        for name, arguments in re.findall(r"(\w+)\(([^()]*)\)", reply):
            tokens += [f"{name}(", *map(str.strip, arguments.split(",")), ")"]
        invalid, result = run([*tokens, "EOF"], row["table"])
        return float(not invalid and result == row["gold"])

    return equal


def legalbench(path: Path) -> Original:
    import string
    from statistics import fmean

    from nltk.stem import PorterStemmer

    names = (
        "normalize",
        *(f"evaluate_{name}" for name in ("sara_numeric_acc", "definition_extraction", "citation_open", "ssla")),
    )
    mean = types.SimpleNamespace(mean=fmean)
    scorer = functions(path, *names, re=re, string=string, PorterStemmer=PorterStemmer, np=mean, List=list)
    of_measure = {"amount": names[1], "term": names[2], "contains": names[3], "names": names[4]}

    def value(row: dict[str, Any], reply: str) -> float:
        gold = row["expected_answer"]
        if row["measure"] == "label":  # balanced accuracy of one row: whether both normalise to the same
            return float(scorer["normalize"](reply, False) == scorer["normalize"](gold, False))
        return float(scorer[of_measure[row["measure"]]]([reply], [gold]))

    return value


def main(name: str, path: str) -> None:
    makers = (zebralogic, gaia, locomo, processbench, finqa, legalbench)
    original = next(maker for maker in makers if maker.__name__ == name)(Path(path))
    lines = [json.dumps([form, round(original(row, reply), 6)]) for row, form, reply in CASES[name]()]
    (FOLDER / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{name}: {len(lines)} verdicts")


if __name__ == "__main__":
    main(*sys.argv[1:])
