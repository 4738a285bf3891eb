# SPDX-License-Identifier: Apache-2.0
"""Requests of trainers: whatever is posted, it is understood or refused with a sentence."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.errors import ConfigError
from newskills.run.evaluation_server.wire import read_request

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["name", "n_samples_per_eval_prompt", "temperature", "top_p", "top_k", "max_response_len", "x"]
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "rollout_id": JSON | st.integers(),
        "router_url": JSON | st.just("http://h:1"),
        "benchmarks": JSON
        | st.lists(st.dictionaries(FIELDS, JSON | st.sampled_from(["aime25", "../x", "a:1", "a.py"]))),
        "defaults": JSON | st.dictionaries(FIELDS, JSON),
    },
)


@settings(max_examples=150)
@given(BODIES.map(lambda body: json.dumps(body).encode()) | st.binary())
def test_anything_is_understood_or_refused(body: bytes) -> None:
    try:
        request = read_request(body)
    except ConfigError:
        return
    assert request.router_url.startswith("http")
    for order in request.benchmarks:
        assert re.fullmatch(r"[A-Za-z0-9][\w.-]*", order.name)
        assert not order.name.endswith(".py")
        assert all(word.startswith("++inference.") for word in order.overrides())


def test_the_words_of_an_order() -> None:
    sampled = {"name": "a", "n_samples_per_eval_prompt": 8, "temperature": 1, "top_k": -1, "top_p": None}
    body = {
        "rollout_id": 1,
        "router_url": "http://h:1//",
        "benchmarks": [sampled, {"name": "b", "temperature": 0}],
    }
    body["defaults"] = {"temperature": 0.5, "top_p": 0.9}
    request = read_request(json.dumps(body).encode())
    first, second = request.benchmarks
    assert request.api_base == "http://h:1/v1"
    assert (first.counted, second.counted) == ("a:8", "b")
    assert first.overrides() == ["++inference.temperature=1.0", "++inference.top_p=0.9", "++inference.top_k=-1"]
    assert second.overrides() == ["++inference.temperature=0.0", "++inference.top_p=0.9"]


@pytest.mark.parametrize(
    "url", ["", "h:1", "ftp://h", "http://", "http://h:99999", "http://h:1/ x", "http://[::1"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ConfigError, match="router_url"):
        read_request(json.dumps({"rollout_id": 1, "router_url": url}).encode())
