# SPDX-License-Identifier: Apache-2.0
"""Invented rows, and replies to them: right ones, and forms of these that a model might write."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from string import ascii_lowercase

from newskills.base.records import Row

Case = tuple[Row, str, str]
"""(row, form, reply)."""
_NAMES = ("Ann", "Bo", "Cleo", "Dan", "Eve", "Finn")
_PETS = ("cat", "dog", "snail", "red fox", "owl", "hen")
_DRINKS = ("tea", "milk", "root beer", "water", "coffee", "cocoa")


def _puzzle(chance: random.Random, houses: int) -> Row:
    columns = [chance.sample(values, houses) for values in (_NAMES, _PETS, _DRINKS)]
    rows = [[str(place + 1), *(column[place] for column in columns)] for place in range(houses)]
    return {
        "id": f"p{houses}-{chance.random():.6f}",
        "size": f"{houses}*3",
        "solution": {"header": ["House", "Name", "Pet", "Drink"], "rows": rows},
    }


def zebralogic() -> Iterator[Case]:
    chance = random.Random(1)
    for number in range(40):
        row = _puzzle(chance, 2 + number % 5)
        header, rows = row["solution"]["header"], row["solution"]["rows"]
        houses = {f"House {cells[0]}": dict(zip(header[1:], cells[1:], strict=True)) for cells in rows}
        swapped = json.loads(json.dumps(houses))
        swapped["House 1"]["Pet"], swapped["House 2"]["Pet"] = swapped["House 2"]["Pet"], swapped["House 1"]["Pet"]
        whole = json.dumps({"reasoning": "clue {1}", "solution": houses})
        forms = {
            "right": whole,
            "fenced": f"Let me see.\n```json\n{json.dumps({'solution': houses}, indent=4)}\n```\n",
            "capitals": json.dumps(
                {"solution": {h: {c: v.upper() for c, v in x.items()} for h, x in houses.items()}}
            ),
            "blanks": json.dumps(
                {"solution": {h: {c: f" {v} " for c, v in x.items()} for h, x in houses.items()}}
            ),
            "lists": json.dumps({"solution": {h: {c: [v] for c, v in x.items()} for h, x in houses.items()}}),
            "swapped": json.dumps({"solution": swapped}),
            "one house": json.dumps({"solution": {"House 1": houses["House 1"]}}),
            "nulls": json.dumps({"solution": {h: dict.fromkeys(x) for h, x in houses.items()}}),
            "cut short": whole[:-10],
            "then another object": whole + ' Note: {"sure": true}',
            "words": "Ann lives in house 1.",
            "draft before": f"{json.dumps({'solution': swapped})}\nNo: {whole}",
        }
        yield from ((row, form, reply) for form, reply in forms.items())


_GOLDS = (
    "17",
    "3.5",
    "1200",
    "0.02",
    "Paris",
    "Saint-Malo",
    "red, blue",
    "1, 2, 3",
    "b;c",
    "St. John's",
    "5 km",
    "yes",
)


def gaia() -> Iterator[Case]:
    for gold in _GOLDS:
        row: Row = {"expected_answer": gold}
        forms = {
            "same": gold,
            "capitals": gold.upper(),
            "full stop": f"{gold}.",
            "dollar": f"${gold}",
            "percent": f"{gold}%",
            "blanks": f" {gold} ",
            "no blanks": gold.replace(" ", ""),
            "semicolons": gold.replace(",", ";"),
            "reversed": gold[::-1],
            "one more": f"{gold}, 4",
            "unit": f"{gold} m",
            "article": f"the {gold}",
            "decimals": f"{gold}.0",
            "thousands": gold.replace("1200", "1,200"),
            "hyphen": gold.replace("-", " "),
            "negative": f"-{gold}",
            "quoted": f'"{gold}"',
            "tilde": f"~{gold}",
            "exponent": f"{gold}e0",
            "first item": gold.split(",")[0],
            "empty item": f"{gold},",
            "other": "no idea",
            "zeros": f"0{gold}",
            "spelt": {"17": "seventeen"}.get(gold, f"{gold} or so"),
            "bold": f"**{gold}**",
            "slash": gold.replace(",", "/"),
        }
        yield from ((row, form, reply) for form, reply in forms.items())


_FACTS = (
    ("7 May 2023", "temporal"),
    ("Transgender woman", "single-hop"),
    ("painting, swimming, pottery", "multi-hop"),
    ("Likely yes; she collects classic books", "commonsense"),
    ("No information available", "adversarial"),
    ("adopting two rescued foxes", "single-hop"),
    ("mental health, the LGBTQ community", "multi-hop"),
    ("The week before 9 June 2023", "temporal"),
    ("He's relieved and happier", "single-hop"),
    ("Psychology, counselling certification", "multi-hop"),
)


def locomo() -> Iterator[Case]:
    for gold, kind in _FACTS:
        row: Row = {"expected_answer": gold, "question_type": kind}
        words = gold.split()
        shuffled = random.Random(gold).sample(words, len(words))
        forms = {
            "same": gold,
            "capitals": gold.upper(),
            "full stop": f"{gold}.",
            "article": f"The {gold}",
            "and": " and ".join(words),
            "first word": words[0],
            "last word": words[-1],
            "all but one": " ".join(words[1:]),
            "other order": " ".join(shuffled),
            "commas": ", ".join(words),
            "twice": f"{gold} {gold}",
            "sentence": f"I think that it was {gold.lower()}",
            "not mentioned": "That is not mentioned.",
            "no information": "no information available here",
            "plural": " ".join(f"{word}s" for word in words),
            "ing": " ".join(f"{word}ing" for word in words),
            "ed": " ".join(f"{word.lower()}ed" for word in words),
            "hyphens": "-".join(words),
            "quotes": f'"{gold}"',
            "lines": "\n".join(words),
            "other": "a green bicycle",
            "before semicolon": gold.split(";")[0],
            "items turned": ", ".join(reversed(gold.split(", "))),
            "one item": gold.split(", ")[0],
            "item more": f"{gold}, sleeping",
            "nothing": "?",
            "digits": "12 3 4",
            "letters": ascii_lowercase,
            "apostrophe": gold.replace("e", "'e"),
            "and first": f"and {gold}",
        }
        yield from ((row, form, reply) for form, reply in forms.items())


def processbench() -> Iterator[Case]:
    for label in range(-1, 14):
        row: Row = {"expected_answer": str(label)}
        forms = {
            "boxed": f"\\boxed{{{label}}}",
            "blanks": f"\\boxed{{ {label} }}",
            "twice": f"\\boxed{{9}} no, \\boxed{{{label}}}",
            "sentence": f"The first wrong step is\n$\\boxed{{{label}}}$.",
            "other": f"\\boxed{{{label + 1}}}",
            "in words": "\\boxed{none}",
            "no box": f"It is step {label},\nI think.",
            "empty": "\\boxed{}",
            "tag": f"\\boxed{{paragraph_{label}}}",
            "dollars": f"$$\\boxed{{{label}}}$$",
            "bold": f"**\\boxed{{{label}}}**",
            "two": f"\\boxed{{{label}, {label + 1}}}",
            "decimals": f"\\boxed{{{label}.0}}",
            "plus": f"\\boxed{{+{label}}}",
            "text": f"\\boxed{{\\text{{{label}}}}}",
            "zeros": f"\\boxed{{0{label}}}",
            "box first": f"\\boxed{{{label}}} is my answer",
            "then words": f"Steps 1 to 5 are right.\n\\boxed{{{label}}}\nDone.",
            "cut": f"\\boxed{{{label}",
            "long": "\\boxed{123}",
        }
        yield from ((row, form, reply) for form, reply in forms.items())


_TABLE = [
    ["", "2020", "2019"],
    ["sales", "$ 5,829", "$ 5735"],
    ["margin", "12.5% ( note )", "10%"],
    ["odd", "n/a", "1"],
]
_RESULTS = (94.0, 0.01639, "yes", 5782.0, 0.1125, -1.0, 1024.0, "no")
_PROGRAMS = (
    "subtract(5829, 5735)",
    "subtract(5829, 5735), divide(#0, 5735)",
    "greater(5829, 5735)",
    "greater(5735, 5829)",
    "table_average(sales, none)",
    "table_average(margin, none)",
    "table_sum(odd, none)",
    "table_max(profit, none)",
    "table_min(sales, none), subtract(#0, 5735)",
    "add(const_m1, 0)",
    "exp(const_2, 10)",
    "divide(1, 0)",
    "add(#3, 1)",
    "add(one, 1)",
    "multiply(12%, 100)",
    "add(93.999999, 0.000001)",
    "add(93.99999, 0)",
    "divide(94, 5735)",
    "subtract(5735, 5829)",
    "add(1,000, 24)",
    "exp(32, 2)",
    "divide(5829, 5735), subtract(#0, 1)",
    "table_sum(sales, none), divide(#0, 2)",
    "multiply(2, 47)",
    "table_average(Sales, none)",
    "add(94, 0), add(#0, 0), add(#1, 0)",
    "subtract(const_1000, 906)",
    "divide(9400, const_100)",
    "exp(10, 400)",
    "add(-1, 95)",
    "greater(2, 1), add(#0, 1)",
    "divide(22.5%, 2)",
    "table_max(margin, none)",
    "add(0.0164, 0)",
    "add(0.016394, 0)",
    "add(0.016386, 0)",
    "subtract(0, 1)",
    "exp(2, 10), subtract(#0, 930)",
)


def finqa() -> Iterator[Case]:
    for number, result in enumerate(_RESULTS):
        row: Row = {"expected_answer": str(result), "gold": result, "table": _TABLE, "id": number}
        yield from ((row, program, program) for program in _PROGRAMS)


_LEGAL = (
    ("label", "Yes"),
    ("label", "Procedural History"),
    ("label", "All, of the above"),
    ("label", "de facto merger,mere continuation"),
    ("amount", "$10598"),
    ("amount", "$0"),
    ("contains", "Jones v. Robinson Prop. Grp., L.P."),
    ("contains", "Phillips v. AWH Corp."),
    ("term", "authorize,authorized"),
    ("term", "hawkers and peddlers"),
    ("names", "Ann E. Low"),
    ("names", "Ruth C May, Donna E Ledgerwood"),
    ("names", "Not named"),
)


def legalbench() -> Iterator[Case]:
    for measure, gold in _LEGAL:
        row: Row = {"expected_answer": gold, "measure": measure}
        parts = gold.split(",")
        forms = {
            "same": gold,
            "capitals": gold.upper(),
            "small": gold.lower(),
            "full stop": f"{gold}.",
            "bold": f"**{gold}**",
            "quoted": f'"{gold}"',
            "blanks": f"  {gold} ",
            "label before": f"Answer: {gold}",
            "sentence": f"I think it is {gold}",
            "reason after": f"{gold}, because 12 of them said so",
            "second line": f"{gold}\nThat is all.",
            "first part": parts[0],
            "last part": parts[-1],
            "turned": ",".join(reversed(parts)),
            "twice": f"{gold}, {gold}",
            "one more": f"{gold}, Eve Mild",
            "one before": f"Eve Mild, {gold}",
            "cut": gold[:-2],
            "hyphens": gold.replace(" ", "-"),
            "plural": f"{gold}s",
            "ing": f"{gold}ing",
            "other": "No",
            "number": "11,000",
            "far number": "$20,598.00",
            "near number": "About 10,600 dollars",
            "decimals": "10598.50",
            "nothing": "?",
        }
        yield from ((row, form, reply) for form, reply in forms.items())


CASES = {
    "zebralogic": zebralogic,
    "gaia": gaia,
    "locomo": locomo,
    "processbench": processbench,
    "finqa": finqa,
    "legalbench": legalbench,
}
