# SPDX-License-Identifier: Apache-2.0
"""Rows with generated right answers for graders of every kind, as benchmarks that `ns validate` can check."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row

ROWS = 20
MakeRow = Callable[[random.Random, int], Row]

_NAMES = ["anna", "bert", "carla", "dora", "emil", "fritz", "gina", "hugo", "ines", "jan"]
_ITEMS = [
    "stone",
    "river",
    "candle",
    "mirror",
    "ladder",
    "garden",
    "bottle",
    "window",
    "hammer",
    "basket",
    "engine",
    "carpet",
]
_PLACES = ["kitchen", "garden", "office", "bathroom", "hallway", "bedroom"]
_SENTENCE = [
    "the",
    "a",
    "with",
    "under",
    "near",
    "big",
    "small",
    "old",
    "new",
    "and",
    "then",
    "it",
    "ran",
    "slept",
    "fell",
]


def _word(draw: random.Random) -> str:
    return "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randint(5, 9)))


def _phrase(draw: random.Random, length: int = 3) -> str:
    return " ".join(draw.choice([*_ITEMS, _word(draw)]) for _ in range(length))


def _text(draw: random.Random) -> str:
    words = [draw.choice([*_ITEMS, *_SENTENCE, _word(draw)]) for _ in range(40)]
    return ". ".join(" ".join(words[at : at + 10]).capitalize() for at in range(0, 40, 10)) + "."


def _number(draw: random.Random) -> str:
    return str(draw.choice([draw.randint(0, 999), draw.randint(-50, -1), draw.randint(1, 99) / 4]))


def _gold(make: Callable[[random.Random], object], **fields: object) -> MakeRow:
    return lambda draw, at: {"expected_answer": make(draw), **fields}


def _long(measure: str, make: Callable[[random.Random], str], **fields: object) -> MakeRow:
    def row(draw: random.Random, at: int) -> Row:
        gold = make(draw)
        return {"expected_answer": gold, "answers": [gold], "measure": measure, **fields}

    return row


def _grid(draw: random.Random, at: int) -> Row:
    return {"expected_answer": [[draw.randint(0, 9) for _ in range(3)] for _ in range(2)]}


def _houses(draw: random.Random, at: int) -> Row:
    columns = [draw.sample(values, 3) for values in (_NAMES[:4], _ITEMS[:4])]
    rows = [[str(house + 1), columns[0][house], columns[1][house]] for house in range(3)]
    return {"solution": {"header": ["House", "Name", "Thing"], "rows": rows}}


def _program(draw: random.Random, at: int) -> Row:
    first, second = draw.randint(2, 900), draw.randint(2, 900)
    return {"program": f"subtract({first}, {second})", "expected_answer": str(float(first - second)), "table": []}


def _choice(draw: random.Random, at: int) -> Row:
    options = dict(zip("ABCD", draw.sample(_ITEMS, 4), strict=True))
    return {**options, "expected_answer": draw.choice("ABCD")}


def _hotpot(draw: random.Random, at: int) -> Row:
    facts = [[_word(draw), draw.randint(0, 4)] for _ in range(2)]
    return {"expected_answer": _phrase(draw, 2), "supporting_facts": facts}


def _new_rule(category: str, rule: str, make: Callable[[random.Random], str]) -> MakeRow:
    return lambda draw, at: {"id": f"kor-{category}-{at}", "rule_id": rule, "expected_answer": make(draw)}


def _letters(draw: random.Random) -> str:
    return "".join(sorted(draw.sample("ABCD", draw.randint(1, 3))))


def _memory(draw: random.Random, at: int) -> Row:
    return {"question_type": draw.choice(["single-hop", "commonsense"]), "expected_answer": _phrase(draw, 2)}


def _items(draw: random.Random, at: int) -> Row:
    return {"question_type": "multi-hop", "expected_answer": ", ".join(_phrase(draw, 2) for _ in range(3))}


def _page(draw: random.Random, at: int) -> Row:
    text = {"category": "text_block", "text": _text(draw), "order": 1}
    return {"page": {"texts": [text], "formulas": [], "tables": []}}


def _emotions(draw: random.Random, at: int) -> Row:
    wanted = {name: draw.randint(0, 10) for name in draw.sample(["Joy", "Fear", "Anger", "Pride", "Shame"], 4)}
    return {"emotions": wanted, "expected_answer": "\n".join(f"{name}: {value}" for name, value in wanted.items())}


def _mrcr(draw: random.Random, at: int) -> Row:
    mark = _word(draw)
    return {"random_string_to_prepend": mark, "expected_answer": f"{mark}{_text(draw)}"}


def _functions(count: int) -> list[Row]:
    parameters = {"type": "dict", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return [{"name": f"tool_{at}", "description": "", "parameters": parameters} for at in range(count)]


def _calls(draw: random.Random, at: int) -> Row:
    goal = {f"tool_{draw.randrange(4)}": {"name": [draw.choice(_NAMES)]}}
    return {"check": "calls", "language": "python", "function": _functions(4), "ground_truth": [goal]}


def _live(task: str, make: Callable[[random.Random], str], **fields: object) -> MakeRow:
    return lambda draw, at: {"task": task, "ground_truth": make(draw), **fields}


def _schema(draw: random.Random, at: int) -> Row:
    name = _word(draw)
    kind = {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}
    return {"expected_answer": json.dumps({**kind, "examples": [{name: draw.randint(1, 9)}]})}


def _instruction(draw: random.Random, at: int) -> Row:
    kinds = [
        ("punctuation:no_comma", {}),
        ("change_case:english_lowercase", {}),
        ("length_constraints:number_words", {"relation": "at least", "num_words": draw.randint(20, 400)}),
        ("keywords:existence", {"keywords": [_word(draw), draw.choice(_ITEMS)]}),
        ("detectable_format:number_bullet_lists", {"num_bullets": draw.randint(2, 6)}),
        ("startend:end_checker", {"end_phrase": _phrase(draw)}),
    ]
    chosen = draw.sample(kinds, 2)
    return {"instruction_id_list": [name for name, _ in chosen], "kwargs": [given for _, given in chosen]}


def _judged(draw: random.Random, at: int) -> Row:
    return {"expected_judgement": f"Judgement: {draw.choice(['Yes', 'No'])}"}


def _zebra(draw: random.Random) -> str:
    return ", ".join([draw.choice(_NAMES), draw.choice(_ITEMS), str(draw.randint(1, 5))])


def _truths(draw: random.Random) -> str:
    return ", ".join(draw.choice(["yes", "no"]) for _ in range(3))


def _spans(draw: random.Random, at: int) -> Row:
    return {"expected_answer": draw.choice([_number(draw), [_word(draw), _word(draw)]])}


_KINDS: dict[str, tuple[str, Row, MakeRow]] = {
    "math": ("math", {}, _gold(_number)),
    "choice": ("multichoice", {}, _choice),
    "whole": ("exact", {}, _gold(_phrase)),
    "answer": (
        "exact",
        {"extract": "answer", "loose": True},
        _gold(lambda draw: draw.choice([_word(draw), _number(draw)])),
    ),
    "truth": ("exact", {"extract": "answer", "loose": True}, _gold(lambda draw: draw.choice(["yes", "no"]))),
    "brackets": ("exact", {"extract": "brackets"}, _gold(_word)),
    "closing": (
        "exact",
        {"extract": "answer", "loose": True},
        _gold(lambda draw: "".join(draw.choice(")]}>") for _ in range(3))),
    ),
    "tail": ("exact", {"extract": "tail"}, _gold(lambda draw: f"{_word(draw)}\n{_word(draw)}")),
    "literal": (
        "literal",
        {},
        _gold(lambda draw: draw.choice([repr(_word(draw)), _number(draw), repr([1, draw.randint(2, 99)])])),
    ),
    "workbook": (
        "dsbench",
        {},
        _gold(lambda draw: draw.choice([_number(draw), draw.choice("ABCDE"), f"${draw.randint(1000, 99999):,}"])),
    ),
    "options": ("option_set", {}, lambda draw, at: {**_choice(draw, at), "expected_answer": _letters(draw)}),
    "squad": ("short_answer", {}, _gold(_phrase)),
    "trivia": ("short_answer", {"measure": "triviaqa"}, _gold(_word)),
    "coqa": ("short_answer", {"measure": "coqa"}, _gold(_phrase)),
    "drop": ("short_answer", {"measure": "drop"}, _spans),
    "anls": ("short_answer", {"measure": "anls"}, _gold(_word)),
    "hotpot": ("hotpotqa", {}, _hotpot),
    "gaia": (
        "gaia",
        {},
        _gold(lambda draw: draw.choice([_number(draw), _word(draw), f"{_word(draw)}, {_word(draw)}"])),
    ),
    "program": ("table_program", {}, _program),
    "law-label": ("legalbench", {}, _gold(lambda draw: draw.choice(["Yes", "No", "Maybe"]), measure="label")),
    "law-amount": ("legalbench", {}, _gold(lambda draw: f"${int(10 ** draw.uniform(1, 8))}", measure="amount")),
    "law-names": ("legalbench", {}, _gold(lambda draw: ", ".join(draw.sample(_NAMES, 2)), measure="names")),
    "rule-letters": ("new_rules", {}, _new_rule("puzzle", "1", lambda draw: _word(draw).upper())),
    "rule-one": ("new_rules", {}, _new_rule("puzzle", "2", lambda draw: f"{_word(draw)},{_word(draw)}")),
    "rule-words": ("new_rules", {}, _new_rule("puzzle", "3", _phrase)),
    "rule-within": ("new_rules", {}, _new_rule("puzzle", "4", lambda draw: f"{_word(draw)} {_word(draw)}")),
    "rule-list": ("new_rules", {}, _new_rule("puzzle", "5", lambda draw: f"{_word(draw)}, {_word(draw)}")),
    "rule-grid": (
        "new_rules",
        {},
        _new_rule("puzzle", "18", lambda draw: f"{draw.randint(10, 99)} {draw.randint(10, 99)}"),
    ),
    "rule-puzzle": ("new_rules", {}, _new_rule("puzzle", "30", lambda draw: draw.choice(["+-*", _word(draw)]))),
    "rule-numbers": (
        "new_rules",
        {},
        _new_rule("operation", "23", lambda draw: f"({draw.randint(1, 99)},{draw.randint(1, 99)})"),
    ),
    "rule-members": (
        "new_rules",
        {},
        _new_rule("operation", "18", lambda draw: f"{{{draw.randint(1, 9)},{draw.randint(10, 99)}}}"),
    ),
    "rule-value": ("new_rules", {}, _new_rule("operation", "2", _number)),
    "rule-bound": ("new_rules", {}, _new_rule("operation", "18", lambda draw: f"x≥{draw.randint(1, 99)}")),
    "rule-logic": ("new_rules", {}, _new_rule("logic", "5", lambda draw: f"{_word(draw)};{_word(draw)}")),
    "rule-cipher": ("new_rules", {}, _new_rule("cipher", "1", _word)),
    "picture": ("mathvista", {}, _gold(lambda draw: str(draw.randint(0, 99)), answer_type="integer")),
    "picture-choice": ("mathvista", {}, _choice),
    "memory": ("memory", {}, _memory),
    "page": ("document", {}, _page),
    "translation": ("translation", {}, _gold(_text)),
    "repeated": ("mrcr", {}, _mrcr),
    "walks": ("graphwalks", {}, _gold(lambda draw: [_word(draw) for _ in range(3)])),
    "words": ("long_text", {}, _long("f1", _phrase)),
    "characters": ("long_text", {}, _long("f1_characters", _phrase)),
    "rouge": ("long_text", {}, _long("rouge_l", _text)),
    "rouge-lines": ("long_text", {}, _long("rouge_l_lines", _text)),
    "summary": ("long_text", {}, _long("summary", _text)),
    "first-number": ("long_text", {}, _long("first_number", lambda draw: str(draw.randint(0, 99)))),
    "last-number": ("long_text", {}, _long("last_number", lambda draw: str(draw.randint(0, 99)))),
    "long-choice": ("long_text", {}, lambda draw, at: {**_choice(draw, at), "measure": "choice"}),
    "class": ("long_text", {}, _long("class", lambda draw: draw.choice(_PLACES), all_classes=_PLACES)),
    "count": ("long_text", {}, _long("count", lambda draw: str(draw.randint(1, 99)))),
    "code": ("long_text", {}, _long("code", lambda draw: f"    return {_word(draw)}({_word(draw)})")),
    "sequence": (
        "long_text",
        {},
        _long("sequence", lambda draw: ", ".join(str(draw.randint(1, 99)) for _ in range(6))),
    ),
    "label": (
        "long_text",
        {},
        _long("label", lambda draw: draw.choice(_PLACES), all_classes=_PLACES, asked="Where is it?"),
    ),
    "emotions": ("eq_bench", {}, _emotions),
    "judge": ("answer-judgement", {}, _judged),
    "marks": ("gradingbench", {}, _gold(lambda draw: draw.choice(["Correct", "Almost", "Partial", "Incorrect"]))),
    "rating": ("mark", {}, lambda draw, at: {"is_right": draw.random() < 0.5}),
    "live-class": ("livebench", {}, _live("cta", _word)),
    "live-contest": ("livebench", {}, _live("math_comp", lambda draw: draw.choice("ABCDE"), question="Which?")),
    "live-year": ("livebench", {}, _live("math_comp", lambda draw: f"{draw.randint(0, 999):03}")),
    "live-order": (
        "livebench",
        {},
        _live("olympiad", lambda draw: ",".join(map(str, draw.sample(range(1, 9), 8)))),
    ),
    "live-space": ("livebench", {}, _live("spatial", lambda draw: str(draw.randint(1, 6)))),
    "live-lies": ("livebench", {}, _live("web_of_lies_v2", _truths)),
    "live-zebra": ("livebench", {}, _live("zebra_puzzle", _zebra, question="Use <solution> tags.")),
    "grid": ("grid_match", {}, _grid),
    "houses": ("logic_grid", {}, _houses),
    "schema": ("json_schema", {}, _schema),
    "calls": ("bfcl", {}, _calls),
    "instructions": ("if", {}, _instruction),
}
"""Name → grader, its settings, how a row is made."""

KNOWN: dict[str, tuple[str, Row, MakeRow]] = {
    "needles": ("ruler", {}, _gold(lambda draw: [str(draw.randint(1, 999))])),
    "needles-2": ("ruler2", {}, _gold(lambda draw: [str(draw.randint(1, 999))])),
    "seen": ("short_answer", {"measure": "contained"}, _gold(lambda draw: str(draw.randint(1, 999)))),
    "law-case": ("legalbench", {}, _gold(_word, measure="contains")),
    "law-term": ("legalbench", {}, _gold(_word, measure="term")),
    "found": ("long_text", {}, _long("contains", lambda draw: str(draw.randint(1, 999)))),
    "items": ("memory", {}, _items),
    "searched": ("bfcl", {}, lambda draw, at: {"check": "answer", "ground_truth": [str(draw.randint(1, 999))]}),
}
"""Those whose published rule is that the right text occurs somewhere."""


def benchmark(name: str, seed: int, hedgeable: str = "") -> Benchmark:
    """`ROWS` rows of one kind."""
    grader, config, make = (_KINDS | KNOWN)[name]

    def rows(split: str) -> list[Row]:
        draw = random.Random(f"{name} {seed}")
        return [{"question": f"What is number {at}?", **make(draw, at)} for at in range(ROWS)]

    return Benchmark(
        name=f"hedged-{name}",
        category="reasoning",
        title=name,
        generate_rows=rows,
        grader=grader,
        grader_config=config,
        hedgeable=hedgeable,
        items={"test": ROWS},
    )


KINDS = tuple(_KINDS)
