# SPDX-License-Identifier: Apache-2.0
"""MMLU in 42 languages, with what depends on a culture marked (Singh et al. 2024, arXiv:2412.03304).

Fields, configurations and splits: the tasks global_mmlu (Lite) and global_mmlu_full of lm-evaluation-harness
(4e7e0d4), and global_mmlu of lighteval (3fd1526), which leaves out rows with an empty option, too.
"""

from newskills.base.benchmark import Benchmark, Drop, Source
from newskills.base.records import Row
from newskills.benchmarks.options import sources_with
from newskills.benchmarks.text import choices

_LANGUAGES = (
    "am,ar,bn,cs,de,el,en,es,fa,fil,fr,ha,he,hi,id,ig,it,ja,ko,ky,lt,mg,ms,ne,nl,ny,pl,pt,ro,ru,si,sn,so,sr,sv,sw,te,"
    "tr,uk,vi,yo,zh"
)
_LITE = "ar,bn,de,en,es,fr,hi,id,it,ja,ko,pt,sw,yo,zh"
_CULTURES = {"CS": "culturally-sensitive", "CA": "culturally-agnostic"}


def row(raw: Row, index: int) -> Row | Drop:
    options = [raw[f"option_{letter}"] for letter in "abcd"]
    if not all(isinstance(option, str) and option.strip() for option in options):
        return Drop("an option is empty")
    if raw["answer"] not in tuple("ABCD"):
        raise ValueError(f"the answer is {raw['answer']!r}")
    culture = _CULTURES.get(raw["cultural_sensitivity_label"])
    return {
        "id": f"{raw['_config']}-{raw['sample_id']}",
        "question": raw["question"],
        **choices(raw["question"], options),
        "expected_answer": raw["answer"],
        "subject": raw["subject"],
        "subset_for_metrics": [raw["_config"], *([culture] if culture else [])],
    }


def _benchmark(name: str, title: str, hf: str, languages: str, licence: str, *traps: str) -> Benchmark:
    return Benchmark(
        name=name,
        category="multilingual",
        title=title,
        sources=(Source(hf=hf, config=f"{{{languages}}}"),),
        row=row,
        options={"languages": sources_with("config", "only these languages", *languages.split(","), usual="all")},
        prompt="generic/mcq",
        grader="multichoice",
        metric="multichoice",
        licence=licence,
        homepage=f"https://huggingface.co/datasets/{hf}",
        citation="arXiv:2412.03304",
        chance=0.25,
        unverified=True,
        traps=(
            "The score is over all questions; the languages have as many, so that it is their mean, too.",
            "Harnesses compare the likelihoods of the four letters; here the model answers in words.",
            *traps,
        ),
    )


BENCHMARKS = (
    _benchmark(
        "global-mmlu",
        "Global-MMLU: MMLU in 42 languages",
        "CohereLabs/Global-MMLU",
        _LANGUAGES,
        "Apache-2.0",
        "42 times 14,042 questions: choose some by --languages.",
        "Most translations are by machine; global-mmlu-lite has those that people made or checked.",
    ),
    _benchmark(
        "global-mmlu-lite",
        "Global-MMLU-Lite: 15 languages, half of it culturally sensitive",
        "CohereLabs/Global-MMLU-Lite",
        _LITE,
        "Apache-2.0",
    ),
)
