# SPDX-License-Identifier: Apache-2.0
"""`web_search`, and `open_page` where it is wanted: tools over the JSON APIs of search engines.

The key comes from the environment only.

Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search (and extract)
Exa: https://exa.ai/docs/reference/search (and get-contents)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, FatalToolError, ToolError
from newskills.base.protocols import ToolSpec
from newskills.base.records import Row
from newskills.tools.patient import PatientClient
from newskills.tools.provider import ToolContext, ToolProvider

NAME = "web_search"
PAGE = "open_page"


class SearchConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++tool_overrides.TavilySearchTool.*`, `++tool_overrides.ExaTool.*`; empty texts: the engine's own."""

    endpoint: Annotated[str, Meta(description="address of the search API")] = ""
    key_variable: Annotated[str, Meta(description="environment variable with the API key")] = ""
    max_results: Annotated[int, Meta(ge=1, le=20, description="results per search")] = 5
    max_characters: Annotated[int, Meta(ge=1, description="longest text of each result in characters")] = 2000
    excerpts: Annotated[bool, Meta(description="false: show only titles and addresses of results")] = True
    open_pages: Annotated[
        bool, Meta(description="add a second tool, open_page, that returns the text of a page")
    ] = False
    max_page_characters: Annotated[int, Meta(ge=1, description="longest text of an opened page in characters")] = (
        50_000
    )
    exclude_domains: Annotated[tuple[str, ...], Meta(description="domains whose pages are never shown")] = ()
    timeout: Annotated[float, Meta(gt=0, description="time limit of a search in seconds")] = 30.0
    max_retries: Annotated[int, Meta(ge=0, description="retries after 429, 5xx and lost connections")] = 4


class Hit(Struct, kw_only=True):
    """One result, whatever the engine calls its parts: `content` and, of pages, `raw_content` (Tavily), `text` or
    `highlights` (Exa)."""

    url: str = ""
    title: str | None = None
    content: str | None = None
    raw_content: str | None = None
    text: str | None = None
    highlights: list[str] = []

    @property
    def excerpt(self) -> str:
        return self.content or self.text or "\n".join(self.highlights)


class SearchResponse(Struct):
    results: list[Hit]


class SearchApi(Struct, frozen=True, kw_only=True):
    """How a search API is asked: its addresses, its key, and the body for a query.

    `pages`: path of the service that gives the text of pages, on the host of `endpoint`.
    """

    endpoint: str
    pages: str
    key_variable: str
    key_header: str
    key_prefix: str
    body: Callable[[str, SearchConfig], Row]
    page_body: Callable[[str, SearchConfig], Row]


def _tavily_body(query: str, config: SearchConfig) -> Row:
    body: Row = {"query": query, "max_results": config.max_results}
    return body | ({"exclude_domains": list(config.exclude_domains)} if config.exclude_domains else {})


def _exa_body(query: str, config: SearchConfig) -> Row:
    text = {"maxCharacters": config.max_characters}
    body: Row = {"query": query, "numResults": config.max_results, "contents": {"text": text}}
    return body | ({"excludeDomains": list(config.exclude_domains)} if config.exclude_domains else {})


def _tavily_page(url: str, config: SearchConfig) -> Row:
    return {"urls": [url]}


def _exa_page(url: str, config: SearchConfig) -> Row:
    return {"urls": [url], "text": {"maxCharacters": config.max_page_characters}}


class WebSearch(ToolProvider):
    """Searches by one `engine`. A query that the API refuses is told to the model; an API that cannot be used
    (key, quota, no answer after the retries) ends the sample unscored: it says nothing about the model.
    """

    Config = SearchConfig
    engine: ClassVar[SearchApi]

    def __init__(self, config: SearchConfig, context: ToolContext) -> None:
        """Keep the settings. Raises ConfigError for an endpoint that is not an http address."""
        self._config = config
        self._url = config.endpoint or self.engine.endpoint
        if urlsplit(self._url).scheme not in ("http", "https"):
            raise ConfigError(f"The search endpoint {self._url} is not an http address.")
        self._variable = config.key_variable or self.engine.key_variable
        self._environ = context.environ
        self._client: PatientClient | None = None
        self._searches: dict[str, int] = {}
        self._decoder = msgspec.json.Decoder(SearchResponse)

    async def specs(self) -> Sequence[ToolSpec]:
        """Return the search tool and, where pages may be opened, that for pages. Raises ConfigError without a key:
        before the first request, not at the first search."""
        self._key()
        excerpts = ", addresses and excerpts" if self._config.excerpts else " and addresses"
        all_specs = [
            _tool_spec(
                NAME, f"Searches the web; returns titles{excerpts} of the best pages.", "query", "what to look for"
            )
        ]
        if self._config.open_pages:
            all_specs.append(_tool_spec(PAGE, "Returns the text of a page of the web.", "url", "its address"))
        return all_specs

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        if name == PAGE:
            return await self._page(arguments["url"])
        self._searches[request_id] = self._searches.get(request_id, 0) + 1
        hits = await self._hits(self._path, self.engine.body(arguments["query"], self._config))
        shown = [hit for hit in hits if not _is_excluded(hit.url, self._config.exclude_domains)]
        return "\n\n".join(map(self._format_hit, shown)) or "Nothing was found."

    async def _page(self, url: str) -> str:
        if _is_excluded(url, self._config.exclude_domains):
            raise ToolError(f"The page {url[:200]} cannot be opened.")
        hits = await self._hits(self.engine.pages, self.engine.page_body(url, self._config))
        text = next((hit.raw_content or hit.excerpt for hit in hits), "")
        if not text:
            raise ToolError(f"The page {url[:200]} cannot be opened, or has no text.")
        return text[: self._config.max_page_characters]

    async def _hits(self, path: str, body: Row) -> list[Hit]:
        response = await self._api().ask(path, msgspec.json.encode(body))
        try:
            return self._decoder.decode(response.body).results
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FatalToolError(f"The search API did not answer with results: {error}.") from error

    async def release(self, request_id: str) -> Row:
        count = self._searches.pop(request_id, 0)
        if count:
            return {"num_searches": count}
        return {}

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    def _format_hit(self, hit: Hit) -> str:
        excerpt = hit.excerpt[: self._config.max_characters] if self._config.excerpts else ""
        return f"{hit.title or hit.url}\n{hit.url}\n{excerpt}".strip()

    def _key(self) -> str:
        if not (key := self._environ.get(self._variable)):
            raise ConfigError(
                f"The tool {NAME} needs an API key, but {self._variable} is not set.",
                hint=f"Run: export {self._variable}=…",
            )
        return key

    @property
    def _path(self) -> str:
        parts = urlsplit(self._url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def _api(self) -> PatientClient:
        if self._client is None:
            header = (self.engine.key_header, f"{self.engine.key_prefix}{self._key()}")
            self._client = PatientClient(
                self._url,
                self._environ,
                name="The search API",
                timeout=self._config.timeout,
                max_retries=self._config.max_retries,
                key_name=self._variable,
                headers=(header,),
            )
        return self._client


class TavilySearchTool(WebSearch):
    """Tavily, or any API of its shape."""

    engine = SearchApi(
        endpoint="https://api.tavily.com/search",
        pages="/extract",
        key_variable="TAVILY_API_KEY",
        key_header="Authorization",
        key_prefix="Bearer ",
        body=_tavily_body,
        page_body=_tavily_page,
    )


class ExaTool(WebSearch):
    """Exa, or any API of its shape."""

    engine = SearchApi(
        endpoint="https://api.exa.ai/search",
        pages="/contents",
        key_variable="EXA_API_KEY",
        key_header="x-api-key",
        key_prefix="",
        body=_exa_body,
        page_body=_exa_page,
    )


def _tool_spec(name: str, description: str, argument: str, meaning: str) -> ToolSpec:
    schema: Row = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": meaning}},
        "required": [argument],
    }
    return ToolSpec(name=name, description=description, input_schema=schema)


def _is_excluded(url: str, domains: Sequence[str]) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return bool(domains)
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
