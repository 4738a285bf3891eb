# SPDX-License-Identifier: Apache-2.0
"""`ns validate`: the benchmarks of the mirror are as they should be, and broken ones are found."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns
from tests.night import NIGHTLY

from newskills.benchmarks import list_benchmarks

HERE = """
from newskills.base.benchmark import Benchmark, Judge
from newskills.base.errors import ConfigError
from newskills.base.records import Score
from newskills.benchmarks.text import choices

ANIMALS = ("ant", "bee", "cow", "dog")

def asked(fields, name, **more):
    def rows(split):
        return [{"problem": f"What is {n} + {n}?", **fields(n)} for n in range(100)]
    kind = {"prompt": "generic/math", "items": {"test": 100}} | more
    return Benchmark(name=name, category="own", title="Sums", generate_rows=rows, **kind)

def option(letter):
    return lambda n: {**choices(f"Which animal is number {n}?", ANIMALS), "expected_answer": letter(n)}

class Gullible:
    name, version = "gullible", "1"
    def grade(self, record):
        said = "correct" if record["generation"] else "wrong"
        return Score(outcome=said, fields={}, grader="gullible@1")
    def gold_reply(self, record):
        return str(record["expected_answer"])

class Picky(Gullible):
    def grade(self, record):
        said = "correct" if record["generation"] == record["expected_answer"] else "wrong"
        return Score(outcome=said, fields={}, grader="picky@1")
    def same_replies(self, record):
        return [f" {record['expected_answer']}"]

class Fitting(Picky):
    'Takes any of the numbers that a reply names.'
    def grade(self, record):
        said = "correct" if record["expected_answer"] in record["generation"].split() else "wrong"
        return Score(outcome=said, fields={}, grader="fitting@1")

class Generous(Picky):
    'Right is the number; worth something is any reply that names several.'
    def grade(self, record):
        words = record["generation"].replace("=", " ").replace(",", " ").split()
        right = words == [record["expected_answer"]]
        worth = 1.0 if right else 0.6 * (len(words) > 5)
        return Score(outcome="correct" if right else "wrong", fields={}, grader="generous@1", value=worth)

class Form(Picky):
    'No reply is the right one; short ones in small letters keep what is asked for.'
    def grade(self, record):
        text = record["generation"]
        kept = bool(text) and ((len(text) < 20) if int(record["expected_answer"]) % 4 else text == text.lower())
        return Score(outcome="correct" if kept else "wrong", fields={}, grader="form@1")
    def gold_reply(self, record):
        return None

class Bare(Picky):
    def __init__(self):
        raise ConfigError("Reading this needs the extra newskills[excel].", hint="pip install 'newskills[excel]'")

class Other(Picky):
    def __init__(self):
        raise ConfigError("The services come with other-package.", hint="Type: pip install --no-deps other-package==1")

class Forgetful(Picky):
    def grade(self, record):
        why = "Words need a list. pip install 'newskills[instructions]'"
        return Score(outcome="unscored", fields={}, grader="forgetful@1", why=why, cause="harness")

def number(n):
    return {"expected_answer": str(2 * n)}

LETTERS = {"prompt": "eval/aai/mcq-4choices", "grader": "multichoice", "chance": 0.25}
GOOD = asked(number, "good")
OPTIONS = asked(option(lambda n: "ABCD"[n % 4]), "options", **LETTERS)
ALWAYS_A = asked(option(lambda n: "A"), "always-a", **LETTERS)
FEW = asked(number, "few", items={"test": 101})
UNCLEAR = asked(lambda n: {"expected_answer": "1 or {2" if n == 7 else str(n)}, "unclear")
MISPRINT = asked(lambda n: {"expected_answer": "1 or {2" if n == 7 else str(n)}, "misprint",
                 misprints={"misprint-test-7": "a brace is missing"})
NO_PROMPT = asked(number, "no-prompt", prompt="generic/default")
GULLIBLE = asked(number, "gullible", grader=f"{__file__}::Gullible")
PICKY = asked(number, "picky", grader=f"{__file__}::Picky")
FITTING = asked(number, "fitting", grader=f"{__file__}::Fitting")
KNOWN = asked(number, "known", grader=f"{__file__}::Fitting", hedgeable="a number may stand anywhere")
GENEROUS = asked(number, "generous", grader=f"{__file__}::Generous", prompt="generic/math")
FORM = asked(number, "form", grader=f"{__file__}::Form")
JUDGED = asked(number, "judged", grader="", judge=Judge())
BARE = asked(number, "bare", grader=f"{__file__}::Bare")
OTHER = asked(number, "other", grader=f"{__file__}::Other")
FORGETFUL = asked(number, "forgetful", grader=f"{__file__}::Forgetful")
"""
GOOD = ("GOOD", "OPTIONS", "MISPRINT", "JUDGED")
WRONG = {
    "ALWAYS_A": "'Answer: A' is correct in 100 of 100 rows, chance is 25%",
    "FEW": "test: 100 rows, expected 101",
    "UNCLEAR": "gold: not correct: unclear-test-7 (no_answer: ",
    "NO_PROMPT": "test: 100 of 100 rows have no prompt: Record no-prompt-test-0 has no field 'question'",
    "GULLIBLE": "shuffled: 100 of 100 are correct, 8 could be by chance",
    "PICKY": "mutated: not correct: picky-test-",
    "FITTING": "hedge: numbers with or 'The answer is $",
    "GENEROUS": "hedge: ",
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(HERE)
    return tmp_path


def test_good_ones_pass_and_what_is_known_of_them_is_told(here: Path) -> None:
    names = " ".join(f"./own.py::{name}" for name in GOOD)
    done = ns(f"ns validate {names} --json found.json", cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 benchmarks pass" in done.stdout
    assert "note: judged: a judge decides: only rows and prompts are checked" in done.stderr
    found = {one["benchmark"]: one for one in json.loads((here / "found.json").read_text())}
    good = found["good"]["shares"]
    assert good["gold"] == {"right": 100, "of": 100, "unscored": 0, "limit": None, "worth": 100.0}
    assert good["blank"] == {"right": 0, "of": 100, "unscored": 0, "limit": 0, "worth": 0.0}
    options = found["options"]["shares"]
    assert 0 < options["constant"]["right"] <= options["constant"]["limit"] < 60
    assert options["mutated"]["right"] == options["mutated"]["of"] > 500
    assert found["misprint"]["exceptions"] == {"misprint-test-7": "a brace is missing"}
    assert found["misprint"]["shares"]["gold"]["of"] == 99
    assert found["judged"]["shares"] == {}


def test_each_fault_is_found(here: Path) -> None:
    done = ns(f"ns validate {' '.join(f'./own.py::{name}' for name in WRONG)}", cwd=here)
    assert done.returncode == 1
    assert "0 of 8 benchmarks pass" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("error: "), "notes stand before what is wrong"
    for name, problem in WRONG.items():
        assert f"error: {name.lower().replace('_', '-')}: {problem}" in done.stderr


def test_hedges_that_are_known_or_honest_are_no_fault(here: Path) -> None:
    done = ns("ns validate ./own.py::KNOWN ./own.py::FORM --json found.json", cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hedges earn more than chance, as its page says: a number may stand anywhere" in done.stderr
    found = {one["benchmark"]: one for one in json.loads((here / "found.json").read_text())}
    assert found["known"]["hedges"]["lines of numbers"]["right"] == 50
    assert found["known"]["shares"]["hedge"]["right"] >= 50
    neutral = found["form"]["hedges"]["not known"]
    assert neutral["right"] >= 50, "what a reply that says nothing gets is the base of others"
    assert neutral["limit"] >= neutral["right"]
    few = ns("ns validate ./own.py::FITTING --max_samples=9 --json few.json", cwd=here)
    assert few.returncode == 0, "so few may all be right by chance"
    (one,) = json.loads((here / "few.json").read_text())
    assert one["hedges"] == {}


@pytest.mark.nightly
def test_what_lacks_only_a_package_is_left_out(here: Path) -> None:
    done = ns(
        "ns validate ./own.py::GOOD ./own.py::BARE ./own.py::OTHER ./own.py::FORGETFUL --json found.json", cwd=here
    )
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert lines["bare"].endswith("left out: needs newskills[excel]")
    assert lines["forgetful"].endswith("left out: needs newskills[instructions]")
    assert lines["other"].endswith("left out: needs other-package")
    assert lines["good"].endswith("ok")
    assert "1 of 4 benchmarks pass, 3 left out for want of packages" in done.stdout
    found = {one["benchmark"]: one for one in json.loads((here / "found.json").read_text())}
    assert found["bare"]["left_out"] == "newskills[excel]"
    assert found["bare"]["problems"] == found["forgetful"]["problems"] == []


def test_words_that_make_no_sense(here: Path) -> None:
    for line, said in {
        "ns validate": "No benchmark is named.",
        "ns validate gsm8kk": "gsm8k",
        "ns validate gsm8k --category=science": "--category selects among all benchmarks",
        "ns validate all --category=scienc": "science",
        "ns validate all --max_samples=-2": "max_samples",
    }.items():
        done = ns(line, cwd=here)
        assert done.returncode != 0, line
        assert said in done.stderr, (line, done.stderr)


def test_few_samples_and_dry_run(here: Path) -> None:
    done = ns("ns validate ./own.py::GOOD --max_samples=5 --json found.json", cwd=here)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads((here / "found.json").read_text())
    assert (found["rows"], found["sampled"], found["shares"]["gold"]["of"]) == (100, 5, 5)
    dry = ns("ns validate ./own.py::GOOD --dry_run --json none.json", cwd=here)
    assert (dry.returncode, (here / "none.json").exists()) == (0, False)
    assert "good" in dry.stdout


IN_PART = {
    "charxiv": "Cannot read",
    "hallusionbench": "Cannot read",
    "pope": "Cannot read",
    "puzzlevqa": "200 rows, expected 2000",
}
"""Benchmarks whose images or other files a mirror may lack."""

FEWER = {"code": 8} if NIGHTLY else {"code": 1}
"""Category whose replies are programs that run → how many rows of each benchmark get replies: 25 of them take as long
as all other categories together. tests/graders/code/test_real_data.py runs more of them.
"""


MOST = 200 if NIGHTLY else 3
"""Rows of each other benchmark: by day too few for hedges to be tried, at night as many as `ns validate` takes."""

PATIENCE = 5400 if NIGHTLY else 600
"""Seconds for a category, or for all others: hedges are fifty replies to each row."""


@pytest.mark.mirror
@pytest.mark.slow
@pytest.mark.timeout(1.5 * PATIENCE)
def test_all_that_the_mirror_has(mirror: Path, tmp_path: Path) -> None:
    found: dict[str, dict[str, Any]] = {}
    others = ",".join(sorted({entry.category for entry in list_benchmarks()} - FEWER.keys()))
    for categories, most in (*FEWER.items(), (others, MOST)):
        line = f"ns validate all --category={categories} --max_samples={most} --offline --json found.json"
        done = ns(line, cwd=tmp_path, timeout=PATIENCE)
        told = json.loads((tmp_path / "found.json").read_text())
        assert done.returncode == any(one["problems"] for one in told), done.stderr
        found |= {one["benchmark"]: one for one in told}
    wrong = {name: one["problems"] for name, one in found.items() if one["problems"]}
    assert {name: told for name, told in wrong.items() if name not in IN_PART} == {}
    assert all(IN_PART[name] in problem for name, told in wrong.items() for problem in told)
    assert len(found) > 100
    assert found["mmlu"]["rows"] == 14042
    assert found["gsm8k"]["shares"]["gold"]["right"] == MOST
