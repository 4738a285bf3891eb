# SPDX-License-Identifier: Apache-2.0
"""Lists of ids as people write them: `1,2,5` or `0..4` (inclusive)."""

from __future__ import annotations

from collections.abc import Sequence

from newskills.base.errors import ConfigError


def parse_ids(ids: str | Sequence[int], option: str) -> list[int]:
    """Return the ids as numbers. Raises ConfigError for anything but whole numbers in one of the two forms, an id given
    twice, or an empty range."""
    if not isinstance(ids, str):
        id_list = list(ids)
    elif ".." in ids:
        if "," in ids:
            raise ConfigError(f"{option} '{ids}': write either 1,2,5 or 0..4, not both.")
        first, _, last = ids.partition("..")
        id_list = list(range(_whole_number(first, ids, option), _whole_number(last, ids, option) + 1))
    else:
        id_list = [_whole_number(part, ids, option) for part in ids.split(",")]
    if len(set(id_list)) != len(id_list):
        raise ConfigError(f"{option} '{ids}': an id is given twice.")
    if not id_list:
        raise ConfigError(f"{option} '{ids}': the range is empty.")
    return id_list


def _whole_number(text: str, ids: str, option: str) -> int:
    if not text.strip().isdecimal():
        raise ConfigError(f"{option} '{ids}': '{text.strip()}' is not a whole number; write 1,2,5 or 0..4.")
    return int(text)
