# SPDX-License-Identifier: Apache-2.0
"""Translation of single segments: FLORES+ (arXiv:2207.04672), WMT24++ (arXiv:2502.12404), WMT24 (general task)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import permutations

from msgspec.structs import replace

from newskills.base.benchmark import Benchmark, Option, Source
from newskills.base.records import Row
from newskills.benchmarks.options import sources_with

_NAMES = {
    "ar": "Arabic",
    "bn": "Bengali",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hi": "Hindi",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
_FLORES = {"eng": "en", "deu": "de", "spa": "es", "fra": "fr", "ita": "it", "jpn": "ja"}
_PLACES = {
    "de_DE": "German",
    "es_MX": "Spanish (Mexico)",
    "fr_FR": "French",
    "it_IT": "Italian",
    "ja_JP": "Japanese",
}
_WMT = "https://raw.githubusercontent.com/wmt-conference/wmt24-news-systems/main/txt/"
_WMT_PAIRS = ("cs-uk", "en-de", "en-es", "en-ja", "en-zh", "ja-zh")


def segment_fields(source: str, target: str, texts: tuple[str, str], target_name: str = "") -> Row:
    """Return the fields of a segment; `texts`: in the source's and the target's language."""
    return {
        "source": texts[0],
        "reference": texts[1],
        "source_language": source,
        "target_language": target,
        "source_lang_name": _NAMES[source],
        "target_lang_name": target_name or _NAMES[target],
    }


def flores_pairs(
    raw: Iterable[Row], sources: tuple[str, ...] = (), targets: tuple[str, ...] = ()
) -> Iterator[Row]:
    """Yield a row per sentence and ordered pair of (these) languages, from the sentences of all languages."""
    sentences: dict[int, dict[str, str]] = defaultdict(dict)
    for row in raw:
        sentences[row["id"]][_FLORES[row["iso_639_3"]]] = row["text"]
    pairs = [pair for pair in permutations(_FLORES.values(), 2) if not sources or pair[0] in sources]
    for source, target in (pair for pair in pairs if not targets or pair[1] in targets):
        for number, texts in sentences.items():
            if source in texts and target in texts:
                yield {"pair": f"{source}-{target}", "number": number, "texts": (texts[source], texts[target])}


def wmt_pairs(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield a row per segment, from the lines of all files, sources before references."""
    lines: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in raw:
        kind, name = row["_file"].split("/")[-2:]
        lines[kind, name.partition(".")[0]].append(row["text"])
    for name in _WMT_PAIRS:
        sources, references = lines["sources", name], lines["references", name]
        if len(sources) != len(references):
            raise ValueError(f"{name} has {len(sources)} sources and {len(references)} references")
        for number, texts in enumerate(zip(sources, references, strict=True)):
            yield {"pair": name, "number": number, "texts": texts}


def flores_row(raw: Row, index: int) -> Row:
    source, target = raw["pair"].split("-")
    return {"id": f"{raw['pair']}-{raw['number']}", **segment_fields(source, target, tuple(raw["texts"]))}


def wmt24pp_row(raw: Row, index: int) -> Row:
    lp = raw["lp"] if "lp" in raw else raw["_config"]
    place = lp.partition("-")[2]
    return {
        "id": f"{lp}-{raw.get('segment_id', index)}",
        **segment_fields("en", place, (raw["source"], raw["target"]), _PLACES.get(place) or _language_name(place)),
        "domain": raw.get("domain"),
        "is_bad_source": raw.get("is_bad_source"),
    }


def _with_flores_languages(which: str, benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    join = benchmark.join
    keywords = join.keywords if isinstance(join, partial) else {}
    return replace(benchmark, join=partial(flores_pairs, **{**keywords, which: values}), items={})


def _language_name(place: str) -> str:
    """Return the name of a language: `pl_PL` → Polish (PL), where it has a name here; else as it stands."""
    language, _, country = place.partition("_")
    if language in _NAMES:
        return f"{_NAMES[language]} ({country})"
    return place


_SCORED = "BLEU is compared within a pair only: tokenizers differ (13a; zh, ja-mecab and ko-mecab by target)."
BENCHMARKS = (
    Benchmark(
        name="flores200",
        category="multilingual",
        title="FLORES+: sentences of Wikipedia, 30 pairs of six languages",
        aliases=("flores-200",),
        sources=(
            Source(
                split="devtest",
                hf="openlanguagedata/flores_plus",
                config="{eng_Latn,deu_Latn,spa_Latn,fra_Latn,ita_Latn,jpn_Jpan}",
                gated=True,
                note="accept the terms at huggingface.co/datasets/openlanguagedata/flores_plus and set HF_TOKEN",
            ),
        ),
        join=flores_pairs,
        row=flores_row,
        options={
            f"{side}_languages": Option(
                meaning=f"only {word} these languages",
                apply=partial(_with_flores_languages, f"{side}s"),
                known=tuple(_FLORES.values()),
                usual="all",
            )
            for side, word in (("source", "from"), ("target", "into"))
        },
        prompt="multilingual/segment-translation",
        grader="translation",
        metric="translation",
        split="devtest",
        items={"devtest": 30 * 1012},
        licence="CC-BY-SA-4.0",
        homepage="https://huggingface.co/datasets/openlanguagedata/flores_plus",
        citation="arXiv:2207.04672",
        requires="newskills[translation]",
        unverified=True,
        traps=(_SCORED,),
    ),
    Benchmark(
        name="wmt24pp",
        category="multilingual",
        title="WMT24++: English into five languages",
        aliases=("ns_wmt24pp", "ns_wmt24pp_comet"),
        sources=(
            Source(hf="google/wmt24pp", config="{en-de_DE,en-es_MX,en-fr_FR,en-it_IT,en-ja_JP}", hf_split="train"),
        ),
        row=wmt24pp_row,
        options={
            "target_languages": sources_with(
                "config",
                "into these languages of the set (de_DE, pl_PL, …)",
                form="en-{}",
                usual=" ".join(_PLACES),
            )
        },
        prompt="multilingual/segment-translation",
        grader="translation",
        metric="translation",
        items={"test": 5 * 998},
        licence="Apache-2.0",
        homepage="https://huggingface.co/datasets/google/wmt24pp",
        citation="arXiv:2502.12404",
        requires="newskills[translation]",
        unverified=True,
        traps=(_SCORED, "Rows whose source is marked as bad are kept (field is_bad_source)."),
    ),
    Benchmark(
        name="wmt24-general",
        category="multilingual",
        title="WMT24 general task: six pairs of languages",
        sources=(
            Source(
                url=f"{_WMT}{{{','.join([f'sources/{name}.txt' for name in _WMT_PAIRS])},"
                f"{','.join([f'references/{name}.refA.txt' for name in _WMT_PAIRS])}}}",
                format="lines",
                revision="bfa937ee53586aa173d68657b89b8642693f7b66",
            ),
        ),
        join=wmt_pairs,
        row=flores_row,
        prompt="multilingual/segment-translation",
        grader="translation",
        metric="translation",
        items={"test": 7031},
        licence="unstated",
        homepage="https://github.com/wmt-conference/wmt24-news-systems",
        citation="Kocmi et al., WMT 2024",
        requires="newskills[translation]",
        traps=(
            _SCORED,
            "Of the two references for German, A is used.",
            "Segments are given without their document.",
        ),
    ),
)
