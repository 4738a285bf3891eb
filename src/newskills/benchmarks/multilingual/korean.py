# SPDX-License-Identifier: Apache-2.0
"""Korean knowledge as choices, in Korean words.

KMMLU (arXiv:2402.11548), its corrected and professional versions (arXiv:2507.08924), KorMedMCQA (arXiv:2403.01469),
CLIcK (arXiv:2403.06412).
"""

from collections.abc import Sequence

from newskills.base.benchmark import Benchmark, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_ANSWER = r"정답\s*[:：]\s*\**\s*([A-E])"
_KMMLU = (
    "Accounting,Agricultural-Sciences,Aviation-Engineering-and-Maintenance,Biology,Chemical-Engineering,Chemistry,"
    "Civil-Engineering,Computer-Science,Construction,Criminal-Law,Ecology,Economics,Education,"
    "Electrical-Engineering,Electronics-Engineering,Energy-Management,Environmental-Science,Fashion,Food-Processing,"
    "Gas-Technology-and-Engineering,Geomatics,Health,Industrial-Engineer,Information-Technology,"
    "Interior-Architecture-and-Design,Korean-History,Law,Machine-Design-and-Manufacturing,Management,"
    "Maritime-Engineering,Marketing,Materials-Engineering,Math,Mechanical-Engineering,Nondestructive-Testing,Patent,"
    "Political-Science-and-Sociology,Psychology,Public-Safety,Railway-and-Automotive-Engineering,Real-Estate,"
    "Refrigerating-Machinery,Social-Welfare,Taxation,Telecommunications-and-Wireless-Technology"
)


def choice_fields(question: str, options: Sequence[str], right: int, subject: str = "") -> Row:
    """Return a question with options; `right`: 1 for the first option."""
    if not 1 <= right <= len(options):
        raise ValueError(f"the answer is option {right} of {len(options)}")
    fields = {
        **choices(question, [str(option) for option in options]),
        "expected_answer": "ABCDE"[right - 1],
        "extract_from_boxed": False,
        "relaxed": False,
        "extract_regex": _ANSWER,
    }
    if subject:
        fields["subset_for_metrics"] = subject
    return fields


def kmmlu_row(raw: Row, index: int) -> Row:
    options = [raw[letter] for letter in "ABCD"]
    return choice_fields(raw["question"], options, int(raw["answer"]), raw["Category"])


def licence_exam_row(raw: Row, index: int) -> Row:
    """Return the row of a question whose solution is a number from 1 or a letter."""
    raw_answer = str(raw["solution"]).strip()
    right = int(raw_answer) if raw_answer.isdigit() else "ABCDE".index(raw_answer.upper()) + 1
    subject = str(raw.get("license_name") or raw.get("category") or "")
    return choice_fields(raw["question"], raw["options"], right, subject)


def medicine_row(raw: Row, index: int) -> Row:
    options = [raw[letter] for letter in "ABCDE"]
    return choice_fields(raw["question"], options, int(raw["answer"]), raw.get("_config", ""))


def click_row(raw: Row, index: int) -> Row:
    right = raw["choices"].index(raw["answer"]) + 1
    fields = choice_fields(raw["question"], raw["choices"], right, raw["category"])
    passage = f"{raw['paragraph']}\n\n" if raw.get("paragraph") else ""
    return {**fields, "problem": passage + fields["problem"]}


def _benchmark(
    name: str, title: str, source: Source, row: RowMapper, items: int, licence: str, paper: str
) -> Benchmark:
    options = 4 if row is kmmlu_row or name == "kmmlu-redux" else 5
    return Benchmark(
        name=name,
        category="multilingual",
        title=title,
        sources=(source,),
        row=row,
        prompt=f"eval/korean/mcq-{options}choices",
        grader="multichoice",
        metric="multichoice",
        items={"test": items} if items else {},
        licence=licence,
        homepage=f"https://huggingface.co/datasets/{source.hf or 'HAERAE-HUB/KMMLU'}",
        citation=paper,
        chance=1 / options,
        unverified=True,
        traps=("The instruction is Korean; an answer must end with 정답: and the letter.",),
    )


BENCHMARKS = (
    _benchmark(
        "kmmlu",
        "KMMLU: Korean multiple choice in 45 subjects",
        Source(
            url=f"https://huggingface.co/datasets/HAERAE-HUB/KMMLU/resolve/main/data/{{{_KMMLU}}}-test.csv",
            format="csv",
        ),
        kmmlu_row,
        35030,
        "CC-BY-ND-4.0",
        "arXiv:2402.11548",
    ),
    _benchmark(
        "kmmlu-pro",
        "KMMLU-Pro: Korean professional licences",
        Source(hf="LGAI-EXAONE/KMMLU-Pro"),
        licence_exam_row,
        2822,
        "CC-BY-NC-ND-4.0",
        "arXiv:2507.08924",
    ),
    _benchmark(
        "kmmlu-redux",
        "KMMLU-Redux: KMMLU without its errors",
        Source(hf="LGAI-EXAONE/KMMLU-Redux"),
        licence_exam_row,
        2587,
        "CC-BY-NC-ND-4.0",
        "arXiv:2507.08924",
    ),
    _benchmark(
        "kormedmcqa",
        "KorMedMCQA: Korean examinations for health professions",
        Source(hf="sean0042/KorMedMCQA", config="{dentist,doctor,nurse,pharm}"),
        medicine_row,
        0,
        "CC-BY-NC-2.0",
        "arXiv:2403.01469",
    ),
    _benchmark(
        "click",
        "CLIcK: Korean culture and language",
        Source(hf="EunsuKim/CLIcK", hf_split="train"),
        click_row,
        1995,
        "unstated",
        "arXiv:2403.06412",
    ),
)
