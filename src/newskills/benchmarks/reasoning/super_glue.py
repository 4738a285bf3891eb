# SPDX-License-Identifier: Apache-2.0
"""Tasks of SuperGLUE (Wang et al. 2019, arXiv:1905.00537) that have no file of their own: CB, WiC, WSC, MultiRC,
ReCoRD.

`context` and `continuations` are for the solver `loglikelihood`.
"""

import re
from collections.abc import Callable

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.reasoning.nli import THREE, nli_fields
from newskills.benchmarks.text import BY_LIKELIHOOD, yes_no

_HIGHLIGHT = "\n@highlight\n"
_PLACEHOLDER = "@placeholder"
_CB_ORDER = (0, 2, 1)
"""Places of entailment, contradiction and neutral, the labels of CB, in `THREE`."""
_NOT_A_CHOICE = re.compile(r"\s+")


def cb_row(raw: Row, index: int) -> Row:
    label = int(raw["label"])
    if label not in range(3):
        raise ValueError(f"the label is {label}; 0 to 2 are expected")
    premise, hypothesis = raw["premise"], raw["hypothesis"]
    return {
        **nli_fields(premise, hypothesis, THREE, _CB_ORDER[label]),
        "context": f"{premise}\nQuestion: {hypothesis}. True, False, or Neither?\nAnswer:",
        "continuations": [" True", " Neither", " False"],
    }


def _yes_or_no(raw: Row, question: str, context: str) -> Row:
    label = int(raw["label"])
    if label not in (0, 1):
        raise ValueError(f"the label is {label}; 0 or 1 is expected")
    return {**yes_no(question, label == 1), "context": context, "continuations": [" yes", " no"]}


def wic_row(raw: Row, index: int) -> Row:
    first, second = raw["sentence1"], raw["sentence2"]
    word = first[int(raw["start1"]) : int(raw["end1"])]
    sentences = f"Sentence 1: {first}\nSentence 2: {second}\n"
    return _yes_or_no(
        raw,
        f"{sentences}\nDoes the word '{word}' have the same meaning in both sentences?",
        f"{sentences}Question: Is the word '{word}' used in the same way in the two sentences above?\nAnswer:",
    )


def wsc_row(raw: Row, index: int) -> Row:
    words = raw["text"].split()
    pronoun, noun, at = raw["span2_text"], raw["span1_text"], int(raw["span2_index"])
    before = " ".join(words[:at])
    rest = _NOT_A_CHOICE.sub(" ", raw["text"])[len(before) + bool(before) :]
    if not rest.startswith(pronoun):
        raise ValueError(f"'{pronoun}' is not word {at} of the text")
    marked = f"{before} *{pronoun}*{rest[len(pronoun) :]}".strip()
    return _yes_or_no(
        raw,
        f"{marked}\n\nDoes the marked word *{pronoun}* stand for '{noun}'?",
        f'Passage: {marked}\nQuestion: In the passage above, does the pronoun "*{pronoun}*" refer to '
        f'"*{noun}*"?\nAnswer:',
    )


def multirc_row(raw: Row, index: int) -> Row:
    text, question, answer = raw["paragraph"], raw["question"], raw["answer"]
    row = _yes_or_no(raw, f"{text}\n\nQuestion: {question}\nAnswer: {answer}\n\nIs this answer right?", "")
    verdicts = [f" {answer}\nIs the answer correct? {verdict}" for verdict in ("yes", "no")]
    return row | {"context": f"{text}\nQuestion: {question}\nAnswer:", "continuations": verdicts}


def record_row(raw: Row, index: int) -> Row:
    text, *highlights = raw["passage"].strip().split(_HIGHLIGHT)
    passage = "\n".join([text, "", *(f"- {highlight}" for highlight in highlights)])
    answers = sorted(set(raw["answers"]))
    sentence = raw["query"].replace(_PLACEHOLDER, "_____")
    names = ", ".join(sorted(set(raw["entities"])))
    return {
        "question": f"{passage}\n\n{sentence}\n\nWhich of these names belongs into the gap? {names}",
        "expected_answer": answers[0],
        "accepted_answers": answers[1:],
    }


def glue_benchmark(
    name: str, title: str, row: Callable[[Row, int], Row], items: int, source: Source, **more: object
) -> Benchmark:
    """Make a benchmark of GLUE or SuperGLUE, with yes or no for an answer where `more` says nothing else."""
    usual: Row = {
        "prompt": "generic/yes-no",
        "grader": "multichoice",
        "metric": "multichoice",
        "chance": 0.5,
        "traps": (BY_LIKELIHOOD,),
    }
    return Benchmark(
        name=name,
        category="reasoning",
        title=title,
        sources=(source,),
        row=row,
        split="validation",
        items={"validation": items},
        licence="by task; see the benchmark's page",
        unverified=True,
        **{**usual, **more},
    )


def _benchmark(name: str, title: str, row: Callable[[Row, int], Row], items: int, **more: object) -> Benchmark:
    config = "wsc.fixed" if name == "wsc" else name
    return glue_benchmark(
        name,
        title,
        row,
        items,
        Source(split="validation", hf="aps/super_glue", config=config),
        homepage="https://super.gluebenchmark.com",
        citation="arXiv:1905.00537",
        **more,
    )


BENCHMARKS = (
    _benchmark(
        "cb",
        "CommitmentBank: does it follow",
        cb_row,
        56,
        prompt="generic/nli",
        chance=1 / 3,
        traps=("Only 56 items: an interval is wide. The leaderboard adds macro F1.", BY_LIKELIHOOD),
    ),
    _benchmark(
        "wic",
        "Words in context: the same meaning in two sentences",
        wic_row,
        638,
    ),
    _benchmark(
        "wsc",
        "Winograd schemas of SuperGLUE: what a pronoun stands for",
        wsc_row,
        104,
        traps=("63 % of the answers are no: always saying so beats chance.", BY_LIKELIHOOD),
    ),
    _benchmark(
        "multirc",
        "MultiRC: is an answer to a question about a text right",
        multirc_row,
        4848,
        traps=(
            "Each answer counts for itself; SuperGLUE's leaderboard shows F1 and whole questions.",
            BY_LIKELIHOOD,
        ),
    ),
    _benchmark(
        "record",
        "ReCoRD: the name that belongs into a gap",
        record_row,
        10000,
        prompt="generic/short-answer",
        grader="short_answer",
        metric="short_answer",
        chance=0.0,
        traps=("The best of the right names counts: F1 and equality, as in the official script.",),
    ),
)
