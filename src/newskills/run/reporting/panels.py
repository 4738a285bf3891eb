# SPDX-License-Identifier: Apache-2.0
"""How far the judges of a panel agree, from the records that hold what each of them said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.judgement import PANEL_FIELD, SPLIT_FIELD
from newskills.base.records import Number, Row
from newskills.base.stats import bootstrap_interval, krippendorff_alpha
from newskills.run.reporting.predictions import read_problems

ALPHA_METRIC = "judge_alpha"
_MOST_DRAWN = 2_000_000
"""Ratings that all resamples draw together, so that large results take a second."""


class PanelAgreement(Struct, frozen=True, kw_only=True):
    """`alpha`: Krippendorff's, with its interval, where anything differs; `split`: samples with different verdicts, in
    percent of all that were judged."""

    judges: tuple[str, ...]
    alpha: Number | None
    split: float

    def sentence(self) -> str:
        """Return the agreement in words."""
        alpha = self.alpha
        agreement = "always agree"
        if alpha is not None:
            agreement = f"agree with Krippendorff's alpha {alpha.value:.2f} [{alpha.low:.2f}, {alpha.high:.2f}]"
        return f"judges {', '.join(self.judges)} {agreement}; they differ on {self.split:.1f} % of the samples."


_FIELDS = dict.fromkeys((PANEL_FIELD, SPLIT_FIELD, "judge_prefilled", "outcome"), Any)


def panel_agreement(files: Sequence[Path]) -> PanelAgreement | None:
    """Return the agreement of the panel that judged these files; None where no panel has. Raises DataError."""
    units: list[tuple[str | float, ...]] = []
    judges: dict[str, None] = {}
    judged = split = 0
    for file in files:
        for (record,) in read_problems([file], _FIELDS):
            panel = record.get(PANEL_FIELD)
            if isinstance(panel, dict):
                judges.update(dict.fromkeys(panel))
                judged += 1
                split += bool(record.get(SPLIT_FIELD))
                units += _panel_ratings(panel)
            elif not judges and not record.get("judge_prefilled") and record.get("outcome") != "unscored":
                return None  # the first record about which a judge was asked says whether there is a panel
    if not judged:
        return None
    return PanelAgreement(judges=tuple(judges), alpha=_alpha_number(units), split=100 * split / judged)


def _panel_ratings(panel: dict[str, dict[str, Any]]) -> list[tuple[str | float, ...]]:
    """Return, for each thing that was judged, the verdicts of all judges who gave one."""
    by_key: dict[str, list[str | float]] = {}
    for own in panel.values():
        for key, judgement in own.items():
            if isinstance(judgement, dict) and isinstance(judgement.get("verdict"), str | int | float):
                by_key.setdefault(key, []).append(judgement["verdict"])
    return [tuple(verdicts) for verdicts in by_key.values()]


def _alpha_number(units: Sequence[tuple[str | float, ...]]) -> Number | None:
    value = krippendorff_alpha(units)
    if math.isnan(value):
        return None

    def finite_alpha(drawn: Sequence[tuple[str | float, ...]]) -> float:
        alpha = krippendorff_alpha(drawn)
        if math.isnan(alpha):
            return 1.0
        return alpha

    resamples = min(1000, max(100, _MOST_DRAWN // len(units)))
    low, high = bootstrap_interval(units, finite_alpha, resamples=resamples)
    return Number(value=value, low=low, high=high, n=len(units), method="bootstrap")


def with_agreement(modes: dict[str, Row], agreement: PanelAgreement) -> dict[str, Row]:
    """Return the modes of a report with the agreement of the panel in each."""
    about: Row = {SPLIT_FIELD: agreement.split}
    if agreement.alpha is not None:
        about[ALPHA_METRIC] = agreement.alpha.value
    return {mode: row | about for mode, row in modes.items()}
