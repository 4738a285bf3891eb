# SPDX-License-Identifier: Apache-2.0
"""Objects in calls: benchmarks, models and settings reach the server as strings do, and results are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.commands.running import rows_of, write
from tests.commands.trainers import QUESTIONS, adding, prepare
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Script

import newskills
from newskills import Benchmark, Generation, Group, Model, evaluate, generate, grade, wrap_arguments
from newskills._api.objects import generation_signature, key_leaves
from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError, DataError, NewskillsError, UnknownNameError
from newskills.config.fields import leaves
from newskills.config.values import convert_value, written_value
from newskills.run.planning.config import GenerationConfig

BOTH = """
from newskills.solve.chat import ask

class Both:
    def __init__(self, parts): self.chat = parts.chat
    def request(self, sample): return self.chat.request(sample)
    async def solve(self, sample, request, kit):
        await ask(kit.models["main"], request)
        second = await ask(kit.models["model1"], request)
        return await self.chat.attempt(sample, request, second, self.chat.text(second))

SOLVER = Both
"""


def own_benchmark(folder: Path, name: str = "sums", **fields: object) -> Benchmark:
    rows = write(folder / "own" / name / "test.jsonl", QUESTIONS).parent
    made = Benchmark(name=name, category="math", title="Sums", prompt="generic/math", folder=str(rows))
    return replace(made, **fields)


def model_at(server: FakeServer | FakeServerProcess, name: str = "policy") -> Model:
    return Model(name, server="openai", address=server.url, settings={"api_key": "EMPTY"})


def test_objects_and_names_are_evaluated_together(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding())
    prepare(tmp_path)
    evaluation = evaluate(
        benchmarks=[own_benchmark(tmp_path), "aime25:2"],
        model=model_at(server),
        settings=Generation(temperature=0.6, tokens_to_generate=64, server={"max_retries": 1}),
        output_dir=tmp_path / "out",
        data_dir=tmp_path / "data",
    )
    assert len(server.records) == 30
    for record in server.records:
        assert record.body is not None
        assert (record.body["model"], record.body["temperature"], record.body["max_tokens"]) == ("policy", 0.6, 64)
    assert {name: (score.value, score.n) for name, score in evaluation.scores.items()} == {
        "aime25": (100.0, 10),
        "sums": (100.0, 10),
    }
    assert evaluation["sums"].ledger.correct == 10
    assert (tmp_path / "out" / "eval-results" / "aime25" / "output-rs1.jsonl").exists()
    with pytest.raises(UnknownNameError, match=r"sum.*did you mean 'sums'"):
        evaluation["sum"]


def test_an_evaluation_shows_scores_samples_and_tables(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    wrong = replace(adding().answer, table={"Add 1 and 1.": "3"}, text="I do not know.")
    server = fake_server(replace(adding(), answer=wrong))
    evaluation = evaluate(benchmarks=own_benchmark(tmp_path), model=model_at(server), output_dir=tmp_path / "out")
    (sample,) = evaluation.samples("sums", outcome="wrong")
    assert (sample.record["problem"], sample.record["predicted_answer"]) == ("Add 1 and 1.", "3")
    assert len(evaluation.samples(outcome="no_answer")) == 9
    assert len(evaluation.samples(number=4)) == 4
    assert str(evaluation) == evaluation.table()
    assert "pass@1          | 10          |" in evaluation.table()
    (row,) = [row for row in evaluation.rows() if row["score"] == "no_answer"]
    assert (row["benchmark"], row["mode"], row["value"], row["n"]) == ("sums", "pass@1", 90.0, 10)
    page = evaluation._repr_html_()
    assert "<tr><td>sums</td><td>pass@1</td><td>no_answer</td><td>90.00</td>" in page


def test_the_same_call_asks_nothing_again(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding())
    benchmark = own_benchmark(tmp_path)
    for _ in range(2):
        evaluation = evaluate(benchmarks=benchmark, model=model_at(server), output_dir=tmp_path / "out")
        assert evaluation.scores["sums"].value == 100.0
    assert len(server.records) == 10


def test_a_changed_benchmark_wins_over_the_one_of_its_name(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding())
    write(
        tmp_path / "data" / "aime25" / "test.jsonl", [{"id": "x", "problem": "Another.", "expected_answer": "1"}]
    )
    benchmark = own_benchmark(tmp_path, "aime25")
    evaluate(
        benchmarks=[benchmark], model=model_at(server), output_dir=tmp_path / "out", data_dir=tmp_path / "data"
    )
    assert len(server.records) == len(QUESTIONS)
    assert not any(str(record.prompt).endswith("Another.") for record in server.records)


def test_a_group_of_objects_has_its_own_score(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding())
    prepare(tmp_path)
    group = Group(name="pair", category="math", title="Two", members={"aime24": {}, "aime25": {"samples": 2}})
    evaluation = evaluate(
        benchmarks=[group], model=model_at(server), output_dir=tmp_path / "out", data_dir=tmp_path / "data"
    )
    assert {"pair.aime24", "pair.aime25"} <= evaluation.scores.keys()
    assert len(server.records) == 30


def test_rows_that_a_benchmark_makes_are_prepared_by_the_object(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    benchmark = replace(own_benchmark(tmp_path, "made"), folder="", generate_rows=lambda split: QUESTIONS)
    server = fake_server(adding())
    options = {"output_dir": tmp_path / "out", "data_dir": tmp_path / "data"}
    with pytest.raises(DataError, match=r"newskills\.prepare_data\(benchmarks="):
        evaluate(benchmarks=[benchmark], model=model_at(server), **options)
    (prepared,) = newskills.prepare_data(benchmarks=[benchmark], data_dir=tmp_path / "data")
    assert (prepared.benchmark, prepared.folder) == ("made", tmp_path / "data" / "made")
    assert [(split.split, split.provenance.rows) for split in prepared.splits] == [("test", 10)]
    assert newskills.prepare_data(benchmarks=[benchmark], data_dir=tmp_path / "data", dry_run=True) is None
    evaluation = evaluate(benchmarks=[benchmark], model=model_at(server), **options)
    assert evaluation.scores["made"].value == 100.0


def test_a_judge_may_be_a_model(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server, judge = (
        fake_server(adding()),
        fake_server(Script(answer=Answer(text="Judgement: Yes"))),
    )
    benchmark = own_benchmark(tmp_path, judge=Judge(), grader="", metric="math")
    evaluation = evaluate(
        benchmarks=[benchmark],
        model=model_at(server),
        judge_model=model_at(judge, "the judge"),
        output_dir=tmp_path / "out",
    )
    assert len(judge.records) == 10
    assert {record.body["model"] for record in judge.records if record.body} == {"the judge"}
    assert evaluation.scores["sums"].value == 100.0


def test_a_generation_returns_its_files_and_rows(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding())
    source = write(tmp_path / "in.jsonl", QUESTIONS)
    settings = Generation(prompt_config="generic/math", stop_phrase="null")
    done = generate(
        model=model_at(server), settings=settings, input_file=source, output_dir=tmp_path / "out", num_chunks=2
    )
    assert done.outputs == [tmp_path / "out" / "output.jsonl"]
    assert list(done.rows()) == rows_of(done.outputs[0])
    assert [row["id"] for row in done.rows()] == [row["id"] for row in QUESTIONS]
    assert {json.dumps(record.body["stop"]) for record in server.records if record.body} == {'["null"]'}


def test_rows_are_answered_and_graded_without_files(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding())
    call = {
        "model": model_at(server),
        "settings": Generation(prompt_config="generic/math"),
        "output_dir": tmp_path / "out",
    }
    assert generate(rows=iter(QUESTIONS), dry_run=True, **call) is None
    assert not (tmp_path / "out").exists()
    done = generate(rows=iter(QUESTIONS), **call)
    assert grade(rows=done.rows()).ledger.correct == 10
    assert rows_of(tmp_path / "out" / "input.jsonl") == QUESTIONS
    again = generate(rows=[*QUESTIONS, {"id": "more", "problem": "Add 1 and 1.", "expected_answer": "2"}], **call)
    assert len(server.records) == 11
    assert [row["id"] for row in again.rows()][-1] == "more"
    with pytest.raises(ConfigError, match="leave out input_file"):
        generate(rows=QUESTIONS, input_file=tmp_path / "in.jsonl", **call)
    with pytest.raises(ConfigError, match="cannot see rows of this process"):
        generate(rows=QUESTIONS, cluster={"executor": "slurm", "job_dir": str(tmp_path)}, **call)


def test_several_models_have_their_own_servers(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    servers = fake_server(adding()), fake_server(adding())
    (tmp_path / "both.py").write_text(BOTH)
    call = {
        "settings": Generation(prompt_config="generic/math"),
        "input_file": write(tmp_path / "in.jsonl", QUESTIONS),
        "output_dir": tmp_path / "out",
        "generation_module": f"{tmp_path}/both.py",
    }
    first = model_at(servers[0], "first")
    with pytest.raises(ConfigError, match="address is set for one Model, but not for second"):
        generate(model=[first, Model("second", server="openai")], **call)
    done = generate(model=[first, model_at(servers[1], "second")], **call)
    assert len(list(done.rows())) == len(QUESTIONS)
    for server, name in zip(servers, ("first", "second"), strict=True):
        assert {record.body["model"] for record in server.records if record.body} == {name}


def test_rows_are_graded_in_memory_and_files_on_disk(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = [{"generation": rf"\boxed{{{n}}}", "expected_answer": "4"} for n in (4, 5)] + [
        {"generation": "I do not know.", "expected_answer": "4"}
    ]
    before = json.dumps(rows)
    graded = grade(rows=rows)
    assert (graded.ledger.correct, graded.ledger.wrong, graded.ledger.no_answer) == (1, 1, 1)
    assert [row["symbolic_correct"] for row in graded.rows()] == [True, False, False]
    assert json.dumps(rows) == before
    there = grade(input_files=write(tmp_path / "in.jsonl", rows), output_file=tmp_path / "out.jsonl")
    assert there.output_file == tmp_path / "out.jsonl"
    assert list(there.rows()) == list(graded.rows()) == rows_of(tmp_path / "out.jsonl")
    assert list(grade(input_files=tmp_path / "in.jsonl").rows()) == list(graded.rows())
    assert capfdbinary.readouterr().out == b""
    with pytest.raises(ConfigError, match="leave out input_files"):
        grade(rows=rows, input_files=tmp_path / "in.jsonl")
    with pytest.raises(DataError, match="no rows to grade"):
        grade(rows=[])


def test_files_that_are_made_of_others_are_returned(tmp_path: Path) -> None:
    for chunk in range(2):
        write(tmp_path / f"output_chunk_{chunk}.jsonl", QUESTIONS[5 * chunk : 5 * chunk + 5])
    merged = newskills.merge_chunks(merged=str(tmp_path / "output.jsonl"))
    assert (rows_of(merged.output), merged.rows) == (QUESTIONS, 10)
    for seed, answer in enumerate(("1", "2", "2")):
        rows = [{"id": "a", "problem": "1+1?", "predicted_answer": answer, "generation": answer}]
        write(tmp_path / "votes" / f"output-rs{seed}.jsonl", rows)
    voted = newskills.aggregate_answers(input_dir=tmp_path / "votes", mode="extract")
    (output,) = voted.outputs
    assert voted.problems == 1
    assert [row["predicted_answer"] for row in rows_of(output)] == ["2"]
    similar = newskills.retrieve_similar(
        retrieve_from=str(output), compare_to=str(output), output_file=tmp_path / "similar.jsonl"
    )
    assert (similar.problems, len(rows_of(similar.output))) == (1, 1)


def test_a_benchmark_of_this_process_is_validated(tmp_path: Path) -> None:
    (validation,) = newskills.validate(benchmarks=[own_benchmark(tmp_path)])
    assert (validation.benchmark, validation.rows, validation.problems) == ("sums", 10, [])
    (faulty,) = newskills.validate(benchmarks=[own_benchmark(tmp_path, grader="multichoice")])
    assert faulty.problems


def test_what_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    benchmark = own_benchmark(tmp_path)
    model = Model("policy", server="openai", address="http://127.0.0.1:1", settings={"api_key": "EMPTY"})
    with pytest.raises(TypeError, match=r"Generation\(\) has no setting 'temprature'; did you mean 'temperature'"):
        Generation(temprature=1)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match=r"Generation\(temperature='hot'\): expected a number, got 'hot'"):
        Generation(temperature="hot")
    with pytest.raises(TypeError, match=r"Model\(\) has no setting 'server.retries'"):
        evaluate(benchmarks=benchmark, model=Model("m", settings={"retries": 1}))
    with pytest.raises(TypeError, match=r"settings must be a newskills.Generation, not dict"):
        evaluate(benchmarks=benchmark, settings={"temperature": 1})
    with pytest.raises(ConfigError, match=r"server_type is set twice"):
        evaluate(benchmarks=benchmark, model=model, server_type="vllm")
    with pytest.raises(ConfigError, match=r"inference.temperature is set twice"):
        evaluate(
            ctx=wrap_arguments("++temperature=1"),
            benchmarks=benchmark,
            model=model,
            settings=Generation(temperature=0.5),
        )
    with pytest.raises(ConfigError, match="Two benchmarks are called 'sums'"):
        evaluate(benchmarks=[benchmark, replace(benchmark, title="Other")], model=model)
    with pytest.raises(ConfigError, match="A benchmark cannot be called 'a,b'"):
        evaluate(benchmarks=replace(benchmark, name="a,b"), model=model)


def test_jobs_refuse_a_benchmark_that_they_cannot_see(tmp_path: Path) -> None:
    slurm = {"executor": "slurm", "job_dir": str(tmp_path / "jobs"), "skip_hf_home_check": True}
    model = Model("policy", server="openai", address="http://node:8000", settings={"api_key": "EMPTY"})
    with pytest.raises(ConfigError, match="'sums' is an object of this Python process"):
        evaluate(benchmarks=own_benchmark(tmp_path), model=model, cluster=slurm, output_dir=tmp_path, dry_run=True)
    with pytest.raises(ConfigError, match="'sums' is an object of this Python process"):
        newskills.prepare_data(benchmarks=own_benchmark(tmp_path), cluster=slurm, data_dir=tmp_path, dry_run=True)


def test_lost_rows_are_an_error_of_the_call(tmp_path: Path) -> None:
    lost = [{"expected_answer": "4", "outcome": "unscored", "error": "no reply"}]
    with pytest.raises(NewskillsError, match=r"100\.0 % of the rows are unscored"):
        grade(rows=lost)
    assert grade(rows=lost, accept_lost=100).ledger.unscored == 1


def test_settings_take_every_key_of_the_command_line() -> None:
    keys = {leaf.path for leaf in key_leaves().values()}
    groups = {name for name in generation_signature().parameters if name not in key_leaves()}
    assert {
        path for path in leaves(GenerationConfig) if path not in keys and path.split(".")[0] not in groups
    } == set()
    assert Generation(temperature=1) == Generation(inference={"temperature": 1}) != Generation(temperature=2)
    assert hash(Generation(temperature=1)) == hash(Generation(inference={"temperature": 1}))
    assert repr(Generation(temperature=1)) == "Generation(temperature=1)"


def test_keys_are_not_shown() -> None:
    secret = {"api_key": "secret", "max_retries": 1}
    assert repr(Model("m", gpus=2, settings=secret)) == (
        "Model('m', gpus=2, settings={'api_key': '***', 'max_retries': 1})"
    )
    assert repr(Generation(server=secret)) == "Generation(server={'api_key': '***', 'max_retries': 1})"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["null", "None", "true", "1", "0.5", "[a]", "{a:1}", "'a'", '"', "\\", "a,b", " a ", "{'a': 1}"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(TEXTS, st.dictionaries(TEXTS, VALUES, max_size=3), st.lists(TEXTS, max_size=3))
def test_a_value_is_read_as_it_was_written(text: str, row: dict[str, object], texts: list[str]) -> None:
    known = leaves(GenerationConfig)
    for path, value in (
        ("stop_phrase", text),
        ("generation_key", text or "x"),
        ("prompt_config", text),
        ("prompt_config", row),
        ("solver_config", row),
        ("tool_modules", tuple(texts)),
    ):
        assert convert_value(written_value(value, known[path]), known[path], path) == value
