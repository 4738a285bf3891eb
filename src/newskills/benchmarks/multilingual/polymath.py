# SPDX-License-Identifier: Apache-2.0
"""Mathematics at four levels in 18 languages (Wang et al. 2025, arXiv:2504.18428)."""

from functools import partial

from newskills.base.benchmark import Benchmark, Group, Option, Source
from newskills.base.records import Row

_COMMIT = "351d54aa8c19bce04aa393713894c002227bb62b"
_URL = f"https://raw.githubusercontent.com/QwenLM/PolyMath/{_COMMIT}/data/"
_WEIGHTS = {"low": 1, "medium": 2, "high": 4, "top": 8}
_READ = ("de", "en", "es", "fr", "ja", "zh")

# Where the answer goes, in the language of the problem.
_ENDING = {
    "ar": r"اكتب الجواب النهائي داخل \boxed{}.",
    "bn": r"চূড়ান্ত উত্তরটি \boxed{} এর ভেতরে লিখুন।",
    "de": r"Schreibe das Endergebnis in \boxed{}.",
    "en": r"Write the final answer in \boxed{}.",
    "es": r"Escribe la respuesta final en \boxed{}.",
    "fr": r"Écris la réponse finale dans \boxed{}.",
    "id": r"Tulis jawaban akhir di dalam \boxed{}.",
    "it": r"Scrivi la risposta finale in \boxed{}.",
    "ja": r"最終的な答えを \boxed{} の中に書いてください。",
    "ko": r"최종 답을 \boxed{} 안에 쓰세요.",
    "ms": r"Tulis jawapan akhir di dalam \boxed{}.",
    "pt": r"Escreva a resposta final em \boxed{}.",
    "ru": r"Запишите окончательный ответ в \boxed{}.",
    "sw": r"Andika jibu la mwisho ndani ya \boxed{}.",
    "te": r"తుది సమాధానాన్ని \boxed{} లో రాయండి.",
    "th": r"เขียนคำตอบสุดท้ายไว้ใน \boxed{}",
    "vi": r"Viết đáp án cuối cùng trong \boxed{}.",
    "zh": r"请把最终答案写在 \boxed{} 中。",
}


def row(language: str, raw: Row, index: int) -> Row:
    level = raw["id"].partition("-")[0]
    return {
        "id": raw["id"],
        "question": f"{raw['question']}\n\n{_ENDING[language]}",
        "problem": raw["question"],
        "expected_answer": raw["answer"].strip().strip("$").strip(),
        "subset_for_metrics": level,
        "difficulty": level,
        "weight": _WEIGHTS[level],
        "target_language": language,
    }


def _keep_language(language: str, benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark | None:
    if language in values:
        return benchmark
    return None


def _benchmark(language: str) -> Benchmark:
    return Benchmark(
        name=f"polymath.{language}",
        category="multilingual",
        title=f"PolyMath: mathematics at four levels, {language}",
        sources=(Source(url=f"{_URL}{language}/{{low,medium,high,top}}.jsonl", revision=_COMMIT),),
        row=partial(row, language),
        options={
            "languages": Option(
                meaning="only these languages",
                apply=partial(_keep_language, language),
                known=tuple(_ENDING),
                usual="all",
            )
        },
        prompt="generic/default",
        metric="weighted-math",
        items={"test": 500},
        licence="Apache-2.0",
        homepage="https://github.com/QwenLM/PolyMath",
        citation="arXiv:2504.18428",
        misprints={f"medium-{language}-111": "a brace is missing"} if language in _READ else {},
        unverified=language not in _READ,
        traps=(
            "weighted_symbolic_correct weighs the levels 1, 2, 4 and 8: it is the number of the paper.",
            "The sentence that asks for the box is ours; answers in other languages than asked are not refused.",
            "A judge (judge/math) is asked only with --judge_all; each language is a benchmark of its own.",
        ),
    )


BENCHMARKS = tuple(map(_benchmark, _ENDING))

GROUP = Group(
    name="polymath",
    category="multilingual",
    title="PolyMath: mathematics at four levels in 18 languages",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    columns=("weighted_symbolic_correct", "symbolic_correct", "no_answer"),
    homepage="https://github.com/QwenLM/PolyMath",
    citation="arXiv:2504.18428",
)
