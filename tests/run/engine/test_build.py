# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, run, run_and_listen, write_input
from tests.server import Answer, Script

from newskills.base.errors import ConfigError
from newskills.config.layers import Layer
from newskills.config.values import Text
from newskills.run.engine.build import code_options
from newskills.run.planning.plan import resolve_config
from newskills.sandbox.config import SandboxConfig

ECHO = Script(answer=Answer(kind="echo"))


def test_a_row_without_an_id_is_named_by_file_and_line(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    path = write_input(tmp_path, 3)
    path.write_text(path.read_text() + '\n{"question": "x"}\n')
    run(make_unit(tmp_path, server.base_url, server={"enable_soft_fail": True}))
    found = records(tmp_path / "out" / "output.jsonl")[3]
    assert found["detailed_error"].startswith(f"{path}, line 5: The record has no field 'problem'")


def test_a_text_endpoint_without_a_tokenizer(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 3)
    settings = {
        "server": {"server_type": "openai", "api_key": "k"},
        "inference": {"endpoint_type": "text", "tokens_to_generate": 8},
    }
    with pytest.raises(ConfigError, match=r"chat_template_kwargs cannot be used\. No tokenizer is known for fake"):
        run(make_unit(tmp_path, server.base_url, chat_template_kwargs={"thinking": True}, **settings))
    assert server.records == []
    result, said = run_and_listen(make_unit(tmp_path, server.base_url, **settings))
    assert result.exit_code == 0
    assert said.count("gets each prompt without a chat template") == 1
    assert {record.body["prompt"] for record in server.records} == {f"What is {i} + 1?" for i in range(3)}


@pytest.mark.parametrize(("endpoint", "times"), [("chat", 1), ("text", 0)])
def test_tags_that_a_chat_endpoint_hides_are_told(
    tmp_path: Path, fake_server: FakeServerFactory, endpoint: str, times: int
) -> None:
    write_input(tmp_path, 1)
    unit = make_unit(
        tmp_path,
        fake_server(ECHO).base_url,
        code_execution=True,
        code_tags="llama3",
        sandbox=SandboxConfig(preload=()),
        inference={"endpoint_type": endpoint, "tokens_to_generate": 50},
    )
    result, said = run_and_listen(unit)
    assert result.exit_code == 0, said
    assert said.count("llama3 are special tokens") == times


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"code_execution": "true"}, "code_execution needs code_tags"),
        ({"override_max_code_executions": "true"}, "needs total_code_executions_in_prompt"),
        ({"total_code_executions_in_prompt": "[8,1]"}, r"a number or \[min,max\]"),
        ({"total_code_executions_in_prompt": "[1,2,3]"}, r"a number or \[min,max\]"),
        (
            {"code_execution": "true", "code_tags": "qwen", "solver": "sc_tir"},
            "cannot be combined with solver=sc_tir",
        ),
        ({"server.code_execution.max_code_executions": "-1"}, ">= 0"),
    ],
)
def test_settings_of_code_that_do_not_fit_together(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_config([Layer("test", {key: Text(value) for key, value in keys.items()})])


@pytest.mark.parametrize(("given", "drawn"), [("4", (4, 4)), ("[1,8]", (1, 8)), ("[3]", (3, 3))])
def test_the_number_that_the_prompt_speaks_of(given: str, drawn: tuple[int, int]) -> None:
    keys = {"code_tags": "qwen", "code_execution": "true", "total_code_executions_in_prompt": given}
    config = resolve_config([Layer("test", {key: Text(value) for key, value in keys.items()})]).value
    options = code_options(config)
    assert options is not None
    stated = options.stated
    assert (stated if isinstance(stated, tuple) else (stated, stated)) == drawn


def test_a_vote_is_what_is_graded_unless_told_otherwise() -> None:
    def graded(**more: object) -> object:
        layers = [Layer("test", {"solver": "sc_tir", "eval_type": "math", **more})]
        return resolve_config(layers).value.eval_config.get("use_predicted_answer_key")

    assert graded() is True
    assert graded(eval_config={"use_predicted_answer_key": False}) is False
    assert graded(solver="chat") is None


def test_examples_of_the_development_split(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    for name, count, kind in (("input", 2, "test"), ("dev", 5, "shot")):
        rows = [
            {"problem": f"{subject} {kind} {n}", "expected_answer": "B", "subtopic": subject}
            for subject in ("law", "art")
            for n in range(count)
        ]
        lines = [json.dumps({**row, "examples_type": f"mmlu_few_shot_{row['subtopic']}"}) for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    unit = make_unit(tmp_path, server.base_url, prompt_config="generic/mcq-base", examples_type="{examples_type}")
    assert run(unit).exit_code == 0
    asked = [record["generation"] for record in records(unit.merged)]
    for text, subject, other in zip(
        asked, ("law", "law", "art", "art"), ("art", "art", "law", "law"), strict=True
    ):
        assert [f"{subject} shot {n}\nAnswer: B" in text for n in range(5)] == [True] * 5
        assert other not in text.removeprefix("Choice questions, each followed by the letter of the right option.")
