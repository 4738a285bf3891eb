# SPDX-License-Identifier: Apache-2.0
"""Results as tables of Arrow: what is in them, whatever the runs are like."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest
from tests.commands.running import write
from tests.exchange.evaluated import records
from tests.view.comparison.runs import answers, record, write_run
from tests.view.results import CONVERSATION, rich_records, write_lines

from newskills import analysis
from newskills.base.errors import DataError, UnknownNameError
from newskills.exchange.importers import ImportSource, read
from newskills.exchange.importers import write_import as write_imported
from newskills.run.reporting.summarize import SummaryOptions, summarize
from newskills.view.comparison import compare_run_folders
from newskills.view.samples import SampleFilter, iter_samples


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_run(tmp_path / "base", {0: answers("++-?"), 1: answers("+--?")})
    write_run(tmp_path / "tuned", {None: answers("+++-", subset_for_metrics="algebra", generation_time=1.5)})
    return tmp_path


def test_samples_are_those_of_the_records(results: Path) -> None:
    table = analysis.samples(results)
    assert table.schema.metadata[b"newskills.schema_version"] == b"1"
    assert table.num_rows == 12
    first, last = table.to_pylist()[0], table.to_pylist()[-1]
    assert {
        name: first[name] for name in ("run", "seed", "id", "outcome", "cause", "score", "tokens", "subset")
    } == {
        "run": "base",
        "seed": 0,
        "id": "q0",
        "outcome": "correct",
        "cause": None,
        "score": 1.0,
        "tokens": 10,
        "subset": None,
    }
    assert {
        name: last[name] for name in ("run", "seed", "subset", "outcome", "seconds", "expected", "extracted")
    } == {
        "run": "tuned",
        "seed": None,
        "subset": "algebra",
        "outcome": "wrong",
        "seconds": 1.5,
        "expected": "4",
        "extracted": "3",
    }
    assert "reply" not in table.column_names
    unscored = analysis.samples(results, ["score"], "outcome = unscored")
    assert unscored.column("score").to_pylist() == [None, None]


def test_columns_and_filters_are_chosen_by_name(results: Path) -> None:
    table = analysis.samples(str(results), ["id", "reply"], "reply ~ boxed{3} and seed != none")
    assert table.to_pylist() == [{"id": "q3", "reply": "\\boxed{3}"}] * 2
    assert analysis.samples(results, ["id"], "subset = algebra").num_rows == 4
    assert analysis.samples(results, where="tokens > 1000").num_rows == 0
    with pytest.raises(UnknownNameError, match="did you mean 'tokens'"):
        analysis.samples(results, ["token"])


def test_samples_are_as_ns_samples_has_them(tmp_path: Path) -> None:
    """Records of every kind, a broken line among them: the same samples with the same outcomes, by the same filter."""
    write_lines(tmp_path / "run/eval-results/gsm8k/output-rs3.jsonl", rich_records())
    table = analysis.samples(tmp_path / "run", ["id", "seed", "outcome", "cause", "reply"])
    chosen = list(iter_samples(tmp_path / "run", SampleFilter(), []))
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (sample.record["id"], sample.seed, sample.outcome, sample.cause, sample.record.get("generation"))
        for sample in chosen
    ]
    text = "outcome = wrong and not reply ~ boxed or cause = truncation"
    some = list(iter_samples(tmp_path / "run", SampleFilter(where=text), []))
    assert 0 < len(some) < len(chosen)
    assert analysis.samples(tmp_path / "run", ["id"], text).column("id").to_pylist() == [
        sample.record["id"] for sample in some
    ]
    assert b"1 line of output-rs3.jsonl cannot be read." in table.schema.metadata[b"newskills.notes"]


def test_scores_are_those_of_summarize_results(results: Path) -> None:
    before = analysis.scores(results).to_pylist()
    assert not list(results.rglob("metrics*.json"))
    report = summarize(results / "base", None, SummaryOptions(accept_lost=1.0)).reports[0]
    after = analysis.scores(results).to_pylist()
    assert len(after) > 5
    modes = {(row["mode"], row["score"]): row for row in after if row["run"] == "base"}
    number = report.numbers["pass@1[avg-of-2]"]["symbolic_correct"]
    row = modes["pass@1[avg-of-2]", "symbolic_correct"]
    assert (row["value"], row["low"], row["high"], row["n"], row["unscored"]) == (
        number.value,
        number.low,
        number.high,
        number.n,
        number.unscored,
    )
    assert row["withheld"] is False  # as summarize was told; counted anew, two of eight are too many
    assert [row | {"withheld": None} for row in before] == [row | {"withheld": None} for row in after]
    output = results / "base/eval-results/gsm8k/output-rs0.jsonl"
    output.write_text("".join(json.dumps(row) + "\n" for row in answers("----")))
    later = output.stat().st_mtime_ns + 2_000_000_000
    os.utime(output, ns=(later, later))
    newer = {(row["run"], row["mode"], row["score"]): row["value"] for row in analysis.scores(results).to_pylist()}
    assert newer["base", "pass@1[avg-of-2]", "symbolic_correct"] < row["value"]


def test_runs_say_what_they_were_made_with(results: Path) -> None:
    base, tuned = analysis.runs(results).to_pylist()
    made_with = [base[name] for name in ("model", "files", "rows", "status", "temperature")]
    assert made_with == ["base", 2, 8, "done", 0.0]
    assert (base["prompt"], base["prompt_hash"], base["newskills"], base["system"]) == (
        "generic/math",
        "aaaa",
        "0.2.0",
        "newskills",
    )
    assert json.loads(tuned["settings"])["server.model"] == "tuned"
    assert tuned["cost"] is None


def test_messages_are_conversations_or_question_and_reply(tmp_path: Path) -> None:
    rows = [
        record(0, True),
        record(1, False, conversation=CONVERSATION),
        record(2, True, rendered_prompt="Sent so."),
    ]
    write_run(tmp_path / "a", {None: rows})
    table = analysis.messages(tmp_path)
    told = [(row["id"], row["turn"], row["role"], row["recorded"]) for row in table.to_pylist()]
    assert told[:2] == [("q0", 0, "user", False), ("q0", 1, "assistant", False)]
    assert told[2:7] == [("q1", n, message["role"], True) for n, message in enumerate(CONVERSATION)]
    assert [row["content"] for row in table.to_pylist()][7:] == ["Sent so.", "\\boxed{3}"]
    assert json.loads(table.to_pylist()[4]["tool_calls"])[0]["function"]["name"] == "python"
    assert analysis.messages(tmp_path, "id = q1").num_rows == len(CONVERSATION)


def test_values_of_any_type_fit_their_columns(tmp_path: Path) -> None:
    """What other programs write: numbers as texts, lists as texts, halves of surrogate pairs, huge numbers."""
    odd = {
        "id": ["a", 1],
        "predicted_answer": {"a": 1},
        "num_generated_tokens": 2**70,
        "num_input_tokens": "many",
        "generation": ["part"],
        "finish_reason": {"reason": "stop"},
        "grader": 7,
        "why": 3.5,
        "generation_time": True,
        "subset_for_metrics": [1, None],
    }
    lines = [json.dumps(record(0, True)), json.dumps(record(1, True) | odd)]
    lines.append(json.dumps(record(2, True)).replace("boxed{3}", "\\ud83d"))
    write_lines(tmp_path / "eval-results/gsm8k/output.jsonl", lines)
    table = analysis.samples(tmp_path, [*analysis.samples(tmp_path).column_names, "reply"])
    assert table.num_rows == 3
    row = table.to_pylist()[1]
    assert (row["id"], row["extracted"], row["tokens"], row["input_tokens"], row["reply"]) == (
        '["a",1]',
        '{"a":1}',
        None,
        None,
        '["part"]',
    )
    table.validate(full=True)
    for column in table.columns:
        column.to_pylist()


def test_runs_of_every_kind_are_read_together(tmp_path: Path) -> None:
    """Without a benchmark's name, unfinished, ungraded, of a newer version, in chunks, with other columns."""
    write_run(tmp_path / "a", {0: answers("+-")}, facts={"newskills": "99.0.0"})
    write_lines(tmp_path / "b/output.jsonl", answers("+-"))
    write_lines(tmp_path / "c/output.jsonl", [{"id": 1, "generation": "x"}, {"generation": "y"}])
    write_lines(tmp_path / "d/eval-results/gsm8k/output-rs0.jsonl-async", answers("+"))
    for chunk in range(2):
        write_lines(tmp_path / f"e/eval-results/gsm8k/output-rs4_chunk_{chunk}.jsonl", [answers("+-")[chunk]])
    table = analysis.samples(tmp_path, ["run", "benchmark", "seed", "id", "outcome", "tokens"])
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert ("a", "gsm8k", 0, "q0", "correct", 10) in rows
    assert [row[1:] for row in rows if row[1] == "c"] == [
        ("c", None, "1", "ungraded", None),
        ("c", None, "line 2", "ungraded", None),
    ]
    assert [row[2] for row in rows if row[0] == "e"] == [4, 4]
    assert b"d (gsm8k)" in table.schema.metadata[b"newskills.notes"]
    assert {row["newskills"] for row in analysis.runs(tmp_path).to_pylist()} == {"99.0.0", None}


def test_folders_that_have_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no results"):
        analysis.samples(tmp_path)
    with pytest.raises(DataError):
        analysis.samples(tmp_path / "none")
    with pytest.raises(DataError, match="No folder"):
        analysis.samples([])


def test_comparisons_are_those_of_ns_compare(tmp_path: Path) -> None:
    for name, verdicts in (("a/base", "+-" * 30), ("b/base", "++" * 30), ("c", "--" * 30)):
        write_run(tmp_path / name, {None: answers(verdicts)})
    table = analysis.comparisons(tmp_path, "b/base").to_pylist()
    assert [(row["baseline"], row["run"], row["difference"], row["verdict"]) for row in table] == [
        ("b/base", "a/base", -50.0, "worse"),
        ("b/base", "c", -100.0, "worse"),
    ]
    compared = compare_run_folders([tmp_path / name for name in ("b/base", "a/base", "c")]).benchmarks
    assert [row["p_adjusted"] for row in table] == [item.p_adjusted for item in compared]
    assert analysis.comparisons(tmp_path).to_pylist()[0]["baseline"] == "a/base"
    with pytest.raises(UnknownNameError, match="did you mean 'a/base'"):
        analysis.comparisons(tmp_path, "a/bse")
    with pytest.raises(DataError, match="needs two runs"):
        analysis.comparisons(tmp_path / "c")
    write_run(tmp_path / "d", {None: answers("+-" * 30)}, facts={"prompt_hash": "bbbb"})
    with pytest.raises(DataError, match="differ in prompt"):
        analysis.comparisons(tmp_path)
    assert len(analysis.comparisons(tmp_path, allow=["prompt"])) == 3


def test_a_reader_holds_a_few_thousand_rows(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {0: [record(n, True) for n in range(9_000)]})
    reader = analysis.sample_batches(tmp_path)
    sizes = [batch.num_rows for batch in reader]
    assert isinstance(reader, pyarrow.RecordBatchReader)
    assert sum(sizes) == 9_000
    assert max(sizes) <= 8_192


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, newskills.analysis; print([m for m in ('pyarrow', 'duckdb', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("package", "call"), [("pyarrow", "analysis.samples('.')"), ("duckdb", "analysis.query('SELECT 1', '.')")]
)
def test_a_missing_package_is_one_sentence(package: str, call: str, results: Path) -> None:
    code = f"import sys; sys.modules[{package!r}] = None\nfrom newskills import analysis\n{call}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=results, capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert f"need{'' if package == 'pyarrow' else 's'} {package}, which is not installed." in last
    assert last.endswith("Run: pip install 'newskills[analysis]'.")


def test_results_of_other_tools_are_read_as_ours(tmp_path: Path) -> None:
    write(tmp_path / "theirs/eval-results/gsm8k/output-rs0.jsonl", records())
    for item in read(ImportSource(path=tmp_path / "theirs")):
        write_imported(item, tmp_path / "imported")
    write_run(tmp_path / "ours", {0: answers("+-")})
    table = analysis.samples(tmp_path, ["run", "id", "outcome", "score", "reply"]).to_pylist()
    by_run = {name: [row for row in table if row["run"] == name] for name in ("imported", "ours", "theirs")}
    assert [len(rows) for rows in by_run.values()] == [len(records()), 2, len(records())]
    for one, other in zip(by_run["imported"], by_run["theirs"], strict=True):
        assert (one["outcome"], one["score"], one["reply"]) == (other["outcome"], other["score"], other["reply"])
    systems = {row["run"]: row["system"] for row in analysis.runs(tmp_path).to_pylist()}
    assert systems["ours"] == "newskills"
    assert systems["imported"] == "nemo-skills"


def test_an_import_tells_its_tool_and_model(tmp_path: Path) -> None:
    sample = {
        "doc_id": 0,
        "doc": {"question": "What is 1?"},
        "target": "1",
        "arguments": {"gen_args_0": {"arg_0": "Q: What is 1?"}},
        "resps": [["It is 1."]],
        "filtered_resps": ["1"],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": 1.0,
    }
    write(tmp_path / "lm/my__model/samples_gsm8k_2026-01-02T03-04-05.678901.jsonl", [sample])
    told = {"results": {"gsm8k": {}}, "model_name": "my/model"}
    (tmp_path / "lm/my__model/results_2026-01-02T03-04-05.678901.json").write_text(json.dumps(told))
    for item in read(ImportSource(path=tmp_path / "lm/my__model")):
        write_imported(item, tmp_path / "ours")
    (run,) = analysis.runs(tmp_path / "ours").to_pylist()
    assert (run["system"], run["model"], run["benchmark"]) == ("lm-eval", "my/model", "gsm8k")
    (row,) = analysis.samples(tmp_path / "ours", ["outcome", "score", "reply", "expected"]).to_pylist()
    assert row == {"outcome": "correct", "score": 1.0, "reply": "It is 1.", "expected": "1"}
    assert "accuracy" in analysis.scores(tmp_path / "ours").column("score").to_pylist()


def test_a_table_is_taken_by_data_frames(results: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="no pandas here")
    frame = analysis.samples(results).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    counts = frame.groupby(["run", "outcome"], observed=True).size()
    assert (counts["base", "correct"], counts["base", "wrong"], counts["tuned", "correct"]) == (3, 3, 3)


def test_many_runs_are_read_in_one_call(tmp_path: Path) -> None:
    for number in range(300):
        write_run(tmp_path / f"group{number % 3}/run{number}", {0: answers("+-")})
    assert analysis.samples(tmp_path).num_rows == 600
    assert len(set(analysis.runs(tmp_path).column("run").to_pylist())) == 300
