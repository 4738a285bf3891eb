# SPDX-License-Identifier: Apache-2.0
"""Whole builds: the same as the plain way in memory, whatever the pieces and workers; killed; torn; empty."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.train.data.building import config_of, expected, made, write

from newskills._version import __version__
from newskills.base.errors import ConfigError, DataError, LockedError
from newskills.base.records import Row
from newskills.base.store import hold_lock
from newskills.train.data import build as building
from newskills.train.data.build import ComparedProblems, work_folder
from newskills.train.data.card import Card
from newskills.train.data.settings import RECIPES, check_keys

GOLDEN = Path(__file__).parent / "golden"
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "problem": st.sampled_from(["one", "two", "drei €", "four"]),
            "generation": st.sampled_from(
                ["a \\boxed{1}", "a \\boxed{1}\nrest", "b", "SyntaxError", "c\n1 + 1 + 1 = 4", "My solution:\nb"]
            ),
        },
        optional={"symbolic_correct": st.booleans() | st.none()},
    ),
    max_size=40,
)
SWITCHES = {
    "filters.remove_code_errors": True,
    "filters.drop_incorrect_arithmetic": True,
    "filters.trim_prefix": True,
    "filters.majority_filter": True,
}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of some rows, and several partitions."""
    monkeypatch.setattr(building, "CHUNK_BYTES", 100)
    monkeypatch.setattr(building, "partitions_for", lambda total: 7)


def generations(count: int, each: int = 3) -> list[dict[str, Any]]:
    """`each` solutions of every problem, in turn."""
    return [
        {
            "problem": f"What is {n} + 1?",
            "generation": f"Way {k}: \\boxed{{{n + 1}}}.",
            "expected_answer": n + 1,
            "symbolic_correct": True,
            "id": f"{n}-{k}",
        }
        for k in range(each)
        for n in range(count)
    ]


def told(card: Card) -> Counter[str]:
    return Counter({step.name: step.removed for step in card.steps if step.removed})


@pytest.mark.nightly
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=ROWS, deduplicate=st.booleans(), shuffled=st.booleans())
def test_as_the_plain_way(small_pieces: None, rows: list[Row], deduplicate: bool, shuffled: bool) -> None:
    values = {**SWITCHES, "deduplicate": deduplicate, "do_shuffle": shuffled}
    groups, removed = expected(rows, config_of("math_sft", values))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = write(folder / "in.jsonl", rows)
        if not groups:
            with pytest.raises(DataError, match=r"No rows are left|no rows"):
                made(folder, [file], values=values)
            assert [path.name for path in folder.iterdir()] == ["in.jsonl"]
            return
        found, card = made(folder, [file], values=values)
    pairs = [(row["input"], row["output"]) for row in found]
    wanted = [pair for group in groups for pair in group]
    assert (sorted(pairs) if shuffled else pairs) == (sorted(wanted) if shuffled else wanted)
    assert told(card) == removed
    assert card.rows_read == len(rows) == card.rows_written + sum(removed.values())
    assert card.problems == len(groups)


def test_neither_workers_nor_pieces_change_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "in.jsonl", generations(300) + generations(20))
    digests = set()
    for workers, chunk, partitions in ((1, 1 << 20, 1), (1, 999, 5), (3, 5000, 5), (2, 777, 31)):
        monkeypatch.setattr(building, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(building, "partitions_for", lambda total, count=partitions: count)
        for method in ({}, {"downsampling_method": "fair", "num_output_samples": 450}):
            _, card = made(tmp_path, [file], workers=workers, values=method)
            output = (tmp_path / "out.jsonl").read_bytes()
            assert card.sha256 == hashlib.sha256(output).hexdigest()
            assert card.bytes == len(output)
            cards = ((tmp_path / f"out.jsonl.card.{kind}").read_bytes() for kind in ("json", "md"))
            digests.add((len(method), card.sha256, *cards))
    assert len(digests) == 2


def test_another_seed_is_another_order(tmp_path: Path) -> None:
    file = write(tmp_path / "in.jsonl", generations(50))
    orders = [
        [row["output"] + row["input"] for row in made(tmp_path, [file], random_seed=n)[0]] for n in (1, 2, 1)
    ]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_random_and_fair_sampling(tmp_path: Path, small_pieces: None) -> None:
    rows = generations(10, each=1) * 1 + [
        {**row, "generation": f"{row['generation']} again {k}"} for k in range(5) for row in generations(3, each=1)
    ]
    file = write(tmp_path / "in.jsonl", rows)
    found, card = made(tmp_path, [file], values={"downsampling_method": "random", "num_output_samples": 7})
    everything = made(tmp_path, [file])[0]
    assert found == everything[:7]
    assert told(card) == {"not sampled": 18}
    fair, _ = made(tmp_path, [file], values={"downsampling_method": "fair", "num_output_samples": 12})
    assert Counter(Counter(row["input"] for row in fair).values()) == {1: 8, 2: 2}
    assert {row["input"] for row in fair if "again" in row["output"]} == {"What is 0 + 1?", "What is 1 + 1?"}
    assert all("again 0" in row["output"] for row in fair if "again" in row["output"])
    few, card = made(tmp_path, [file], values={"downsampling_method": "fair", "num_output_samples": 25})
    assert few == everything
    assert card.rows_written == 25


@pytest.mark.parametrize(
    ("method", "kept"),
    [
        (None, "ccttt cct ctt cc tt"),
        ("all", "cc cc c cc"),
        ("majority_code", "ccttt cc ctt cc tt"),
        ("majority_text", "ttt cc tt cc tt"),
        ("any_code", "cc cc c cc tt"),
    ],
)
def test_code_and_text(tmp_path: Path, method: str | None, kept: str) -> None:
    rows = [
        {
            "problem": kinds,
            "generation": f"{n} {'```python' + chr(10) if kind == 'c' else ''}",
            "symbolic_correct": True,
        }
        for kinds in ("ccttt", "cct", "ctt", "cc", "tt")
        for n, kind in enumerate(kinds)
    ]
    file = write(tmp_path / "in.jsonl", rows)
    values = {"filters.code_text_filter": method, "code_tags": "qwen", "do_shuffle": False}
    found, card = made(tmp_path, [file], values=values)
    groups: dict[str, str] = {}
    for row in found:
        groups[row["input"]] = groups.get(row["input"], "") + ("c" if "```" in row["output"] else "t")
    assert list(groups.values()) == kept.split()
    assert told(card)["code_text_filter"] == 15 - len(found)


def test_verdicts(tmp_path: Path) -> None:
    rows = [
        {"problem": "p", "generation": "right", "symbolic_correct": True, "judgement": "Judgement: No"},
        {"problem": "p", "generation": "wrong", "symbolic_correct": False, "judgement": "Judgement: Yes"},
        {"problem": "p", "generation": "none"},
        {"problem": "p", "generation": "lost", "symbolic_correct": False, "outcome": "unscored", "judgement": "…"},
        {},
    ]
    file = write(tmp_path / "in.jsonl", rows)

    def kept(**values: Any) -> set[str]:
        return {row["output"] for row in made(tmp_path, [file], values=values)[0]}

    assert kept() == {"right"}
    assert kept(add_correct=False, add_incorrect=True) == {"wrong"}
    assert kept(add_unlabeled=True, add_correct=False) == {"none", "lost"}
    assert kept(use_judgement=True) == {"wrong"}
    assert kept(use_judgement=True, add_correct=False, add_incorrect=True) == {"right"}
    assert kept(add_unlabeled=True, add_incorrect=True) == {"right", "wrong", "none", "lost"}
    assert len(made(tmp_path, [file], graded=False)[0]) == 4
    card = made(tmp_path, [file])[1]
    assert told(card) == {"empty rows": 1, "rows without a verdict": 2, "wrong solutions": 1}


def test_first_lines_are_left_out_of_each_file(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.jsonl", generations(4, each=1)) for name in "ab"]
    found, card = made(tmp_path, files, skip_first=3, deduplicate=False)
    assert [row["input"] for row in found] == ["What is 3 + 1?"]
    assert told(card) == {"repeated outputs": 1}
    assert card.rows_read == 2


def test_benchmarks_and_checked_problems_are_removed(tmp_path: Path) -> None:
    file = write(tmp_path / "in.jsonl", generations(4))
    checked = write(tmp_path / "c.jsonl", [{"problem": "What is 2 + 1?", "contaminated": True}])
    values = {"filters.remove_contaminated": True, "contamination_file": str(checked)}
    compared = (ComparedProblems(name="sums", texts=lambda: ["what is 0+1"]),)
    found, card = made(tmp_path, [file], compared=compared, values=values)
    assert {row["input"] for row in found} == {"What is 1 + 1?", "What is 3 + 1?"}
    assert told(card) == {"remove_contaminated": 6}
    assert "Compared with sums" in (tmp_path / "out.jsonl.card.md").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"problem": "p", "generation"', r"in\.jsonl, line 2: invalid JSON"),
        ('{"problem": ' + "[" * 100_000, r"in\.jsonl, line 2: invalid JSON \(nested too deeply\)"),
        ("[1]", r"in\.jsonl, line 2: expected a JSON object"),
        (
            '{"question": "p", "generation": "x"}',
            r"line 2: the field 'problem' is missing; the row has generation, question\.",
        ),
        ('{"problem": "p", "output": "x"}', r"line 2: the field 'generation' is missing; .*\+\+output_key="),
        ('{"problem": "p", "generation": 5}', r"line 2: the field 'generation' is not text but int"),
        (
            '{"problem": "p", "generated_solution": "x", "expected_answer": "1", "problem_source": "s"}',
            r"--dataset=openmathinstruct-2",
        ),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_lines_that_do_not_fit(tmp_path: Path, small_pieces: None, line: str, message: str, workers: int) -> None:
    (row,) = generations(1, each=1)
    file = write(tmp_path / "in.jsonl", [row, line, row, row])
    (tmp_path / "out.jsonl").write_text("before\n")
    with pytest.raises(DataError, match=message):
        made(tmp_path, [file], graded=False, workers=workers)
    assert (tmp_path / "out.jsonl").read_text() == "before\n"
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out.jsonl"}


def test_nothing_left_says_which_step_took_it(tmp_path: Path) -> None:
    file = write(tmp_path / "in.jsonl", [*generations(2, each=1), {"problem": "p", "generation": "x"}])
    values = {"filters.remove_no_think_tags": True}
    with pytest.raises(
        DataError, match=r"left of 3 rows\. Removed by: rows without a verdict 1, remove_no_think_tags 2"
    ):
        made(tmp_path, [file], values=values)


@pytest.mark.parametrize(
    ("recipe", "values", "message"),
    [
        ("math_sft", {"filters.remove_contaminated": True}, "--decontaminate=BENCHMARK"),
        ("math_sft", {"filters.remove_len_outlier_problems": True}, r"\+\+tokenizer="),
        ("math_sft", {"num_output_samples": 5}, "downsampling_method"),
        ("math_sft", {"downsampling_method": "fair"}, "num_output_samples"),
        ("math_sft", {"add_correct": False}, "no rows would be left"),
        ("math_sft", {"filters.code_text_filter": "all"}, "code_tags"),
        ("math_sft", {"prompt_config": "generic/math"}, "tokenizer"),
        ("math_sft", {"add_code_execution_counts": True}, "exclude_optional_keys=false"),
        ("math_sft", {"assistant_end": "</s>"}, "prompt_config"),
        ("math_sft", {"output_path": ""}, "output_path"),
    ],
)
def test_settings_that_do_not_fit_together(
    tmp_path: Path, recipe: str, values: dict[str, Any], message: str
) -> None:
    file = write(tmp_path / "in.jsonl", generations(1))
    with pytest.raises(ConfigError, match=message):
        made(tmp_path, [file], recipe, values=values)


@pytest.mark.parametrize(
    ("recipe", "key", "home"),
    [
        ("code_sft", "filters.trim_solutions", "math_sft"),
        ("code_sft", "downsampling_method", "math_sft"),
        ("code_sft", "majority_filter.min_majority_votes", "math_sft"),
        ("math_rl", "output_key", "math_sft"),
        ("math_rl", "add_correct", "math_sft"),
        ("math_sft", "filters.drop_incorrect_code_blocks", "code_sft"),
        ("stem_sft", "filters.drop_none_answers", "math_rl"),
    ],
)
def test_keys_of_other_recipes(recipe: str, key: str, home: str) -> None:
    with pytest.raises(ConfigError, match=rf"{recipe} has no such .*--config-name=.*{home}"):
        check_keys(RECIPES[recipe], [key])
    check_keys(
        RECIPES[recipe], ["output_path", "filters.remove_len_outlier_problems"][: 1 + (recipe != "code_sft")]
    )


def test_the_output_is_no_input(tmp_path: Path) -> None:
    file = write(tmp_path / "out.jsonl", generations(2))
    with pytest.raises(ConfigError, match=r"out\.jsonl is both an input and the output"):
        made(tmp_path, [file])
    assert len(file.read_text().splitlines()) == 6


def test_a_tokenizer_without_template_is_told_by_workers(tmp_path: Path, small_pieces: None) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizers.Tokenizer(tokenizers.models.BPE()).save(str(tmp_path / "tokenizer.json"))
    file = write(tmp_path / "in.jsonl", generations(9))
    for workers in (1, 2):
        with pytest.raises(ConfigError, match="has no chat template"):
            made(tmp_path, [file], workers=workers, prompt_config="generic/math", tokenizer=str(tmp_path))


def test_one_build_at_a_time(tmp_path: Path) -> None:
    file = write(tmp_path / "in.jsonl", generations(2))
    with (
        hold_lock(work_folder(tmp_path / "out.jsonl") / "lock", "it"),
        pytest.raises(LockedError, match=r"out\.jsonl is in use"),
    ):
        made(tmp_path, [file])


def test_killed_in_the_middle(tmp_path: Path) -> None:
    """Whenever it dies, the old output is whole, and the next run starts afresh and leaves nothing behind."""
    long = [{**row, "generation": f"{'So. ' * 250}{row['generation']}"} for row in generations(3000)]
    file = write(tmp_path / "in.jsonl", long)
    (tmp_path / "out.jsonl").write_text("before\n")
    words = ["prepare_training_data", f"++input_files={file}", f"++output_path={tmp_path}/out.jsonl"]
    words += ["++filters.remove_contaminated=false", "++filters.remove_len_outlier_problems=false", "--workers=2"]
    argv = [sys.executable, "-m", "newskills", *words]
    work = work_folder(tmp_path / "out.jsonl")
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 300
    while not list(work.glob("chunk-*")) and time.monotonic() < until and process.poll() is None:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert work.exists()
    assert (tmp_path / "out.jsonl").read_text() == "before\n"
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len({(row["input"], row["output"]) for row in found}) == len(found) == 9000
    assert not work.exists()


def solution(n: int, k: int) -> str:
    return f"Way {k}.\n1 + 2 + {n} = {n + 3}\n```python\n{n}\n```\n\\boxed{{{n}}}\nx"


def turns(n: int, k: int) -> list[dict[str, Any]]:
    call = {"role": "assistant", "content": "I ask.", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    answer = {"role": "tool", "tool_call_id": "1", "content": "3"}
    return [call, answer, {"role": "assistant", "content": solution(n, k)}]


@pytest.mark.parametrize("recipe", ["math_sft", "stem_sft", "code_sft", "math_rl"])
def test_golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str) -> None:
    """What is written, byte by byte; set GOLDEN=1 to write the files anew."""
    code = recipe == "code_sft"
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            ("input" if code else "problem"): f"What is {n} + 1? “ü”",
            ("output" if code else "generation"): solution(n, k),
            "expected_answer": n,
            "predicted_answer": str(n),
            "symbolic_correct": k < 2,
            "reasoning_content": "Hm." if n == 1 else None,
            "serialized_output": turns(n, k) if n == 2 else None,
            "tools": [{"type": "function"}] if n == 2 else None,
            "total_votes": 8,
            "majority_votes": 6 if n else 1,
        }
        for n in range(4)
        for k in range(3)
    ]
    file = write(Path("in.jsonl"), rows)
    values = {"metadata": {"source": "golden"}}
    if recipe in ("math_sft", "stem_sft"):
        values |= {"filters.split_arithmetic": True, "filters.majority_filter": True}
        values |= {"majority_filter.min_majority_percentage": 0.5, "exclude_optional_keys": recipe == "stem_sft"}
    if recipe == "math_sft":
        values |= {"add_code_execution_counts": True, "input_files": "in.jsonl"}
    made(Path(), [file], recipe, values=values)
    for ending in ("", ".card.json", ".card.md"):
        text = (tmp_path / f"out.jsonl{ending}").read_text().replace(__version__, "VERSION")
        golden = GOLDEN / f"{recipe}.jsonl{ending}"
        if os.environ.get("GOLDEN"):
            golden.write_text(text)
        assert text == golden.read_text(), golden
