# SPDX-License-Identifier: Apache-2.0
"""Published sets: rows in their exact schema, and the real files where there is a mirror."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.train.data.building import made, write

from newskills.base.errors import DataError, UnknownNameError
from newskills.benchmarks import catalog_entries
from newskills.pipelines.data.training_sets import rows_of_file
from newskills.train.data.published import SCHEMAS, is_published, resembling_schema, schema_of

SOLUTION = "We add. \\boxed{\\frac{1}{2}}"
TURNS = [{"content": "P?", "role": "user"}, {"content": SOLUTION, "role": "assistant"}]
ASKED = (
    "Solve the following math problem step by step. The last line of your response should be of the form Answer: "
    "$Answer (without quotes) where $Answer is the answer to the problem.\n\nP?\n\nWith two paragraphs.\n\n"
    'Remember to put your answer on its own line after "Answer:".'
)
REASONING = {
    "expected_answer": "1/2",
    "problem_type": "has_answer_extracted",
    "problem_source": "aops_c4_high_school_math",
    "generation_model": "DeepSeek-R1",
    "pass_rate_72b_tir": "0.96875",
    "problem": "P?",
    "generated_solution": f"<think>\nHm.\n</think>\n{SOLUTION}",
    "inference_mode": "cot",
    "used_in_kaggle": True,
}
FIXTURES = {
    "numinamath-cot": {"source": "synthetic_math", "problem": "P?", "solution": SOLUTION, "messages": TURNS},
    "numinamath-tir": {
        "problem": "P?",
        "solution": f"```python\n1\n```\n```output\n1\n```\n{SOLUTION}",
        "messages": TURNS,
    },
    "openmathreasoning": REASONING,
    "openmathinstruct-2": {
        "problem": "P?",
        "generated_solution": SOLUTION,
        "expected_answer": "\\frac{1}{2}",
        "problem_source": "augmented_math",
    },
    "dapo-math-17k": {
        "data_source": "math_dapo",
        "prompt": [{"content": ASKED, "role": "user"}],
        "ability": "MATH",
        "reward_model": {"ground_truth": "34", "style": "rule-lighteval/MATH_v2"},
        "extra_info": {"index": "9a9b6eb4-a1cb-49d1-8c1e-62eaf2f74079"},
    },
    "dapo-math-17k-slime": {"prompt": [{"content": ASKED, "role": "user"}], "label": "34"},
    "math-hard": {"problem": "P?", "level": "Level 5", "type": "Algebra", "solution": SOLUTION},
    "gsm8k-train": {"question": "P?", "answer": "48/2 = <<48/2=24>>24\n#### 1,024"},
    "deepscaler": {"problem": "P?", "answer": "0", "difficulty": 5.0, "type": "Algebra"},
    "messages": {
        "messages": [
            {"role": "system", "content": [{"type": "text", "value": "Be brief."}], "loss_weight": 0.0},
            {"role": "user", "content": [{"type": "text", "value": "P"}, {"type": "text", "value": "?"}]},
            {
                "role": "assistant",
                "content": [{"type": "reasoning", "value": "Hm."}, {"type": "text", "value": SOLUTION}],
            },
        ]
    },
}
ANSWERS = {
    "numinamath-cot": "\\frac{1}{2}",
    "numinamath-tir": "\\frac{1}{2}",
    "openmathreasoning": "1/2",
    "openmathinstruct-2": "\\frac{1}{2}",
    "dapo-math-17k": "34",
    "dapo-math-17k-slime": "34",
    "math-hard": "\\frac{1}{2}",
    "gsm8k-train": "1024",
    "deepscaler": "0",
    "messages": None,
}
UNSOLVED = {"dapo-math-17k", "dapo-math-17k-slime", "deepscaler"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_row_of_each(name: str) -> None:
    row = schema_of(name).row(dict(FIXTURES[name]))
    assert row is not None
    assert row["problem"] == ("P?\n\nWith two paragraphs." if "dapo" in name else "P?")
    assert row.get("expected_answer") == ANSWERS[name]
    assert ("generation" not in row) == (name in UNSOLVED)
    assert schema_of(name).fields <= FIXTURES[name].keys()  # type: ignore[attr-defined]
    assert resembling_schema(FIXTURES[name]) == name


def test_what_sets_say_besides() -> None:
    row = schema_of("OpenMathReasoning").row
    assert row(REASONING)["pass_rate_72b_tir"] == 0.96875
    assert row({**REASONING, "pass_rate_72b_tir": "n/a"})["pass_rate_72b_tir"] is None
    assert row(REASONING)["inference_mode"] == "cot"
    unknown = row({**REASONING, "generated_solution": "N/A", "expected_answer": "n/a"})
    assert not {"generation", "expected_answer"} & unknown.keys()
    talk = schema_of("messages").row(FIXTURES["messages"])
    assert talk["prompt_messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "P?"},
    ]
    assert talk["serialized_output"] == [{"role": "assistant", "content": SOLUTION, "reasoning_content": "Hm."}]
    assert schema_of("messages").row({"messages": TURNS[:1]}) is None
    plain = schema_of("dapo-math-17k-slime").row({"prompt": "P?", "label": 34})
    assert plain == {"problem": "P?", "expected_answer": "34"}


def test_names_are_of_no_benchmark_and_found_in_any_spelling() -> None:
    known = {name for entry in catalog_entries() for name in (entry.name, *entry.aliases)}
    assert not [name for name in known if is_published(name)]
    assert schema_of("openmathinstruct2") is schema_of("OpenMathInstruct-2")
    with pytest.raises(UnknownNameError, match="numinamath-cot"):
        schema_of("numinamath")


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name not in UNSOLVED])
def test_solutions_to_train_on(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / "in.jsonl", [FIXTURES[name]])
    recipe = "stem_sft" if name == "messages" else "math_sft"
    [row], card = made(tmp_path, [file], recipe, schema=name)
    assert card.inputs[0]["dataset"] == name
    if name == "messages":
        assert [turn["role"] for turn in row["messages"]] == ["system", "user", "assistant"]
    else:
        assert (row["input"], row.get("expected_answer")) == ("P?", ANSWERS[name])


@pytest.mark.parametrize("name", [name for name in SCHEMAS if ANSWERS[name]])
def test_problems_to_train_on(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / "in.jsonl", [FIXTURES[name]] * 3)
    [row], _ = made(tmp_path, [file], "math_rl", schema=name)
    assert (row["problem"], row["expected_answer"]) == (row["input"], ANSWERS[name])


def test_a_row_of_another_set(tmp_path: Path) -> None:
    file = write(tmp_path / "in.jsonl", [FIXTURES["math-hard"], FIXTURES["gsm8k-train"]])
    with pytest.raises(
        DataError, match=r"line 2: this is not a row of math-hard .*its fields are answer, question"
    ):
        made(tmp_path, [file], schema="math-hard")


def test_other_kinds_of_files(tmp_path: Path) -> None:
    import gzip

    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"problem": f"{n}?", "solution": f"\\boxed{{{n}}}", "level": "Level 5", "type": "x"} for n in range(5)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text(json.dumps(rows))
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    for name in ("a.parquet", "a.json", "a.jsonl.gz"):
        assert list(rows_of_file(tmp_path / name)) == rows


@pytest.mark.mirror
@pytest.mark.parametrize(
    ("name", "path", "rows", "unanswered", "tool_calls"),
    [
        ("deepscaler", "agentica-project/rllm/main/rllm/data/train/math/aime.json", 975, 0, 0),
        ("deepscaler", "agentica-project/rllm/main/rllm/data/train/math/math.json", 7474, 4, 0),
        ("gsm8k-train", "openai/grade-school-math/master/grade_school_math/data/train.jsonl", 7473, 0, 0),
        ("messages", "hiyouga/LLaMA-Factory/main/data/v1_sft_demo.jsonl", 500, 0, 0),
        ("messages", "hiyouga/LLaMA-Factory/main/data/reason_tool_use_demo_50.jsonl", 50, 0, 68),
    ],
)
def test_real_sets(mirror: Path, name: str, path: str, rows: int, unanswered: int, tool_calls: int) -> None:
    found = [schema_of(name).row(row) for row in rows_of_file(mirror / "raw.githubusercontent.com" / path)]
    assert len(found) == rows
    assert all(row and row["problem"].strip() for row in found)
    if name == "messages":
        assert all(row["serialized_output"][0]["role"] == "assistant" for row in found)
        turns = [turn for row in found for turn in row["serialized_output"]]
        calls = [call["function"] for turn in turns for call in turn.get("tool_calls", ())]
        assert len(calls) == tool_calls
        assert all(call["name"] and isinstance(call["arguments"], dict) for call in calls)
        assert all(isinstance(row.get("tools", []), list) for row in found)
    else:
        assert sum(not row.get("expected_answer", "").strip() for row in found) == unanswered
