# SPDX-License-Identifier: Apache-2.0
"""AIME, GPQA Diamond and LiveCodeBench in German, Spanish, French and Japanese, as NVIDIA translated them."""

from collections.abc import Iterable, Iterator
from functools import partial

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.code.livecodebench import release_address
from newskills.benchmarks.code.livecodebench import row as code
from newskills.benchmarks.options import sources_with
from newskills.benchmarks.text import choices

_LANGUAGES = "{de,es,fr,ja}"
_CHOICE = {"languages": sources_with("hf_split", "only these languages", "de", "es", "fr", "ja", usual="all")}
_HUB = "nvidia/Nemotron-Multilinugual-Eval-"
_BOXED = {
    "de": "Löse die Aufgabe. Schreibe am Ende nur die Antwort in \\boxed{}.",
    "es": "Resuelve el problema. Al final escribe solo la respuesta dentro de \\boxed{}.",
    "fr": "Résous le problème. À la fin, écris seulement la réponse dans \\boxed{}.",
    "ja": "次の問題を解いてください。最後に答えだけを \\boxed{} の中に書いてください。",
}


def _language_fields(raw: Row) -> Row:
    language = raw["_split"]
    return {"subset_for_metrics": language, "target_language": language}


def aime_row(raw: Row, index: int) -> Row:
    return {
        "question": f"{_BOXED[raw['_split']]}\n\n{raw['problem']}",
        "problem": raw["problem"],
        "expected_answer": str(raw["expected_answer"]),
        **_language_fields(raw),
    }


def gpqa_row(raw: Row, index: int) -> Row:
    if raw["expected_answer"] not in ("A", "B", "C", "D"):
        raise ValueError(f"the answer is {raw['expected_answer']!r}, A to D is expected")
    return {
        "question": raw["problem"],
        **choices(raw["problem"], [raw[letter] for letter in "ABCD"]),
        "expected_answer": raw["expected_answer"],
        **_language_fields(raw),
    }


def with_tests(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield translated problems, each with the tests of LiveCodeBench; the translations come first."""
    translated: dict[str, list[Row]] = {}
    for row in raw:
        if "task_id" in row:
            translated.setdefault(row["task_id"], []).append(row)
        else:
            for other in translated.get(row["question_id"], ()):
                yield {**row, "question_content": other["question"], "_split": other["_split"]}


def livecodebench_row(release: str, raw: Row, index: int) -> Row:
    made, language = code(raw, index), _language_fields(raw)
    return {
        **made,
        "id": f"{language['target_language']}-{made['id']}",
        "problem": made["question_content"],
        "release_version": f"release_{release}",
        **language,
    }


def _aime_benchmark(year: int) -> Benchmark:
    return Benchmark(
        name=f"aime{year}-x",
        category="multilingual",
        title=f"AIME 20{year} in four languages",
        sources=(Source(hf=f"{_HUB}AIME{year}", hf_split=_LANGUAGES),),
        row=aime_row,
        options=_CHOICE,
        prompt="generic/default",
        grader="math_multilingual",
        metric="math_multilingual",
        items={"test": 120},
        licence="unstated",
        homepage=f"https://huggingface.co/datasets/{_HUB}AIME{year}",
        unverified=True,
        traps=("symbolic_and_language_correct also asks for the language of the problem.",),
    )


BENCHMARKS = (
    Benchmark(
        name="livecodebench-x",
        category="multilingual",
        title="LiveCodeBench in four languages",
        sources=tuple(
            Source(
                split=f"test_{release}_2407_2503",
                hf=f"{_HUB}LCB",
                config=release,
                hf_split=_LANGUAGES,
                url=release_address(release),
            )
            for release in ("v5", "v6")
        ),
        variants={f"test_{release}_2407_2503": partial(livecodebench_row, release) for release in ("v5", "v6")},
        join=with_tests,
        options=_CHOICE,
        prompt="eval/livecodebench/default_reasoning",
        grader="livecodebench",
        metric="livecodebench",
        split="test_v5_2407_2503",
        licence="unstated",
        homepage=f"https://huggingface.co/datasets/{_HUB}LCB",
        citation="arXiv:2403.07974",
        needs_sandbox=True,
        unverified=True,
        traps=(
            "Problems of July 2024 to March 2025; the instruction is English for all languages.",
            "The tests come from LiveCodeBench: its files are downloaded, too.",
        ),
    ),
    _aime_benchmark(24),
    _aime_benchmark(25),
    Benchmark(
        name="gpqa-x",
        category="multilingual",
        title="GPQA Diamond in four languages",
        sources=(Source(split="diamond", hf=f"{_HUB}GPQA", hf_split=_LANGUAGES),),
        row=gpqa_row,
        options=_CHOICE,
        prompt="eval/aai/mcq-4choices",
        grader="multichoice_multilingual",
        metric="multichoice_multilingual",
        split="diamond",
        items={"diamond": 792},
        licence="unstated",
        homepage=f"https://huggingface.co/datasets/{_HUB}GPQA",
        citation="arXiv:2311.12022",
        chance=0.25,
        unverified=True,
        traps=(
            "The authors of GPQA ask not to publish questions in plain text.",
            "symbolic_and_language_correct also asks for the language of the question.",
            "The instruction is English for all languages.",
        ),
    ),
)
