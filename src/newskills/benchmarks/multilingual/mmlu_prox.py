# SPDX-License-Identifier: Apache-2.0
"""MMLU-Pro in many languages (Xuan et al. 2025, arXiv:2503.10497)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.options import sources_with
from newskills.benchmarks.text import choices

# Language → (what to do, how the answer is to begin).
_WORDS = {
    "en": (
        "This is a multiple-choice question about {}. Think step by step, then finish with "
        '"the answer is (X)", where X is the letter of the right option.',
        r"[Tt]he answer is:?\s*\(?([A-J])\)?",
    ),
    "de": (
        "Dies ist eine Multiple-Choice-Frage über {}. Denke Schritt für Schritt und schließe mit "
        "„Die Antwort ist (X)“, wobei X der Buchstabe der richtigen Option ist.",
        r"[Dd]ie Antwort ist:?\s*\(?([A-J])\)?",
    ),
    "es": (
        "Esta es una pregunta de opción múltiple sobre {}. Piensa paso a paso y termina con "
        "«La respuesta es (X)», donde X es la letra de la opción correcta.",
        r"[Ll]a respuesta es:?\s*\(?([A-J])\)?",
    ),
    "fr": (
        "Voici une question à choix multiples sur {}. Réfléchis étape par étape et termine par "
        "« La réponse est (X) », où X est la lettre de la bonne option.",
        r"[Ll]a réponse est\s*:?\s*\(?([A-J])\)?",
    ),
    "it": (
        "Questa è una domanda a scelta multipla su {}. Ragiona passo dopo passo e concludi con "
        "«La risposta è (X)», dove X è la lettera dell'opzione corretta.",
        r"[Ll]a risposta è:?\s*\(?([A-J])\)?",
    ),
    "ja": (
        "以下は{}に関する選択問題です。順を追って考え、最後に「答えは (X) です」と書いてください。"
        "X は正しい選択肢の文字です。",
        r"答えは\s*[(（]?([A-JＡ-Ｊ])[)）]?",
    ),
}


def row(raw: Row, index: int) -> Row:
    language = raw["_config"]
    description, pattern = _WORDS[language]
    raw_options = [raw[f"option_{place}"] for place in range(10)]
    options = [str(option) for option in raw_options if option not in (None, "", "N/A")]
    right = raw["answer"]
    if right not in tuple("ABCDEFGHIJ"[: len(options)]):
        raise ValueError(f"the answer is {right!r}, and there are {len(options)} options")
    fields = choices(raw["question"], options)
    return {
        **fields,
        "id": f"{language}-{raw.get('question_id', index)}",
        "question": fields["problem"],
        "expected_answer": right,
        "description": description.replace("{}", raw["category"]),
        "extract_from_boxed": False,
        "extract_regex": pattern,
        "examples_type": "",
        "subset_for_metrics": language,
        "category": raw["category"],
        "target_language": language,
    }


BENCHMARK = Benchmark(
    name="mmlu-prox",
    category="multilingual",
    title="MMLU-ProX: MMLU-Pro in six languages",
    aliases=("mmlu_prox", "ns_mmlu_prox"),
    sources=(Source(hf="li-lab/MMLU-ProX", config="{en,de,es,fr,it,ja}"),),
    row=row,
    options={"languages": sources_with("config", "only these languages", *_WORDS, usual=" ".join(_WORDS))},
    prompt="multilingual/mmlu-prox",
    grader="multichoice",
    metric="multichoice",
    items={"test": 6 * 11759},
    licence="MIT",
    homepage="https://huggingface.co/datasets/li-lab/MMLU-ProX",
    citation="arXiv:2503.10497",
    chance=0.11,
    unverified=True,
    traps=(
        "Instruction and answer phrase are in the language of the question, in words of ours: the field "
        "extract_regex has the phrase.",
        "No examples are given; the paper gives five.",
    ),
)
