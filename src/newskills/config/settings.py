# SPDX-License-Identifier: Apache-2.0
"""Settings that a part of the system declares itself: a dictionary of the user's → the part's own struct."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from newskills.base.errors import ConfigError, suggest
from newskills.base.type_errors import type_fault

S = TypeVar("S", bound=msgspec.Struct)


def read_config(kind: type[S], config: dict[str, Any], where: str) -> S:
    """Convert `config` to a struct of `kind`. Raises ConfigError with did-you-mean."""
    keys = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in config:
        if key not in keys:
            raise ConfigError(f"{where} has no key '{key}'{suggest(key, keys)}")
    try:
        return msgspec.convert(config, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {type_fault(error, config)}.") from error
