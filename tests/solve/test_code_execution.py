# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.server import FakeServer, Fault, Script
from tests.server.answers import tokens_of
from tests.solve.tir import CHAT, SAMPLE, TEXT, Broken, Turns, Waiting, solve, with_kit

from newskills.base.errors import SandboxError
from newskills.base.protocols import Kit
from newskills.base.records import Inference, Logprobs, Message, Reply, Row, Sample, Usage
from newskills.graders.math.grader import MathGrader
from newskills.prompts.code_tags import code_tags
from newskills.prompts.renderer import load_prompt
from newskills.solve.chat import ChatSolver, ChatSolverOptions, with_stop
from newskills.solve.code.config import CodeExecution
from newskills.solve.code.execution import CodeExecutionSolver, CodeOptions
from newskills.solve.dialogue import GO_ON, continued
from newskills.solve.replies import join_replies

UNNAMED = Script(stop_key="unknown")
SQUARE = "Compute.\n```python\nx = 7\nx * x\n```\n"
SQUARED = "```output\n49\n```\n"


def solver(
    inference: Inference = TEXT, *, tags: str = "qwen", chat: Row | None = None, **options: Any
) -> CodeExecutionSolver:
    execution = CodeExecution(**options.pop("execution", {}))
    return CodeExecutionSolver(
        ChatSolver(load_prompt({"user": "{q}"}), ChatSolverOptions(inference=inference, **(chat or {}))),
        CodeOptions(tags=code_tags(tags), execution=execution, **options),
    )


@pytest.mark.parametrize("script", [Script(), UNNAMED], ids=["stop named", "stop not named"])
def test_blocks_run_in_one_session_and_the_prompt_grows_by_their_output(script: Script) -> None:
    second = "Again.\n```python\nx + 1\n```\n"
    fields, bodies = solve(solver(), Turns(SQUARE, second, r"So \boxed{8}."), script)
    before = f"{SQUARE}{SQUARED}{second}```output\n8\n```\n"
    assert fields["generation"] == rf"{before}So \boxed{{8}}."
    assert [body["prompt"] for body in bodies] == [
        "What is it?",
        f"What is it?{SQUARE}{SQUARED}",
        f"What is it?{before}",
    ]
    assert all(body["stop"] == ["```\n"] for body in bodies)
    assert (fields["code_rounds_executed"], fields["num_code_executions"], fields["num_code_timeouts"]) == (
        2,
        2,
        0,
    )
    assert fields["code_execution_time"] > 0
    assert fields["stopped_on_repetition"] is False
    assert fields["finish_reason"] == "stop"
    words = sum(len(part.split()) for part in (SQUARE.removesuffix("```\n"), second.removesuffix("```\n"), "So 8"))
    assert fields["num_generated_tokens"] == pytest.approx(words, abs=6)
    assert fields["generation_time"] > 0


def test_a_chat_model_is_asked_to_go_on() -> None:
    fields, bodies = solve(solver(CHAT), Turns(SQUARE, r"\boxed{49}"))
    assert fields["generation"] == rf"{SQUARE}{SQUARED}\boxed{{49}}"
    assert bodies[1]["messages"] == [
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "content": SQUARE + SQUARED},
        {"role": "user", "content": GO_ON},
    ]


@pytest.mark.parametrize(("opening", "closing"), [("<think>", "</think>"), ("[THINK]", "[/THINK]")])
def test_reasoning_that_a_turn_leaves_open_hides_no_later_turn(opening: str, closing: str) -> None:
    fields, _ = solve(solver(CHAT), Turns(f"{opening}It may be \\boxed{{2}}. {SQUARE}", r"So \boxed{49}."))
    assert fields["generation"].endswith(rf"{SQUARED}{closing}So \boxed{{49}}.")
    grader = MathGrader()
    assert grader.grade({**fields, "expected_answer": "49"}).outcome == "correct"
    cut, _ = solve(solver(CHAT), Turns(f"{opening}It may be \\boxed{{2}}. {SQUARE}", f"{opening}Or not."))
    assert grader.grade({**cut, "expected_answer": "2"}).outcome == "no_answer"
    parsed, _ = solve(
        solver(CHAT, chat={"parse_reasoning": True}), Turns(f"{opening}Hm. {SQUARE}", r"So \boxed{49}.")
    )
    assert parsed["generation"] == r"So \boxed{49}."


def test_reasoning_with_code_goes_on_in_the_same_turn_of_a_prompt() -> None:
    fields, _ = solve(solver(), Turns(f"<think>Hm. {SQUARE}", r"maybe \boxed{2}</think>\boxed{49}"))
    assert fields["generation"] == rf"<think>Hm. {SQUARE}{SQUARED}maybe \boxed{{2}}</think>\boxed{{49}}"


def test_an_answer_that_the_prompt_has_begun_is_one_turn_with_its_output() -> None:
    chat = ChatSolver(load_prompt({"user": "{q}"}), ChatSolverOptions())
    request = chat.request(SAMPLE)
    request.messages = [*(request.messages or []), Message(role="assistant", content="Well, ")]
    following = continued(request, "code", "output").messages or []
    assert [(message.role, message.content) for message in following] == [
        ("user", "What is it?"),
        ("assistant", "Well, codeoutput"),
        ("user", GO_ON),
    ]


def test_the_limit_allows_one_more_request_and_no_more_code() -> None:
    limited = solver(execution={"max_code_executions": 2, "add_remaining_code_executions": True})
    fields, bodies = solve(limited, Turns(SQUARE))
    assert len(bodies) == 3
    assert fields["code_rounds_executed"] == 2
    first, second = (
        f"{SQUARE}{SQUARED}[code executions left: 1]\n",
        f"{SQUARE}{SQUARED}[no code executions are left",
    )
    assert fields["generation"].startswith(first + second)
    assert fields["generation"].endswith(SQUARE)


def test_no_execution_allowed_is_one_request() -> None:
    fields, bodies = solve(solver(execution={"max_code_executions": 0}), Turns(SQUARE))
    assert len(bodies) == 1
    assert (fields["generation"], fields["num_code_executions"]) == (SQUARE, 0)


def test_a_last_line_without_newline_closes_the_block() -> None:
    fields, _ = solve(solver(), Turns("```python\n1 + 1\n```", "done"), UNNAMED)
    assert fields["generation"] == "```python\n1 + 1\n```\n```output\n2\n```\ndone"


def test_other_blocks_and_plain_text_end_the_answer() -> None:
    fields, bodies = solve(solver(), Turns("Look:\n```latex\nx\n```\n more"))
    assert (len(bodies), fields["num_code_executions"]) == (1, 0)
    assert fields["generation"] == "Look:\n```latex\nx\n```\n"


def test_what_code_does_is_shown_to_the_model() -> None:
    blocks = [
        f"```python\n{code}\n```\n" for code in ("y = 1\n1/0", "while True: pass", "import os; os._exit(3)", "y")
    ]
    wanted = solver(execution={"code_execution_timeout": 0.5})
    fields, _ = solve(wanted, Turns(*blocks, "The end."))
    text = fields["generation"]
    assert "ZeroDivisionError: division by zero" in text
    assert "Execution timed out after 0.5 seconds" in text
    assert "exited with code 3" in text
    assert "NameError" in text.partition("restarted: what earlier code defined may be gone]")[0]
    assert text.endswith("The end.")
    assert (fields["num_code_executions"], fields["num_code_timeouts"]) == (4, 1)


def test_output_is_cut_and_headers_come_first() -> None:
    wanted = solver(execution={"max_code_output_characters": 10, "code_execution_headers": ("z = 5",)})
    fields, _ = solve(wanted, Turns("```python\nprint(str(z) * 50)\n```\n", "ok"))
    shown = fields["generation"].partition("```output\n")[2]
    assert shown.startswith("5" * 10)
    assert not shown.startswith("5" * 11)


def test_generated_and_shown_tokens_are_taken_off_the_budget() -> None:
    limit = msgspec.structs.replace(TEXT, tokens_to_generate=40)
    fields, bodies = solve(solver(limit), Turns("```python\nprint('a' * 60)\n```\n", "w " * 50))
    generated = len(tokens_of("```python\nprint('a' * 60)\n"))
    shown = -(-len("```output\n" + "a" * 60 + "\n```\n") // 3)
    assert [body["max_tokens"] for body in bodies] == [40, 40 - generated - shown]
    assert fields["finish_reason"] == "length"


def test_a_used_up_budget_ends_the_answer_as_cut_off() -> None:
    limit = msgspec.structs.replace(TEXT, tokens_to_generate=20)
    fields, bodies = solve(solver(limit), Turns("```python\nprint('a' * 90)\n```\n"))
    assert (len(bodies), fields["finish_reason"], fields["code_rounds_executed"]) == (1, "length", 1)


def test_code_that_was_cut_off_is_not_run() -> None:
    limit = msgspec.structs.replace(TEXT, tokens_to_generate=3)
    fields, _ = solve(solver(limit), Turns("```python\na = 1\nb = 2\n```\n"))
    assert (fields["num_code_executions"], fields["finish_reason"]) == (0, "length")


def test_a_full_context_after_the_first_request_is_a_truncation() -> None:
    script = Script(faults=(Fault(kind="context_limit", after=1),))
    fields, _ = solve(solver(), Turns(SQUARE), script)
    assert (fields["generation"], fields["finish_reason"]) == (SQUARE + SQUARED, "length")


def test_a_stop_phrase_of_the_users_ends_the_answer() -> None:
    wanted = solver(chat={"stop": ("STOP",)})
    fields, bodies = solve(wanted, Turns("```python\nSTOP\n```\n"))
    assert (len(bodies), fields["generation"], fields["num_code_executions"]) == (1, "```python\n", 0)
    assert bodies[0]["stop"] == ["STOP", "```\n"]


def test_a_stop_phrase_in_an_output_cuts_nothing() -> None:
    fields, _ = solve(solver(chat={"stop": ("STOP",)}), Turns("```python\nprint('ST' + 'OP')\n```\n", "end"))
    assert fields["generation"].endswith("```output\nSTOP\n```\nend")


def test_reasoning_is_split_off_the_whole_text() -> None:
    fields, _ = solve(solver(chat={"parse_reasoning": True}), Turns(f"<think>{SQUARE}", r"</think>\boxed{49}"))
    assert fields["generation"] == r"\boxed{49}"
    assert fields["_full_generation"] == rf"<think>{SQUARE}{SQUARED}</think>\boxed{{49}}"
    assert fields["_generation_finished_thinking"] is True


def test_a_failing_sandbox_ends_the_sample_and_its_session() -> None:
    sandbox = Broken(good=1)
    with pytest.raises(SandboxError, match="gone") as caught:
        solve(solver(), Turns(SQUARE), sandbox=sandbox)
    assert caught.value.cause == "sandbox"
    assert sandbox.ended == sandbox.used
    assert len(sandbox.used) == 1


def test_a_run_without_sandbox_says_so() -> None:
    async def work(kit: Kit) -> None:
        wanted = solver()
        with pytest.raises(SandboxError, match="no sandbox"):
            await wanted.solve(SAMPLE, wanted.request(SAMPLE), Kit(models=kit.models))

    with FakeServer(answer=Turns(SQUARE)) as server:
        with_kit(server, work, Broken())


def test_giving_a_sample_up_ends_its_session() -> None:
    sandbox = Waiting()

    async def work(kit: Kit) -> None:
        wanted = solver()
        task = asyncio.create_task(wanted.solve(SAMPLE, wanted.request(SAMPLE), kit))
        await sandbox.running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with FakeServer(answer=Turns(SQUARE)) as server:
        with_kit(server, work, sandbox)
    assert sandbox.ended == sandbox.used
    assert len(sandbox.used) == 1


def test_attempts_do_not_share_a_session() -> None:
    sandbox = Broken(good=2)

    async def work(kit: Kit) -> None:
        wanted = solver()
        for _ in range(2):
            await wanted.solve(SAMPLE, wanted.request(SAMPLE), kit)

    def answer(body: Row) -> str:
        return "done" if "output" in body["prompt"] else SQUARE

    with FakeServer(answer=answer) as server:
        with_kit(server, work, sandbox)
    assert len(sandbox.used) == 2


def test_the_stated_number_is_drawn_by_seed_and_sample() -> None:
    def drawn(seed: int) -> list[str]:
        chat = ChatSolver(load_prompt({"user": "{total_code_executions}"}), ChatSolverOptions())
        wanted = CodeExecutionSolver(chat, CodeOptions(tags=code_tags("qwen"), stated=(1, 8), seed=seed))
        requests = [wanted.request(Sample(id=str(n), row={})) for n in range(200)]
        return [str((request.messages or [])[0].content) for request in requests]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
    assert set(drawn(0)) == set("12345678")


def test_the_stated_number_can_be_the_limit() -> None:
    fields, bodies = solve(solver(stated=1, stated_is_limit=True), Turns(SQUARE))
    assert (len(bodies), fields["num_code_executions"], fields["total_code_executions"]) == (2, 1, 1)


def test_a_prompt_may_speak_of_the_limit_though_no_number_was_chosen() -> None:
    chat = ChatSolver(load_prompt({"user": "{total_code_executions}"}), ChatSolverOptions())
    wanted = CodeExecutionSolver(chat, CodeOptions(tags=code_tags("qwen")))
    assert (wanted.request(SAMPLE).messages or [])[0].content == "8"


@pytest.mark.parametrize(
    "other",
    [
        {"execution": {"max_code_executions": 3}},
        {"execution": {"max_code_output_characters": 5}},
        {"execution": {"code_execution_language": "shell"}},
        {"execution": {"code_execution_headers": ("import math",)}},
        {"tags": "openmath"},
        {"stated": 2, "stated_is_limit": True},
    ],
)
def test_settings_that_the_model_notices_change_the_key(other: Row) -> None:
    assert solver().request(SAMPLE).key() == solver().request(SAMPLE).key()
    assert solver(**other).request(SAMPLE).key() != solver().request(SAMPLE).key()


def test_replies_are_joined() -> None:
    first = Reply(
        text="a",
        usage=Usage(input_tokens=5, output_tokens=2),
        logprobs=Logprobs(tokens=["a"], logprobs=[-1.0]),
        started=1.0,
        ended=2.0,
    )
    second = Reply(
        text="b",
        reasoning="why",
        finish_reason="repetition",
        usage=Usage(input_tokens=9),
        logprobs=Logprobs(tokens=["b"], logprobs=[-2.0]),
        started=3.0,
        ended=4.0,
    )
    whole = join_replies([first, second])
    assert (whole.text, whole.reasoning, whole.finish_reason) == ("ab", "why", "repetition")
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (14, None)
    assert whole.logprobs == Logprobs(tokens=["a", "b"], logprobs=[-1.0, -2.0])
    assert (whole.started, whole.ended) == (1.0, 4.0)


def test_a_stop_phrase_that_the_server_left_in_the_text_is_not_put_there_again() -> None:
    named = {"stop_reason": "```\n"}
    for text in ("code\n", "code\n```\n"):
        assert with_stop(Reply(text=text, raw_message=named), ["```\n"]) == "code\n```\n"
    assert with_stop(Reply(text="code\n", raw_message=named), ["other"]) == "code\n"


def test_repetition_is_flagged() -> None:
    fields, _ = solve(solver(), Turns("round and round"), Script(finish_reason="repetition"))
    assert fields["stopped_on_repetition"] is True
