# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, run, run_and_listen, write_input
from tests.server import Answer, Script

from newskills.base.errors import ConfigError
from newskills.sandbox.config import SandboxConfig

ECHO = Script(answer=Answer(kind="echo"))


def test_a_row_without_an_id_is_named_by_the_one_it_gets(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    path = write_input(tmp_path, 3)
    path.write_text(path.read_text() + '{"question": "x"}\n')
    run(make_unit(tmp_path, server.base_url, server={"enable_soft_fail": True}))
    found = records(tmp_path / "out" / "output.jsonl")[3]
    assert found["detailed_error"].startswith(f"Record {found['id']}: Field 'problem' is missing")


def test_a_text_endpoint_without_a_tokenizer(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 3)
    settings = {
        "server": {"server_type": "openai", "api_key": "k"},
        "inference": {"endpoint_type": "text", "tokens_to_generate": 8},
    }
    with pytest.raises(
        ConfigError, match=r"chat_template_kwargs cannot be honoured\. No tokenizer is known for fake"
    ):
        run(make_unit(tmp_path, server.base_url, chat_template_kwargs={"thinking": True}, **settings))
    assert server.records == []
    result, said = run_and_listen(make_unit(tmp_path, server.base_url, **settings))
    assert result.exit_code == 0
    assert said.count("gets the bare text of each prompt") == 1
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
