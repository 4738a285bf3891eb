# SPDX-License-Identifier: Apache-2.0
"""Questions and tasks over long texts, each task with its own measure.

LooGLE (arXiv:2311.04939), BABILong (arXiv:2406.10149), LongBench (arXiv:2308.14508), InfiniteBench (arXiv:2402.13718).
"""

import ast
from collections.abc import Iterator
from string import ascii_uppercase

from newskills.base.benchmark import Benchmark, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_LOOGLE = "https://raw.githubusercontent.com/bigai-nlco/LooGLE/main/LooGLE-testdata/{longdep_qa,shortdep_qa}.jsonl"
_BRIEF = "Answer in as few words as possible, on a last line that begins with 'Answer: '."
_SENTENCE = "Answer from the facts in the text above, with one short sentence and nothing else."
_PLACES = ["bathroom", "bedroom", "garden", "hallway", "kitchen", "office"]
_PEOPLE_AND_THINGS = ["Bill", "Fred", "Jeff", "Mary", "apple", "football", "milk"]
# LongBench: task → (measure, what to do).
_LONGBENCH = {
    **dict.fromkeys(
        (
            "narrativeqa",
            "qasper",
            "multifieldqa_en",
            "multifieldqa_zh",
            "hotpotqa",
            "2wikimqa",
            "musique",
            "triviaqa",
        ),
        ("f1", f"Answer the question about the text. {_BRIEF}"),
    ),
    "dureader": ("rouge_l", "Answer the question about the text."),
    "vcsum": ("rouge_l", "Summarise the text."),
    **dict.fromkeys(("gov_report", "multi_news"), ("summary", "Summarise the text.")),
    "qmsum": ("summary", "Answer the request about the meeting in the text."),
    "samsum": ("summary", "Summarise the last dialogue as those before it are."),
    **dict.fromkeys(("trec", "lsht"), ("class", "Give the class of the last item, as in the text's examples.")),
    "passage_count": (
        "count",
        "How many different paragraphs are there, without repetitions? Give the number only.",
    ),
    **dict.fromkeys(
        ("passage_retrieval_en", "passage_retrieval_zh"),
        ("retrieval", "Which paragraph is the summary of? Give its number only."),
    ),
    **dict.fromkeys(("lcc", "repobench-p"), ("code", "Write the next line of the code, and nothing else.")),
}
_LONGBENCH_GROUPS = {
    "single-document": ["narrativeqa", "qasper", "multifieldqa_en", "multifieldqa_zh"],
    "several-documents": ["hotpotqa", "2wikimqa", "musique", "dureader"],
    "summaries": ["gov_report", "qmsum", "multi_news", "vcsum"],
    "examples": ["trec", "triviaqa", "samsum", "lsht"],
    "made-up": ["passage_count", "passage_retrieval_en", "passage_retrieval_zh"],
    "code": ["lcc", "repobench-p"],
}
# InfiniteBench: task → (measure, what to do).
_INFINITE = {
    "passkey": ("first_number", "Give the pass key that the text hides."),
    "number_string": ("first_number", "Give the sequence of digits that the text hides."),
    "kv_retrieval": ("contains", "Give the value that is asked for."),
    "longbook_qa_eng": ("f1", f"Answer the question about the book. {_BRIEF}"),
    "longbook_qa_chn": ("f1_characters", f"Answer the question about the book. {_BRIEF}"),
    "longbook_sum_eng": ("rouge_l_lines", "Summarise the book."),
    "longbook_choice_eng": ("choice", "Choose the right option, and give its letter, alone."),
    "longdialogue_qa_eng": ("contains", "Who is $$MASK$$ in the script? Give the name only."),
    "code_debug": ("choice", "Which function has an error? Give the letter of the option, alone."),
    "code_run": ("last_number", "What does the last function return? Give the number only."),
    "math_find": ("first_number", "Do what is asked with the list of numbers. Give the number only."),
    "math_calc": (
        "sequence",
        "Give the value after each step of the calculation, as numbers with commas between.",
    ),
}


_HEADLINES = {
    "babilong": "`score`: share of questions with the right label; of each length apart",
    "longbench": "`task_mean`: mean of six groups of tasks, each the mean of its tasks' own measures",
}


def loogle_rows(raw: Row, index: int) -> Iterator[Row]:
    """Yield the questions of one text."""
    for number, pair in enumerate(ast.literal_eval(raw["qa_pairs"])):
        yield {
            "id": f"{raw['_file'].partition('.')[0]}-{index}-{number}",
            "question": f"{raw['input']}\n\n{pair['Q']}",
            "expected_answer": " ".join(str(pair["A"]).split()),
            "title": raw["title"],
            "subset_for_metrics": raw["_file"].partition(".")[0],
        }


def babilong_row(raw: Row, index: int) -> Row:
    task = raw["_split"]
    return {
        "question": f"{raw['input']}\n\n{raw['question']}\n\n{_SENTENCE}",
        "asked": raw["question"],
        "expected_answer": raw["target"],
        "all_classes": _PEOPLE_AND_THINGS if task == "qa5" else _PLACES,
        "measure": "label",
        "task": task,
        "subset_for_metrics": raw["_config"],
    }


def longbench_row(raw: Row, index: int) -> Row:
    measure, request = _LONGBENCH[raw["dataset"].removesuffix("_e")]
    question = f"\n\n{raw['input']}" if raw["input"] else ""
    return {
        "id": f"{raw['dataset']}-{raw['_id']}",
        "question": f"{request}\n\n{raw['context']}\n\n{request}{question}",
        "expected_answer": raw["answers"][0],
        "answers": raw["answers"],
        "all_classes": raw["all_classes"] or [],
        "measure": measure,
        "language": raw["language"] if raw["language"] in ("en", "zh") else "en",
        "subset_for_metrics": raw["dataset"],
    }


def infinitebench_row(raw: Row, index: int) -> Row:
    """Map a row; for tasks with options, the right one is a text, or the text and its letter."""
    task = raw["_split"]
    measure, request = _INFINITE[task]
    golds = raw["answer"] if isinstance(raw["answer"], list) else [raw["answer"]]
    options: Row = {}
    listing = ""
    if measure == "choice":
        options = choices("", raw["options"])
        golds = [ascii_uppercase[raw["options"].index(golds[0])]]
        listing = f"\n\n{options.pop('problem').strip()}"
    answers = [str(gold) for gold in golds]
    if measure == "sequence":
        answers = [", ".join(answers)]
    return {
        "id": f"{task}-{raw['id']}",
        "question": f"{request}\n\n{raw['context']}\n\n{raw['input']}{listing}\n\n{request}",
        **options,
        "expected_answer": str(golds[0]),
        "answers": answers,
        "measure": measure,
        "language": "zh" if task.endswith("chn") else "en",
        "subset_for_metrics": task,
    }


_HEDGEABLE = {
    "infinitebench": "in kv_retrieval and longdialogue_qa_eng the right text may stand anywhere in a reply, as the "
    "authors score it",
}


def _benchmark(
    name: str, title: str, source: Source, row: RowMapper, items: int, paper: str, *traps: str
) -> Benchmark:
    if row is loogle_rows:
        prompt, grader = "generic/short-answer", "short_answer"
    else:
        prompt, grader = "generic/default", "long_text"
    homepage = "https://github.com/bigai-nlco/LooGLE"
    if source.hf:
        homepage = f"https://huggingface.co/datasets/{source.hf}"
    return Benchmark(
        name=name,
        category="long-context",
        title=title,
        sources=(source,),
        row=row,
        prompt=prompt,
        grader=grader,
        metric=grader,
        metric_config={"groups": _LONGBENCH_GROUPS} if row is longbench_row else {},
        headline=_HEADLINES.get(name, ""),
        hedgeable=_HEDGEABLE.get(name, ""),
        items={"test": items} if items else {},
        licence="Apache-2.0" if row is babilong_row else "MIT",
        homepage=homepage,
        citation=paper,
        unverified=row is not loogle_rows,
        traps=traps,
    )


BENCHMARKS = (
    _benchmark(
        "loogle",
        "LooGLE: questions about texts newer than models, the public samples",
        Source(url=_LOOGLE, revision="6734382215bea3a63f055ffd7873b2967b6a2477"),
        loogle_rows,
        123,
        "arXiv:2311.04939",
        "The repository's samples: ten texts, of which five belong to each kind of question.",
        "Some right answers are sentences: f1 says more than em.",
    ),
    _benchmark(
        "babilong",
        "BABILong: facts scattered in books, up to 128,000 tokens",
        Source(
            hf="RMT-team/babilong-1k-samples",
            config="{0k,1k,2k,4k,8k,16k,32k,64k,128k}",
            hf_split="{qa1,qa2,qa3,qa4,qa5}",
        ),
        babilong_row,
        0,
        "arXiv:2406.10149",
        "Tasks qa1 to qa5 of twenty. Each length from 0k to 128k is a subset with a score of its own; the score over "
        "all says little.",
        "Right is a first sentence that names the right place, person or thing and no other, as for the authors: "
        "see [Agreement](../agreement.md).",
    ),
    _benchmark(
        "longbench",
        "LongBench: 21 tasks in English and Chinese",
        Source(hf="Xnhyacinth/LongBench", config=f"{{{','.join(_LONGBENCH)}}}"),
        longbench_row,
        4750,
        "arXiv:2308.14508",
        "Headline: the mean of the paper's six groups of tasks, English and Chinese together; score is over all rows.",
        "Each task has its own measure; Chinese is compared by characters, not by words as in the paper. English ones "
        "are those of the authors: see [Agreement](../agreement.md).",
        "Texts are given whole, and requests are ours.",
    ),
    _benchmark(
        "infinitebench",
        "InfiniteBench: 12 tasks over 100,000 tokens",
        Source(hf="xinrongzhang2022/InfiniteBench", hf_split=f"{{{','.join(_INFINITE)}}}"),
        infinitebench_row,
        3946,
        "arXiv:2402.13718",
        "Each task has its own measure, that of the authors: see [Agreement](../agreement.md). Requests are ours.",
    ),
)
