# SPDX-License-Identifier: Apache-2.0
"""TyDi QA, gold passage (arXiv:2003.05002): SQuAD's script in nine languages, and the mean of all but English."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.multilingual.tydiqa import BENCHMARK, row
from newskills.metrics import make_metric
from tests.agreement.cases.reading import replies
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.agreement.originals import loaded
from tests.graders.plain import plain_grader

_GOLDS = {
    "arabic": ("القاهرة", "عام 1922، في مصر"),
    "bengali": ("১৯৭১ সালে", "ঢাকা।"),
    "english": ("the Battle of Hastings", "A"),
    "finnish": ("Helsingissä", "noin 5,5 miljoonaa"),
    "indonesian": ("17 Agustus 1945", "Soekarno-Hatta"),
    "korean": ("1948년 8월 15일", "서울특별시"),
    "russian": ("в 1812 году", "«Война и мир»"),
    "swahili": ("mji wa Dar es Salaam", "1964"),
    "telugu": ("హైదరాబాదు", "1956 నవంబరు 1"),
}
_MEASURES = {"em": "exact_match", "f1": "f1"}


def rows() -> Iterator[Row]:
    for language, answers in _GOLDS.items():
        for gold in answers:
            for measure in _MEASURES:
                yield {"task": measure, "language": language, "expected_answer": gold, "accepted_answers": []}
    for seed in range(16):
        yield {"task": "mean", "seed": seed}


def forms(row_of_case: Row) -> Mapping[str, Any]:
    if row_of_case.get("expected_answer") == "A":
        return {"only an article": f"{replies.LABEL}A", "another word": f"{replies.LABEL}B"}
    if row_of_case["task"] != "mean":
        return replies.forms(row_of_case)
    return {measure: [measure, _answers(row_of_case["seed"])] for measure in _MEASURES}


def _answers(seed: int) -> list[list[str]]:
    """(language, right answer, reply) of invented samples; there are more of some languages than of others."""
    draw = random.Random(seed)
    level = {0: 1.0, 1: 0.0}.get(seed % 8, draw.random())
    languages = [*_GOLDS, *(draw.choice(("arabic", "arabic", "english", "finnish", "korean")) for _ in range(27))]
    samples = []
    for language in languages:
        gold = draw.choice(_GOLDS[language])
        wrong = draw.choice((f"{gold} 1999", gold[:4], "nobody"))
        samples.append([language, gold, gold if draw.random() < level else wrong])
    return samples


def _raw(place: int, language: str, gold: str) -> Row:
    return {"id": f"{language}-{place}-0", "context": "…", "question": "?", "answers": {"text": [gold]}}


def ours(row_of_case: Row, reply: Any) -> float:
    grader = plain_grader(BENCHMARK.grader, BENCHMARK.grader_config)
    if row_of_case["task"] != "mean":
        raw = _raw(0, row_of_case["language"], row_of_case["expected_answer"])
        return float(grader.grade({**row(raw, 0), "generation": reply}).fields[row_of_case["task"]])
    measure, samples = reply
    metric = make_metric(BENCHMARK.metric, **BENCHMARK.metric_config)
    for place, (language, gold, answer) in enumerate(samples):
        sample = {**row(_raw(place, language, gold), place), "generation": f"{replies.LABEL}{answer}"}
        metric.update([sample | grader.grade(sample).fields])
    return metric.numbers()["pass@1"][f"macro_{measure}"].value / 100


def original(folder: Path) -> Verdict:
    """Needs absl-py; in `squad` of the folder, that of allenai/bi-att-flow, which the authors name for the scores.

    Their program cuts predictions into files by language, and calls English's DO-NOT-AVERAGE.
    """
    script = loaded(folder / "squad" / "evaluate-v1.1.py")
    best = script.metric_max_over_ground_truths
    by_answer = replies.by_measure(
        lambda answer, row: best(script.exact_match_score, answer, replies.golds(row)),
        lambda answer, row: best(script.f1_score, answer, replies.golds(row)),
    )

    def verdict(row_of_case: Row, reply: Any) -> float:
        if row_of_case["task"] != "mean":
            return float(by_answer(row_of_case, reply) or 0)
        measure, samples = reply
        questions: dict[str, list[Row]] = {}
        predictions: dict[str, str] = {}
        for place, (language, gold, answer) in enumerate(samples):
            raw = _raw(place, language, gold)
            questions.setdefault(language, []).append({"id": raw["id"], "answers": [{"text": gold}]})
            predictions[raw["id"]] = answer
        scores = [
            script.evaluate([{"paragraphs": [{"qas": questions[language]}]}], answers)[_MEASURES[measure]]
            for language, answers in _split(folder, predictions).items()
            if "DO-NOT-AVERAGE" not in language
        ]
        return float(sum(scores)) / len(scores) / 100

    return verdict


def _split(folder: Path, predictions: dict[str, str]) -> dict[str, dict[str, str]]:
    """Language → predictions, as the authors' program writes them."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "all").write_text(json.dumps(predictions))
        argv = [sys.executable, str(folder / "gold_passage_baseline" / "split_predictions.py")]
        argv += [f"--input_json={place}/all", f"--output_dir={place}", "--lang_output_json_pattern=%s.json"]
        subprocess.run(argv, check=True, capture_output=True)
        return {file.stem: json.loads(file.read_text()) for file in sorted(Path(place).glob("*.json"))}


_NO_WORD = "of an answer that is an article, the original leaves no word, and calls F1 of none 0, where equal is 1"
COMPARISON = Comparison(
    name="tydiqa",
    benchmarks=("tydiqa",),
    scorer="TyDi QA `split_predictions.py` and SQuAD's `evaluate-v1.1.py`",
    compared=ANSWERS,
    repository="google-research-datasets/tydiqa",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={"f1/only an article": _NO_WORD},
)
