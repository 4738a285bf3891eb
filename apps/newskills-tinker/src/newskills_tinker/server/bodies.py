# SPDX-License-Identifier: Apache-2.0
"""The body of a request, unpacked where it came packed."""

from __future__ import annotations

import io

from newskills.base.errors import ConfigError, DataError
from newskills.base.http.messages import HttpRequest

LARGEST = 256 << 20
"""Bytes of an unpacked body."""


def body_of(request: HttpRequest) -> bytes:
    """Return the body of a request, unpacked. Raises ConfigError for a packing that is not known here, DataError for a
    body that is damaged or too large."""
    packing = request.headers.get("content-encoding", "identity").strip().lower()
    if packing == "identity":
        return request.body
    if packing != "zstd":
        raise ConfigError(f"The body is packed with '{packing[:40]}'; only zstd is supported.")
    try:
        import zstandard
    except ImportError as error:
        raise ConfigError(
            "The body is packed with zstd, which this server lacks.", hint="Run there: pip install zstandard"
        ) from error
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(request.body)) as reader:
            body: bytes = reader.read(LARGEST + 1)
    except zstandard.ZstdError as error:
        raise DataError(f"The body is damaged: {error}.") from error
    if len(body) > LARGEST:
        raise DataError(f"The body has more than {LARGEST:,} bytes when unpacked.")
    return body
