# SPDX-License-Identifier: Apache-2.0
"""Tasks of lm_eval's own repository on data of ours.

Each includes the package's file and reads JSON lines instead of the hub. The rows have the fields of the data sets that
the tasks read, and are written here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

Row = dict[str, Any]
COUNT = 12

CITIES = ("Paris", "Lima", "Tokyo", "Nairobi", "Oslo", "Rome", "Quito", "Cairo", "Delhi", "Bern", "Accra", "Sofia")
LANDS = (
    "France",
    "Peru",
    "Japan",
    "Kenya",
    "Norway",
    "Italy",
    "Ecuador",
    "Egypt",
    "India",
    "Switzerland",
    "Ghana",
)


def city(number: int) -> str:
    return CITIES[number % len(CITIES)]


def cities(number: int, count: int = 4) -> list[str]:
    return [CITIES[(number + step) % len(CITIES)] for step in range(count)]


def land(number: int) -> str:
    return LANDS[number % len(LANDS)]


def lettered(number: int, count: int = 4) -> Row:
    letters = list("ABCDE"[:count])
    return {"choices": {"text": cities(number, count), "label": letters}, "answerKey": letters[number % count]}


def premise(number: int) -> Row:
    return {
        "premise": f"{city(number)} lies in {land(number)}.",
        "hypothesis": f"{city(number + 1)} is near",
        "idx": number,
    }


def pair(number: int) -> Row:
    return {
        "sentence1": f"The road to {city(number)} is long.",
        "sentence2": f"It is far to {city(number)}.",
        "sentence": f"{city(number)} road long is the.",
        "label": number % 2,
        "idx": number,
    }


def truthful(number: int) -> Row:
    names = cities(number, 3 + number % 2)
    return {
        "question": f"What is the capital of {land(number)}?",
        "mc1_targets": {"choices": names, "labels": [1] + [0] * (len(names) - 1)},
        "mc2_targets": {"choices": names, "labels": [1, 1] + [0] * (len(names) - 2)},
        "best_answer": names[0],
        "correct_answers": [names[0], f"It is {names[0]}."],
        "incorrect_answers": names[1:],
        "type": "x",
        "category": "Places",
        "source": "",
    }


def sums(number: int) -> Row:
    return {
        "question": f"What is {number} + {2 * number}?",
        "answer": f"{number} and {2 * number} make {3 * number}.\n#### {3 * number}",
    }


def endings(number: int) -> Row:
    return {
        "ind": number,
        "activity_label": "Travel",
        "ctx_a": f"A man flies to {city(number)}.",
        "ctx_b": "then he",
        "ctx": f"A man flies to {city(number)}. then he",
        "endings": [f"sees {name}. [substeps] again" for name in cities(number)],
        "label": str(number % 4),
        "source_id": "s",
        "split": "val",
        "split_type": "indomain",
    }


def drop(number: int) -> Row:
    answer = {
        "number": str(number),
        "date": {"day": "", "month": "", "year": ""},
        "spans": [],
        "worker_id": "",
        "hit_id": "",
    }
    if number % 3 == 0:
        answer = {**answer, "number": "", "spans": [city(number), city(number + 1)]}
    return {
        "section_id": "s",
        "query_id": f"q{number}",
        "passage": f"{number} gates stand in {city(number)} and {city(number + 1)}.",
        "question": "How many gates?",
        "answer": answer,
        "validated_answers": {
            "number": [str(number + 1)],
            "date": [{"day": "", "month": "", "year": ""}],
            "spans": [[]],
            "worker_id": [""],
            "hit_id": [""],
        },
    }


def page(number: int) -> Row:
    return {
        "page": f" = {city(number)} = \n\n {city(number)} , a town of {land(number)} , has 1 @,@ {number} houses .\n"
        * (1 + 40 * (number % 3))
    }


class LocalTask(NamedTuple):
    """`file`: below the package's folder of tasks; `split`: that of the documents; `row`: number → document."""

    file: str
    split: str
    row: Callable[[int], Row]
    more: Mapping[str, Any] = MappingProxyType({})


TASKS: dict[str, LocalTask] = {
    "arc_easy": LocalTask(
        "arc/arc_easy.yaml", "test", lambda n: {"id": str(n), "question": f"Capital of {land(n)}?", **lettered(n)}
    ),
    "arc_challenge": LocalTask(
        "arc/arc_challenge.yaml",
        "test",
        lambda n: {"id": str(n), "question": f"Town near {city(n)}?", **lettered(n + 1)},
        {"num_fewshot": 3},
    ),
    "hellaswag": LocalTask("hellaswag/hellaswag.yaml", "validation", endings),
    "piqa": LocalTask(
        "piqa/piqa.yaml",
        "validation",
        lambda n: {
            "goal": f"Go to {city(n)}",
            "sol1": "By train.",
            "sol2": f"By ship, from {city(n + 1)}.",
            "label": n % 2,
        },
        {"num_fewshot": 2},
    ),
    "winogrande": LocalTask(
        "winogrande/default.yaml",
        "validation",
        lambda n: {
            "sentence": f"{city(n)} beat {city(n + 1)} because _ was better.",
            "option1": city(n),
            "option2": city(n + 1),
            "answer": str(1 + n % 2),
        },
        {"num_fewshot": 2},
    ),
    "openbookqa": LocalTask(
        "openbookqa/openbookqa.yaml",
        "test",
        lambda n: {"id": str(n), "question_stem": f"The capital of {land(n)} is", **lettered(n)},
    ),
    "boolq": LocalTask(
        "super_glue/boolq/default.yaml",
        "validation",
        lambda n: {
            "passage": f"{city(n)} is a town.",
            "question": f"is {city(n)} a town",
            "idx": n,
            "label": n % 2,
        },
    ),
    "sciq": LocalTask(
        "sciq/sciq.yaml",
        "test",
        lambda n: {
            "support": f" {land(n)} has a capital.",
            "question": "Which?",
            "distractor1": city(n + 1),
            "distractor2": city(n + 2),
            "distractor3": city(n + 3),
            "correct_answer": city(n),
        },
        {"num_fewshot": 1},
    ),
    "copa": LocalTask(
        "super_glue/copa/default.yaml",
        "validation",
        lambda n: {
            "premise": f"He went to {city(n)}.",
            "choice1": "He liked it.",
            "choice2": "He took the train.",
            "question": ("cause", "effect")[n % 2],
            "idx": n,
            "label": n % 2,
        },
    ),
    "mrpc": LocalTask("glue/mrpc/default.yaml", "validation", pair),
    "cola": LocalTask("glue/cola/default.yaml", "validation", pair),
    "cb": LocalTask("super_glue/cb/default.yaml", "validation", lambda n: {**premise(n), "label": n % 3}),
    "truthfulqa_mc1": LocalTask("truthfulqa/truthfulqa_mc1.yaml", "validation", truthful),
    "truthfulqa_mc2": LocalTask("truthfulqa/truthfulqa_mc2.yaml", "validation", truthful),
    "truthfulqa_gen": LocalTask("truthfulqa/truthfulqa_gen.yaml", "validation", truthful),
    "logiqa": LocalTask(
        "logiqa/logiqa.yaml",
        "test",
        lambda n: {
            "label": "abcd"[n % 4],
            "context": f"{city(n)} lies north.",
            "question": "Which follows?",
            "options": cities(n),
        },
    ),
    "commonsense_qa": LocalTask(
        "commonsense_qa/default.yaml",
        "validation",
        lambda n: {"question": f"Where is {land(n)}? ", **lettered(n, 5)},
        {"num_fewshot": 2},
    ),
    "social_iqa": LocalTask(
        "siqa/siqa.yaml",
        "validation",
        lambda n: {
            "context": f"Ann flew to {city(n)}.",
            "question": "Why?",
            "answerA": "to rest",
            "answerB": "to work",
            "answerC": f"to see {city(n)}",
            "label": str(1 + n % 3),
        },
    ),
    "pubmedqa": LocalTask(
        "pubmedqa/pubmedqa.yaml",
        "test",
        lambda n: {
            "QUESTION": f"Does {city(n)} help?",
            "CONTEXTS": ["Two trials.", f"In {land(n)}."],
            "LABELS": ["A", "B"],
            "final_decision": ("yes", "no", "maybe")[n % 3],
        },
    ),
    "medmcqa": LocalTask(
        "medmcqa/medmcqa.yaml",
        "validation",
        lambda n: {
            "question": f"Capital of {land(n)}?",
            **dict(zip(("opa", "opb", "opc", "opd"), cities(n), strict=True)),
            "cop": n % 4,
        },
    ),
    "anli_r1": LocalTask("anli/anli_r1.yaml", "test_r1", lambda n: {"uid": str(n), **premise(n), "label": n % 3}),
    "webqs": LocalTask(
        "webqs/webqs.yaml",
        "test",
        lambda n: {"url": "", "question": f"capital of {land(n)}?", "answers": cities(n, 1 + n % 3)},
    ),
    "swag": LocalTask(
        "swag/swag.yaml",
        "validation",
        lambda n: {
            "startphrase": f"In {city(n)} a man",
            "label": n % 4,
            **{f"ending{at}": f"sees {name}." for at, name in enumerate(cities(n))},
        },
    ),
    "mutual": LocalTask(
        "mutual/mutual.yaml",
        "validation",
        lambda n: {
            "answers": "ABCD"[n % 4],
            "options": [f"m : {name} !" for name in cities(n)],
            "article": f"f : is it {city(n)} ? m : no .",
            "id": str(n),
        },
    ),
    "mathqa": LocalTask(
        "mathqa/mathqa.yaml",
        "test",
        lambda n: {
            "Problem": f"{n} + 1 =",
            "Rationale": "",
            "options": f"a ) {n} , b ) {n + 1} , c ) {n + 2} , d ) 0 , e ) none",
            "correct": "abcde"[n % 5],
            "annotated_formula": "",
            "linear_formula": "",
            "category": "general",
        },
    ),
    "blimp_anaphor_gender_agreement": LocalTask(
        "blimp/anaphor_gender_agreement.yaml",
        "train",
        lambda n: {
            "sentence_good": f"A man in {city(n)} saw himself.",
            "sentence_bad": f"A man in {city(n)} saw herself.",
        },
    ),
    "xwinograd_en": LocalTask(
        "xwinograd/xwinograd_en.yaml",
        "test",
        lambda n: {
            "sentence": f"{city(n)} beat {city(n + 1)} as _ was big.",
            "option1": city(n),
            "option2": city(n + 1),
            "answer": str(1 + n % 2),
        },
    ),
    "lambada_openai": LocalTask(
        "lambada/lambada_openai.yaml", "test", lambda n: {"text": f"He went to {land(n)} and saw {city(n)}"}
    ),
    "arithmetic_1dc": LocalTask(
        "arithmetic/arithmetic_1dc.yaml",
        "validation",
        lambda n: {"context": f"Question: What is {n} + 1?\nAnswer:", "completion": f" {n + 1}"},
    ),
    "asdiv": LocalTask(
        "asdiv/default.yaml",
        "validation",
        lambda n: {
            "body": f"{city(n)} has {n} gates.",
            "question": "How many?",
            "answer": f"{n} (gates)",
            "solution_type": "",
            "formula": "",
        },
    ),
    "wikitext": LocalTask("wikitext/wikitext.yaml", "test", page),
    "gsm8k": LocalTask("gsm8k/gsm8k.yaml", "test", sums),
    "gsm8k_cot_self_consistency": LocalTask(
        "gsm8k/gsm8k-cot-self-consistency.yaml", "test", sums, {"repeats": 10}
    ),
    "triviaqa": LocalTask(
        "triviaqa/default.yaml",
        "validation",
        lambda n: {
            "question": f"Capital of {land(n)}",
            "answer": {"aliases": [city(n), f"the {city(n)}"], "value": city(n)},
        },
        {"num_fewshot": 2},
    ),
    "nq_open": LocalTask(
        "nq_open/nq_open.yaml",
        "validation",
        lambda n: {"question": f"capital of {land(n)}", "answer": cities(n, 2)},
        {"num_fewshot": 3},
    ),
    "drop": LocalTask("drop/default.yaml", "validation", drop),
    "hendrycks_math_algebra": LocalTask(
        "hendrycks_math/hendrycks_math_algebra.yaml",
        "test",
        lambda n: {
            "problem": f"Find {n}+{n}.",
            "level": "1",
            "type": "Algebra",
            "solution": f"It is $\\boxed{{{2 * n}}}$.",
        },
    ),
    "babi": LocalTask(
        "babi/babi.yaml",
        "test",
        lambda n: {
            "passage": f"Ann is in {city(n)}.\n",
            "question": "Where is Ann?",
            "answer": city(n),
            "task": 1,
        },
    ),
    "random_insertion": LocalTask(
        "unscramble/random_insertion.yaml",
        "validation",
        lambda n: {"context": f"Unscramble {city(n)}", "completion": city(n)},
    ),
    "mgsm_direct_en": LocalTask(
        "mgsm/direct/mgsm_direct_en.yaml",
        "test",
        lambda n: {**sums(n), "answer": None, "answer_number": 3 * n, "equation_solution": None},
    ),
    "bbh_cot_fewshot_boolean_expressions": LocalTask(
        "bbh/cot_fewshot/boolean_expressions.yaml",
        "test",
        lambda n: {"input": f"{n} < 99 and not ( {n % 2 == 0} ) is", "target": str(n % 2 == 1)},
    ),
}
"""All four kinds of requests, functions beside task files, filters, repeats, own scorers and aggregations."""

CANDIDATES = (
    *CITIES[:6],
    "The answer is 6.\n#### 6",
    "so The answer is 9.",
    "The answer is $\\boxed{4}$.",
    "2 and 4 make 6.\n#### 6\n\nQuestion: more",
    " True",
    "So the answer is False.",
    "It is Oslo.\nQ: next",
    "12",
    "",
)


def solved(prompt: str) -> str | None:
    """A reply that is right, where the last question of the prompt is one that this understands."""
    ways: tuple[tuple[str, Callable[..., str]], ...] = (
        (r"What is (\d+) \+ (\d+)\?", lambda a, b: f"The answer is {int(a) + int(b)}.\n#### {int(a) + int(b)}"),
        (r"Find (\d+)\+(\d+)\.", lambda a, b: f"$\\boxed{{{int(a) + int(b)}}}$"),
        (r"Ann is in (\w+)", str),
        (r"Unscramble (\w+)", str),
        (r"[Cc]apital of (\w+)", lambda name: city(LANDS.index(name)) if name in LANDS else ""),
        (r"(\d+) gates stand", str),
        (r"not \( (\w+) \)", lambda truth: f"So the answer is {truth == 'False'}."),
    )
    places = [(match.start(), made(*match.groups())) for way, made in ways for match in re.finditer(way, prompt)]
    return max(places)[1] if places else None


def package_tasks() -> Path:
    import lm_eval

    return Path(lm_eval.__file__).parent / "tasks"


def write_task(folder: Path, name: str) -> Path:
    """The task file of a task on its local rows; other splits, for examples, have rows of their own."""
    task = TASKS[name]
    files = {}
    for split, first in {**dict.fromkeys(splits_of(task), 100), task.split: 0}.items():
        path = folder / f"{name}-{split}.jsonl"
        path.write_text("".join(f"{json.dumps(task.row(first + number))}\n" for number in range(COUNT)))
        files[split] = str(path)
    settings = {
        "include": str(package_tasks() / task.file),
        "task": name,
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files},
        **task.more,
    }
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(settings))  # JSON is YAML
    return path


def splits_of(task: LocalTask) -> list[str]:
    """The splits that the task's own file names."""
    from lm_eval.tasks._yaml_loader import load_yaml

    config = load_yaml(package_tasks() / task.file, resolve_func=False)
    keys = ("training_split", "validation_split", "test_split", "fewshot_split")
    return [config[key] for key in keys if config.get(key)]


def write_group(folder: Path) -> Path:
    """A group of tasks of different sizes, one of them of the package with other data, and a group in it."""
    write_task(folder, "arc_easy")
    files = {"test": str(folder / "anatomy.jsonl"), "dev": str(folder / "anatomy-dev.jsonl")}
    for split, count in (("test", 5), ("dev", 6)):
        rows = [{"question": f"Where is {land(n)}? ", "choices": cities(n), "answer": n % 4} for n in range(count)]
        Path(files[split]).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    local = {"dataset_path": "json", "dataset_name": None, "dataset_kwargs": {"data_files": files}}
    write_task(folder, "sciq")
    write_task(folder, "swag")
    group = {
        "group": "places",
        "task": [
            {"task": "mmlu_anatomy", "num_fewshot": 2, **local},
            "arc_easy",
            {
                "group": "inner",
                "task": ["sciq", "swag"],
                "aggregate_metric_list": [{"metric": "acc", "weight_by_size": False}],
            },
        ],
        "aggregate_metric_list": [
            {"metric": "acc", "aggregation": "mean", "weight_by_size": True, "filter_list": ["none"]},
        ],
        "metadata": {"version": 1},
    }
    path = folder / "places.yaml"
    path.write_text(json.dumps(group))
    return path
