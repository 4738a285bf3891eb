# SPDX-License-Identifier: Apache-2.0
"""Runs that ask in batches: every provider, whatever becomes of a batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.batches.openai_double import OpenAIProvider
from tests.batches.providers import (
    Batch,
    CutOff,
    Fate,
    Outcome,
    Refused,
    Row,
    prompt_of,
    serving,
    sum_of,
)
from tests.batches.support import PROVIDERS, hurry, records_of, run_units, unit_at
from tests.run.support import changed, records, write_input

from newskills.base.errors import BudgetError, ConfigError
from newskills.models import make_model
from newskills.models.batch_apis import batch_properties
from newskills.models.config import ServerConfig
from newskills.run.engine.batches.make import MAX_WAITING_REQUESTS, batch_window
from newskills.run.planning.config import EndpointConfig, GenerationConfig
from newskills.sandbox.config import SandboxConfig

ROWS = 12


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def answers(path: Path) -> list[str]:
    return [record["generation"] for record in records(path)]


RIGHT = [str(number + 1) for number in range(ROWS)]


@pytest.mark.parametrize("kind", PROVIDERS)
def test_one_batch_of_all_rows(tmp_path: Path, kind: str) -> None:
    write_input(tmp_path, ROWS)
    with serving(PROVIDERS[kind][0]()) as provider:
        prices = {"price_per_million_input_tokens": 1e6, "price_per_million_output_tokens": 4e6}
        unit = unit_at(tmp_path, provider, kind, server=prices)
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert answers(unit.merged) == RIGHT
    assert [len(batch.rows) for batch in provider.batches] == [ROWS], said
    assert result.units[0].cost == ROWS * (10 * 1 + 5 * 4) / 2  # half of the price
    (record,) = records_of(tmp_path)
    assert (record.answered, record.handle, record.state in ("completed", "ended", "succeeded")) == (
        ROWS,
        provider.batches[0].id,
        True,
    )


def test_several_seeds_are_one_batch(tmp_path: Path) -> None:
    write_input(tmp_path, ROWS)
    with serving(OpenAIProvider()) as provider:
        units = [
            unit_at(
                tmp_path,
                provider,
                seed=seed,
                output_file=str(tmp_path / "out" / f"output-rs{seed}.jsonl"),
                inference={"random_seed": seed, "temperature": 0.7},
            )
            for seed in range(3)
        ]
        result, said = run_units(*units)
    assert result.exit_code == 0, said
    assert [len(batch.rows) for batch in provider.batches] == [3 * ROWS]
    assert Counter(body["seed"] for _, body in provider.batches[0].rows) == {0: ROWS, 1: ROWS, 2: ROWS}
    assert all(answers(unit.merged) == RIGHT for unit in units)


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("state", ["expired", "cancelled"])
def test_what_a_batch_has_left_is_asked_again(tmp_path: Path, kind: str, state: str) -> None:
    """Gemini gives no results of such a batch at all; the others those that it has."""
    write_input(tmp_path, ROWS)
    with serving(PROVIDERS[kind][0]()) as provider:
        provider.fates = [Fate(state=state, answered=5)]
        unit = unit_at(tmp_path, provider, kind)
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert answers(unit.merged) == RIGHT
    left = ROWS if kind == "gemini" else ROWS - 5
    assert [len(batch.rows) for batch in provider.batches] == [ROWS, left]
    assert result.retries == left
    assert [record.unanswered for record in records_of(tmp_path)] == [left, 0]


def test_a_row_is_asked_a_limited_number_of_times(tmp_path: Path) -> None:
    write_input(tmp_path, 3)
    with serving(OpenAIProvider()) as provider:
        provider.usual = Fate(state="expired", answered=2)
        provider.answer = lambda body: (
            (500, {"error": {"message": "oh"}}) if "2 +" in prompt_of(body) else answer(body)
        )
        answer = lambda body: (200, provider.reply(sum_of(body), body))  # noqa: E731
        unit = unit_at(tmp_path, provider, server={"max_retries": 2, "enable_soft_fail": True})
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert [len(batch.rows) for batch in provider.batches] == [3, 1, 1]
    lost = records(unit.merged)[2]
    assert (lost["outcome"], lost["outcome_cause"]) == ("unscored", "provider")
    assert "It was asked in 3 batches." in lost["detailed_error"]


def _without_some(outcomes: list[Outcome]) -> list[Outcome]:
    return outcomes[::-1][:-2]


def _with_strangers(outcomes: list[Outcome]) -> list[Outcome]:
    first = outcomes[0]
    return [("stranger", *first[1:]), *outcomes, (first[0], 200, {"choices": []}), *outcomes[3:5]]


@pytest.mark.parametrize("kind", PROVIDERS)
def test_results_in_disorder(tmp_path: Path, kind: str) -> None:
    """In another order, with two missing; then one that nobody asked, three twice, and a damaged line."""
    write_input(tmp_path, ROWS)
    with serving(PROVIDERS[kind][0]()) as provider:
        damaged = b'{"custom_id": "x", "resp'
        fates = [Fate(alter=_without_some, damaged=damaged), Fate(), Fate(alter=_with_strangers, damaged=damaged)]
        provider.fates = fates
        for name in ("a", "b"):
            unit = unit_at(tmp_path, provider, kind, output_file=str(tmp_path / f"out/{name}.jsonl"))
            result, said = run_units(unit)
            assert result.exit_code == 0, said
            assert answers(unit.merged) == RIGHT
    assert [len(batch.rows) for batch in provider.batches][:2] == [ROWS, 2]
    first, _, second, *_ = records_of(tmp_path)
    assert (first.unanswered, first.damaged, first.unknown, first.twice) == (2, 1, 0, 0)
    assert (second.unanswered, second.damaged, second.unknown) == (0, 1, 1)
    assert second.twice >= 1


ERRORS: dict[str, tuple[Row, Row]] = {
    "openai": (
        {"error": {"message": "Invalid prompt", "type": "invalid_request_error", "code": None}},
        {"error": {"message": "The server had an error", "type": "server_error"}},
    ),
    "azureopenai": (
        {"error": {"message": "Invalid prompt", "code": "BadRequest"}},
        {"error": {"message": "busy"}},
    ),
    "anthropic": (
        {"type": "error", "error": {"type": "invalid_request_error", "message": "Invalid prompt"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ),
    "gemini": ({"code": 3, "message": "Invalid prompt"}, {"code": 14, "message": "The service is unavailable"}),
}


@pytest.mark.parametrize("kind", PROVIDERS)
def test_rows_that_fail(tmp_path: Path, kind: str) -> None:
    """What is refused stays refused; what the server failed at is asked again."""
    write_input(tmp_path, ROWS)
    refusal, failure = ERRORS[kind]
    with serving(PROVIDERS[kind][0]()) as provider:
        failing = {
            "What is 3 + 1?": [(400, refusal)] * 9,
            "What is 5 + 1?": [(500, failure)],
            "What is 6 + 1?": [(500, failure)] * 2,
        }
        ended = provider.outcomes
        shown: dict[str, list[Outcome]] = {}

        def outcomes(batch: Batch) -> list[Outcome]:
            """What a batch has come to stays so, however often it is read."""
            if batch.id not in shown:
                shown[batch.id] = ended(batch)
            return shown[batch.id]

        def answer(body: Row) -> tuple[int, Any]:
            left = failing.get(prompt_of(body))
            return left.pop() if left else (200, provider.reply(sum_of(body), body))

        provider.answer, provider.outcomes = answer, outcomes  # type: ignore[method-assign]
        unit = unit_at(tmp_path, provider, kind, server={"enable_soft_fail": True})
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert [len(batch.rows) for batch in provider.batches] == [ROWS, 2, 1], said
    by_row = records(unit.merged)
    assert (by_row[3]["outcome"], by_row[3]["error"]) == ("unscored", "BadRequestError")
    assert "Invalid prompt" in by_row[3]["detailed_error"]
    assert [row["generation"] for row in by_row if row["generation"]] == RIGHT[:3] + RIGHT[4:]


def test_a_batch_that_is_too_much_is_halved(tmp_path: Path) -> None:
    write_input(tmp_path, ROWS)
    full = Fate(
        state="failed", errors=[{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
    )
    with serving(OpenAIProvider()) as provider:
        provider.fates = [full, Fate(looks=3), full]
        unit = unit_at(tmp_path, provider)
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert answers(unit.merged) == RIGHT
    assert [len(batch.rows) for batch in provider.batches] == [12, 6, 6, 6]
    assert provider.batches[1].rows[0][0] == provider.batches[0].rows[0][0]
    assert "has no room" in said


def test_a_row_that_spoils_its_batch(tmp_path: Path) -> None:
    write_input(tmp_path, ROWS)
    with serving(OpenAIProvider()) as provider:
        provider.fates = [
            Fate(state="failed", errors=[{"code": "invalid", "line": 4, "message": "Invalid image"}])
        ]
        unit = unit_at(tmp_path, provider, server={"enable_soft_fail": True})
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert [len(batch.rows) for batch in provider.batches] == [ROWS, ROWS - 1]
    assert "Invalid image" in records(unit.merged)[3]["detailed_error"]
    assert [a for a in answers(unit.merged) if a] == RIGHT[:3] + RIGHT[4:]


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_model_without_batches_ends_the_run(tmp_path: Path, kind: str) -> None:
    write_input(tmp_path, ROWS)
    with serving(PROVIDERS[kind][0]()) as provider:

        def begin(*arguments: object) -> None:
            raise Refused(400, "The model has no batch API.")

        provider.begin = begin  # type: ignore[assignment, method-assign]
        result, said = run_units(unit_at(tmp_path, provider, kind))
    assert result.exit_code == 1
    assert "refused each of the first 8 requests" in result.message, said
    assert "The model has no batch API." in result.message


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_broken_connection_submits_nothing_twice(tmp_path: Path, kind: str, moment: str) -> None:
    """Of each call, the first one breaks: before it is done, or after."""
    write_input(tmp_path, ROWS)
    broken: set[str] = set()
    with serving(PROVIDERS[kind][0]()) as provider:

        def meddle(now: str, call: str) -> None:
            if now == moment and call not in broken:
                broken.add(call)
                raise CutOff

        provider.meddle = meddle
        unit = unit_at(tmp_path, provider, kind)
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert len(broken) >= 4
    assert [len(batch.rows) for batch in provider.batches] == [ROWS], said
    assert answers(unit.merged) == RIGHT


def test_results_that_are_gone_are_asked_again(tmp_path: Path) -> None:
    write_input(tmp_path, ROWS)
    with serving(OpenAIProvider()) as provider:
        gone: set[str] = set()

        def meddle(now: str, call: str) -> None:
            if call.endswith("/content") and not gone:
                gone.add(call)
                raise Refused(404, "No such File object")

        provider.meddle = meddle
        unit = unit_at(tmp_path, provider)
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert [len(batch.rows) for batch in provider.batches] == [ROWS, ROWS]
    assert [record.state for record in records_of(tmp_path)] == ["gone", "completed"]


def test_what_an_earlier_run_has_got_is_asked_anew_only_on_request(tmp_path: Path) -> None:
    write_input(tmp_path, ROWS)
    with serving(OpenAIProvider()) as provider:
        unit = unit_at(tmp_path, provider)
        run_units(unit)
        unit.merged.with_name("output.jsonl.done").unlink()
        lines = unit.merged.read_bytes().splitlines(keepends=True)
        unit.merged.unlink()
        unit.merged.with_name("output.jsonl-async").write_bytes(b"")
        result, said = run_units(unit)
        assert (result.exit_code, len(provider.batches)) == (0, 1), said  # the replies are here
        assert answers(unit.merged) == RIGHT
        assert len(lines) == ROWS
        result, said = run_units(unit, rerun_done=True)
        assert (result.exit_code, len(provider.batches)) == (0, 2), said


def test_requests_of_one_row_that_are_alike_have_names_of_their_own(tmp_path: Path) -> None:
    """Majority of four: equal requests for each row."""
    write_input(tmp_path, 3)
    with serving(OpenAIProvider()) as provider:
        unit = unit_at(
            tmp_path, provider, solver="majority", solver_config={"samples": 4}, inference={"temperature": 0.7}
        )
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert [len(batch.rows) for batch in provider.batches] == [12]


def test_too_long_a_prompt_is_shortened_for_the_next_batch(tmp_path: Path) -> None:
    write_input(tmp_path, 3)
    message = "This model's maximum context length is 900 tokens. However, you requested 1010 tokens "
    message += "(10 in the messages, 1000 in the completion)."
    with serving(OpenAIProvider()) as provider:

        def answer(body: Row) -> tuple[int, Any]:
            if body["max_tokens"] > 900 and "2 +" in prompt_of(body):
                return 400, {"error": {"message": message, "code": "context_length_exceeded"}}
            return 200, provider.reply(sum_of(body), body)

        provider.answer = answer
        server = {"context_limit_retry_strategy": "reduce_generation", "model": "gpt-4.1-mini"}
        unit = unit_at(tmp_path, provider, server=server, inference={"tokens_to_generate": 1000})
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert [len(batch.rows) for batch in provider.batches] == [3, 1]
    assert answers(unit.merged) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"server": {"server_type": "sglang"}}, "sglang has no batch API"),
        ({"inference": {"stream": True}}, "not streamed"),
        (
            {"server": {"server_type": "vllm"}, "inference": {"endpoint_type": "text"}},
            "take no inference",
        ),
        ({"server": {"more_base_urls": ("http://a",)}}, "one address"),
    ],
)
def test_what_cannot_be_asked_in_batches(tmp_path: Path, settings: Any, words: str) -> None:
    write_input(tmp_path, 3)
    provider = OpenAIProvider()
    provider.url = "http://127.0.0.1:1"
    with pytest.raises(ConfigError, match=words):
        run_units(unit_at(tmp_path, provider, **settings))


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_provider_that_answers_what_nobody_asked(tmp_path: Path, kind: str) -> None:
    write_input(tmp_path, 3)
    with serving(PROVIDERS[kind][0]()) as provider:
        provider.usual = Fate(alter=lambda outcomes: [(f"x{key}", *rest) for key, *rest in outcomes])
        unit = unit_at(tmp_path, provider, kind, server={"max_retries": 1})
        result, said = run_units(unit)
    assert result.exit_code == 1
    assert [len(batch.rows) for batch in provider.batches] == [3, 3], said
    assert [(record.unknown, record.unanswered) for record in records_of(tmp_path)] == [(3, 3), (3, 3)]
    assert "It was asked in 2 batches." in result.message


def test_a_limit_while_looking_for_a_batch_submits_no_other(tmp_path: Path) -> None:
    """The answer to a submission is lost, and then the list of batches is refused for a while."""
    write_input(tmp_path, 4)
    with serving(OpenAIProvider()) as provider:
        calls: Counter[str] = Counter()

        def meddle(now: str, call: str) -> None:
            calls[f"{now} {call}"] += 1
            if calls[f"{now} {call}"] == 2 and f"{now} {call}" == "after POST /v1/batches":
                raise CutOff
            if call == "GET /v1/batches" and calls["before GET /v1/batches"] < 3:
                raise Refused(429, "Rate limit reached")

        provider.meddle = meddle
        provider.usual = Fate(looks=9)
        few = {"rows": 2}
        with pytest.MonkeyPatch.context() as patch:
            place = "newskills.run.engine.batches.make.batch_properties"
            patch.setattr(place, lambda server: msgspec.structs.replace(batch_properties(server), **few))
            unit = unit_at(tmp_path, provider)
            result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert [len(batch.rows) for batch in provider.batches] == [2, 2], said


def test_what_cannot_wait_is_not_asked_in_batches() -> None:
    with pytest.raises(ConfigError, match="for evaluations and generations only"):
        make_model(ServerConfig(model="m", batch_api=True), concurrency=1, environ={})


def test_files_are_cut_by_rows_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"rows": 5, "size": 600}
    monkeypatch.setattr(
        "newskills.run.engine.batches.make.batch_properties",
        lambda server: msgspec.structs.replace(batch_properties(server), **few),
    )
    write_input(tmp_path, ROWS)
    with serving(OpenAIProvider()) as provider:
        unit = unit_at(tmp_path, provider)
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    sizes = [len(batch.rows) for batch in provider.batches]
    assert sum(sizes) == ROWS
    assert max(sizes) < 5
    assert all(len(data) <= 600 for name, data in provider.files.items() if name.count("-") == 1)
    assert answers(unit.merged) == RIGHT


def test_the_settings_of_a_run_do_not_change(tmp_path: Path) -> None:
    """A run that was begun in batches goes on without, and the other way round."""
    write_input(tmp_path, ROWS)
    with serving(OpenAIProvider()) as provider:
        unit = unit_at(tmp_path, provider)
        run_units(unit)
        plain = changed(unit, server=server_with(unit.config.server, batch_api=False))
        result, said = run_units(plain)
    assert (result.exit_code, result.units[0].kept) == (0, ROWS), said


def server_with(server: Any, **settings: object) -> Any:
    return msgspec.structs.replace(server, **settings)


def test_a_budget_lets_few_rows_begin_before_it_is_known_what_they_take(tmp_path: Path) -> None:
    write_input(tmp_path, 60)
    with serving(OpenAIProvider()) as provider:
        unit = unit_at(tmp_path, provider, max_total_tokens=15 * 40 + 5)
        result, said = run_units(unit)
    assert result.exit_code == BudgetError.exit_code, said
    assert [len(batch.rows) for batch in provider.batches] == [16, 24]


def test_rows_of_a_sandbox_wait_for_its_sessions() -> None:
    config = GenerationConfig(
        code_execution=True, code_tags="qwen", sandbox=SandboxConfig(max_sessions=7), server=EndpointConfig()
    )
    assert batch_window(config) == 7
    assert batch_window(GenerationConfig()) == MAX_WAITING_REQUESTS
