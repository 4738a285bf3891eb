# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import changed, make_unit, names, records, run, run_and_listen, write_input
from tests.server import Answer, Fault, Latency, Script

from newskills.base.errors import ConfigError, DataError, LockedError, StorageError
from newskills.base.records import Request, Sample
from newskills.base.store import hold_lock
from newskills.run.engine.execute import preview_request
from newskills.solve.chat import ChatSolver

ECHO = Script(answer=Answer(kind="echo"))
ODD_ONE = Script(answer=Answer(kind="echo"), faults=(Fault(kind="status", status=400, marker="is 3 +"),))


def test_every_row_becomes_a_record_in_input_order(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), latency=Latency(jitter=0.02)))
    write_input(tmp_path, 50)
    result = run(make_unit(tmp_path, server.base_url))
    assert (result.exit_code, result.units[0].status, result.units[0].generated) == (0, "done", 50)
    found = records(tmp_path / "out" / "output.jsonl")
    assert [r["generation"] for r in found] == [f"What is {i} + 1?" for i in range(50)]
    assert list(found[0]) == [
        "problem",
        "expected_answer",
        "generation",
        "num_generated_tokens",
        "num_input_tokens",
        "finish_reason",
        "generation_start_time",
        "generation_end_time",
        "generation_time",
        "id",
    ]
    assert names(tmp_path / "out") == ["output.jsonl", "output.jsonl.done", "output.jsonl.run.json"]
    assert server.max_in_flight <= 8


def test_a_finished_run_sends_nothing_when_asked_again(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 5)
    unit = make_unit(tmp_path, server.base_url)
    run(unit)
    before = (tmp_path / "out" / "output.jsonl").read_bytes()
    result = run(unit)
    assert (result.exit_code, result.units[0].kept, result.units[0].generated) == (0, 5, 0)
    assert len(server.records) == 5
    assert (tmp_path / "out" / "output.jsonl").read_bytes() == before


def test_rerun_done_starts_over(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 5)
    unit = make_unit(tmp_path, server.base_url)
    run(unit)
    server.script = Script(answer=Answer(text="new"))
    assert run(unit, rerun_done=True).exit_code == 0
    assert {r["generation"] for r in records(tmp_path / "out" / "output.jsonl")} == {"new"}


def test_without_skip_filled_nothing_is_kept(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 3)
    unit = make_unit(tmp_path, server.base_url, skip_filled=False)
    run(unit)
    run(unit)
    assert len(server.records) == 6


def test_usage_that_is_not_reported_is_absent(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(usage="none"))
    write_input(tmp_path, 2)
    result = run(make_unit(tmp_path, server.base_url, add_generation_stats=False))
    found = records(tmp_path / "out" / "output.jsonl")[0]
    assert set(found) == {"problem", "expected_answer", "generation", "finish_reason", "id"}
    assert result.units[0].output_tokens is None


def test_tokens_and_cost_are_summed(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="a b")))
    write_input(tmp_path, 4)
    prices = {"price_per_million_input_tokens": 1.0, "price_per_million_output_tokens": 10.0}
    found = run(make_unit(tmp_path, server.base_url, server=prices)).units[0]
    assert (found.input_tokens, found.output_tokens) == (20, 8)
    assert found.cost == pytest.approx(100e-6)


def test_seeds_share_one_run(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="random", modulus=10**9)))
    write_input(tmp_path, 6)
    units = [
        make_unit(
            tmp_path,
            server.base_url,
            seed=seed,
            output_file=str(tmp_path / "out" / f"output-rs{seed}.jsonl"),
            inference={"random_seed": seed, "temperature": 0.7},
        )
        for seed in range(3)
    ]
    assert run(*units).exit_code == 0
    texts = [[r["generation"] for r in records(unit.merged)] for unit in units]
    assert len({tuple(text) for text in texts}) == 3
    assert {r.body["seed"] for r in server.records} == {0, 1, 2}
    assert server.max_in_flight <= 8


def test_max_samples(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 9)
    run(make_unit(tmp_path, server.base_url, max_samples=4))
    assert len(records(tmp_path / "out" / "output.jsonl")) == len(server.records) == 4


def test_old_verdicts_of_the_input_are_not_taken_over(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 2, outcome="correct", outcome_cause="model", generation="old", id=None)
    run(make_unit(tmp_path, server.base_url))
    found = records(tmp_path / "out" / "output.jsonl")[0]
    assert "outcome" not in found
    assert found["generation"] == "What is 0 + 1?"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"inference": {"temperature": 0.5}}, r"inference\.temperature \(0\.0 → 0\.5\)"),
        ({"prompt_config": {"user": "Solve {problem}"}}, "the prompt"),
        ({"server": {"model": "other"}}, r"server\.model \(fake → other\)"),
        ({"max_samples": 2}, "max_samples"),
    ],
)
@pytest.mark.parametrize("done", [True, False])
def test_changed_settings_are_refused_before_any_request(
    tmp_path: Path, fake_server: FakeServerFactory, settings: dict[str, object], says: str, done: bool
) -> None:
    server = fake_server(Script(faults=() if done else (Fault(kind="status", status=400, after=3),)))
    write_input(tmp_path, 5)
    run(make_unit(tmp_path, server.base_url, max_concurrent_requests=1))
    sent = len(server.records)
    with pytest.raises(DataError, match=says) as caught:
        run(make_unit(tmp_path, server.base_url, max_concurrent_requests=1, **settings))
    assert "--rerun_done" in str(caught.value)
    assert len(server.records) == sent


def test_a_start_that_failed_does_not_bind_its_settings(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, message="bad top_p"),)))
    write_input(tmp_path, 5)
    unit = make_unit(tmp_path, server.base_url, inference={"top_p": 0.5})
    assert run(unit).exit_code == 1
    server.script = ECHO
    fixed = make_unit(tmp_path, server.base_url, inference={"top_p": 0.9})
    assert run(fixed).exit_code == 0
    assert {record.body["top_p"] for record in server.records[-5:]} == {0.9}
    with pytest.raises(DataError, match="top_p"):
        run(unit)


def test_changed_input_is_refused(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, after=3),)))
    path = write_input(tmp_path, 5)
    unit = make_unit(tmp_path, server.base_url, max_concurrent_requests=1)
    assert run(unit).exit_code == 1
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    with pytest.raises(DataError, match="changed: the content of the input file"):
        run(unit)


def test_where_and_how_long_may_change_under_a_resume(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, after=3),)))
    write_input(tmp_path, 5)
    unit = make_unit(tmp_path, server.base_url, max_concurrent_requests=1)
    assert run(unit).exit_code == 1
    other = fake_server(ECHO)
    moved = make_unit(tmp_path, other.base_url, max_concurrent_requests=4, inference={"timeout": 9.0})
    result = run(moved)
    assert (result.exit_code, result.units[0].kept, len(other.records)) == (0, 3, 2)


def test_failed_rows_keep_the_run_unfinished_and_are_tried_again(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(ODD_ONE)
    write_input(tmp_path, 6)
    unit = make_unit(tmp_path, server.base_url)
    result = run(unit)
    assert (result.exit_code, result.units[0].status, result.units[0].failures) == (1, "failed", 1)
    assert "BadRequestError" in result.message
    assert not (tmp_path / "out" / "output.jsonl.done").exists()
    assert not (tmp_path / "out" / "output.jsonl").exists()
    (failed,) = records(tmp_path / "out" / "output.jsonl-failed")
    assert (failed["position"], failed["outcome"], failed["outcome_cause"]) == (3, "unscored", "provider")
    server.script = ECHO
    result = run(unit)
    assert (result.exit_code, result.units[0].kept, result.units[0].generated) == (0, 5, 1)
    assert len(records(tmp_path / "out" / "output.jsonl")) == 6


def test_a_lone_row_that_keeps_failing_under_a_resume_is_given_up(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    """Nothing that this process has seen is known to be good, and the endpoint is fine."""
    poison = Fault(kind="status", status=500, marker="is 3 +")
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(poison,)))
    write_input(tmp_path, 5)
    settings = {"max_concurrent_requests": 1, "server": {"max_retries": 1}, "endpoint_patience": 60.0}
    assert run(make_unit(tmp_path, server.base_url, **settings)).units[0].failures == 1
    result = run(make_unit(tmp_path, server.base_url, **settings))
    assert (result.exit_code, result.units[0].status, result.units[0].kept) == (1, "failed", 4)
    assert result.units[0].failures == 1


def test_accepted_failures_are_unscored_never_wrong(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ODD_ONE)
    write_input(tmp_path, 6)
    result = run(make_unit(tmp_path, server.base_url, server={"enable_soft_fail": True}))
    assert result.exit_code == 0
    found = records(tmp_path / "out" / "output.jsonl")[3]
    assert found["generation"] == ""
    assert found["num_generated_tokens"] == 0
    assert (found["outcome"], found["outcome_cause"]) == ("unscored", "provider")
    assert found["error"] == "BadRequestError"
    assert found["detailed_error"]
    assert (result.ledger.unscored, result.ledger.lost) == (1, 1)


def test_a_row_without_the_field_of_the_prompt(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    path = write_input(tmp_path, 3)
    path.write_text(path.read_text() + '{"question": "x", "id": "odd"}\n')
    result = run(make_unit(tmp_path, server.base_url, server={"enable_soft_fail": True}))
    found = records(tmp_path / "out" / "output.jsonl")[3]
    assert (found["outcome"], found["outcome_cause"]) == ("unscored", "data")
    assert "problem" in found["detailed_error"]
    assert result.exit_code == 0
    strict = make_unit(tmp_path, server.base_url, output_file=str(tmp_path / "strict" / "output.jsonl"))
    message = run(strict).message
    assert "1 of them do not fit the prompt" in message
    assert "Another run retries" not in message


def test_a_field_missing_in_the_first_row_stops_at_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    (tmp_path / "input.jsonl").write_text('{"question": "x"}\n')
    with pytest.raises(DataError, match=r"input\.jsonl, line 1: The record has no field 'problem'"):
        run(make_unit(tmp_path, server.base_url))
    assert server.records == []


def test_two_runs_on_one_file(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 3)
    unit = make_unit(tmp_path, server.base_url)
    with hold_lock(unit.paths.lock, "x"), pytest.raises(LockedError, match="in use by process"):
        run(unit)
    assert server.records == []


def test_an_output_folder_that_can_not_be_made(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 3)
    (tmp_path / "out").write_text("a file")
    with pytest.raises(StorageError, match="cannot write"):
        run(make_unit(tmp_path, server.base_url))


def test_missing_settings(tmp_path: Path) -> None:
    unit = make_unit(tmp_path, "http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match="input_file"):
        run(changed(unit, input_file=""))
    with pytest.raises(ConfigError, match="output_file"):
        run(changed(unit, output_file=""))


def test_context_overflow_is_shortened_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="w " * 400), context_tokens=150))
    write_input(tmp_path, 3)
    unit = make_unit(
        tmp_path,
        server.base_url,
        inference={"tokens_to_generate": 300},
        server={"context_limit_retry_strategy": "reduce_generation", "num_special_tokens_budget": 10},
    )
    result = run(unit)
    assert result.exit_code == 0
    found = records(tmp_path / "out" / "output.jsonl")
    assert {(r["finish_reason"], r["num_generated_tokens"]) for r in found} == {("length", 135)}


def test_context_overflow_is_an_empty_answer_where_the_benchmark_says_so(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(context_tokens=150))
    write_input(tmp_path, 3)
    unit = make_unit(
        tmp_path,
        server.base_url,
        inference={"tokens_to_generate": 500},
        context_overflow="wrong",
        eval_type="math",
    )
    result = run(unit)
    assert result.exit_code == 0
    for record in records(unit.paths.output):
        assert (record["outcome"], record["outcome_cause"], record["finish_reason"]) == (
            "no_answer",
            "model",
            "context",
        )
        assert "context" in record["detailed_error"]
    run(unit)
    assert len(server.records) == 3


def test_context_overflow_without_a_strategy_is_unscored(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(context_tokens=150))
    write_input(tmp_path, 3)
    unit = make_unit(
        tmp_path, server.base_url, inference={"tokens_to_generate": 300}, server={"enable_soft_fail": True}
    )
    result = run(unit)
    assert result.ledger.causes == {"context": 3}


def test_an_output_of_another_program_is_not_mixed_with_ours(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 3)
    unit = make_unit(tmp_path, server.base_url)
    unit.paths.log.parent.mkdir()
    unit.paths.log.write_text('{"_async_position": 0}\n')
    with pytest.raises(DataError, match="another program"):
        run(unit)


def test_a_torn_last_line_is_done_again(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(Fault(kind="status", status=400, after=4),)))
    write_input(tmp_path, 6)
    unit = make_unit(tmp_path, server.base_url, max_concurrent_requests=1)
    run(unit)
    log = unit.paths.log
    log.write_bytes(log.read_bytes()[:-7])
    server.script = ECHO
    result = run(unit)
    assert (result.exit_code, result.units[0].kept) == (0, 3)
    assert [r["generation"] for r in records(unit.merged)] == [f"What is {i} + 1?" for i in range(6)]


def test_a_resume_asks_the_solver_about_a_part_of_what_is_done(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rendering half a million prompts took minutes before the first request."""
    server = fake_server(Script(answer=Answer(kind="echo"), faults=(Fault(kind="status", status=400, after=200),)))
    write_input(tmp_path, 300)
    unit = make_unit(tmp_path, server.base_url)
    first = run(unit)
    assert 0 < first.units[0].failures < 200
    server.script = ECHO
    rendered: list[int] = []
    request = ChatSolver.request

    def counted(self: ChatSolver, sample: Sample) -> Request:
        rendered.append(sample.position)
        return request(self, sample)

    monkeypatch.setattr(ChatSolver, "request", counted)
    monkeypatch.setattr("newskills.run.engine.unit.CHECKED_ROWS", 10)
    result, said = run_and_listen(unit)
    kept = result.units[0].kept
    assert (result.exit_code, len(records(unit.merged))) == (0, 300)
    assert f"{kept} of 300 rows are already done" in said
    assert len(rendered) - (300 - kept) <= 2 * 10 + 1


def test_messages_in_the_row(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    parts = [{"type": "text", "text": "hi"}, {"type": "input_audio", "input_audio": {"data": "AAAA"}}]
    row = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": parts}]}
    (tmp_path / "input.jsonl").write_text(json.dumps(row) + "\n")
    run(make_unit(tmp_path, server.base_url, prompt_config=None, prompt_format="openai"))
    (found,) = records(tmp_path / "out" / "output.jsonl")
    assert found["generation"] == "hi"
    assert found["messages"][1]["content"] == [parts[0]]
    assert server.records[0].body["messages"][1]["content"][1]["type"] == "input_audio"


def test_lone_surrogates_and_controls_of_a_model_are_harmless(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    text = r"a\u0000\u001b[31m\u2028 \ud800 b"
    message = f'{{"role": "assistant", "content": "{text}"}}'
    body = f'{{"choices": [{{"message": {message}, "finish_reason": "stop"}}]}}'
    server = fake_server(Script(faults=(Fault(kind="status", status=200, body=body),)))
    write_input(tmp_path, 2)
    result = run(make_unit(tmp_path, server.base_url))
    assert result.exit_code == 0
    (first, _) = (json.loads(line) for line in (tmp_path / "out" / "output.jsonl").read_text().split("\n")[:2])
    assert first["generation"].startswith("a\u0000\x1b[31m\u2028 ")


def test_the_exit_record_tells_how_it_went(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ODD_ONE)
    write_input(tmp_path, 6)
    unit = make_unit(tmp_path, server.base_url)
    run(unit)
    found = json.loads(unit.paths.state.read_text())
    assert (found["status"], found["exit_code"], found["done"], found["failures"]) == ("failed", 1, 5, 1)
    assert "BadRequestError" in found["error"]
    server.script = ECHO
    run(unit)
    found = json.loads(unit.paths.state.read_text())
    assert (found["status"], found["exit_code"], found["done"], found["output_tokens"]) == ("done", 0, 6, 30)
    assert found["settings"]["inference.temperature"] == 0.0


def test_the_first_prompt_can_be_seen_without_asking(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 6)
    unit = make_unit(tmp_path, server.base_url)
    request = preview_request(unit, environ={})
    assert request.messages is not None
    assert request.messages[0].content == "What is 0 + 1?"
    assert preview_request(changed(unit, max_samples=0), environ={}) == request
    assert server.records == []
    assert not (tmp_path / "out").exists()


def test_many_units_need_few_open_files(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 1)
    units = [
        make_unit(tmp_path, server.base_url, output_file=str(tmp_path / f"out/o{k}.jsonl")) for k in range(300)
    ]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    result = run(*units)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert result.exit_code == 0
    assert len(server.records) == 300
