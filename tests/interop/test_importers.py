# SPDX-License-Identifier: Apache-2.0
"""Results of others become records of ours: with the scores that they had there, and nothing lost in silence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands.running import ns, rows_of, write
from tests.interop.evaluated import ANSWERS, records

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.interop.importers import FORMATS, Imported, Source, by_seed, read, renamed
from newskills.interop.importers import write as write_imported
from newskills.interop.inspect_export import export
from newskills.run.results import discover

STAMP = "2026-01-02T03-04-05.678901"


def imported(path: Path, out: Path, *more: str) -> dict[str, Any]:
    """metrics.json of what `ns import` and `ns summarize_results` make of `path`."""
    done = ns(f"ns import {path} --output_dir {out}", *more, cwd=out.parent)
    assert done.returncode == 0, done.stderr
    shown = ns(f"ns summarize_results {out} --accept_lost 100", cwd=out.parent)
    assert shown.returncode == 0, shown.stderr
    return json.loads((out / "metrics.json").read_text())


def only(path: Path, **options: Any) -> Imported:
    (one,) = read(Source(path=path, **options))
    return one


# NeMo-Skills


def test_folders_of_nemo_skills(tmp_path):
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


def test_groups_of_nemo_skills_stay_groups(tmp_path):
    for member in ("ar", "en"):
        write(tmp_path / f"theirs/eval-results/polymath/{member}/output.jsonl", records())
    read_back = read(Source(path=tmp_path / "theirs"))
    for item in read_back:
        write_imported(item, tmp_path / "ours")
    assert [found.benchmark for found in discover(tmp_path / "ours")] == ["polymath.ar", "polymath.en"]


def test_a_torn_last_line_is_left_out_and_told_of(tmp_path):
    file = write(tmp_path / "gsm8k/output.jsonl", records())
    file.write_text(file.read_text()[:-20])
    one = only(tmp_path / "gsm8k")
    assert len(one.seeds[None]) == 5
    assert "cut off" in one.notes[0]


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    file = write(tmp_path / "gsm8k/output.jsonl", records())
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:30], *lines[2:]]) + "\n")
    with pytest.raises(DataError, match=r"output\.jsonl, line 2: invalid JSON"):
        only(tmp_path / "gsm8k")


def test_missing_records_of_a_seed_are_unscored(tmp_path):
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
def lm_folder(tmp_path):
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


def test_samples_of_lm_eval(lm_folder, tmp_path):
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
def test_a_chat_is_known_by_its_last_message(tmp_path, prompt, problem):
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


def test_samples_that_lm_eval_itself_writes(tmp_path, fake_server):
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


def test_another_metric_of_lm_eval(lm_folder):
    file = lm_folder / f"my__model/samples_boolq_{STAMP}.jsonl"
    assert [row["is_correct"] for row in only(file, score="acc_norm").seeds[None]] == [True] * 4
    with pytest.raises(DataError, match="no metric 'bleu' of a sample; there are acc, acc_norm"):
        only(file, score="bleu")


def test_the_latest_samples_of_a_task_count(lm_folder):
    write(lm_folder / "my__model/samples_boolq_2025-01-01T00-00-00.jsonl", [lm_sample(0, "none", True)])
    found = read(Source(path=lm_folder))
    assert "1 older files" in found[0].notes[0]
    assert {item.benchmark: len(item.seeds[None]) for item in found}["boolq"] == 4


def test_samples_of_several_models_are_refused(lm_folder):
    write(lm_folder / f"other/samples_boolq_{STAMP}.jsonl", [lm_sample(0, "none", True)])
    with pytest.raises(DataError, match="several models: my__model, other"):
        read(Source(path=lm_folder))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metrics": ["word_perplexity"], "word_perplexity": [1, 2]}, "none of word_perplexity is a score"),
        ({"exact_match": 17.5}, "none of exact_match"),
        ({"exact_match": float("nan")}, "none of exact_match"),
        ({"filtered_resps": ...}, "it has no filtered_resps"),
    ],
)
def test_samples_without_a_score_are_refused(tmp_path, change, said):
    row = {k: v for k, v in {**lm_sample(0, "none", True), **change}.items() if v is not ...}
    file = write(tmp_path / f"samples_x_{STAMP}.jsonl", [row])
    with pytest.raises(DataError, match=said):
        only(file)


def test_equal_samples_count_once_and_different_ones_are_refused(tmp_path):
    rows = [lm_sample(n, "none", True) for n in (0, 1, 1)]
    file = write(tmp_path / f"samples_x_{STAMP}.jsonl", rows)
    one = only(file)
    assert (len(one.seeds[None]), one.notes) == (2, ["x: 1 records are there twice; each counts once."])
    write(file, [*rows, lm_sample(1, "none", False)])
    with pytest.raises(DataError, match="two different records of sample '1'"):
        only(file)


def test_huge_and_odd_values_are_kept_or_made_harmless(tmp_path):
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
def test_lines_that_are_no_rows(tmp_path, line):
    (tmp_path / f"samples_x_{STAMP}.jsonl").write_text(f"{line}\n{json.dumps(lm_sample(0, 'none', True))}\n")
    with pytest.raises(DataError):
        only(tmp_path / f"samples_x_{STAMP}.jsonl")


# What all have in common


def test_nothing_known_is_said_to_be_so(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match="of no known form"):
        read(Source(path=tmp_path))
    with pytest.raises(DataError, match="There is no"):
        read(Source(path=tmp_path / "none"))
    with pytest.raises(UnknownNameError, match="lm-eval"):
        read(Source(path=tmp_path), "lm_evals")
    for name in FORMATS:
        with pytest.raises(DataError):
            read(Source(path=tmp_path), name)


def test_results_are_never_written_over(tmp_path):
    one = Imported(benchmark="../../x/y", seeds={None: records()})
    folder = write_imported(one, tmp_path / "ours")
    assert folder.parent == tmp_path / "ours/eval-results"
    with pytest.raises(DataError, match="has results already"):
        write_imported(one, tmp_path / "ours")


def test_one_benchmark_may_be_called_otherwise(tmp_path):
    one = Imported(benchmark="a", seeds={None: records()})
    assert renamed([one], "b")[0].benchmark == "b"
    with pytest.raises(DataError, match="2 are there: a, a"):
        renamed([one, one], "b")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_every_seed_has_every_sample_once(pairs):
    notes: list[str] = []
    seeds = by_seed("b", ((seed, {"id": str(identity)}) for seed, identity in pairs), notes)
    wanted = {str(identity) for _, identity in pairs}
    for rows in seeds.values():
        assert {row["id"] for row in rows} == wanted
        assert len(rows) == len(wanted)
    there = {(seed, str(identity)) for seed, identity in pairs}
    lost = {(seed, row["id"]) for seed, rows in seeds.items() for row in rows if "outcome" in row}
    assert lost == {(seed, identity) for seed in seeds for identity in wanted} - there


def test_a_dry_run_writes_nothing(lm_folder, tmp_path):
    done = ns(f"ns import {lm_folder} --dry_run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "boolq" in done.stdout
    assert not (tmp_path / "imported").exists()


# Inspect


@pytest.fixture
def ours(tmp_path):
    """Results of two seeds: right, wrong, in part, without an answer, unscored."""
    rows = [
        {**row, "outcome": "correct" if row["symbolic_correct"] else "wrong", "generation_start_time": 1.7e9}
        for row in records()
    ]
    rows[4] |= {"outcome": "no_answer", "predicted_answer": None, "finish_reason": "length"}
    rows[5] |= {"outcome": "unscored", "outcome_cause": "judge", "why": "the judge did not reply"}
    rows[0] |= {"reasoning_content": "Let me see.", "generation_end_time": 1.7e9 + 2}
    for seed in range(2):
        path = write(tmp_path / f"ours/eval-results/gsm8k/output-rs{seed}.jsonl", rows)
        path.with_name(f"{path.name}.run.json").write_text('{"settings": {"server.model": "asked-model"}}')
    return tmp_path / "ours"


def test_inspect_s_own_library_reads_our_log(ours, tmp_path):
    log_file = pytest.importorskip("inspect_ai.log", reason="no inspect_ai here: pip install inspect_ai")
    done = ns("ns export ours --format inspect --output_dir logs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    place = str(tmp_path / done.stdout.strip())
    log = log_file.read_eval_log(place)
    assert (log.version, log.status, log.eval.task, log.eval.config.epochs) == (2, "success", "gsm8k", 2)
    assert len(log.samples) == 12
    assert log.eval.dataset.samples == 6
    assert (log.eval.model, log.samples[0].output.model) == ("asked-model", "asked-model")
    (score,) = log.results.scores
    assert score.metrics["accuracy"].value == pytest.approx(4 / 5)
    assert (score.scored_samples, score.unscored_samples) == (10, 2)
    values = [sample.scores["newskills"].value for sample in log.samples if sample.epoch == 1]
    assert values[:5] == [1, 1, 1, 1, 0]
    assert values[5] != values[5], "an unscored sample is NaN"
    assert log.samples[5].scores["newskills"].reason == "grader_failed"
    first = log.samples[0]
    assert (first.input, first.target, first.output.completion) == ("Add 0 and 0.", "0", "\\boxed{0}")
    assert first.output.usage.output_tokens == 5
    assert first.output.message.content[0].reasoning == "Let me see."
    assert log.samples[4].output.stop_reason == "max_tokens"
    summaries = log_file.read_eval_log_sample_summaries(place)
    assert len(summaries) == 12
    log_file.write_eval_log(log, str(tmp_path / "again.eval"))
    assert len(log_file.read_eval_log(str(tmp_path / "again.eval")).samples) == 12


def test_there_and_back(ours, tmp_path):
    for file in ours.rglob("output*.jsonl"):
        file.write_text(file.read_text().replace('"judge"', '"provider"'))
    (path,) = export(ours, tmp_path / "logs", model="my-model")
    before = ns("ns summarize_results ours --accept_lost 100", cwd=tmp_path)
    assert before.returncode == 0, before.stderr
    found = imported(path, tmp_path / "back")
    theirs = json.loads((ours / "metrics.json").read_text())["gsm8k"]["pass@1[avg-of-2]"]
    assert found["gsm8k"]["pass@1[avg-of-2]"]["accuracy"] == theirs["symbolic_correct"]
    rows = rows_of(tmp_path / "back/eval-results/gsm8k/output-rs1.jsonl")
    assert [row["outcome"] for row in rows] == ["correct"] * 4 + ["wrong", "unscored"]
    assert rows[5]["outcome_cause"] == "grader"
    assert rows[0]["reasoning_content"] == "Let me see."
    with pytest.raises(DataError, match="is there already"):
        export(ours, tmp_path / "logs")


def inspect_log(folder: Path, suffix: str = ".eval") -> Path:
    """A log as Inspect's own library writes it: two epochs, two scorers, an error, an attachment, odd scores."""
    logs = pytest.importorskip("inspect_ai.log", reason="no inspect_ai here: pip install inspect_ai")
    model = pytest.importorskip("inspect_ai.model")
    scorer = pytest.importorskip("inspect_ai.scorer")
    values: list[Any] = ["C", "I", "P", "N", float("nan"), {"em": 1, "f1": 0.5}]
    samples = []
    for epoch in (1, 2):
        for n, value in enumerate(values):
            output = model.ModelOutput.from_content(
                "m", f"answer {n}", stop_reason="max_tokens" if n == 1 else "stop"
            )
            output.usage = model.ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
            scores = {
                "match": scorer.Score(value=value, answer=str(n), reason="refusal" if n == 4 else None),
                "judge": scorer.Score(value=True),
            }
            samples.append(
                logs.EvalSample(
                    id=n,
                    epoch=epoch,
                    input=[
                        model.ChatMessageSystem(content="Be brief."),
                        model.ChatMessageUser(content=f"Question {n}?"),
                    ],
                    target=["yes"],
                    output=output,
                    messages=[model.ChatMessageUser(content=f"Question {n}?"), output.message],
                    scores=scores,
                    started_at="2026-01-02T03:04:05+00:00",
                    completed_at="2026-01-02T03:04:08+00:00",
                )
            )
    samples[5].error = logs.EvalError(message="boom", traceback="", traceback_ansi="")
    spec = logs.EvalSpec(
        created="2026-01-02T03:04:05+00:00",
        task="inspect_evals/sums",
        dataset=logs.EvalDataset(samples=6, sample_ids=list(range(6))),
        model="openai/my-model",
        config=logs.EvalConfig(epochs=2),
        scorers=[{"name": "inspect_ai/match"}, {"name": "judge"}],
    )
    path = folder / f"log{suffix}"
    logs.write_eval_log(logs.EvalLog(status="success", eval=spec, samples=samples), str(path))
    return path


@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_logs_of_inspect(tmp_path, suffix):
    one = only(inspect_log(tmp_path, suffix))
    assert (one.benchmark, list(one.seeds)) == ("sums", [0, 1])
    assert [(row["outcome"], row.get("is_correct")) for row in one.seeds[1]] == [
        ("correct", True),
        ("wrong", False),
        ("wrong", 0.5),
        ("no_answer", False),
        ("no_answer", False),
        ("correct", True),
    ]
    assert one.seeds[0][5]["outcome"] == "unscored"
    assert "boom" in one.seeds[0][5]["why"]
    first = one.seeds[0][1]
    assert first["problem"] == "Question 1?"
    assert (first["expected_answer"], first["generation"], first["finish_reason"]) == ("yes", "answer 1", "length")
    assert (first["num_input_tokens"], first["num_generated_tokens"]) == (7, 3)
    assert first["generation_end_time"] - first["generation_start_time"] == 3
    assert one.origin["model"] == "openai/my-model"


def test_another_scorer_of_inspect(tmp_path):
    path = inspect_log(tmp_path)
    assert {row["outcome"] for row in only(path, score="judge").seeds[1]} == {"correct"}
    assert only(path, score="match.f1").seeds[1][5]["is_correct"] == 0.5
    with pytest.raises(DataError, match="no scorer 'exact' has judged a sample; there are judge, match"):
        only(path, score="exact")


def test_a_log_of_inspect_is_summarised(tmp_path):
    found = imported(inspect_log(tmp_path), tmp_path / "ours", "--score=judge", "--benchmark=mine")
    assert found["mine"]["pass@1[avg-of-2]"]["accuracy"] == 100.0
    assert json.loads((tmp_path / "ours/metrics_extended.json").read_text())["mine"]["ledger"]["unscored"] == 1


def test_an_unfinished_log_is_read_as_far_as_it_goes(tmp_path):
    path = inspect_log(tmp_path)
    pytest.importorskip("zipfile_zstd")
    with zipfile.ZipFile(path) as full, zipfile.ZipFile(tmp_path / "part.eval", "w") as part:
        header = json.loads(full.read("header.json"))
        part.writestr("_journal/start.json", json.dumps({"version": 2, "eval": header["eval"], "plan": {}}))
        for name in ("samples/0_epoch_1.json", "samples/1_epoch_1.json", "samples/0_epoch_2.json"):
            part.writestr(name, full.read(name))
    one = only(tmp_path / "part.eval")
    assert "status is 'started'" in one.notes[0]
    assert [row["outcome"] for row in one.seeds[1]] == ["correct"] + ["unscored"] * 5


def damaged(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    elif how == "flipped":
        data[len(data) // 2] ^= 0xFF
    elif how == "empty":
        data.clear()
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["cut", "empty"])
def test_broken_archives_are_refused(tmp_path, how):
    path = inspect_log(tmp_path)
    damaged(path, how)
    with pytest.raises(DataError, match="is broken, or no log"):
        only(path)


def test_a_changed_byte_is_noticed(tmp_path):
    """Refused, or the sample is unscored and that is told, or the byte means nothing."""
    path = inspect_log(tmp_path)
    whole = only(path).seeds
    original = path.read_bytes()
    for at in range(60, len(original) - 60, max(1, len(original) // 40)):
        data = bytearray(original)
        data[at] ^= 0xFF
        path.write_bytes(data)
        try:
            found = only(path)
        except DataError:
            continue
        changed = [
            row
            for seed, rows in found.seeds.items()
            for row, before in zip(rows, whole[seed], strict=True)
            if row != before
        ]
        assert all(row["outcome"] == "unscored" for row in changed), f"byte {at}"
        assert not changed or "missing" in " ".join(found.notes), f"byte {at}"


@pytest.mark.parametrize(
    "files",
    [
        {"header.json": "[]"},
        {"header.json": "{"},
        {"header.json": '{"eval": 3}'},
        {"other.json": "{}"},
        {"header.json": '{"eval": {"task": "t"}}'},
        {"header.json": '{"eval": {"task": "t"}}', "samples/1_epoch_1.json": "[]"},
        {"header.json": '{"eval": {"task": "t"}}', "samples/1_epoch_1.json": '{"epoch": 1}'},
        {"header.json": '{"eval": {"task": "t"}}', "samples/1_epoch_1.json": '{"id": 1, "epoch": "x"}'},
        {"header.json": '{"eval": {"task": "t"}}', "samples/1_epoch_1.json": "[" * 100_000},
    ],
)
def test_foreign_archives_are_refused(tmp_path, files):
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    with pytest.raises(DataError):
        only(tmp_path / "x.eval")


def test_odd_samples_are_unscored_not_wrong(tmp_path):
    odd: list[dict[str, Any]] = [
        {},
        {"scores": None, "output": {"choices": "x"}},
        {"scores": {"s": {"value": "maybe"}}, "output": {"choices": [{"message": 3}]}},
        {"scores": {"s": {"value": 7}}, "input": 3, "target": {"a": 1}},
        {"scores": {"s": 3}, "attachments": 5, "started_at": "yesterday"},
        {"scores": {"s": {"value": float("nan"), "metadata": {"unscored_reason": "grader_failed"}}}},
    ]
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"status": "success", "eval": {"task": "t", "scorers": [3]}}))
        for n, sample in enumerate(odd):
            archive.writestr(f"samples/{n}_epoch_1.json", json.dumps({"id": n, "epoch": 1, **sample}))
    (rows,) = only(tmp_path / "x.eval").seeds.values()
    assert {row["outcome"] for row in rows} == {"unscored"}
    assert rows[5]["outcome_cause"] == "judge"


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("newskills.interop.inspect_files.LARGEST", 1000)
    with zipfile.ZipFile(tmp_path / "x.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {}}')
        archive.writestr("samples/1_epoch_1.json", " " * 1_000_000)
    with pytest.raises(DataError, match="unpacks to more than"):
        only(tmp_path / "x.eval")


def test_two_logs_of_one_task_are_refused(tmp_path):
    (tmp_path / "logs").mkdir()
    path = inspect_log(tmp_path / "logs")
    (tmp_path / "logs/b.eval").write_bytes(path.read_bytes())
    with pytest.raises(DataError, match="two logs of sums"):
        read(Source(path=tmp_path / "logs"))


def test_attachments_are_put_back(tmp_path):
    sample = {
        "id": 1,
        "epoch": 1,
        "input": "attachment://abc",
        "attachments": {"abc": "A long question"},
        "output": {"choices": [{"message": {"content": "attachment://gone"}}]},
        "scores": {"s": {"value": 1}},
    }
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [sample]}
    (tmp_path / "x.json").write_text(json.dumps(log))
    ((row,),) = only(tmp_path / "x.json").seeds.values()
    assert (row["problem"], row["generation"]) == ("A long question", "attachment://gone")


def test_an_invocation_is_exported_by_its_id(tmp_path):
    write(tmp_path / "run/gsm8k.0/artifacts/eval-results/gsm8k/output.jsonl", records())
    entry = {
        "invocation_id": "0123456789abcdef",
        "job_id": "0123456789abcdef.0",
        "timestamp": 1.7e9,
        "executor": "local",
        "data": {"output_dir": str(tmp_path / "run/gsm8k.0")},
        "config": {
            "target": {"api_endpoint": {"model_id": "my-model"}},
            "evaluation": {"tasks": [{"name": "gsm8k"}]},
        },
    }
    write(tmp_path / "db.jsonl", [entry])
    env = {"NEMO_EVALUATOR_EXEC_DB_FILE": str(tmp_path / "db.jsonl")}
    done = ns("ns export 0123 --format inspect", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    one = only(tmp_path / done.stdout.strip())
    assert (one.benchmark, one.origin["model"], len(one.seeds[None])) == ("gsm8k", "my-model", 6)


def test_what_unpacks_zstd_is_named_where_it_is_missing(tmp_path, monkeypatch):
    path = inspect_log(tmp_path)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ConfigError, match=r"newskills\[inspect\]"):
        only(path)


def test_export_refuses_what_has_no_results(tmp_path):
    (tmp_path / "empty").mkdir()
    done = ns("ns export empty --format inspect", cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing to export" in done.stderr
    both = ns("ns export empty --format inspect --dest wandb", cwd=tmp_path)
    assert both.returncode == 2
    assert "--format inspect writes files" in both.stderr


@given(
    st.dictionaries(
        st.sampled_from(
            ["id", "epoch", "input", "target", "output", "scores", "error", "attachments", "started_at"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
            max_leaves=8,
        ),
    )
)
def test_no_sample_of_inspect_breaks_the_reader(tmp_path_factory, sample):
    path = tmp_path_factory.mktemp("fuzz") / "x.json"
    path.write_text(json.dumps({"status": "success", "eval": {"task": "t"}, "samples": [sample]}))
    try:
        one = only(path)
    except DataError:
        return
    write_imported(one, path.parent / "ours")
