# SPDX-License-Identifier: Apache-2.0
"""Which content a tag means now: asked of the image's registry, without any credentials.

Protocol: https://distribution.github.io/distribution/spec/api/#pulling-an-image-manifest and, for anonymous tokens,
https://distribution.github.io/distribution/spec/auth/token/.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from email.message import Message

from newskills.base.errors import NewskillsError
from newskills.base.http.blocking import open_url
from newskills.environments.engines.references import Reference

PATIENCE_SECONDS = 5.0
"""Seconds for each of at most three requests."""
_ACCEPTED = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)
_FIELD = re.compile(r'(\w+)="([^"]*)"', re.ASCII)
_LOOPBACK = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+)(?::\d+)?\Z", re.ASCII)
_MAX_ANSWER_BYTES = 1 << 20


def digest_of(reference: Reference, *, patience: float = PATIENCE_SECONDS) -> str:
    """Return the image's digest `sha256:…`; empty where the registry does not tell: no network, a private image,
    no registry at all."""
    if reference.digest or reference.scheme != "docker":
        return reference.digest
    host = reference.registry or "registry-1.docker.io"
    if "/" in reference.image or reference.registry:
        image = reference.image
    else:
        image = f"library/{reference.image}"
    protocol = "http" if _LOOPBACK.match(host) else "https"
    url = f"{protocol}://{host}/v2/{image}/manifests/{reference.tag}"
    try:
        headers = _manifest_headers(url, "", patience)
    except (NewskillsError, ValueError):
        return ""
    digest = headers.get("Docker-Content-Digest", "")
    if _DIGEST.match(digest):
        return digest
    return ""


def _manifest_headers(url: str, token: str, patience: float) -> Message:
    """Return the headers of the manifest. Raises NewskillsError, ValueError."""
    private = {}
    if token:
        private["Authorization"] = f"Bearer {token}"
    with open_url(url, method="HEAD", headers={"Accept": _ACCEPTED}, private=private, timeout=patience) as reply:
        if 200 <= reply.status < 300:
            return reply.headers
        challenge = reply.headers.get("WWW-Authenticate", "")
        if reply.status != 401 or token or not challenge.lower().startswith("bearer "):
            raise ValueError(f"a registry answers with status {reply.status}")
    return _manifest_headers(url, _anonymous_token(dict(_FIELD.findall(challenge)), url, patience), patience)


def _anonymous_token(fields: dict[str, str], url: str, patience: float) -> str:
    """Fetch an anonymous token of the service that the registry names. Raises NewskillsError,
    ValueError."""
    realm = fields.pop("realm", "")
    if not realm.startswith("https://") and not (realm.startswith("http://") and url.startswith("http://")):
        raise ValueError(f"a registry gives '{realm}' as its token service, which cannot be used")
    address = f"{realm}?{urllib.parse.urlencode(fields)}"
    with open_url(address, timeout=patience) as reply:
        answer = json.loads(reply.read(_MAX_ANSWER_BYTES))
    token = None
    if isinstance(answer, dict):
        token = answer.get("token") or answer.get("access_token")
    if not isinstance(token, str) or not token.isprintable():
        raise ValueError("a registry gave no token")
    return token
