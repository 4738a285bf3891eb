# SPDX-License-Identifier: Apache-2.0
"""Who may use a server: clients with its token, and never a web page."""

from __future__ import annotations

import hmac

from newskills.base.http.messages import HttpRequest, Response, error_response

BROWSER_HEADERS = ("origin", "sec-fetch-site")


def refusal_response(request: HttpRequest, token: str, what: str) -> Response | None:
    """Refuse a request: 401 without the token (where one is set), 403 for a page in a browser, None for clients.
    `what`: the server."""
    header = request.headers.get("authorization", "")
    if token and not hmac.compare_digest(header.encode(), f"Bearer {token}".encode()):
        sentence = "This server needs a token: Authorization: Bearer …"
        return error_response(401, sentence, (("WWW-Authenticate", "Bearer"),))
    if any(name in request.headers for name in BROWSER_HEADERS):
        # Any page that is open in a browser on this machine can post to its loopback addresses.
        return error_response(403, f"Web pages may not use the {what}.")
    return None
