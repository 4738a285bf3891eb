# SPDX-License-Identifier: Apache-2.0
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import write_rows
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.prompts.retrieval import BM25

words = st.lists(st.sampled_from("abcdefg"), max_size=8).map(" ".join)


def okapi(documents: list[str], query: str) -> list[float]:
    """The formula written down once more, document by document."""
    split = [document.split() for document in documents]
    mean = sum(map(len, split)) / len(split) or 1.0
    vocabulary = list(dict.fromkeys(term for terms in split for term in terms))
    n = {term: sum(term in terms for terms in split) for term in vocabulary}
    idf = {term: math.log((len(split) - n[term] + 0.5) / (n[term] + 0.5)) for term in vocabulary}
    floor = 0.25 * sum(idf.values()) / max(1, len(idf))
    idf = {term: value if value >= -1e-12 else floor for term, value in idf.items()}
    scores = []
    for terms in split:
        score = 0.0
        for term in query.split():
            f = terms.count(term)
            score += idf.get(term, 0.0) * f * 2.5 / (f + 1.5 * (0.25 + 0.75 * len(terms) / mean))
        scores.append(score)
    return scores


@given(st.lists(words, min_size=1, max_size=12), words, st.integers(1, 12))
def test_the_order_is_that_of_the_formula(documents: list[str], query: str, count: int) -> None:
    expected = okapi(documents, query)
    found = BM25(documents).best(query, count)
    assert len(found) == len(set(found)) == min(count, len(documents))
    ranked = sorted(expected, reverse=True)[:count]
    assert [expected[at] for at in found] == pytest.approx(ranked, abs=1e-9)


def test_ties_go_by_position() -> None:
    assert BM25(["z", "x y", "w", "x y", "v"]).best("x", 4) == [1, 3, 0, 2]


def entries(tmp_path: Path, rows: list[Row]) -> str:
    path = tmp_path / "train.jsonl"
    write_rows(path, rows)
    return str(path)


def shown(path: str | Path, query: str, **few_shots: Any) -> str:
    section = {"template": "[{problem}]", "retrieval_field": "problem", "retrieval_file": path} | few_shots
    prompt = load_prompt({"user": "{examples}|{problem}", "few_shot_examples": section})
    return prompt.messages({"problem": query})[0].content.rpartition("|")[0]


ROWS = [
    {"problem": "red apples in a basket", "reference_solution": "12"},
    {"problem": "red apples", "reference_solution": "1234567890"},
    {"problem": "a blue car {x}", "reference_solution": ""},
    {"problem": "red red apples apples", "reference_solution": ""},
    {"problem": "something else", "reference_solution": ""},
    {"problem": "and more", "reference_solution": ""},
    {"problem": "and yet more", "reference_solution": ""},
]


def test_the_best_stands_last_and_the_query_itself_is_not_shown(tmp_path: Path) -> None:
    path = entries(tmp_path, [*ROWS, ROWS[3], *ROWS[4:]])
    texts = shown(path, "red red apples apples", retrieved_entries=4, retrieved_few_shots=2)
    assert texts == "[red apples in a basket][red apples]"


def test_long_entries_are_left_out(tmp_path: Path) -> None:
    path = entries(tmp_path, ROWS)
    assert shown(path, "red apples in", retrieved_few_shots=1, max_retrieved_chars=5) == "[red apples in a basket]"
    assert shown(path, "red apples", retrieved_few_shots=1, max_retrieved_chars=5) == "[red red apples apples]"
    with pytest.raises(DataError, match="no field 'solution'"):
        shown(path, "red", max_retrieved_chars=5, max_retrieved_chars_field="solution")


def test_a_shuffle_depends_on_the_query_only(tmp_path: Path) -> None:
    path = entries(tmp_path, ROWS)
    plain = shown(path, "red car more", retrieved_entries=7)
    orders = {shown(path, "red car more", retrieved_entries=7, randomize_retrieved_entries=True) for _ in range(5)}
    assert len(orders) == 1
    assert sorted(orders.pop().split("]")) == sorted(plain.split("]"))


def test_the_hash_follows_the_content_of_the_file(tmp_path: Path) -> None:
    def digest(folder: Path, rows: list[Row]) -> str:
        folder.mkdir(exist_ok=True)
        section = {"template": "{problem}", "retrieval_field": "problem", "retrieval_file": entries(folder, rows)}
        prompt = load_prompt({"user": "{examples}", "few_shot_examples": section})
        assert prompt.fields == ("problem",)
        return prompt.hash

    assert digest(tmp_path / "a", ROWS) == digest(tmp_path / "b", ROWS)
    assert digest(tmp_path / "a", ROWS) != digest(tmp_path / "a", ROWS[:3])


@pytest.mark.parametrize(
    ("rows", "error", "said"),
    [([], DataError, "is empty"), ([{"question": "x"}], DataError, "entry 1: the field 'problem' is missing")],
)
def test_unfit_files(tmp_path: Path, rows: list[dict[str, str]], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        shown(entries(tmp_path, rows), "x")


def test_missing_file_and_missing_field(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="retrieval_file: there is no file"):
        shown(str(tmp_path / "none.jsonl"), "x")
    section = {"template": "{problem}", "retrieval_field": "problem", "retrieval_file": entries(tmp_path, ROWS)}
    prompt = load_prompt({"user": "{examples}", "few_shot_examples": section})
    with pytest.raises(DataError, match="no field 'problem'"):
        prompt.messages({"id": 1})


def test_override_on_the_command_line(tmp_path: Path) -> None:
    path = entries(tmp_path, ROWS)
    overrides = PromptOverrides(
        few_shot_examples={
            "retrieval_field": "problem",
            "retrieval_file": path,
            "template": "[{problem}]",
            "retrieved_few_shots": 1,
        }
    )
    (message,) = load_prompt("generic/math", overrides).messages({"problem": "blue"})
    assert "[a blue car {x}]" in message.content


def test_many_documents_in_any_order() -> None:
    rng = random.Random(1)
    documents = [" ".join(rng.choices("abcdefghijklmnop", k=rng.randint(1, 30))) for _ in range(500)]
    expected = okapi(documents, "a b c")
    best = BM25(documents).best("a b c", 10)
    assert [expected[at] for at in best] == pytest.approx(sorted(expected, reverse=True)[:10])
