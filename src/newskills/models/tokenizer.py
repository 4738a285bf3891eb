# SPDX-License-Identifier: Apache-2.0
"""Tokenizers: a Hugging Face one from a file, folder or the hub, or the serving endpoint's own.

Both are synchronous, as `base.protocols.Tokenizer` is; the one that asks a server belongs into a thread, or to
calls that are rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.chat_template import render_chat_template
from newskills.base.errors import ConfigError, ServerError, TransportError
from newskills.base.http.blocking import BlockingClient
from newskills.base.http.client import split_url
from newskills.base.http.connection import HttpResponse
from newskills.base.protocols import Tokenizer
from newskills.base.records import Message, Row
from newskills.models.config import ServerConfig, key_of
from newskills.models.errors import EndpointIdentity, error_from
from newskills.models.kinds import MODELS
from newskills.models.wire import base_url_of, encode_body, require_model

TIMEOUT = 60.0
MISTRAL = ("mistral", "mistral3", "voxtral", "ministral", "pixtral")
"""Types of models with tekken's vocabulary."""
OTHERS_WORDS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
"""Beginning of the pattern that stands there by mistake."""
MISTRAL_WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How tekken splits text into words (mistral-common)."""
FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def make_tokenizer(name: str | None, config: ServerConfig, environ: Mapping[str, str]) -> Tokenizer:
    """Make the tokenizer `name`, else `config.tokenizer`, else the model's own: from its folder, or asked of a
    self-hosted endpoint.

    Raises ConfigError where none can be had, and what the hub or the folder lacks.
    """
    chosen = name or config.tokenizer
    if chosen:
        return HFTokenizer(chosen)
    if config.model and (Path(config.model) / FILES[0]).is_file():
        return HFTokenizer(config.model)
    dialect = MODELS.properties(config.server_type).dialect
    if dialect is not None and dialect.tokenizer:
        return ServerTokenizer(config, environ)
    raise ConfigError(
        f"{config.server_type} has no tokenizer endpoint.",
        hint="Set ++tokenizer to a folder, a tokenizer.json or a name on the Hugging Face hub.",
    )


class HFTokenizer:
    """`tokenizer.json` with the chat template beside it. Special tokens in a text count as such, none is added."""

    def __init__(self, name: str) -> None:
        """Load the tokenizer. Raises ConfigError for an unknown name, a folder without tokenizer, or a missing
        library."""
        try:
            import tokenizers
        except ImportError as error:
            raise ConfigError(
                "A tokenizer needs the library tokenizers.", hint="Run: pip install 'newskills[hf]'"
            ) from error
        files = _tokenizer_files(name)
        self.name = name
        settings = _read_settings(files.get(FILES[1]))
        self._tokenizer: Any = _load_tokenizer(files[FILES[0]], settings, tokenizers.Tokenizer)
        self._template = _chat_template(settings, files.get(FILES[2]))
        self._bos, self._eos = _special_token(settings, "bos_token"), _special_token(settings, "eos_token")

    @property
    def end(self) -> str:
        """The token that ends a text (`eos_token`); empty where the tokenizer names none."""
        return self._eos

    @cached_property
    def prefix(self) -> int | None:
        """Id of the token that stands before a text without context: `bos_token`, else `eos_token`; None: there is
        neither."""
        mark: int | None = self._tokenizer.token_to_id(self._bos or self._eos) if self._bos or self._eos else None
        return mark

    @cached_property
    def begin(self) -> list[int]:
        """Token ids that the tokenizer itself puts in front of a text: BOS of many models, none of others."""
        plain = self.encode("a")
        ids: list[int] = self._tokenizer.encode("a", add_special_tokens=True).ids
        at = next((at for at in range(len(ids)) if ids[at : at + len(plain)] == plain), 0)
        return ids[:at]

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    def render(self, messages: Sequence[Message], **template_kwargs: Any) -> str:
        """Return the prompt of `messages` by the chat template. Raises ConfigError where the tokenizer has no chat
        template."""
        if not self._template:
            raise ConfigError(
                f"The tokenizer {self.name} has no chat template (a base model's?).",
                hint="Use a prompt made for base models, or another ++tokenizer.",
            )
        return render_chat_template(self._template, messages, self._bos, self._eos, **template_kwargs)


class ServerTokenizer:
    """Asks `/tokenize`, `/detokenize` and `/apply-template` of llama.cpp, vLLM, NIM or SGLang.

    Safe to share between threads. Raises TransportError, ServerError, and what the status of a refusal stands for.
    """

    def __init__(self, config: ServerConfig, environ: Mapping[str, str]) -> None:
        url = base_url_of(config).removesuffix("/v1")
        key, source = key_of(config, environ)
        self.name = require_model(config)
        dialect = MODELS.properties(config.server_type).dialect
        self._takes_content = dialect is not None and dialect.tokenizer == "content"
        self._endpoint = EndpointIdentity(url, self.name, key, source)
        split_url(url)  # says what is wrong with an address
        self._client = BlockingClient(url, environ, timeout=TIMEOUT)

    def encode(self, text: str) -> list[int]:
        if self._takes_content:
            body: Row = {"content": text, "add_special": False, "parse_special": True}
        else:
            body = {"model": self.name, "prompt": text, "add_special_tokens": False}
        return self._tokens(self._ask("/tokenize", body))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`. Raises ServerError for an answer without a text, ModelError where the server cannot
        be asked."""
        answer = self._ask("/detokenize", {"model": self.name, "tokens": list(ids)})
        for name in ("content", "prompt", "text"):
            if isinstance(text := answer.get(name), str):
                return text
        raise ServerError(f"{self._endpoint.address}/detokenize answered without a text.", status=200)

    def render(self, messages: Sequence[Message], **template_kwargs: Any) -> str:
        """Return the prompt of `messages` by the server's chat template. Raises ServerError, ModelError, as `decode`
        does."""
        body: Row = {"messages": list(messages)}
        if tools := template_kwargs.pop("tools", None):
            body["tools"] = tools
        if template_kwargs:
            body["chat_template_kwargs"] = template_kwargs
        if self._takes_content:
            prompt = self._ask("/apply-template", body).get("prompt")
            if isinstance(prompt, str):
                return prompt
            raise ServerError(f"{self._endpoint.address}/apply-template answered without a prompt.", status=200)
        body |= {"model": self.name, "add_generation_prompt": True}
        return self.decode(self._tokens(self._ask("/tokenize", body)))

    def close(self) -> None:
        """Close connections that are not in use."""
        self._client.close()

    def _tokens(self, answer: Row) -> list[int]:
        tokens = answer.get("tokens")
        if isinstance(tokens, list) and all(type(token) is int for token in tokens):
            return tokens
        raise ServerError(f"{self._endpoint.address}/tokenize answered without tokens.", status=200)

    def _ask(self, path: str, body: Row) -> Row:
        response = self._post(path, encode_body(body))
        if response.status != 200:
            raise error_from(response, self._endpoint)
        try:
            return msgspec.json.decode(response.body, type=Row)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServerError(
                f"{self._endpoint.address}{path} did not answer with JSON: {error}.", status=200
            ) from error

    def _post(self, path: str, body: bytes) -> HttpResponse:
        headers = {"Content-Type": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        try:
            reply = self._client.post(path, body, headers)
        except TransportError as error:
            raise TransportError(f"Cannot ask {self._endpoint.address}{path}: {error}.") from error
        return HttpResponse(reply.status, reply.headers, reply.body)


def _tokenizer_files(name: str) -> dict[str, Path]:
    path = Path(name).expanduser()
    if path.is_file():
        path = path.parent
    if path.is_dir():
        paths_by_file = {file: path / file for file in FILES if (path / file).is_file()}
        if FILES[0] not in paths_by_file:
            raise ConfigError(f"{path} holds no {FILES[0]}.", hint="Convert the tokenizer to a fast one first.")
        return paths_by_file
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ConfigError(f"There is no tokenizer at {name}.")
    return _from_hub(name)


def _from_hub(name: str) -> dict[str, Path]:
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise ConfigError(
            f"The tokenizer {name} must come from the hub.", hint="Run: pip install 'newskills[hf]'"
        ) from error
    paths_by_file: dict[str, Path] = {}
    for file in FILES:
        try:
            paths_by_file[file] = Path(hf_hub_download(name, file))
        except (EntryNotFoundError, HFValidationError, HfHubHTTPError, OSError) as error:
            if file == FILES[0]:
                raise ConfigError(
                    f"The tokenizer '{name}' could not be downloaded from the Hugging Face hub: {error}.",
                    hint="Set ++tokenizer to a folder with tokenizer.json.",
                ) from error
    return paths_by_file


def _load_tokenizer(path: Path, settings: Row, kind: Any) -> Any:
    """Load the tokenizer of the file; one of Mistral's gets its right splitting of words.

    Folders made before transformers 5 carry the pattern of another family, which splits otherwise than the models were
    taught (the flag `fix_mistral_regex`, https://github.com/huggingface/transformers/pull/42299); False keeps it.
    """
    if path.with_name("config.json").is_file():
        config = _read_settings(path.with_name("config.json"))
    else:
        config = {}
    version = str(config.get("transformers_version") or "0").partition(".")[0]
    old = not version.isdecimal() or int(version) < 5
    flag = settings.get("fix_mistral_regex", config.get("model_type") in MISTRAL and old)
    if not flag:
        return kind.from_file(str(path))
    held = _read_settings(path)
    for step in (held.get("pre_tokenizer") or {}).get("pretokenizers") or ():
        if step.get("type") == "Split" and step.get("pattern", {}).get("Regex", "").startswith(OTHERS_WORDS):
            step["pattern"] = {"Regex": MISTRAL_WORDS}
    return kind.from_str(msgspec.json.encode(held).decode())


def _read_settings(path: Path | None) -> Row:
    if path is None:
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=Row)
    except (msgspec.DecodeError, OSError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error


def _chat_template(settings: Row, path: Path | None) -> str:
    if path is not None:
        return path.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default") or next(iter(named.values()), "")
    if isinstance(template, str):
        return template
    return ""


def _special_token(settings: Row, name: str) -> str:
    value = settings.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    if isinstance(value, str):
        return value
    return ""
