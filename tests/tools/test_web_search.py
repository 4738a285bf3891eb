# SPDX-License-Identifier: Apache-2.0
"""Search against a real HTTP server that plays the APIs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.base.http._loopback import Heard, Play, always, loopback, replies, response, run

from newskills.base.errors import ConfigError, FatalToolError, ToolError
from newskills.base.records import Row
from newskills.tools.provider import ToolContext
from newskills.tools.toolbox import ToolSettings, make_toolbox

KEYS = {"TAVILY_API_KEY": "tvly-abc", "EXA_API_KEY": "exa-abc", "MY_KEY": "mine"}
TAVILY = {
    "query": "q",
    "answer": None,
    "response_time": 0.4,
    "results": [
        {"title": "Rome", "url": "https://en.example.org/rome", "content": "Rome is old.", "score": 0.9},
        {"title": "Ads", "url": "https://www.ads.example/x", "content": "Buy!", "score": 0.8},
        {"title": "Odd", "url": "http://[broken", "content": "?", "score": 0.1},
    ],
}
EXA = {
    "requestId": "r",
    "results": [
        {"id": "1", "title": None, "url": "https://a.example", "text": "long " * 1000},
        {"id": "2", "title": "B", "url": "https://b.example", "text": None, "highlights": ["one", "two"]},
    ],
}


def search(play: Play, tool: str = "tavily", query: str = "rome", **config: Any) -> tuple[str, Row, list[Heard]]:
    async def main() -> tuple[str, Row, list[Heard]]:
        async with loopback(play) as place:
            settings = {"endpoint": f"{place.url}/v1/search?a=1", **config}
            box = make_toolbox(
                ToolSettings(modules=(tool,), overrides={tool: settings}), ToolContext(environ=KEYS)
            )
            try:
                text = await box.execute("web_search", {"query": query}, "r")
                return text, await box.release("r"), place.heard
            finally:
                await box.close()

    return run(main())


def test_tavily() -> None:
    text, metrics, (heard,) = search(replies(TAVILY), exclude_domains=["ads.example"], max_results=3)
    assert text == "Rome\nhttps://en.example.org/rome\nRome is old."
    assert heard.line == "POST /v1/search?a=1 HTTP/1.1"
    assert heard.headers["authorization"] == "Bearer tvly-abc"
    assert heard.json == {"query": "rome", "max_results": 3, "exclude_domains": ["ads.example"]}
    assert metrics["TavilySearchTool"] == {"num_searches": 1}


def test_exa() -> None:
    text, _, (heard,) = search(replies(EXA), "exa", max_characters=20, exclude_domains=["x.example"])
    first, second = text.split("\n\n")
    assert first == "https://a.example\nhttps://a.example\n" + ("long " * 4).strip()
    assert second == "B\nhttps://b.example\none\ntwo"
    assert heard.headers["x-api-key"] == "exa-abc"
    assert heard.json == {
        "query": "rome",
        "numResults": 5,
        "contents": {"text": {"maxCharacters": 20}},
        "excludeDomains": ["x.example"],
    }


def test_nothing_found_and_odd_queries() -> None:
    text, _, (heard,) = search(replies({"results": []}), query='"\n\x00é' + "q" * 10_000)
    assert text == "Nothing was found."
    assert heard.json["query"].startswith('"\n\x00é')


def test_trouble_that_passes_is_waited_out() -> None:
    busy = response(b"{}", "429 Too Many Requests", "Retry-After: 0\r\n")
    broken = response(b"{}", "503 Service Unavailable")
    good = response(msgspec.json.encode(TAVILY))
    text, metrics, heard = search(always(busy, broken, good))
    assert text.startswith("Rome")
    assert len(heard) == 3
    assert metrics["num_tool_errors"] == 0


def test_trouble_that_stays_ends_the_sample() -> None:
    with pytest.raises(FatalToolError, match=r"no answer in 2 tries \(status 500\)"):
        search(always(response(b"", "500 No")), max_retries=1)

    async def hang_up(place: Any, reader: Any, writer: Any) -> None:
        await place.hear(reader)

    with pytest.raises(FatalToolError, match="no answer in 1 tries"):
        search(hang_up, max_retries=0)
    for status in ("402 Pay", "432 Quota", "404 Not Found"):
        with pytest.raises(FatalToolError, match=f"status {status[:3]}"):
            search(always(response(b"", status)))
    with pytest.raises(FatalToolError, match="did not answer with results"):
        search(replies({"hits": []}))


def test_a_refused_query_is_told_and_a_refused_key_is_not_shown() -> None:
    with pytest.raises(ToolError, match="query is too long") as told:
        search(always(response(b'{"detail": "query is too long"}', "400 Bad Request")))
    assert not isinstance(told.value, FatalToolError)
    with pytest.raises(FatalToolError, match="MY_KEY") as refused:
        search(always(response(b'{"key": "mine"}', "401 Unauthorized")), key_variable="MY_KEY")
    assert "mine" not in str(refused.value)


def test_without_a_key_or_an_address() -> None:
    with pytest.raises(ConfigError, match="export NO_SUCH_KEY="):
        search(replies(TAVILY), key_variable="NO_SUCH_KEY")
    with pytest.raises(ConfigError, match="not an http address"):
        search(replies(TAVILY), endpoint="ftp://x")


PAGE = {"results": [{"url": "https://a.example/x", "raw_content": "All of it. " * 9}], "failed_results": []}


def opened(play: Play, url: str, tool: str = "tavily", **config: Any) -> tuple[str, list[str], list[Heard]]:
    async def main() -> tuple[str, list[str], list[Heard]]:
        async with loopback(play) as place:
            settings = {"endpoint": f"{place.url}/search", "open_pages": True, **config}
            box = make_toolbox(
                ToolSettings(modules=(tool,), overrides={tool: settings}), ToolContext(environ=KEYS)
            )
            try:
                text = await box.execute("open_page", {"url": url}, "r")
                return text, [spec.name for spec in box.specs()], place.heard
            finally:
                await box.close()

    return run(main())


def test_pages_are_opened() -> None:
    text, names, (heard,) = opened(replies(PAGE), "https://a.example/x", max_page_characters=10)
    assert (text, names) == ("All of it.", ["web_search", "open_page"])
    assert (heard.line, heard.json) == ("POST /extract HTTP/1.1", {"urls": ["https://a.example/x"]})
    text, _, (heard,) = opened(replies(EXA), "https://a.example", "exa", max_page_characters=9)
    assert (text, heard.line) == ("long long", "POST /contents HTTP/1.1")
    assert heard.json == {"urls": ["https://a.example"], "text": {"maxCharacters": 9}}


def test_a_page_that_cannot_be_opened_is_told() -> None:
    with pytest.raises(ToolError, match="cannot be opened"):
        opened(replies({"results": [], "failed_results": [{"url": "x"}]}), "x")
    with pytest.raises(ToolError, match="cannot be opened"):
        opened(replies(PAGE), "https://ads.example/1", exclude_domains=["ads.example"])


def test_results_without_excerpts() -> None:
    text, _, _ = search(replies(TAVILY), excerpts=False, exclude_domains=["ads.example"])
    assert text == "Rome\nhttps://en.example.org/rome"
