# SPDX-License-Identifier: Apache-2.0
"""The registry of graders, multiple choice, exact texts, reasoning-gym."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.graders.plain import plain_grader

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.protocols import Grader
from newskills.base.records import Score
from newskills.graders import GRADERS, cpu_seconds

FOUR = {"A": "1", "B": "2", "C": "3", "D": "4"}


def choose(generation: str, expected: str = "B", record: dict[str, Any] | None = None, **config: Any) -> Score:
    return plain_grader("multichoice", config).grade(
        {"generation": generation, "expected_answer": expected, **FOUR, **(record or {})}
    )


@pytest.mark.parametrize("name", ["math", "multichoice", "exact", "reasoning_gym", "reasoning-gym"])
def test_every_name_makes_a_grader(name: str) -> None:
    assert isinstance(plain_grader(name, {}), Grader)
    assert name in GRADERS


def test_mistakes_in_settings_are_told() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'math'"):
        plain_grader("maths", {})
    with pytest.raises(ConfigError, match="did you mean 'take_modulo'"):
        plain_grader("math", {"take_modul": 7})
    with pytest.raises(ConfigError, match="take_modulo"):
        plain_grader("math", {"take_modulo": "seven"})


@pytest.mark.parametrize(
    ("generation", "letter"),
    [
        (r"So it is \boxed{B}", "B"),
        (r"\boxed{\text{B}}", "B"),
        (r"\boxed{b}", "B"),
        (r"\boxed{(B)}", "B"),
        (r"\boxed{B. two}", "B"),
        ("The final answer is (C)", "C"),
        ("**Answer: D**", "D"),
        ("Answer: $\\boxed{C}$", "C"),
        ("answer: b", "B"),
        ("Answer: A. But no.\nAnswer: B", "B"),
        ("الإجابة: ب", "B"),
        ("答案是C", "C"),
        ("Die Antwort ist D.", "D"),
        (r"\boxed{Ｂ}", "B"),
        ("<think>Answer: A</think>Answer: B", "B"),
    ],
)
def test_the_letter_chosen(generation: str, letter: str) -> None:
    score = choose(generation)
    assert score.fields == {"predicted_answer": letter, "symbolic_correct": letter == "B"}
    assert score.outcome == ("correct" if letter == "B" else "wrong")


@pytest.mark.parametrize(
    ("generation", "cause"),
    [
        ("I think A is nice", "model"),
        ("Answer: Because", "model"),
        ("<think>Answer: B", "truncation"),
        ("", "model"),
    ],
)
def test_no_letter_chosen(generation: str, cause: str) -> None:
    score = choose(generation)
    assert (score.outcome, score.cause, score.fields["predicted_answer"]) == ("no_answer", cause, None)


def test_letters_beyond_the_options_do_not_count() -> None:
    assert choose(r"\boxed{E}").outcome == "no_answer"
    ten = {letter: letter for letter in "ABCDEFGHIJ"}
    assert choose(r"\boxed{E}", "E", ten).outcome == "correct"


def test_a_record_overrides_the_settings() -> None:
    text = "ANSWER=C and \\boxed{B}"
    assert choose(text).fields["predicted_answer"] == "B"
    assert choose(text, record={"extract_regex": r"ANSWER=(\w)"}).fields["predicted_answer"] == "C"
    assert choose(text, record={"extract_regex": [r"nothing", r"ANSWER=(\w)"]}).fields["predicted_answer"] == "C"
    assert (
        choose(text, record={"extract_regex": r"ANSWER=(\w)", "relaxed": False}).fields["predicted_answer"] == "B"
    )
    strict = {"extract_regex": r"ANSWER=(\w)", "relaxed": False, "extract_from_boxed": False}
    assert choose(text, record=strict).fields["predicted_answer"] == "C"


def test_multichoice_without_gold_is_unscored() -> None:
    score = plain_grader("multichoice", {}).grade({"generation": r"\boxed{B}"})
    assert (score.outcome, score.cause) == ("unscored", "data")


@pytest.mark.parametrize(
    ("generation", "outcome"),
    [
        ("Paris", "correct"),
        (" paris\n", "correct"),
        ("<think>x</think>Paris", "correct"),
        ("London", "wrong"),
        ("", "no_answer"),
    ],
)
def test_exact(generation: str, outcome: str) -> None:
    score = plain_grader("exact", {}).grade({"generation": generation, "expected_answer": "Paris"})
    assert score.outcome == outcome
    assert score.fields["symbolic_correct"] is (outcome == "correct")


def test_exact_can_respect_case() -> None:
    record = {"generation": "paris", "expected_answer": "Paris"}
    assert plain_grader("exact", {"ignore_case": False}).grade(record).outcome == "wrong"


def entry(task: str) -> dict[str, Any]:
    reasoning_gym = pytest.importorskip("reasoning_gym")
    return json.loads(json.dumps(reasoning_gym.create_dataset(task, size=1, seed=3)[0]))


def solve(task: str, answer: str) -> Score:
    return plain_grader("reasoning_gym", {}).grade({**entry(task), "generation": answer})


TASKS = [
    "prime_factorization",
    "countdown",
    "n_queens",
    "chain_sum",
    "leg_counting",
    "simple_integration",
    "spiral_matrix",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", TASKS)
def test_reasoning_gym(task: str) -> None:
    gold = entry(task)["answer"]
    assert solve(task, f"so <answer>{gold}</answer>").outcome == "correct"
    assert solve(task, "<answer>zzz</answer>").outcome == "wrong"
    assert solve(task, "<answer>[].__class__.__base__</answer>").outcome == "wrong"


@pytest.mark.filterwarnings("ignore")
def test_reasoning_gym_answers_are_found_in_a_box_or_on_the_last_line() -> None:
    gold = entry("chain_sum")["answer"]
    assert solve("chain_sum", rf"it is \boxed{{{gold}}}").outcome == "correct"
    assert solve("chain_sum", f"it is\n{gold}\n").outcome == "correct"
    assert solve("chain_sum", "<think>hm").outcome == "no_answer"
    assert solve("chain_sum", "").outcome == "no_answer"


@pytest.mark.filterwarnings("ignore")
def test_reasoning_gym_does_not_execute_answers(tmp_path: Any) -> None:
    flag = tmp_path / "flag"
    attack = f"open({str(flag)!r}, 'w').close()"
    for task in [
        *TASKS,
        "string_insertion",
        "binary_matrix",
        "puzzle24",
        "polynomial_multiplication",
        "intermediate_integration",
    ]:
        assert solve(task, f"<answer>{attack}</answer>").outcome == "wrong"
    assert not flag.exists()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("answer", ["nan", "NaN", "nan+nanj", "-nan", "nan + 1i", "inf", "infinity", "1e9+infj"])
def test_no_number_is_near_every_number_of_reasoning_gym(answer: str) -> None:
    reasoning_gym = pytest.importorskip("reasoning_gym")
    (entry,) = list(reasoning_gym.create_dataset("complex_arithmetic", size=1, seed=3))
    grader = plain_grader("reasoning_gym", {})
    score = grader.grade({**entry, "generation": f"<answer>{answer}</answer>"})
    assert (score.outcome, score.value) == ("wrong", 0.0)
    assert grader.grade({**entry, "generation": f"<answer>{entry['answer']}</answer>"}).outcome == "correct"


def test_a_verifier_that_accepts_everything_is_refused() -> None:
    record = {
        "metadata": {"source_dataset": "game_of_life_halting"},
        "question": "?",
        "answer": "True",
        "generation": "x",
    }
    score = plain_grader("reasoning_gym", {}).grade(record)
    assert (score.outcome, score.cause) == ("unscored", "grader")


def test_a_record_that_is_no_entry_is_refused() -> None:
    with pytest.raises(DataError, match="source_dataset"):
        plain_grader("reasoning_gym", {}).grade({"generation": "x"})


CUSTOM = """
from newskills.base.records import Score

def fn(record) -> Score:
    return Score(outcome="correct" if record["generation"] == "42" else "wrong", fields={}, grader="fn@1")

def careless(record):
    return True

class Broken:
    def __init__(self):
        raise RuntimeError("no licence")

class Empty:
    pass
"""


def test_a_plain_function_is_a_grader(tmp_path: Any) -> None:
    (tmp_path / "g.py").write_text(CUSTOM)
    grader = plain_grader(f"{tmp_path}/g.py::fn", {})
    assert isinstance(grader, Grader)
    assert (grader.name, grader.version) == ("fn", "1")
    assert [grader.grade({"generation": text}).outcome for text in ("42", "41")] == ["correct", "wrong"]
    with pytest.raises(ConfigError, match="no settings"):
        plain_grader(f"{tmp_path}/g.py::fn", {"timeout": 3})
    with pytest.raises(ConfigError, match="bool, not a Score"):
        plain_grader(f"{tmp_path}/g.py::careless", {}).grade({})


@pytest.mark.parametrize(("name", "says"), [("Broken", "RuntimeError: no licence"), ("Empty", "is not a grader")])
def test_a_class_that_cannot_be_made_is_told(tmp_path: Any, name: str, says: str) -> None:
    (tmp_path / "g.py").write_text(CUSTOM)
    with pytest.raises(ConfigError, match=says):
        plain_grader(f"{tmp_path}/g.py::{name}", {})


def test_the_time_limit_is_a_setting() -> None:
    assert cpu_seconds(plain_grader("math", {"timeout": 2.5})) == 2.5
    assert cpu_seconds(plain_grader("exact", {})) == 10


@pytest.mark.filterwarnings("ignore")
def test_reasoning_gym_forgives_dress() -> None:
    gold = entry("leg_counting")["answer"]
    for dressed in (f"{gold}.", f"**{gold}**", f'"{gold}"', f"**{gold}.**"):
        score = solve("leg_counting", f"<answer>{dressed}</answer>")
        assert (score.outcome, score.fields["predicted_answer"]) == ("correct", gold), dressed
    assert solve("leg_counting", f"<answer>{gold}1.</answer>").outcome == "wrong"


YES = {"A": "Yes", "B": "No", "C": "Maybe"}


@pytest.mark.parametrize(
    ("generation", "letter"),
    [
        ("Answer: maybe", "C"),
        ("**Answer:** No.", "B"),
        ("Answer: No, since it rains.", "B"),
        ("Answer: B", "B"),
        ("The answer is yes", "A"),
        (r"\boxed{\text{Maybe}}", "C"),
        (r"\boxed{C}", "C"),
        ("yes", "A"),
        ("It is hard to say.\n\nMaybe.", "C"),
        ("Answer: B\nThe answer depends on the weather, though.", "B"),
        ("Answer: A\nOn second thought, answer: no", "B"),
        ("Answer: no\nOn second thought, answer: A", "A"),
        ("Answer: unknown", None),
        ("Nobody said yes or no, so I cannot tell.", None),
        ("", None),
    ],
)
def test_options_by_name(generation: str, letter: str | None) -> None:
    score = plain_grader("multichoice", {}).grade({"generation": generation, "expected_answer": "Maybe", **YES})
    assert score.fields == {"predicted_answer": letter, "symbolic_correct": letter == "C"}


def test_options_in_a_list_have_names() -> None:
    record = {"generation": "Answer: maybe", "expected_answer": "maybe", "options": ["yes", "no", "maybe"]}
    assert plain_grader("multichoice", {}).grade(record).fields["predicted_answer"] == "C"


def test_names_of_options_do_not_hide_letters() -> None:
    options = {"A": "B", "B": "A man", "C": "A dog"}
    assert choose(r"\boxed{A man}", "B", options).fields["predicted_answer"] == "B"
    assert choose(r"\boxed{B}", "B", options).fields["predicted_answer"] == "B"
    assert choose("Answer: same", "A", {"A": "same", "B": "same"}).outcome == "no_answer"


@pytest.mark.parametrize("filler", ["*", " ", "\\boxed{", "answer ", "("])
def test_answer_lines_cost_linear_time(filler: str) -> None:
    record = {"generation": "answer" + filler * 60_000, "expected_answer": "Maybe", **YES}
    assert plain_grader("multichoice", {}).grade(record).outcome == "no_answer"


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("generation", "outcome"),
    [
        ('{"n": 3}', "correct"),
        ('Here:\n```json\n{"n": 3}\n```\nDone.', "correct"),
        ('<think>{"m": 1}</think>{"n": 3}', "correct"),
        ('{"n": 3.5}', "wrong"),
        ("{}", "wrong"),
        ("{n: 3}", "wrong"),
        ("[" * 100_000, "wrong"),
        ("", "no_answer"),
        ("<think>hm", "no_answer"),
    ],
)
def test_json_schema(generation: str, outcome: str) -> None:
    pytest.importorskip("jsonschema")
    for schema in (SCHEMA, json.dumps(SCHEMA)):
        score = plain_grader("json_schema", {}).grade({"generation": generation, "expected_answer": schema})
        assert (score.outcome, score.fields["is_correct"]) == (outcome, outcome == "correct")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        "{",
        {"$ref": "https://example.invalid/s.json"},
        {"$ref": "#/nowhere"},
        {"$ref": 3},
    ],
)
def test_schemas_that_cannot_be_applied_are_nobodys_fault(schema: Any) -> None:
    pytest.importorskip("jsonschema")
    score = plain_grader("json_schema", {}).grade({"generation": "{}", "expected_answer": schema})
    assert (score.outcome, score.cause) == ("unscored", "data")
    assert plain_grader("json_schema", {}).grade({"generation": "{}"}).outcome == "unscored"
