# SPDX-License-Identifier: Apache-2.0
"""The viewer over HTTP: read-only, for this machine, behind a random token in the address.

An address names runs, benchmarks and numbers of records, never a path: what is read is looked up in the catalog of the
given folders. The page may load nothing but its own files and pictures, and run nothing but its own scripts.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvicorn
from msgspec import Struct
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from newskills.base.cache import cache_folder
from newskills.base.errors import DataError, NewskillsError, ServerStartError, UnknownNameError
from newskills.base.records import Row
from newskills.view.assets import CONTENT_TYPES, read_asset
from newskills.view.filtering import filter_names, filter_records
from newskills.view.folders import Folders
from newskills.view.library import IndexedBenchmark, Library
from newskills.view.pages.benchmark import benchmark_page
from newskills.view.pages.comparison import comparison_page
from newskills.view.pages.jobs import experiment_page, jobs_page, log_page
from newskills.view.pages.load_tests import load_tests_page
from newskills.view.pages.matrix import differences_to, score_matrix
from newskills.view.pages.overview import overview_page
from newskills.view.pages.sample import media_bytes, sample_page
from newskills.view.pages.training import step_rollouts, training_page
from newskills.view.records import brief_row, raw_records, require_index
from newskills.view.search import search_records
from newskills.view.tables import encode_samples, samples_of
from newskills.view.token import token_of_user

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
MEDIA_POLICY = "default-src 'none'; sandbox"
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
MOST_ROWS = 200
"""Records of one answer."""
Answer = Callable[[Library, "Query"], Any]
Endpoint = Callable[[Request], Awaitable[Response]]


class ViewOptions(Struct, frozen=True, kw_only=True):
    """Where the page listens; port 0: any that is free. `new_token`: addresses of earlier days stop working."""

    folders: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 0
    new_token: bool = False


class Query:
    """The parameters of an address. What is missing or no number is a DataError."""

    def __init__(self, request: Request) -> None:
        self._values = request.query_params

    def text(self, name: str) -> str:
        """Return the value of this name. Raises DataError where it is missing."""
        value = self._values.get(name)
        if value is None:
            raise DataError(f"The address lacks {name}=.")
        return value

    def optional(self, name: str) -> str:
        """Return the value of this name; empty where it is missing."""
        return self._values.get(name) or ""

    def number(self, name: str) -> int:
        """Return the number of this name. Raises DataError where it is missing or no number."""
        value = self.text(name)
        if not (value.isascii() and value.isdigit() and len(value) < 16):
            raise DataError(f"{name}={value[:40]} is not a number.")
        return int(value)

    def pairs(self, name: str) -> list[list[int]]:
        """Parse `0:12,0:13` as [[0, 12], [0, 13]]. Raises DataError for anything else."""
        groups = [part.split(":") for part in self.text(name).split(",")[:MOST_ROWS] if part]
        if any(
            len(group) != 2 or not all(part.isascii() and part.isdigit() for part in group) for group in groups
        ):
            raise DataError(f"{name}= is a list of files and records, such as 0:12,0:13.")
        return [[int(part) for part in group] for group in groups]


def _state_answer(library: Library, query: Query) -> Row:
    return {"state": library.catalog().state, "indexing": library.indexing}


def _indexed_benchmark(library: Library, query: Query) -> IndexedBenchmark:
    return library.indexed(query.text("run"), query.text("benchmark"))


def _row_briefs(library: Library, query: Query) -> list[Row]:
    indexes = _indexed_benchmark(library, query).indexes
    return [brief_row(require_index(indexes, file), number) for file, number in query.pairs("rows")]


def _raw_answer(library: Library, query: Query) -> list[str | None]:
    return raw_records(_indexed_benchmark(library, query).indexes, query.pairs("rows"))


def _in_turns(answer: Callable[[Folders, IndexedBenchmark, str, int, int], Row]) -> Answer:
    """Return a page that looks for `q` in turns, each from `file` and `offset` on."""

    def page(library: Library, query: Query) -> Row:
        where = query.number("file"), query.number("offset")
        return answer(library.folders, _indexed_benchmark(library, query), query.text("q"), *where)

    return page


def _filter_names(library: Library, query: Query) -> list[Row]:
    return filter_names(library.folders, _indexed_benchmark(library, query))


def _sample_answer(library: Library, query: Query) -> Row:
    where = (
        query.text("run"),
        query.text("benchmark"),
        query.number("file"),
        query.number("number"),
    )
    return sample_page(library, *where)


def _columns_answer(library: Library, query: Query) -> bytes:
    indexed = _indexed_benchmark(library, query)
    return encode_samples(library.folders, indexed, samples_of(indexed))


PAGES: dict[str, Answer] = {
    "state": _state_answer,
    "matrix": lambda library, query: score_matrix(library),
    "differences": lambda library, query: differences_to(
        library, query.text("baseline"), query.text("runs").split("|")[:MOST_ROWS]
    ),
    "overview": lambda library, query: overview_page(
        library, run=query.optional("run"), benchmark=query.optional("benchmark")
    ),
    "benchmark": lambda library, query: benchmark_page(library, query.text("run"), query.text("benchmark")),
    "columns": _columns_answer,
    "rows": _row_briefs,
    "records": _raw_answer,
    "search": _in_turns(search_records),
    "filter": _in_turns(filter_records),
    "filter_names": _filter_names,
    "sample": _sample_answer,
    "comparison": lambda library, query: comparison_page(
        library, query.text("first"), query.text("second"), query.text("benchmark")
    ),
    "training": lambda library, query: training_page(library, query.text("ids").split("|")),
    "rollouts": lambda library, query: step_rollouts(library, query.text("id"), query.number("step")),
    "load_tests": lambda library, query: load_tests_page(library),
    "jobs": lambda library, query: jobs_page(),
    "experiment": lambda library, query: experiment_page(query.text("name")),
    "log": lambda library, query: log_page(query.text("name"), query.text("job"), query.text("command")),
}


def make_application(library: Library, token: str, host: str) -> Starlette:
    """Make the application; all addresses begin with `/<token>/`, and nothing else is answered."""
    endpoints: dict[str, Endpoint] = {
        "": _file_endpoint("index.html"),
        "static/{name:path}": _static_response,
        "api/media": _media_endpoint(library),
        **{f"api/{name}": _page_endpoint(library, page) for name, page in PAGES.items()},
    }
    routes = [
        Route(f"/{token}/{path}", _guard_endpoint(endpoint, host), methods=["GET"])
        for path, endpoint in endpoints.items()
    ]
    return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found})


def _guard_endpoint(endpoint: Endpoint, host: str) -> Endpoint:
    """Guard an endpoint: other sites that a browser has open cannot reach it by another name for this machine."""

    async def answer(request: Request) -> Response:
        name = (urlsplit(f"//{request.headers.get('host', '')}").hostname or "").lower()
        open_to_all = host in ("", "0.0.0.0", "::")  # noqa: S104 - compared
        if not open_to_all and name not in {"localhost", "127.0.0.1", "::1", host}:
            return _json_response({"error": "This page is for the machine that it runs on."}, 403)
        return await endpoint(request)

    return answer


def _page_endpoint(library: Library, page: Answer) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            result = await run_in_threadpool(page, library, Query(request))
        except NewskillsError as error:
            status = 404 if isinstance(error, UnknownNameError) else 400
            return _json_response({"error": str(error)}, status)
        except OSError as error:
            return _json_response({"error": f"The files cannot be read: {error.strerror}."}, 400)
        if isinstance(result, bytes):
            return Response(
                result, media_type="application/octet-stream", headers=_response_headers(CONTENT_POLICY)
            )
        return _json_response(result)

    return answer


def _media_endpoint(library: Library) -> Endpoint:
    def find(query: Query) -> tuple[bytes, str]:
        where = (
            query.text("run"),
            query.text("benchmark"),
            query.number("file"),
            query.number("number"),
        )
        return media_bytes(library, *where, query.number("item"))

    async def answer(request: Request) -> Response:
        try:
            content, kind = await run_in_threadpool(find, Query(request))
        except NewskillsError as error:
            return _json_response({"error": str(error)}, 404)
        return Response(content, media_type=kind, headers=_response_headers(MEDIA_POLICY))

    return answer


def _file_endpoint(name: str) -> Endpoint:
    async def answer(request: Request) -> Response:
        content = read_asset(name)
        if content is None:
            return await _not_found(request, None)
        return Response(
            content, media_type=CONTENT_TYPES[name.rpartition(".")[2]], headers=_response_headers(CONTENT_POLICY)
        )

    return answer


async def _static_response(request: Request) -> Response:
    return await _file_endpoint(request.path_params["name"])(request)


async def _not_found(request: Request, error: Exception | None) -> Response:
    return _json_response(
        {"error": "There is nothing at this address. `ns view` prints the one that is meant."}, 404
    )


def _json_response(value: object, status: int = 200) -> Response:
    content = msgspec.json.encode(value)
    return Response(content, status, media_type="application/json", headers=_response_headers(CONTENT_POLICY))


def _response_headers(policy: str) -> dict[str, str]:
    return {**SECURITY_HEADERS, "Content-Security-Policy": policy}


@contextlib.contextmanager
def serve_viewer(options: ViewOptions) -> Iterator[str]:
    """Serve the viewer inside the `with`, at the address that is yielded. Raises DataError, ServerStartError."""
    library = Library(options.folders)
    token = token_of_user(cache_folder() / "view", new=options.new_token)
    listening = _open_listener(options)
    config = uvicorn.Config(
        make_application(library, token, options.host),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="newskills-view", daemon=True)
    thread.start()
    try:
        host = f"[{options.host}]" if ":" in options.host else options.host
        yield f"http://{host}:{listening.getsockname()[1]}/{token}/"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        library.close()


def _open_listener(options: ViewOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((options.host, options.port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise ServerStartError(
            f"The viewer cannot listen at {options.host}:{options.port}: {error.strerror}.",
            hint="Another port: --port=7880; any free one: --port=0.",
        ) from error
    return made
