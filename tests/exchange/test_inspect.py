# SPDX-License-Identifier: Apache-2.0
"""Logs of Inspect, read and written: with the real library, and with archives that mean harm."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands.running import ns, rows_of, write
from tests.exchange.evaluated import records
from tests.exchange.imported import imported, only
from tests.view.browser import PATIENCE, Browser, chromium

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.exchange.importers import ImportSource, read
from newskills.exchange.importers import write_import as write_imported
from newskills.exchange.inspect_export import export
from newskills.run.hosting.servers import free_port


@pytest.fixture
def ours(tmp_path: Path) -> Path:
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


AGENT_STEPS = [
    {"role": "system", "content": "You work in a shell."},
    {"role": "user", "content": [{"type": "text", "text": "Repair add.sh."}]},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "First I look.",
        "tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": '{"command": "cat add.sh"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "echo $(($1 + $2 + 1))"},
    {"role": "assistant", "content": "It adds one too many."},
]


@pytest.fixture
def three(ours: Path) -> Path:
    """Beside the sums: an agent's task with its conversation, and a question with choices."""
    agent = {"id": "repair", "problem": "Repair add.sh.", "conversation": AGENT_STEPS, "is_resolved": True}
    agent |= {"generation": "It adds one too many.", "outcome": "correct", "model_patch": "--- a/add.sh"}
    write(ours / "eval-results/three/output.jsonl", [agent])
    choice = {"id": "q", "question": "Which is even?\n\nA. 1\nB. 2", "expected_answer": "B", "outcome": "correct"}
    choice |= {"generation": "B", "predicted_answer": "B", "symbolic_correct": True}
    write(ours / "eval-results/mmlu/output.jsonl", [choice])
    return ours


def test_a_log_has_the_whole_conversation_of_an_agent(three: Path, tmp_path: Path) -> None:
    place = next(path for path in export(three, tmp_path / "logs") if "three" in path.name)
    with zipfile.ZipFile(place) as log:
        sample = json.loads(log.read("samples/repair_epoch_1.json"))
    roles = [message["role"] for message in sample["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    call = {"id": "c1", "function": "bash", "arguments": {"command": "cat add.sh"}, "type": "function"}
    assert sample["messages"][2]["tool_calls"] == [call]
    assert sample["messages"][2]["content"][0] == {"type": "reasoning", "reasoning": "First I look."}
    assert (sample["messages"][3]["tool_call_id"], sample["messages"][3]["function"]) == ("c1", "bash")
    (event,) = sample["events"]
    assert event["input"] == sample["messages"][:4]
    assert event["output"]["choices"][0]["message"] == sample["messages"][4]
    assert "conversation" not in sample["metadata"]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_data_frames_of_inspect_and_scout_read_our_logs(three: Path, tmp_path: Path) -> None:
    """Scout reads transcripts by their messages, which have identities of their own."""
    analysis = pytest.importorskip("inspect_ai.analysis", reason="no inspect_ai here: pip install inspect_ai")
    pytest.importorskip("pandas", reason="no pandas here: pip install pandas")
    assert ns("ns export ours --format inspect --output_dir logs", cwd=tmp_path).returncode == 0
    logs = str(tmp_path / "logs")
    assert len(analysis.evals_df(logs)) == 3
    assert len(analysis.samples_df(logs)) == 14
    messages = analysis.messages_df(logs)
    assert (len(messages), messages["message_id"].nunique()) == (31, 31)
    assert messages["tool_calls"].dropna().str.contains("cat add.sh").sum() == 1
    assert len(analysis.events_df(logs)) == 14
    scout = pytest.importorskip("inspect_scout", reason="no inspect_scout here: pip install inspect_scout")

    async def read() -> list[tuple[Any, Any]]:
        async with scout.transcripts_from(logs).reader() as reader:
            content = scout.TranscriptContent(messages="all", events="all")
            return [(found, await reader.read(found, content)) async for found in reader.index()]

    found = asyncio.run(read())
    assert {(info.task_set, info.model) for info, _ in found if info.task_set == "gsm8k"} == {
        ("gsm8k", "asked-model")
    }
    (agent,) = [transcript for info, transcript in found if info.task_set == "three"]
    assert [message.role for message in agent.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert agent.messages[2].tool_calls[0].arguments == {"command": "cat add.sh"}


@pytest.mark.nightly
def test_inspect_s_own_library_reads_our_log(ours: Path, tmp_path: Path) -> None:
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
    assert first.events[0].output.completion == first.output.completion
    assert len({message.id for sample in log.samples for message in sample.messages}) == 24
    summaries = log_file.read_eval_log_sample_summaries(place)
    assert len(summaries) == 12
    log_file.write_eval_log(log, str(tmp_path / "again.eval"))
    assert len(log_file.read_eval_log(str(tmp_path / "again.eval")).samples) == 12


@pytest.mark.nightly
@pytest.mark.skipif(chromium() is None, reason="no browser here: apt-get install chromium")
def test_the_viewer_of_inspect_shows_our_logs(three: Path, tmp_path: Path) -> None:
    """`inspect view` in a browser: the tables of samples, and some of them with their conversation."""
    pytest.importorskip("inspect_ai", reason="no inspect_ai here: pip install inspect_ai")
    done = ns("ns export ours --format inspect --output_dir logs", cwd=tmp_path)
    logs = {
        name: next(line for line in done.stdout.split() if name in line) for name in ("gsm8k", "mmlu", "three")
    }
    port = free_port()
    words = [sys.executable, "-m", "inspect_ai", "view", "start", "--log-dir=logs", f"--port={port}"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        browser = Browser()
        try:
            _until_it_answers(port)
            place = f"http://127.0.0.1:{port}/#/logs/{Path(logs['gsm8k']).name}"
            browser.send("Page.navigate", url=place)
            browser.wait("document.body?.innerText.includes('Add 0 and 0.')")
            shown = browser.text()
            assert ("gsm8k" in shown, "asked-model" in shown, "0.8" in shown) == (True, True, True), shown
            browser.send("Page.navigate", url=f"{place}/samples/sample/s0/1/")
            browser.wait("document.body?.innerText.includes('Let me see.')")
            assert "boxed" in browser.text()
            for name, sample, text in (("mmlu", "q", "Which is even?"), ("three", "repair", "cat add.sh")):
                place = (
                    f"http://127.0.0.1:{port}/#/logs/{Path(logs[name]).name}/samples/sample/{sample}/1/messages"
                )
                browser.send("Page.navigate", url=place)
                browser.wait(f"document.body?.innerText.includes({text!r})")
            assert "It adds one too many." in browser.text()
        finally:
            browser.close()
            server.terminate()


def _until_it_answers(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.1)
    raise AssertionError("the viewer never answered")


def test_there_and_back(ours: Path, tmp_path: Path) -> None:
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
    with pytest.raises(DataError, match="already exists"):
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
def test_logs_of_inspect(tmp_path: Path, suffix: str) -> None:
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


def test_another_scorer_of_inspect(tmp_path: Path) -> None:
    path = inspect_log(tmp_path)
    assert {row["outcome"] for row in only(path, score="judge").seeds[1]} == {"correct"}
    assert only(path, score="match.f1").seeds[1][5]["is_correct"] == 0.5
    with pytest.raises(DataError, match="no scorer 'exact' in the samples; the choices are judge, match"):
        only(path, score="exact")


def test_a_log_of_inspect_is_summarised(tmp_path: Path) -> None:
    found = imported(inspect_log(tmp_path), tmp_path / "ours", "--score=judge", "--benchmark=mine")
    assert found["mine"]["pass@1[avg-of-2]"]["accuracy"] == 100.0
    assert json.loads((tmp_path / "ours/metrics_extended.json").read_text())["mine"]["ledger"]["unscored"] == 1


def test_an_unfinished_log_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = inspect_log(tmp_path)
    pytest.importorskip("zipfile_zstd")
    with zipfile.ZipFile(path) as full, zipfile.ZipFile(tmp_path / "part.eval", "w") as part:
        header = json.loads(full.read("header.json"))
        part.writestr("_journal/start.json", json.dumps({"version": 2, "eval": header["eval"], "plan": {}}))
        for name in ("samples/0_epoch_1.json", "samples/1_epoch_1.json", "samples/0_epoch_2.json"):
            part.writestr(name, full.read(name))
    one = only(tmp_path / "part.eval")
    assert "with status 'started'" in one.notes[0]
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
def test_broken_archives_are_refused(tmp_path: Path, how: str) -> None:
    path = inspect_log(tmp_path)
    damaged(path, how)
    with pytest.raises(DataError, match="is broken, or not a log"):
        only(path)


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
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
def test_foreign_archives_are_refused(tmp_path: Path, files: dict[str, str]) -> None:
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    with pytest.raises(DataError):
        only(tmp_path / "x.eval")


def test_odd_samples_are_unscored_not_wrong(tmp_path: Path) -> None:
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


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newskills.exchange.inspect_files.MAX_UNPACKED_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "x.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {}}')
        archive.writestr("samples/1_epoch_1.json", " " * 1_000_000)
    with pytest.raises(DataError, match="unpacks to more than"):
        only(tmp_path / "x.eval")


def test_two_logs_of_one_task_are_refused(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    path = inspect_log(tmp_path / "logs")
    (tmp_path / "logs/b.eval").write_bytes(path.read_bytes())
    with pytest.raises(DataError, match="two logs of sums"):
        read(ImportSource(path=tmp_path / "logs"))


def test_two_models_of_one_task(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for model, right in (("openai/gpt-4", 1), ("hf/me/mine", 0)):
        for task in ("sums", "words"):
            header = {"status": "success", "eval": {"task": task, "model": model}}
            sample = {"epoch": 1, "input": "?", "scores": {"s": {"value": right}}}
            with zipfile.ZipFile(tmp_path / f"logs/{task}-{right}.eval", "w") as archive:
                archive.writestr("header.json", json.dumps(header))
                for n in range(3):
                    archive.writestr(f"samples/{n}_epoch_1.json", json.dumps({"id": n, **sample}))
    done = ns("ns import logs --output_dir ours", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {
        (model, task): rows_of(tmp_path / f"ours/{model}/eval-results/{task}/output.jsonl")[0]["is_correct"]
        for model in ("openai-gpt-4", "hf-me-mine")
        for task in ("sums", "words")
    }
    assert found == {
        ("openai-gpt-4", "sums"): True,
        ("openai-gpt-4", "words"): True,
        ("hf-me-mine", "sums"): False,
        ("hf-me-mine", "words"): False,
    }
    compared = ns("ns compare ours/openai-gpt-4 ours/hf-me-mine", cwd=tmp_path)
    assert "sums" in compared.stdout, compared.stderr


def test_attachments_are_put_back(tmp_path: Path) -> None:
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


def test_an_invocation_is_exported_by_its_id(tmp_path: Path) -> None:
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


def test_what_unpacks_zstd_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = inspect_log(tmp_path)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ConfigError, match=r"newskills\[inspect\]"):
        only(path)


def test_export_refuses_what_has_no_results(tmp_path: Path) -> None:
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
def test_no_sample_of_inspect_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, sample: Row) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.json"
    path.write_text(json.dumps({"status": "success", "eval": {"task": "t"}, "samples": [sample]}))
    try:
        one = only(path)
    except DataError:
        return
    write_imported(one, path.parent / "ours")
