# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of judged pairs."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def pairs(name: str) -> list[tuple[str, str]]:
    """(prediction, gold) of the lines `prediction ⇔ gold` of a table."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [(pred, gold) for line in lines if "⇔" in line and line[0] != "#" for pred, gold in [line.split(" ⇔ ")]]
