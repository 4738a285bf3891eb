# SPDX-License-Identifier: Apache-2.0
"""Papers and articles against a real HTTP server that plays arXiv (Atom) and MediaWiki (JSON) by their manuals."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.base.http._loopback import Heard, Play, always, loopback, replies, response, run

from newskills.base.errors import ConfigError, FatalToolError, ToolError
from newskills.tools import REFERENCE, TOOLS
from newskills.tools.provider import ToolContext
from newskills.tools.toolbox import ToolSettings, make_toolbox

ENTRY = """
  <entry>
    <id>http://arxiv.org/abs/hep-ex/0307015v1</id>
    <updated>2003-07-07T13:46:39-04:00</updated>
    <published>2003-07-07T13:46:39-04:00</published>
    <title>Multi-Electron Production at High Transverse Momenta in ep Collisions at
  HERA</title>
    <summary>  Multi-electron production is studied &amp; measured
 at high mass.
    </summary>
    AUTHORS
    <arxiv:comment xmlns:arxiv="http://arxiv.org/schemas/atom">23 pages, 8 figures and 4 tables</arxiv:comment>
    <link href="http://arxiv.org/abs/hep-ex/0307015v1" rel="alternate" type="text/html"/>
    <link title="pdf" href="http://arxiv.org/pdf/hep-ex/0307015v1" rel="related" type="application/pdf"/>
    <arxiv:primary_category xmlns:arxiv="http://arxiv.org/schemas/atom" term="hep-ex"/>
    <category term="hep-ex" scheme="http://arxiv.org/schemas/atom"/>
    <category term="nucl-ex" scheme="http://arxiv.org/schemas/atom"/>
  </entry>"""
ERROR = """
  <entry>
    <id>http://arxiv.org/api/errors#incorrect_id_format_for_1234.1234</id>
    <title>Error</title>
    <summary>incorrect id format for 1234.1234</summary>
    <author><name>arXiv api core</name></author>
  </entry>"""


def feed(*entries: str, authors: int = 1) -> bytes:
    names = "".join(f"<author><name>Author {number}</name></author>" for number in range(authors))
    head = '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
    space = "http://a9.com/-/spec/opensearch/1.1/"
    total = f'<opensearch:totalResults xmlns:opensearch="{space}">1000</opensearch:totalResults>'
    return response("".join([head, total, *entries, "</feed>"]).replace("AUTHORS", names).encode())


PAGE = {
    "batchcomplete": True,
    "query": {
        "pages": [
            {
                "pageid": 736,
                "ns": 0,
                "title": "Albert Einstein",
                "extract": "He was a physicist.\n\n\n== Life ==\nBorn in Ulm.\n\n\n=== Childhood ===\nA compass.\n\n\n"
                "== Work ==\nRelativity.",
                "fullurl": "https://en.wikipedia.org/wiki/Albert_Einstein",
            }
        ]
    },
}
HITS = {
    "batchcomplete": True,
    "query": {
        "searchinfo": {"totalhits": 5060},
        "search": [
            {"ns": 0, "title": "Craig", "pageid": 1, "snippet": 'a <span class="searchmatch">noon</span> &amp; b'}
        ],
    },
}
MISSING = {"batchcomplete": True, "query": {"pages": [{"ns": 0, "title": "Eintsein", "missing": True}]}}


def use(play: Play, tool: str, *calls: tuple[str, dict[str, Any]], **config: Any) -> tuple[list[str], list[Heard]]:
    """What a model is told, and what the API was asked."""

    async def main() -> tuple[list[str], list[Heard]]:
        async with loopback(play) as place:
            settings = {"endpoint": f"{place.url}/w/api", "interval": 0, **config}
            box = make_toolbox(ToolSettings(modules=(tool,), overrides={tool: settings}), ToolContext())
            try:
                return [await box.execute(name, arguments, "r") for name, arguments in calls], place.heard
            finally:
                await box.close()

    return run(main())


def query(heard: Heard) -> dict[str, str]:
    parts = urlsplit(heard.line.split()[1])
    assert parts.path == "/w/api"
    return {name: values[0] for name, values in parse_qs(parts.query).items()}


def test_papers_are_listed_in_short() -> None:
    [text], [heard] = use(
        always(feed(ENTRY, ENTRY, authors=7)), "arxiv", ("arxiv-search", {"query": "ti:é AND x"})
    )
    first, second = text.split("\n\n")
    assert first == second
    assert first.splitlines() == [
        "Multi-Electron Production at High Transverse Momenta in ep Collisions at HERA",
        "http://arxiv.org/abs/hep-ex/0307015v1, 2003-07-07",
        "Author 0, Author 1, Author 2, Author 3, Author 4 and others",
        "Multi-electron production is studied & measured at high mass.",
    ]
    assert heard.line.startswith("GET ")
    assert heard.headers["user-agent"].startswith("newskills/")
    assert query(heard) == {
        "search_query": "ti:é AND x",
        "start": "0",
        "max_results": "3",
        "sortBy": "relevance",
        "sortOrder": "descending",
    }


def test_a_paper_is_shown_whole() -> None:
    [text], [heard] = use(always(feed(ENTRY)), "arxiv", ("arxiv-get", {"paper_id": "hep-ex/0307015"}))
    assert (
        "Categories: hep-ex, nucl-ex\nURL: http://arxiv.org/abs/hep-ex/0307015v1\nPDF: http://arxiv.org/pdf/"
        in text
    )
    assert query(heard) == {"id_list": "hep-ex/0307015", "max_results": "1"}


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (feed(), ToolError, "arXiv has no paper '1234.1234'"),
        (feed(ERROR), ToolError, "incorrect id format for 1234.1234"),
        (response(b"<html><br></html>"), FatalToolError, "did not answer with a feed"),
        (response(b'<!DOCTYPE x [<!ENTITY a "b">]><feed>&a;</feed>'), FatalToolError, "declarations"),
        (response(b"bad", "400 Bad Request"), ToolError, "refuses this query: bad"),
        (response(b"", "403 Forbidden"), FatalToolError, "status 403"),
    ],
)
def test_what_arxiv_refuses_is_told(answer: bytes, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        use(always(answer), "arxiv", ("arxiv-get", {"paper_id": "1234.1234"}))


def test_requests_keep_the_interval_and_answers_are_kept() -> None:
    ask = ("arxiv-search", {"query": "a"})
    began = time.monotonic()
    texts, heard = use(always(feed(ENTRY)), "arxiv", ask, ask, ("arxiv-search", {"query": "b"}), interval=0.3)
    assert time.monotonic() - began >= 0.3
    assert len(heard) == 2
    assert texts[0] == texts[1]


def test_a_busy_api_is_asked_again() -> None:
    busy = response(b"", "503 Service Unavailable", "Retry-After: 0\r\n")
    [text], heard = use(always(busy, feed(ENTRY)), "arxiv", ("arxiv-search", {"query": "a"}))
    assert text.startswith("Multi-Electron")
    assert len(heard) == 2
    with pytest.raises(FatalToolError, match="arXiv gave no answer in 1 tries"):
        use(always(busy), "arxiv", ("arxiv-search", {"query": "a"}), max_retries=0)


def test_articles() -> None:
    texts, heard = use(
        replies(HITS, PAGE),
        "wikipedia",
        ("wikipedia-search", {"query": "noon"}),
        ("wikipedia-page", {"title": "albert einstein"}),
        ("wikipedia-section", {"title": "albert einstein", "section": "life"}),
    )
    assert texts[0] == "Craig\na noon & b"
    assert texts[1].startswith(
        "Albert Einstein\nhttps://en.wikipedia.org/wiki/Albert_Einstein\n\nHe was a physicist."
    )
    assert texts[2].endswith("\n\n== Life ==\nBorn in Ulm.\n\n\n=== Childhood ===\nA compass.")
    assert [query(item).get("prop") for item in heard] == [None, "extracts|info"]
    assert query(heard[0])["srsearch"] == "noon"
    assert (query(heard[0])["action"], query(heard[0])["formatversion"]) == ("query", "2")


def test_long_articles_name_what_follows() -> None:
    [text], _ = use(replies(PAGE), "wikipedia", ("wikipedia-page", {"title": "x"}), max_characters=40)
    assert text.endswith("…\n(cut; sections that follow: Childhood, Work)")


@pytest.mark.parametrize(
    ("play", "call", "words"),
    [
        (
            replies(MISSING, HITS),
            ("wikipedia-page", {"title": "Eintsein"}),
            "no article 'Eintsein'.*mention it: Craig",
        ),
        (replies(PAGE), ("wikipedia-section", {"title": "x", "section": "Death"}), "has: Life, Childhood, Work"),
        (
            replies({"error": {"code": "missingparam", "info": 'The "srsearch" parameter must be set.'}}),
            ("wikipedia-search", {"query": ""}),
            "must be set",
        ),
    ],
)
def test_what_wikipedia_does_not_have_is_told(play: Play, call: tuple[str, dict[str, Any]], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        use(play, "wikipedia", call)


def test_names_and_endpoints() -> None:
    theirs = "nemo_skills.mcp.servers"
    assert REFERENCE[f"{theirs}.arxiv_tool::ArxivSearchTool"] == "arxiv"
    assert REFERENCE[f"{theirs}.web.wikipedia_tool::WikipediaSearchTool"] == "wikipedia"
    for name in set(REFERENCE.values()):
        assert TOOLS.get(name)
    with pytest.raises(ConfigError, match="not an http address"):
        use(replies(PAGE), "wikipedia", ("wikipedia-page", {"title": "x"}), endpoint="file:///etc/passwd")
