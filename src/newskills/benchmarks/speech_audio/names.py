# SPDX-License-Identifier: Apache-2.0
"""Speech full of names, with or without help: ContextASR-Bench (arXiv:2507.05727), Contextual Earnings-22."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from newskills.base.benchmark import Benchmark, Group, Source
from newskills.base.records import Row
from newskills.benchmarks.media import TRANSCRIBE, sound_in, spoken
from newskills.benchmarks.scores import weighted


def contextasr(mode: str, raw: Row, index: int) -> Row:
    names, domain = [str(name) for name in raw["entity_list"]], raw["domain"]
    hint = {
        "contextless": "",
        "coarse": f"The speech is about {domain}. ",
        "fine": f"The speech is about {domain}. These names may occur: {', '.join(names)}. ",
    }[mode]
    name = f"contextasr-{mode}-{index}"
    made = spoken(raw, name, hint + TRANSCRIBE)
    return {
        "id": name,
        **made,
        "audio_filepath": sound_in(made),
        "expected_answer": raw["text"],
        "entity_list": names,
        "domain_label": domain,
        "language": "zh" if any("一" <= char <= "鿿" for char in raw["text"]) else "en",
        "uniq_id": str(index),
        "subset_for_metrics": domain,
    }


def with_all_keywords(raw: Iterable[Row]) -> Iterator[Row]:
    """Rows with the keywords of all of them."""
    rows = list(raw)
    together = sorted({keyword for row in rows for keyword in row["keywords"]})
    return ({**row, "all_keywords": together} for row in rows)


def earnings(mode: str, raw: Row, index: int) -> Row:
    local, everywhere = [str(word) for word in raw["keywords"]], raw["all_keywords"]
    names_shown = {"contextless": [], "local": local, "global": everywhere}[mode]
    hint = f"These words may occur: {', '.join(names_shown)}. " if names_shown else ""
    name = f"earnings22-{mode}-{index}"
    return {
        "id": name,
        **spoken(raw, name, hint + TRANSCRIBE),
        "expected_answer": raw["text"],
        "expected_answer_cased": raw["text"],
        "keyword_list": local,
        "local_keywords": local,
        "global_keywords": everywhere,
        "audio_filename": str(raw["audio"].get("path") or name),
    }


def score(metrics: tuple[str, ...], members: Mapping[str, Mapping[str, Row]]) -> Row:
    """The mean of the members, each counted by its problems."""
    return {metric: weighted(members.values(), metric) for metric in metrics}


Mapper = Callable[[str, Row, int], Row]
_CONTEXT = ("contextless", "coarse", "fine")
_EARNINGS = ("contextless", "local", "global")
_HUB = "https://huggingface.co/datasets/"


def _benchmark(family: str, mode: str, title: str, hf: str, row: Mapper) -> Benchmark:
    context = family == "contextasr-bench"
    grader = "contextasr" if context else "contextual_earnings22"
    return Benchmark(
        name=f"{family}.{mode}",
        category="speech-audio",
        title=f"{title}, {mode}",
        sources=(Source(hf=hf),),
        row=partial(row, mode),
        join=None if context else with_all_keywords,
        prompt="",
        defaults={"prompt_format": "openai"},
        grader=grader,
        metric=grader,
        licence="unstated",
        homepage=f"{_HUB}{hf}",
        citation="arXiv:2507.05727" if context else "arXiv:2604.07354",
        requires="newskills[media]",
        unverified=True,
        traps=("A name counts as heard only where all of its words are there, in order.",),
    )


BENCHMARKS = tuple(
    _benchmark(
        "contextasr-bench", mode, "ContextASR-Bench: speech with names", "MrSupW/ContextASR-Bench", contextasr
    )
    for mode in _CONTEXT
) + tuple(
    _benchmark(
        "contextual-earnings22", mode, "Earnings calls with keywords", "argmaxinc/contextual-earnings22", earnings
    )
    for mode in _EARNINGS
)
_RATES = {
    "contextasr-bench": ("wer", "ne_wer", "ne_fnr", "success_rate"),
    "contextual-earnings22": ("wer", "keyword_precision", "keyword_recall", "keyword_f1", "success_rate"),
}
GROUPS = tuple(
    Group(
        name=family,
        category="speech-audio",
        title=title,
        members={benchmark.name: {} for benchmark in BENCHMARKS if benchmark.name.startswith(f"{family}.")},
        score=partial(score, _RATES[family]),
        columns=_RATES[family],
    )
    for family, title in (
        ("contextasr-bench", "ContextASR-Bench: names with and without help"),
        ("contextual-earnings22", "Earnings calls: keywords with and without help"),
    )
)
