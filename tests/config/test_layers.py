# SPDX-License-Identifier: Apache-2.0
import contextlib
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.config.layers import Layer, explain, resolve
from newskills.config.values import Text, parse_value


class Sampling(Struct, frozen=True, kw_only=True):
    temperature: Annotated[float, Meta(ge=0, description="heat")] = 0.0
    top_k: int = -1
    extra_body: dict[str, Any] = {}


class Config(Struct, frozen=True, kw_only=True):
    prompt_config: str | dict[str, Any] | None = None
    stop_phrase: str | None = None
    kind: Literal["chat", "text"] = "chat"
    max_samples: int = -1
    flag: bool = False
    budgets: list[int] = []
    sampling: Sampling = Sampling()


ALIASES = {"temperature": "sampling.temperature", "prompt": "prompt_config"}


def build(**overrides: Any) -> Config:
    texts = {key.replace("__", "."): Text(value) for key, value in overrides.items()}
    return resolve(Config, [Layer("command line", texts)], aliases=ALIASES).value


def test_later_layers_win_and_are_remembered() -> None:
    resolved = resolve(
        Config,
        [
            Layer("seed 3", {"sampling": {"temperature": 0.7, "top_k": 5}}),
            Layer("benchmark gsm8k", {"max_samples": 10}),
            Layer(
                "command line", {"temperature": Text("0.2"), "sampling.extra_body.guided.json": Text("[1,{a:b}]")}
            ),
        ],
        aliases=ALIASES,
    )
    assert resolved.value.sampling == Sampling(
        temperature=0.2, top_k=5, extra_body={"guided": {"json": [1, {"a": "b"}]}}
    )
    table = {path: (value, source) for path, value, source in explain(resolved)}
    assert table["sampling.temperature"] == ("0.2", "command line")
    assert table["sampling.top_k"] == ("5", "seed 3")
    assert table["max_samples"] == ("10", "benchmark gsm8k")
    assert table["flag"] == ("false", "default")


def test_the_type_of_the_key_decides_what_text_means() -> None:
    assert build(stop_phrase="123").stop_phrase == "123"
    assert build(stop_phrase="null").stop_phrase is None
    assert build(stop_phrase="'null'").stop_phrase == "null"
    assert build(prompt="generic/math").prompt_config == "generic/math"
    assert build(prompt_config="{user: '{question}', n: 2}").prompt_config == {"user": "{question}", "n": 2}
    assert build(budgets="4").budgets == [4]
    assert build(budgets="[4, 5]").budgets == [4, 5]
    assert build(flag="True").flag is True
    assert build(sampling="{temperature: 1e-1}").sampling.temperature == 0.1


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("max_sample", "1", "did you mean '\\+\\+max_samples'"),
        ("sampling.temprature", "1", "did you mean '\\+\\+sampling.temperature'"),
        ("max_samples", "many", "max_samples=many"),
        ("temperature", "-1", "temperature=-1"),
        ("kind", "audio", "kind=audio"),
        ("flag", "maybe", "flag=maybe"),
        ("sampling", "5", "sub-keys"),
        ("budgets", "[1,2", "']' is missing"),
        ("max_samples.x", "1", "Unknown option"),
    ],
)
def test_bad_overrides_are_refused(key: str, value: str, message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        resolve(Config, [Layer("command line", {key: Text(value)})], aliases=ALIASES)


def test_removed_keys_say_what_to_use() -> None:
    with pytest.raises(ConfigError, match="use endpoint_type"):
        resolve(Config, [Layer("c", {"old": Text("1")})], removed={"old": "use endpoint_type"})


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="ascii", exclude_characters="\\"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def write(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(write, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{write(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, str):
        return '"' + value.replace('"', '\\"') + '"'
    return (
        {None: "null", True: "true", False: "False"}.get(value, str(value))
        if not isinstance(value, int) or isinstance(value, bool)
        else str(value)
    )


@given(PLAIN)
def test_values_round_trip(value: object) -> None:
    assert parse_value(write(value)) == value


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_value(text)


class Worded(Struct, frozen=True):
    mode: Literal["auto", "none", "1"] = "auto"


@pytest.mark.parametrize("word", ["none", "1", "'none'"])
def test_a_choice_may_be_spelled_like_null_or_a_number(word: str) -> None:
    found = resolve(Worded, [Layer("command line", {"mode": Text(word)})])
    assert found.value.mode == word.strip("'")


def test_what_is_no_choice_is_still_read_as_null() -> None:
    with pytest.raises(ConfigError):
        resolve(Worded, [Layer("command line", {"mode": Text("null")})])


@pytest.mark.parametrize("value", ["inf", "nan", "1e999", "Infinity"])
def test_a_number_is_finite(value: str) -> None:
    with pytest.raises(ConfigError, match=r"\+\+temperature=.*: (expected a finite number, got inf|.* >= 0)"):
        build(temperature=value)
    with pytest.raises(ConfigError, match=r"temperature of file.yaml: .*(finite number|>= 0)"):
        resolve(Config, [Layer("file.yaml", {"sampling": {"temperature": float(value)}})])


def test_a_number_below_an_open_key_is_finite() -> None:
    with pytest.raises(ConfigError, match="finite number"):
        build(sampling__extra_body="{a: [1, {b: 1e999}]}")
    with pytest.raises(ConfigError, match="finite number"):
        build(sampling__extra_body__a="-1e999")
    assert build(sampling__extra_body="{a: inf}").sampling.extra_body == {"a": "inf"}
