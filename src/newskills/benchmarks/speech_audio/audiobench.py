# SPDX-License-Identifier: Apache-2.0
"""Data sets of speech and sound, some judged by a model (Wang et al. 2024, arXiv:2406.16020)."""

import re
from collections.abc import Mapping

from newskills.base.benchmark import Benchmark, Group, Judge, Source
from newskills.base.records import Row
from newskills.benchmarks.media import TRANSCRIBE, audio_messages, embedded_asset
from newskills.benchmarks.scores import entries, headline

_COUNTED = (
    "librispeech_test_clean,librispeech_test_other,common_voice_15_en_test,peoples_speech_test,gigaspeech_test,"
    "earnings21_test,earnings22_test,tedlium3_test,tedlium3_long_form_test,aishell_asr_zh_test,covost2_en_id_test,"
    "covost2_en_zh_test,covost2_en_ta_test,covost2_id_en_test,covost2_zh_en_test,covost2_ta_en_test"
)
_JUDGED = (
    "cn_college_listen_mcq_test,slue_p2_sqa5_test,dream_tts_mcq_test,public_sg_speech_qa_test,openhermes_audio_test,"
    "alpaca_audio_test,audiocaps_qa_test,wavcaps_qa_test,clotho_aqa_test,iemocap_emotion_test,meld_sentiment_test,"
    "meld_emotion_test,voxceleb_accent_test,voxceleb_gender_test,iemocap_gender_test,mu_chomusic_test"
)
_LANGUAGES = {"en": "English", "id": "Indonesian", "ta": "Tamil", "zh": "Chinese"}
_VOICES = {
    "emotion": "Which emotion does the speaker show? Answer in a few words.",
    "sentiment": "Is the speaker's mood positive, negative or neutral? Answer in a few words.",
    "accent": "Which accent does the speaker have, judged by the sound? Answer in a few words.",
    "gender": "Is the speaker a man or a woman, judged by the voice? Answer in a few words.",
}
_PAIR = re.compile(r"covost2_([a-z]{2})_([a-z]{2})_test")


def row(raw: Row, index: int) -> Row:
    name = raw["_hf"].partition("/")[2]
    pair = _PAIR.fullmatch(name)
    sound = embedded_asset(raw["context"], f"{name}-{index}")
    if pair is not None:
        task_type, target = "AST", pair[2]
        languages: Row = {"source_language": pair[1], "target_language": target}
    else:
        task_type, target = "ASR", ""
        languages = {"language": "zh" if "_zh_" in name else "en"}
    if name not in _COUNTED.split(","):
        task_type = "QA"
    request = _request_text(name, raw, target)
    return {
        "id": f"{name}-{index}",
        "messages": audio_messages(request, sound),
        "audio_path": sound,
        "question": str(raw.get("speech_instruction") or request),
        "expected_answer": raw["answer"],
        "task_type": task_type,
        **languages,
        "dataset": name,
        "sample_id": str(index),
        "subset_for_metrics": name,
    }


def _request_text(name: str, raw: Row, target: str) -> str:
    """Return what is asked about the sound; the data sets of recognition, translation and voices leave that to the
    user."""
    if target:
        return f"Translate the speech into {_LANGUAGES[target]}. Reply with the translation, and nothing else."
    if name in _COUNTED.split(","):
        return TRANSCRIBE
    if "speech_instruction" in raw:
        return "Do what the speaker asks for."
    if kind := next((kind for kind in _VOICES if f"_{kind}_" in name), ""):
        return _VOICES[kind]
    return "\n".join(filter(None, (str(raw["instruction"]), str(raw.get("choices") or ""))))


_NORMALIZATION: Row = {"normalization_mode": "audiobench", "strip_helpful_prefixes": True}
_JUDGE_SCORE = "`judge_score`: points of the judge, 0 to 5, in percent of the most"


def _benchmark(part: str, title: str, names: str, judge: Judge | None) -> Benchmark:
    if judge is None:
        grader, config, headline_text = "audio", _NORMALIZATION, ""
    else:
        grader, config, headline_text = "", {}, _JUDGE_SCORE
    return Benchmark(
        name=f"audiobench.{part}",
        category="speech-audio",
        title=title,
        sources=(Source(hf=f"AudioLLMs/{{{names}}}"),),
        row=row,
        prompt="",
        defaults={"prompt_format": "openai"},
        grader=grader,
        grader_config=config,
        judge=judge,
        metric="audio",
        headline=headline_text,
        version="2",
        licence="mixed, by data set",
        homepage="https://github.com/AudioLLMs/AudioBench",
        citation="arXiv:2406.16020",
        requires="newskills[media,translation]",
        unverified=True,
        traps=("The tables by data set say more than their mean: tasks and scales differ.",),
    )


BENCHMARKS = (
    _benchmark("nonjudge", "AudioBench: recognition and translation", _COUNTED, None),
    _benchmark(
        "judge",
        "AudioBench: questions about speech and sound",
        _JUDGED,
        Judge(
            prompt="judge/audiobench",
            grader="audio_rating",
            model="meta-llama/Meta-Llama-3.1-70B-Instruct",
            server_type="vllm",
        ),
    ),
)


def score(members: Mapping[str, Mapping[str, Row]]) -> Row:
    """Average over the members that have a metric, each counted by its problems."""
    scores_by_name: dict[str, float] = {}
    for metric in ("success_rate", "wer", "bleu", "judge_score"):
        having = [modes for modes in members.values() if metric in modes["pass@1"]]
        if total := sum(map(entries, having)):
            scores_by_name[metric] = sum(entries(modes) * headline(modes, metric) for modes in having) / total
    return scores_by_name


GROUP = Group(
    name="audiobench",
    category="speech-audio",
    title="AudioBench: speech and sound in 32 data sets",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    score=score,
    columns=("success_rate", "wer", "bleu", "judge_score"),
    homepage="https://github.com/AudioLLMs/AudioBench",
    citation="arXiv:2406.16020",
)
