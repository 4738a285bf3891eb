# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands.running import ns, rows_of, write

from newskills.base.errors import DataError
from newskills.run.judging.similar import QUERIES_PER_LOOKUP, SimilarMeanings, SimilarTexts, retrieve_similar

PROBLEMS = [
    "A train leaves the station at 5 pm and travels 60 km per hour. How far is it at 8 pm?",
    "Find the sum of the first ten odd numbers.",
    "How many ways are there to seat five people around a round table?",
    "求前十个奇数的和。",
]


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ("The train LEAVES at 6 pm; it travels 60 km per hour. How far is it at 9 pm?", 0),
        ("Ten odd numbers come first: find the sum!", 1),
        ("In how many ways can five people sit around a table?", 2),
        ("前二十个奇数的和是多少？", 3),
        *((problem, at) for at, problem in enumerate(PROBLEMS)),
    ],
)
def test_reworded_problems_are_found(query: str, position: int) -> None:
    (text, score), *rest = SimilarTexts(PROBLEMS).best([query], 3)[0]
    assert text == PROBLEMS[position]
    assert score == (1.0 if query == text else pytest.approx(0.5, abs=0.45))
    assert all(other <= score for _, other in rest)


def test_what_shares_no_word_is_not_similar() -> None:
    assert SimilarTexts(PROBLEMS).best(["Quelle heure?"], 3) == [[]]
    assert SimilarTexts([]).best(["x"], 1) == [[]]


def test_a_copy_of_common_words_only_is_found() -> None:
    texts = [f"add {n % 20} to {n % 20}" for n in range(4000)] + ["add to add to"]
    assert SimilarTexts(texts).best(["Add to: add to!"], 1) == [[("add to add to", 1.0)]]


@given(st.lists(st.text("ab c.", max_size=12), max_size=20), st.text("ab c.", max_size=12))
def test_similarities_are_sorted_shares_and_a_text_is_most_similar_to_itself(texts: list[str], query: str) -> None:
    index = SimilarTexts([*texts, query])
    best = index.best([query], 50)[0]
    scores = [score for _, score in best]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert (query, 1.0) in best


def test_each_problem_is_looked_up_once(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", [{"problem": text} for text in PROBLEMS])
    second = write(tmp_path / "b.jsonl", [{"problem": PROBLEMS[1]}, {"problem": PROBLEMS[1], "id": 2}])
    rows = list(retrieve_similar([first, first], [second, second], key="problem", top_k=1))
    assert rows == [{"problem": PROBLEMS[1], "similar_items": [PROBLEMS[1]], "similarities": [1.0]}]
    with pytest.raises(DataError, match=r"a.jsonl, line 1: the field 'question' is missing"):
        list(retrieve_similar([first], [second], key="question", top_k=1))
    empty = write(tmp_path / "c.jsonl", [])
    with pytest.raises(DataError, match="no rows to retrieve from"):
        list(retrieve_similar([empty], [second], key="problem", top_k=1))


def letters(texts: Sequence[str]) -> Any:
    """How often each letter stands in a text, as vectors of length 1."""
    counts = np.array(
        [[1e-3 + text.lower().count(chr(97 + at)) for at in range(26)] for text in texts], np.float32
    )
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_vectors_are_compared_by_their_angle(tmp_path: Path) -> None:
    index = SimilarMeanings(["listen", "abba", "silent", "abba"], letters)
    assert index.texts == ["listen", "abba", "silent"]
    anagrams, close = index.best(["tinsel", "baab"], 2)
    assert anagrams == [("listen", 1.0), ("silent", 1.0)]
    assert close[0] == ("abba", 1.0)
    assert close[1][1] < 0.01
    many = write(tmp_path / "many.jsonl", [{"problem": f"a{'b' * n}"} for n in range(QUERIES_PER_LOOKUP + 5)])
    rows = list(
        retrieve_similar([many], [many], key="problem", top_k=1, index_of=lambda t: SimilarMeanings(t, letters))
    )
    assert len(rows) == QUERIES_PER_LOOKUP + 5
    assert all(row["similarities"] == [pytest.approx(1.0, abs=1e-3)] for row in rows)


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="the library is here")
def test_a_missing_library_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"problem": text} for text in PROBLEMS])
    done = ns(
        "ns retrieve_similar --retrieve_from=a.jsonl --compare_to=a.jsonl --output_file=o --model=m", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "pip install 'newskills[embeddings]'" in done.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.skipif("NEWSKILLS_EMBEDDER" not in os.environ, reason="NEWSKILLS_EMBEDDER names no model")
def test_what_says_the_same_in_other_words_is_found(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"problem": text} for text in PROBLEMS])
    write(tmp_path / "b.jsonl", [{"problem": "Compute 1 + 3 + 5 + ... up to the 10th term."}])
    line = "ns retrieve_similar --retrieve_from=a.jsonl --compare_to=b.jsonl --output_file=o.jsonl"
    done = ns(line, f"--model={os.environ['NEWSKILLS_EMBEDDER']}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "o.jsonl")[0]["similar_items"][0] == PROBLEMS[1]
