# SPDX-License-Identifier: Apache-2.0
"""`++server.merge_system`: conversations for models without a system role."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import FakeServerFactory
from tests.models.dialects import DIALECTS
from tests.run.support import make_unit, run_and_listen, write_input
from tests.server import Fault, Script

from newskills.base.chat_template import merge_system, render_chat_template
from newskills.base.errors import ConfigError
from newskills.base.records import Inference, Message, Request
from newskills.models import check_inference
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.run.engine.build import RunBuilder

GEMMA = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
)
PROMPT = {"system": "Be brief.", "user": "{problem}"}
MERGED = "Be brief.\n\nWhat is 0 + 1?"


def turns(*pairs: tuple[str, Any]) -> list[Message]:
    return [Message(role=role, content=content) for role, content in pairs]


def test_where_system_texts_go() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    assert merge_system(turns(("system", "a"), ("user", "b"))) == turns(("user", "a\n\nb"))
    assert merge_system(turns(("system", "a"), ("developer", "b"), ("user", "c"))) == turns(
        ("user", "a\n\nb\n\nc")
    )
    later = turns(("user", "a"), ("assistant", "b"), ("system", "c"), ("user", "d"))
    assert merge_system(later) == turns(("user", "a"), ("assistant", "b"), ("user", "c\n\nd"))
    assert merge_system(turns(("system", "a"))) == turns(("user", "a"))
    parts = merge_system(turns(("system", [{"type": "text", "text": "a"}]), ("user", [image])))
    assert parts == turns(("user", [{"type": "text", "text": "a\n\n"}, image]))


@given(
    st.lists(
        st.tuples(st.sampled_from(["system", "developer", "user", "assistant", "tool"]), st.text(max_size=5)),
        max_size=8,
    )
)
def test_no_system_turn_is_left_and_no_text_is_lost(pairs: list[tuple[str, str]]) -> None:
    before = turns(*pairs)
    after = merge_system(before)
    assert not {"system", "developer"} & {message.role for message in after}
    assert merge_system(after) == after
    written = "\n".join(str(message.content) for message in after)
    assert all(text in written for _, text in pairs)
    others = [message.role for message in before if message.role in ("assistant", "tool")]
    assert [message.role for message in after if message.role in ("assistant", "tool")] == others


@pytest.mark.parametrize("kind", DIALECTS)
def test_every_server_gets_the_system_text_in_the_users_turn(
    kind: str, tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script())
    write_input(tmp_path, 1)
    settings = {"server_type": kind, "api_key": "k", "merge_system": True}
    result, said = run_and_listen(make_unit(tmp_path, server.base_url, server=settings, prompt_config=PROMPT))
    assert result.exit_code == 0, said
    (body,) = [record.body for record in server.records if "messages" in (record.body or {})]
    assert body["messages"] == [{"role": "user", "content": MERGED}]


def test_what_a_solver_adds_is_merged_as_well(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script())
    config = ServerConfig(server_type="vllm", model="m", base_url=server.base_url, merge_system=True)
    model = RunBuilder({}).model(config, 1)
    check_inference(model, Inference())
    with pytest.raises(ConfigError, match="needs a limit"):
        check_inference(model, Inference(endpoint_type="text"))

    async def ask() -> None:
        await model.complete(Request(messages=turns(("system", "a"), ("user", "b"))))
        await model.close()

    asyncio.run(ask())
    assert server.records[-1].body["messages"] == [{"role": "user", "content": "a\n\nb"}]


def test_a_chat_template_without_a_system_role(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers.models import WordLevel

    folder = tmp_path / "tokenizer"
    folder.mkdir()
    tokenizers.Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]")).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": GEMMA}))
    write_input(tmp_path, 1)
    server = fake_server(Script())
    settings: dict[str, Any] = {
        "prompt_config": PROMPT,
        "tokenizer": str(folder),
        "inference": {"endpoint_type": "text", "tokens_to_generate": 8},
    }
    with pytest.raises(ConfigError, match="System role not supported") as refused:
        run_and_listen(make_unit(tmp_path, server.base_url, **settings))
    assert "++server.merge_system=true" in refused.value.hint
    unit = make_unit(tmp_path, server.base_url, server={"merge_system": True}, **settings)
    assert run_and_listen(unit)[0].exit_code == 0
    assert server.records[-1].body["prompt"] == f"<user>{MERGED}"


def test_an_endpoint_that_refuses_the_role_names_the_setting(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    fault = Fault(kind="status", status=500, message="Jinja Exception: System role not supported")
    server = fake_server(Script(faults=(fault,)))
    write_input(tmp_path, 1)
    result, _ = run_and_listen(make_unit(tmp_path, server.base_url, prompt_config=PROMPT))
    assert result.exit_code != 0
    assert "++server.merge_system=true" in result.message


def test_the_setting_is_part_of_the_prompts_hash() -> None:
    plain, merged = (load_prompt(PROMPT, PromptOverrides(merge_system=merges)) for merges in (False, True))
    assert plain.hash != merged.hash
    assert render_chat_template(GEMMA, merged.messages({"problem": "?"})) == "<user>Be brief.\n\n?"
