# SPDX-License-Identifier: Apache-2.0
"""`ns prepare_training_data` as a person types it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write

from newskills.base.store import read_rows

ROWS = [
    {
        "problem": f"Mara has {n} marbles and loses one of them on the way to school; how many are left at noon?",
        "generation": f"She has {n} - 1 of them left: \\boxed{{{n - 1}}}.",
        "expected_answer": str(n - 1),
        "symbolic_correct": n % 5 != 0,
    }
    for n in range(1, 21)
]
PUBLISHED = [{"problem": row["problem"], "solution": row["generation"], "messages": []} for row in ROWS]
OFF = "++filters.remove_contaminated=false ++filters.remove_len_outlier_problems=false"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path / "in.jsonl", ROWS)
    write(tmp_path / "data/gsm8k/test.jsonl", [{"id": "1", "problem": ROWS[0]["problem"], "expected_answer": "0"}])
    return tmp_path


def typed(line: str, here: Path, **env: Any) -> subprocess.CompletedProcess[str]:
    return ns(
        f"ns {line}", cwd=here, env={"NEWSKILLS_DATA_DIR": str(here / "data"), "NEWSKILLS_OFFLINE": "1", **env}
    )


def test_generations_become_a_training_set_with_its_card(here: Path) -> None:
    done = typed(
        f"prepare_training_data --config-name=math_sft ++input_files=in.jsonl ++output_path=o/sft.jsonl {OFF}",
        here,
    )
    assert done.returncode == 0, done.stderr
    assert "o/sft.jsonl: 16 rows (sft.jsonl.card.md says how they were made)" in done.stdout
    assert "wrong solutions: 4 removed" in done.stderr
    assert {row["input"] for row in rows_of(here / "o/sft.jsonl")} == {
        r["problem"] for r in ROWS if r["symbolic_correct"]
    }
    card = json.loads((here / "o/sft.jsonl.card.json").read_text())
    assert (card["rows_read"], card["rows_written"]) == (20, 16)
    assert sorted(path.name for path in (here / "o").iterdir()) == [
        "sft.jsonl",
        "sft.jsonl.card.json",
        "sft.jsonl.card.md",
    ]


def test_the_reference_spelling(here: Path) -> None:
    import subprocess
    import sys

    words = f"--config-name math_sft ++input_files='*.jsonl' ++output_path=sft.jsonl {OFF}".replace(
        "'", ""
    ).split()
    argv = [sys.executable, "-m", "newskills.training.prepare_data", *words]
    done = subprocess.run(argv, cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, len(rows_of(here / "sft.jsonl"))) == (0, 16), done.stderr


def test_decontamination_against_a_benchmark_and_a_file(here: Path) -> None:
    write(here / "mine.jsonl", [{"question": ROWS[1]["problem"]}])
    off = "++filters.remove_len_outlier_problems=false ++input_files=in.jsonl ++output_path=sft.jsonl"
    done = typed(f"prepare_training_data {off} --decontaminate=mine.jsonl --decontaminate_share=1", here)
    assert done.returncode == 0, done.stderr
    assert "remove_contaminated: 1 removed" in done.stderr
    write(here / "wrong.jsonl", [{"id": 1}])
    done = typed(f"prepare_training_data {off} --decontaminate=wrong.jsonl", here)
    assert (done.returncode, "none of the fields problem, question" in done.stderr) == (2, True)
    done = typed(f"prepare_training_data {off} --decontaminate=gsm9k", here)
    assert (done.returncode, "did you mean 'gsm8k'" in done.stderr) == (2, True)


@pytest.mark.mirror
def test_real_sets_without_the_real_benchmarks(tmp_path: Path, mirror: Path) -> None:
    """A published set is fetched and laid out; what MATH-500 asks is taken out of old AIME problems."""
    line = (
        "prepare_training_data --config_name=math_rl --dataset=deepscaler --split=aime --decontaminate=math-500 "
        "++output_path=rl.jsonl ++filters.remove_len_outlier_problems=false"
    )
    done = typed(line, tmp_path, NEWSKILLS_MIRROR=str(mirror))
    assert done.returncode == 0, done.stderr
    found = rows_of(tmp_path / "rl.jsonl")
    assert not any("|x-p|+|x-15|+|x-p-15|" in row["problem"] for row in found)
    assert all(row["expected_answer"] and row["task_name"] == "math" for row in found)
    card = json.loads((tmp_path / "rl.jsonl.card.json").read_text())
    removed = {step["name"]: step["removed"] for step in card["steps"]}
    assert 5 <= removed["remove_contaminated"] <= 20
    assert card["rows_written"] == len(found) == 975 - sum(removed.values())
    assert (card["inputs"][0]["dataset"], card["inputs"][0]["licence"]) == ("deepscaler", "MIT")
    meta = json.loads((tmp_path / "data/deepscaler/aime.jsonl.meta.json").read_text())
    assert (meta["rows"], meta["sources"][0]["from"]) == (975, "mirror")


@pytest.mark.mirror
def test_published_sets_are_laid_out_beside_benchmarks(tmp_path: Path, mirror: Path) -> None:
    env = {"NEWSKILLS_MIRROR": str(mirror)}
    shown = typed("prepare_data --dataset=gsm8k-train math-500 --dry_run", tmp_path, **env)
    assert shown.returncode == 0, shown.stderr
    assert "fetches" in shown.stdout
    assert "gsm8k-train, MIT" in shown.stdout
    done = typed("prepare_data --dataset=gsm8k_train math-500", tmp_path, **env)
    assert done.returncode == 0, done.stderr
    rows = list(read_rows(tmp_path / "data/gsm8k-train/train.jsonl"))
    assert (len(rows), set(rows[0])) == (7473, {"problem", "generation", "expected_answer"})
    assert (tmp_path / "data/math-500/test.jsonl").is_file()
    before = (tmp_path / "data/gsm8k-train/train.jsonl").stat().st_mtime_ns
    assert typed("prepare_data gsm8k-train", tmp_path, NEWSKILLS_MIRROR="").returncode == 0
    assert (tmp_path / "data/gsm8k-train/train.jsonl").stat().st_mtime_ns == before


def test_files_of_a_published_set(here: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    kind = pyarrow.schema(
        [("problem", "string"), ("solution", "string"), ("messages", pyarrow.list_(pyarrow.string()))]
    )
    parquet.write_table(pyarrow.Table.from_pylist(PUBLISHED, schema=kind), here / "a.parquet")
    line = f"prepare_training_data --dataset=numinamath-tir ++input_files=a.parquet ++output_path=o.jsonl {OFF}"
    done = typed(line, here)
    assert done.returncode == 0, done.stderr
    assert {(row["input"], row["expected_answer"]) for row in rows_of(here / "o.jsonl")} == {
        (row["problem"], row["expected_answer"]) for row in ROWS
    }


def test_dry_run_checks_and_shows_a_row(here: Path) -> None:
    line = f"prepare_training_data ++input_files=in.jsonl ++output_path=o.jsonl {OFF} --dry_run"
    done = typed(line, here)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["expected_answer"] == "0"
    assert "Nothing was done" in done.stdout
    assert not (here / "o.jsonl").exists()
    shown = typed(f"{line} --explain ++tokenizer=x", here)
    assert "++filters.remove_contaminated" in shown.stdout
    assert "command line" in shown.stdout
    named = typed(
        f"prepare_training_data --config_name=math_rl --dataset=dapo_math ++output_path=o.jsonl {OFF} --dry_run",
        here,
    )
    assert "fetches" in named.stdout, named.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "No output file is given. Give ++output_path=FILE.jsonl"),
        ("++output_path=o.jsonl ++filters.remove_len_outlier_problems=false", "--decontaminate=BENCHMARK"),
        (
            f"++output_path=o.jsonl {OFF}",
            "Give ++input_files=FILES, ++preprocessed_dataset_files=FILES, or --dataset=NAME",
        ),
        (
            f"++output_path=o.jsonl {OFF} ++input_files=im.jsonl",
            "There is no file im.jsonl; did you mean 'in.jsonl'?",
        ),
        (f"++output_path=o.jsonl {OFF} ++input_files=*.txt", "There is no file *.txt"),
        ("--config-name=code_sft ++output_path=o.jsonl ++add_code_execution_counts=true", "code_sft has no such"),
        ("++output_path=o.jsonl ++filters.trim_solution=true", "did you mean '++filters.trim_solutions'"),
        ("--config-name=maths", "one of the choices"),
        ("--dataset=numinamath ++output_path=o.jsonl", "Unknown training set 'numinamath'; did you mean"),
        (f"--dataset=messages ++output_path=o.jsonl {OFF}", "Give input files: ++input_files=FILE"),
        (f"--dataset=deepscaler --split=amc ++output_path=o.jsonl {OFF}", "deepscaler has no split 'amc'"),
        (f"--dataset=numinamath-cot ++output_path=o.jsonl {OFF}", "Offline, and AI-MO/NuminaMath-CoT"),
        ("++output_path=o.jsonl ++chat_format=llama", "--config-name=stem_sft"),
    ],
)
def test_what_is_refused(here: Path, line: str, message: str) -> None:
    done = typed(f"prepare_training_data {line}", here)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (here / "o.jsonl").exists()


def test_rows_without_a_verdict_are_told_of(here: Path) -> None:
    write(here / "raw.jsonl", [*ROWS, {"problem": "p", "generation": "g"}])
    done = typed(f"prepare_training_data ++input_files=raw.jsonl ++output_path=o.jsonl {OFF}", here)
    assert "note: 1 rows have no verdict and were left out; ++add_unlabeled=true keeps them" in done.stderr


def test_from_python(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from newskills import prepare_training_data, wrap_arguments

    monkeypatch.chdir(here)
    ctx = wrap_arguments(f"++input_files=in.jsonl ++output_path=py.jsonl {OFF}")
    card = prepare_training_data(ctx=ctx, workers=1)
    assert len(rows_of(here / "py.jsonl")) == card.rows_written == 16
    assert prepare_training_data(ctx=ctx, dry_run=True) is None


def test_a_template_whose_rows_are_all_taken_for_the_benchmarks(here: Path) -> None:
    """Word problems of one pattern differ in their numbers only: the message says what to change, and that works."""
    text = (
        "A farmer who lives near a small town grows {} apple trees in the garden behind the old house, and every "
        "year at the end of summer the children of the village come to pick the fruit together, so that each basket "
        "holds {} apples. How many apples are there in all the baskets?"
    )
    rows = [{"problem": text.format(n, n + 1), "generation": "1", "expected_answer": "1"} for n in range(20)]
    (here / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (here / "held.jsonl").write_text(json.dumps({"problem": text.format(3, 4)}) + "\n")
    words = (
        "prepare_training_data ++preprocessed_dataset_files=rows.jsonl ++output_path=o.jsonl "
        "++filters.remove_len_outlier_problems=false --decontaminate=held.jsonl"
    )
    done = typed(words, here)
    assert done.returncode != 0
    assert "Removed by: remove_contaminated 20." in done.stderr
    assert "--decontaminate_share=0.9 or 1 (now 0.5)" in done.stderr
    done = typed(f"{words} --decontaminate_share=1", here)
    assert done.returncode == 0, done.stderr
    assert len((here / "o.jsonl").read_text().splitlines()) == 19


def test_examples_of_a_benchmark_stand_in_what_is_trained_on(here: Path) -> None:
    """As MMLU-Pro's official prompt: rows name a set of another split, which is their field's."""
    rows = [
        {
            "problem": f"How much is {n} and {n}?",
            "worked_answer": str(2 * n),
            "examples_type": f"mmlu_few_shot_{field}",
        }
        for field in ("sums", "doubles")
        for n in range(6)
    ]
    write(here / "data/mmlu/dev.jsonl", rows)
    few = "{examples_type: '{examples_type}', template: '{problem} {worked_answer}. '}"
    (here / "shots.yaml").write_text(f"user: '{{examples}}{{problem}}'\nfew_shot_examples: {few}\n")
    write(here / "answered.jsonl", [{**ROWS[0], "examples_type": "mmlu_few_shot_doubles"}])
    done = typed(
        "prepare_training_data --config-name=stem_sft --benchmark=mmlu ++input_files=answered.jsonl "
        f"++prompt_config=./shots.yaml ++output_path=sft.jsonl {OFF}",
        here,
    )
    assert done.returncode == 0, done.stderr
    (line,) = rows_of(here / "sft.jsonl")
    shots = "".join(f"How much is {n} and {n}? {2 * n}. " for n in range(5))
    assert line["messages"][0]["content"] == f"{shots}{ROWS[0]['problem']}"
