# SPDX-License-Identifier: Apache-2.0
"""Results of others become records of ours: with the scores that they had there, and nothing lost in silence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.exchange.evaluated import ANSWERS, records
from tests.exchange.imported import STAMP, imported, only

from newskills.base.errors import DataError, UnknownNameError
from newskills.exchange.importers import FORMATS, ImportedBenchmark, ImportSource, by_seed, read, rename_benchmark
from newskills.exchange.importers import write_import as write_imported
from newskills.run.reporting.results import list_results


def test_folders_of_nemo_skills(tmp_path: Path) -> None:
    soft = {
        "problem": "Add 9 and 9.",
        "generation": "",
        "error": "context_window_exceeded",
        "symbolic_correct": False,
    }
    for seed in range(2):
        rows = [{name: value for name, value in row.items() if name != "id"} for row in records(4 - seed)]
        write(
            tmp_path / f"theirs/eval-results/gsm8k/output-rs{seed}.jsonl", [*rows, {**soft, "num": float("nan")}]
        )
    found = imported(tmp_path / "theirs", tmp_path / "ours")
    averaged = found["gsm8k"]["pass@1[avg-of-2]"]
    assert averaged["symbolic_correct"] == pytest.approx(100 * 3.5 / 6)
    rows = rows_of(tmp_path / "ours/eval-results/gsm8k/output-rs1.jsonl")
    assert [row["outcome"] for row in rows if "outcome" in row] == ["unscored"]
    assert (tmp_path / "ours/eval-results/gsm8k/output-rs1.jsonl.done").exists()
    assert [row["id"] for row in rows] == [
        row["id"] for row in rows_of(tmp_path / "ours/eval-results/gsm8k/output-rs0.jsonl")
    ]


def test_groups_of_nemo_skills_stay_groups(tmp_path: Path) -> None:
    for member in ("ar", "en"):
        write(tmp_path / f"theirs/eval-results/polymath/{member}/output.jsonl", records())
    read_back = read(ImportSource(path=tmp_path / "theirs"))
    for item in read_back:
        write_imported(item, tmp_path / "ours")
    assert [found.benchmark for found in list_results(tmp_path / "ours")] == [
        "polymath.ar",
        "polymath.en",
    ]


def test_a_torn_last_line_is_left_out_and_told_of(tmp_path: Path) -> None:
    file = write(tmp_path / "gsm8k/output.jsonl", records())
    file.write_text(file.read_text()[:-20])
    one = only(tmp_path / "gsm8k")
    assert len(one.seeds[None]) == 5
    assert "incomplete" in one.notes[0]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "gsm8k/output.jsonl", records())
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:30], *lines[2:]]) + "\n")
    with pytest.raises(DataError, match=r"output\.jsonl, line 2: invalid JSON"):
        only(tmp_path / "gsm8k")


def test_missing_records_of_a_seed_are_unscored(tmp_path: Path) -> None:
    write(tmp_path / "gsm8k/output-rs0.jsonl", records())
    write(tmp_path / "gsm8k/output-rs1.jsonl", records()[:4])
    one = only(tmp_path / "gsm8k")
    assert [row.get("outcome") for row in one.seeds[1]] == [None] * 4 + ["unscored"] * 2
    assert "2 of 12 samples are missing" in " ".join(one.notes)


# lm-evaluation-harness: the schema is that of lm_eval/evaluator.py 0.4.9


def lm_sample(number: int, filter_name: str, right: bool, **more: Any) -> dict[str, Any]:
    said = str(number if right else -1)
    return {
        "doc_id": number,
        "doc": {"question": f"What is {number}?", "answer": f"#### {number}"},
        "target": str(number),
        "arguments": {"gen_args_0": {"arg_0": f"Q: What is {number}?\nA:", "arg_1": {"until": ["Q:"]}}},
        "resps": [[f"It is {said}."]],
        "filtered_resps": [said],
        "filter": filter_name,
        "metrics": ["exact_match"],
        "doc_hash": "a" * 64,
        "prompt_hash": "b" * 64,
        "target_hash": "c" * 64,
        "exact_match": float(right),
        **more,
    }


@pytest.fixture
def lm_folder(tmp_path: Path) -> Path:
    """One model, a generative task with two filters, and one of choices by likelihood."""
    folder = tmp_path / "lm/my__model"
    strict = [lm_sample(n, "strict-match", n < 3) for n in range(6)]
    flexible = [lm_sample(n, "flexible-extract", n < 4) for n in range(6)]
    write(folder / f"samples_gsm8k_{STAMP}.jsonl", [*strict, *flexible])
    choices = [
        {
            **lm_sample(n, "none", True, metrics=["acc", "acc_norm"], acc=n % 2, acc_norm=1.0),
            "target": "1",
            "arguments": {"gen_args_0": {"arg_0": "Is it?", "arg_1": " yes"}},
            "resps": [[["-3.5", "False"]], [["-0.5", "True"]]],
            "filtered_resps": [["-3.5", "False"], ["-0.5", "True"]],
        }
        for n in range(4)
    ]
    write(folder / f"samples_boolq_{STAMP}.jsonl", choices)
    results = {
        "results": {"gsm8k": {}, "boolq": {}},
        "model_name": "my/model",
        "versions": {"gsm8k": 3.0},
        "n-shot": {"gsm8k": 5},
        "git_hash": "abc",
    }
    (folder / f"results_{STAMP}.json").write_text(json.dumps(results))
    return tmp_path / "lm"


def test_samples_of_lm_eval(lm_folder: Path, tmp_path: Path) -> None:
    found = imported(lm_folder, tmp_path / "ours")
    assert {name: modes["pass@1"]["accuracy"] for name, modes in found.items()} == {
        "gsm8k-strict-match": 50.0,
        "gsm8k-flexible-extract": pytest.approx(100 * 4 / 6),
        "boolq": 50.0,
    }
    row = rows_of(tmp_path / "ours/eval-results/gsm8k-strict-match/output.jsonl")[3]
    assert {
        k: row[k] for k in ("id", "problem", "generation", "predicted_answer", "expected_answer", "outcome")
    } == {
        "id": "3",
        "problem": "What is 3?",
        "generation": "It is -1.",
        "predicted_answer": "-1",
        "expected_answer": "3",
        "outcome": "wrong",
    }
    origin = json.loads((tmp_path / "ours/eval-results/gsm8k-strict-match/benchmark.json").read_text())["imported"]
    assert (origin["model"], origin["task_version"], origin["num_fewshot"]) == ("my/model", 3.0, 5)
    assert rows_of(tmp_path / "ours/eval-results/boolq/output.jsonl")[0]["predicted_answer"] == "1"


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ('[{"role": "system", "content": "s"}, {"role": "user", "content": "Add."}]', "Add."),
        ('[{"role": "user", "content": [{"type": "text"}]}]', '[{"role": "user", "content": [{"type": "text"}]}]'),
        ('[{"role": cut', '[{"role": cut'),
    ],
)
def test_a_chat_is_known_by_its_last_message(tmp_path: Path, prompt: str, problem: str) -> None:
    row = lm_sample(0, "none", True, doc={"a": 1}, arguments={"gen_args_0": {"arg_0": [prompt], "arg_1": {}}})
    file = write(tmp_path / f"samples_x_{STAMP}.jsonl", [row])
    assert only(file).seeds[None][0]["problem"] == problem


TASK = """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: ROWS}}
test_split: test
output_type: generate_until
doc_to_text: "Add {{a}} and {{a}}."
doc_to_target: "{{b}}"
generation_kwargs: {until: ["\\n\\n"], max_gen_toks: 16}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
filter_list: [{name: strict, filter: [{function: regex, regex_pattern: "boxed.([0-9]+)"}, {function: take_first}]}]
"""


@pytest.mark.nightly
def test_samples_that_lm_eval_itself_writes(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    pytest.importorskip("lm_eval", reason="no lm_eval here: pip install 'lm_eval[api]'")
    server = fake_server(ANSWERS)
    rows = write(tmp_path / "rows.jsonl", [{"a": n, "b": str(2 * n)} for n in range(6)])
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/sums.yaml").write_text(TASK.replace("ROWS", str(rows)))
    model = f"model=my-model,base_url={server.base_url}/chat/completions"
    words = [
        "--model",
        "local-chat-completions",
        "--model_args",
        model,
        "--tasks",
        "sums",
        "--include_path",
        "tasks",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "lm_eval", *words, "--output_path=out", "--log_samples", "--apply_chat_template"],
        cwd=tmp_path,
        env={**os.environ, "OPENAI_API_KEY": "x", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = imported(tmp_path / "out", tmp_path / "ours")
    assert found["sums"]["pass@1"]["accuracy"] == pytest.approx(100 * 4 / 6)
    assert rows_of(tmp_path / "ours/eval-results/sums/output.jsonl")[1]["problem"] == "Add 1 and 1."


def test_another_metric_of_lm_eval(lm_folder: Path) -> None:
    file = lm_folder / f"my__model/samples_boolq_{STAMP}.jsonl"
    assert [row["is_correct"] for row in only(file, score="acc_norm").seeds[None]] == [True] * 4
    with pytest.raises(DataError, match="no metric 'bleu' in the samples; the choices are acc, acc_norm"):
        only(file, score="bleu")


def test_the_latest_samples_of_a_task_count(lm_folder: Path) -> None:
    write(lm_folder / "my__model/samples_boolq_2025-01-01T00-00-00.jsonl", [lm_sample(0, "none", True)])
    found = read(ImportSource(path=lm_folder))
    assert "1 older files" in found[0].notes[0]
    assert {item.benchmark: len(item.seeds[None]) for item in found}["boolq"] == 4


def test_each_of_several_models_gets_its_own_results(lm_folder: Path, tmp_path: Path) -> None:
    write(lm_folder / f"other/samples_boolq_{STAMP}.jsonl", [lm_sample(0, "none", True)])
    done = ns(f"ns import {lm_folder} --output_dir ours", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(
        "next: ns summarize_results ours/my__model\nnext: ns summarize_results ours/other\n"
    )
    counts = {
        model: len(rows_of(tmp_path / f"ours/{model}/eval-results/boolq/output.jsonl"))
        for model in ("my__model", "other")
    }
    assert counts == {"my__model": 4, "other": 1}


def test_the_prompt_that_lm_eval_sent_is_kept(lm_folder: Path, tmp_path: Path) -> None:
    shots = "Q: What is 1?\nA: 1\n\nQ: What is 2?\nA:"
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Add."}]
    arguments = [{"gen_args_0": {"arg_0": text, "arg_1": {"until": ["Q:"]}}} for text in (shots, json.dumps(chat))]
    samples = [lm_sample(at, "none", True, arguments=told) for at, told in enumerate(arguments)]
    samples.append(lm_sample(2, "none", True, arguments={}))
    rows = only(write(tmp_path / f"samples_x_{STAMP}.jsonl", samples)).seeds[None]
    assert [(row.get("rendered_prompt"), row.get("messages")) for row in rows] == [
        (shots, None),
        (None, chat),
        (None, None),
    ]
    assert [row["lm_eval"]["arguments"] for row in rows] == [*arguments, {}]
    choices = only(lm_folder / f"my__model/samples_boolq_{STAMP}.jsonl").seeds[None]
    assert choices[0]["rendered_prompt"] == "Is it?"
    assert choices[0]["lm_eval"]["arguments"] == {"gen_args_0": {"arg_0": "Is it?", "arg_1": " yes"}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metrics": ["word_perplexity"], "word_perplexity": [1, 2]}, "none of word_perplexity is a score"),
        ({"exact_match": 17.5}, "none of exact_match"),
        ({"exact_match": float("nan")}, "none of exact_match"),
        ({"filtered_resps": ...}, "it has no filtered_resps"),
    ],
)
def test_samples_without_a_score_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    row = {k: v for k, v in {**lm_sample(0, "none", True), **change}.items() if v is not ...}
    file = write(tmp_path / f"samples_x_{STAMP}.jsonl", [row])
    with pytest.raises(DataError, match=said):
        only(file)


def test_equal_samples_count_once_and_different_ones_are_refused(tmp_path: Path) -> None:
    rows = [lm_sample(n, "none", True) for n in (0, 1, 1)]
    file = write(tmp_path / f"samples_x_{STAMP}.jsonl", rows)
    one = only(file)
    assert (len(one.seeds[None]), one.notes) == (2, ["x: 1 records appear twice; each counts once."])
    write(file, [*rows, lm_sample(1, "none", False)])
    with pytest.raises(DataError, match="two different records of sample '1'"):
        only(file)


def test_huge_and_odd_values_are_kept_or_made_harmless(tmp_path: Path) -> None:
    text = "x" * 3_000_000
    odd = lm_sample(
        0, "none", True, resps=[[text + "\ud83d"]], doc={"question": "?", "n": 10**400, "f": float("inf")}
    )
    write(tmp_path / f"samples_x_{STAMP}.jsonl", [odd])
    folder = write_imported(only(tmp_path / f"samples_x_{STAMP}.jsonl"), tmp_path / "ours")
    (row,) = rows_of(folder / "output.jsonl")
    assert len(row["generation"]) == 3_000_001
    assert row["lm_eval"]["doc"] == {"question": "?", "n": "1" + "0" * 400, "f": None}


@pytest.mark.parametrize("line", ["[1]", "3", "[" * 100_000, '{"doc_id": ', "\x00", '{"a": ' * 5000])
def test_lines_that_are_no_rows(tmp_path: Path, line: str) -> None:
    (tmp_path / f"samples_x_{STAMP}.jsonl").write_text(f"{line}\n{json.dumps(lm_sample(0, 'none', True))}\n")
    with pytest.raises(DataError):
        only(tmp_path / f"samples_x_{STAMP}.jsonl")


# What all have in common


def test_nothing_known_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match="no known format"):
        read(ImportSource(path=tmp_path))
    with pytest.raises(DataError, match="There is no"):
        read(ImportSource(path=tmp_path / "none"))
    with pytest.raises(UnknownNameError, match="lm-eval"):
        read(ImportSource(path=tmp_path), "lm_evals")
    for name in FORMATS:
        with pytest.raises(DataError):
            read(ImportSource(path=tmp_path), name)


def test_results_are_never_written_over(tmp_path: Path) -> None:
    one = ImportedBenchmark(benchmark="../../x/y", seeds={None: records()})
    folder = write_imported(one, tmp_path / "ours")
    assert folder.parent == tmp_path / "ours/eval-results"
    with pytest.raises(DataError, match="already has results"):
        write_imported(one, tmp_path / "ours")


def test_one_benchmark_may_be_called_otherwise(tmp_path: Path) -> None:
    one = ImportedBenchmark(benchmark="a", seeds={None: records()})
    assert rename_benchmark([one], "b")[0].benchmark == "b"
    with pytest.raises(DataError, match="there are 2: a, a"):
        rename_benchmark([one, one], "b")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_every_seed_has_every_sample_once(pairs: list[tuple[int, int]]) -> None:
    notes: list[str] = []
    seeds = by_seed("b", ((seed, {"id": str(identity)}) for seed, identity in pairs), notes)
    wanted = {str(identity) for _, identity in pairs}
    for rows in seeds.values():
        assert {row["id"] for row in rows} == wanted
        assert len(rows) == len(wanted)
    there = {(seed, str(identity)) for seed, identity in pairs}
    lost = {(seed, row["id"]) for seed, rows in seeds.items() for row in rows if "outcome" in row}
    assert lost == {(seed, identity) for seed in seeds for identity in wanted} - there


def test_a_dry_run_writes_nothing(lm_folder: Path, tmp_path: Path) -> None:
    done = ns(f"ns import {lm_folder} --dry_run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "boolq" in done.stdout
    assert not (tmp_path / "imported").exists()


# Inspect
