# SPDX-License-Identifier: Apache-2.0
"""Tasks that the library reasoning-gym generates and verifies (Stojanovski et al. 2025, arXiv:2505.24760).

Nothing is downloaded: the rows follow from task, settings, seed and version of the library, the same on every
machine. `test` and `train` come from seeds far apart, and no question of `test` is in `train`.
"""

import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from threading import Lock
from typing import NamedTuple

from newskills.base.benchmark import Benchmark, Group
from newskills.base.errors import ConfigError
from newskills.base.records import Row

_ITEMS = 100
_SEEDS = {"test": 42, "train": 1_000_042}
_MOST_TRIES = 4000

# Tasks by field. Left out: those whose rows change from run to run, have no single answer, cannot be written as
# JSON, take minutes to generate, or run out of different questions.
_TASKS = {
    "algebra": "complex_arithmetic polynomial_equations simple_equations",
    "algorithmic": (
        "ab base_conversion binary_alternation binary_matrix caesar_cipher count_primes cryptarithm "
        "game_of_life group_anagrams jugs letter_counting letter_jumble manipulate_matrix number_filtering "
        "number_sorting palindrome_generation palindrome_partitioning pool_matrix rotate_matrix "
        "rotten_oranges sentence_reordering spell_backward spiral_matrix string_insertion string_manipulation "
        "string_splitting string_synthesis word_sequence_reversal word_sorting"
    ),
    "arc": "arc_1d",
    "arithmetic": (
        "basic_arithmetic bitwise_arithmetic calendar_arithmetic chain_sum count_bits decimal_arithmetic "
        "decimal_chain_sum dice fraction_simplification gcd lcm leg_counting number_format power_function "
        "prime_factorization products time_intervals"
    ),
    "cognition": "color_cube_rotation figlet_font modulo_grid needle_haystack number_sequence rectangle_count",
    "games": (
        "countdown emoji_mystery kakurasu mahjong_puzzle maze mini_sudoku n_queens puzzle24 sokoban sudoku "
        "survo tsumego"
    ),
    "geometry": "advanced_geometry simple_geometry",
    "graphs": "course_schedule family_relationships largest_island path_star quantum_lock shortest_path",
    "induction": "acre",
    "logic": "aiw circuit_logic knights_knaves self_reference syllogism zebra_puzzles",
    "probability": "coin_flip",
}
_CHANCE = {
    "acre": 1 / 3,
    "circuit_logic": 0.5,
    "course_schedule": 0.5,
    "mahjong_puzzle": 1 / 3,
    "syllogism": 0.5,
    # The text that is given, which many rules leave as it is; the commonest count.
    "string_manipulation": 0.38,
    "easy-letters": 0.65,
}


class _EasySettings(NamedTuple):
    """Settings that a model of 100 to 500 million parameters can partly solve, or learns quickly.

    `numeric`: graded by the last number of the reply, since such models put answers into sentences.
    """

    name: str
    task: str
    settings: Row
    numeric: bool = True
    test: int = _ITEMS
    train: int = _ITEMS


_TWO_DIGITS = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
_FOUR_INTEGERS = {"min_numbers": 4, "max_numbers": 4, "max_decimals": 0, "min_value": 0, "max_value": 99}
_TWO_ANIMALS = {"min_animals": 2, "max_animals": 2, "min_instances": 1, "max_instances": 9}
_EASY = (
    _EasySettings("easy-sum", "chain_sum", _TWO_DIGITS),
    _EasySettings("easy-product", "products", _TWO_DIGITS, test=60, train=40),
    _EasySettings("easy-gcd", "gcd", {"max_value": 20}),
    _EasySettings("easy-letters", "letter_counting", {"min_words": 2, "max_words": 4}),
    _EasySettings("easy-legs", "leg_counting", _TWO_ANIMALS),
    _EasySettings("easy-sorting", "number_sorting", _FOUR_INTEGERS, numeric=False),
    _EasySettings("easy-reversal", "word_sequence_reversal", {"min_words": 3, "max_words": 5}, numeric=False),
)

# The library draws some rows from generators that all threads share.
_one_at_a_time = Lock()


def rows(split: str, *, task: str, settings: Row, items: dict[str, int]) -> list[Row]:
    """Return the rows of a split. Raises ConfigError where the library is missing."""
    try:
        from reasoning_gym import create_dataset
    except ImportError as error:
        raise ConfigError(
            "Generating these tasks needs the extra newskills[local].", hint="pip install 'newskills[local]'"
        ) from error
    seen: set[str] = set()

    # Through JSON and back, since some tasks use the number and text types of numpy.
    def fresh(name: str) -> Iterator[Row]:
        made = create_dataset(task, seed=_SEEDS[name], size=_MOST_TRIES, **settings)
        for index in range(_MOST_TRIES):
            entry = made[index]
            if entry["question"] not in seen:
                seen.add(entry["question"])
                yield {
                    "id": f"{task}-{_SEEDS[name]}-{index}",
                    "question": entry["question"],
                    "expected_answer": str(entry["answer"]),
                    "metadata": json.loads(json.dumps(entry["metadata"])),
                }

    with _one_at_a_time:
        test = list(islice(fresh("test"), items["test"]))
        if split == "test":
            return test
        return list(islice(fresh("train"), items["train"]))


def _benchmark(name: str, task: str, title: str, *, easy: _EasySettings | None = None) -> Benchmark:
    numeric = easy is not None and easy.numeric
    items, settings = {"test": _ITEMS, "train": _ITEMS}, {}
    if easy is not None:
        items, settings = {"test": easy.test, "train": easy.train}, easy.settings
    return Benchmark(
        name=f"reasoning-gym.{name}",
        category="reasoning",
        title=title,
        generate_rows=partial(rows, task=task, settings=settings, items=items),
        generator="reasoning-gym",
        prompt="generic/default",
        grader="math" if numeric else "reasoning_gym",
        grader_config={"relaxed_extraction": True} if numeric else {},
        items=items,
        licence="Apache-2.0",
        homepage="https://github.com/open-thought/reasoning-gym",
        citation="arXiv:2505.24760",
        chance=_CHANCE.get(name, 0.0),
        requires="newskills[local]",
        traps=("Another version of the library may generate other rows; the record beside the data names it.",),
    )


def _task_title(task: str) -> str:
    return task.replace("_", " ")


BENCHMARKS = (
    *(
        _benchmark(task, task, f"generated, {field}: {_task_title(task)}")
        for field, tasks in _TASKS.items()
        for task in tasks.split()
    ),
    *(
        _benchmark(easy.name, easy.task, f"generated, for small models: {_task_title(easy.task)}", easy=easy)
        for easy in _EASY
    ),
)

GROUP = Group(
    name="reasoning-gym",
    category="reasoning",
    title="All tasks that the library reasoning-gym generates, and easier ones for small models",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    homepage="https://github.com/open-thought/reasoning-gym",
    citation="arXiv:2505.24760",
)
