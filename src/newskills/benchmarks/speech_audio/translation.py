# SPDX-License-Identifier: Apache-2.0
"""Speech in many languages, written down or translated: FLEURS (arXiv:2205.12446), CoVoST 2 (arXiv:2007.10310)."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Group, Option, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.downloads.readers import read_source
from newskills.benchmarks.media import TRANSCRIBE, audio_fields, audio_messages
from newskills.benchmarks.options import kept_if, single_value
from newskills.benchmarks.scores import entries, headline

_LOCALES = {
    "en_us": "English",
    "ar_eg": "Arabic",
    "cmn_hans_cn": "Chinese",
    "de_de": "German",
    "es_419": "Spanish",
    "fr_fr": "French",
    "hi_in": "Hindi",
    "it_it": "Italian",
    "ja_jp": "Japanese",
    "ko_kr": "Korean",
    "pt_br": "Portuguese",
    "ru_ru": "Russian",
}
_CODES = {"cmn": "zh"}
_FROM = "fr de es ca it ru zh-CN pt fa et mn nl tr ar sv-SE lv sl ta ja id cy"
_INTO = "de tr fa sv-SE mn zh-CN cy ca sl et id ar ta lv ja"
_NAMES = {
    "ar": "Arabic", "ca": "Catalan", "cy": "Welsh", "de": "German", "en": "English", "es": "Spanish", "et": "Estonian",
    "fa": "Persian", "fr": "French", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "lv": "Latvian",
    "mn": "Mongolian", "nl": "Dutch", "pt": "Portuguese", "ru": "Russian", "sl": "Slovenian", "sv": "Swedish",
    "ta": "Tamil", "tr": "Turkish", "zh": "Chinese",
}  # fmt: skip
_PAIRS = [f"{code}_en" for code in _FROM.split()] + [f"en_{code}" for code in _INTO.split()]
_COVOST = f"https://dl.fbaipublicfiles.com/covost/covost_v2.{{{','.join(_PAIRS)}}}.tsv.tar.gz"


def translation_request(language: str) -> str:
    """Return the instruction to translate speech into `language`."""
    return f"Translate the speech into {language}. Reply with the translation, and nothing else."


def code_of(locale: str) -> str:
    """Return the code of a language: `cmn_hans_cn` → zh, `zh-CN` → zh."""
    first = locale.replace("-", "_").partition("_")[0]
    return _CODES.get(first, first)


def fleurs_asr(raw: Row, index: int) -> Row:
    locale = raw["_config"]
    name = f"{locale}-{index}"
    return {
        "id": name,
        **audio_fields(raw, name, TRANSCRIBE),
        "expected_answer": raw["raw_transcription"],
        "language": code_of(locale),
        "task_type": "ASR",
        "subset_for_metrics": locale,
    }


def with_english(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield sentences of other languages with their English text; English comes first, and only its texts are
    kept."""
    english: dict[int, str] = {}
    for row in raw:
        if row["_config"] == "en_us":
            english[row["id"]] = row["raw_transcription"]
        elif row["id"] in english:
            yield {**row, "english": english[row["id"]]}


def fleurs_st(raw: Row, index: int) -> Row:
    locale = raw["_config"]
    name = f"{locale}-en-{index}"
    return {
        "id": name,
        **audio_fields(raw, name, translation_request("English")),
        "expected_answer": raw["english"],
        "source_language": code_of(locale),
        "target_language": "en",
        "task_type": "AST",
        "subset_for_metrics": f"{locale}->en_us",
    }


def with_sentences(folder: Path, raw: Iterable[Row]) -> Iterator[Row]:
    """Yield rows with what is spoken, which CoVoST leaves to Common Voice: `<folder>/<language>/validated.tsv`."""
    spoken_texts: dict[str, dict[str, str]] = {}
    for row in raw:
        language = _language_pair(row)[0]
        if language not in spoken_texts:
            path = folder / language / "validated.tsv"
            spoken_texts[language] = {}
            if path.is_file():
                lines = read_source(path, Source(format="tsv", quoted=False))
                spoken_texts[language] = {line.row["path"]: line.row["sentence"] for line in lines}
        yield {**row, "sentence": spoken_texts[language].get(row["path"], "")}


def _language_pair(raw: Row) -> tuple[str, str]:
    source, _, target = raw["_file"].rpartition("/")[2].split(".")[1].partition("_")
    return source, target


def _from_common_voice(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    return replace(benchmark, join=partial(with_sentences, Path(single_value("common_voice", values))))


def covost2_row(task: str, raw: Row, index: int) -> Row | Drop:
    if raw["split"] != "test":
        return OTHER_SPLIT
    source, target = _language_pair(raw)
    asr, sentence = task == "ASR", raw.get("sentence", "")
    if asr and source == "en" and target != "de":
        return Drop("English speech is the same for all targets")
    if asr and not sentence:
        return Drop("--common_voice names no folder with <language>/validated.tsv that has their texts")
    clip = f"clips/{source}/{raw['path']}"
    ours, theirs = code_of(source), code_of(target)
    if asr:
        identity, subset = source, source
        request, expected_answer = TRANSCRIBE, sentence
        languages = {"language": ours}
    else:
        identity, subset = f"{source}-{target}", f"{source}->{target}"
        request, expected_answer = translation_request(_NAMES[theirs]), raw["translation"]
        languages = {"source_language": ours, "target_language": theirs}
    return {
        "id": f"{identity}-{raw['path']}",
        "messages": audio_messages(request, clip),
        "expected_answer": expected_answer,
        "audio_path": clip,
        "source": sentence,
        "reference": raw["translation"],
        **languages,
        "task_type": task,
        "subset_for_metrics": subset,
    }


def score(members: Mapping[str, Mapping[str, Row]]) -> Row:
    """Average each metric over the members that have it, counted by their problems; counts of errors are added
    up."""
    scores_by_name: dict[str, float] = {}
    for metric in ("wer", "wer_macro", "bleu", "comet"):
        having = [modes for modes in members.values() if metric in modes["pass@1"]]
        total = sum(map(entries, having))
        if total:
            scores_by_name[metric] = sum(entries(modes) * headline(modes, metric) for modes in having) / total
    for metric in ("substitutions", "insertions", "deletions", "ref_words"):
        counts = [modes["pass@1"][metric] for modes in members.values() if metric in modes["pass@1"]]
        if counts:
            scores_by_name[metric] = float(sum(counts))
    return scores_by_name


_CLIPS = (
    "The sound comes apart: put the clips of Common Voice 4 into <data_dir>/covost2/<asr or st>/clips/<language>. "
    "So do the texts that are spoken: --common_voice FOLDER."
)
_BLEU = "BLEU is compared within a pair of languages only."


def _benchmark(name: str, title: str, source: Source, row: RowMapper, **more: Any) -> Benchmark:
    family, _, task = name.partition(".")
    fleurs, asr = family == "fleurs", task == "asr"
    if fleurs:
        home, licence, citation = "huggingface.co/datasets/google/fleurs", "CC-BY-4.0", "arXiv:2205.12446"
    else:
        home, licence, citation = "github.com/facebookresearch/covost", "CC-BY-NC-4.0", "arXiv:2007.10310"
    traps = [] if fleurs else [_CLIPS]
    if not asr:
        traps.append(_BLEU)
    return Benchmark(
        name=name,
        category="speech-audio",
        title=title,
        sources=(source,),
        row=row,
        prompt="",
        defaults={"prompt_format": "openai"},
        grader="audio",
        grader_config={"normalization_mode": "multilingual"} if asr else {},
        metric="audio",
        headline="" if asr else "`bleu`: corpus BLEU of each pair of languages",
        licence=licence,
        homepage=f"https://{home}",
        citation=citation,
        requires="newskills[media,translation]",
        unverified=True,
        traps=tuple(traps),
        **more,
    )


def _has_language(row: Row, values: tuple[str, ...]) -> bool:
    """Return whether the language, or that of the two which is not English, is among the values."""
    source, target = row.get("source_language", row.get("language")), row.get("target_language")
    if source == "en" and target:
        return target in values
    return source in values


_COMMON_VOICE = {
    "common_voice": Option(
        meaning="folder of Common Voice 4, in which <language>/validated.tsv says what is spoken",
        apply=_from_common_voice,
    )
}
_LANGUAGES = {"languages": kept_if("only these languages, beside English (de, zh, …)", _has_language)}
_FLEURS = Source(hf="google/fleurs", config=f"{{{','.join(_LOCALES)}}}")
_TSV = Source(url=_COVOST, format="tsv", members="*.tsv", quoted=False)
BENCHMARKS = (
    _benchmark(
        "fleurs.asr", "FLEURS: speech of twelve languages, written down", _FLEURS, fleurs_asr, options=_LANGUAGES
    ),
    _benchmark(
        "fleurs.st",
        "FLEURS: eleven languages into English",
        _FLEURS,
        fleurs_st,
        join=with_english,
        options=_LANGUAGES,
    ),
    _benchmark(
        "covost2.asr",
        "CoVoST 2: speech of 22 languages, written down",
        _TSV,
        partial(covost2_row, "ASR"),
        options=_LANGUAGES | _COMMON_VOICE,
    ),
    _benchmark(
        "covost2.st",
        "CoVoST 2: 21 languages into English, 15 from it",
        _TSV,
        partial(covost2_row, "AST"),
        options=_LANGUAGES | _COMMON_VOICE,
    ),
)
GROUPS = tuple(
    Group(
        name=family,
        category="speech-audio",
        title=title,
        members={benchmark.name: {} for benchmark in BENCHMARKS if benchmark.name.startswith(f"{family}.")},
        score=score,
        columns=("wer", "wer_macro", "bleu"),
    )
    for family, title in (("fleurs", "FLEURS: speech to text and translation"), ("covost2", "CoVoST 2"))
)
