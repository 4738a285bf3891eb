# SPDX-License-Identifier: Apache-2.0
"""A login of Weights & Biases on this machine: WANDB_API_KEY, `wandb login`'s entry in netrc, or its settings file.

The key itself goes from there into the environment of what is submitted, and nowhere else.
"""

from __future__ import annotations

import configparser
import netrc
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from newskills_evaluator.config import WandbSection

KEY, PROJECT, ENTITY = "WANDB_API_KEY", "WANDB_PROJECT", "WANDB_ENTITY"
HOST = "https://api.wandb.ai"
FOUND = "[info] Detected W&B login, setting WANDB_API_KEY"
NOT_FOUND = "[info] No W&B login found: run wandb login, or set WANDB_API_KEY"


class WandbLogin(Struct, frozen=True, repr_omit_defaults=True):
    """What to add to the environment (with the key: never show it), and what to say."""

    variables: dict[str, str]
    lines: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Detected({sorted(self.variables)!r})"


def detect_login(environ: Mapping[str, str], wandb: WandbSection) -> WandbLogin:
    """Find key, project and entity for a run whose results go to W&B, as far as `environ` has none of its own."""
    variables: dict[str, str] = {}
    lines: tuple[str, ...] = ()
    if not environ.get(KEY):
        if key := found_login(environ):
            variables[KEY], lines = key, (FOUND,)
        elif environ.get("WANDB_MODE") not in ("offline", "disabled"):
            lines = (NOT_FOUND,)
    for name, value in ((PROJECT, wandb.project), (ENTITY, wandb.entity)):
        if value and not environ.get(name):
            variables[name] = value
    return WandbLogin(variables, lines)


def found_login(environ: Mapping[str, str]) -> str:
    """Return the key; empty where nobody has logged in."""
    if key := environ.get(KEY, "").strip():
        return key
    server = environ.get("WANDB_BASE_URL") or HOST
    return _in_netrc(environ, server) or _in_settings(environ, server)


def _in_netrc(environ: Mapping[str, str], server: str) -> str:
    home = _home_folder(environ)
    named = environ.get("NETRC")
    if named:
        path = _expand_home(named, home)
    else:
        path = next((path for path in (home / ".netrc", home / "_netrc") if path.exists()), home / ".netrc")
    try:
        credentials = netrc.netrc(path).authenticators(urlsplit(server).netloc)
    except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
        return ""
    if credentials:
        return (credentials[2] or "").strip()
    return ""


def _in_settings(environ: Mapping[str, str], server: str) -> str:
    """Return `api_key` of the settings file in the user's configuration folder, where it is of the same server."""
    home = _home_folder(environ)
    named = environ.get("WANDB_CONFIG_DIR")
    folder = _expand_home(named, home) if named else home / ".config" / "wandb"
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(folder / "settings", encoding="utf-8")
        section = parser["default"]
    except (configparser.Error, KeyError, UnicodeDecodeError):
        return ""
    same = section.get("base_url", HOST).rstrip("/") == server.rstrip("/")
    if same:
        return section.get("api_key", "").strip()
    return ""


def _home_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _expand_home(path: str, home: Path) -> Path:
    if path.startswith("~/"):
        return home / path[2:]
    return Path(path)
