# SPDX-License-Identifier: Apache-2.0
"""Speech to text: the Open ASR Leaderboard, LibriSpeech-PC, Numb3rs; and MUSAN, where nothing should be heard."""

from functools import partial
from pathlib import PurePosixPath
from typing import Any

from newskills.base.benchmark import Benchmark, Drop, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.media import TRANSCRIBE, audio_fields, audio_messages, sound_in
from newskills.benchmarks.options import first_rows, kept_if, rows_with

_SILENT = Drop("there are no words in the transcript")
_EXACTLY = (
    "Transcribe the speech with its punctuation and capital letters. Reply with the transcript, and nothing else."
)


def leaderboard_row(raw: Row, index: int) -> Row | Drop:
    if not raw["text"].strip() or raw["text"].strip() == "ignore_time_segment_in_scoring":
        return _SILENT
    name = f"{raw['dataset']}-{index}"
    made = audio_fields(raw, name, TRANSCRIBE)
    return {
        "id": name,
        **made,
        "audio_path": sound_in(made),
        "expected_answer": raw["text"],
        "task_type": "ASR",
        "source_id": str(raw["id"]),
        "subset_for_metrics": raw["dataset"],
    }


def librispeech_pc(raw: Row, index: int) -> Row:
    path = PurePosixPath(raw["audio_filepath"])
    return {
        "id": path.stem,
        "messages": audio_messages(_EXACTLY, f"LibriSpeech/{path}", seconds=raw.get("duration")),
        "expected_answer": raw["text"],
        "audio_filepath": f"LibriSpeech/{path}",
        "duration": raw.get("duration"),
        "task_type": "ASR-PC",
        "sample_id": path.stem,
        "split": path.parts[0],
    }


def musan_row(raw: Row, index: int) -> Row:
    kinds = ("music", "noise", "speech")
    label = raw["label"]
    kind = label if label in kinds else kinds[label]
    made = audio_fields(raw, f"musan-{index}", TRANSCRIBE)
    return {
        "id": f"musan-{index}",
        **made,
        "audio_path": [sound_in(made)],
        "audio_duration": made["duration"],
        "dataset": "musan",
        "sample_id": str(index),
        "category": kind,
        "original_label": label,
        "task_type": "Hallucination",
        "question": TRANSCRIBE,
        "subset_for_metrics": f"musan_{kind}",
    }


_NUMBERS = {
    "test_neutral": TRANSCRIBE,
    "test_tn": f"{TRANSCRIBE} Write all numbers as words.",
    "test_itn": f"{TRANSCRIBE} Write all numbers with digits.",
}


def numb3rs_row(split: str, raw: Row, index: int) -> Row:
    return {
        "id": f"numb3rs-{index}",
        **audio_fields(raw, f"numb3rs-{index}", _NUMBERS[split]),
        "expected_answer": raw["text_itn" if split == "test_itn" else "text_tn"],
        "text_tn": raw["text_tn"],
        "text_itn": raw["text_itn"],
        "task_type": "ASR",
        "category": raw["category"],
        "sample_id": str(index),
        "subset_for_metrics": str(raw["category"]),
    }


def _benchmark(name: str, title: str, sources: tuple[Source, ...], row: RowMapper, **more: Any) -> Benchmark:
    return Benchmark(
        name=name,
        category="speech-audio",
        title=title,
        sources=sources,
        row=row,
        prompt="",
        defaults={"prompt_format": "openai"},
        grader="audio",
        metric="audio",
        requires="newskills[media]",
        unverified=True,
        **more,
    )


_LEADERBOARD = (
    "{ami/test,common_voice/test,earnings22/test,gigaspeech/test,librispeech/test.clean,librispeech/test.other,"
    "spgispeech/test,tedlium/test,voxpopuli/test}"
)
_MANIFESTS = "https://www.openslr.org/resources/145/manifests.tar.gz"
BENCHMARKS = (
    _benchmark(
        "asr-leaderboard",
        "Open ASR Leaderboard: nine English test sets",
        (Source(hf="hf-audio/esb-datasets-test-only-sorted", config=_LEADERBOARD),),
        leaderboard_row,
        options={"datasets": rows_with("subset_for_metrics", "only these data sets")},
        grader_config={"normalization_mode": "hf_leaderboard"},
        licence="mixed, by data set",
        homepage="https://huggingface.co/spaces/hf-audio/open_asr_leaderboard",
        citation="arXiv:2510.06961",
        traps=(
            "The leaderboard's number is the mean over the data sets, not over all words: look at the subsets.",
            "The hub converts only the first gigabytes of large data sets to parquet: compare the number of rows.",
        ),
    ),
    _benchmark(
        "librispeech-pc",
        "LibriSpeech-PC: read books, with punctuation and case",
        tuple(
            Source(split=split, url=_MANIFESTS, members=f"*{split}.json") for split in ("test-clean", "test-other")
        ),
        librispeech_pc,
        split="test-clean",
        licence="CC-BY-4.0",
        homepage="https://www.openslr.org/145/",
        citation="arXiv:2310.02943",
        traps=(
            "The sound comes apart: unpack test-clean.tar.gz and test-other.tar.gz of openslr.org/12 in "
            "<data_dir>/librispeech-pc.",
        ),
    ),
    _benchmark(
        "numb3rs",
        "Numb3rs: spoken numbers as words or digits",
        tuple(Source(split=split, hf="nvidia/Numb3rs", hf_split="test") for split in _NUMBERS),
        partial(numb3rs_row, "test_neutral"),
        variants={split: partial(numb3rs_row, split) for split in _NUMBERS},
        split="test_neutral",
        options={"categories": rows_with("category", "only numbers of these kinds")},
        grader_config={"normalization_mode": "no_tn_itn", "reference_fields": ["text_tn", "text_itn"]},
        licence="unstated",
        homepage="https://huggingface.co/datasets/nvidia/Numb3rs",
        traps=(
            "`wer` is against the words; `wer_text_itn` against digits: without an instruction either may be right.",
        ),
    ),
    _benchmark(
        "musan",
        "MUSAN: music and noise without words to write down",
        (Source(hf="FluidInference/musan", hf_split="train"),),
        musan_row,
        options={
            "categories": kept_if(
                "only music, speech or noise",
                lambda row, values: row["subset_for_metrics"].removeprefix("musan_") in values,
            ),
            "max_samples": first_rows(),
        },
        items={"test": 2016},
        headline="`success_rate`: share of replies without a word",
        licence="CC-BY-4.0",
        homepage="https://www.openslr.org/17/",
        citation="arXiv:1510.08484",
        traps=(
            "Right is a reply without a word; text that the model invents is the error.",
            "The subset musan_speech does hold speech: leave it out where hallucination is what you measure.",
        ),
    ),
)
