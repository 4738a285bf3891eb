# SPDX-License-Identifier: Apache-2.0
"""Samples that people have labelled, and how far something else agrees with the labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Number
from newskills.base.stats import bootstrap_interval, cohen_kappa, wilson_interval
from newskills.base.store import read_rows


class LabelledSample(Struct, frozen=True, kw_only=True):
    """A line of `--labels`. Without a benchmark, a model, a seed or a scanner it stands for all of
    them."""

    id: str
    label: str
    benchmark: str | None = None
    model: str | None = None
    seed: int | None = None
    scanner: str | None = None


def read_labelled(path: Path) -> list[LabelledSample]:
    """Read labelled samples. Raises DataError for a file without any, or a line that is none."""
    samples = []
    for number, row in enumerate(read_rows(path), 1):
        texts = {name: _label_text(row[name]) for name in ("id", "label") if row.get(name) is not None}
        try:
            samples.append(msgspec.convert({**row, **texts}, LabelledSample))
        except msgspec.ValidationError as error:
            raise DataError(
                f"{path}, line {number}: {error}.", hint='Expected {"id": "q1", "label": "no"}.'
            ) from error
    if not samples:
        raise DataError(f"{path} has no labelled samples.")
    return samples


def _label_text(value: object) -> str:
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    return str(value)


def kappa_of(problems: Sequence[Sequence[tuple[str, str]]]) -> Number | None:
    """Return Cohen's kappa over the (label, other label) pairs of all problems; None without pairs.

    The interval is a bootstrap over problems: samples of one problem are no independent evidence.
    """

    def kappa(drawn: Sequence[Sequence[tuple[str, str]]]) -> float:
        return cohen_kappa([pair for own in drawn for pair in own])

    if not problems:
        return None
    low, high = bootstrap_interval(problems, kappa)
    return Number(value=kappa(problems), low=low, high=high, n=len(problems), method="bootstrap")


def share_of(hits: int, of: int) -> Number | None:
    """Return a share in percent with Wilson's interval; None of nothing."""
    if not of:
        return None
    low, high = wilson_interval(hits / of, of)
    return Number(value=100 * hits / of, low=100 * low, high=100 * high, n=of, method="wilson")
