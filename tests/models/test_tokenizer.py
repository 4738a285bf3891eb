# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import AuthError, ConfigError, ServerError, TransportError
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message
from newskills.models.config import ServerConfig
from newskills.models.tokenizer import HFTokenizer, ServerTokenizer, make_tokenizer

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
MESSAGES = [Message(role="user", content="one two")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = tokenizers.Tokenizer(
        WordLevel({"[UNK]": 0, "one": 1, "two": 2, "three": 3, "<s>": 4}, unk_token="[UNK]")
    )
    words.pre_tokenizer = WhitespaceSplit()
    words.add_special_tokens(["<s>"])
    words.save(str(tmp_path / "tokenizer.json"))
    settings = {"bos_token": {"content": "<s>"}, "eos_token": None, "chat_template": TEMPLATE}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    return tmp_path


def test_a_folder_or_file(folder: Path) -> None:
    for name in (folder, folder / "tokenizer.json"):
        tokenizer = HFTokenizer(str(name))
        assert isinstance(tokenizer, Tokenizer)
        assert tokenizer.encode("one two <s>") == [1, 2, 4]
        assert tokenizer.decode([1, 3]) == "one three"
        assert tokenizer.render(MESSAGES) == "<s>[user]one two[assistant]"
        assert tokenizer.render(MESSAGES, add_generation_prompt=False) == "<s>[user]one two"


def test_a_template_in_its_own_file_or_one_of_several(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("own")
    assert HFTokenizer(str(folder)).render(MESSAGES) == "own"
    (folder / "chat_template.jinja").unlink()
    several = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": several}))
    assert HFTokenizer(str(folder)).render(MESSAGES) == "plain"


def test_a_base_model_has_no_template(folder: Path) -> None:
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ConfigError, match="no chat template"):
        HFTokenizer(str(folder)).render(MESSAGES)


def test_what_is_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no tokenizer\.json"):
        HFTokenizer(str(tmp_path))
    with pytest.raises(ConfigError, match="no tokenizer at"):
        HFTokenizer(str(tmp_path / "nope"))


def test_which_tokenizer_is_chosen(folder: Path) -> None:
    local = str(folder)
    assert isinstance(make_tokenizer(local, ServerConfig(server_type="vllm", model="m"), {}), HFTokenizer)
    assert isinstance(make_tokenizer(None, ServerConfig(server_type="vllm", tokenizer=local), {}), HFTokenizer)
    assert isinstance(make_tokenizer(None, ServerConfig(server_type="openai", model=local), {}), HFTokenizer)
    assert isinstance(make_tokenizer(None, ServerConfig(server_type="vllm", model="m"), {}), ServerTokenizer)
    with pytest.raises(ConfigError, match=r"\+\+tokenizer"):
        make_tokenizer(None, ServerConfig(server_type="openai", model="gpt-4o"), {})


class Served(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.heard: list[tuple[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.status = 200
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Served

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append((self.path, body))
        data = json.dumps(self.server.answers.get(self.path, {})).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return None


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


closing: list[ServerTokenizer] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while closing:
        closing.pop().close()


def tokenizer_at(url: str, server_type: str) -> ServerTokenizer:
    tokenizer = ServerTokenizer(ServerConfig(server_type=server_type, model="m", base_url=f"{url}/v1"), {})
    closing.append(tokenizer)
    return tokenizer


def test_llamacpp_is_asked(served: Served) -> None:
    served.answers = {
        "/tokenize": {"tokens": [1, 2]},
        "/detokenize": {"content": "ab"},
        "/apply-template": {"prompt": "P"},
    }
    tokenizer = tokenizer_at(served.url, "llamacpp")
    assert tokenizer.encode("ab") == [1, 2]
    assert tokenizer.decode([1, 2]) == "ab"
    assert tokenizer.render(MESSAGES, enable_thinking=False) == "P"
    assert served.heard[0] == ("/tokenize", {"content": "ab", "add_special": False, "parse_special": True})
    assert served.heard[2][1] == {
        "messages": [{"role": "user", "content": "one two"}],
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert served.connections == 1


def test_vllm_is_asked(served: Served) -> None:
    served.answers = {"/tokenize": {"count": 2, "tokens": [1, 2]}, "/detokenize": {"prompt": "ab"}}
    tokenizer = tokenizer_at(served.url, "vllm")
    assert tokenizer.encode("ab") == [1, 2]
    assert tokenizer.render(MESSAGES) == "ab"
    assert served.heard[0][1] == {"model": "m", "prompt": "ab", "add_special_tokens": False}
    assert served.heard[1][1]["add_generation_prompt"] is True


def test_a_server_that_cannot(served: Served) -> None:
    tokenizer = tokenizer_at(served.url, "llamacpp")
    for call in (lambda: tokenizer.encode("a"), lambda: tokenizer.decode([1]), lambda: tokenizer.render(MESSAGES)):
        with pytest.raises(ServerError):
            call()
    served.status = 401
    with pytest.raises(AuthError):
        tokenizer.encode("a")


def test_a_server_that_is_gone() -> None:
    with pytest.raises(TransportError, match="Cannot ask"):
        tokenizer_at("http://127.0.0.1:9", "vllm").encode("a")
