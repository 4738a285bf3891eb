# SPDX-License-Identifier: Apache-2.0
"""Addresses and keys of programs: which protocol, which operation, which task."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Literal
from urllib.parse import parse_qs, unquote

from msgspec import Struct

from newskills.base.http.messages import HttpRequest
from newskills.gateway.form import GatewayProblem, ProgramProtocol
from newskills.gateway.protocols.chat import ChatProtocol
from newskills.gateway.protocols.gemini import GeminiProtocol
from newskills.gateway.protocols.messages import MessagesProtocol
from newskills.gateway.protocols.responses import ResponsesProtocol
from newskills.gateway.tasks import GatewayTask

Operation = Literal["reply", "count", "models"]
CHAT, RESPONSES, MESSAGES, GEMINI = ChatProtocol(), ResponsesProtocol(), MessagesProtocol(), GeminiProtocol()
PATHS: dict[str, tuple[ProgramProtocol, Operation]] = {
    "/messages/count_tokens": (MESSAGES, "count"),
    "/responses/input_tokens": (RESPONSES, "count"),
    "/chat/completions": (CHAT, "reply"),
    "/responses": (RESPONSES, "reply"),
    "/messages": (MESSAGES, "reply"),
    "/models": (CHAT, "models"),
}
METHODS: dict[str, tuple[Operation, bool]] = {
    "generateContent": ("reply", False),
    "streamGenerateContent": ("reply", True),
    "countTokens": ("count", False),
}
"""Gemini's operations, and whether the reply is streamed."""
VERSIONS = frozenset({"v1", "v1beta", "v1alpha"})
KEYS = ("x-api-key", "x-goog-api-key", "api-key")
IDENTITY = "x-session-id"
"""Header by which programs of other projects name their task."""
MOST_TASKS = 10_000
LONGEST_NAME = 64


class Route(Struct, frozen=True, kw_only=True):
    """`prefix`: what stands before the protocol's own path; `model`, `stream`: where the address says them."""

    prefix: str
    protocol: ProgramProtocol
    operation: Operation
    model: str = ""
    stream: bool = False


def route_of(request: HttpRequest) -> Route | None:
    """Return what a request's address asks for; None: nothing that is served.

    Raises nothing: `/NAME/v1/messages`, `/v1/models/M:generateContent`, `/chat/completions`.
    """
    path = request.path.rstrip("/")
    head, colon, method = path.rpartition(":")
    if colon and method in METHODS:
        before, _, model = head.rpartition("/models/")
        operation, stream = METHODS[method]
        prefix = _path_prefix(before)
        if prefix is None or not model:
            return None
        return Route(prefix=prefix, protocol=GEMINI, operation=operation, model=unquote(model), stream=stream)
    for end, (protocol, operation) in PATHS.items():
        if path.endswith(end):
            prefix = _path_prefix(path[: -len(end)])
            if prefix is None:
                continue
            if operation == "models":
                protocol = _protocol_of_client(request, path)
            return Route(prefix=prefix, protocol=protocol, operation=operation)
    return None


def _protocol_of_client(request: HttpRequest, path: str) -> ProgramProtocol:
    """Return the protocol of a program that asks for the list of models."""
    if "anthropic-version" in request.headers:
        return MESSAGES
    if "/v1beta" in path or "x-goog-api-key" in request.headers:
        return GEMINI
    return CHAT


def _path_prefix(path: str) -> str | None:
    """Return the first part of a path before the version; None where there is more."""
    parts = [unquote(part) for part in path.split("/") if part]
    if parts and parts[-1] in VERSIONS:
        parts.pop()
    if len(parts) > 1:
        return None
    if parts:
        return parts[0]
    return ""


def keys_in(request: HttpRequest) -> list[str]:
    """Return the keys that a request carries, wherever its protocol puts them."""
    keys = [request.headers[name] for name in KEYS if name in request.headers]
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        keys.append(value.strip())
    if "key=" in request.query:
        keys += parse_qs(request.query).get("key", [])
    return [key for key in keys if key]


class SecretTasks:
    """Tasks of a run: each has a token, which is the first part of its address or its key. Nothing else opens it."""

    def __init__(self, secret: str) -> None:
        """Create the tasks; `secret`: first part of the address of programs that name their task in a header."""
        self._secret = secret
        self._tasks: dict[str, GatewayTask] = {}

    def add(self, token: str, task: GatewayTask) -> None:
        self._tasks[token] = task

    def remove(self, task: GatewayTask) -> None:
        """Close a task: its tokens open nothing any more."""
        for token in [token for token, other in self._tasks.items() if other is task]:
            del self._tasks[token]

    def task(self, request: HttpRequest, route: Route) -> GatewayTask:
        """Return the task of a request. Raises GatewayProblem: no token, an unknown one, or one of another task."""
        keys = list(keys_in(request))
        if IDENTITY in request.headers:
            keys.append(request.headers[IDENTITY])
        by_key = [self._tasks[key] for key in keys if key in self._tasks]
        if route.prefix in self._tasks:
            by_key.insert(0, self._tasks[route.prefix])
        elif route.prefix and not hmac.compare_digest(route.prefix.encode(), self._secret.encode()):
            raise GatewayProblem("not_found", "There is no task at this address.", status=404, final=True)
        if not by_key:
            raise GatewayProblem("authentication", "The request has no token of a task.", status=401, final=True)
        if any(other is not by_key[0] for other in by_key):
            raise GatewayProblem(
                "permission", "The request has the token of another task.", status=403, final=True
            )
        return by_key[0]


class NamedTasks:
    """Tasks of `ns gateway`: the first part of the address names one, or the key (`KEY:NAME`), else it is `default`.

    token  what every key must be or begin with; empty: any key
    make   makes the task of a name
    """

    def __init__(self, token: str, make: Callable[[str], GatewayTask]) -> None:
        self._token, self._make = token, make
        self.tasks: dict[str, GatewayTask] = {}

    def task(self, request: HttpRequest, route: Route) -> GatewayTask:
        """Return the task of a request, a new one for a new name. Raises GatewayProblem: wrong token, two names."""
        keys = keys_in(request)
        if self._token and not any(self._is_valid_key(key) for key in keys):
            raise GatewayProblem(
                "authentication", "This gateway needs its token as the key.", status=401, final=True
            )
        names = {name for key in keys if self._token or ":" in key for name in key.partition(":")[2:] if name}
        if route.prefix:
            names.add(route.prefix)
        if len(names) > 1:
            raise GatewayProblem("permission", "Address and key name different tasks.", status=403, final=True)
        name = names.pop() if names else "default"
        if not _is_name(name):
            raise GatewayProblem(
                "not_found", "Names of tasks have letters, digits, - _ and dots.", status=404, final=True
            )
        if name not in self.tasks:
            if len(self.tasks) >= MOST_TASKS:
                raise GatewayProblem("rate", f"There are {MOST_TASKS:,} tasks already.", status=429, final=True)
            self.tasks[name] = self._make(name)
        return self.tasks[name]

    def _is_valid_key(self, key: str) -> bool:
        return hmac.compare_digest(key.partition(":")[0].encode(), self._token.encode())


def _is_name(name: str) -> bool:
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    return 0 < len(name) <= LONGEST_NAME and plain.isascii() and plain.isalnum()


def model_list(protocol: ProgramProtocol, model: str) -> Mapping[str, object]:
    """Return the list of models, as programs of that protocol read it."""
    if protocol is GEMINI:
        methods = [name for name in METHODS if name != "streamGenerateContent"]
        return {"models": [{"name": f"models/{model}", "supportedGenerationMethods": methods}]}
    row = {"id": model, "type": "model", "display_name": model, "created_at": "1970-01-01T00:00:00Z"}
    if protocol is MESSAGES:
        return {"data": [row], "has_more": False, "first_id": model, "last_id": model}
    return {"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": "newskills"}]}
