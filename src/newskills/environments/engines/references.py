# SPDX-License-Identifier: Apache-2.0
"""References of container images: what they name, how enroot wants them written, and which files they become.

Grammar of enroot's URIs: https://github.com/NVIDIA/enroot/blob/master/doc/cmd/import.md. The form
`docker://REGISTRY#IMAGE:TAG` is understood by all of its releases; the one with a slash by newer ones only.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from newskills.base.errors import ConfigError

ARCHIVES = ("docker-archive", "oci-archive")
SCHEMES = ("docker", "dockerd", "podman", *ARCHIVES)
ENDINGS = (".sqsh", ".squashfs")
HUB = ("", "docker.io", "index.docker.io", "registry-1.docker.io")
"""Names of Docker Hub; the first is the one that is written."""

_SCHEME = re.compile(r"([a-z][a-z0-9-]*)://", re.ASCII)
_DIGEST = re.compile(r"[@:](sha256:[0-9a-f]{64})\Z", re.ASCII)
_IMAGE = re.compile(r"[a-z0-9._/-]+\Z", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z", re.ASCII)
_REGISTRY = re.compile(r"[A-Za-z0-9._-]+(?::\d+)?\Z", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_.!~$-]+\Z", re.ASCII)


class Reference(Struct, frozen=True, kw_only=True):
    """An image that is no file of the cluster yet. `registry` and `user` are empty where the text has none.

    place   of dockerd, podman and archives: what stands behind the scheme
    digest  `sha256:…` where the text pins it
    """

    text: str
    scheme: str = "docker"
    user: str = ""
    registry: str = ""
    image: str = ""
    tag: str = ""
    digest: str = ""
    place: str = ""

    @property
    def uri(self) -> str:
        """For `enroot import`."""
        if self.scheme != "docker":
            return f"{self.scheme}://{self.place}"
        user = f"{self.user}@" if self.user else ""
        registry = f"{self.registry}#" if self.registry else ""
        return f"docker://{user}{registry}{self.image}:{self.digest or self.tag}"

    @property
    def stem(self) -> str:
        """The reference as the beginning of a file name; several references may share one."""
        shown = self.text.partition("://")[2] or self.text
        if self.scheme in ARCHIVES:
            shown = shown.rpartition("/")[2]
        return re.sub(r"[^A-Za-z0-9]+", "_", shown).strip("_")[:120] or "image"

    def file_name(self, digest: str = "") -> str:
        """Return `<stem>-<12 hex digits>.sqsh`, a hash of the content where `digest` is known, else of the whole
        reference."""
        digest = digest or self.digest
        shown = digest.removeprefix("sha256:") or hashlib.sha256(self.text.encode()).hexdigest()
        return f"{self.stem}-{shown[:12]}.sqsh"


def is_file(image: str) -> bool:
    """Return whether `image` is already a file or folder of the cluster, so that nothing has to be imported."""
    return image.startswith(("/", "./", "~")) or image.endswith(ENDINGS)


def parse_image(text: str) -> Reference:
    """Parse the reference of an image. Raises ConfigError for text that is not one."""
    scheme, rest = "docker", text
    if match := _SCHEME.match(text):
        scheme, rest = match[1], text[match.end() :]
    if scheme not in SCHEMES:
        raise ConfigError(f"Image '{text}': the scheme '{scheme}' is not one of {', '.join(SCHEMES)}.")
    if scheme != "docker":
        if not rest or any(ch.isspace() or not ch.isprintable() for ch in rest):
            raise ConfigError(f"Image '{text}': no image name follows {scheme}://.")
        return Reference(text=text, scheme=scheme, place=rest)
    digest = ""
    if pinned := _DIGEST.search(rest):
        digest, rest = pinned[1], rest[: pinned.start()]
    user, at, rest = rest.rpartition("@")
    registry, image, tag = _split_reference(rest)
    good = _IMAGE.match(image) and _TAG.match(tag) and "//" not in image and image.strip("/") == image
    if not good or not (not registry or _REGISTRY.match(registry)) or not (not at or _USER.match(user)):
        raise ConfigError(
            f"'{text}' is not a container image reference.",
            hint="Write REGISTRY/IMAGE:TAG, docker://REGISTRY#IMAGE:TAG, or the path of a .sqsh file.",
        )
    return Reference(text=text, user=user, registry=registry, image=image, tag=tag, digest=digest)


def _split_reference(rest: str) -> tuple[str, str, str]:
    """Split `REGISTRY#IMAGE:TAG` or `REGISTRY/IMAGE:TAG` into (registry, image, tag)."""
    registry, hash_, image = rest.rpartition("#")
    if not hash_:
        first, slash, behind = rest.partition("/")
        if slash and ("." in first or ":" in first or first == "localhost"):
            registry, image = first, behind
    path, slash, last = image.rpartition("/")
    name, _, tag = last.partition(":")
    if registry in HUB:
        registry = ""
    return registry, f"{path}{slash}{name}", tag or "latest"
