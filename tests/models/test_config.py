# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import copy
import pickle
from typing import Any

import msgspec
import pytest

from newskills.base.errors import AuthError, ConfigError, UnknownNameError
from newskills.base.protocols import Model
from newskills.base.records import Inference, Reply, Request
from newskills.config.fields import leaves
from newskills.models import MODELS, check_inference, make_model
from newskills.models.config import ServerConfig, key_of
from newskills.models.wire import HttpModel, base_url_of

KEY = "sk-very-secret-0123456789"


def test_a_key_is_never_shown() -> None:
    config = ServerConfig(api_key=KEY, model="m")
    for text in (
        repr(config),
        str(config),
        f"{config}",
        msgspec.json.encode(config).decode(),
        repr(msgspec.to_builtins(config)),
    ):
        assert KEY not in text
    assert KEY.encode() not in pickle.dumps(config)


def test_a_key_is_still_found_in_copies() -> None:
    config = ServerConfig(api_key=f" {KEY}\n")
    again = msgspec.convert(msgspec.to_builtins(config), ServerConfig)
    for twin in (config, again, copy.copy(config), msgspec.structs.replace(config, model="n")):
        assert key_of(twin, {}) == (KEY, "++server.api_key")
    assert ServerConfig(api_key=KEY).api_key == config.api_key


def test_a_mask_from_another_process_is_no_key() -> None:
    config = ServerConfig(server_type="openai", model="m", api_key="***77")
    with pytest.raises(AuthError, match="not known to this process"):
        make_model(config, concurrency=1, environ={"OPENAI_API_KEY": "x"})


def test_every_field_is_documented() -> None:
    assert all(leaf.description for leaf in leaves(ServerConfig).values())


@pytest.mark.parametrize(
    "wrong",
    [
        {"nope": 1},
        {"port": 0},
        {"max_retries": -1},
        {"context_limit_retry_strategy": "cut"},
        {"price_per_million_input_tokens": -1.0},
    ],
)
def test_unknown_and_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, ServerConfig)


@pytest.mark.parametrize(
    ("config", "url"),
    [
        (ServerConfig(), "http://127.0.0.1:5000/v1"),
        (ServerConfig(host="node7", port=8000), "http://node7:8000/v1"),
        (ServerConfig(host="::1"), "http://[::1]:5000/v1"),
        (ServerConfig(base_url="http://h:1"), "http://h:1/v1"),
        (ServerConfig(base_url="http://h:1/"), "http://h:1/v1"),
        (ServerConfig(base_url="h:1"), "http://h:1/v1"),
        (ServerConfig(base_url="http://h:1/v1"), "http://h:1/v1"),
        (ServerConfig(base_url="http://h:1/v1/chat/completions"), "http://h:1/v1"),
        (ServerConfig(base_url="https://h/api/v3"), "https://h/api/v3"),
        (ServerConfig(base_url="http://h:1", use_v1_endpoint=False), "http://h:1"),
    ],
)
def test_addresses_with_and_without_v1(config: ServerConfig, url: str) -> None:
    assert base_url_of(config) == url


@pytest.mark.parametrize(
    ("config", "environ", "url"),
    [
        (ServerConfig(server_type="vllm"), {}, "http://127.0.0.1:5000/v1"),
        (ServerConfig(server_type="megatron"), {}, "http://127.0.0.1:5000"),
        (ServerConfig(server_type="openai"), {"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1"),
        (ServerConfig(server_type="openai", port=6000), {}, "http://127.0.0.1:6000/v1"),
        (ServerConfig(), {"NEMO_SKILLS_OPENAI_BASE_URL": "http://h:2"}, "http://h:2/v1"),
        (
            ServerConfig(server_type="gemini"),
            {"GEMINI_API_KEY": "k"},
            "https://generativelanguage.googleapis.com/v1beta",
        ),
        (ServerConfig(server_type="anthropic"), {"ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com/v1"),
        (
            ServerConfig(server_type="azure", base_url="https://r.openai.azure.com/"),
            {"AZURE_OPENAI_API_KEY": "k"},
            "https://r.openai.azure.com/openai/deployments/m",
        ),
    ],
)
def test_where_each_kind_is_asked(config: ServerConfig, environ: dict[str, str], url: str) -> None:
    model = make_model(msgspec.structs.replace(config, model="m"), concurrency=4, environ=environ)
    assert isinstance(model, HttpModel)
    assert isinstance(model, Model)
    assert model.endpoint.address == url
    assert model.name == "m"


@pytest.mark.parametrize(
    ("config", "variable"),
    [
        (ServerConfig(server_type="openai"), "OPENAI_API_KEY"),
        (ServerConfig(server_type="openai", base_url="https://integrate.api.nvidia.com/v1"), "NVIDIA_API_KEY"),
        (ServerConfig(server_type="azureopenai", base_url="https://r"), "AZURE_OPENAI_API_KEY"),
        (ServerConfig(server_type="gemini"), "GEMINI_API_KEY"),
        (ServerConfig(server_type="anthropic"), "ANTHROPIC_API_KEY"),
        (ServerConfig(server_type="vllm", api_key_env_var="MY_KEY"), "MY_KEY"),
    ],
)
def test_a_missing_key_is_named_before_any_request(config: ServerConfig, variable: str) -> None:
    config = msgspec.structs.replace(config, model="m")
    with pytest.raises(AuthError, match=variable):
        make_model(config, concurrency=1, environ={})
    make_model(config, concurrency=1, environ={variable: "key"})


def test_a_key_is_optional_elsewhere() -> None:
    make_model(
        ServerConfig(server_type="openai", model="m", base_url="http://127.0.0.1:1"), concurrency=1, environ={}
    )


def test_the_models_name_may_come_from_the_environment() -> None:
    environ = {"NEMO_SKILLS_OPENAI_MODEL": "from-env", "OPENAI_API_KEY": "k"}
    assert make_model(ServerConfig(), concurrency=1, environ=environ).name == "from-env"
    with pytest.raises(ConfigError, match="No model is given"):
        make_model(ServerConfig(server_type="vllm"), concurrency=1, environ=environ)


def test_server_types() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'vllm'"):
        make_model(ServerConfig(server_type="vlm", model="m"), concurrency=1, environ={})
    with pytest.raises(ConfigError, match=r"no longer exists.*--server_type=vllm"):
        make_model(ServerConfig(server_type="nemo", model="m"), concurrency=1, environ={})
    assert MODELS.resolve("llama.cpp") == "llamacpp"
    assert MODELS.resolve("vLLM-DP-Ray") == "vllm_dp_ray"


def test_every_backend_of_the_table_loads() -> None:
    for name in MODELS:
        assert callable(MODELS.get(name))


class Parrot:
    """A user's own model."""

    def __init__(self, config: ServerConfig, *, concurrency: int, environ: dict[str, str]) -> None:
        self.name = f"{config.model}x{concurrency}"

    async def complete(self, request: Request) -> Reply:
        return Reply(text="squawk")

    async def close(self) -> None:
        return None


class NoModel:
    def __init__(self, config: ServerConfig, *, concurrency: int, environ: dict[str, str]) -> None:
        pass


def test_a_class_of_the_users_own() -> None:
    config = ServerConfig(server_type="custom", model="m", model_class=f"{__file__}::Parrot")
    assert make_model(config, concurrency=3, environ={}).name == "mx3"
    with pytest.raises(ConfigError, match="makes no model"):
        make_model(msgspec.structs.replace(config, model_class=f"{__file__}::NoModel"), concurrency=1, environ={})
    with pytest.raises(ConfigError, match="model_class=module::Class"):
        make_model(msgspec.structs.replace(config, model_class=None), concurrency=1, environ={})
    with pytest.raises(UnknownNameError, match="Parrot"):
        make_model(msgspec.structs.replace(config, model_class=f"{__file__}::Parot"), concurrency=1, environ={})


def test_settings_are_checked_before_any_request() -> None:
    environ = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}
    for server_type in ("openai", "anthropic", "gemini", "megatron"):
        model = make_model(ServerConfig(server_type=server_type, model="m"), concurrency=1, environ=environ)
        check_inference(model, Inference(tokens_to_generate=5))
        with pytest.raises(ConfigError, match="min_p"):
            check_inference(model, Inference(tokens_to_generate=5, min_p=0.5))
    config = ServerConfig(server_type="custom", model="m", model_class=f"{__file__}::Parrot")
    check_inference(make_model(config, concurrency=1, environ={}), Inference(min_p=0.5))


@pytest.mark.parametrize("url", ["http://h/v1?api_key=sk-secret", "https://h#k=sk-secret"])
def test_a_key_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    for fields in ({"base_url": url}, {"base_url": "http://h", "more_base_urls": (url,)}):
        with pytest.raises(ValueError, match="environment variable") as refused:
            ServerConfig(server_type="vllm", model="m", **fields)
        assert "sk-secret" not in str(refused.value)
