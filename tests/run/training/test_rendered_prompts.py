# SPDX-License-Identifier: Apache-2.0
"""A prompt that a chat template has rendered begins with one mark, whatever server reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.models.dialects import DIALECTS
from tests.run.support import make_unit, run, run_and_listen, write_input
from tests.server import FakeServer, FakeServerProcess, Fault, Script

from newskills.base.records import Row
from newskills.models import MODELS

pytest.importorskip("tokenizers")

BOS = 1
TEMPLATE = "{{ bos_token }}{% for m in messages %} {{ m.role }} {{ m.content }}{% endfor %} assistant"
WORDS = ("[UNK]", "<s>", "What", "is", "0", "1?", "+", "user", "assistant", "system")
FLAGGED = {"vllm", "vllm_dp_ray", "vllm_multimodal", "trtllm", "transformers"}
TEXT = "<s> user What is 0 + 1? assistant"


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """A tokenizer as Llama's: its template writes the mark, and so does the tokenizer unless told otherwise."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing

    words = Tokenizer(WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = WhitespaceSplit()
    words.add_special_tokens(["<s>"])
    words.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", BOS)])
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    words.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "chat_template": TEMPLATE}))
    return folder


def asked(folder: Path, server: FakeServer | FakeServerProcess, server_type: str, **settings: Any) -> list[Row]:
    """The bodies that a run over one row sends to the text endpoint."""
    write_input(folder, 1)
    unit = make_unit(
        folder,
        server.base_url,
        server={"server_type": server_type, "api_key": "k", **settings.pop("server", {})},
        inference={"endpoint_type": "text", "tokens_to_generate": 8, **settings.pop("inference", {})},
        **settings,
    )
    result, said = run_and_listen(unit)
    assert result.exit_code == 0, said
    return [record.body for record in server.records if "prompt" in (record.body or {})]


@pytest.mark.parametrize("server_type", [*DIALECTS, "llama.cpp", "TensorRT-LLM"])
def test_every_server_gets_one_mark(
    server_type: str, tmp_path: Path, tokenizer: Path, fake_server: FakeServerFactory
) -> None:
    (body,) = asked(tmp_path, fake_server(Script()), server_type, tokenizer=str(tokenizer))
    if MODELS.resolve(server_type) in FLAGGED:
        assert (body["prompt"], body["add_special_tokens"]) == (TEXT, False)
        return
    assert "add_special_tokens" not in body
    if server_type == "megatron":  # which adds no mark, and cannot read a list of ids
        assert body["prompt"] == TEXT
    else:
        assert [WORDS[token] for token in body["prompt"]] == TEXT.split()


@pytest.mark.parametrize("server_type", DIALECTS)
def test_a_plain_text_is_sent_as_it_is(server_type: str, tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """A base model's prompt has no mark; the server adds the one that there must be."""
    (tmp_path / "base").mkdir()
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]")).save(str(tmp_path / "base" / "tokenizer.json"))
    (body,) = asked(tmp_path, fake_server(Script()), server_type, tokenizer=str(tmp_path / "base"))
    assert body["prompt"] == "What is 0 + 1?"
    assert "add_special_tokens" not in body


def test_a_flag_of_the_user_is_kept(tmp_path: Path, tokenizer: Path, fake_server: FakeServerFactory) -> None:
    inference = {"extra_body": {"add_special_tokens": True}}
    (body,) = asked(tmp_path, fake_server(Script()), "generic", tokenizer=str(tokenizer), inference=inference)
    assert (body["prompt"], body["add_special_tokens"]) == (TEXT, True)


def test_a_conversation_is_sent_as_messages(
    tmp_path: Path, tokenizer: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script())
    write_input(tmp_path, 1)
    assert run(make_unit(tmp_path, server.base_url, tokenizer=str(tokenizer))).exit_code == 0
    assert "add_special_tokens" not in server.records[-1].body


def test_the_tokenizer_of_the_server_gives_the_ids(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script())
    (body,) = asked(tmp_path, server, "sglang")
    assert body["prompt"]
    assert all(type(token) is int for token in body["prompt"])


@pytest.mark.parametrize(
    "refusal",
    [
        "Failed to deserialize the JSON body: prompt: data did not match any variant of untagged enum Prompt",
        "Failed to deserialize the JSON body into the target type: prompt: data did not match any variant of untagged "
        "enum PromptDeserializer at line 1 column 38",
        "json: cannot unmarshal array into Go struct field CompletionRequest.prompt of type string",
    ],
)
def test_an_endpoint_that_takes_no_ids_is_told_of(
    refusal: str, tmp_path: Path, tokenizer: Path, fake_server: FakeServerFactory
) -> None:
    fault = Fault(kind="status", status=422, message=refusal)
    server = fake_server(Script(faults=(fault,)))
    write_input(tmp_path, 1)
    unit = make_unit(
        tmp_path,
        server.base_url,
        server={"server_type": "generic"},
        inference={"endpoint_type": "text", "tokens_to_generate": 8},
        tokenizer=str(tokenizer),
    )
    result = run(unit)
    assert result.exit_code != 0
    assert "++inference.endpoint_type=chat" in result.message
