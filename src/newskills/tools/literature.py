# SPDX-License-Identifier: Apache-2.0
"""Papers of arXiv and articles of Wikipedia as tools, by the public APIs, without a key.

Names of tools and arguments are those of NeMo-Skills (`arxiv_tool.py`, `wikipedia_tool.py`).

arXiv: https://info.arxiv.org/help/api/user-manual.html (Atom; one request in three seconds)
Wikipedia: https://www.mediawiki.org/wiki/API:Search and https://www.mediawiki.org/wiki/Extension:TextExtracts
"""

from __future__ import annotations

import asyncio
import html
import re
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, FatalToolError, ToolError
from newskills.base.http.blocking import USER_AGENT
from newskills.base.protocols import ToolSpec
from newskills.base.records import Row
from newskills.tools.patient import PatientClient
from newskills.tools.provider import ToolContext, ToolProvider

ARXIV = "https://export.arxiv.org/api/query"
WIKIPEDIA = "https://en.wikipedia.org/w/api.php"
MOST_KEPT = 512
"""Answers that are kept: models ask again."""
MOST_RESULTS = 10
MOST_AUTHORS = 5
ABSTRACT = 500
"""Characters of an abstract in a list."""
ATOM = "{http://www.w3.org/2005/Atom}"
HEADING = re.compile(r"^(=+) *(.+?) *\1$", re.MULTILINE)
TAG = re.compile(r"<[^>]+>")


class LiteratureConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++tool_overrides.ArxivSearchTool.*`, `++tool_overrides.WikipediaSearchTool.*`."""

    endpoint: Annotated[str, Meta(description="address of the API; empty: the public one")] = ""
    interval: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="seconds between two requests; null = as the public API asks"),
    ] = None
    max_characters: Annotated[int, Meta(ge=1, description="longest text of an article in characters")] = 4000
    timeout: Annotated[float, Meta(gt=0, description="time limit of a request in seconds")] = 20.0
    max_retries: Annotated[int, Meta(ge=0, description="retries after 429, 5xx and lost connections")] = 4


class LiteratureTool(ToolProvider):
    """Tools over one public API, which is asked one request after the other; answers are kept."""

    Config = LiteratureConfig
    api: ClassVar[str]
    usual_endpoint: ClassVar[str]
    usual_interval: ClassVar[float]
    tools: ClassVar[Sequence[ToolSpec]]

    def __init__(self, config: LiteratureConfig, context: ToolContext) -> None:
        """Keep the settings. Raises ConfigError for an endpoint that is not an http address."""
        self._config, self._environ = config, context.environ
        self._url = config.endpoint or self.usual_endpoint
        if urlsplit(self._url).scheme not in ("http", "https"):
            raise ConfigError(f"The endpoint {self._url} is not an http address.")
        self._interval = self.usual_interval if config.interval is None else config.interval
        self._client: PatientClient | None = None
        self._turn = asyncio.Lock()
        self._last = 0.0
        self._kept: dict[str, bytes] = {}

    async def specs(self) -> Sequence[ToolSpec]:
        return self.tools

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _get(self, query: Mapping[str, Any]) -> bytes:
        """Return the answer to a query. Raises ToolError, FatalToolError."""
        words = urlencode(query, errors="replace")
        if words not in self._kept:
            async with self._turn:
                if words not in self._kept:
                    await asyncio.sleep(max(0.0, self._last + self._interval - time.monotonic()))
                    answer = await self._fetch(words)
                    self._last = time.monotonic()
                    if len(self._kept) >= MOST_KEPT:
                        self._kept.pop(next(iter(self._kept)))
                    self._kept[words] = answer
        return self._kept[words]

    async def _fetch(self, words: str) -> bytes:
        if self._client is None:
            self._client = PatientClient(
                self._url,
                self._environ,
                name=self.api,
                timeout=self._config.timeout,
                max_retries=self._config.max_retries,
                headers=(("User-Agent", USER_AGENT),),
            )
        return (await self._client.ask(f"{urlsplit(self._url).path}?{words}")).body


class ArxivSearchTool(LiteratureTool):
    """Papers of arXiv."""

    api = "arXiv"
    usual_endpoint = ARXIV
    usual_interval = 3.0

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        if name == "arxiv-get":
            return await self._paper(arguments["paper_id"].strip())
        count = min(MOST_RESULTS, arguments.get("max_results", 3))
        words = {"search_query": arguments["query"], "start": 0, "max_results": count}
        entries = _feed_entries(await self._get({**words, "sortBy": "relevance", "sortOrder": "descending"}))
        return "\n\n".join(map(_in_short, entries)) or "No paper matches this query."

    async def _paper(self, identity: str) -> str:
        entries = _feed_entries(await self._get({"id_list": identity, "max_results": 1}))
        if not entries:
            raise ToolError(f"arXiv has no paper '{identity[:100]}'.")
        entry = entries[0]
        pdf = [link.get("href") for link in entry.iter(f"{ATOM}link") if link.get("title") == "pdf"]
        lines = [
            _entry_text(entry, "title"),
            f"Authors: {', '.join(_author_names(entry))}",
            f"Published: {_entry_text(entry, 'published')[:10]}, updated: {_entry_text(entry, 'updated')[:10]}",
            f"Categories: {', '.join(str(item.get('term')) for item in entry.iter(f'{ATOM}category'))}",
            f"URL: {_entry_text(entry, 'id')}",
            *(f"PDF: {address}" for address in pdf),
            f"\n{_entry_text(entry, 'summary')}",
        ]
        return "\n".join(lines)


def _tool_spec(name: str, description: str, required: Sequence[str], **properties: Row) -> ToolSpec:
    schema: Row = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, description=description, input_schema=schema)


def _string_schema(meaning: str) -> Row:
    return {"type": "string", "description": meaning}


ArxivSearchTool.tools = (
    _tool_spec(
        "arxiv-search",
        "Search arXiv for papers; returns titles, authors, addresses and abstracts.",
        ["query"],
        query=_string_schema(
            "words, or fields of arXiv's syntax: ti:, au:, abs:, cat:, joined by AND, OR, ANDNOT"
        ),
        max_results={"type": "integer", "minimum": 1, "description": "number of papers", "default": 3},
    ),
    _tool_spec(
        "arxiv-get",
        "Return a paper of arXiv: title, authors, dates, categories and the whole abstract.",
        ["paper_id"],
        paper_id=_string_schema("identity of the paper: 2301.07041, 2301.07041v1 or hep-th/9901001"),
    ),
)


class WikipediaSearchTool(LiteratureTool):
    """Articles of Wikipedia, or of another wiki of MediaWiki."""

    api = "Wikipedia"
    usual_endpoint = WIKIPEDIA
    usual_interval = 0.0
    tools = (
        _tool_spec(
            "wikipedia-search",
            "Search Wikipedia for articles; returns titles and excerpts.",
            ["query"],
            query=_string_schema("what to look for"),
            num_results={"type": "integer", "minimum": 1, "description": "number of articles", "default": 3},
        ),
        _tool_spec(
            "wikipedia-page",
            "Return the text of an article of Wikipedia, from its beginning.",
            ["title"],
            title=_string_schema("title of the article"),
        ),
        _tool_spec(
            "wikipedia-section",
            "Return a section of an article of Wikipedia.",
            ["title", "section"],
            title=_string_schema("title of the article"),
            section=_string_schema("heading of the section"),
        ),
    )

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        if name == "wikipedia-search":
            count = min(MOST_RESULTS, arguments.get("num_results", 3))
            answer = await self._query({"list": "search", "srsearch": arguments["query"], "srlimit": count})
            return "\n\n".join(map(_format_hit, answer.get("search") or ())) or "No article matches this query."
        page = await self._page(arguments["title"])
        text = page.get("extract") or ""
        if name == "wikipedia-section":
            text = _find_section(text, arguments["section"])
        most = self._config.max_characters
        if len(text) > most:
            headings = ", ".join(match[2] for match in HEADING.finditer(text) if match.start() > most)
            text = f"{text[:most]}…\n(cut; sections that follow: {headings or 'none'})"
        return f"{page.get('title')}\n{page.get('fullurl') or ''}\n\n{text}"

    async def _page(self, title: str) -> Row:
        """Return a page with its text. Raises ToolError where there is none, with titles that are alike."""
        query = {"prop": "extracts|info", "inprop": "url", "explaintext": 1, "redirects": 1, "titles": title}
        pages = (await self._query(query)).get("pages") or [{}]
        if "pageid" in pages[0]:
            page: Row = pages[0]
            return page
        answer = await self._query({"list": "search", "srsearch": title, "srlimit": MOST_AUTHORS})
        alike = ", ".join(str(hit.get("title")) for hit in answer.get("search") or ())
        raise ToolError(f"Wikipedia has no article '{title[:200]}'. Articles that mention it: {alike or 'none'}.")

    async def _query(self, query: Row) -> Row:
        """Return the result of a query. Raises ToolError for what the wiki refuses."""
        data = await self._get({"action": "query", "format": "json", "formatversion": 2, **query})
        try:
            answer = msgspec.json.decode(data, type=Row)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FatalToolError(f"Wikipedia did not answer with JSON: {error}.") from error
        if isinstance(failure := answer.get("error"), dict):
            raise ToolError(f"Wikipedia refuses this query: {failure.get('info')}")
        result: Row = answer.get("query") or {}
        return result


def _feed_entries(feed: bytes) -> list[ElementTree.Element]:
    """Return the papers of a feed. Raises ToolError for an error that stands in it, FatalToolError for no feed."""
    try:
        if b"<!" in feed.replace(b"<![CDATA[", b""):
            raise FatalToolError("arXiv's answer has declarations, which no feed needs.")
        root = ElementTree.fromstring(feed)  # noqa: S314 - declarations of entities were refused above
    except ElementTree.ParseError as error:
        raise FatalToolError(f"arXiv did not answer with a feed: {error}.") from error
    entries = list(root.iter(f"{ATOM}entry"))
    for entry in entries:
        if "/api/errors" in _entry_text(entry, "id"):
            raise ToolError(f"arXiv refuses this query: {_entry_text(entry, 'summary')}")
    return [entry for entry in entries if _entry_text(entry, "title")]


def _entry_text(entry: ElementTree.Element, name: str) -> str:
    return " ".join((entry.findtext(f"{ATOM}{name}") or "").split())


def _author_names(entry: ElementTree.Element) -> list[str]:
    return [_entry_text(author, "name") for author in entry.iter(f"{ATOM}author")]


def _in_short(entry: ElementTree.Element) -> str:
    authors, abstract = _author_names(entry), _entry_text(entry, "summary")
    more = " and others" if len(authors) > MOST_AUTHORS else ""
    cut = "…" if len(abstract) > ABSTRACT else ""
    return (
        f"{_entry_text(entry, 'title')}\n{_entry_text(entry, 'id')}, {_entry_text(entry, 'published')[:10]}\n"
        f"{', '.join(authors[:MOST_AUTHORS])}{more}\n{abstract[:ABSTRACT]}{cut}"
    )


def _format_hit(hit: Row) -> str:
    return f"{hit.get('title')}\n{html.unescape(TAG.sub('', str(hit.get('snippet') or ''))).strip()}"


def _find_section(text: str, wanted: str) -> str:
    """Return a section with what is below it. Raises ToolError, with the headings, where there is none."""
    headings = list(HEADING.finditer(text))
    for number, match in enumerate(headings):
        if match[2].casefold() == wanted.strip().casefold():
            ends = [later.start() for later in headings[number + 1 :] if len(later[1]) <= len(match[1])]
            return text[match.start() : min(ends, default=len(text))].strip()
    names = ", ".join(match[2] for match in headings)
    raise ToolError(f"The article has no section '{wanted[:200]}'. It has: {names or 'none'}.")
