# SPDX-License-Identifier: Apache-2.0
"""Speech full of names, with or without help: ContextASR-Bench (arXiv:2507.05727), Contextual Earnings-22."""

from collections.abc import Callable, Mapping
from functools import partial

from newskills.base.benchmark import Benchmark, Group, Source
from newskills.base.records import Row
from newskills.benchmarks.media import TRANSCRIBE, audio_fields, audio_messages
from newskills.benchmarks.scores import weighted


def contextasr_row(mode: str, raw: Row, index: int) -> Row:
    names, domain = [str(name) for name in raw["entity_list"]], raw["domain_label"]
    hint = {
        "contextless": "",
        "coarse": f"The speech is about {domain}. ",
        "fine": f"The speech is about {domain}. These names may occur: {', '.join(names)}. ",
    }[mode]
    seconds = float(raw["duration"])
    return {
        "id": f"contextasr-{mode}-{raw['uniq_id']}",
        "messages": audio_messages(hint + TRANSCRIBE, raw["audio"], seconds=seconds),
        "duration": seconds,
        "audio_filepath": raw["audio"],
        "expected_answer": raw["text"],
        "entity_list": names,
        "domain_label": domain,
        "language": "en",
        "uniq_id": raw["uniq_id"],
        "subset_for_metrics": domain,
    }


def earnings_row(mode: str, raw: Row, index: int) -> Row:
    local, everywhere = [str(word) for word in raw["dictionary"]], [str(word) for word in raw["keywords"]]
    names_shown = {"contextless": [], "local": local, "global": everywhere}[mode]
    hint = f"These words may occur: {', '.join(names_shown)}. " if names_shown else ""
    name = f"earnings22-{mode}-{index}"
    return {
        "id": name,
        **audio_fields(raw, name, hint + TRANSCRIBE),
        "expected_answer": raw["norm_text"],
        "expected_answer_cased": raw["text"],
        "keyword_list": local,
        "local_keywords": local,
        "global_keywords": everywhere,
        "file_id": raw["file_id"],
        "audio_start": raw["audio_start"],
        "subset_for_metrics": raw["file_id"],
    }


def score(metrics: tuple[str, ...], members: Mapping[str, Mapping[str, Row]]) -> Row:
    """Average the members, each counted by its problems."""
    return {metric: weighted(members.values(), metric) for metric in metrics}


Mapper = Callable[[str, Row, int], Row]
_CONTEXT = ("contextless", "coarse", "fine")
_EARNINGS = ("contextless", "local", "global")
_HUB = "https://huggingface.co/datasets/"
_SOUND = (
    "The sound comes apart: unpack the eight archives audio/ContextASR-Speech/English/*.tar of the data set (22 GB) "
    "into <data_dir>/contextasr-bench/{mode}/audio/ContextASR-Speech/English."
)


def _benchmark(family: str, mode: str, title: str, hf: str, row: Mapper, file: str = "") -> Benchmark:
    context = family == "contextasr-bench"
    grader = "contextasr" if context else "contextual_earnings22"
    return Benchmark(
        name=f"{family}.{mode}",
        category="speech-audio",
        title=f"{title}, {mode}",
        sources=(Source(url=f"{_HUB}{hf}/resolve/main/{file}") if file else Source(hf=hf),),
        row=partial(row, mode),
        prompt="",
        defaults={"prompt_format": "openai"},
        grader=grader,
        metric=grader,
        version="2",
        licence="unstated",
        homepage=f"{_HUB}{hf}",
        citation="arXiv:2507.05727" if context else "arXiv:2604.07354",
        requires="newskills[media]",
        unverified=True,
        traps=(
            "A name counts as heard only where all of its words are there, in order.",
            *((_SOUND.format(mode=mode),) if context else ()),
        ),
    )


BENCHMARKS = tuple(
    _benchmark(
        "contextasr-bench",
        mode,
        "ContextASR-Bench: English speech with names",
        "MrSupW/ContextASR-Bench",
        contextasr_row,
        "ContextASR-Speech_English.jsonl",
    )
    for mode in _CONTEXT
) + tuple(
    _benchmark(
        "contextual-earnings22",
        mode,
        "Earnings calls with keywords",
        "argmaxinc/contextual-earnings22",
        earnings_row,
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
