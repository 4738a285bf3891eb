# SPDX-License-Identifier: Apache-2.0
"""Five of LegalBench's 162 tasks, those of HELM and lm-evaluation-harness (Guha et al. 2023, arXiv:2308.11462).

Configurations and fields: tasks/legalbench of lm-evaluation-harness (4e7e0d4) and the tasks' train.tsv in
HazyResearch/legalbench (ce48244); balanced accuracy: its evaluation.py.
"""

from collections.abc import Sequence

from msgspec import Struct

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


class _Task(Struct, frozen=True):
    """What is asked; `form` has the fields of a row in braces; `answers` in the order of the options."""

    form: str
    answers: Sequence[str]


_YES_NO = ("Yes", "No")
_TASKS = {
    "abercrombie": _Task(
        "How distinctive is this mark for its product? Generic: the product's common name. Descriptive: it names a "
        "quality of the product. Suggestive: it hints at a quality. Arbitrary: a real word that has nothing to do with "
        "the product. Fanciful: an invented word.\n\n{text}",
        ("generic", "descriptive", "suggestive", "arbitrary", "fanciful"),
    ),
    "corporate_lobbying": _Task(
        "Might this bill of the US Congress matter at least somewhat to the company's profit, if it became law?\n\n"
        "Title of the bill: {bill_title}\n\nSummary of the bill: {bill_summary}\n\nCompany: {company_name}\n\n"
        "What the company does: {company_description}",
        _YES_NO,
    ),
    "function_of_decision_section": _Task(
        "What does this part of a court's decision do? Facts: what led to the case. Procedural History: the course of "
        "the case so far. Issue: the question to be decided. Rule: the law that matters for it. Analysis: the law "
        "applied to the facts. Conclusion: what the court concludes. Decree: the order that ends the case.\n\n"
        "{Paragraph}",
        ("Facts", "Procedural History", "Issue", "Rule", "Analysis", "Conclusion", "Decree"),
    ),
    "international_citizenship_questions": _Task(
        "Answer by the law as it was on 1 January 2020.\n\n{question}", _YES_NO
    ),
    "proa": _Task(
        "Does this clause give private persons a right to sue under the statute (a private right of action)?\n\n{text}",
        _YES_NO,
    ),
}


def row(raw: Row, index: int) -> Row:
    name = raw["_config"]
    task = _TASKS[name]
    folded = [answer.casefold() for answer in task.answers]
    answer = str(raw["answer"]).strip().casefold()
    if answer not in folded:
        raise ValueError(f"{name}: the answer {raw['answer']!r} is none of {', '.join(task.answers)}")
    question = task.form.format_map({key: str(value) for key, value in raw.items()})
    return {
        "id": f"{name}-{raw['index']}",
        "question": question,
        **choices(question, task.answers),
        "expected_answer": "ABCDEFG"[folded.index(answer)],
        "subset_for_metrics": name,
    }


BENCHMARK = Benchmark(
    name="legalbench-five",
    category="reasoning",
    title="LegalBench: five of its 162 tasks, those of HELM",
    sources=(Source(hf="nguha/legalbench", config=f"{{{','.join(_TASKS)}}}"),),
    row=row,
    prompt="generic/mcq",
    grader="multichoice",
    metric="balanced",
    licence="by task; see the data set's page",
    homepage="https://huggingface.co/datasets/nguha/legalbench",
    citation="arXiv:2308.11462",
    chance=0.37,
    unverified=True,
    traps=(
        "Headline: balanced_accuracy, as the authors score these tasks, and the mean of the five; HELM shows accuracy.",
        "Not all of LegalBench: the other tasks need prompts of their own. Ours give no examples.",
    ),
)
