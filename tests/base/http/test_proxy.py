# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from tests.base.http._loopback import run

from newskills.base.errors import ConfigError, ConnectError
from newskills.base.http.client import HttpClient
from newskills.base.http.proxy import Proxy, is_loopback, proxy_for

BOTH = {"HTTP_PROXY": "http://plain:1", "HTTPS_PROXY": "http://safe:2"}


@pytest.mark.parametrize(
    ("url", "no_proxy", "host"),
    [
        ("http://model.example/v1", "", "plain"),
        ("https://model.example/v1", "", "safe"),
        ("https://model.example/v1", "other.example", "safe"),
        ("https://model.example/v1", "x, .example", None),
        ("https://model.example/v1", "model.example:443", "safe"),
        ("https://model.example:443/v1", "model.example:443", None),
        ("https://mymodel.example/v1", "model.example", "safe"),
        ("https://model.example/v1", "*", None),
        ("http://10.1.2.3:5000", "10.0.0.0/8", None),
        ("http://10.1.2.3:5000", "10.1.2.3", None),
        ("http://11.1.2.3:5000", "10.0.0.0/8", "plain"),
        ("http://127.0.0.1:5000", "", None),
        ("http://localhost:5000", "", None),
        ("http://[::1]:5000", "", None),
    ],
)
def test_which_proxy_leads_where(url: str, no_proxy: str, host: str | None) -> None:
    found = proxy_for(url, {**BOTH, "NO_PROXY": no_proxy})
    assert (found.host if found else None) == host


def test_small_letters_win_and_cgi_is_not_trusted() -> None:
    assert proxy_for("http://m.example", {"http_proxy": "a:1", "HTTP_PROXY": "b:2"}) == Proxy(
        "a", 1, "", "http_proxy"
    )
    assert proxy_for("http://m.example", {"HTTP_PROXY": "b:2", "REQUEST_METHOD": "GET"}) is None
    assert proxy_for("https://m.example", {"ALL_PROXY": "c"}) == Proxy("c", 3128, "", "ALL_PROXY")


def test_a_proxys_password_is_sent_but_never_shown() -> None:
    found = proxy_for("https://m.example", {"HTTPS_PROXY": "http://u:p%40ss@host:8080"})
    assert found == Proxy("host", 8080, "Basic dTpwQHNz", "HTTPS_PROXY")
    assert "p@ss" not in repr(found)
    assert "dTpw" not in repr(found)


@pytest.mark.parametrize(
    "value", ["socks5://u:secret@host:1", "https://u:secret@host", "http://u:secret@host:99999"]
)
def test_other_proxies_are_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as caught:
        proxy_for("https://m.example", {"HTTPS_PROXY": value})
    assert "secret" not in str(caught.value)


def test_a_proxy_that_cannot_be_one_is_refused_by_its_variable() -> None:
    with pytest.raises(ConfigError, match="http_proxy is not the address of a proxy"):
        proxy_for("http://model.example/v1", {"http_proxy": "not a url"})


def test_a_dead_proxy_is_named() -> None:
    async def work() -> None:
        client = HttpClient(
            "http://api.invalid/v1", proxy=proxy_for("http://api.invalid/v1", {"ALL_PROXY": "127.0.0.1:9"})
        )
        with pytest.raises(ConnectError) as refused:
            await client.post("/", b"", 5)
        assert "the proxy 127.0.0.1:9 (ALL_PROXY), which leads to http://api.invalid" in str(refused.value)

    run(work())


def test_loopback_names() -> None:
    assert is_loopback("127.1.2.3")
    assert is_loopback("a.localhost")
    assert not is_loopback("localhost.example")
