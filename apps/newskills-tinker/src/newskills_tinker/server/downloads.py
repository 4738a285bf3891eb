# SPDX-License-Identifier: Apache-2.0
"""Addresses from which the files of a checkpoint can be had for a while, without the key of the service."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from datetime import UTC, datetime
from urllib.parse import parse_qs, quote, unquote

from newskills.base.errors import DataError
from newskills.base.http.messages import HttpRequest, Response, error_response
from newskills.base.records import Row
from newskills_tinker.server.checkpoints import INFO_FILE, Address, Checkpoints, parse_address

PREFIX = "/api/v1/files/"
SECONDS = 3600
BYTES = "application/octet-stream"


class SignedDownloads:
    """Signs addresses with a secret of this process (https://datatracker.ietf.org/doc/html/rfc2104)."""

    def __init__(self, saved: Checkpoints) -> None:
        self._saved, self._secret = saved, secrets.token_bytes(32)

    def urls(self, request: HttpRequest, address: Address) -> Row:
        """Return an address for each file. Raises UnknownNameError."""
        folder = self._saved.find(str(address))
        until = int(time.time()) + SECONDS
        host = request.headers.get("host", "")
        urls = {}
        for file in sorted(folder.iterdir()):
            path = f"{address.run_id}/{address.kind}/{address.name}/{file.name}"
            if file.name != INFO_FILE:
                signed = f"until={until}&signature={self._signature(path, until)}"
                urls[file.name] = f"http://{host}{PREFIX}{quote(path)}?{signed}"
        return {"urls": urls, "expires": datetime.fromtimestamp(until, UTC)}

    def file(self, request: HttpRequest) -> Response:
        """Answer with the file of a signed address. Raises DataError, UnknownNameError."""
        path = unquote(request.path.removeprefix(PREFIX))
        query = parse_qs(request.query)
        until, signature = (query.get(name, [""])[0] for name in ("until", "signature"))
        right = until.isdecimal() and hmac.compare_digest(
            signature.encode(), self._signature(path, int(until)).encode()
        )
        if not right or int(until) < time.time():
            return error_response(403, "This address is not signed by this service, or is too old.")
        checkpoint, _, name = path.rpartition("/")
        try:
            body = (self._saved.find(str(parse_address(f"tinker://{checkpoint}"))) / name).read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
        return Response(body=body, content_type=BYTES)

    def _signature(self, path: str, until: int) -> str:
        return hmac.new(self._secret, f"{until} {path}".encode(), hashlib.sha256).hexdigest()
